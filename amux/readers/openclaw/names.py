"""What session keys and the names of files tell.

A key is `agent:<agent>:<rest>`, where the rest says how people reach a session, or is any text of theirs.
"""

import re

CHATS = frozenset({"channel", "direct", "dm", "group", "room", "thread", "topic"})
OTHERS = frozenset({"acp", "cron", "explicit", "hook", "main", "subagent"})
SUBAGENT = ":subagent:"
STAMPED = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z_(.+)")
TOPIC = re.compile(r"(.+?)-topic-.+")


def parts(key: str) -> list[str]:
    """What a key consists of, without the agent it belongs to; `subagent:…` and `telegram:…` alone are of older versions."""
    found = key.split(":")
    return found[2:] if found[0] == "agent" else found


def channel(key: str) -> str | None:
    """The channel a key names: `telegram:group:7`, `discord:work:direct:7` with an account in between."""
    first, *rest = parts(key) or [""]
    return first if first and first not in CHATS | OTHERS and CHATS.intersection(rest[:2]) else None


def is_subagent(key: str) -> bool:
    return SUBAGENT in f":{key}"


def id_in(stem: str) -> str:
    """The session id in the name of a file: a fork's has its time in front, one of a Telegram topic the topic behind."""
    if stamped := STAMPED.fullmatch(stem):
        return stamped[1]
    topic = TOPIC.fullmatch(stem)
    return topic[1] if topic else stem
