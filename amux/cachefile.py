"""The catalog's file: its tables, where it may lie, and what becomes of one that is damaged."""

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from amux import __version__, search
from amux.readers._base import encodable

BUSY_SECONDS = 600
"""How long to wait for another amux that is filling the catalog."""
WORDS = f'create virtual table {{name}} using fts5 (text, content="", columnsize=0, tokenize="{search.TOKENIZER}")'
SHARDS = "shards-"
SCHEMA = """
    create table meta (name text primary key, value not null);
    create table scope (
        no integer primary key, agent text not null, roots text not null, state text, host text, asked text, unique (agent, roots));
    create table ref (
        no integer primary key, scope integer not null, key text not null, path text not null, fingerprint text not null,
        size integer not null, files blob not null, based_on blob, reason text, unique (scope, key));
    create table session (
        no integer primary key, ref integer not null, scope integer not null, id text not null, kind text not null,
        title text not null, created_at integer not null, updated_at integer not null, turn_count integer not null,
        message_count integer not null, tags text not null, model text, models text not null, cwd text, git_branch text,
        git_commit text, forked_from text, parent_id text, archived integer not null, agent_version text, mode text,
        channel text, path text, usage_recorded integer not null, began integer, times blob not null, offsets blob not null,
        first integer not null,
        root integer, linked integer not null default 0, inherited integer not null default 0, link_from text, link_created integer);
    create index session_by_ref on session (ref);
    create index session_by_id on session (scope, id);
    create index session_by_root on session (root);
    create index session_stretch on session (scope, kind, archived, first, message_count, updated_at);
    create table charge (
        session integer not null, scope integer not null, position integer not null, key integer not null, at integer, model text,
        provider text, input integer, output integer, thinking integer, cached integer, written integer, hour integer not null,
        usd integer, estimate integer, claim integer not null, calls integer not null, aggregate integer not null, message integer,
        owned integer not null default 1);
    create index charge_by_session on charge (session);
    create index charge_by_key on charge (key);
    create table spend (
        session integer not null, scope integer not null, model text, quarter integer, calls integer not null, input integer, output integer,
        thinking integer, cached integer, written integer, usd integer, estimate integer, auto integer, unpriced integer,
        unestimated integer, unrecorded integer, aggregate integer);
    create index spend_by_session on spend (session);
"""
FORMAT = crc32(f"{__version__} {SCHEMA} {WORDS}".encode()) >> 1
"""What a catalog's user_version must be: another schema, or another version's way to read sessions, is built anew."""


def prepared(db: sqlite3.Connection) -> sqlite3.Connection:
    """A connection to a catalog with its tables. Raises sqlite3.DatabaseError when it holds something else."""
    if is_empty(db):
        db.execute("begin immediate")
        if is_empty(db):  # nobody else made it while this one waited
            make(db)
        db.execute("commit")
    if (version := version_of(db)) != FORMAT:
        raise sqlite3.DatabaseError(f"format {version:08x}")
    return db


def is_empty(db: sqlite3.Connection) -> bool:
    """Whether it holds nothing yet: the databases of agents have no version either."""
    return version_of(db) == 0 and not db.execute("select 1 from sqlite_master limit 1").fetchone()


def version_of(db: sqlite3.Connection) -> int:
    found: tuple[int] = db.execute("pragma user_version").fetchone()
    return found[0]


def make(db: sqlite3.Connection) -> None:
    for statement in SCHEMA.split(";"):
        db.execute(statement)
    with suppress(sqlite3.OperationalError):  # an SQLite without FTS5: search then reads the sessions themselves
        db.execute(WORDS.format(name="words"))
    db.execute(f"pragma user_version = {FORMAT}")


def opened(path: Path) -> sqlite3.Connection:
    """Raises OSError where the file is none of the user's own: SQLite would write through a link to another's."""
    with suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or not is_own(found):
            raise OSError(f"{path} is not safe to keep a cache in")
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        path.chmod(0o600)
        # Only a catalog that has been filled is in WAL mode, or the first fill would be written twice. Before that there is
        # nothing in it for which to wait for the disk.
        filled = db.execute("pragma journal_mode").fetchone() == ("wal",)
        db.execute(f"pragma synchronous = {'normal' if filled else 'off'}")
        return prepared(db)
    except BaseException:
        db.close()
        raise


def secure(directory: Path) -> None:
    """Make the cache directory, or make sure that it is the user's own. Raises OSError where it cannot be trusted."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if directory.is_symlink() or not is_own(found) or found.st_mode & 0o022 or not encodable(str(directory)):
        raise OSError(f"{directory} is not safe to keep a cache in")


def is_own(found: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or found.st_uid == os.getuid()


def set_aside(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.replace(path.with_name(path.name + ".broken"))


def clear_away(directory: Path) -> None:
    """Remove what a fill that was killed left behind; whoever fills holds the lock, so nobody uses it."""
    from shutil import rmtree  # noqa: PLC0415

    for left in directory.glob(f"{SHARDS}*"):
        rmtree(left, ignore_errors=True)
