"""OpenCode's JSON files, up to 1.1: one file for each session, each message and, by 0.5, each part.

Up to 0.5 they lie in `project/<slug>/storage/session/{info,message,part}`, later in `storage/{session,message,part}`; the
update copied them and left the old ones. The first versions wrote parts inside their message, with everything but role
and parts under `metadata`; a later one took `metadata` apart and kept the parts inside for a while. Ids sort by time.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from amux.errors import UnreadableSession
from amux.model import Json
from amux.readers._base import SessionRef, entries, stamp
from amux.readers._json import Record, at, dict_at, document, list_at, text_at, time_at
from amux.readers.opencode.charges import spent
from amux.readers.opencode.records import Entry, Stored


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session lies: its own file, the directory of its messages, and the one that has a directory of parts for each."""

    id: str
    path: str
    messages: str
    parts: str


def places(root: str) -> Iterator[Place]:
    """Every session file below the root, those of later versions first."""
    storage = f"{root}/storage"
    for project in entries(f"{storage}/session"):
        for id in stems(project.path):
            yield Place(id, f"{project.path}/{id}.json", f"{storage}/message/{id}", f"{storage}/part")
    for project in entries(f"{root}/project"):
        old = f"{project.path}/storage/session"
        for id in stems(f"{old}/info"):
            yield Place(id, f"{old}/info/{id}.json", f"{old}/message/{id}", f"{old}/part/{id}")


def stems(directory: str) -> Iterator[str]:
    """The names of the JSON files in a directory, without their ending; files being written have another one."""
    for entry in entries(directory):
        stem, extension = os.path.splitext(entry.name)
        if extension == ".json" and stem:
            yield stem


def ref(place: Place) -> SessionRef | None:
    """None for a session without messages, and for what is no regular file."""
    ids = list(stems(place.messages))
    held = [f"{place.messages}/{id}.json" for id in ids]
    held += [f"{place.parts}/{id}/{part}.json" for id in ids for part in stems(f"{place.parts}/{id}")]
    own = stamp(place.path)
    if not own or not ids:
        return None
    digest, size = blake2b(f"{place.path} {own[0]}".encode("utf-8", "replace"), digest_size=16), own[1]
    for path in held:
        found = stamp(path)
        digest.update(f"\n{path} {found}".encode("utf-8", "replace"))
        size += found[1] if found else 0
    return SessionRef(place.id, place.path, digest.hexdigest(), size, (place.messages, place.parts))


def read(ref: SessionRef) -> Stored:
    messages, parts = ref.files
    info = document(ref.path)
    found = [entry(id, record, parts) for id, record in objects(messages)]
    return Stored(ref.key, ref.path, info if isinstance(info, dict) else {}, found)


def parent(ref: SessionRef, stored: Stored) -> str | None:
    """The session of the same project that a fork was made from, as in a database; None where a copied charge tells it."""
    copied = [entry for entry in stored.entries if stored.copied(entry)]
    if not copied or any(spent(record) for entry in copied for record in (entry.info, *entry.parts)):
        return None
    newest = max(entry.created for entry in copied if entry.created)
    messages = os.path.dirname(ref.files[0])
    for begun, id in sorted(begun_siblings(ref), reverse=True):
        if begun <= newest and said(copied) <= said(Entry(*one) for one in objects(f"{messages}/{id}")):
            return id
    return None


def begun_siblings(ref: SessionRef) -> Iterator[tuple[datetime, str]]:
    """The other sessions of a project, and when they began."""
    for id, info in objects(os.path.dirname(ref.path)):
        if id != ref.key and (begun := time_at(info, "time", "created")):
            yield begun, id


def said(found: Iterable[Entry]) -> set[tuple[str | None, datetime | None]]:
    """What a copy of a message keeps besides its text."""
    return {(entry.role, entry.created) for entry in found}


def raw(ref: SessionRef) -> Json:
    messages, parts = ref.files
    return {
        "session": document(ref.path),
        "messages": [record for _, record in objects(messages)],
        "parts": [part for id in stems(messages) for _, part in objects(f"{parts}/{id}")],
    }


def objects(directory: str) -> Iterator[tuple[str, Record]]:
    """The records of a directory by id; one that cannot be read or is half written costs only itself."""
    for id in stems(directory):
        path = f"{directory}/{id}.json"
        try:
            record = document(path) if stamp(path) else None
        except UnreadableSession:
            continue
        if isinstance(record, dict):
            yield id, record


def entry(id: str, record: Record, parts: str) -> Entry:
    inline = [part for part in list_at(record, "parts") if isinstance(part, dict)]
    apart = [{"id": part_id, **part} for part_id, part in objects(f"{parts}/{id}")]
    if isinstance(record.get("metadata"), dict) and "time" not in record:
        return Entry(id, unfolded(record), [inline_part(part, record) for part in inline])
    return Entry(id, record, [*inline, *apart])


# Messages with their parts inside


def unfolded(record: Record) -> Record:
    """The first versions' message in the later shape. Their count of reasoning, and mostly of the cache, is a fixed zero."""
    metadata = dict_at(record, "metadata")
    answer = dict_at(metadata, "assistant")
    if tokens := dict_at(answer, "tokens"):
        answer = {**answer, "tokens": {name: value for name, value in tokens.items() if told(value)}}
    return {
        **answer,
        "role": record.get("role"),
        "time": metadata.get("time"),
        "error": metadata.get("error"),
    }


def told(count: Any) -> bool:
    return any(count.values()) if isinstance(count, dict) else bool(count)


def inline_part(part: Record, record: Record) -> Record:
    call = part.get("toolInvocation")
    if part.get("type") != "tool-invocation" or not isinstance(call, dict):
        return part
    id = text_at(call, "toolCallId") or ""
    noted = at(record, "metadata", "tool", id)
    failed = at(noted, "error") is True
    ended = "error" if failed else "completed"
    return {
        "type": "tool",
        "tool": call.get("toolName"),
        "callID": id,
        "state": {
            "status": ended if call.get("state") == "result" else "pending",
            "input": call.get("args"),
            "output": call.get("result"),
            "error": call.get("result") if failed else None,
            "time": at(noted, "time"),
        },
    }
