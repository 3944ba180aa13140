"""The catalog: what every session says of itself, kept fresh, asked by SQL.

One SQLite file in the user's cache directory, or the same in memory. It is a cache and nothing else: an answer from it
equals an answer from the files.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from subprocess import SubprocessError
from typing import Any, NamedTuple, Self
from zlib import crc32

import orjson

from amux import __version__, linking, search, tables
from amux.errors import UnreadableSession
from amux.model import CostRecord, Session, SessionSummary
from amux.money import Prices
from amux.query import Query, escaped, milliseconds
from amux.readers._base import Host, Reader, SessionRef, Watched
from amux.readers._sqlite import uri

BUSY_SECONDS = 600
"""How long to wait for another amux that is filling the catalog."""

FEW = 20_000
"""Messages up to which dead ones in the index do not matter."""
WORTHWHILE = 24 * 2**20
"""Bytes to read from which on starting processes pays."""
HASH_BYTES = 32 * 2**20
"""How much of the index a shard gathers before it writes: with FTS5's 1 MB filling takes twice as long."""
WORDS = f"create virtual table {{name}} using fts5 (text, content='', columnsize=0, tokenize='{search.TOKENIZER}')"
SHARDS = "shards-"
SHADOWS = ("data", "idx", "config")
"""The tables FTS5 keeps a contentless index in: copied as they are, an index moves from one file to another."""
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
PLAIN = "select key, fingerprint from ref where scope = ? and based_on is null and reason is null"
OTHERS = (
    "select key, fingerprint, based_on, reason from ref where scope = ? and not (based_on is null and reason is null)"
)
FORMAT = crc32(f"{__version__} {SCHEMA}".encode()) >> 1
"""What a catalog's user_version must be: another schema, or another version's way to read sessions, is built anew."""


class Skipped(NamedTuple):
    """A ref that could not be read."""

    agent: str
    path: str
    reason: str


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
SEARCHED = ("main", "subagent", "memory")


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


class Catalog:
    def __init__(self, db: sqlite3.Connection, path: Path | None, prices: Prices) -> None:
        self.db = db
        self.path = path
        self.scopes: dict[int, str] = {}
        """The stores this run has looked at, and whose they are."""
        self.prices = prices
        self.added = 0
        """How many messages this run has put into the index."""
        self.rows = 0
        """How many messages were ever numbered: numbers of dropped ones are not used again, so their index rows stay dead."""

    @classmethod
    def in_memory(cls, prices: Prices) -> Self:
        return cls(prepared(sqlite3.connect(":memory:", isolation_level=None)), None, prices)

    @classmethod
    def at(cls, path: Path, prices: Prices) -> Self:
        """The catalog in a file; one that is damaged or of another format is renamed away and begun anew.

        Raises sqlite3.Error or OSError where it cannot be kept: the caller then does without.
        """
        secure(path.parent)
        try:
            return cls(opened(path), path, prices)
        except sqlite3.OperationalError:  # locked, no room, not ours to write: nothing is wrong with the file
            raise
        except sqlite3.DatabaseError:
            set_aside(path)
            return cls(opened(path), path, prices)

    @classmethod
    def shard(cls, path: Path, rows: int, prices: Prices) -> Self:
        """A catalog to be absorbed by another: its messages are numbered from `rows` on."""
        db = prepared(sqlite3.connect(path, isolation_level=None))
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
            set_aside(self.path)

    # Keeping it fresh

    def refresh(self, readers: Iterable[Reader], report: Report | None = None) -> None:
        """Read again what changed of the agents' stores, and drop what is gone."""
        self.reprice()
        stores = list(filter(None, map(self.changed, readers)))
        if not self.stale(stores).nothing:
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
            (agent, named(host)),
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
            row = (reader.agent, roots, named(reader.host), orjson.dumps(asked).decode())
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
            self.db.execute(WORDS.format(name="words"))

    def meta(self, name: str, default: Any) -> Any:
        found = self.db.execute("select value from meta where name = ?", (name,)).fetchone()
        return found[0] if found else default

    def add_many(self, unread: Sequence[Unread], advance: Callable[[int], None]) -> None:
        """Read many refs with every core."""
        from tempfile import TemporaryDirectory  # noqa: PLC0415 - what only a large fill needs

        from amux import filler  # noqa: PLC0415

        if self.path:
            clear_away(self.path.parent)
        with TemporaryDirectory(prefix=SHARDS, dir=self.path.parent if self.path else None) as directory:
            try:
                shards = filler.fill_shards(unread, Path(directory), self.rows, self.prices, advance)
            except SubprocessError:  # no room for their files, or a process was killed: it goes on alone
                for store, ref in unread:
                    self.add(store, ref)
                return
            for shard in shards:
                self.absorb(shard)

    def absorb(self, shard: Path) -> None:
        """Take over what a process read into a shard; its index stays an index of its own."""
        (refs,) = self.db.execute("select coalesce(max(no), 0) from ref").fetchone()
        (sessions,) = self.db.execute("select coalesce(max(no), 0) from session").fetchone()
        (indexes,) = self.db.execute(
            "select count(*) from sqlite_master where sql like 'create virtual table words%'"
        ).fetchone()
        other = sqlite3.connect(uri(str(shard), "mode=ro"), uri=True)
        try:
            self.copy(other, "ref", lambda row: (row[0] + refs, *row[1:]))
            self.copy(other, "session", lambda row: (row[0] + sessions, row[1] + refs, *row[2:]))
            self.copy(other, "charge", lambda row: (row[0] + sessions, *row[1:]))
            (self.rows,) = other.execute("select value from meta").fetchone()
            self.added += other.execute("select coalesce(sum(message_count + 1), 0) from session").fetchone()[0]
            if not self.searchable:
                return
            name = f"words_{indexes}"
            self.db.execute(WORDS.format(name=name))
            for shadow in SHADOWS:
                self.db.execute(f"delete from {name}_{shadow}")
                self.copy(other, f"words_{shadow}", lambda row: row, into=f"{name}_{shadow}")
        finally:
            other.close()

    def copy(
        self,
        other: sqlite3.Connection,
        table: str,
        change: Callable[[tuple[Any, ...]], tuple[Any, ...]],
        into: str | None = None,
    ) -> None:
        # Row by row and not by `attach`, which a transaction that is under way does not allow.
        rows = other.execute(f"select * from {table}")
        self.db.executemany(f"insert into {into or table} values ({marks(rows.description)})", map(change, rows))

    @cached_property
    def searchable(self) -> bool:
        """Whether there is an index of words: not in an SQLite without FTS5."""
        return bool(self.indexes())

    def indexes(self) -> list[str]:
        names = self.db.execute(
            "select name from sqlite_master where sql like 'create virtual table words%' order by name"
        )
        return [name for (name,) in names]

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

    # Asking it

    def sessions(self, query: Query) -> list[SessionSummary]:
        where, values = self.conditions(query)
        source = tables.PRICED if query.sort == "cost" else tables.SESSIONS
        order = tables.ORDERS[query.sort] + ("" if query.ascending else " desc")
        select = f"select {tables.SUMMARY} from {source} where {where} order by {order}, s.id"
        if query.limit:
            select += f" limit {query.limit:d}"
        return self.summaries(self.db.execute(select, values).fetchall())

    def summaries(self, rows: Sequence[Sequence[Any]]) -> list[SessionSummary]:
        numbers = [row[0] for row in rows]
        costs = self.costs(numbers)
        tags: dict[int, list[str]] = {}
        for no, tag in self.db.execute(
            f"select session, tag from temp.tag where session in ({', '.join(map(str, numbers))}) order by tag"
        ):
            tags.setdefault(no, []).append(tag)
        return [tables.summary(row, costs.get(row[0]), tags.get(row[0], ())) for row in rows]

    def costs(self, numbers: Sequence[int]) -> dict[int, CostRecord]:
        """What each session cost: a main session with its sub-agents, a sub-agent by itself."""
        some = ", ".join(map(str, numbers))
        rows = self.db.execute(
            f"select f.root, {tables.TOTAL}, c.usd from session f join spend t on t.session = f.no"
            f" left join temp.covered c on c.session = f.root where f.root in ({some}) group by f.root"
            f" union all select t.session, {tables.TOTAL}, null from spend t join session f on f.no = t.session"
            f" where f.root <> f.no and t.session in ({some}) group by t.session"
        )
        return {row[0]: tables.cost_record(row[1:]) for row in rows}

    def count(self, query: Query) -> int:
        where, values = self.conditions(query)
        found: int = self.db.execute(f"select count(*) from {tables.SESSIONS} where {where}", values).fetchone()[0]
        return found

    def conditions(self, query: Query, kinds: Sequence[str] = ()) -> tuple[str, list[Any]]:
        """A query as SQL. Only stores this run has looked at count: others' rows may be long out of date."""
        scopes = [no for no, agent in self.scopes.items() if not query.agents or agent in query.agents]
        clauses = [f"s.scope in ({', '.join(map(str, scopes))})"]
        values: list[Any] = []
        wanted = kinds or (("main", "subagent") if query.subagents else ("main",))
        clauses.append(f"s.kind in ({', '.join(repr(kind) for kind in wanted)})")
        if not query.archived:
            clauses.append("not s.archived")
        if query.since:
            clauses.append(f"{tables.CREATED} >= ?")
            values.append(milliseconds(query.since))
        if query.until:
            clauses.append(f"{tables.CREATED} < ?")
            values.append(milliseconds(query.until))
        if query.model:
            clauses.append("s.models like ? escape '\\'")
            values.append(f"%{escaped(query.model)}%")
        if query.directories:
            clauses.append(" or ".join(["s.cwd = ? or s.cwd like ? escape '\\'"] * len(query.directories)).join("()"))
            values += [value for one in query.directories for value in (one, f"{escaped(one.rstrip('/'))}/%")]
        if query.tags:
            clauses.append(f"s.root in (select session from temp.tag where tag in ({marks(query.tags)}))")
            values += query.tags
        if query.ids:
            clauses.append(f"s.id in ({marks(query.ids)})")
            values += query.ids
        return " and ".join(clauses), values

    def candidates(self, agents: Iterable[str], prefix: str) -> list[tuple[str, str]]:
        """(agent, id) of every session of the agents whose id begins so; the whole id stands alone."""
        scopes = [no for no, agent in self.scopes.items() if agent in set(agents)]
        rows = self.db.execute(
            f"select distinct sc.agent, s.id from session s join scope sc on sc.no = s.scope where s.scope in ({', '.join(map(str, scopes))})"
            " and s.id >= ? and s.id < ? order by sc.agent, s.id",
            (prefix, prefix + "\U0010ffff"),
        ).fetchall()
        exact = [(agent, id) for agent, id in rows if id == prefix]
        return exact or [(agent, id) for agent, id in rows]

    def short_id(self, agent: str, session_id: str, least: int) -> str:
        """The beginning of an id that no other session of the agent has."""
        among = ", ".join(str(no) for no, name in self.scopes.items() if name == agent)
        beside = self.db.execute(
            f"select max(id) from session where scope in ({among}) and id < :id union all"
            f" select min(id) from session where scope in ({among}) and id > :id",
            {"id": session_id},
        )
        shared = max(common_length(session_id, other or "") for (other,) in beside)
        return session_id[: max(least, shared + 1)]

    def found(self, agent: str, session_id: str) -> tables.Found | None:
        """The row of one session and what reading it takes."""
        select = f"""
            select r.key, r.path, r.fingerprint, r.size, r.files, s.inherited, {tables.SUMMARY} from {tables.SESSIONS} join ref r on r.no = s.ref
            where s.scope in ({", ".join(str(no) for no, name in self.scopes.items() if name == agent)}) and s.id = ?
            -- of several that bear the id, the one whose file does: anybody can write an id into a file
            order by s.kind, instr(r.path, s.id) = 0, instr(r.path, substr(s.id, 1, 8)) = 0, s.no
        """
        row = self.db.execute(select, (session_id,)).fetchone()
        if not row:
            return None
        key, path, fingerprint, size, files, inherited = row[:6]
        return tables.Found(
            SessionRef(key, path, fingerprint, size, tuple(orjson.loads(files))),
            self.summaries([row[6:]])[0],
            inherited,
        )

    def matches(self, words: search.Words, query: Query, part: str | None) -> tuple[list[tables.Matched], int]:
        """The sessions in which every group of words occurs and no excluded one does, best first; and how many there are."""
        where, values = self.conditions(query, kinds=SEARCHED)
        stretches = self.db.execute(
            f"select s.first, s.message_count, s.no, s.updated_at from {tables.SESSIONS} where {where} order by s.first",
            values,
        ).fetchall()
        held = [search.holders(stretches, self.index_rows(group, part)) for group in words.groups]
        excluded = [search.holders(stretches, self.index_rows((term,), part)) for term in words.excluded]
        among = set.intersection(*map(set, held)).difference(*excluded) if held else set[int]()
        exact = search.holders(stretches, self.index_rows((words.phrase,), part)) if words.phrase and among else {}
        scored = search.scores(stretches, held, among, exact)
        best = sorted(among, key=lambda no: -scored[no])
        if query.sort == "relevance" and query.limit and len(best) > query.limit:
            # Those that tie with the last shown stay in: which of them is shown is told by date and id, not by number.
            least = scored[best[query.limit - 1]]
            best = [no for no in best if scored[no] >= least]
        return self.matched(best, scored, held, query), len(among)

    def matched(
        self, numbers: Sequence[int], scored: Mapping[int, float], held: Sequence[Mapping[int, list[int]]], query: Query
    ) -> list[tables.Matched]:
        """The matching sessions in the order asked for, each with where it matched best."""
        order = {"relevance": "s.no", "date": "s.updated_at desc", "cost": f"{tables.ORDERS['cost']} desc"}[query.sort]
        limit = f"limit {query.limit:d}" if query.limit and query.sort != "relevance" else ""
        rows = self.db.execute(
            f"select {tables.SUMMARY}, s.first, s.times, s.offsets, r.key, r.path, r.fingerprint, r.size, r.files"
            f" from {tables.PRICED} join ref r on r.no = s.ref where s.no in ({', '.join(map(str, numbers))}) order by {order}, s.id {limit}"
        ).fetchall()
        if query.sort == "relevance":
            rows = sorted(rows, key=lambda row: (-scored[row[0]], -row[5], row[2]))[: query.limit or None]
        return [
            tables.matched(row, summary, scored[row[0]], [one[row[0]] for one in held])
            for row, summary in zip(rows, self.summaries(rows), strict=True)
        ]

    def index_rows(self, terms: Sequence[search.Term], part: str | None) -> list[int]:
        """The rows of the index in which one of the terms occurs, in order; dead ones among them."""
        rows: list[int] = []
        for term in terms:
            for index in self.indexes():
                # All in one text: a common word has a hundred thousand rows, and each row asked for by itself is dear.
                asked = f"select group_concat(rowid) from {index} where {index} match ?"
                (found,) = self.db.execute(asked, (term.question,)).fetchone()
                rows += orjson.loads(f"[{found or ''}]")
        if part:
            rows = [row for row in rows if search.part_of(row) == part]
        return sorted(set(rows) if len(terms) > 1 else rows)

    def searched(self, query: Query) -> list[tables.Matched]:
        """Every session a search looks at, newest first, for looking into the files themselves."""
        where, values = self.conditions(query, kinds=SEARCHED)
        rows = self.db.execute(
            f"select {tables.SUMMARY}, s.first, s.times, s.offsets, r.key, r.path, r.fingerprint, r.size, r.files"
            f" from {tables.SESSIONS} join ref r on r.no = s.ref where {where} order by s.updated_at desc, s.id",
            values,
        ).fetchall()
        return [tables.matched(row, one, 0.0, []) for row, one in zip(rows, self.summaries(rows), strict=True)]

    def relatives(self, agent: str, session_id: str) -> list[SessionSummary]:
        """The forks and the sub-agents of a session."""
        among = ", ".join(str(no) for no, name in self.scopes.items() if name == agent)
        where = f"s.scope in ({among}) and (s.parent_id = :id or coalesce(s.forked_from, s.link_from) = :id)"
        found = self.db.execute(
            f"select {tables.SUMMARY} from {tables.SESSIONS} where {where} order by created, s.id", {"id": session_id}
        )
        return self.summaries(found.fetchall())

    def charges(self, agent: str, session_id: str) -> list[tuple[Any, ...]]:
        """The calls a session made itself, with the main session they belong to."""
        among = ", ".join(str(no) for no, name in self.scopes.items() if name == agent)
        return self.db.execute(
            "select r.id, c.at, c.model, c.provider, c.calls, c.input, c.output, c.thinking, c.cached, c.written, c.usd, c.estimate"
            f" from charge c join session s on s.no = c.session join session r on r.no = s.root where s.scope in ({among})"
            " and s.id = ? and c.owned = 1 order by c.position",
            (session_id,),
        ).fetchall()

    def skipped(self) -> list[Skipped]:
        """What could not be read of the stores this run has looked at."""
        rows = self.db.execute(
            f"select scope, path, reason from ref where reason is not null and scope in ({', '.join(map(str, self.scopes))}) order by path"
        )
        return [Skipped(self.scopes[scope], path, reason) for scope, path, reason in rows]

    def unreadable(self, agent: str, prefix: str) -> Skipped | None:
        """The ref that could not be read and whose session may be the one asked for."""
        return next((one for one in self.skipped() if one.agent == agent and prefix in one.path), None)


def named(host: Host) -> str:
    return f"{host.platform} {host.home}"


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


def prepared(db: sqlite3.Connection) -> sqlite3.Connection:
    """A connection to a catalog with its tables. Raises sqlite3.DatabaseError when it holds something else."""
    if version_of(db) == 0:
        db.execute("begin immediate")
        if version_of(db) == 0:  # nobody else made it while this one waited
            make(db)
        db.execute("commit")
    if (version := version_of(db)) != FORMAT:
        raise sqlite3.DatabaseError(f"format {version:08x}")
    return db


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
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        path.chmod(0o600)
        # Not yet journal_mode = wal: the first fill would be written twice.
        db.execute("pragma synchronous = normal")
        return prepared(db)
    except BaseException:
        db.close()
        raise


def secure(directory: Path) -> None:
    """Make the cache directory, or make sure that it is the user's own. Raises OSError where it cannot be trusted."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    if directory.is_symlink() or not mine or found.st_mode & 0o022:
        raise OSError(f"{directory} is not safe to keep a cache in")


def set_aside(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.replace(path.with_name(path.name + ".broken"))


def common_length(a: str, b: str) -> int:
    """How many characters two texts have in common at their beginning."""
    return next(
        (place for place, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b))
    )


def clear_away(directory: Path) -> None:
    """Remove what a fill that was killed left behind; whoever fills holds the lock, so nobody uses it."""
    from shutil import rmtree  # noqa: PLC0415

    for left in directory.glob(f"{SHARDS}*"):
        rmtree(left, ignore_errors=True)


def is_fresh(store: Store, key: str, fingerprint: str, based_on: bytes | None, reason: str | None) -> bool:
    """Whether a ref is as it was, and whatever reading it took from others; unless it may be read by now."""
    bases = {key: fingerprint, **(orjson.loads(based_on) if based_on else {})}
    now = {base: store.refs[base].fingerprint if base in store.refs else None for base in bases}
    return bases == now and not passing(reason)


def marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
