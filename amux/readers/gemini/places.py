"""Where a session of Gemini CLI ran: no file of it says so, its project's directory does.

Up to 0.28 that directory is named by the sha256 of the cwd, since 0.29 by a slug, whose owner stands in `.project_root`
inside it (and in `history/<slug>/`) and in `projects.json`. `projectHash` stays the sha256 of the cwd: it proves a guess.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import chain

from amux.errors import UnreadableSession
from amux.readers._base import entries, stamp
from amux.readers._json import dict_at, document, text_at
from amux.readers.gemini.record import calls_of, parts
from amux.readers.gemini.replay import Log

LONGEST_PATH = 32768
WORKSPACE = re.compile(r"\*\*Workspace Directories:\*\*\n((?:  - .+\n)+)")
ABSOLUTE = re.compile(r"(?:/|[A-Za-z]:[\\/])\S")
SEPARATOR = re.compile(r"[\\/][^\\/]*$")


class Places:
    """The directories a store knows of."""

    def __init__(self, root: str, home: str) -> None:
        self.root = root
        self.slugs = {slug: path for path, slug in registered(f"{root}/projects.json").items()}
        self.owners = {entry.name: owner for entry in entries(f"{root}/tmp") if (owner := self.owner(entry.name))}
        known = {*self.slugs.values(), *self.owners.values(), home}
        self.hashes = {digest(path): path for path in known}

    def owner(self, project: str) -> str | None:
        return marked(f"{self.root}/tmp/{project}") or marked(f"{self.root}/history/{project}")

    def cwd(self, project: str) -> str | None:
        """A project's directory by the name of its directory in the store. A slug may look like a hash."""
        return self.owners.get(project) or self.slugs.get(project) or self.hashes.get(project)


def registered(path: str) -> dict[str, str]:
    try:
        projects = dict_at(document(path), "projects") if stamp(path) else {}
    except UnreadableSession:
        return {}
    return {cwd: slug for cwd, slug in projects.items() if cwd and isinstance(slug, str)}


def marked(directory: str) -> str | None:
    path = f"{directory}/.project_root"
    try:
        if stamp(path):
            with open(path, "rb") as file:
                return file.read(LONGEST_PATH).decode("utf-8", "replace").strip("\0\r\n ") or None
    except OSError:
        pass
    return None


def digest(path: str) -> str:
    return sha256(path.encode("utf-8", "replace")).hexdigest()


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
                    path = SEPARATOR.sub("", path)  # noqa: PLW2901 - one step up at a time
