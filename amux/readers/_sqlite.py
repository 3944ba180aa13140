"""Another program's SQLite database, read without a trace.

`mode=ro` on a database in WAL mode opens `-wal` and `-shm` for writing and may leave them behind, and `immutable=1` does
not see what is only in the `-wal`. So: no `-shm`, nothing in the `-wal` and no journal, `immutable=1`; else a private copy.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from amux.errors import UnreadableSession
from amux.readers._base import stamp

MAGIC = b"SQLite format 3\0"
COPY_LIMIT = 256 * 2**20
"""Above this a copy costs more than it saves: `mode=ro` then, with its shared locks."""
ATTEMPTS = 5
SIDECARS = ("-wal", "-journal")


def database_stamp(path: str | os.PathLike[str]) -> str:
    """A fingerprint of a database that changes when its content may have: its own file's and its -wal's."""
    found = [stamp(path), *(stamp(f"{os.fspath(path)}{suffix}") for suffix in SIDECARS)]
    return "|".join(f"{one[0]}" if one else "" for one in found)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """A connection that sees every committed row and changes nothing beside the database.

    Raises UnreadableSession, also for errors of SQLite inside the block: a damaged page costs one session, not the run.
    """
    name = os.fspath(path)
    try:
        check(name)
        with connected(name) as db:
            db.text_factory = lambda raw: raw.decode("utf-8", "replace")
            yield db
    except (sqlite3.Error, UnicodeError) as error:  # Python cannot even quote the damaged part of a schema
        raise UnreadableSession(name, str(error)) from error
    except OSError as error:
        raise UnreadableSession(name, error.strerror or str(error)) from error


def check(path: str) -> None:
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableSession(path, "it is no regular file")
    with open(path, "rb") as file:
        head = file.read(len(MAGIC))
    if head and head != MAGIC:
        raise UnreadableSession(path, "it is no SQLite database")


@contextmanager
def connected(path: str) -> Iterator[sqlite3.Connection]:
    beside = [found[1] for suffix in SIDECARS if (found := stamp(path + suffix))]
    # With a -shm somebody may have it open and move rows into it at any time, even if the -wal is empty just now.
    if not any(beside) and not stamp(path + "-shm"):
        with closing(path, "mode=ro&immutable=1") as db:  # without mode=ro it would be opened for writing
            yield db
        return
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - most databases need no copy

    with TemporaryDirectory(prefix="amux-") as private:
        small = sum(beside) + os.stat(path).st_size <= COPY_LIMIT
        copy = snapshot(path, private) if small else None
        with closing(copy, "mode=rw") if copy else closing(path, "mode=ro") as db:
            yield db


@contextmanager
def closing(path: str, options: str) -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(uri(path, options), uri=True, timeout=5)
    try:
        db.execute("pragma query_only = on")
        yield db
    finally:
        db.close()


def uri(path: str, options: str) -> str:
    """A path as SQLite takes it with options; a name may hold what has a meaning in a URI."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?{options}"


def snapshot(path: str, directory: str) -> str | None:
    """A copy of a database and of what lies beside it that belong together; None when a busy writer left no time for one.

    The database is copied first: what a checkpoint moves into it meanwhile is still in the -wal, as long as that was not
    begun anew, and frames added to the -wal do no harm.
    """
    import shutil  # noqa: PLC0415

    copy = os.path.join(directory, "copy.db")
    for _ in range(ATTEMPTS):
        before = generation(path)
        shutil.copyfile(path, copy)
        for suffix in SIDECARS:
            with suppress(FileNotFoundError):
                os.unlink(copy + suffix)  # of an earlier attempt
            if stamp(path + suffix):
                with suppress(FileNotFoundError):  # checkpointed meanwhile: the generation will differ
                    shutil.copyfile(path + suffix, copy + suffix)
        if generation(path) == before:
            return copy
    return None


def generation(path: str) -> bytes | str:
    """What differs when copies of a database and its -wal no longer belong together: the salts of a -wal in use, else times."""
    head = b""
    if stamp(path + "-wal"):
        with suppress(FileNotFoundError), open(path + "-wal", "rb") as wal:
            head = wal.read(32)
    return head or database_stamp(path)


def columns(db: sqlite3.Connection, table: str) -> frozenset[str]:
    """The columns a table has; none when there is no such table. Agents add columns with every version."""
    return frozenset(row[1] for row in db.execute(f'pragma table_info("{table}")'))


def rows(db: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
    """The rows of a query as objects."""
    cursor = db.execute(query, values)
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))
