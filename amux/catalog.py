"""The catalog: what every session says of itself, kept fresh.

One SQLite file in the user's cache directory, or the same in memory. It is a cache and nothing else: an answer from it
equals an answer from the files.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from subprocess import SubprocessError
from typing import Any, NamedTuple, Self

import orjson

from amux import cachefile, linking, search, tables
from amux.answers import Answers
from amux.errors import UnreadableSession
from amux.model import Session
from amux.money import Prices
from amux.readers._base import Host, Reader, SessionRef, Watched

FEW = 20_000
"""Messages up to which dead ones in the index do not matter."""
WORTHWHILE = 24 * 2**20
"""Bytes to read from which on starting processes pays."""
HASH_BYTES = 32 * 2**20
"""How much of the index a shard gathers before it writes: with FTS5's 1 MB filling takes twice as long."""
SHADOWS = ("data", "idx", "config")
"""The tables FTS5 keeps a contentless index in: copied as they are, an index moves from one file to another."""
PLAIN = "select key, fingerprint from ref where scope = ? and based_on is null and reason is null"
OTHERS = (
    "select key, fingerprint, based_on, reason from ref where scope = ? and not (based_on is null and reason is null)"
)


class Progress(NamedTuple):
    """How far filling has come, for a progress bar."""

    done: int
    sessions: int
    done_bytes: int
    bytes: int


class Store(NamedTuple):
    """An agent's store as it is now, and its number in the catalog."""

    scope: int
    reader: Reader
    state: str | None
    refs: dict[str, SessionRef]


class Unread(NamedTuple):
    """A ref to be read, and whose it is."""

    store: Store
    ref: SessionRef


class Stale(NamedTuple):
    """What a refresh has to do: numbers of refs to drop, refs to read."""

    drop: list[int]
    read: list[Unread]

    @property
    def nothing(self) -> bool:
        return not self.drop and not self.read


Report = Callable[[Progress], None]


def counter(unread: Sequence[Unread], report: Report | None) -> Callable[[int], None]:
    """What tells `report` of each ref that was read."""
    total = sum(ref.size for _, ref in unread)
    done = [0, 0]

    def advance(size: int) -> None:
        done[0] += 1
        done[1] += size
        if report:
            report(Progress(done[0], len(unread), done[1], total))

    return advance


class Catalog(Answers):
    def __init__(self, db: sqlite3.Connection, path: Path | None, prices: Prices) -> None:
        super().__init__(db)
        self.path = path
        self.prices = prices
        self.added = 0
        """How many messages this run has put into the index."""
        self.rows = 0
        """How many messages were ever numbered: numbers of dropped ones are not used again, so their index rows stay dead."""
        self.afterwards = ExitStack()
        """What is to be done when the transaction under way is over."""

    @classmethod
    def in_memory(cls, prices: Prices) -> Self:
        return cls(cachefile.prepared(sqlite3.connect(":memory:", isolation_level=None)), None, prices)

    @classmethod
    def at(cls, path: Path, prices: Prices) -> Self:
        """The catalog in a file; one that is damaged or of another format is renamed away and begun anew.

        Raises sqlite3.Error or OSError where it cannot be kept: the caller then does without.
        """
        cachefile.secure(path.parent)
        try:
            return cls(cachefile.opened(path), path, prices)
        except sqlite3.OperationalError:  # locked, no room, not ours to write: nothing is wrong with the file
            raise
        except sqlite3.DatabaseError:
            cachefile.set_aside(path)
            return cls(cachefile.opened(path), path, prices)

    @classmethod
    def shard(cls, path: Path, rows: int, prices: Prices) -> Self:
        """A catalog to be absorbed by another: its messages are numbered from `rows` on."""
        db = cachefile.prepared(sqlite3.connect(path, isolation_level=None))
        db.executescript("pragma journal_mode = off; pragma synchronous = off;")
        db.execute("begin")
        made = cls(db, path, prices)
        made.rows = rows
        if made.searchable:
            tuned = [("hashsize", HASH_BYTES), ("automerge", 0)]
            db.executemany("insert into words (words, rank) values (?, ?)", tuned)
        return made

    def finish(self) -> None:
        """Close a shard: what was added to it is there to be absorbed."""
        self.db.execute("insert into meta values ('rows', ?)", (self.rows,))
        self.db.execute("commit")
        self.close()

    def close(self) -> None:
        self.db.close()

    def abandon(self) -> None:
        """Give up a file that failed in use; unless it is sound, the next run finds it out of the way."""
        self.close()
        if self.path:
            cachefile.set_aside(self.path)

    # Keeping it fresh

    def refresh(self, readers: Iterable[Reader], report: Report | None = None) -> None:
        """Read again what changed of the agents' stores, and drop what is gone."""
        self.reprice()
        stores = list(filter(None, map(self.changed, readers)))
        if not self.stale(stores).nothing:
            self.db.execute("pragma synchronous = normal")
            with self.afterwards:
                self.db.execute("begin immediate")
                try:
                    # Another process may have filled it while this one waited for the lock: look again.
                    self.update(stores, report)
                except BaseException:
                    self.db.execute("rollback")
                    raise
                self.db.execute("commit")
            with suppress(sqlite3.OperationalError):  # somebody else is at it: next time
                self.db.execute("pragma journal_mode = wal")
        for store in stores:
            if store.state is not None:
                self.db.execute("update scope set state = ? where no = ?", (store.state, store.scope))

    def changed(self, reader: Reader) -> Store | None:
        """A store that may have changed since it was last seen."""
        scope, seen = self.scope(reader)
        self.scopes[scope] = reader.agent
        state = reader.state()
        if state is not None and state == seen:
            return None
        return Store(scope, reader, state, {ref.key: ref for ref in reader.refs()})

    def unused(self, agent: str, host: Host) -> bool:
        """Whether an agent is known to have left nothing on this host: its reader then need not even be loaded.

        That is so when it was looked for before, what its places depend on is the same, and none of them is there.
        """
        seen = self.db.execute(
            "select no, roots, asked from scope where agent = ? and host = ? and no not in (select scope from ref)",
            (agent, host.name),
        )
        for no, roots, asked in seen.fetchall():
            variables = orjson.loads(asked).items()
            if all(host.env.get(name) == value for name, value in variables) and not any(
                map(os.path.exists, roots.split("\n"))
            ):
                self.scopes[no] = agent
                return True
        return False

    def reprice(self) -> None:
        """Estimate every call anew when the prices are others than those of the estimates kept."""
        now = self.prices.fingerprint
        if self.meta("prices", "") == now:
            return
        self.db.execute("begin immediate")
        try:
            rows = self.db.execute(
                "select rowid, model, provider, at, input, output, thinking, cached, written, hour, aggregate from charge"
            )
            estimates = [(self.prices.estimate(tables.charge_from(row)), row[0]) for row in rows.fetchall()]
            self.db.executemany("update charge set estimate = ? where rowid = ?", estimates)
            linking.add_up_all(self.db)
            self.db.execute("insert or replace into meta values ('prices', ?)", (now,))
        except BaseException:
            self.db.execute("rollback")
            raise
        self.db.execute("commit")

    def scope(self, reader: Reader) -> tuple[int, str | None]:
        """The number of a store as this host sees it, and the state it was last seen in."""
        roots = "\n".join(str(root) for root in reader.roots())
        find = "select no, state from scope where agent = ? and roots = ?"
        found = self.db.execute(find, (reader.agent, roots)).fetchone()
        if not found:
            asked = reader.host.env.asked if isinstance(reader.host.env, Watched) else {}
            row = (reader.agent, roots, reader.host.name, orjson.dumps(asked).decode())
            self.db.execute("insert or ignore into scope (agent, roots, host, asked) values (?, ?, ?, ?)", row)
            found = self.db.execute(find, (reader.agent, roots)).fetchone()
        return found[0], found[1]

    def stale(self, stores: Iterable[Store]) -> Stale:
        drop: list[int] = []
        read: list[Unread] = []
        for store in stores:
            now = {key: ref.fingerprint for key, ref in store.refs.items()}
            plain = dict(self.db.execute(PLAIN, (store.scope,)).fetchall())
            others = self.db.execute(OTHERS, (store.scope,)).fetchall()
            kept = {key for key, *seen in others if is_fresh(store, key, *seen)}
            if len(plain) + len(kept) == len(now) and len(kept) == len(others) and plain.items() <= now.items():
                continue  # as nearly always
            kept.update(key for key, _ in plain.items() & now.items())
            known = self.db.execute("select no, key from ref where scope = ?", (store.scope,))
            drop += [no for no, key in known if key not in kept]
            read += [Unread(store, ref) for key, ref in store.refs.items() if key not in kept]
        return Stale(drop, read)

    def update(self, stores: Sequence[Store], report: Report | None) -> None:
        stale = self.stale(stores)
        for no in stale.drop:
            self.forget(no)
        if self.mostly_dead():
            self.clear()
            stale = self.stale(stores)
        self.rows = self.meta("rows", 0)
        advance = counter(stale.read, report)
        if sum(ref.size for _, ref in stale.read) < WORTHWHILE:
            for store, ref in stale.read:
                self.add(store, ref)
                advance(ref.size)
        else:
            self.add_many(stale.read, advance)
        self.db.execute("insert or replace into meta values ('rows', ?)", (self.rows,))
        self.db.execute("insert or replace into meta values ('indexed', ?)", (self.meta("indexed", 0) + self.added,))
        self.added = 0
        for store in stores:
            linking.link(self.db, store.scope)

    def mostly_dead(self) -> bool:
        """Whether more than a quarter of the index is of sessions that are gone or were read again: FTS5 forgets nothing."""
        indexed = self.meta("indexed", 0)
        (alive,) = self.db.execute("select coalesce(sum(message_count + 1), 0) from session").fetchone()
        return bool(indexed > FEW and indexed - alive > indexed // 4)

    def clear(self) -> None:
        """Begin anew: other stores are read again when they are asked for."""
        self.db.execute("update scope set state = null")
        for index in self.indexes():
            self.db.execute(f"drop table {index}")
        for table in ("ref", "session", "charge", "spend", "meta"):
            self.db.execute(f"delete from {table}")
        if self.searchable:
            self.db.execute(cachefile.WORDS.format(name="words"))

    def meta(self, name: str, default: Any) -> Any:
        found = self.db.execute("select value from meta where name = ?", (name,)).fetchone()
        return found[0] if found else default

    def add_many(self, unread: Sequence[Unread], advance: Callable[[int], None]) -> None:
        """Read many refs with every core."""
        from tempfile import TemporaryDirectory  # noqa: PLC0415 - what only a large fill needs

        from amux import filler  # noqa: PLC0415

        if self.path:
            cachefile.clear_away(self.path.parent)
        directory = self.afterwards.enter_context(
            TemporaryDirectory(prefix=cachefile.SHARDS, dir=self.path.parent if self.path else None)
        )
        count = min(os.cpu_count() or 1, self.db.getlimit(sqlite3.SQLITE_LIMIT_ATTACHED))
        try:
            shards = filler.fill_shards(unread, count, Path(directory), self.rows, self.prices, advance)
        except SubprocessError:  # no room for their files, or a process was killed: it goes on alone
            for store, ref in unread:
                self.add(store, ref)
            return
        for shard in shards:
            self.absorb(shard)

    def absorb(self, file: Path) -> None:
        """Take over what a process read into a shard; its index stays an index of its own."""
        shard = file.stem
        self.db.execute("attach ? as ?", (str(file), shard))
        self.afterwards.callback(self.db.execute, f"detach {shard}")  # SQLite refuses that in a transaction
        (refs,) = self.db.execute("select coalesce(max(no), 0) from ref").fetchone()
        (sessions,) = self.db.execute("select coalesce(max(no), 0) from session").fetchone()
        (indexes,) = self.db.execute(
            "select count(*) from main.sqlite_master where sql like 'create virtual table words%'"
        ).fetchone()
        self.copy(shard, "ref", no=refs)
        self.copy(shard, "session", no=sessions, ref=refs)
        self.copy(shard, "charge", session=sessions)
        (self.rows,) = self.db.execute(f"select value from {shard}.meta").fetchone()
        added = self.db.execute(f"select coalesce(sum(message_count + 1), 0) from {shard}.session")
        self.added += added.fetchone()[0]
        if self.searchable:
            words = f"words_{indexes}"
            self.db.execute(cachefile.WORDS.format(name=words))
            for shadow in SHADOWS:
                self.db.execute(f"delete from {words}_{shadow}")
                self.db.execute(f"insert into {words}_{shadow} select * from {shard}.words_{shadow}")

    def copy(self, shard: str, table: str, **further: int) -> None:
        """Copy a table of a shard, the numbers in some columns moved on."""
        names = [name for (name,) in self.db.execute("select name from pragma_table_info(?)", (table,))]
        values = ", ".join(f"{name} + {further[name]}" if name in further else name for name in names)
        self.db.execute(f"insert into {table} select {values} from {shard}.{table}")

    def forget(self, ref: int) -> None:
        """Drop a ref and its sessions; their index rows are dead, since their session number is never used again."""
        linking.let_go(self.db, ref)
        for table in ("charge", "spend"):
            self.db.execute(f"delete from {table} where session in (select no from session where ref = ?)", (ref,))
        self.db.execute("delete from session where ref = ?", (ref,))
        self.db.execute("delete from ref where no = ?", (ref,))

    def add(self, store: Store, ref: SessionRef) -> None:
        sessions, reason = attempt(store.reader, ref)
        bases = {key: store.refs.get(key) for session in sessions for key in session.based_on}
        stamps = {key: base.fingerprint if base else None for key, base in bases.items()}
        based_on = orjson.dumps(stamps) if stamps else None
        row = (store.scope, ref.key, ref.path, ref.fingerprint, ref.size, orjson.dumps(ref.files), based_on, reason)
        insert = "insert into ref (scope, key, path, fingerprint, size, files, based_on, reason) values (?, ?, ?, ?, ?, ?, ?, ?)"
        no = self.db.execute(insert, row).lastrowid
        for session in sessions:
            self.add_session(store.scope, no or 0, session)

    def add_session(self, scope: int, ref: int, session: Session) -> None:
        first = self.rows
        self.rows = first + 1 + len(session.messages)
        self.added += 1 + len(session.messages)
        no = self.db.execute(tables.INSERT_SESSION, (*tables.session_row(ref, scope, session), first)).lastrowid or 0
        charges = {tables.key_number(charge.key): charge for charge in session.charges}
        rows = [
            (*tables.charge_row(no, scope, position, key, charge), self.prices.estimate(charge))
            for position, (key, charge) in enumerate(charges.items())
        ]
        self.db.executemany(tables.INSERT_CHARGE, rows)
        if self.searchable:
            self.db.executemany("insert into words (rowid, text) values (?, ?)", search.index_rows(first, session))


def passing(reason: str | None) -> bool:
    """Whether what kept a ref from being read may be over: a database in use, a file that could not be opened."""
    return reason is not None and not reason.startswith(("it is no", "unexpected"))


def attempt(reader: Reader, ref: SessionRef) -> tuple[Sequence[Session], str | None]:
    """The sessions of a ref, or why there are none: one bad file costs itself, never the list."""
    if ref.reason:
        return (), ref.reason
    try:
        return reader.read(ref), None
    except UnreadableSession as error:
        return (), error.reason
    except Exception as error:  # noqa: BLE001 - a reader's own mistake on a file nobody foresaw must not hide the others
        return (), f"unexpected {type(error).__name__}: {error}"


def is_fresh(store: Store, key: str, fingerprint: str, based_on: bytes | None, reason: str | None) -> bool:
    """Whether a ref is as it was, and whatever reading it took from others; unless it may be read by now."""
    bases = {key: fingerprint, **(orjson.loads(based_on) if based_on else {})}
    now = {base: store.refs[base].fingerprint if base in store.refs else None for base in bases}
    return bases == now and not passing(reason)
