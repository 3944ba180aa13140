"""The CLI's store.db: blobs named by the SHA-256 of their bytes, and in `meta` the name of the latest root.

Nothing is ever taken out: old roots stay, and with them turns that were rewound. A root is a Protocol Buffers message: field
1 lists the JSON messages that the model sees, 6 is a summary, 8 a blob for each turn, 9 the working directories; 5 counts the
tokens of the current context, not what was used. What other fields mean changed between builds.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from amux.model import Message
from amux.readers._json import Record, decoded, text_at
from amux.readers._sqlite import Salvaged
from amux.readers.cursor import conversation, wire
from amux.readers.cursor.database import as_bytes
from amux.readers.cursor.uris import local_path

META = "select value from meta order by key <> '0'"
BLOB = "select data from blobs where id = ?"
EVERYTHING = "select id, data from blobs order by rowid"
ROOTS = "select data from blobs where substr(data, 1, 2) = x'0A20' order by rowid desc"
"""Whatever begins with an id in field 1: every root, the latest first."""
UUID_LENGTH = 36
MARK_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class Root:
    messages: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    summary: str = ""
    folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: bytes) -> "Root":
        uris = (value.decode("utf-8", "replace") for number, value in wire.fields(data) if number == 9)
        return cls(
            tuple(wire.ids(data, 1)),
            tuple(wire.ids(data, 8)),
            next(iter(wire.ids(data, 6)), ""),
            tuple(path for uri in uris if (path := local_path(uri))),
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as its own blob tells it: what was typed, and the texts of its steps."""

    prompt: str
    steps: tuple[Message, ...]


class Store(Salvaged):
    def __init__(self, path: str, db: sqlite3.Connection) -> None:
        super().__init__(path, db, {"blobs": "id", "meta": "key"})
        self.empty = not (self.columns["blobs"] >= {"id", "data"} and self.columns["meta"] >= {"key", "value"})
        self.known: dict[str, Record] = {}
        self.marks: dict[str, str] = {}

    @property
    def meta(self) -> Record:
        """What is told of the session: JSON, mostly spelled in hexadecimal digits."""
        for row in self.rows(META):
            found = decoded(unhexed(row["value"]))
            if isinstance(found, dict):
                return found
        return {}

    def blob(self, id: str) -> bytes:
        """The bytes of a blob; none when it is missing."""
        return next((as_bytes(row["data"]) for row in self.rows(BLOB, id)), b"")

    def record(self, id: str) -> Record:
        if id not in self.known:
            self.known[id] = record(self.blob(id)) or {}
        return self.known[id]

    def prompt(self, id: str) -> str:
        """The mark of what was typed in a message; empty when nothing was."""
        if id not in self.marks:
            found = (one.content for one in conversation.messages([self.record(id)]) if one.role == "user")
            self.marks[id] = mark(next(found, ""))
        return self.marks[id]

    def records(self, ids: Iterable[str]) -> Iterator[Record]:
        return map(self.record, ids)

    def prompts(self, root: Root) -> list[str]:
        """The marks of what was typed in the messages of a root."""
        return [found for id in root.messages if (found := self.prompt(id))]

    def is_summed_up(self, root: Root) -> bool:
        return bool(root.summary) or any(map(conversation.is_summary, self.records(root.messages)))

    def summary(self, root: Root) -> str:
        return wire.text(self.blob(root.summary), 1)

    def every_record(self) -> list[Record]:
        """Without a root: every message there is, rewound ones too; the texts of turns may quote one, but are none."""
        blobs = (as_bytes(row["data"]) for row in self.rows(EVERYTHING))
        found = ((embedded(data), data) for data in blobs)
        return [one for one, data in found if one and text_at(one, "role") and not typed(data) and not step(data)]

    def roots(self) -> Iterator[Root]:
        return (Root.of(as_bytes(row["data"])) for row in self.rows(ROOTS))

    # Turns

    def turns(self, root: Root) -> list[Turn]:
        """The turns of a root in which something was typed: commands for the shell are none."""
        found = (self.turn(id) for id in root.turns)
        return [turn for turn in found if turn]

    def turn(self, id: str) -> Turn | None:
        agent = next((value for number, value in wire.fields(self.blob(id)) if number == 1), b"")
        prompt = next((wire.text(self.blob(id), 1) for id in wire.ids(agent, 1)), "")
        steps = [step(self.blob(id)) for id in wire.ids(agent, 2)]
        return Turn(prompt.strip(), tuple(responses(steps))) if prompt.strip() else None


def mark(prompt: str) -> str:
    """What stands for a prompt where prompts are compared, which may be huge; empty for an empty one."""
    plain = prompt.strip()
    return plain if len(plain) <= MARK_LENGTH else sha256(plain.encode("utf-8", "replace")).hexdigest()


def unhexed(value: Any) -> bytes:
    plain = as_bytes(value)
    try:
        return bytes.fromhex(plain.decode("ascii"))
    except ValueError:
        return plain


def record(data: bytes) -> Record | None:
    """The message in a blob: JSON, or as the first builds kept a prompt."""
    found = embedded(data)
    if found is None and (text := typed(data)):
        return {"role": "user", "content": text}
    return found


def embedded(data: bytes) -> Record | None:
    """The JSON object that a blob is, or that stands inside something else in it."""
    found = decoded(data) if data[:1] == b"{" else None
    if isinstance(found, dict):
        return found
    start = data.find(b'{"')
    inside = first_value(data[start:].decode("utf-8", "replace")) if start >= 0 else None
    return inside if isinstance(inside, dict) else None


def typed(data: bytes) -> str:
    """What was typed, in a blob of a text and a UUID; empty for any other."""
    return wire.text(data, 1) if len(wire.text(data, 2)) == UUID_LENGTH else ""


def first_value(text: str) -> Any:
    """The JSON value a text begins with, whatever follows it."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def step(data: bytes) -> Message | None:
    """What the model said or thought in a step of a turn; of a tool only its call's own fields are there."""
    for number, value in wire.fields(data):
        text = wire.text(value, 1)
        if number == 1 and text:
            return Message("assistant", text)
        if number == 3 and text:
            return Message("assistant", thinking=text)
    return None


def responses(steps: Iterable[Message | None]) -> Iterator[Message]:
    """The steps of a turn, what was thought together with what was said after it."""
    thought: Message | None = None
    for one in steps:
        if thought and one and not one.thinking:
            yield replace(one, thinking=thought.thinking)
            thought = None
            continue
        if thought:
            yield thought
        thought = one if one and one.thinking else None
        if one and not one.thinking:
            yield one
    if thought:
        yield thought
