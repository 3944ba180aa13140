"""OpenCode's database, since 1.2: tables `session`, `message` and `part`, and of version 2 `session_v2` and `session_message`.

Which generation a session belongs to is told by its own rows: 1.17 keeps notes about switched agents in `session_message`
while its content is in `message`, the preview of version 2 has its content there under a row of `session`, and version 2
leaves the tables of version 1 as they were. Columns come with every version. The session's own row is not written at
every change: the end of an answer may be seen only in the rows below it.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import chain
from typing import Any

from amux.model import Json
from amux.readers._base import SessionRef
from amux.readers._json import Record, decoded, dict_at, int_at, text_at
from amux.readers._sqlite import Salvaged, database_stamp
from amux.readers.opencode import projection
from amux.readers.opencode.records import Entry, Stored

SESSIONS = ("session_v2", "session")
CONTENT = {"message": "count(*)", "part": "0", "session_message": "sum(type in ('user', 'assistant'))"}
"""Tables below a session, and how many of their rows make it one that has content."""
KEYS = {**dict.fromkeys(SESSIONS, "id"), **dict.fromkeys(CONTENT, "session_id")}
ROW_BYTES = 1024
"""About what reading a row takes."""
OWN = (
    *("id", "project_id", "parent_id", "fork_session_id", "directory", "title", "version", "revert", "model"),
    *("time_created", "time_updated", "time_archived"),
)
MAKERS = """
    select m.session_id from session s join message m on m.session_id = s.id
    where m.time_created = ? and s.id <> ? and m.time_created >= s.time_created and s.project_id is ?
"""
SPOKEN = frozenset({"user", "assistant"})
EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Below:
    """The rows of one table that belong to a session: how many, how many of them are content, when the last one changed."""

    count: int
    latest: Any
    content: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A session as the database lists it: which generation its content is of, and when it last changed."""

    ref: SessionRef
    generation: int
    updated: int


class Database(Salvaged):
    def __init__(self, path: str, db: sqlite3.Connection) -> None:
        super().__init__(path, db, KEYS)

    # Listing: one query for each table

    def listed(self) -> Iterator[Listed]:
        """Every session that has content. Raises UnreadableSession, after what could be read."""
        below = {table: self.below(table) for table in CONTENT}
        seen = set[str]()
        for row in chain.from_iterable(map(self.own_rows, SESSIONS)):
            id = row["id"]
            held = {table: found.get(id) for table, found in below.items()}
            if isinstance(id, str) and id and id not in seen and any(one and one.content for one in held.values()):
                seen.add(id)
                second = held["session_message"]
                generation = 2 if second and second.content else 1
                yield Listed(self.ref(row, held), generation, int_at(row, "time_updated") or 0)
        self.check()

    def own_rows(self, table: str, condition: str = "", *values: Any) -> list[Record]:
        return self.select(table, OWN, condition, *values) if "id" in self.columns[table] else []

    def below(self, table: str) -> dict[Any, Below]:
        """What each session has in a table."""
        if not self.columns[table]:
            return {}
        content = f"count(*) count, max(time_updated) latest, {CONTENT[table]} content"
        found = self.rows(f"select session_id, {content} from {table} group by session_id")
        return {row["session_id"]: Below(row["count"], row["latest"], row["content"]) for row in found}

    def ref(self, row: Record, held: dict[str, Below | None]) -> SessionRef:
        state = database_stamp(self.path) if self.damage else None
        told = repr((self.path, sorted(row.items()), held, state)).encode("utf-8", "replace")
        size = ROW_BYTES * sum(found.count for found in held.values() if found)
        return SessionRef(row["id"], self.path, blake2b(told, digest_size=16).hexdigest(), size)

    # Reading: one query for each table

    def read(self, session_id: str) -> Stored:
        """A session with its messages. Raises UnreadableSession where damage lets none be read."""
        table, row = self.own_row(session_id)
        found = self.entries(session_id, frozen=table == "session_v2")
        if not found:
            self.check()
        return Stored(session_id, self.path, own_record(row), found)

    def own_row(self, session_id: str) -> tuple[str, Record]:
        for table in SESSIONS:
            for row in self.own_rows(table, "where id = ?", session_id):
                return table, row
        return "session", {}

    def entries(self, session_id: str, *, frozen: bool) -> list[Entry]:
        """The messages of a session in the order of the agent; `frozen`: what version 1 has of it is out of date."""
        projected = self.rows_of("session_message", session_id)
        spoken = any(row.get("type") in SPOKEN for row in projected)
        second = [*projection.entries(projected)] if spoken else []
        return second if second and frozen else merged(second, self.messages(session_id))

    def messages(self, session_id: str) -> list[Entry]:
        parts: dict[Any, list[Record]] = {}
        for row in self.rows_of("part", session_id):
            parts.setdefault(row.get("message_id"), []).append({**row["data"], "id": row.get("id")})
        return [
            Entry(str(row.get("id")), row["data"], parts.get(row.get("id"), ()))
            for row in self.rows_of("message", session_id)
        ]

    def rows_of(self, table: str, session_id: str) -> list[Record]:
        """The rows of a session in one table, in order, their data decoded; those without readable data are left out."""
        if not self.columns[table]:
            return []
        found = [row for row in self.rows(f"select * from {table} where session_id = ?", session_id) if opened(row)]
        return sorted(found, key=part_order if table == "part" else message_order)

    def parent(self, stored: Stored) -> str | None:
        """The session a fork was made from: it holds every copied message and made the newest of them itself."""
        if named := text_at(stored.info, "forkedFrom"):
            return named
        times = [int_at(entry.info, "time", "created") for entry in stored.entries if stored.copied(entry)]
        copied = {time for time in times if time is not None}
        if not copied or not self.columns["message"]:
            return None
        asked = (max(copied), stored.id, stored.info.get("projectID"))
        for maker in self.rows(MAKERS, *asked):
            held = self.select("message", ("time_created",), "where session_id = ?", maker["session_id"])
            if copied.issubset(row["time_created"] for row in held):
                return str(maker["session_id"])
        return None

    def raw(self, session_id: str) -> Json:
        table, _ = self.own_row(session_id)
        own = self.first(table, sorted(self.columns[table]), "where id = ?", session_id)
        return {
            "session": plain_row(own),
            **{name: [plain_row(row) for row in self.rows_of(name, session_id)] for name in CONTENT},
        }


def opened(row: Record) -> bool:
    """Decode a row's data, with the times of its columns where it has none itself; False when there is none to decode."""
    data = row["data"] = value_of(row.get("data"))
    if not isinstance(data, dict):
        return False
    if int_at(data, "time", "created") is None and "message_id" not in row:
        data["time"] = {**dict_at(data, "time"), "created": row.get("time_created")}
    return True


def message_order(row: Record) -> tuple[int, int, str]:
    return int_at(row, "seq") or 0, int_at(row, "time_created") or 0, str(row.get("id"))


def part_order(row: Record) -> str:
    return str(row.get("id"))


def merged(second: list[Entry], first: list[Entry]) -> list[Entry]:
    """Both generations of a session that the preview of version 2 and version 1 wrote in turns, each message once.

    Only the time tells their order then; within one generation it does not: a prompt can wait for the end of an answer.
    """
    known = {(entry.role, entry.created) for entry in second}
    rest = [entry for entry in first if (entry.role, entry.created) not in known]
    if not second or not rest:
        return second or rest
    return sorted([*second, *rest], key=lambda entry: entry.created or EARLIEST)


def own_record(row: Record) -> Record:
    """A session's row in the shape of the JSON files."""
    return {
        "title": row.get("title"),
        "version": row.get("version"),
        "directory": row.get("directory"),
        "projectID": row.get("project_id"),
        "parentID": row.get("parent_id"),
        "forkedFrom": row.get("fork_session_id"),
        "revert": value_of(row.get("revert")),
        "model": value_of(row.get("model")),
        "time": {name: row.get(f"time_{name}") for name in ("created", "updated", "archived")},
    }


def value_of(column: Any) -> Any:
    return decoded(column) if isinstance(column, str | bytes) else None


def plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def plain_row(row: Record) -> Record:
    return {name: plain(value) for name, value in row.items()}
