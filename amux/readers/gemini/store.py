"""Gemini CLI's store by names and small files alone: which files belong together, and where each project lies.

Up to 0.28 a project's directory is named by the sha256 of the cwd, since 0.29 by a slug, whose owner stands in
`.project_root` inside it (and in `history/<slug>/`) and in `projects.json`.
"""

import os
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256

from amux.errors import UnreadableSession
from amux.readers._base import SessionRef, entries, stamp
from amux.readers._json import dict_at, document, text_of

NAME = re.compile(r"session-(?:\d{4}-\d\d-\d\dT\d\d-\d\d|\d+)-(.+)\.jsonl?")
EXTENSION = re.compile(r"\.jsonl?$")
PLAIN = "sessions"
LONGEST_PATH = 32768


class Store:
    """`files` has, for each key, the files that may hold one session, with the project each lies in."""

    def __init__(self, root: str, home: str) -> None:
        self.history, projects = os.path.join(root, "history"), os.path.join(root, "tmp")
        self.files: dict[str, dict[str, str]] = {}
        for key, path, project in found(root):
            self.files.setdefault(key, {})[path] = project
        self.slugs = {slug: cwd for cwd, slug in registered(f"{root}/projects.json").items()}
        self.owners = {one.name: cwd for one in entries(projects) if (cwd := self.owner(one))}
        self.hashes = {digest(cwd): cwd for cwd in (*self.slugs.values(), *self.owners.values(), home)}

    def refs(self) -> Iterator[SessionRef]:
        for key, files in self.files.items():
            stamps = {path: mark for path in files if (mark := stamp(path))}
            if stamps:
                marks = [f"{path}:{mark}" for path, (mark, _) in stamps.items()] + self.cwds(key, stamps)
                first, *others = stamps
                yield SessionRef(key, first, "|".join(marks), sum(size for _, size in stamps.values()), tuple(others))

    def cwds(self, key: str, paths: Iterable[str]) -> list[str]:
        """The directories of the projects these files lie in, as far as they are known."""
        projects = (self.files.get(key, {}).get(path, "") for path in paths)
        return list(dict.fromkeys(cwd for project in projects if (cwd := self.cwd(project))))

    def cwd(self, project: str) -> str | None:
        """A project's directory by its name in the store. A slug may look like a hash: its owner tells."""
        return self.owners.get(project) or self.slugs.get(project) or self.hashes.get(project)

    def owner(self, project: os.DirEntry[str]) -> str | None:
        return marked(project.path) or marked(os.path.join(self.history, project.name))

    def named(self, recorded: str) -> tuple[str, str | None]:
        """The key of a file that was recorded by its path, on whichever machine, and where it is now; None: gone."""
        *folders, name = re.split(r"[\\/]", recorded)
        key = short(name) if name.startswith("session-") else f"{''.join(folders[-1:])}/{EXTENSION.sub('', name)}"
        same = [path for path in self.files.get(key, ()) if os.path.basename(path) == name and stamp(path)]
        same.sort(key=lambda path: self.files[key][path] not in folders)
        return key, next(iter(same), None)


def found(root: str) -> Iterator[tuple[str, str, str]]:
    """Every file that may be a session's: its key, its path, its project."""
    for project in entries(os.path.join(root, "tmp")):
        for entry in entries(f"{project.path}/chats"):
            if not EXTENSION.search(entry.name):
                if entry.is_symlink():
                    continue  # a sub-agent's directory is made by gemini; a link may lead back here
                for agent in entries(entry.path):
                    if EXTENSION.search(agent.name):
                        yield f"{entry.name}/{EXTENSION.sub('', agent.name)}", agent.path, project.name
            elif entry.name.startswith("session-"):
                yield short(entry.name), entry.path, project.name
    for entry in entries(f"{root}/{PLAIN}"):
        if EXTENSION.search(entry.name):
            yield f"{PLAIN}/{EXTENSION.sub('', entry.name)}", entry.path, ""


def short(name: str) -> str:
    """The part of a session's id that its file's name carries."""
    match = NAME.fullmatch(name)
    return match[1] if match else EXTENSION.sub("", name)


def registered(path: str) -> dict[str, str]:
    try:
        projects = dict_at(document(path), "projects") if stamp(path) else {}
    except UnreadableSession:
        return {}
    return {cwd: slug for cwd, slug in projects.items() if cwd and isinstance(slug, str)}


def marked(directory: str) -> str | None:
    try:
        return text_of(f"{directory}/.project_root", LONGEST_PATH).strip("\0\r\n ") or None
    except UnreadableSession:
        return None


def digest(path: str) -> str:
    return sha256(path.encode("utf-8", "replace")).hexdigest()
