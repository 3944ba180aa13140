"""The model as rows and columns: plain data, so that a test compares tuples and markup in a title stays text."""

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from amux.model import AgentStatus, CostRecord, CostSummary, SearchHit, SessionSummary
from amux.output.plain import visible

SHORT_ID = 8


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. `flexible` is the column that gives way when the terminal is narrow; `drop` the columns that go before it.

    `sections` are headings, each with the number of the row it stands before; a pipe does not see them.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    right: frozenset[str] = frozenset()
    flexible: str = ""
    drop: tuple[str, ...] = ()
    when_empty: str = ""
    sections: Sequence[tuple[int, str]] = ()
    total: tuple[str, ...] | None = None
    notes: Sequence[str] = field(default=())
    header: bool = True

    def plain(self) -> str:
        """The table for a pipe: aligned, uncut, without colour."""
        if not self.rows:
            return self.when_empty
        lines = [self.columns, *self.rows, *([self.total] if self.total else [])]
        widths = [max(width(line[place]) for line in lines) for place in range(len(self.columns))]
        aligned = [
            "  ".join(
                padded(cell, size, right=name in self.right)
                for cell, size, name in zip(line, widths, self.columns, strict=True)
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*aligned, *self.notes])


def width(text: str) -> int:
    """How many columns a terminal gives a text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def padded(text: str, size: int, *, right: bool) -> str:
    blank = " " * (size - width(text))
    return blank + text if right else text + blank


# Cells


def usd(cost: CostRecord | None) -> str:
    if cost is None or cost.total_usd is None:
        return "–"
    return money(cost.total_usd, estimated=cost.source in ("estimated", "mixed"))


def money(amount: Decimal, *, estimated: bool) -> str:
    """Cents, and more places where cents would show nothing."""
    places = 2 if amount == 0 or amount >= Decimal("0.01") else 4
    return f"{'~' if estimated else ''}${amount:,.{places}f}"


def count(number: int | None) -> str:
    """A number people can read: 1,402 or 1.2M; exact numbers are in JSON."""
    if number is None:
        return "–"
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if number >= size:
            scaled = number / (size if letter != "k" else 1000)
            return f"{scaled:,.0f}{letter}" if scaled >= 100 else f"{scaled:.1f}{letter}"
    return f"{number:,}"


def ago(time: datetime, now: datetime | None = None) -> str:
    """How long ago, as people say it; the date when it is long ago."""
    seconds = ((now or datetime.now(UTC)) - time).total_seconds()
    for size, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if size <= seconds < 30 * 86400:
            return f"{int(seconds // size)}{letter} ago"
    return "now" if 0 <= seconds < 60 else time.astimezone().strftime("%Y-%m-%d")


def stamp(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M")


def tilde(path: str | None) -> str:
    """A directory as people write it."""
    home = os.path.expanduser("~")
    if path and home != "/" and (path == home or path.startswith(home + os.sep)):
        path = "~" + path[len(home) :]
    return visible(path or "")


def project(path: str | None) -> str:
    return visible(os.path.basename((path or "").rstrip("/\\")))


def title(session: SessionSummary) -> str:
    return visible(session.title) or "(no title)"


# Tables


def sessions(found: Sequence[SessionSummary]) -> Grid:
    return Grid(
        columns=("AGENT", "ID", "UPDATED", "TURNS", "USD", "PROJECT", "", "TITLE"),
        right=frozenset({"TURNS", "USD"}),
        flexible="TITLE",
        drop=("PROJECT", "TURNS"),
        when_empty="No sessions.",
        rows=[
            (
                one.agent,
                visible(one.session_id),
                stamp(one.updated_at),
                str(one.turn_count),
                usd(one.cost),
                project(one.cwd),
                mark(one),
                title(one) + ("  [archived]" if one.archived else ""),
            )
            for one in found
        ],
    )


def mark(session: SessionSummary) -> str:
    """⑂ for a fork, ↳ for a sub-agent."""
    return "↳" if session.kind == "subagent" else "⑂" if session.forked_from else ""


def hits(found: Sequence[SearchHit]) -> Grid:
    return Grid(
        columns=("SCORE", "SESSION", "UPDATED", "MATCHES", "PROJECT", "TITLE"),
        right=frozenset({"SCORE", "MATCHES"}),
        flexible="TITLE",
        drop=("PROJECT", "MATCHES"),
        when_empty="Nothing found.",
        rows=[
            (
                f"{one.relevance_score:.2f}",
                visible(one.unified_id),
                stamp(one.updated_at),
                str(one.match_count),
                project(one.cwd),
                title(one),
            )
            for one in found
        ],
    )


def costs(report: CostSummary) -> Grid:
    rows = list((report.breakdowns or {}).values())
    names = list(rows[0].keys) if rows else ["agent"]
    numbers = ("SESSIONS", "CALLS", "FRESH", "CACHED", "WRITTEN", "OUTPUT", "THINKING", "USD")
    lines = [tuple(visible(one.keys[name]) for name in names) + sums(one) for one in rows]
    return Grid(
        columns=(*(name.upper() for name in names), *numbers),
        right=frozenset(numbers),
        flexible=names[-1].upper(),
        drop=("THINKING", "WRITTEN", "CALLS"),
        when_empty="No calls.",
        rows=lines,
        total=("total", *[""] * (len(names) - 1), *sums(report)),
        notes=[
            f"no price known: {visible(model)} ({count(tokens)} tokens)" for model, tokens in report.unpriced.items()
        ],
    )


def sums(of: CostSummary | object) -> tuple[str, ...]:
    def number(name: str) -> str:
        return count(getattr(of, name))

    total = getattr(of, "total_usd", None)
    estimated = getattr(of, "source", None) in ("estimated", "mixed")
    return (
        number("session_count"),
        number("call_count"),
        number("input_tokens"),
        number("cached_tokens"),
        number("cache_write_tokens"),
        number("output_tokens"),
        number("thinking_tokens"),
        money(total, estimated=estimated) if total is not None else "–",
    )


def agents(found: Sequence[AgentStatus]) -> Grid:
    return Grid(
        columns=("AGENT", "SESSIONS", "NEWEST", "PROGRAM", "RESUME", "FORK", "STORE"),
        right=frozenset({"SESSIONS"}),
        flexible="STORE",
        drop=("FORK", "RESUME", "NEWEST"),
        rows=[
            (
                one.agent,
                count(one.session_count) if one.session_count else "–",
                ago(one.newest) if one.newest else "–",
                "installed" if one.installed else "not installed",
                "yes" if one.can_resume else "no",
                "yes" if one.can_fork else "no",
                ", ".join(map(tilde, one.found)) or f"{tilde(one.stores[0])} (not there)",
            )
            for one in found
        ],
    )


def tree(found: Sequence[SessionSummary]) -> Grid:
    """Forks and sub-agents below the session they come from."""
    by_id = {(one.agent, one.session_id): one for one in found}
    children: dict[tuple[str, str] | None, list[SessionSummary]] = {}
    for one in found:
        above = (one.agent, one.parent_id or one.forked_from or "")
        children.setdefault(above if above in by_id and by_id[above] is not one else None, []).append(one)
    rows: list[tuple[str, ...]] = []
    for root in children.get(None, ()):
        branch(root, "", "", children, rows)
    return Grid(
        columns=("SESSION", "TURNS", "USD"),
        right=frozenset({"TURNS", "USD"}),
        flexible="SESSION",
        when_empty="No sessions.",
        rows=rows,
        header=False,
    )


def branch(
    one: SessionSummary,
    lead: str,
    below: str,
    children: dict[tuple[str, str] | None, list[SessionSummary]],
    rows: list[tuple[str, ...]],
) -> None:
    kind = "sub-agent: " if one.kind == "subagent" else "fork: " if one.forked_from else ""
    cost = usd(one.cost) if one.kind == "main" else f"in the above: {usd(one.cost)}"
    turns = "1 turn" if one.turn_count == 1 else f"{one.turn_count} turns"
    rows.append((f"{lead}{visible(one.unified_id)}  {kind}{title(one)}", turns, cost))
    # A session is drawn once: what hangs below it is taken out, so that a loop of links ends.
    forks = children.pop((one.agent, one.session_id), [])
    for place, child in enumerate(forks):
        last = place == len(forks) - 1
        branch(child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "), children, rows)
