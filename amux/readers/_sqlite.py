"""Another program's SQLite database, read without a trace.

`mode=ro` on a database in WAL mode opens `-wal` and `-shm` for writing and may leave them behind, and `immutable=1` does
not see what is only in the `-wal`. So: no `-shm`, nothing in the `-wal` and no journal, `immutable=1`; else a private copy.

A damaged page makes every query fail that comes by it, however few of the rows are on it; a damaged page of an index need
not even fail, it may just not find them. Salvaged reads what there is all the same.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from amux.errors import UnreadableSession
from amux.readers._base import stamp

MAGIC = b"SQLite format 3\0"
COPY_LIMIT = 256 * 2**20
"""Above this a copy costs more than it saves: `mode=ro` then, with its shared locks."""
ATTEMPTS = 5
SIDECARS = ("-wal", "-journal")
ERRORS = (sqlite3.Error, UnicodeError)
"""What a damaged database raises: the message of an error may quote bytes that are no text."""
DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_TOOBIG})
SMALL = 16 * 2**20
"""Up to this size it takes no time to look whether a database is sound."""
HIGHEST = 2**63 - 1
SMALLEST_ROW = 4
"""No row takes fewer bytes."""
FINE = 256
"""Behind a stretch of row numbers that leads nowhere, the next is looked for in steps of this part of its length."""


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
    db = sqlite3.connect(uri(path, options), uri=True, timeout=5, isolation_level=None)
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
    """The columns a table has; none when there is no such table. Agents add columns with every version.

    A view is no table: no agent has one, and to ask it could take forever.
    """
    asked = "select 1 from sqlite_master where type = 'table' and name = ? collate nocase"
    if not db.execute(asked, (table,)).fetchone():
        return frozenset()
    return frozenset(row[1] for row in db.execute(f"pragma table_info({quoted(table)})"))


def rows(db: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
    """The rows of a query as objects."""
    cursor = db.execute(query, values)
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Salvaged:
    """Tables of a database, read as far as damage lets them be; `damage` is what kept some of it from being read.

    Where they are not sound, temporary copies stand in front of them: of every row that its number leads to.
    """

    def __init__(
        self, path: str, db: sqlite3.Connection, keys: Mapping[str, str], only: Mapping[str, str] | None = None
    ) -> None:
        """`keys` are the tables, each with the column that its rows are asked for by; `only` tells which rows matter.

        Raises UnreadableSession where it cannot even be told which columns they have.
        """
        self.path = path
        self.db = db
        self.keys = keys
        self.only = only or {}
        self.damage: Exception | None = None
        self.copied = False
        try:
            self.columns = {table: columns(db, table) for table in keys}
            pages, size = (db.execute(f"pragma {name}").fetchone()[0] for name in ("page_count", "page_size"))
        except ERRORS as error:
            raise unreadable(path, error) from error
        self.size: int = pages * size
        if not self.sound:
            self.copy()

    @property
    def sound(self) -> bool:
        """Whether tables and indexes are as they should be; a big database is believed until a query fails."""
        if self.size > SMALL:
            return True
        tables = [quoted(table) for table in self.keys if self.columns[table]]
        try:
            self.db.execute("pragma ignore_check_constraints = on")  # they are the agent's own affair, and can be slow
            told = [self.db.execute(f"pragma integrity_check({table})").fetchone() for table in tables]
        except ERRORS:
            return False
        return all(one == ("ok",) for one in told)

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """The rows of a query over the tables. Raises UnreadableSession for what is no damage: somebody's lock, say."""
        try:
            return list(rows(self.db, query, values))
        except ERRORS as error:
            self.lost(error)
        if self.copied:
            return []
        self.copy()
        return self.rows(query, *values)

    def select(self, table: str, wanted: Sequence[str], condition: str = "", *values: Any) -> list[dict[str, Any]]:
        """Rows of a table with those of the columns it has."""
        known = ", ".join(quoted(name) for name in wanted if name in self.columns[table])
        return self.rows(f"select {known} from {table} {condition}", *values) if known else []

    def first(self, table: str, wanted: Sequence[str], condition: str = "", *values: Any) -> dict[str, Any]:
        """The first of such rows; an empty one where there is none."""
        return next(iter(self.select(table, wanted, condition, *values)), {})

    def check(self) -> None:
        """Raises UnreadableSession when something could not be read."""
        if self.damage:
            raise unreadable(self.path, self.damage)

    def lost(self, error: Exception) -> None:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in DAMAGE:
            raise unreadable(self.path, error) from error
        self.damage = error

    def copy(self) -> None:
        """Raises UnreadableSession where there is no room for copies."""
        self.damage = None  # an index that is damaged costs nothing any more
        self.db.execute(f"pragma temp_store = {'memory' if self.size <= SMALL else 'file'}")
        self.db.execute("pragma query_only = off")  # for the copies: the database itself was opened for reading
        try:
            for table in self.keys:
                self.copy_table(table)
            self.copied = True
        except sqlite3.Error as error:
            raise unreadable(self.path, error) from error
        finally:
            for table in () if self.copied else self.keys:
                self.db.execute(f"drop table if exists temp.{table}")
            self.db.execute("pragma query_only = on")

    def copy_table(self, table: str) -> None:
        if not self.columns[table]:
            return
        # In the order they are stored: to reach a later one first, SQLite takes shortcuts by pages it does not need else.
        names = ", ".join(quoted(row[1]) for row in self.db.execute(f"pragma main.table_info({quoted(table)})"))
        self.db.execute(f"create temp table {table} ({names})")
        if self.keys[table] in self.columns[table]:
            self.db.execute(f"create index temp.{table}_key on {table} ({self.keys[table]})")
        matters = f"and ({self.only[table]})" if table in self.only else ""
        copy = (
            f"insert or ignore into temp.{table} (rowid, {names}) "
            f"select rowid, {names} from main.{table} where rowid = ? {matters}"
        )
        # All numbers first: where a row cannot be copied, SQLite sets back what else is being read.
        for number in list(self.numbers(table)):
            try:
                self.db.execute(copy, (number,))
            except ERRORS as error:
                self.lost(error)

    def numbers(self, table: str) -> Iterator[int]:
        """The number of every row that can be reached, by no index; some twice where a page stands in another's place."""
        start, at_most = 0, self.size // SMALLEST_ROW  # where pages lead to each other a table would never end
        while start <= HIGHEST:
            try:
                for (number,) in islice(self.db.execute(numbered(table), (start,)), at_most):
                    yield number
                    start = max(start, number + 1)
            except ERRORS as error:
                self.lost(error)
            else:
                return
            # sqlite3 looks one row ahead: the last one before the damage comes only when it is asked for alone.
            number = self.next_number(table, start)
            yield number
            start = number + 1

    def next_number(self, table: str, start: int) -> int:
        """The first number from `start` on that leads to a row; the highest there can be where there is none."""
        low, high = start - 1, start
        while (found := self.number_from(table, high)) is None:
            low, high = high, min(high + 1 + (high - start) // FINE, HIGHEST)
            if low == HIGHEST:
                return HIGHEST
        while high - low > 1:
            middle = (low + high) // 2
            nearer = self.number_from(table, middle)
            low, high, found = (middle, high, found) if nearer is None else (low, middle, nearer)
        return found

    def number_from(self, table: str, start: int) -> int | None:
        """The first number from `start` on, at the end of the table the highest there can be; None: a damaged page."""
        try:
            number = self.db.execute(f"{numbered(table)} limit 1", (start,)).fetchone() or (HIGHEST,)
        except ERRORS as error:
            self.lost(error)
            return None
        return int(number[0]) if number[0] >= start else None


def numbered(table: str) -> str:
    return f"select rowid from main.{table} not indexed where rowid >= ? order by rowid"


def unreadable(path: str, error: Exception) -> UnreadableSession:
    return UnreadableSession(path, str(error) if isinstance(error, sqlite3.Error) else "its text is damaged")
