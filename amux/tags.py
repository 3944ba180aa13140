"""The tags a person gave, in a file of amux's own: one JSON object a line, only ever added to.

A line tags a session (`sessionId`) or one that is not there yet: the next fork of a session (`forkOf`), or the next session
an agent begins in a directory (`startedIn`). Which one that became is told by the catalog.
"""

import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from amux.errors import InvalidValue, UnreadableSession
from amux.places import real
from amux.query import milliseconds
from amux.readers._base import stamp
from amux.readers._json import Record, at, list_at, records, text_at, time_at
from amux.tables import CREATED
from amux.userdata import data_directory, private

VERSION = 1
LONGEST = 64
AWAITED = timedelta(days=1)
"""How long after its command an agent's new session may begin: people think before they type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is tagged: one session, or the next that is forked from one or begins in a directory."""

    agent: str
    session_id: str | None = None
    fork_of: str | None = None
    started_in: str | None = None


def tag_file() -> Path:
    return data_directory() / "tags.jsonl"


def checked(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once. Raises InvalidValue for one that is no tag."""
    for name in names:
        if not is_tag(name):
            raise InvalidValue(f"{name!r} is no tag; one has 1 to {LONGEST} printable characters and no blanks")
    return tuple(dict.fromkeys(names))


def is_tag(name: object) -> bool:
    return (
        isinstance(name, str)
        and 0 < len(name) <= LONGEST
        and name.isprintable()
        and not any(one.isspace() for one in name)
    )


# Writing


def note(target: Target, names: Sequence[str], *, remove: bool = False, now: datetime | None = None) -> None:
    """Add a line to the file. Raises OSError."""
    named = {"sessionId": target.session_id, "forkOf": target.fork_of, "startedIn": target.started_in}
    record = {
        "v": VERSION,
        "at": (now or datetime.now(UTC)).isoformat(timespec="milliseconds"),
        "agent": target.agent,
        **{key: value for key, value in named.items() if value is not None},
        "remove" if remove else "add": names,
    }
    path = tag_file()
    private(path.parent)
    append(path, orjson.dumps(record) + b"\n")


def append(path: Path, line: bytes) -> None:
    """One line in one write, while no other amux writes; a torn line at the end of the file stays one bad line."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    try:
        lock(file)
        size = os.lseek(file, 0, os.SEEK_END)
        os.lseek(file, max(size - 1, 0), os.SEEK_SET)
        torn = size and os.read(file, 1) != b"\n"
        os.write(file, b"\n" + line if torn else line)
    finally:
        os.close(file)


def lock(file: int) -> None:
    """Wait until the file is ours; closing it lets it go."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415

        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_LOCK, 1)
    else:
        import fcntl  # noqa: PLC0415

        fcntl.flock(file, fcntl.LOCK_EX)


# Reading


def kept(db: sqlite3.Connection, scopes: Mapping[int, str]) -> dict[tuple[str, str], list[str]]:
    """The tags of each (agent, id) of the stores a catalog looks at; broken lines are passed over."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for record in noted(tag_file()):
        agent = text_at(record, "agent") or ""
        id = text_at(record, "sessionId") or became(db, [no for no, name in scopes.items() if name == agent], record)
        if not id:
            continue
        tags = found.setdefault((agent, id), {})
        tags.update(dict.fromkeys(filter(is_tag, list_at(record, "add"))))
        for name in filter(is_tag, list_at(record, "remove")):
            tags.pop(name, None)
    return {key: list(tags) for key, tags in found.items() if tags}


def noted(path: Path) -> Iterator[Record]:
    if not stamp(path):
        return
    try:
        yield from (record for record in records(str(path)) if at(record, "v") == VERSION)
    except UnreadableSession:
        return


def became(db: sqlite3.Connection, scopes: Sequence[int], record: Record) -> str | None:
    """The session that was awaited: the first forked from that one, or begun in that directory, after the line was written."""
    origin, directory, since = text_at(record, "forkOf"), text_at(record, "startedIn"), time_at(record, "at")
    if since is None or not (origin or directory):
        return None
    fork = "coalesce(forked_from, link_from)"
    # A program tells its directory without symbolic links, a person may have typed one.
    wanted, values = f"{fork} = ?", [origin or ""]
    if directory:
        wanted, values = f"{fork} is null and cwd in (?, ?)", [directory, real(directory)]
    row = db.execute(
        f"select id from session s where scope in ({', '.join(map(str, scopes))}) and kind = 'main' and {wanted}"
        f" and {CREATED} between ? and ? order by {CREATED}, id limit 1",
        (*values, milliseconds(since), milliseconds(since + AWAITED)),
    ).fetchone()
    return row[0] if row else None
