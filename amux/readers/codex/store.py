"""Where rollouts lie: found by their names and stats, without opening them.

A rollout's name ends in its thread's id. A thread that was taken back goes on in another file, whose name has a rollout
id of its own after the thread's; all files of a thread are one ref.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from amux.readers._base import SessionRef, entries, stamp
from amux.readers.codex.index import UNKNOWN, Known

UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
NAMED = re.compile(f"({UUID})(?:_({UUID}))?")
PACKED = ".zst"
SUFFIXES = (".jsonl", ".json", f".jsonl{PACKED}")
LIVE, ARCHIVE = "sessions", "archived_sessions"
DEEPEST = 3
"""Directories below `sessions/`: year, month, day."""


class Rollout(NamedTuple):
    """One file of a thread. `named`: its name has the thread's id; else only its header can tell."""

    id: str
    thread: str
    path: str
    named: bool
    archived: bool

    @property
    def name(self) -> str:
        """The file's name as it is when not compressed."""
        return os.path.basename(self.path).removesuffix(PACKED)


class Found(NamedTuple):
    """A rollout, its fingerprint and its size."""

    rollout: Rollout
    fingerprint: str
    size: int

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """Of two copies of a rollout the better one: not archived, named as codex names it, plain, longer."""
        one = self.rollout
        return not one.archived, one.name.startswith("rollout-"), not one.path.endswith(PACKED), self.size


def rollout_at(root: str, path: str) -> Rollout | None:
    """The rollout a path names; None when it is none."""
    directory, name = os.path.split(path)
    archived = path.startswith(os.path.join(root, ARCHIVE, ""))
    return rollout_named(name, path, flat=directory == os.path.join(root, LIVE), archived=archived)


def rollout_named(name: str, path: str, *, flat: bool, archived: bool) -> Rollout | None:
    """Names begin with `rollout-`, but for the `sessions/<id>.jsonl` of older documents."""
    plain = name.removesuffix(PACKED)
    begins = plain.startswith("rollout-")
    if not begins and not (flat and plain.endswith(".jsonl")):
        return None
    if ids := NAMED.search(plain):
        thread = ids[1].lower()
        return Rollout((ids[2] or thread).lower(), thread, path, named=True, archived=archived)
    thread = plain.rpartition(".")[0].removeprefix("rollout-")
    return Rollout(thread, thread, path, named=False, archived=archived)


def rollouts(root: str) -> dict[str, Found]:
    """Every rollout below a root by its id; of copies the best one."""
    best: dict[str, Found] = {}
    for directory in (LIVE, ARCHIVE):
        for entry, depth in files(os.path.join(root, directory)):
            archived = directory == ARCHIVE
            rollout = rollout_named(entry.name, entry.path, flat=depth == 0 and not archived, archived=archived)
            own = stamp(entry.path) if rollout else None
            if rollout is None or own is None or not own[1]:
                continue
            found = Found(rollout, *own)
            if rollout.id not in best or best[rollout.id].rank < found.rank:
                best[rollout.id] = found
    return best


def files(directory: str, depth: int = 0) -> Iterator[tuple[os.DirEntry[str], int]]:
    """The files below a directory whose names could be a rollout's, and how deep; directories may be links, even to one above."""
    for entry in entries(directory):
        if entry.name.endswith(SUFFIXES):
            yield entry, depth
        elif depth < DEEPEST and os.path.isdir(entry.path):
            yield from files(entry.path, depth + 1)


def refs(found: Iterable[Found], known: Mapping[str, Known]) -> Iterator[SessionRef]:
    """One ref per thread; what files shared by all threads say of one is part of its fingerprint."""
    threads: dict[str, list[Found]] = {}
    for one in found:
        threads.setdefault(one.rollout.thread, []).append(one)
    for thread, own in threads.items():
        told = known.get(thread, UNKNOWN)
        if len(own) == 1:
            one = own[0]
            yield SessionRef(
                thread, one.rollout.path, f"{one.fingerprint}|{told if told is not UNKNOWN else ''}", one.size
            )
            continue
        own.sort(key=lambda one: (one.rollout.name == told.active, one.rollout.id))
        stamps = "|".join(f"{one.rollout.path}:{one.fingerprint}" for one in own)
        *others, active = (one.rollout.path for one in own)
        yield SessionRef(thread, active, f"{stamps}|{told}", sum(one.size for one in own), tuple(others))
