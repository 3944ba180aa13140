"""Where a session of Gemini CLI ran: no field says so, but `projectHash` is the sha256 of it and proves a guess."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from amux.readers._json import dict_at, text_at
from amux.readers.gemini.record import calls_of, parts
from amux.readers.gemini.replay import Log
from amux.readers.gemini.store import digest

WORKSPACE = re.compile(r"\*\*Workspace Directories:\*\*\n((?:  - .+\n)+)")
ABSOLUTE = re.compile(r"(?:/|[A-Za-z]:[\\/])\S")
LAST_STEP = re.compile(r"[\\/][^\\/]*$")


def directory(log: Log, known: Sequence[str]) -> str | None:
    """The cwd of a session: of what its store knows and what its messages name, the one that its hash proves.

    Without proof the store is believed; the messages only when there is no hash at all, since an import brings those of
    another directory.
    """
    for path in chain(known, workspace(log), touched(log)):
        if digest(path) == log.project_hash:
            return path
    return next(iter(known), None) or (None if log.project_hash else next(workspace(log), None))


def workspace(log: Log) -> Iterator[str]:
    """The directories a session was given, the cwd first."""
    yield from log.directories
    for record in log.records.values():
        for part in parts(record.get("content")) if record.get("type") == "user" else ():
            for block in WORKSPACE.findall(text_at(part, "text") or ""):
                yield from (line.removeprefix("  - ") for line in block.splitlines())


def touched(log: Log) -> Iterator[str]:
    """The paths that tools were given and every directory above them."""
    seen = set[str]()
    for record in log.records.values():
        for call in calls_of(record):
            for path in dict_at(call, "args").values():
                while isinstance(path, str) and ABSOLUTE.match(path) and path not in seen:
                    seen.add(path)
                    yield path
                    path = LAST_STEP.sub("", path)  # noqa: PLW2901 - one step up at a time
