"""Where Cursor's sessions lie, found by names alone: the CLI's databases and the transcripts."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import md5
from typing import Any

from amux.errors import UnreadableSession
from amux.readers._base import SessionRef, entries, stamp
from amux.readers._json import Record, document
from amux.readers._sqlite import database_stamp

STORE, SIDECAR = "store.db", "meta.json"
NAME = re.compile(r"[\w-]+")


class Rank(IntEnum):
    """Which of several records of one session is the best: the lowest."""

    STORE = 0
    COMPOSER = 1
    PANE = 2
    TABLES = 3
    TRANSCRIPT = 4
    TEXT = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A session in one of the stores, not yet opened; `folder` and `parent` are what only other records tell of it."""

    id: str
    rank: Rank
    path: str
    fingerprint: str
    size: int = 0
    folder: str = ""
    parent: str = ""


def ref(same: Iterable[Found]) -> SessionRef:
    """The ref of a session that is found in some places: the best one, the others to fall back on."""
    best, *others = sorted(same, key=lambda one: (one.rank, -one.size))
    folder = next((one.folder for one in (best, *others) if one.folder), "")
    parent = next((one.parent for one in (best, *others) if one.parent), "")
    told = (f"{one.path} {one.fingerprint}" for one in (best, *others))
    return SessionRef(
        best.id,
        best.path,
        "\n".join((*told, folder, parent)),
        best.size,
        (folder, parent, *(one.path for one in others)),
    )


def whole(path: str) -> Record:
    """The object a small JSON file holds; an empty one when it holds none, cannot be read or is no file."""
    try:
        found: Any = document(path) if stamp(path) else None
    except UnreadableSession:
        return {}
    return found if isinstance(found, dict) else {}


# The CLI


def stores(home: str, folders: Mapping[str, str]) -> Iterator[Found]:
    """Every session of the CLI: `chats/<md5 of the cwd>/<id>/`, and those of editors that run it, `acp-sessions/<id>/`.

    `folders` are the directories that are known, by their md5.
    """
    for place in (*(entry.path for entry in entries(f"{home}/chats")), f"{home}/acp-sessions"):
        folder = folders.get(os.path.basename(place), "")
        for entry in entries(place):
            path = f"{entry.path}/{STORE}"
            if (own := stamp(path)) and (size := own[1] + wal_size(path)):
                beside = stamp(f"{entry.path}/{SIDECAR}")
                fingerprint = f"{database_stamp(path)} {beside[0] if beside else ''}"
                yield Found(entry.name, Rank.STORE, path, fingerprint, size, folder)


def bucket(folder: str) -> str:
    """The name under which the CLI keeps the chats of a directory."""
    return md5(folder.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def wal_size(path: str) -> int:
    found = stamp(f"{path}-wal")
    return found[1] if found else 0


# Transcripts


def transcripts(home: str) -> Iterator[Found]:
    """Every transcript: of a project, or of none at all."""
    projects = f"{home}/projects"
    for folder in (projects, *(entry.path for entry in entries(projects) if entry.name != "agent-transcripts")):
        for entry in entries(f"{folder}/agent-transcripts"):
            stem, extension = os.path.splitext(entry.name)
            if extension in (".jsonl", ".txt"):
                yield from transcript(entry.path, stem)
            elif not extension:
                yield from transcript(f"{entry.path}/{stem}.jsonl", stem)
                yield from subagents(f"{entry.path}/subagents", stem)


def subagents(folder: str, parent: str) -> Iterator[Found]:
    for entry in entries(folder):
        stem, extension = os.path.splitext(entry.name)
        if extension == ".jsonl":
            yield from transcript(entry.path, stem, parent)


def transcript(path: str, stem: str, parent: str = "") -> Sequence[Found]:
    own = stamp(path) if NAME.fullmatch(stem) else None
    if not own or not own[1]:
        return ()
    rank = Rank.TEXT if path.endswith(".txt") else Rank.TRANSCRIPT
    return (Found(stem, rank, path, *own, parent=parent),)
