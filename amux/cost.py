"""Charges added up by agent, model, day, week, month, tag, project, session: each call once.

The catalog keeps what every session's own calls come to, by model and quarter of an hour. A report adds those up in
SQL; calls in a quarter that a date cuts are added one by one; what the run index noted takes the place of estimates.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from amux.errors import InvalidValue
from amux.linking import ADDED, SUMS
from amux.money import QUARTER, added, joined, source, usd
from amux.query import GROUPS, IN_TIME, Query, escaped, milliseconds
from amux.results.costs import CostBreakdown, CostSummary

if TYPE_CHECKING:
    from amux.catalog import Catalog

Mode = Literal["auto", "native", "estimate"]
DAY = 86_400_000
UNKNOWN = "(unknown)"
UNTAGGED = "(untagged)"
UNPRICED = {"auto": "unpriced", "native": "unrecorded", "estimate": "unestimated"}
"""For each mode the tokens that are in no sum of money."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a cost report is asked for besides which calls."""

    group_by: tuple[str, ...] = ()
    mode: Mode = "auto"
    zone: tzinfo | None = None
    sort: Literal["key", "cost", "tokens", "calls"] | None = None
    limit: int = 0


def report(catalog: "Catalog", query: Query, wanted: Report) -> CostSummary:
    for name in wanted.group_by:
        if name not in GROUPS:
            raise InvalidValue(f"cannot group by {name!r}; the groups are {', '.join(GROUPS)}")
    ledger = Ledger(catalog, query, wanted)
    total = next(ledger.rows(()))
    breakdowns = None
    if wanted.group_by:
        made = [breakdown(wanted, row) for row in ledger.rows(wanted.group_by)]
        breakdowns = {one.key: one for one in ordered(made, wanted)}
    sums = amounts(total, wanted.mode)
    return CostSummary(
        **sums,
        recorded_usd=usd(joined(total["usd"], total["run"])) if wanted.mode != "estimate" else None,
        estimated_usd=usd(total["auto" if wanted.mode == "auto" else "estimate"]) if wanted.mode != "native" else None,
        run_count=ledger.run_count(),
        unpriced=ledger.unpriced() if total[UNPRICED[wanted.mode]] else {},
        free=ledger.free() if wanted.mode != "native" else (),
        prices=catalog.prices.source if sums["source"] in ("estimated", "mixed") else None,
        breakdowns=breakdowns,
    )


def amounts(row: Mapping[str, Any], mode: Mode) -> dict[str, Any]:
    native, run, estimate = {
        "auto": (row["usd"], row["run"], row["auto"]),
        "native": (row["usd"], row["run"], None),
        "estimate": (None, None, row["estimate"]),
    }[mode]
    return {
        "total_usd": usd(joined(native, run, estimate)),
        "input_tokens": row["input"],
        "output_tokens": row["output"],
        "thinking_tokens": row["thinking"],
        "cached_tokens": row["cached"],
        "cache_write_tokens": row["written"],
        "source": source(native, run, estimate),
        "approximate": bool(row["aggregate"]),
        "session_count": row["sessions"],
        "call_count": row["calls"] or 0,
    }


def breakdown(wanted: Report, row: Mapping[str, Any]) -> CostBreakdown:
    keys = {name: label(name, row[f"by_{name}"]) for name in wanted.group_by}
    return CostBreakdown(key="/".join(keys.values()), keys=keys, **amounts(row, wanted.mode))


def label(name: str, value: Any) -> str:
    if value is None:
        return UNTAGGED if name == "tag" else UNKNOWN
    if name not in IN_TIME:
        return str(value)
    day = date(1970, 1, 1) + timedelta(days=value)
    if name == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02d}"
    return day.isoformat()[:7] if name == "month" else day.isoformat()


def ordered(rows: Sequence[CostBreakdown], wanted: Report) -> list[CostBreakdown]:
    """As asked for; else what has a time in its order, and the dearest of anything else first."""
    sort = wanted.sort or ("key" if wanted.group_by[0] in IN_TIME else "cost")
    sizes: dict[str, Callable[[CostBreakdown], Decimal | int]] = {
        "key": lambda _: 0,
        "cost": lambda row: row.total_usd or 0,
        "tokens": lambda row: sum(getattr(row, name) or 0 for name in TOKEN_FIELDS),
        "calls": lambda row: row.call_count,
    }
    found = sorted(rows, key=lambda row: (-sizes[sort](row), row.key))
    return found[: wanted.limit] if wanted.limit else found


TOKEN_FIELDS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
COLUMNS = (
    "session, scope, agent, native_id, model, quarter, calls, input, output, thinking, cached, written, usd, run, estimate, auto,"
    " unpriced, unestimated, unrecorded, aggregate"
)
CALLED = """
    session, scope, null, null, model, quarter, calls, input, output, thinking, cached, written, usd, null, estimate,
    case when session in (select session from temp.covered) then null else auto end, unpriced, unestimated, unrecorded, aggregate
"""
"""The columns above, of calls: what the run index noted of a session stands in place of its estimates."""


class Ledger:
    """The calls a query asks for, as SQL over the catalog."""

    def __init__(self, catalog: "Catalog", query: Query, wanted: Report) -> None:
        self.catalog = catalog
        self.db: sqlite3.Connection = catalog.db
        self.query = query
        self.wanted = wanted
        self.source = f"with bill ({COLUMNS}) as ({self.bill()})"
        self.values = self.bill_values()
        self.offsets = list(self.zone_offsets()) if set(wanted.group_by) & set(IN_TIME) else []

    def bill(self) -> str:
        """What the calls between two dates come to: whole quarters of an hour from the sums, cut ones call by call."""
        scopes = ", ".join(self.scopes())
        since, until = self.query.since, self.query.until
        model = " and model like :model escape '\\'" if self.query.model else ""
        whole = (" and quarter >= :first" if since else "") + (" and quarter < :last" if until else "")
        found = f"select {CALLED} from spend where scope in ({scopes}){whole}{model}"
        cut = [
            *(["at >= :since and at < :first_ms" + (" and at < :until" if until else "")] if since else []),
            *(["at >= :last_ms and at < :until" + (" and at >= :first_ms" if since else "")] if until else []),
        ]
        if cut:
            calls = f"select session, scope, model, at / {QUARTER} quarter, {SUMS} from charge where owned = 1 and scope in ({scopes})"
            found += f" union all select {CALLED} from ({calls} and ({' or '.join(cut)}){model} group by rowid)"
        return f"{found} union all select {COLUMNS} from temp.runs where counts and {self.run_conditions()}"

    def run_conditions(self) -> str:
        """The runs whose cost counts: those between the dates, of the model and the agents asked for."""
        agents = ", ".join(
            f"'{agent}'"
            for agent in set(self.catalog.scopes.values())
            if not self.query.agents or agent in self.query.agents
        )
        return (
            f"agent in ({agents})"
            + (" and at >= :since" if self.query.since else "")
            + (" and at < :until" if self.query.until else "")
            + (" and model like :model escape '\\'" if self.query.model else "")
        )

    def bill_values(self) -> dict[str, Any]:
        since, until = milliseconds(self.query.since) or 0, milliseconds(self.query.until) or 0
        first, last = -(-since // QUARTER), until // QUARTER
        return {
            "since": since,
            "until": until,
            "first": first,
            "first_ms": first * QUARTER,
            "last": last,
            "last_ms": last * QUARTER,
            "model": f"%{escaped(self.query.model or '')}%",
            **{f"tag{number}": tag for number, tag in enumerate(self.query.tags)},
        }

    def zone_offsets(self) -> Iterator[tuple[int, int]]:
        """(quarter of an hour from which on, milliseconds ahead of UTC): a zone's offset changes twice a year or so."""
        first, last = self.db.execute(
            f"{self.source} select min(quarter), max(quarter) from bill", self.values
        ).fetchone()
        offset = None
        for at in range(first or 0, (last or 0) + 97, 96):
            now = ahead(at, self.wanted.zone)
            if now != offset:
                yield (at if offset is None else turn(at - 96, at, self.wanted.zone)), now
                offset = now

    def scopes(self) -> list[str]:
        found = self.catalog.scopes.items()
        return [str(no) for no, agent in found if not self.query.agents or agent in self.query.agents]

    def rows(self, dimensions: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The sums, by the dimensions; without any, one row."""
        columns = "".join(f"{self.dimension(one)} by_{one}, " for one in dimensions)
        tagged = " left join temp.tag g on g.session = r.no" if "tag" in dimensions else ""
        select = f"""
            {self.source}
            select {columns} {SUMMED}, count(distinct r.no) sessions from bill b left join session s on s.no = b.session
            left join session r on r.no = s.root left join scope sc on sc.no = b.scope {tagged} where {self.tag_condition()}
        """
        if dimensions:
            select += f" group by {', '.join(str(place + 1) for place in range(len(dimensions)))}"
        cursor = self.db.execute(select, self.values)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))

    def tag_condition(self) -> str:
        if not self.query.tags:
            return "true"
        marks = ", ".join(f":tag{number}" for number in range(len(self.query.tags)))
        return f"r.no in (select session from temp.tag where tag in ({marks}))"

    def dimension(self, name: str) -> str:
        return {
            "agent": "coalesce(sc.agent, b.agent)",
            "model": "b.model",
            "tag": "g.tag",
            "project": "r.cwd",
            "session": "coalesce(sc.agent || ':' || r.id, b.agent || ':' || b.native_id)",
            "day": self.local_day(),
            "week": f"({self.local_day()} + 3) / 7 * 7 - 3",
            "month": f"cast(julianday(date({self.local_day()} * 86400, 'unixepoch', 'start of month')) - 2440587.5 as integer)",
        }[name]

    def local_day(self) -> str:
        """Days since 1970 in local time: the offset that holds at a call's time decides its day."""
        cases = " ".join(f"when b.quarter >= {start} then {ahead}" for start, ahead in reversed(self.offsets))
        return f"((b.quarter * {QUARTER} + case {cases} end) / {DAY})" if cases else "null"

    def unpriced(self) -> dict[str, int]:
        """Models without a price, and how many tokens of theirs are therefore in no sum."""
        column = UNPRICED[self.wanted.mode]
        found = self.db.execute(
            f"{self.source} select coalesce(b.model, '{UNKNOWN}'), {added(f'b.{column}')} tokens from bill b left join session s on s.no = b.session"
            f" left join session r on r.no = s.root where {self.tag_condition()} group by b.model having tokens > 0 order by tokens desc",
            self.values,
        )
        return dict(found.fetchall())

    def free(self) -> tuple[str, ...]:
        """Models whose calls are estimated at nothing: known to be free, which is not the same as unknown."""
        if not self.db.execute("select 1 from spend where estimate = 0 limit 1").fetchone():
            return ()
        found = self.db.execute(
            f"{self.source} select b.model from bill b where b.calls > 0 group by b.model having max(b.estimate) = 0 order by 1",
            self.values,
        )
        return tuple(model for (model,) in found if model)

    def run_count(self) -> int:
        found: tuple[int] = self.db.execute(
            f"select count(*) from temp.runs where {self.run_conditions()}", self.values
        ).fetchone()
        return found[0]


SUMMED = ", ".join(
    [
        "sum(b.calls) calls",
        *(f"{added(f'b.{name}')} {name}" for name in (*ADDED, "run")),
        "max(b.aggregate) aggregate",
    ]
)


def ahead(quarter: int, zone: tzinfo | None) -> int:
    local = datetime.fromtimestamp(quarter * QUARTER / 1000, UTC).astimezone(zone)
    return int((local.utcoffset() or timedelta()).total_seconds() * 1000)


def turn(before: int, after: int, zone: tzinfo | None) -> int:
    """The first quarter of an hour with the later offset."""
    later = ahead(after, zone)
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if ahead(middle, zone) == later else (middle, after)
    return after
