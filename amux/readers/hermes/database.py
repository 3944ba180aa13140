"""state.db: its tables, one query for each, by the columns they have."""

import re
import sqlite3
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from amux.model import Json
from amux.readers._json import Record, text_at
from amux.readers._sqlite import Salvaged
from amux.readers.hermes import usage

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
KEYS = {"sessions": "id", "messages": "session_id", "session_model_usage": "session_id", "system_prompts": "hash"}


class Database(Salvaged):
    def __init__(self, path: str, db: sqlite3.Connection) -> None:
        super().__init__(path, db, KEYS)

    @cached_property
    def sessions(self) -> dict[str, Record]:
        found = {id: row for row in self.select("sessions", SESSION) if (id := text_at(row, "id"))}
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
        found = self.rows("select session_id, count(*) count, max(id) last from messages group by session_id")
        return {id: (row["count"], row["last"]) for row in found if (id := text_at(row, "session_id"))}

    @cached_property
    def used(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        for row in self.select("session_model_usage", USAGE):
            found.setdefault(str(row.get("session_id")), []).append(row)
        return found

    def messages(self, chain: Iterable[str]) -> list[Record]:
        """The messages of some sessions in the order they were written; times go back when a clock does."""
        asked = "where session_id = ? order by rowid"
        return [row for id in chain for row in self.select("messages", MESSAGE, asked, id)]

    def prompt(self, id: str) -> str | None:
        """The system prompt of a row; since schema 25 equal ones are kept once, in a table of their own."""
        hashed = text_at(self.sessions[id], "system_prompt_hash")
        found = self.first("sessions", ("system_prompt",), "where id = ?", id)
        if not text_at(found, "system_prompt") and hashed:
            found = self.first("system_prompts", ("prompt",), "where hash = ?", hashed)
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


def number(row: Record, name: str) -> float:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def plain(value: Any) -> Json:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
