"""A directory of transcripts, `<id>.jsonl`, and the index beside it, sessions.json: every version before 2026.8.

A fork's file is `<time>_<id>.jsonl`, that of a Telegram topic `<id>-topic-<n>.jsonl`. The index has an entry for each key,
with the session it leads to now; older sessions of a key are files it no longer names. Its values are large. What it says
of tokens and costs is that of the last run. No sessions: `*.trajectory.jsonl` (which repeat the usage),
`*.checkpoint.<uuid>.jsonl`, `*.jsonl.deleted.*` and `*.jsonl.reset.*` (archives of what was deleted or rolled over), `*.lock`,
`*.bak*`.
"""

import os
from collections.abc import Iterator, Sequence
from functools import cached_property

from amux.errors import UnreadableSession
from amux.model import Json, Session
from amux.readers._base import SessionRef, entries, stamp
from amux.readers._json import Record, dict_at, document, int_at, records, text_at
from amux.readers.openclaw import about
from amux.readers.openclaw.about import About
from amux.readers.openclaw.names import id_in, is_subagent
from amux.readers.openclaw.store import Kin

SUFFIX = ".jsonl"


class Folder:
    """`path` is the directory, `index` the file that names its sessions."""

    def __init__(self, agent: str, path: str, index: str) -> None:
        self.agent = agent
        self.path = path
        self.index = index

    def holds(self, path: str) -> bool:
        return os.path.dirname(path) == self.path and path.endswith(SUFFIX)

    def state(self) -> str:
        listed = ((entry.name, stamp(entry.path)) for entry in entries(self.path) if entry.name.endswith(SUFFIX))
        found = " ".join(f"{name}:{one[0]}" for name, one in listed if one)
        index = stamp(self.index)
        return f"{self.path} {index[0] if index else ''} {found}"

    @cached_property
    def named(self) -> dict[str, Record]:
        """The entries of the index by their keys."""
        try:
            found = document(self.index) if stamp(self.index) else None
        except UnreadableSession:
            found = None
        return {key: entry for key, entry in dict_at(found).items() if isinstance(entry, dict)}

    @cached_property
    def keys(self) -> dict[str | None, str]:
        """The key that leads to each session."""
        return {text_at(entry, "sessionId"): key for key, entry in self.named.items()}

    def session_of(self, key: str, when: int | None) -> str | None:
        return text_at(self.named.get(key), "sessionId")

    def key_of(self, session_id: str) -> str | None:
        return self.keys.get(session_id)

    def about(self, id: str, kin: Kin) -> About:
        key = self.keys.get(id)
        entry = self.named[key] if key else {}
        spawned = text_at(entry, "spawnedBy")
        subagent = bool(spawned or (key and is_subagent(key)))
        above = (spawned or text_at(entry, "parentSessionKey")) if subagent else None
        parent = kin(above, int_at(entry, "createdAt") or int_at(entry, "sessionStartedAt")) if above else None
        return About(
            key=key,
            title=about.title(entry),
            channel=about.channel(entry, key),
            archived=bool(int_at(entry, "archivedAt")),
            subagent=subagent,
            parent_id=parent if parent != id else None,
            earlier=text_at(entry, "forkSource", "sessionId"),
        )

    def refs(self, kin: Kin) -> Iterator[SessionRef]:
        for entry in entries(self.path):
            if not entry.name.endswith(SUFFIX):
                continue
            stem = entry.name.removesuffix(SUFFIX)
            # An id may hold a dot; but so do the names of what is derived from a transcript.
            if "." in stem and id_in(stem) not in self.keys:
                continue
            found = stamp(entry.path)
            if found and found[1]:
                id = id_in(stem)
                yield SessionRef(f"{self.agent}/{id}", entry.path, f"{found[0]} {self.about(id, kin)}", found[1])

    def read(self, agent: str, ref: SessionRef, kin: Kin) -> Sequence[Session]:
        from amux.readers.openclaw import transcript  # noqa: PLC0415 - a list of unchanged sessions does without

        id = id_in(os.path.basename(ref.path).removesuffix(SUFFIX))
        told = self.about(id, kin)
        log = transcript.Log.of(records(ref.path))
        log.earlier = told.earlier
        return transcript.sessions(agent, text_at(log.header, "id") or id, ref.path, log, told)

    def raw(self, ref: SessionRef) -> Json:
        return list(records(ref.path))
