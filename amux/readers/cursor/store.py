"""A session of the CLI: its database, and since 2026 a `meta.json` beside it."""

import re
from collections.abc import Iterable, Iterator, Sequence

from amux.model import Json, Message
from amux.readers._base import modified
from amux.readers._json import Record, decoded, text_at
from amux.readers._sqlite import reading
from amux.readers.cursor import conversation
from amux.readers.cursor.blobs import EVERYTHING, Root, Store
from amux.readers.cursor.conversation import Conversation, moment, paired
from amux.readers.cursor.database import as_bytes, without_secrets
from amux.readers.cursor.history import active
from amux.readers.cursor.places import SIDECAR, STORE, bucket, whole

WORKSPACE = re.compile(r"^Workspace Path: ([^\n<]+)", re.MULTILINE)
"""In the note on the user's system."""


class StoreFile:
    """A database that holds one session, opened only while it is read."""

    def __init__(self, path: str) -> None:
        self.path = path

    def session(self, id: str, folder: str) -> Conversation | None:
        with reading(self.path) as db:
            store = Store(self.path, db)
            if store.empty:
                return None
            meta = store.meta
            latest = store.blob(text_at(meta, "latestRootBlobId") or "")
            root = Root.of(latest)
            records = list(store.records(root.messages)) if latest else store.every_record()
            messages = paired(active(store, root) if latest else conversation.messages(records))
            if not messages:
                store.check()
            return described(self.path, meta, messages, [*root.folders, *told_folders(records)], folder)

    def raw(self, id: str) -> Json:
        """Every blob, abandoned ones too: JSON as it is, anything else as hexadecimal digits."""
        with reading(self.path) as db:
            store = Store(self.path, db)
            if store.empty:
                return None
            blobs = [(row["id"], as_bytes(row["data"])) for row in store.rows(EVERYTHING)]
            return {
                "meta": without_secrets(store.meta),
                "sidecar": sidecar(self.path),
                "blobs": [{"id": str(name), "data": decoded(data) or data.hex()} for name, data in blobs],
            }


def sidecar(path: str) -> Record:
    return whole(path.removesuffix(STORE) + SIDECAR)


def described(
    path: str, meta: Record, messages: Sequence[Message], folders: Sequence[str], folder: str
) -> Conversation:
    beside = sidecar(path)
    info = meta.get("subagentInfo")
    dated = any(message.timestamp for message in messages)
    return Conversation(
        messages,
        title=conversation.title(meta.get("name")) or conversation.title(beside.get("title")),
        created_at=moment(meta.get("createdAt")) or moment(beside.get("createdAtMs")),
        updated_at=moment(beside.get("updatedAtMs")) or (None if dated else max(map(modified, (path, f"{path}-wal")))),
        model=conversation.model(meta.get("lastUsedModel")),
        cwd=text_at(beside, "cwd") or hashed_to(path, folders) or folder or None,
        mode=text_at(meta, "mode"),
        subagent=isinstance(info, dict) or beside.get("isSubagent") is True,
        parent_id=text_at(info, "parentAgentId") or text_at(info, "rootParentAgentId"),
    )


# The working directory


def told_folders(records: Iterable[Record]) -> Iterator[str]:
    """The directories that notes on the user's system name."""
    for one in records:
        for text in conversation.texts(conversation.blocks(one)) if one.get("role") == "user" else ():
            if found := WORKSPACE.search(text):
                yield found[1].strip()


def hashed_to(path: str, folders: Sequence[str]) -> str | None:
    """The directory after which the session's place is named, else the first one told."""
    place = path.replace("\\", "/").split("/")[-3:][0]
    return next((one for one in folders if bucket(one) == place), None) or next(iter(folders), None)
