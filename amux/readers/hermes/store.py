"""state.db: which rows of `sessions` are one conversation, and what one is to another.

`parent_session_id` has four meanings. A branch has `_branched_from` in its model_config (0.13 left only the parent's end
reason, which a resume clears). A compression that rotated ends its row with the reason `compression` and goes on under a new
id: one conversation, listed under its newest id. A sub-agent has `_delegate_from` or the source `subagent` (0.13: neither).
Whatever follows a reset on the same messaging channel is a conversation of its own. The upgrade to schema 16 wrote
`_delegate_from: __orphaned__` into ordinary sessions, and `_delegate_from` into branches of 0.13.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

from amux.errors import UnreadableSession
from amux.model import Kind
from amux.readers._base import SessionRef
from amux.readers._json import Record, decoded, text_at
from amux.readers._sqlite import database_stamp
from amux.readers.hermes.database import CWD, Database, number

MESSAGE_BYTES = 2048
"""About what reading a message takes."""
RACE = 10.0
"""Seconds by which a continuation may seem to have begun before the row it continues had ended."""
ORPHANED = "__orphaned__"
RESETS = frozenset({"session_reset", "session_switch", "idle", "daily", "suspended"})
"""Why a row ended that a new conversation follows on the same messaging channel."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a conversation is to others; `unsure`: only its messages tell."""

    kind: Kind = "main"
    parent_id: str | None = None
    forked_from: str | None = None
    unsure: bool = False

    @property
    def related(self) -> bool:
        return self.parent_id is not None or self.forked_from is not None


class Store(Database):
    """A database and what its sessions are to each other; `prefix` is what the keys of its refs begin with."""

    def __init__(self, path: str, prefix: str, db: sqlite3.Connection) -> None:
        super().__init__(path, db)
        self.prefix = prefix

    @cached_property
    def marks(self) -> dict[str, Record]:
        """What hermes noted in the model_config of sessions, by id."""
        found = {}
        for id, row in self.sessions.items():
            config = text_at(row, "model_config")
            if config and '"_' in config and isinstance(noted := decoded(config), dict):
                found[id] = noted
        return found

    def mark(self, id: str, name: str) -> str | None:
        return text_at(self.marks.get(id), name)

    @cached_property
    def following(self) -> dict[str, str]:
        """For each row that a compression ended, the row that continues it."""
        candidates: dict[str, list[str]] = {}
        for id, row in self.sessions.items():
            parent = text_at(row, "parent_session_id")
            compressed = text_at(self.sessions.get(parent or ""), "end_reason") == "compression"
            if parent and compressed and self.continues(id, parent):
                candidates.setdefault(parent, []).append(id)
        return {parent: min(found, key=self.standing) for parent, found in candidates.items()}

    def continues(self, id: str, parent: str) -> bool:
        """Whether a child of a compressed row can be its continuation: neither a branch nor a sub-agent of it."""
        child, ended = self.sessions[id], self.sessions[parent]
        for name in ("_branched_from", "_delegate_from"):
            mark = self.mark(id, name)
            if mark and mark != ORPHANED:
                # A continuation inherits the mark of its row.
                return mark != parent and mark == self.mark(parent, name)
        if child.get("source") == "tool" or (child.get("source") == "subagent" != ended.get("source")):
            return False
        return number(child, "started_at") >= number(ended, "ended_at") - RACE

    def standing(self, id: str) -> tuple[Any, ...]:
        """Of several continuations the one that went on: itself compressed, not given up, written to last."""
        row = self.sessions[id]
        ended = text_at(row, "end_reason")
        _, last = self.held.get(id, (0, 0))
        newest = last if isinstance(last, int) else 0
        return ended != "compression", ended == "ws_orphan_reap", -newest, -number(row, "started_at"), id

    @cached_property
    def chains(self) -> dict[str, list[str]]:
        """The rows of each conversation, oldest first, under the id it is listed by: its newest."""
        continued = set(self.following.values())
        taken = set[str]()
        found = {}
        # Rows that continue each other in a circle have no first one: what is left begins anywhere.
        for first in (*(id for id in self.sessions if id not in continued), *self.sessions):
            chain = []
            id: str | None = first
            while id is not None and id not in taken:
                taken.add(id)
                chain.append(id)
                id = self.following.get(id)
            if chain:
                found[chain[-1]] = chain
        return found

    @cached_property
    def listed(self) -> dict[str, str]:
        """The id under which each row is listed."""
        return {id: newest for newest, chain in self.chains.items() for id in chain}

    def place(self, first: str) -> Place:
        """What the conversation that begins with this row is to others, as far as the rows tell."""
        row = self.sessions[first]
        named = text_at(row, "parent_session_id")
        parent = self.sessions.get(named or "")
        branched, delegated = self.mark(first, "_branched_from"), self.mark(first, "_delegate_from")
        delegated = None if delegated == ORPHANED else delegated
        owner = self.listed.get(named or delegated or branched or "", named or delegated or branched)
        if owner == self.listed[first]:
            return Place()
        if branched:
            return Place(forked_from=owner)
        if row.get("source") == "subagent" or (delegated and parent is None):
            return Place("subagent", parent_id=owner)
        if parent is None or self.mark(first, "_reset_from"):
            return Place()
        follows = not delegated and number(row, "started_at") >= number(parent, "ended_at") > 0
        if follows and parent.get("end_reason") == "branched":
            return Place(forked_from=owner)
        if follows and text_at(parent, "end_reason") in RESETS:
            return Place()
        return Place("main" if follows else "subagent", None if follows else owner, unsure=True)

    def parent(self, first: str) -> str | None:
        """The other conversation that a row names as its parent, if it is there."""
        found = self.listed.get(text_at(self.sessions[first], "parent_session_id") or "")
        return found if found != self.listed[first] else None

    def borrowed_cwd(self, first: str) -> str | None:
        """The directory of the nearest conversation above that has one: branches and sub-agents are given none."""
        seen = set[str]()
        above = self.parent(first)
        while above and above not in seen:
            seen.add(above)
            if cwd := self.recorded_cwd(self.chains[above]):
                return cwd
            above = self.parent(self.chains[above][0])
        return None

    def recorded_cwd(self, chain: Sequence[str]) -> str | None:
        return next((cwd for id in chain if (cwd := text_at(self.sessions[id], "cwd"))), None)

    # Refs

    def refs(self) -> Iterator[tuple[object, SessionRef]]:
        """A ref for each conversation, with what a copy of it in another database has in common with it."""
        for newest, chain in self.chains.items():
            told = [(sorted(self.sessions[id].items()), self.used.get(id), self.held.get(id)) for id in chain]
            kin = self.place(chain[0]), self.borrowed_cwd(chain[0])
            seen = repr((self.path, told, kin, database_stamp(self.path) if self.damage else None))
            fingerprint = blake2b(seen.encode("utf-8", "replace"), digest_size=16).hexdigest()
            size = MESSAGE_BYTES * sum(self.held[id][0] for id in chain if id in self.held)
            ref = SessionRef(self.prefix + newest, self.path, fingerprint, size, (newest,))
            yield (newest, self.sessions[chain[0]].get("started_at")), ref

    def chain(self, newest: str) -> list[str]:
        """Raises UnreadableSession."""
        found = self.chains.get(newest)
        if found is None:
            raise UnreadableSession(self.path, f"session {newest} is no longer in it")
        return found

    def prompt_cwd(self, chain: Iterable[str]) -> str | None:
        """The directory that the system prompt names: up to 0.15 it is kept nowhere else."""
        for id in chain:
            told = self.prompt(id)
            if told and (found := CWD.search(told)):
                return found[1].strip()
        return None
