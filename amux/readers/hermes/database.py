"""state.db: its tables, one query for each, by the columns they have."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from amux.errors import UnreadableSession
from amux.model import Json
from amux.readers._json import Record, text_at
from amux.readers._sqlite import columns, rows
from amux.readers.hermes import usage

ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises: the message of an error may quote bytes that are no text."""
PAID = ("estimated_cost_usd", "actual_cost_usd", "cost_status")
SESSION = (
    *("id", "source", "model", "model_config", "parent_session_id", "started_at", "ended_at", "end_reason", "title"),
    *("cwd", "git_branch", "message_count", "rewind_count", "archived", "hidden", "last_activity_at"),
    *("system_prompt_hash", "billing_provider", *usage.COUNTERS, *PAID),
)
MESSAGE = (
    *("id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "finish_reason"),
    *("reasoning", "reasoning_content", "observed", "active", "compacted", "_compressed_summary", "display_kind"),
)
USAGE = ("session_id", *usage.ROUTE, *usage.COUNTERS, *PAID, "last_seen")
CWD = re.compile(r"^Current working directory: (.+)$", re.MULTILINE)
"""In the system prompt, which up to 0.15 alone tells the directory."""
WHOLE = 16 * 2**20
LAST = 2**63 - 1
MISSES = 1000
"""More rows than a page holds: so many cannot be read one after the other only where nothing follows."""
TABLES = ("sessions", "messages", "session_model_usage", "system_prompts")


class Database:
    """One database; `damage` is what kept some of it from being read."""

    def __init__(self, path: str, db: sqlite3.Connection) -> None:
        self.path = path
        self.db = db
        self.damage: Exception | None = None
        self.columns = {table: columns(db, table) for table in TABLES}

    def select(self, table: str, wanted: Sequence[str], condition: str = "", *values: Any) -> Iterator[Record]:
        """Rows of a table with those of the columns it has, as far as damage lets them be read."""
        known = self.known(table, wanted)
        try:
            yield from rows(self.db, f"select {known} from {table} {condition}", values) if known else ()
        except ERRORS as error:
            self.damage = error

    def scan(self, table: str, wanted: Sequence[str], condition: str = "", *values: Any) -> list[Record]:
        """Every row of a table in the order they were written, by no index; a damaged page costs the rows on it alone."""
        known = self.known(table, wanted)
        query = f"select rowid row_number, {known} from {table} not indexed where rowid >= ? {condition} order by rowid"
        found: dict[int, Record] = {}
        start, misses = 0, 0
        while known and misses < MISSES and start <= LAST:
            try:
                for row in rows(self.db, query, (start, *values)):
                    number = row.pop("row_number")
                    start, misses = max(start, number + 1), 0
                    # A page can stand in the place of another: of two rows with one number, that which it leads to counts.
                    again = self.select(table, wanted, "where rowid = ?", number) if number in found else iter(())
                    found[number] = next(again, row)
            except ERRORS as error:
                self.damage = error
            else:
                break
            # sqlite3 looks one row ahead: the last one before the damage comes only when it is asked for alone.
            for row in self.select(table, wanted, f"where rowid = ? {condition}", start, *values):
                found.setdefault(start, row)
            start, misses = start + 1, 0 if start in found else misses + 1
        return [found[number] for number in sorted(found)]

    def known(self, table: str, wanted: Sequence[str]) -> str:
        return ", ".join(quoted(name) for name in wanted if name in self.columns[table])

    @cached_property
    def sessions(self) -> dict[str, Record]:
        found = {id: row for row in self.scan("sessions", SESSION) if (id := text_at(row, "id"))}
        for id in self.held:
            found.setdefault(id, {"id": id})  # messages whose session could not be written
        return found

    @cached_property
    def held(self) -> dict[str, tuple[Any, ...]]:
        """How many messages each session has and the number of the last one, from an index alone.

        Undoing changes neither, but it is counted in the session's row.
        """
        if not self.columns["messages"] >= {"id", "session_id"}:
            return {}
        try:
            found = self.db.execute("select session_id, count(*), max(id) from messages group by session_id")
            return {id: tuple(counts) for id, *counts in found if isinstance(id, str) and id}
        except ERRORS as error:
            self.damage = error
            return {}

    @cached_property
    def used(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        for row in self.scan("session_model_usage", USAGE):
            found.setdefault(str(row.get("session_id")), []).append(row)
        return found

    @cached_property
    def whole(self) -> dict[Any, list[Record]] | None:
        """All messages by session, of a database that is quickly read whole: no damaged index can then hide any."""
        pages, size = (self.db.execute(f"pragma {name}").fetchone()[0] for name in ("page_count", "page_size"))
        if pages * size > WHOLE:
            return None
        found: dict[Any, list[Record]] = {}
        for row in self.scan("messages", MESSAGE):
            found.setdefault(row.get("session_id"), []).append(row)
        return found

    def messages(self, chain: Iterable[str]) -> list[Record]:
        """The messages of some sessions in the order they were written; times go back when a clock does."""
        return [row for id in chain for row in self.messages_of(id)]

    def messages_of(self, id: str) -> list[Record]:
        if self.whole is not None:
            return self.whole.get(id, [])
        before, self.damage = self.damage, None
        found = list(self.select("messages", MESSAGE, "where session_id = ? order by rowid", id))
        if self.damage:
            found = self.scan("messages", MESSAGE, "and session_id = ?", id)
        self.damage = self.damage or before
        return found

    def prompt(self, id: str) -> str | None:
        """The system prompt of a row; since schema 25 equal ones are kept once, in a table of their own."""
        hashed = text_at(self.sessions[id], "system_prompt_hash")
        found = next(self.select("sessions", ("system_prompt",), "where id = ?", id), {})
        if not text_at(found, "system_prompt") and hashed:
            found = next(self.select("system_prompts", ("prompt",), "where hash = ?", hashed), {})
        return text_at(found, "system_prompt") or text_at(found, "prompt")

    def every_row(self, chain: Sequence[str]) -> Json:
        """Every row of some sessions as it is stored, undone messages included."""
        found: dict[str, list[Record]] = {}
        for table, column in (("sessions", "id"), ("messages", "session_id"), ("session_model_usage", "session_id")):
            wanted = sorted(self.columns[table])
            stored = (
                one for id in chain for one in self.select(table, wanted, f"where {column} = ? order by rowid", id)
            )
            found[table] = [{name: plain(value) for name, value in one.items()} for one in stored]
        return found


def unreadable(path: str, error: Exception) -> UnreadableSession:
    told = str(error) if isinstance(error, sqlite3.Error) else "its text is damaged"
    return UnreadableSession(path, told)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def number(row: Record, name: str) -> float:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def plain(value: Any) -> Json:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
