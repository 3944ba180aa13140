"""The second generation: one SQLite database, without a -wal.

Rows are plain text; calls and the ids of results are JSON in `metadata`, a column that the first builds added later. A row
of an answer is written after its tools have run, so nothing took any time. A failed tool is told by its text alone. A run
that broke off leaves its prompt and nothing else. Models, tokens and thinking are not kept.
"""

import re
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from amux.model import Json, Message, Session, ToolCall, ToolResult
from amux.readers import _base
from amux.readers._base import SessionRef
from amux.readers._json import Record, decoded, list_at, text_at, when
from amux.readers._sqlite import Salvaged, database_stamp

SESSION_COLUMNS = frozenset({"id", "profile", "cwd", "created_at", "updated_at"})
ENTRY_COLUMNS = frozenset({"id", "session_id", "kind", "role", "content", "event_type", "created_at"})
CONTENTS = "select session_id, count(*) count, max(id) last from entries group by session_id"
ROW = 1024
"""About how many bytes an entry takes."""
TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) ([+-]\d{4}) ")
FAILED = "tool error: "


class Store(Salvaged):
    def __init__(self, path: str, db: sqlite3.Connection) -> None:
        super().__init__(path, db, {"sessions": "id", "entries": "session_id"})

    def refs(self) -> Iterator[SessionRef]:
        """Every session that has entries. Raises UnreadableSession after those that could be read."""
        if not (self.columns["sessions"] >= SESSION_COLUMNS and self.columns["entries"] >= ENTRY_COLUMNS):
            return
        contents = {row["session_id"]: (row["count"], row["last"]) for row in self.rows(CONTENTS)}
        state = database_stamp(self.path) if self.damage else ""
        for row in self.select("sessions", sorted(SESSION_COLUMNS)):
            id = text_at(row, "id")
            if id and id in contents:
                count, last = contents[id]
                yield SessionRef(id, self.path, f"{sorted(row.items())} {count} {last}{state}", count * ROW)
        self.check()

    def stored(self, id: str) -> tuple[Record, list[Record]]:
        """A session's own row and its entries. Raises UnreadableSession where damage lets none be read."""
        row = self.first("sessions", sorted(self.columns["sessions"]), "where id = ?", id)
        asked = "where session_id = ? order by created_at, id"
        entries = self.select("entries", sorted(self.columns["entries"]), asked, id)
        if not entries:
            self.check()
        return row, entries

    def raw(self, id: str) -> Json:
        row, entries = self.stored(id)
        return {"session": plain(row), "entries": [plain(entry) for entry in entries]}


def plain(row: Record) -> Record:
    return {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value for name, value in row.items()
    }


def sessions(agent: str, store: Store, ref: SessionRef) -> list[Session]:
    row, entries = store.stored(ref.key)
    results = {id: entry for entry in entries if (id := text_at(metadata(entry), "toolCallId"))}
    messages = [message for entry in entries for message in said(entry, results)]
    if not messages:
        return []
    made = _base.session(
        agent,
        ref.key,
        messages,
        path=ref.path,
        created_at=moment(row.get("created_at")),
        updated_at=moment(row.get("updated_at")),
        began=moment(row.get("created_at")),
        cwd=text_at(row, "cwd"),
        usage_recorded=False,
    )
    return [made]


def metadata(entry: Record) -> Any:
    return decoded(text_at(entry, "metadata") or "")


def moment(written: Any) -> datetime | None:
    """A time as Go prints it: `2026-03-22 09:15:00.123456789 +0000 UTC`."""
    told = TIME.match(written) if isinstance(written, str) else None
    return when(f"{told[1]}{told[2]}" if told else written)


def said(entry: Record, results: dict[str, Record]) -> Iterator[Message]:
    text, time = text_at(entry, "content") or "", moment(entry.get("created_at"))
    match entry.get("kind"), entry.get("role"):
        case "compaction", _:
            yield Message("system", text, time, event="compaction")
        case "message", "user":
            yield Message("user", text, time)
        case "message", "assistant":
            calls = list_at(metadata(entry), "toolCalls")
            yield Message("assistant", text, time, tool_calls=tuple(call(told, results) for told in calls))
        case "message", "tool":
            id, name = text_at(metadata(entry), "toolCallId"), text_at(metadata(entry), "toolName")
            result = ToolResult(id, name, text)
            yield Message("tool", text, time, tool_result=result, is_error=text.startswith(FAILED))


def call(told: Any, results: dict[str, Record]) -> ToolCall:
    id = text_at(told, "ID") or ""
    output = (text_at(results[id], "content") or "") if id in results else None
    arguments = told.get("Arguments") if isinstance(told, dict) else None
    return ToolCall(id, text_at(told, "ToolID") or "", arguments, output, is_error=(output or "").startswith(FAILED))
