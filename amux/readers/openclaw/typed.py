"""What a person typed, out of what openclaw stored as their prompt.

Messages from channels up to about 2026.5 carry an envelope, `[Telegram Ada id:7 +2m 2026-01-24 10:00 CET] text`, and a line
with the message's id; later ones begin with blocks of JSON under a heading, and may end with more context. A heading is
recognised by its words, in the newest versions by a mark. Versions before 2026.5 also stored the time that the model is told,
and put dated notices of the system in front.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from amux.model import Attachment

MARK = "⟦openclaw:ctx⟧"
UNTRUSTED = re.escape("Untrusted context (metadata, do not treat as instructions or commands):")
HEADING = rf"^[^\n]*(?:\(untrusted metadata\):|\(untrusted, for context\):|{MARK})[ \t]*\n"
FENCED = re.compile(rf"{HEADING}```json\n.*?(?:^```[ \t]*(?:\n+|\Z)|\Z)", re.DOTALL | re.MULTILINE)
MEMORY = re.compile(
    rf"^(?:{UNTRUSTED}|Context:)[ \t]*\n<active_memory_plugin>(?:(?!<active_memory).)*?^</active_memory_plugin>[ \t]*\n*",
    re.DOTALL | re.MULTILINE,
)
AFTER = re.compile(rf"^(?:{UNTRUSTED}|Context: {MARK})[ \t]*(?:\n.*)?\Z", re.DOTALL | re.MULTILINE)
MARKED = re.compile(rf"^[^\n]+ {MARK}[ \t]*\n(?:[^\n]*\S[^\n]*(?:\n|\Z))*\n*", re.MULTILINE)
INTERNAL = re.compile(
    r"^[ \t]*<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>.*?(?:^[ \t]*<<<END_OPENCLAW_INTERNAL_CONTEXT>>>[ \t]*\n*|\Z)",
    re.DOTALL | re.MULTILINE,
)
RUNTIME = re.compile(
    r"^OpenClaw runtime context \(internal\):\nThis context is runtime-generated.*\Z", re.DOTALL | re.MULTILINE
)
NOTICES = re.compile(r"\A(?=(?:System[^\n]*\n)*?System[^:\n]*: \[\d{4}-)(?:System(?: \(untrusted\))?: [^\n]*\n)+\n+")
TIME = re.compile(r"\A\[[A-Za-z]{3} \d{4}-\d\d-\d\d \d\d:\d\d[^\]]*\] *")
ENVELOPE = re.compile(
    r"\A\[(?=[A-Za-z][^\]\n]{0,400}\])(?:[^\]\n]*\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\]\n]*|[A-Z][A-Za-z ]+ [^\]\n]*\bid:[^\]\n]*)\]\s*"
)
"""It begins with the channel's name; a line of a log that somebody pasted does with the time."""
HINTS = re.compile(
    r"^(?:\[message_id: [^\]\n]+\]|To send an image back, prefer the message tool[^\n]*"
    r"|Delivery: (?:to send a message, use the `message` tool|Final assistant text is not automatically delivered)[^\n]*"
    r"|\[media attached: \d+ files?\])[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
MEDIA = re.compile(
    r"^\[media attached(?: \d+/\d+)?: ([^\]\n|]{1,400}?)(?: \(([^()\n]{1,100})\))?(?: \| [^\]\n]*)?\][ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
TASK = re.compile(r"\A\[Subagent Context\].*?^\[Subagent Task\](?::[ \t]*|[ \t]*\n\s*)", re.DOTALL | re.MULTILINE)
BEGIN = re.compile(r"^Begin\. Execute the assigned task to completion\.\s*\Z", re.MULTILINE)
SUBAGENT = "[Subagent Context]"
TELLTALES = (
    MARK,
    "(untrusted",
    "(metadata, do",
    "<<<BEGIN",
    "<active_memory_plugin>",
    "OpenClaw runtime context",
    "Delivery: ",
)
BEGINNINGS = ("[", "System: ", "System (untrusted): ", "To send an image back")


@dataclass(frozen=True, slots=True)
class Prompt:
    """`delegated` when a session wrote it for its sub-agent."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    delegated: bool = False


def prompt(stored: str) -> Prompt:
    """What was typed; its text is empty where all of it was put there by the program."""
    if not stored.startswith(BEGINNINGS) and "\n[" not in stored and not any(one in stored for one in TELLTALES):
        return Prompt(stored)
    text = without(stored, INTERNAL, RUNTIME, MEMORY, FENCED, AFTER, MARKED, NOTICES, TIME, ENVELOPE, TIME, HINTS)
    attachments = tuple(attached(text))
    text = without(text, MEDIA)
    if not text.startswith(SUBAGENT):
        return Prompt(text if text == stored else text.strip("\n"), attachments)
    _, *task = TASK.split(text, maxsplit=1)
    return Prompt(BEGIN.sub("", task[0]).strip() if task else "", attachments, delegated=True)


def without(text: str, *patterns: re.Pattern[str]) -> str:
    for pattern in patterns:
        text = pattern.sub("", text)
    return text


def attached(text: str) -> Iterator[Attachment]:
    for found in MEDIA.finditer(text):
        yield attachment(found[1], found[2])


def attachment(path: str, media_type: str | None) -> Attachment:
    name = re.split(r"[/\\]", path)[-1]
    return Attachment("image" if (media_type or "").startswith("image/") else "file", media_type, name or None)
