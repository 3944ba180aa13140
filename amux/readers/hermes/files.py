"""What lies in files: sessions of before the database had them all, and the memory.

Up to 0.14 every session was also written to `sessions/session_<id>.json`, one object with its messages in the shape of the
chat API, and the messaging gateway kept `sessions/<id>.jsonl`, a `session_meta` line and then messages. They tell no usage,
go stale when a newer version resumes the session, and count only where the database does not know the id. Beside them lie
`sessions.json` (routing) and `request_dump_*.json` (failed requests). The memory is `memories/*.md`, entries between lines
of a single `§`.
"""

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from amux.errors import UnreadableSession
from amux.model import Json, Message, Session
from amux.readers import _base
from amux.readers._base import SessionRef, entries, file_ref
from amux.readers._json import Record, decoded, dict_at, document, list_at, records, text_at, text_of, when
from amux.readers.hermes.database import CWD
from amux.readers.hermes.transcript import lines, messages

SNAPSHOT = re.compile(r"session_(.+)\.json")
TRANSCRIPT = re.compile(r"(.+)\.jsonl")
MESSAGES = re.compile(r'(?<!\\)"messages":\s*\[')
FIELD = re.compile(r'(?<!\\)"(session_id|model|platform|session_start|last_updated|cwd)":\s*"([^"\\]*)"')
NEXT = re.compile(r"[\s,]*(?=\{)")
SEPARATOR = re.compile(r"^[ \t]*§[ \t]*$", re.MULTILINE)


def memory_refs(home: str, prefix: str) -> Iterator[SessionRef]:
    for entry in entries(os.path.join(home, "memories")):
        if entry.name.endswith(".md") and (ref := file_ref(f"{prefix}memory/{entry.name}", entry.path)):
            profile = prefix.removeprefix("profiles/")
            yield ref._replace(files=(f"memory/{profile}{entry.name}",))


def legacy_refs(home: str, prefix: str, known: Collection[str]) -> Iterator[SessionRef]:
    """The sessions in files whose ids are not known to the database."""
    taken = {file_name(id) for id in known} | set(known)
    found = [entry for entry in entries(os.path.join(home, "sessions")) if entry.name != "sessions.json"]
    for pattern in (SNAPSHOT, TRANSCRIPT):
        for entry in found:
            name = pattern.fullmatch(entry.name)
            if not name or name[1] in taken:
                continue
            if ref := file_ref(prefix + name[1], entry.path):
                taken.add(name[1])
                yield ref._replace(files=(name[1],))


def file_name(id: str) -> str:
    """A session's id as its file is named: ids come from outside too, and must not name a path."""
    safe = re.sub(r"[^\w-]", "_", id.strip()).strip("._")[:96] or "session"
    if safe == id.strip():
        return safe
    return f"{safe}_{hashlib.sha256(id.strip().encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def read_memory(agent: str, ref: SessionRef) -> Sequence[Session]:
    """Raises UnreadableSession."""
    said = (entry.strip() for entry in SEPARATOR.split(text_of(ref.path)))
    found = [Message("system", entry, event="memory") for entry in said if entry]
    name = os.path.basename(ref.path)
    return [_base.session(agent, ref.files[0], found, path=ref.path, title=name, kind="memory", usage_recorded=False)]


def read_legacy(agent: str, ref: SessionRef) -> Sequence[Session]:
    """Raises UnreadableSession."""
    stored = raw_legacy(ref)
    told, said = parted(stored if stored is not None else before_damage(text_of(ref.path)))
    found = messages(lines(said))
    if not found and stored is None and ref.size:
        raise UnreadableSession(ref.path, "it is no JSON")
    if not found:
        return []
    prompt = CWD.search(text_at(told, "system_prompt") or "")
    started = local_time(told.get("session_start"))
    return [
        _base.session(
            agent,
            own_id(told, ref.files[0]),
            found,
            path=ref.path,
            created_at=started,
            updated_at=local_time(told.get("last_updated")),
            model=text_at(told, "model"),
            cwd=text_at(told, "cwd") or text_at(told, "model_config", "cwd") or (prompt[1].strip() if prompt else None),
            channel=text_at(told, "platform"),
            began=started,
            usage_recorded=False,
        )
    ]


def own_id(told: Record, named: str) -> str:
    """The id that a file's name stands for: the one it holds, if that would be named so."""
    id = text_at(told, "session_id")
    return id if id and file_name(id) == named else named


def raw_legacy(ref: SessionRef) -> Json:
    return list(records(ref.path)) if ref.path.endswith(".jsonl") else document(ref.path)


def before_damage(text: str) -> Record:
    """What stands in a torn file up to the damage: the fields that tell of the session come before its messages."""
    begin = MESSAGES.search(text)
    told: Record = dict(FIELD.findall(text, 0, begin.start() if begin else len(text)))
    told["messages"] = list(whole_values(text, begin.end())) if begin else []
    return told


def whole_values(text: str, place: int) -> Iterator[Any]:
    decoder = json.JSONDecoder(strict=False)
    while begin := NEXT.match(text, place):
        try:
            _, place = decoder.raw_decode(text, begin.end())
        except (ValueError, RecursionError):
            return
        yield decoded(text[begin.end() : place])


def parted(found: Json) -> tuple[Record, list[Record]]:
    """What a file says of the session, and its messages as records of the database."""
    said = [one for one in list_at(found) or list_at(found, "messages") if isinstance(one, dict)]
    told = dict_at(found) or next((one for one in said if one.get("role") == "session_meta"), {})
    return told, list(map(record, said))


def record(message: Record) -> Record:
    time = local_time(message.get("timestamp"))
    return {**message, "timestamp": time.timestamp() if time else None}


def local_time(found: Any) -> datetime | None:
    """A time; one without a zone is of the clock on the wall."""
    try:
        parsed = datetime.fromisoformat(found) if isinstance(found, str) else None
        return when(parsed.astimezone(UTC).isoformat()) if parsed else when(found)
    except (ValueError, OverflowError, OSError):
        return None
