"""The files of Gemini CLI: one JSON document up to 0.38, a log of JSON lines since 0.39.

A document is rewritten whole at each change, so a torn one is read as far as it goes. `~/.gemini/sessions/<id>.jsonl`,
which older documents name, holds plain messages with a role; they are given the shape of the others.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from amux.errors import UnreadableSession
from amux.readers._base import stamp
from amux.readers._json import Record, at, decoded, dict_at, document, list_at, records, text_at, text_of

MESSAGES = re.compile(r'"messages"\s*:\s*\[')
FIELD = re.compile(r'"(sessionId|projectHash|startTime|lastUpdated|kind)"\s*:\s*"([^"\\]*)"')
NEXT_MESSAGE = "\n    {"
"""How a message begins in a document, which is indented by two."""
MARKS = ("$rewindTo", "$set", "sessionId", "messages", "role")
ROLES = {"user": "user", "model": "gemini", "assistant": "gemini", "system": "info"}
COUNTS = {
    "input": "promptTokenCount",
    "output": "candidatesTokenCount",
    "cached": "cachedContentTokenCount",
    "thoughts": "thoughtsTokenCount",
    "tool": "toolUsePromptTokenCount",
}


@dataclass(frozen=True, slots=True)
class Transcript:
    """One file of a session and what it says of itself."""

    path: str
    records: list[Record]

    @property
    def session_id(self) -> str | None:
        return self.first("sessionId")

    @property
    def kind(self) -> str | None:
        return self.first("kind")

    @property
    def started(self) -> str:
        return self.first("startTime") or ""

    @property
    def updated(self) -> str:
        return max((text for fact in self.facts() if (text := text_at(fact, "lastUpdated"))), default="")

    def first(self, name: str) -> str | None:
        return next((text for fact in self.facts() if (text := text_at(fact, name))), None)

    def facts(self) -> Iterator[Record]:
        """Headers and patches: every record that is no message."""
        for record in self.records:
            if not text_at(record, "id"):
                yield dict_at(record, "$set") or record

    def messages(self) -> Iterator[Record]:
        for record in self.records:
            if text_at(record, "id"):
                yield record
            else:
                yield from (one for one in listed(record) if text_at(one, "id"))


def listed(record: Record) -> list[Record]:
    """The messages inside a document or a snapshot."""
    return [one for one in list_at(dict_at(record, "$set") or record, "messages") if isinstance(one, dict)]


def transcript(path: str) -> Transcript:
    """Raises UnreadableSession when there is something in the file and none of it makes sense."""
    found = contents(path)
    if os.path.basename(os.path.dirname(path)) == "sessions":
        found = list(native(found, os.path.splitext(os.path.basename(path))[0]))
    size = stamp(path)
    if not found and size and size[1]:
        raise UnreadableSession(path, "no record of a session in it")
    return Transcript(path, found)


def session_id(path: str) -> str | None:
    """The id a file has in its header, found without reading a log to its end."""
    lines = records(path) if path.endswith(".jsonl") else iter(())
    return next((id for line in lines if (id := text_at(line, "sessionId"))), None) or transcript(path).session_id


def contents(path: str) -> list[Record]:
    """The records of a file; a document is one. The extension tells only what to try first."""
    whole = document(path) if path.endswith(".json") else None
    if whole is None:
        lines = [record for record in records(path) if marked(record)]
        if lines:
            return lines
        whole = document(path)
    found = whole if isinstance(whole, list) else [whole]
    return [record for record in found if isinstance(record, dict) and marked(record)] or salvaged(path)


def marked(record: Record) -> bool:
    return isinstance(record.get("id"), str) or any(mark in record for mark in MARKS)


def salvaged(path: str) -> list[Record]:
    """What can be read of a damaged document: the fields before its messages, and each whole message."""
    text = text_of(path)
    begin = MESSAGES.search(text)
    header: Record = dict(FIELD.findall(text[: begin.start()] if begin else text))
    if begin:
        header["messages"] = list(whole_messages(text, begin.end()))
    return [header] if header else []


def whole_messages(text: str, position: int) -> Iterator[Any]:
    decoder = json.JSONDecoder(strict=False)
    while 0 <= position < len(text):
        if text[position] in " \t\r\n,":
            position += 1
            continue
        try:
            _, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position = text.find(NEXT_MESSAGE, position)
            position += len(NEXT_MESSAGE) - 1 if position >= 0 else 0
            continue
        yield decoded(text[position:end])
        position = end


def native(found: list[Record], stem: str) -> Iterator[Record]:
    """Records of plain messages in the shape of the program's own; those that have it stay as they are."""
    yield {"sessionId": stem}
    plain = [one for record in found for one in (listed(record) or [record])]
    for number, record in enumerate(plain):
        role = ROLES.get(text_at(record, "role") or "")
        if not role:
            yield record
            continue
        yield {
            **record,
            "id": text_at(record, "id") or f"{stem}:{number}",
            "type": role,
            "content": record.get("content") or record.get("parts"),
            "tokens": record.get("tokens") or counted(record),
        }


def counted(record: Record) -> Record | None:
    usage = at(record, "usageMetadata")
    return {name: at(usage, theirs) for name, theirs in COUNTS.items()} if isinstance(usage, dict) else None
