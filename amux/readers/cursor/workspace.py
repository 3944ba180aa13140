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
from typing import Any

from amux.model import Json, Message
from amux.readers._base import entries, stamp
from amux.readers._json import Record, decoded, dict_at, list_at, text_at
from amux.readers._sqlite import columns, database_stamp, reading
from amux.readers.cursor import bubbles, conversation
from amux.readers.cursor.conversation import Conversation, as_text, moment, paired
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
VALUE = "select cast(value as text) from ItemTable where key = ?"
LISTED = f"""
    select json_extract(one.value, :id), json_extract(one.value, :time), json_array_length(one.value, :content), length(one.value)
    from (select value text from ({VALUE.replace("?", ":key").replace("cast(value as text)", "cast(value as text) value")})
        where json_valid(value)) kept, json_each(kept.text, :chats) one
    where one.type = 'object'
"""
OPEN = f"select json_extract(value, '$.selectedComposerIds') from ({VALUE.replace('text)', 'text) value')}) where json_valid(value)"


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
        if entry.is_dir():
            yield Workspace(entry.name, entry.path, folder_in(whole(f"{entry.path}/{DESCRIPTION}")))


def folder_in(described: Record) -> str:
    """The folder of a workspace; of several, the one in which the file that lists them lies."""
    if folder := folder_of(described.get("folder")):
        return folder
    listing = local_path(text_at(described, "workspace") or "")
    return os.path.dirname(listing) if listing else ""
