"""The run index: what agent-mux noted of the runs it started, their tags and costs. amux only reads it.

What it says is laid over the catalog in temporary tables: `runs`, the main sessions they `covered` with their USD, and
the `tag`s of main sessions. It is `~/.agent-mux/run-index.jsonl` and the nearest `.agent-mux/run-index.jsonl` above the working directory, one JSON
object a line. The same run may be noted twice: the last line with a cost counts.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from amux.errors import UnreadableSession
from amux.linking import TOKENS
from amux.money import MOST, QUARTER, added, pico
from amux.query import milliseconds
from amux.readers._base import stamp
from amux.readers._json import Record, at, dict_at, int_at, list_at, records, text_at, time_at, usd_at

PLACE = Path(".agent-mux") / "run-index.jsonl"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Run:
    """One run; `usd` is None when no cost was noted."""

    id: str
    agent: str
    at: datetime | None
    session_id: str | None = None
    model: str | None = None
    usd: Decimal | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    tags: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        counts = (self.input_tokens, self.output_tokens, self.cached_tokens, self.cache_write_tokens)
        return sum(count or 0 for count in counts)


def index_files(home: Path, directory: Path) -> list[Path]:
    """The run indexes there are: the home's, and the nearest above a directory."""
    nearest = next((place / PLACE for place in (directory, *directory.parents) if stamp(place / PLACE)), None)
    found = [path for path in (home / PLACE, nearest) if path and stamp(path)]
    return list(dict.fromkeys(path.resolve() for path in found))


def runs(paths: Iterable[Path]) -> list[Run]:
    """The runs noted in the files, each once."""
    found: dict[str, Run] = {}
    for path in paths:
        for run in noted(path):
            before = found.get(run.id)
            if before is None or run.usd is not None or before.usd is None:
                found[run.id] = run
    return list(found.values())


def noted(path: Path) -> Iterator[Run]:
    try:
        for record in records(str(path)):
            if at(record, "v") == VERSION and (run := run_of(record)):
                yield run
    except UnreadableSession:
        return


def run_of(record: Record) -> Run | None:
    id, agent = text_at(record, "runId"), text_at(record, "agent")
    if not id or not agent:
        return None
    cost = dict_at(record, "cost")
    return Run(
        id=id,
        agent=agent,
        at=time_at(record, "timestamp"),
        session_id=text_at(record, "sessionId"),
        model=text_at(record, "model"),
        usd=usd_at(cost, "totalUsd"),
        input_tokens=int_at(cost, "inputTokens"),
        output_tokens=int_at(cost, "outputTokens"),
        thinking_tokens=int_at(cost, "thinkingTokens"),
        cached_tokens=int_at(cost, "cachedTokens"),
        cache_write_tokens=int_at(cost, "cacheWriteTokens"),
        tags=tuple(tag for tag in list_at(record, "tags") if isinstance(tag, str) and tag),
    )


TABLES = """
    create temp table if not exists runs (
        session integer, scope integer, agent text, native_id text, model text, quarter integer, calls integer, input integer,
        output integer, thinking integer, cached integer, written integer, usd integer, run integer, estimate integer, auto integer,
        unpriced integer, unestimated integer, unrecorded integer, aggregate integer, at integer, counts integer);
    create temp table if not exists covered (session integer primary key, usd integer);
    create temp table if not exists tag (session integer, tag text, primary key (session, tag)) without rowid;
"""
FAMILY = f"""
    select r.no, r.scope, r.turn_count, {added("t.usd")}, {added(TOKENS)}
    from session r join session f on f.root = r.no left join spend t on t.session = f.no
    where r.scope in ({{scopes}}) and r.id = ? group by r.no
"""
INSERT = (
    "insert into temp.runs values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, null, ?, null, null, null, null, null, 0, ?, ?)"
)


def lay_over(
    db: sqlite3.Connection,
    scopes: Mapping[int, str],
    noted_runs: Iterable[Run],
    tags: Mapping[tuple[str, str], Sequence[str]],
) -> None:
    """Make the temporary tables for the stores this run looks at."""
    for statement in TABLES.split(";"):
        db.execute(statement)
    for table in ("runs", "covered", "tag"):
        db.execute(f"delete from temp.{table}")
    among = ", ".join(map(str, scopes))
    db.execute(
        f"insert or ignore into temp.tag select s.no, j.value from session s, json_each(s.tags) j where s.tags <> '[]' and s.scope in ({among})"
    )
    together: dict[tuple[str, str | None], list[Run]] = {}
    for run in noted_runs:
        together.setdefault((run.agent, run.session_id), []).append(run)
    for (agent, id), those in together.items():
        numbers = ", ".join(str(no) for no, name in scopes.items() if name == agent)
        found = db.execute(FAMILY.format(scopes=numbers), (id,)).fetchone() if id else None
        if found:
            of_session(db, found, those)
            tagged = {(found[0], tag) for run in those for tag in run.tags}
            db.executemany("insert or ignore into temp.tag values (?, ?)", tagged)
        else:
            # A session that is in no store: what was noted of its runs is all there is.
            db.executemany(INSERT, [row(run, None, None, counts=run.usd is not None) for run in those])
    for (agent, id), given in tags.items():
        numbers = ", ".join(str(no) for no, name in scopes.items() if name == agent)
        for no, tag in [
            (no, tag)
            for (no,) in db.execute(f"select no from session where scope in ({numbers}) and id = ?", (id,))
            for tag in given
        ]:
            db.execute("insert or ignore into temp.tag values (?, ?)", (no, tag))


def of_session(
    db: sqlite3.Connection, found: tuple[int, int, int, int | None, int | None], those: Sequence[Run]
) -> None:
    """Note the runs of a session; their cost counts where the agent recorded none and they cover all of it."""
    no, scope, turns, usd, tokens = found
    paid = [run for run in those if run.usd is not None]
    noted_tokens = sum(run.tokens for run in paid)
    total = sum(pico(run.usd) or 0 for run in paid)
    whole = noted_tokens >= (tokens or 0) if noted_tokens else len(paid) >= turns
    covers = bool(paid) and usd is None and whole and total < MOST
    db.executemany(INSERT, [row(run, no, scope, counts=covers and run.usd is not None) for run in those])
    if covers:
        db.execute("insert or replace into temp.covered select no, ? from session where root = ?", (total, no))


def row(run: Run, session: int | None, scope: int | None, *, counts: bool) -> tuple[Any, ...]:
    """A run as a row of the bill: of a session in a store only the money, since its calls are there already."""
    at = milliseconds(run.at)
    alone = session is None
    counted = (1, run.input_tokens, run.output_tokens, run.thinking_tokens, run.cached_tokens, run.cache_write_tokens)
    return (
        session,
        scope,
        run.agent,
        run.session_id or f"run/{run.id}",
        run.model,
        at // QUARTER if at is not None else None,
        *(counted if alone else (0, None, None, None, None, None)),
        pico(run.usd),
        at,
        counts,
    )
