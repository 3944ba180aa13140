"""openclaw-agent.sqlite: its tables, one query for each, by the columns they have.

`session_windows` has a row for every session, `session_nodes` one for every key with the session it leads to now; up to
schema 13 (betas of 2026.7) they were `sessions` and `session_entries`. Schema 1, of 2026.5.30 to 2026.7, holds no
transcripts. `transcript_events` has the events, since schema 23 the longer ones compressed; a session in cold storage has
none. `trajectory_runtime_events` repeats the messages with their usage, `session_transcript_archives` has what was deleted.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any

from amux.errors import UnreadableSession
from amux.readers._json import Record, dict_at, int_at, text_at
from amux.readers._sqlite import columns, reading, rows
from amux.readers.openclaw.events import value_of

ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises: the message of an error may quote bytes that are no text."""
EVENTS, ACTIVE, INDEX = "transcript_events", "session_transcript_active_events", "session_transcript_index_state"
COLD = "session_transcript_cold_archives"
WORDS, WORD_ROWS = "session_transcript_fts_content", "session_transcript_fts_rows"
WINDOWS = ("session_windows", "sessions")
NODES = ("session_nodes", "session_entries")
TABLES = (EVENTS, ACTIVE, INDEX, COLD, WORDS, WORD_ROWS, *WINDOWS, *NODES)
WINDOW = (
    *("session_id", "session_key", "previous_session_id", "created_at", "updated_at", "transcript_updated_at"),
    *("channel", "parent_session_key", "spawned_by", "display_name"),
)
NODE = (
    *("session_key", "current_session_id", "session_id", "updated_at", "parent_session_key", "spawned_by"),
    *("fork_source_session_id", "label", "display_name", "archived_at"),
)
ARCHIVE = ("session_id", "archive_name", "archive_sha256", "event_count")
EVENT = ("seq", "event_json", "event_zstd", "navigation_json")


class Tables:
    """The tables of one agent's database; `damage` is what kept some of it from being read."""

    def __init__(self, agent: str, path: str, opened: ExitStack) -> None:
        self.agent = agent
        self.path = path
        self.opened = opened
        self.damage: Exception | None = None

    @cached_property
    def db(self) -> sqlite3.Connection:
        """Raises UnreadableSession."""
        return self.opened.enter_context(reading(self.path))

    @cached_property
    def columns(self) -> dict[str, frozenset[str]]:
        """Raises UnreadableSession."""
        try:
            return {table: columns(self.db, table) for table in TABLES}
        except ERRORS as error:
            raise UnreadableSession(self.path, str(error)) from error

    def select(self, table: str, wanted: Sequence[str], condition: str = "", *values: Any) -> Iterator[Record]:
        """Rows of a table with those of the columns it has, as far as damage lets them be read."""
        known = ", ".join(quoted(name) for name in wanted if name in self.columns[table])
        if not known:
            return
        try:
            yield from rows(self.db, f"select {known} from {table} {condition}", values)
        except ERRORS as error:
            self.damage = error

    def newest(self, tables: Sequence[str]) -> str:
        """Of tables that each replaced the next, the one that is there."""
        return next((table for table in tables if self.columns[table]), tables[0])

    # Of all sessions

    @cached_property
    def windows(self) -> dict[str, Record]:
        found = self.select(self.newest(WINDOWS), WINDOW)
        return {id: row for row in found if (id := text_at(row, "session_id"))}

    @cached_property
    def nodes(self) -> dict[str, Record]:
        found = self.select(self.newest(NODES), NODE)
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

    # Of one session

    def entry(self, key: str) -> Record:
        """What a key's entry says; it is long, so that only reading a session asks for it."""
        for row in self.select(self.newest(NODES), ("entry_json",), "where session_key = ?", key):
            return dict_at(value_of(row.get("entry_json")))
        return {}

    def event_rows(self, id: str) -> Iterator[Record]:
        return self.select(EVENTS, EVENT, "where session_id = ? order by seq", id)

    def active(self, id: str, last: int) -> list[int] | None:
        """The numbers of the active events; None where the store has not caught up with the last event."""
        state = next(self.select(INDEX, ("indexed_seq", "needs_rebuild"), "where session_id = ?", id), {})
        if state.get("needs_rebuild") != 0 or (int_at(state, "indexed_seq") or 0) < last:
            return None
        found = self.select(ACTIVE, ("event_seq",), "where session_id = ? order by active_position", id)
        return [seq for row in found if (seq := int_at(row, "event_seq")) is not None] or None

    def words(self, id: str) -> dict[str, str]:
        """The texts of prompts and answers by the ids of their events, as the full-text index keeps them."""
        if not self.columns[WORDS] or not self.columns[WORD_ROWS]:
            return {}
        query = f"select r.message_id, w.c0 from {WORD_ROWS} r join {WORDS} w on w.id = r.id where r.session_id = ?"
        try:
            found = self.db.execute(query, (id,)).fetchall()
        except ERRORS:
            return {}
        return {event: text for event, text in found if isinstance(event, str) and isinstance(text, str)}

    def archive_blob(self, id: str) -> bytes | None:
        row = next(self.select(COLD, ("archive_blob",), "where session_id = ?", id), {})
        blob = row.get("archive_blob")
        return blob if isinstance(blob, bytes) else None

    def all_columns(self, tables: Sequence[str], column: str, value: str) -> Record:
        """A row as it is stored, without the values that are no text and no number."""
        table = self.newest(tables)
        row = next(self.select(table, sorted(self.columns[table]), f"where {column} = ?", value), {})
        return {name: value for name, value in row.items() if not isinstance(value, bytes)}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
