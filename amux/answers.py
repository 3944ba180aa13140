"""What the catalog answers: questions about sessions as SQL over what it keeps."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from amux import search, tables
from amux.model import CostRecord, SessionSummary
from amux.query import Query, escaped, milliseconds
from amux.readers._base import SessionRef

SEARCHED = ("main", "subagent", "memory")


class Skipped(NamedTuple):
    """A ref that could not be read."""

    agent: str
    path: str
    reason: str


class Answers:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.scopes: dict[int, str] = {}
        """The stores this run has looked at, and whose they are."""

    @cached_property
    def searchable(self) -> bool:
        """Whether there is an index of words: not in an SQLite without FTS5."""
        return bool(self.indexes())

    def indexes(self) -> list[str]:
        names = self.db.execute(
            "select name from sqlite_master where sql like 'create virtual table words%' order by name"
        )
        return [name for (name,) in names]

    def sessions(self, query: Query) -> list[SessionSummary]:
        where, values = self.conditions(query)
        order = tables.ORDERS[query.sort] + ("" if query.ascending else " desc")
        select = f"select {tables.SUMMARY} from {tables.ordered(query.sort)} where {where} order by {order}, s.id"
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
            clauses.append(f"s.root in (select session from temp.tag where tag in ({tables.marks(query.tags)}))")
            values += query.tags
        if query.ids:
            clauses.append(f"s.id in ({tables.marks(query.ids)})")
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

    def found(self, agent: str, session_id: str, path: str | None = None) -> tables.Found | None:
        """The row of one session and what reading it takes; `path` says which, where several bear the id."""
        select = f"""
            select r.key, r.path, r.fingerprint, r.size, r.files, s.inherited, {tables.SUMMARY} from {tables.SESSIONS} join ref r on r.no = s.ref
            where s.scope in ({", ".join(str(no) for no, name in self.scopes.items() if name == agent)}) and s.id = :id
            and (:path is null or s.path = :path)
            -- of several that bear the id, the one whose file does: anybody can write an id into a file; else the latest
            -- (with the plus, or SQLite goes through a whole store for this order's sake)
            order by +s.kind, instr(r.path, s.id) = 0, instr(r.path, substr(s.id, 1, 8)) = 0, s.updated_at desc, s.no
        """
        row = self.db.execute(select, {"id": session_id, "path": path}).fetchone()
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
            f"select {tables.MATCHED} from {tables.ordered(query.sort)} join ref r on r.no = s.ref where s.no in ({', '.join(map(str, numbers))}) order by {order}, s.id {limit}"
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
        """Every session a search looks at, in the order asked for, for looking into the files themselves."""
        where, values = self.conditions(query, kinds=SEARCHED)
        rows = self.db.execute(
            f"select {tables.MATCHED} from {tables.ordered(query.sort)} join ref r on r.no = s.ref"
            f" where {where} order by {tables.ORDERS[query.sort]} desc, s.id",
            values,
        ).fetchall()
        return [tables.matched(row, one, 0.0, []) for row, one in zip(rows, self.summaries(rows), strict=True)]

    def relatives(self, agent: str, session_id: str) -> list[SessionSummary]:
        """The forks and the sub-agents of a session."""
        among = ", ".join(str(no) for no, name in self.scopes.items() if name == agent)
        where = f"s.scope in ({among}) and ({tables.PARENT} = :id or coalesce(s.forked_from, s.link_from) = :id)"
        found = self.db.execute(
            f"select {tables.SUMMARY} from {tables.SESSIONS} where {where} order by created, s.id", {"id": session_id}
        )
        return self.summaries(found.fetchall())

    def charges(self, agent: str, session_id: str, path: str | None) -> list[tuple[Any, ...]]:
        """The calls a session made itself, with the main session they belong to."""
        among = ", ".join(str(no) for no, name in self.scopes.items() if name == agent)
        return self.db.execute(
            "select r.id, c.at, c.model, c.provider, c.calls, c.input, c.output, c.thinking, c.cached, c.written, c.usd, c.estimate"
            f" from charge c join session s on s.no = c.session join session r on r.no = s.root where s.scope in ({among})"
            " and s.id = ? and s.path is ? and c.owned = 1 order by c.position",
            (session_id, path),
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


def common_length(a: str, b: str) -> int:
    """How many characters two texts have in common at their beginning."""
    return next(
        (place for place, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b))
    )
