"""`sessions/sessions.db`: a database of plain tables, `sessions` and `messages`.

It is described as Cursor's, yet no build is known to write it; so a column is taken by any of the names it could have, and a
column that is not there is simply not told. Ids are numbers or UUIDs.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace

from amux.model import Json, Message
from amux.readers._json import Record, text_at
from amux.readers._sqlite import Salvaged
from amux.readers.cursor import conversation
from amux.readers.cursor.conversation import Conversation, json_in, moment, paired
from amux.readers.cursor.database import plain
from amux.readers.cursor.places import Found, Rank

FILE = "sessions.db"
SESSION = {
    "id": ("id", "session_id", "uuid"),
    "title": ("title", "name"),
    "created": ("created_at", "createdAt", "started_at"),
    "updated": ("updated_at", "updatedAt", "last_updated_at"),
    "cwd": ("cwd", "workspace", "workspace_path", "directory", "project_path"),
    "model": ("model", "model_name"),
}
MESSAGE = {
    "session": ("session_id", "sessionId", "conversation_id"),
    "role": ("role", "type"),
    "content": ("content", "text", "message"),
    "created": ("created_at", "createdAt", "timestamp"),
    "model": ("model", "model_name"),
    "thinking": ("thinking", "reasoning"),
    "tool_calls": ("tool_calls", "toolCalls"),
    "tool_call_id": ("tool_call_id", "toolCallId"),
}
"""What is wanted of each table, and the names under which it may be there."""
ROLES = {"human": "user", "ai": "assistant", "agent": "assistant", "model": "assistant", "bot": "assistant"}
MESSAGE_BYTES = 1024
"""About what reading a message takes."""


class Tables(Salvaged):
    def __init__(self, path: str, db: sqlite3.Connection) -> None:
        super().__init__(path, db, {"sessions": "id", "messages": "session_id"})
        self.session_columns = chosen(SESSION, self.columns["sessions"])
        self.message_columns = chosen(MESSAGE, self.columns["messages"])
        self.known = "id" in self.session_columns and {"session", "role", "content"} <= self.message_columns.keys()

    def listed(self) -> Iterator[Found]:
        """Every session that has messages: one query for each table."""
        if not self.known:
            return
        session = self.message_columns["session"]
        counted = self.rows(f"select {session} id, count(*) count, max(rowid) last from messages group by {session}")
        held = {row["id"]: (row["count"], row["last"]) for row in counted}
        for row in self.own_rows():
            count, last = held.get(row["id"], (0, 0))
            if count and isinstance(row["id"], int | str):
                told = f"{sorted(row.items())} {count} {last}"
                yield Found(str(row["id"]), Rank.TABLES, self.path, told, MESSAGE_BYTES * count)

    def own_rows(self, condition: str = "", *values: str | int) -> list[Record]:
        return self.rows(f"select {named(self.session_columns)} from sessions {condition}", *values)

    def own_row(self, id: str) -> Record:
        return next(iter(self.own_rows(f"where {self.session_columns['id']} in (?, ?)", *spellings(id))), {})

    def spoken_rows(self, id: str) -> list[Record]:
        where = f"where {self.message_columns['session']} in (?, ?) order by rowid"
        return self.rows(f"select {named(self.message_columns)} from messages {where}", *spellings(id))

    def session(self, id: str, folder: str) -> Conversation | None:
        if not self.known:
            return None
        own = self.own_row(id)
        spoken = [message for row in self.spoken_rows(id) for message in messages(row)]
        if not spoken:
            self.check()
        return Conversation(
            paired(spoken),
            title=conversation.title(own.get("title")),
            created_at=moment(own.get("created")),
            updated_at=moment(own.get("updated")),
            model=conversation.model(own.get("model")),
            cwd=text_at(own, "cwd"),
        )

    def raw(self, id: str) -> Json:
        if not self.known:
            return None
        return {"session": plain(self.own_row(id)), "messages": [*map(plain, self.spoken_rows(id))]}


def chosen(wanted: dict[str, tuple[str, ...]], known: frozenset[str]) -> dict[str, str]:
    found = ((name, next((one for one in names if one in known), None)) for name, names in wanted.items())
    return {name: column for name, column in found if column}


def named(chosen_columns: dict[str, str]) -> str:
    return ", ".join(f'"{column}" "{name}"' for name, column in chosen_columns.items())


def spellings(id: str) -> tuple[str, str | int]:
    """An id as it may be stored."""
    return id, int(id) if id.isdecimal() and len(id) < 19 else id


def messages(row: Record) -> Iterator[Message]:
    role = text_at(row, "role") or ""
    record = {
        **row,
        "role": ROLES.get(role, role),
        "content": content if isinstance(content := json_in(row.get("content")), list) else row.get("content"),
        "tool_calls": json_in(row.get("tool_calls")),
    }
    for message in conversation.messages([record]):
        yield replace(
            message,
            timestamp=moment(row.get("created")) or message.timestamp,
            model=conversation.model(row.get("model")) if message.role == "assistant" else None,
            thinking=message.thinking or (text_at(row, "thinking") if message.role == "assistant" else None),
        )
