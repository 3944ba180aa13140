"""The CLI's store.db: blobs named by the SHA-256 of their bytes, and in `meta` the name of the latest root.

Nothing is ever taken out: old roots stay, and with them turns that were rewound. A root is a Protocol Buffers message: field
1 lists the JSON messages that the model sees, 8 a blob for each turn, 9 the working directories. A summary takes the place
of what it sums up in field 1, while 8 keeps every turn, though only its texts; the messages themselves are still in the last
root before the summary. Field 5 counts the tokens of the current context, not what was used.
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import md5
from itertools import takewhile
from typing import Any

from amux.model import Json, Message
from amux.readers._base import modified
from amux.readers._json import Record, decoded, text_at
from amux.readers._sqlite import columns, reading
from amux.readers.cursor import conversation, wire
from amux.readers.cursor.conversation import Conversation, moment, paired
from amux.readers.cursor.database import Database, as_bytes, without_secrets
from amux.readers.cursor.places import SIDECAR, STORE, whole
from amux.readers.cursor.uris import local_path

META = "select value from meta order by key <> '0'"
BLOB = "select data from blobs where id = ?"
EVERYTHING = "select id, data from blobs order by rowid"
ROOTS = "select id, data from blobs where substr(data, 1, 2) = x'0A20' order by rowid desc"
"""Whatever begins with an id in field 1: every root, the latest first."""
WORKSPACE = re.compile(r"^Workspace Path: ([^\n<]+)", re.MULTILINE)
UUID_LENGTH = 36


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


class Store(Database):
    def __init__(self, path: str, db: sqlite3.Connection) -> None:
        super().__init__(path, db)
        self.empty = not (columns(db, "blobs") >= {"id", "data"} and columns(db, "meta") >= {"key", "value"})
        self.record = cache(self.read_record)
        self.prompt = cache(self.read_prompt)

    @property
    def meta(self) -> Record:
        """What is told of the session: JSON, mostly spelled in hexadecimal digits."""
        for (value,) in self.select(META):
            found = decoded(unhexed(value))
            if isinstance(found, dict):
                return found
        return {}

    def blob(self, id: str) -> bytes:
        """The bytes of a blob; none when it is missing."""
        return next((as_bytes(data) for (data,) in self.select(BLOB, id)), b"")

    def read_record(self, id: str) -> Record:
        return record(self.blob(id)) or {}

    def read_prompt(self, id: str) -> str:
        """What was typed in a message; empty when nothing was."""
        return next((one.content.strip() for one in conversation.messages([self.record(id)]) if one.role == "user"), "")

    def records(self, ids: Iterable[str]) -> Iterator[Record]:
        return map(self.record, ids)

    def prompts(self, root: Root) -> list[str]:
        return [text for id in root.messages if (text := self.prompt(id))]

    def is_summed_up(self, root: Root) -> bool:
        return any(map(conversation.is_summary, self.records(root.messages)))

    def summary(self, root: Root) -> str:
        return wire.text(self.blob(root.summary), 1)

    def every_record(self) -> list[Record]:
        """Without a root: every message there is, rewound ones too."""
        found = (decoded(as_bytes(data)) for _, data in self.select(EVERYTHING))
        return [one for one in found if isinstance(one, dict) and text_at(one, "role")]

    def roots(self) -> Iterator[Root]:
        return (Root.of(as_bytes(data)) for _, data in self.select(ROOTS))

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


class StoreFile:
    """A database that holds one session, opened only while it is read."""

    def __init__(self, path: str) -> None:
        self.path = path

    def session(self, id: str, folder: str) -> Conversation | None:
        with reading(self.path) as db:
            store = Store(self.path, db)
            if store.empty:
                return None
            meta = store.meta
            latest = store.blob(text_at(meta, "latestRootBlobId") or "")
            root = Root.of(latest)
            records = list(store.records(root.messages)) if latest else store.every_record()
            messages = paired(active(store, root) if latest else conversation.messages(records))
            if not messages:
                store.check()
            return described(self.path, meta, messages, [*root.folders, *told_folders(records)], folder)

    def raw(self, id: str) -> Json:
        """Every blob, abandoned ones too: JSON as it is, anything else as hexadecimal digits."""
        with reading(self.path) as db:
            store = Store(self.path, db)
            if store.empty:
                return None
            blobs = [(name, as_bytes(data)) for name, data in store.select(EVERYTHING)]
            return {
                "meta": without_secrets(store.meta),
                "sidecar": sidecar(self.path),
                "blobs": [{"id": str(name), "data": decoded(data) or data.hex()} for name, data in blobs],
            }


def sidecar(path: str) -> Record:
    return whole(path.removesuffix(STORE) + SIDECAR)


def described(
    path: str, meta: Record, messages: Sequence[Message], folders: Sequence[str], folder: str
) -> Conversation:
    beside = sidecar(path)
    info = meta.get("subagentInfo")
    dated = any(message.timestamp for message in messages)
    return Conversation(
        messages,
        title=conversation.title(meta.get("name")) or conversation.title(beside.get("title")),
        created_at=moment(meta.get("createdAt")) or moment(beside.get("createdAtMs")),
        updated_at=moment(beside.get("updatedAtMs")) or (None if dated else max(map(modified, (path, f"{path}-wal")))),
        model=conversation.model(meta.get("lastUsedModel")),
        cwd=text_at(beside, "cwd") or hashed_to(path, folders) or folder or None,
        mode=text_at(meta, "mode"),
        subagent=isinstance(info, dict) or beside.get("isSubagent") is True,
        parent_id=text_at(info, "parentAgentId") or text_at(info, "rootParentAgentId"),
    )


# The active branch


def active(store: Store, root: Root) -> Iterator[Message]:
    """The messages of the latest root, and before them what summaries took out of it."""
    turns = store.turns(root)
    prompts = [turn.prompt for turn in turns]
    kept = [root]
    while (first := beginning(store, kept[0], prompts)) and (older := before(store, first, prompts)):
        kept.insert(0, older)
    recent = list(conversation.messages(stretches(store, kept)))
    yield from retold(turns[:first], recent)
    if len(kept) == 1 and not any(message.event for message in recent) and (text := store.summary(root)):
        yield Message("system", text, event="compaction")
    yield from recent


def beginning(store: Store, root: Root, prompts: Sequence[str]) -> int:
    """The turn with whose prompt the messages of a root begin; 0 also where they do not fit the turns."""
    own = store.prompts(root)
    if own and not store.is_summed_up(root) and starts(prompts, own):
        return 0
    return next((place for place in range(len(prompts), 0, -1) if starts(prompts[place:], own)), 0)


def starts(prompts: Sequence[str], own: Sequence[str]) -> bool:
    return list(prompts[: len(own)]) == list(own)


def before(store: Store, first: int, prompts: Sequence[str]) -> Root | None:
    """The last root that has the turn before that one, and none that was rewound."""
    for older in store.roots():
        own = store.prompts(older)
        begins = beginning(store, older, prompts) if own else first
        if begins < first and starts(prompts[begins:], own):
            return older
    return None


def stretches(store: Store, roots: Iterable[Root]) -> Iterator[Record]:
    """The messages of the roots one after the other, without those that an earlier one has."""
    seen: set[str] = set()
    for root in roots:
        yield from store.records(id for id in root.messages if id not in seen)
        seen.update(root.messages)


def retold(turns: Iterable[Turn], recent: Iterable[Message]) -> Iterator[Message]:
    """Turns by their own texts, but for the end of the last one, where that stands among the messages that follow."""
    shown = {message.content for message in takewhile(lambda message: message.role != "user", recent)}
    for turn in turns:
        yield Message("user", turn.prompt)
        yield from (step for step in turn.steps if not step.content or step.content not in shown)


# Blobs


def unhexed(value: Any) -> bytes:
    plain = as_bytes(value)
    try:
        return bytes.fromhex(plain.decode("ascii"))
    except ValueError:
        return plain


def record(data: bytes) -> Record | None:
    """The message in a blob: JSON, JSON inside something else, or as the first builds kept a prompt: a text and a UUID."""
    found = decoded(data) if data[:1] == b"{" else None
    if isinstance(found, dict):
        return found
    start = data.find(b'{"')
    if start >= 0 and isinstance(inside := first_value(data[start:].decode("utf-8", "replace")), dict):
        return inside
    if len(wire.text(data, 2)) == UUID_LENGTH and (text := wire.text(data, 1)):
        return {"role": "user", "content": text}
    return None


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


# The working directory


def told_folders(records: Iterable[Record]) -> Iterator[str]:
    """The directories that notes on the user's system name."""
    for one in records:
        for text in conversation.texts(conversation.blocks(one)) if one.get("role") == "user" else ():
            if found := WORKSPACE.search(text):
                yield found[1].strip()


def hashed_to(path: str, folders: Sequence[str]) -> str | None:
    """The directory after which the session's place is named, else the first one told."""
    place = path.replace("\\", "/").split("/")[-3:][0]
    named = (one for one in folders if md5(one.encode("utf-8", "replace"), usedforsecurity=False).hexdigest() == place)
    return next(named, None) or next(iter(folders), None)
