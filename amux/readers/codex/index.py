"""What the files beside the rollouts say of a thread: its name, whether it is archived, which of its files goes on.

`session_index.jsonl` is appended to by /rename. `state_<schema number>.sqlite` is an index that may lag behind the
rollouts or lack them; it grows columns with every version, and can lie elsewhere: `sqlite_home` in config.toml, else
$CODEX_SQLITE_HOME.
"""

import os
import re
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from amux.errors import UnreadableSession
from amux.readers._base import Host, entries, stamp
from amux.readers._json import records, text_at, text_of
from amux.readers._sqlite import columns, reading, rows

STATE = re.compile(r"state_(\d{1,9})\.sqlite")
SEPARATOR = re.compile(r"[/\\]")


class Known(NamedTuple):
    """`active` is the name of the file the thread goes on in; `parent` the thread that spawned it."""

    name: str | None = None
    archived: bool = False
    active: str | None = None
    parent: str | None = None


UNKNOWN = Known()


def known_threads(host: Host, root: str) -> dict[str, Known]:
    """What is known of each thread by its id; nothing from a file that cannot be read."""
    found = dict(stored(host, root))
    for thread, name in renamed(os.path.join(root, "session_index.jsonl")):
        found[thread] = found.get(thread, UNKNOWN)._replace(name=name)
    return found


def renamed(path: str) -> Iterator[tuple[str, str]]:
    """Every name a thread was given, in order: the last one counts."""
    if stamp(path) is None:
        return
    try:
        for record in records(path):
            thread, name = text_at(record, "id"), text_at(record, "thread_name")
            if thread and name:
                yield thread, name
    except UnreadableSession:
        return


def stored(host: Host, root: str) -> list[tuple[str, Known]]:
    path = state_file(host, root)
    if path is None:
        return []
    try:
        with reading(path) as db:
            return list(threads_in(db))
    except (UnreadableSession, UnicodeDecodeError):  # SQLite's messages quote the bytes of a damaged schema
        return []


def threads_in(db: sqlite3.Connection) -> Iterator[tuple[str, Known]]:
    have = columns(db, "threads")
    if "id" not in have:
        return
    parents = spawned(db)
    wanted = [name for name in ("name", "archived", "rollout_path") if name in have]
    for row in rows(db, f"select {', '.join(['id', *wanted])} from threads"):
        if thread := text_at(row, "id"):
            active = SEPARATOR.split(text_at(row, "rollout_path") or "")[-1].removesuffix(".zst")
            yield (
                thread,
                Known(text_at(row, "name"), row.get("archived") == 1, active or None, parents.get(thread)),
            )


def spawned(db: sqlite3.Connection) -> dict[str, str]:
    """For each sub-agent the thread that spawned it."""
    if not {"child_thread_id", "parent_thread_id"} <= columns(db, "thread_spawn_edges"):
        return {}
    edges = rows(db, "select child_thread_id child, parent_thread_id parent from thread_spawn_edges")
    return {child: parent for row in edges if (child := text_at(row, "child")) and (parent := text_at(row, "parent"))}


def state_file(host: Host, root: str) -> str | None:
    """The database of the highest schema number in the first place that has one."""
    moved = [configured(root), host.env.get("CODEX_SQLITE_HOME")]
    for directory in [*(str(host.expand(place)) for place in moved if place), root]:
        found = [
            (int(number[1]), entry.path) for entry in entries(directory) if (number := STATE.fullmatch(entry.name))
        ]
        if found:
            return max(found)[1]
    return None


def configured(root: str) -> str | None:
    """`sqlite_home` of config.toml; few set it, so the file is not parsed unless the word is in it."""
    try:
        text = text_of(os.path.join(root, "config.toml"))
    except UnreadableSession:
        return None
    if "sqlite_home" not in text:
        return None
    import tomllib  # noqa: PLC0415 - a setting that hardly anybody has

    try:
        return text_at(tomllib.loads(text), "sqlite_home")
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
