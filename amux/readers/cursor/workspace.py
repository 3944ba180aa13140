"""The IDE's databases of single workspaces: which folder was open, which chats belong to it, and chats of old versions.

`workspaceStorage/<id>/workspace.json` names the folder, or a .code-workspace file. Of the table ItemTable beside it three
values matter, each asked for by its very name: `composer.composerData` lists the composers of the workspace (Cursor 3
only those that are open), and in 2024 held whole conversations; the chat pane of that time kept its tabs in
`workbench.panel.aichat.view.aichat.chatdata`, and here and there VS Code's own chat in `interactive.sessions`.
`aiService.prompts` and `aiService.generations` repeat single prompts: no sessions.
"""

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from amux.model import Json
from amux.readers._base import entries, stamp
from amux.readers._json import Record, decoded, list_at, text_at
from amux.readers._sqlite import Salvaged, database_stamp, reading
from amux.readers.cursor import bubbles, composer, conversation
from amux.readers.cursor.conversation import Conversation, moment
from amux.readers.cursor.database import as_bytes, without_secrets
from amux.readers.cursor.places import Found, Rank, whole
from amux.readers.cursor.uris import folder_of, local_path

STATE, DESCRIPTION = "state.vscdb", "workspace.json"
COMPOSERS = "composer.composerData"


@dataclass(frozen=True, slots=True)
class Pane:
    """A value that holds whole chats: where in it the list of them is, and in each its id, its time and its content."""

    key: str
    chats: str
    id: str
    time: str
    content: str


PANES = (
    Pane("workbench.panel.aichat.view.aichat.chatdata", "tabs", "tabId", "lastSendTime", "bubbles"),
    Pane(COMPOSERS, "allComposers", "composerId", "lastUpdatedAt", "conversation"),
    Pane("interactive.sessions", "", "sessionId", "creationDate", "requests"),
)
LISTED = """
    select json_extract(chat.value, ?3) id, json_extract(chat.value, ?4) time, json_array_length(chat.value, ?5) count,
        length(chat.value) size
    from ItemTable item, json_each(case when json_valid(cast(item.value as text)) then cast(item.value as text) else '[]' end, ?2) chat
    where item.key = ?1 and chat.type = 'object'
"""
SELECTED = """
    select json_extract(cast(value as text), '$.selectedComposerIds') selected from ItemTable
    where key = ? and json_valid(cast(value as text))
"""
VALUE = "select cast(value as blob) value from ItemTable where key = ?"
WANTED = f"key in ({', '.join(repr(pane.key) for pane in PANES)})"


@dataclass(frozen=True, slots=True)
class Workspace:
    id: str
    path: str
    folder: str

    @property
    def database(self) -> str:
        return f"{self.path}/{STATE}"

    @property
    def stamp(self) -> str:
        described = stamp(f"{self.path}/{DESCRIPTION}")
        return f"{self.path} {database_stamp(self.database)} {described[0] if described else ''}"


def workspaces(user: str) -> Iterator[Workspace]:
    for entry in entries(f"{user}/workspaceStorage"):
        if os.path.isdir(entry.path):
            yield Workspace(entry.name, entry.path, folder_in(whole(f"{entry.path}/{DESCRIPTION}")))


def folder_in(described: Record) -> str:
    """The folder of a workspace; of several, the one in which the file that lists them lies."""
    if folder := folder_of(described.get("folder")):
        return folder
    listing = local_path(text_at(described, "workspace") or "")
    return listing[: max(listing.rfind("/"), listing.rfind("\\"), 0)] if listing else ""


# Listing: what is asked of a value is worked out inside SQLite, no text of a chat is read


@dataclass(frozen=True, slots=True)
class Listing:
    """The chats that a workspace's own database holds, and the ids of the composers that belong to it."""

    chats: list[Found]
    composers: list[str]


def listing(workspace: Workspace) -> Listing:
    """Raises UnreadableSession."""
    found = Listing([], [])
    if not stamp(workspace.database):
        return found
    with reading(workspace.database) as db:
        items = Items(workspace.database, db)
        if not items.known:
            return found
        for pane in PANES:
            for row in items.rows(LISTED, *paths(pane)):
                if not (id := text_at(row, "id")):
                    continue
                if pane.key == COMPOSERS:
                    found.composers.append(id)
                if row["count"]:
                    fingerprint = f"{row['time']} {row['count']} {row['size']}"
                    found.chats.append(
                        Found(id, Rank.PANE, workspace.database, fingerprint, row["size"], folder=workspace.folder)
                    )
        for row in items.rows(SELECTED, COMPOSERS):
            found.composers.extend(id for id in list_at(decoded(str(row["selected"]))) if isinstance(id, str))
    return found


class Items(Salvaged):
    def __init__(self, path: str, db: sqlite3.Connection) -> None:
        super().__init__(path, db, {"ItemTable": "key"}, {"ItemTable": WANTED})
        self.known = self.columns["ItemTable"] >= {"key", "value"}


def paths(pane: Pane) -> tuple[str, ...]:
    inside = (f"$.{name}" for name in (pane.id, pane.time, pane.content))
    return pane.key, f"$.{pane.chats}" if pane.chats else "$", *inside


# Reading


class Chats:
    """Every chat that a workspace's own database holds, by id. Raises UnreadableSession."""

    def __init__(self, path: str) -> None:
        self.path = path
        with reading(path) as db:
            items = Items(path, db)
            self.found = dict(chats_in(items)) if items.known else {}

    def session(self, id: str, folder: str) -> Conversation | None:
        return session(*self.found[id], folder) if id in self.found else None

    def raw(self, id: str) -> Json:
        return without_secrets(self.found[id][1]) if id in self.found else None


def chats_in(items: Items) -> Iterator[tuple[str, tuple[Pane, Record]]]:
    for pane in reversed(PANES):
        for row in items.rows(VALUE, pane.key):
            kept = decoded(as_bytes(row["value"]))
            for chat in list_at(kept, pane.chats) if pane.chats else list_at(kept):
                if (id := text_at(chat, pane.id)) and list_at(chat, pane.content):
                    yield id, (pane, chat)


def session(pane: Pane, chat: Record, folder: str) -> Conversation:
    if pane.key == COMPOSERS:
        return composer.session(chat, composer.inline(chat), folder)
    content = [one for one in list_at(chat, pane.content) if isinstance(one, dict)]
    shown = content if pane.content == "bubbles" else [bubble for one in content for bubble in request(one)]
    time = moment(chat.get(pane.time))
    return Conversation(
        list(bubbles.messages(shown)),
        title=conversation.title(chat.get("chatTitle")),
        created_at=moment(chat.get("createdAt")) or time,
        updated_at=time,
        cwd=folder or None,
    )


def request(asked: Record) -> Iterator[Record]:
    """A question to VS Code's own chat and its answer, as bubbles."""
    yield {"type": "user", "text": text_at(asked, "message") or text_at(asked, "message", "text")}
    given = asked.get("response")
    parts = given if isinstance(given, list) else [given]
    texts = (
        part if isinstance(part, str) else text_at(part, "value") or text_at(part, "value", "value") for part in parts
    )
    yield {"type": "ai", "text": "".join(text for text in texts if text)}
