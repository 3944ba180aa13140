"""The IDE's global database: composers, as it calls its chats, and their bubbles, in the table cursorDiskKV.

`composerData:<id>` describes a composer; `fullConversationHeadersOnly` in it says which bubbles it has and in what order. A
bubble is a row of its own, `bubbleId:<composer>:<id>`; one that no composer lists was rewound or left over. Before that the
bubbles stood inside, in `conversation`. A composer with neither is a draft. Cursor 3 describes composers also in a table of
their own, composerHeaders. A row is written by deleting the old one: it gets a new rowid, so that rowids tell of every change.

The file can have gigabytes, nearly all of it snapshots: `agentKv:`, `checkpointId:`, `messageRequestContext:`, `codeBlockDiff:`.
The table ItemTable beside it holds the keys of the user's account and is never asked. `tokenCount` of a bubble was, in 2025,
a count of the whole turn's context with an unknown part of it cached, and is 0 since; `promptTokenBreakdown` is the size of
the context: none of them is what was used.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from amux.model import Json
from amux.readers._json import Record, at, decoded, dict_at, list_at, text_at
from amux.readers._sqlite import Salvaged, database_stamp
from amux.readers.cursor import bubbles, conversation
from amux.readers.cursor.conversation import Conversation, moment
from amux.readers.cursor.database import as_bytes, without_secrets
from amux.readers.cursor.places import Found, Rank
from amux.readers.cursor.uris import folder_of, local_path

COMPOSERS = """
    select substr(key, 14) id, rowid number, length(value) size, case when json_valid(cast(value as text)) then json_extract(
        cast(value as text), '$.lastUpdatedAt', '$.workspaceIdentifier.id', '$.subComposerIds', '$.subagentComposerIds') end told
    from cursorDiskKV where key > 'composerData:' and key < 'composerData;' and value is not null
"""
BUBBLES = """
    select substr(key, 10, instr(substr(key, 10), ':') - 1) composer, count(*) count, max(rowid) last
    from cursorDiskKV where key > 'bubbleId:' and key < 'bubbleId;' group by composer
"""
"""How many bubbles each composer has and which was written last: the index on the keys alone tells."""
ROW = "select cast(value as blob) value from cursorDiskKV where key = ?"
RANGE = "select key, cast(value as blob) value from cursorDiskKV where key > ? and key < ?"
CHATS = "key > 'composerData:' and key < 'composerData;' or key > 'bubbleId:' and key < 'bubbleId;'"
HEADER = ("composerId", "workspaceId", "lastUpdatedAt", "isArchived", "isSubagent", "value")
BUBBLE_BYTES = 1024
"""About what reading a bubble takes."""
SUBAGENT = "task-"
"""What the ids of composers that are sub-agents may begin with."""


class Composers(Salvaged):
    def __init__(self, path: str, db: sqlite3.Connection) -> None:
        super().__init__(path, db, {"cursorDiskKV": "key", "composerHeaders": "composerId"}, {"cursorDiskKV": CHATS})
        self.known = self.columns["cursorDiskKV"] >= {"key", "value"}

    # Listing: one query for each kind of row

    def listed(self, folders: Mapping[str, str], listed_in: Mapping[str, str]) -> list[Found]:
        """Every composer; `folders` are those of workspaces, by id, and `listed_in` those of composers."""
        if not self.known:
            return []
        described = [
            (row["id"], row["number"], row["size"], decoded(row["told"] or "")) for row in self.rows(COMPOSERS)
        ]
        held = {row["composer"]: (row["count"], row["last"]) for row in self.rows(BUBBLES)}
        headers = {row["composerId"]: row for row in self.headers()}
        parents = {child: id for id, _, _, told in described for place in (2, 3) for child in texts_at(told, place)}
        state = database_stamp(self.path) if self.damage else ""
        found = []
        for id, number, size, told in described:
            header, bubbles_held = headers.get(id, {}), held.get(id, (0, 0))
            workspace = text_at(told, 1) or text_at(header, "workspaceId") or ""
            fingerprint = f"{number} {size} {at(told, 0)} {bubbles_held} {sorted(header.items())} {state}"
            weight = size + BUBBLE_BYTES * bubbles_held[0]
            folder = folders.get(workspace) or listed_in.get(id, "")
            found.append(Found(id, Rank.COMPOSER, self.path, fingerprint, weight, folder, parents.get(id, "")))
        return found

    def headers(self, condition: str = "", *values: str) -> list[Record]:
        if "composerId" not in self.columns["composerHeaders"]:
            return []
        return self.select("composerHeaders", HEADER, condition, *values)

    # Reading: one composer and its bubbles

    def session(self, id: str, folder: str) -> Conversation:
        record = self.record(id)
        header = next(iter(self.headers("where composerId = ?", id)), {})
        told = dict_at(decoded(as_bytes(header.get("value"))))
        found = session(record, self.shown(id, record), folder, told, archived=bool(header.get("isArchived")))
        if not found.messages:
            self.check()
        return found

    def record(self, id: str) -> Record:
        if not self.known:
            return {}
        return next((dict_at(decoded(as_bytes(row["value"]))) for row in self.rows(ROW, f"composerData:{id}")), {})

    def bubbles(self, id: str) -> dict[str, Record]:
        """The bubbles of a composer, those that it does not list too."""
        prefix = f"bubbleId:{id}:"
        stored = self.rows(RANGE, prefix, f"bubbleId:{id};")
        found = ((row["key"][len(prefix) :], decoded(as_bytes(row["value"]))) for row in stored)
        return {name: bubble for name, bubble in found if isinstance(bubble, dict)}

    def shown(self, id: str, record: Record) -> list[Record]:
        """The bubbles of a composer in its own order."""
        listed = list_at(record, "fullConversationHeadersOnly")
        if not listed:
            return inline(record)
        stored = {**dict_at(record, "conversationMap"), **self.bubbles(id)}
        found = ((header, dict_at(stored, text_at(header, "bubbleId") or "")) for header in listed)
        return [{**bubble, **gaps(bubble, header)} for header, bubble in found if bubble]

    def raw(self, id: str) -> Json:
        return {"composer": without_secrets(self.record(id)), "bubbles": list(self.bubbles(id).values())}


def gaps(bubble: Record, header: Any) -> Record:
    """What a bubble does not say itself, but the list of bubbles does."""
    return {name: at(header, name) for name in ("type", "createdAt") if bubble.get(name) is None}


def inline(record: Record) -> list[Record]:
    """The bubbles that stand inside a composer of an old version."""
    return [bubble for bubble in list_at(record, "conversation") if isinstance(bubble, dict)]


def session(
    record: Record, shown: Iterable[Record], folder: str, header: Record | None = None, *, archived: bool = False
) -> Conversation:
    known = list(shown)
    parent = text_at(record, "subagentInfo", "parentComposerId") or text_at(header, "subagentInfo", "parentComposerId")
    return Conversation(
        list(bubbles.messages(known)),
        title=conversation.title(record.get("name")) or conversation.title(at(header, "name")),
        created_at=moment(record.get("createdAt")),
        updated_at=moment(record.get("lastUpdatedAt")),
        model=conversation.model(at(record, "modelConfig", "modelName")),
        cwd=(
            folder_of(at(record, "workspaceIdentifier", "uri"))
            or folder_of(at(header, "workspaceIdentifier", "uri"))
            or folder
            or told_folder(known)
        ),
        git_branch=text_at(record, "createdOnBranch"),
        archived=archived or record.get("isArchived") is True,
        subagent=parent is not None or (text_at(record, "composerId") or "").startswith(SUBAGENT),
        parent_id=parent,
    )


def told_folder(known: Iterable[Record]) -> str | None:
    """The folder that bubbles name, where nothing else does."""
    uris = (uri for bubble in known for uri in list_at(bubble, "workspaceUris") if isinstance(uri, str))
    return next((path for uri in uris if (path := local_path(uri))), None)


def texts_at(value: Any, place: int) -> list[str]:
    return [text for text in list_at(value, place) if isinstance(text, str)]
