"""Where codex's rollouts lie, and what the files beside them say of a thread.

A rollout's name ends in its thread's id; a thread that was taken back goes on in another file, whose name has its own
rollout id after the thread's. `session_index.jsonl` and `state_<schema number>.sqlite` know names, what is archived and
which of a thread's files is the active one; either may lag behind the files.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from amux.errors import UnreadableSession
from amux.readers._base import Host, SessionRef, entries, stamp
from amux.readers._json import Record, at, records, text_at
from amux.readers._sqlite import columns, reading, rows

UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
NAMED = re.compile(f"({UUID})(?:_({UUID}))?")
STATE = re.compile(r"state_(\d+)\.sqlite")
PACKED = ".zst"
SUFFIXES = (".jsonl", f".jsonl{PACKED}", ".json")
LIVE, ARCHIVE = "sessions", "archived_sessions"
DEEPEST = 3
"""sessions/YYYY/MM/DD"""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One file of a thread. `named` tells whether its name has the thread's id, or only its header can."""

    id: str
    thread: str
    path: str
    named: bool
    archived: bool


@dataclass(frozen=True, slots=True)
class Known:
    """What the index and the database say of a thread. `active` is the name of the file that goes on."""

    name: str | None = None
    archived: bool = False
    active: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    rollout: Rollout
    fingerprint: str
    size: int

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """Of two copies of a rollout the better one: not archived, named as codex names it, plain, longer."""
        path = self.rollout.path
        plain_name = os.path.basename(path).startswith("rollout-")
        return not self.rollout.archived, plain_name, not path.endswith(PACKED), self.size


def rollout_at(root: str, path: str, *, flat: bool = False) -> Rollout | None:
    """The rollout a path names; None when it is none. `flat`: it lies where older documents put `<id>.jsonl`."""
    name = os.path.basename(path).removesuffix(PACKED)
    stem, suffix = os.path.splitext(name)
    if not name.startswith("rollout-") and not (flat and suffix == ".jsonl"):
        return None
    archived = path.startswith(os.path.join(root, ARCHIVE, ""))
    if ids := NAMED.search(stem):
        thread = ids[1].lower()
        return Rollout((ids[2] or thread).lower(), thread, path, named=True, archived=archived)
    thread = stem.removeprefix("rollout-")
    return Rollout(thread, thread, path, named=False, archived=archived)


def rollouts(root: str) -> dict[str, Found]:
    """Every rollout below a root by its id, found by names and stats alone; of copies the best one."""
    best: dict[str, Found] = {}
    for directory in (LIVE, ARCHIVE):
        for path, flat in files(os.path.join(root, directory)):
            rollout = rollout_at(root, path, flat=flat and directory == LIVE)
            if rollout and (own := stamp(path)) and own[1]:
                found = Found(rollout, *own)
                if rollout.id not in best or best[rollout.id].rank < found.rank:
                    best[rollout.id] = found
    return best


def files(directory: str, depth: int = 0) -> Iterator[tuple[str, bool]]:
    """The files below a directory that a rollout's name could end like, and whether they lie directly in it."""
    for entry in entries(directory):
        if entry.name.endswith(SUFFIXES):
            yield entry.path, depth == 0
        elif depth < DEEPEST and os.path.isdir(entry.path):
            yield from files(entry.path, depth + 1)


def refs(found: Iterable[Found], known: dict[str, Known]) -> Iterator[SessionRef]:
    """One ref per thread. What the shared files say of a thread is part of its fingerprint, not they themselves."""
    threads: dict[str, list[Found]] = {}
    for one in found:
        threads.setdefault(one.rollout.thread, []).append(one)
    for thread, own in threads.items():
        told = known.get(thread, Known())
        own.sort(key=lambda one: (is_active(one.rollout, told), one.rollout.id))
        *others, active = own
        stamps = "|".join(f"{one.rollout.path}:{one.fingerprint}" for one in own)
        values = (told.name, told.archived, told.active, told.parent)
        yield SessionRef(
            thread,
            active.rollout.path,
            f"{stamps}|{values}",
            sum(one.size for one in own),
            tuple(one.rollout.path for one in others),
        )


def is_active(rollout: Rollout, known: Known) -> bool:
    return os.path.basename(rollout.path).removesuffix(PACKED) == known.active


# The files beside the rollouts


def known_threads(host: Host, root: str) -> dict[str, Known]:
    """What is known of each thread besides its rollouts; nothing of what cannot be read."""
    found: dict[str, Known] = {}
    if database := state_file(host, root):
        try:
            with reading(database) as db:
                found = {thread: known for thread, known in threads_in(rows_of(db), edges_of(db))}
        except UnreadableSession:
            found = {}
    for thread, name in names(os.path.join(root, "session_index.jsonl")).items():
        found[thread] = replace(found.get(thread, Known()), name=name)
    return found
