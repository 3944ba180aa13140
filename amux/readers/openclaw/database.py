"""openclaw-agent.sqlite, one for each agent since 2026.8.

`session_windows` has a row for every session, `session_nodes` one for every key with the session it leads to now; up to
schema 13 (betas of 2026.7) they were `sessions` and `session_entries`. Schema 1, of 2026.5.30 to 2026.7, holds no
transcripts. `transcript_events` has the events, since schema 23 the longer ones compressed. A session in cold storage has
no events here: they are in a compressed file, or in a blob, as lines that each hold a row of one of the tables.
`trajectory_runtime_events` repeats the messages with their usage, `session_transcript_archives` holds what was deleted.

Without a decoder the text of compressed prompts and answers is still in the full-text index of the active branch.
"""

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from hashlib import blake2b
from typing import Any

from amux.errors import UnreadableSession
from amux.model import Json, Session
from amux.readers._base import SessionRef, entries, stamp
from amux.readers._json import Record, decoded, dict_at, int_at, list_at, text_at
from amux.readers._sqlite import columns, database_stamp, reading, rows
from amux.readers.openclaw import about, keys, packed, transcript
from amux.readers.openclaw.about import About
from amux.readers.openclaw.store import Kin
from amux.readers.openclaw.transcript import LOST, Log

ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises: the message of an error may quote bytes that are no text."""
EVENTS, ACTIVE, INDEX = "transcript_events", "session_transcript_active_events", "session_transcript_index_state"
COLD = "session_transcript_cold_archives"
FOUND, FOUND_ROWS = "session_transcript_fts_content", "session_transcript_fts_rows"
WINDOWS = ("session_windows", "sessions")
NODES = ("session_nodes", "session_entries")
TABLES = (EVENTS, ACTIVE, INDEX, COLD, FOUND, FOUND_ROWS, *WINDOWS, *NODES)
WINDOW = (
    *("session_id", "session_key", "previous_session_id", "created_at", "updated_at", "transcript_updated_at"),
    *("channel", "parent_session_key", "spawned_by", "display_name"),
)
NODE = (
    *("session_key", "current_session_id", "session_id", "updated_at", "parent_session_key", "spawned_by"),
    *("fork_source_session_id", "label", "display_name", "archived_at"),
)
ARCHIVE = ("session_id", "archive_name", "archive_sha256", "event_count")
ARCHIVE_NAME = re.compile(r"[0-9a-f]{64}\.jsonl\.zst")
EVENT_BYTES = 1024
"""About what reading an event takes."""


class Database:
    """One agent's database; `damage` is what kept some of it from being read."""

    def __init__(self, agent: str, path: str, opened: ExitStack) -> None:
        self.agent = agent
        self.path = path
        self.opened = opened
        self.damage: Exception | None = None

    def state(self) -> str:
        archives = " ".join(entry.name for entry in entries(self.cold_directory))
        return f"{self.path} {database_stamp(self.path)} {archives}"

    @property
    def cold_directory(self) -> str:
        above, folder = os.path.split(os.path.dirname(self.path))
        return os.path.join(above, "sessions" if folder == "agent" else folder, "cold")

    # Tables, one query for each

    @cached_property
    def db(self) -> sqlite3.Connection:
        return self.opened.enter_context(reading(self.path))

    @cached_property
    def columns(self) -> dict[str, frozenset[str]]:
        try:
            return {table: columns(self.db, table) for table in TABLES}
        except ERRORS as error:
            raise UnreadableSession(self.path, str(error)) from error

    def select(self, table: str, wanted: Sequence[str], condition: str = "", *values: Any) -> Iterator[Record]:
        """Rows of a table with those of the columns it has, as far as damage lets them be read."""
        known = ", ".join(name for name in wanted if name in self.columns[table])
        if not known:
            return
        try:
            yield from rows(self.db, f"select {known} from {table} {condition}", values)
        except ERRORS as error:
            self.damage = error

    def present(self, tables: Sequence[str]) -> str:
        """The newest of several tables of the same meaning."""
        return next((table for table in tables if self.columns[table]), tables[0])

    @cached_property
    def windows(self) -> dict[str, Record]:
        found = self.select(self.present(WINDOWS), WINDOW)
        return {id: row for row in found if (id := text_at(row, "session_id"))}

    @cached_property
    def nodes(self) -> dict[str, Record]:
        found = self.select(self.present(NODES), NODE)
        return {key: row for row in found if (key := text_at(row, "session_key"))}

    @cached_property
    def cold(self) -> dict[str, Record]:
        return {id: row for row in self.select(COLD, ARCHIVE) if (id := text_at(row, "session_id"))}

    @cached_property
    def held(self) -> dict[str, tuple[int, int]]:
        """For each session how many events it has, and the number of the last one: all in an index."""
        if not self.columns[EVENTS] >= {"session_id", "seq"}:
            return {}
        try:
            found = self.db.execute(f"select session_id, count(*), max(seq) from {EVENTS} group by session_id")
            return {id: (count, last) for id, count, last in found if isinstance(id, str) and id}
        except ERRORS as error:
            self.damage = error
            return {}

    # What sessions are to each other

    @cached_property
    def generations(self) -> dict[str, list[tuple[int, str]]]:
        """The sessions each key has had, with the time each began, oldest first."""
        found: dict[str, list[tuple[int, str]]] = {}
        for id, row in self.windows.items():
            found.setdefault(text_at(row, "session_key") or "", []).append((int_at(row, "created_at") or 0, id))
        return {key: sorted(had) for key, had in found.items()}

    def session_of(self, key: str, when: int | None) -> str | None:
        had = self.generations.get(key, [])
        begun = [id for began, id in had if when is not None and began <= when]
        return begun[-1] if begun else current(self.nodes.get(key, {})) or (had[0][1] if had else None)

    def key_of(self, session_id: str) -> str | None:
        return next((key for key, node in self.nodes.items() if current(node) == session_id), None)

    def parent(self, window: Record, node: Record, entry: Record, kin: Kin) -> tuple[bool, str | None]:
        """Whether a session is a sub-agent's, and the session that started it."""
        key = text_at(window, "session_key") or ""
        spawned = text_at(window, "spawned_by") or text_at(node, "spawned_by") or text_at(entry, "spawnedBy")
        if not spawned and not keys.is_subagent(key):
            return False, None
        above = spawned or text_at(window, "parent_session_key") or text_at(node, "parent_session_key")
        id = kin(above, int_at(window, "created_at")) if above else None
        return True, id if id != text_at(window, "session_id") else None

    def about(self, id: str, kin: Kin) -> About:
        window = self.windows.get(id, {})
        key = text_at(window, "session_key")
        node = self.nodes.get(key or "", {})
        # The name and what else a key's entry tells belong to the session the key leads to now.
        own = current(node) == id
        entry = self.entry(key) if own and key else {}
        named = text_at(node, "label") or text_at(node, "display_name") or about.title(entry) if own else None
        subagent, parent = self.parent(window, node, entry, kin)
        earlier = (
            text_at(window, "previous_session_id")
            or text_at(node, "fork_source_session_id")
            or text_at(entry, "forkSource", "sessionId")
        )
        return About(
            key=key,
            title=named or text_at(window, "display_name"),
            channel=text_at(window, "channel") or about.channel(entry, key),
            archived=node.get("archived_at") is not None or "archivedAt" in entry,
            subagent=subagent,
            parent_id=parent,
            earlier=earlier if earlier != id else None,
        )

    def entry(self, key: str) -> Record:
        """What a key's entry says; it is long, so that only reading a session asks for it."""
        for row in self.select(self.present(NODES), ("entry_json",), "where session_key = ?", key):
            return dict_at(value_of(row.get("entry_json")))
        return {}

    # Refs

    def refs(self, kin: Kin) -> Iterator[SessionRef]:
        """Every session that has events."""
        for id in dict.fromkeys((*self.held, *self.cold)):
            window = self.windows.get(id, {})
            node = self.nodes.get(text_at(window, "session_key") or "", {})
            archive = self.cold.get(id)
            kept = stamp(os.path.join(self.cold_directory, text_at(archive, "archive_name") or "")) if archive else None
            told = (window, node, self.held.get(id), self.parent(window, node, {}, kin), archive, kept)
            seen = repr((self.path, told, database_stamp(self.path) if self.damage else None))
            fingerprint = blake2b(seen.encode("utf-8", "replace"), digest_size=16).hexdigest()
            size = EVENT_BYTES * (self.held[id][0] if id in self.held else int_at(archive, "event_count") or 0)
            yield SessionRef(f"{self.agent}/{id}", self.path, fingerprint, size, (id,))
        if self.damage:
            raise UnreadableSession(self.path, str(self.damage))

    # Reading

    def read(self, agent: str, ref: SessionRef, kin: Kin) -> Sequence[Session]:
        id = self.id_of(ref)
        told = self.about(id, kin)
        events, numbers = self.events(id)
        window = self.windows.get(id, {})
        header = next((event for _, event in events if event.get("type") == "session"), None)
        own = [(seq, event) for seq, event in events if event.get("type") != "session"]
        log = Log(
            header or {"id": id, "timestamp": window.get("created_at")}, [event for _, event in own], told.earlier
        )
        places = {seq: place for place, (seq, _) in enumerate(own)}
        active = None if numbers is None else [places[seq] for seq in numbers if seq in places]
        return transcript.sessions(agent, id, self.path, log, told, active)

    def id_of(self, ref: SessionRef) -> str:
        if not ref.files:
            raise UnreadableSession(self.path, str(self.damage or "it cannot be read"))
        return ref.files[0]

    def events(self, id: str) -> tuple[list[tuple[int, Record]], list[int] | None]:
        """The events of a session with their numbers, and the numbers of the active ones where the store knows them.

        Raises UnreadableSession where damage lets none be read.
        """
        self.damage = None
        if id not in self.held and id in self.cold:
            return self.thawed(id)
        found = list(self.stored_events(id))
        if not found and self.damage:
            raise UnreadableSession(self.path, str(self.damage)) from self.damage
        return found, self.active(id, found[-1][0]) if found else None

    def stored_events(self, id: str) -> Iterator[tuple[int, Record]]:
        wanted = ("seq", "event_json", "event_zstd", "navigation_json")
        for row in self.select(EVENTS, wanted, "where session_id = ? order by seq", id):
            event = event_of(row)
            if event is None and (stub := stub_of(row)):
                event = self.restored(id, stub)
            if event is not None:
                yield int_at(row, "seq") or 0, event

    def active(self, id: str, last: int) -> list[int] | None:
        """The numbers of the active events; None where the store has not caught up with the last event."""
        state = next(self.select(INDEX, ("indexed_seq", "needs_rebuild"), "where session_id = ?", id), {})
        if state.get("needs_rebuild") != 0 or (int_at(state, "indexed_seq") or 0) < last:
            return None
        found = self.select(ACTIVE, ("event_seq",), "where session_id = ? order by active_position", id)
        return [seq for row in found if (seq := int_at(row, "event_seq")) is not None] or None

    def restored(self, id: str, stub: Record) -> Record:
        """A stub with the text that the full-text index has of it."""
        text = self.indexed(id).get(text_at(stub, "id") or "")
        message = dict_at(stub, "message")
        if not text or message.get("role") not in ("user", "assistant"):
            return stub
        blocks = [{"type": "text", "text": text}, *list_at(message, "content")]
        return {**stub, "message": {**message, "content": blocks}}

    def indexed(self, id: str) -> dict[str, str]:
        """The texts of a session's messages by their ids, as the full-text index keeps them."""
        if not self.columns[FOUND] or not self.columns[FOUND_ROWS]:
            return {}
        query = f"select r.message_id, c.c0 from {FOUND_ROWS} r join {FOUND} c on c.id = r.id where r.session_id = ?"
        try:
            return {id: text for id, text in self.db.execute(query, (id,)) if isinstance(text, str)}
        except ERRORS:
            return {}

    # Cold storage

    def thawed(self, id: str) -> tuple[list[tuple[int, Record]], list[int] | None]:
        events: list[tuple[int, Record]] = []
        active: list[int] = []
        for line in self.archive(id).split(b"\n"):
            record = decoded(line)
            row = dict_at(record, "row")
            if text_at(record, "kind") == "event" and isinstance(event := value_of(row.get("event_json")), dict):
                events.append((int_at(row, "seq") or 0, event))
            elif text_at(record, "kind") == "active" and (seq := int_at(row, "event_seq")) is not None:
                active.append(seq)
        return events, active or None

    def archive(self, id: str) -> bytes:
        """The lines of a session in cold storage. Raises UnreadableSession."""
        name = text_at(self.cold[id], "archive_name") or ""
        blob = next(self.select(COLD, ("archive_blob",), "where session_id = ?", id), {}).get("archive_blob")
        path = os.path.join(self.cold_directory, name)
        if not isinstance(blob, bytes):
            blob = contents(path) if ARCHIVE_NAME.fullmatch(name) and stamp(path) else None
        if blob is None:
            raise UnreadableSession(path, "the archive of the session is gone")
        if (found := packed.unpacked(blob, packed.LARGEST_ARCHIVE)) is None:
            raise UnreadableSession(path, "it is damaged" if packed.decoder() else packed.MISSING)
        return found

    def raw(self, ref: SessionRef) -> Json:
        id = self.id_of(ref)
        window = self.windows.get(id, {})
        key = text_at(window, "session_key") or ""
        events, _ = self.events(id)
        return {
            "window": window,
            "node": {**self.nodes.get(key, {}), "entry": self.entry(key)},
            "events": [{name: value for name, value in event.items() if name != LOST} for _, event in events],
        }


def current(node: Record) -> str | None:
    """The session a key leads to."""
    return text_at(node, "current_session_id") or text_at(node, "session_id")


def value_of(column: Any) -> Json:
    return decoded(column) if isinstance(column, str | bytes) else None


def event_of(row: Record) -> Record | None:
    """The event of a row; None where it is damaged, or compressed and there is no decoder."""
    compressed = row.get("event_zstd")
    found = value_of(packed.unpacked(compressed) if isinstance(compressed, bytes) else row.get("event_json"))
    return found if isinstance(found, dict) else None


def stub_of(row: Record) -> Record | None:
    """What is known of an event without its body: its place in the tree, who spoke, which tools were called."""
    navigation = value_of(row.get("navigation_json"))
    found = dict_at(navigation, "model") or dict_at(navigation, "navigation")
    return {**found, LOST: True} if found else None


def contents(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(packed.LARGEST_ARCHIVE)
    except OSError as error:
        raise UnreadableSession(path, error.strerror or str(error)) from error
