"""`<root>/sessions/<channel>/<id>.json`, one document per session.

No version that is known writes such files; the layout is the one older descriptions of openclaw give, and other programs
follow them: a title, and messages with a role, a content, a time and what they used.
"""

import os
from collections.abc import Iterator, Sequence

from amux.model import Json, Session
from amux.readers._base import SessionRef, entries, file_ref, stamp
from amux.readers._json import Record, at, dict_at, document, int_at, list_at, text_at
from amux.readers.openclaw.about import About
from amux.readers.openclaw.store import Kin

SUFFIX = ".json"
MESSAGES = ("messages", "entries", "events", "history")
ROLES = {"human": "user", "ai": "assistant", "tool": "toolResult"}
COUNTS = {
    "input": ("input", "inputTokens", "input_tokens"),
    "output": ("output", "outputTokens", "output_tokens"),
    "cacheRead": ("cacheRead", "cachedTokens", "cacheReadTokens", "cache_read_input_tokens"),
    "cacheWrite": ("cacheWrite", "cacheWriteTokens", "cache_creation_input_tokens"),
}
COSTS = (
    ("usage", "cost", "total"),
    ("usage", "cost"),
    ("cost", "total"),
    ("cost", "totalUsd"),
    ("cost",),
    ("costUsd",),
)


class Documents:
    """`path` is the directory of the channels' directories."""

    def __init__(self, agent: str, path: str) -> None:
        self.agent = agent
        self.path = path

    def holds(self, path: str) -> bool:
        return os.path.dirname(os.path.dirname(path)) == self.path and path.endswith(SUFFIX)

    def files(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Channel and file of each session."""
        for folder in entries(self.path):
            if os.path.isdir(folder.path):
                yield from ((folder.name, entry) for entry in entries(folder.path) if entry.name.endswith(SUFFIX))

    def state(self) -> str:
        found = ((entry.path, stamp(entry.path)) for _, entry in self.files())
        return " ".join(f"{path}:{one[0]}" for path, one in found if one)

    def refs(self, kin: Kin) -> Iterator[SessionRef]:
        for channel, entry in self.files():
            if ref := file_ref(f"{self.agent}/{channel}/{entry.name.removesuffix(SUFFIX)}", entry.path):
                yield ref

    def read(self, agent: str, ref: SessionRef, kin: Kin) -> Sequence[Session]:
        from amux.readers.openclaw import transcript  # noqa: PLC0415 - few have such files

        found = document(ref.path)
        root = found if isinstance(found, dict) else {"messages": found}
        listed = next((list_at(root, name) for name in MESSAGES if list_at(root, name)), [])
        session_id = os.path.basename(ref.path).removesuffix(SUFFIX)
        created = next((root[name] for name in ("timestamp", "createdAt", "created_at") if root.get(name)), None)
        header = {"timestamp": created, "cwd": root.get("cwd"), "model": root.get("model")}
        log = transcript.Log(header, [entry(one) for one in listed if isinstance(one, dict)])
        channel = os.path.basename(os.path.dirname(ref.path))
        told = About(title=text_at(root, "title") or text_at(root, "name"), channel=channel)
        return transcript.sessions(agent, session_id, ref.path, log, told)

    def raw(self, ref: SessionRef) -> Json:
        return document(ref.path)

    def session_of(self, key: str, when: int | None) -> str | None:
        return None

    def key_of(self, session_id: str) -> str | None:
        return None


def entry(message: Record) -> Record:
    """A message as pi's entries have it; one that is such an entry as it is."""
    if isinstance(message.get("message"), dict):
        return message
    role = text_at(message, "role") or ""
    time = message.get("timestamp") or message.get("createdAt")
    spoken = {**message, "role": ROLES.get(role, role), "timestamp": time, "usage": usage(message)}
    return {"type": "message", "timestamp": time, "message": spoken}


def usage(message: Record) -> Record | None:
    recorded = next((found for name in ("usage", "tokenUsage", "tokens") if (found := dict_at(message, name))), None)
    if recorded is None:
        return None
    counts = {
        name: next((count for one in names if (count := int_at(recorded, one)) is not None), None)
        for name, names in COUNTS.items()
    }
    paid = next((cost for path in COSTS if isinstance(cost := at(message, *path), int | float)), None)
    return {**counts, "reasoning": int_at(recorded, "thinkingTokens"), "cost": {"total": paid}}
