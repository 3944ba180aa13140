"""openclaw-agent.sqlite: its tables, one query for each, by the columns they have.

`session_windows` has a row for every session, `session_nodes` one for every key with the session it leads to now; up to
schema 13 (betas of 2026.7) they were `sessions` and `session_entries`. Schema 1, of 2026.5.30 to 2026.7, holds no
transcripts. `transcript_events` has the events, since schema 23 the longer ones compressed; a session in cold storage has
none. `trajectory_runtime_events` repeats the messages with their usage, `session_transcript_archives` has what was deleted.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property

from amux.readers._json import Record, dict_at, int_at, text_at
from amux.readers._sqlite import Salvaged, reading
from amux.readers.openclaw.events import value_of

EVENTS, ACTIVE, INDEX = "transcript_events", "session_transcript_active_events", "session_transcript_index_state"
COLD = "session_transcript_cold_archives"
WORDS, WORD_ROWS = "session_transcript_fts_content", "session_transcript_fts_rows"
WINDOWS = ("session_windows", "sessions")
NODES = ("session_nodes", "session_entries")
KEYS = {
    **dict.fromkeys((EVENTS, ACTIVE, INDEX, COLD, WORD_ROWS, *WINDOWS), "session_id"),
    **dict.fromkeys(NODES, "session_key"),
    WORDS: "id",
}
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
    """The tables of one agent's database, opened when they are first asked."""

    def __init__(self, agent: str, path: str, opened: ExitStack) -> None:
        self.agent = agent
        self.path = path
        self.opened = opened

    @cached_property
    def stored(self) -> Salvaged:
        """Raises UnreadableSession."""
        return Salvaged(self.path, self.opened.enter_context(reading(self.path)), KEYS)

    def newest(self, tables: Sequence[str]) -> str:
        """Of tables that each replaced the next, the one that is there."""
        return next((table for table in tables if self.stored.columns[table]), tables[0])

    # Of all sessions

    @cached_property
    def windows(self) -> dict[str, Record]:
        found = self.stored.select(self.newest(WINDOWS), WINDOW)
        return {id: row for row in found if (id := text_at(row, "session_id"))}

    @cached_property
    def nodes(self) -> dict[str, Record]:
        found = self.stored.select(self.newest(NODES), NODE)
        return {key: row for row in found if (key := text_at(row, "session_key"))}

    @cached_property
    def cold(self) -> dict[str, Record]:
        return {id: row for row in self.stored.select(COLD, ARCHIVE) if (id := text_at(row, "session_id"))}

    @cached_property
    def held(self) -> dict[str, tuple[int, int]]:
        """For each session how many events it has, and the number of the last one: all in an index."""
        if not self.stored.columns[EVENTS] >= {"session_id", "seq"}:
            return {}
        found = self.stored.rows(f"select session_id, count(*) count, max(seq) last from {EVENTS} group by session_id")
        return {id: (row["count"], row["last"]) for row in found if (id := text_at(row, "session_id"))}

    # Of one session

    def entry(self, key: str) -> Record:
        """What a key's entry says; it is long, so that only reading a session asks for it."""
        row = self.stored.first(self.newest(NODES), ("entry_json",), "where session_key = ?", key)
        return dict_at(value_of(row.get("entry_json")))

    def event_rows(self, id: str) -> list[Record]:
        return self.stored.select(EVENTS, EVENT, "where session_id = ? order by seq", id)

    def active(self, id: str, last: int) -> list[int] | None:
        """The numbers of the active events; None where the store has not caught up with the last event."""
        state = self.stored.first(INDEX, ("indexed_seq", "needs_rebuild"), "where session_id = ?", id)
        if state.get("needs_rebuild") != 0 or (int_at(state, "indexed_seq") or 0) < last:
            return None
        found = self.stored.select(ACTIVE, ("event_seq",), "where session_id = ? order by active_position", id)
        return [seq for row in found if (seq := int_at(row, "event_seq")) is not None] or None

    def words(self, id: str) -> dict[str, str]:
        """The texts of prompts and answers by the ids of their events, as the full-text index keeps them."""
        known = self.stored.columns
        if not (known[WORDS] >= {"id", "c0"} and known[WORD_ROWS] >= {"id", "session_id", "message_id"}):
            return {}
        query = f"select r.message_id, w.c0 from {WORD_ROWS} r join {WORDS} w on w.id = r.id where r.session_id = ?"
        found = ((text_at(row, "message_id"), text_at(row, "c0")) for row in self.stored.rows(query, id))
        return {event: text for event, text in found if event and text}

    def archive_blob(self, id: str) -> bytes | None:
        blob = self.stored.first(COLD, ("archive_blob",), "where session_id = ?", id).get("archive_blob")
        return blob if isinstance(blob, bytes) else None

    def all_columns(self, tables: Sequence[str], column: str, value: str) -> Record:
        """A row as it is stored, without the values that are no text and no number."""
        table = self.newest(tables)
        row = self.stored.first(table, sorted(self.stored.columns[table]), f"where {column} = ?", value)
        return {name: value for name, value in row.items() if not isinstance(value, bytes)}
