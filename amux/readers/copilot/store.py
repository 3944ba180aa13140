"""session-store.db, the program's index of its sessions: since 1.0.71 it has a row for every call of a model.

It lies beside session-state, in WAL mode, after a kill with everything still in the -wal. Compaction calls are rows
like others. Rows outlive a session that was deleted, and a fork has rows only for what it did itself.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack

from amux.errors import UnreadableSession
from amux.readers._base import stamp
from amux.readers._json import Record
from amux.readers._sqlite import columns, reading, rows

TABLE = "assistant_usage_events"
COUNTS = f"select session_id, count(*) n, max(rowid) last from {TABLE} group by session_id"
CALLS = f"select rowid number, * from {TABLE} where session_id = ? order by rowid"


class Stores:
    """The indexes of every place sessions were found in, each opened once and only when asked."""

    def __init__(self, opened: ExitStack) -> None:
        self.opened = opened
        self.databases: dict[str, sqlite3.Connection | None] = {}

    def versions(self, path: str) -> dict[str, str]:
        """What tells one state of a session's rows from the next, for every session that has any."""
        return {str(row["session_id"]): f"{row['n']}:{row['last']}" for row in self.select(path, COUNTS)}

    def calls(self, path: str, session_id: str) -> list[Record]:
        return list(self.select(path, CALLS, session_id))

    def select(self, path: str, query: str, *values: str) -> Iterator[Record]:
        """The rows of a query; none where there is no index, an older one, or one that is damaged."""
        try:
            if db := self.database(path):
                yield from rows(db, query, values)
        except sqlite3.Error:
            return

    def database(self, path: str) -> sqlite3.Connection | None:
        if path not in self.databases:
            self.databases[path] = self.open(path)
        return self.databases[path]

    def open(self, path: str) -> sqlite3.Connection | None:
        if not stamp(path):
            return None
        try:
            db = self.opened.enter_context(reading(path))
        except UnreadableSession:
            return None
        return db if {"session_id", "created_at"} <= columns(db, TABLE) else None
