"""The sessions of one agent's database: what they are to each other, and what was said."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b

from amux.errors import UnreadableSession
from amux.model import Json, Session
from amux.readers import _zstd
from amux.readers._base import SessionRef, entries, stamp
from amux.readers._json import Record, bytes_of, int_at, text_at
from amux.readers._sqlite import database_stamp
from amux.readers.openclaw import about, events, names, packed
from amux.readers.openclaw.about import About
from amux.readers.openclaw.events import STUB, Event
from amux.readers.openclaw.store import Kin
from amux.readers.openclaw.tables import NODES, WINDOWS, Tables

ARCHIVE_NAME = re.compile(r"[0-9a-f]{64}\.jsonl\.zst")
EVENT_BYTES = 1024
"""About what reading an event takes."""


class Database(Tables):
    def holds(self, path: str) -> bool:
        return path == self.path

    def state(self) -> str:
        archives = " ".join(entry.name for entry in entries(self.cold_directory))
        return f"{self.path} {database_stamp(self.path)} {archives}"

    @property
    def cold_directory(self) -> str:
        above, folder = os.path.split(os.path.dirname(self.path))
        return os.path.join(above, "sessions" if folder == "agent" else folder, "cold")

    # What sessions are to each other

    @cached_property
    def generations(self) -> dict[str, list[tuple[int, str]]]:
        """The sessions each key has had, with the time each began, oldest first."""
        found: dict[str, list[tuple[int, str]]] = {}
        for id, row in self.windows.items():
            found.setdefault(text_at(row, "session_key") or "", []).append((int_at(row, "created_at") or 0, id))
        return {key: sorted(had) for key, had in found.items()}

    def session_of(self, key: str, when: int | None) -> str | None:
        begun = [id for began, id in self.generations.get(key, ()) if when is not None and began <= when]
        return begun[-1] if begun else current(self.nodes.get(key, {}))

    @cached_property
    def keys(self) -> dict[str | None, str]:
        """The key that leads to each session."""
        return {current(node): key for key, node in self.nodes.items()}

    def key_of(self, session_id: str) -> str | None:
        return self.keys.get(session_id)

    def rows(self, id: str) -> tuple[Record, Record]:
        """A session's own row and its key's."""
        window = self.windows.get(id, {})
        return window, self.nodes.get(text_at(window, "session_key") or "", {})

    def parent(self, id: str, kin: Kin, entry: Record) -> tuple[bool, str | None]:
        """Whether a session is a sub-agent's, and the session that started it."""
        window, node = self.rows(id)
        spawned = text_at(window, "spawned_by") or text_at(node, "spawned_by") or text_at(entry, "spawnedBy")
        if not spawned and not names.is_subagent(text_at(window, "session_key") or ""):
            return False, None
        above = spawned or text_at(window, "parent_session_key") or text_at(node, "parent_session_key")
        found = kin(above, int_at(window, "created_at")) if above else None
        return True, found if found != id else None

    def about(self, id: str, kin: Kin) -> About:
        window, node = self.rows(id)
        key = text_at(window, "session_key")
        # The name and the entry of a key belong to the session it leads to now.
        own = current(node) == id
        entry = self.entry(key) if own and key else {}
        named = text_at(node, "label") or text_at(node, "display_name") or about.title(entry) if own else None
        forked = text_at(node, "fork_source_session_id") or text_at(entry, "forkSource", "sessionId")
        subagent, parent = self.parent(id, kin, entry)
        return About(
            key=key,
            title=named or text_at(window, "display_name"),
            channel=text_at(window, "channel") or about.channel(entry, key),
            archived=bool(int_at(node, "archived_at") or int_at(entry, "archivedAt")),
            subagent=subagent,
            parent_id=parent,
            earlier=text_at(window, "previous_session_id") or forked,
        )

    # Refs

    def refs(self, kin: Kin) -> Iterator[SessionRef]:
        """Every session that has events."""
        for id in dict.fromkeys((*self.held, *self.cold)):
            told = (self.rows(id), self.held.get(id), self.parent(id, kin, {}), self.cold.get(id), self.kept(id))
            seen = repr((self.path, told, database_stamp(self.path) if self.stored.damage else None))
            fingerprint = blake2b(seen.encode("utf-8", "replace"), digest_size=16).hexdigest()
            count = self.held[id][0] if id in self.held else int_at(self.cold[id], "event_count") or 0
            yield SessionRef(f"{self.agent}/{id}", self.path, fingerprint, EVENT_BYTES * count, (id,))
        self.stored.check()

    def kept(self, id: str) -> str | None:
        """The fingerprint of the file that a session in cold storage is kept in."""
        found = stamp(self.archive_path(id)) if id in self.cold else None
        return found[0] if found else None

    # Reading

    def read(self, agent: str, ref: SessionRef, kin: Kin) -> Sequence[Session]:
        from amux.readers.openclaw import transcript  # noqa: PLC0415 - a list of unchanged sessions does without

        id = self.id_of(ref)
        told = self.about(id, kin)
        found, active = self.events(id)
        header = next((event for _, event in found if event.get("type") == "session"), None)
        own = [(seq, event) for seq, event in found if event.get("type") != "session"]
        places = {seq: place for place, (seq, _) in enumerate(own)}
        log = transcript.Log(
            header or {"id": id, "timestamp": self.windows.get(id, {}).get("created_at")},
            [event for _, event in own],
            told.earlier if told.earlier != id else None,
        )
        branch = [places[seq] for seq in active if seq in places] if active else None
        return transcript.sessions(agent, id, self.path, log, told, branch)

    def id_of(self, ref: SessionRef) -> str:
        if not ref.files:
            raise UnreadableSession(self.path, str(self.stored.damage or "it cannot be read"))
        return ref.files[0]

    def events(self, id: str) -> tuple[list[Event], list[int] | None]:
        """The events of a session, and the numbers of the active ones where the store knows them.

        Raises UnreadableSession where damage lets none be read.
        """
        if id not in self.held and id in self.cold:
            return events.archived(self.archive(id))
        found = list(events.stored(self.event_rows(id)))
        if not found:
            self.stored.check()
        if any(STUB in event for _, event in found):
            words = self.words(id)
            found = [(seq, events.completed(event, words)) for seq, event in found]
        return found, self.active(id, found[-1][0]) if found else None

    def archive_path(self, id: str) -> str:
        name = text_at(self.cold[id], "archive_name") or ""
        return os.path.join(self.cold_directory, name if ARCHIVE_NAME.fullmatch(name) else "")

    def archive(self, id: str) -> bytes:
        """The lines of a session in cold storage. Raises UnreadableSession."""
        path = self.archive_path(id)
        blob = self.archive_blob(id) or (bytes_of(path, packed.LARGEST_ARCHIVE) if stamp(path) else None)
        if blob is None:
            raise UnreadableSession(path, "the archive of the session is gone")
        found = packed.unpacked(blob, packed.LARGEST_ARCHIVE)
        if found is None:
            raise UnreadableSession(path, "it is damaged" if _zstd.decoder() else _zstd.MISSING)
        return found

    def raw(self, ref: SessionRef) -> Json:
        id = self.id_of(ref)
        key = text_at(self.windows.get(id), "session_key") or ""
        found, _ = self.events(id)
        return {
            "window": self.all_columns(WINDOWS, "session_id", id),
            "node": self.all_columns(NODES, "session_key", key),
            "events": [{name: value for name, value in event.items() if name != STUB} for _, event in found],
        }


def current(node: Record) -> str | None:
    """The session a key leads to."""
    return text_at(node, "current_session_id") or text_at(node, "session_id")
