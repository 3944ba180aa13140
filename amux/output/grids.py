"""The model as rows and columns: plain data, so that a test compares tuples and markup in a title stays text."""

import os
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from amux.model import CostRecord, SessionSummary
from amux.output.plain import visible
from amux.query import IN_TIME

if TYPE_CHECKING:
    from amux.results.agents import AgentStatus
    from amux.results.costs import CostSummary
    from amux.results.hits import SearchHit


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
    bars: Sequence[float] = ()
    """For each row how long its bar is, from 0 to 1; a pipe does not see them."""
    notes: Sequence[str] = ()
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


def days(found: Sequence[SessionSummary], short: Mapping[str, str], now: datetime | None = None) -> Grid:
    """The sessions for a terminal: by day, with ids as short as can be and times as people say them."""
    today = (now or datetime.now(UTC)).astimezone()
    sections: list[tuple[int, str]] = []
    for place, one in enumerate(found):
        heading = day_heading(one.updated_at, today)
        if not sections or sections[-1][1] != heading:
            sections.append((place, heading))
    return Grid(
        columns=("AGENT", "ID", "UPDATED", "TURNS", "USD", "PROJECT", "", "TITLE"),
        right=frozenset({"TURNS", "USD"}),
        flexible="TITLE",
        drop=("PROJECT", "TURNS", "USD"),
        when_empty="No sessions.",
        header=False,
        sections=sections,
        rows=[
            (
                one.agent,
                short[one.unified_id],
                clock(one.updated_at, today),
                turns(one.turn_count),
                usd(one.cost),
                project(one.cwd),
                mark(one),
                title(one) + ("  (archived)" if one.archived else ""),
            )
            for one in found
        ],
    )


def day_heading(time: datetime, today: datetime) -> str:
    local = time.astimezone(today.tzinfo)
    gone = (today.date() - local.date()).days
    if gone in (0, 1):
        return ("Today", "Yesterday")[gone]
    return local.strftime("%A, %-d %B" if gone < 300 else "%-d %B %Y")


def clock(time: datetime, today: datetime) -> str:
    """How long ago today, else the time of day."""
    local = time.astimezone(today.tzinfo)
    return ago(time, today) if local.date() == today.date() else local.strftime("%H:%M")


def turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"


def mark(session: SessionSummary) -> str:
    """⑂ for a fork, ↳ for a sub-agent."""
    return "↳" if session.kind == "subagent" else "⑂" if session.forked_from else ""


@dataclass(frozen=True, slots=True)
class Card:
    """A search result for a terminal: two lines about the session, one with the words in it."""

    agent: str
    id: str
    when: str
    place: str
    cost: str
    score: str
    title: str
    source: str
    snippet: str
    marks: Sequence[tuple[int, int]]
    matches: str


@dataclass(frozen=True, slots=True)
class Cards:
    """Search results at a terminal; what a pipe sees of them is the table."""

    cards: Sequence[Card]
    table: Grid
    when_empty: str = "Nothing found."

    def plain(self) -> str:
        return self.table.plain()


Table = Grid | Cards


def cards(found: Sequence["SearchHit"], short: Mapping[str, str]) -> Cards:
    return Cards([card(one, short[one.unified_id]) for one in found], hits(found))


def card(one: "SearchHit", id: str) -> Card:
    snippet = one.snippet
    return Card(
        agent=one.agent,
        id=visible(id),
        when=ago(one.updated_at),
        place=tilde(one.cwd),
        cost=usd(one.cost),
        score=f"{one.relevance_score:.2f}",
        title=title(one),
        source=(snippet.role or "") if snippet else "",
        snippet=snippet.text if snippet else "",
        marks=[(mark.start, mark.end) for mark in snippet.matches] if snippet else (),
        matches="1 match" if one.match_count == 1 else f"{one.match_count:,} matches",
    )


def marked(one: "SearchHit") -> str:
    """The snippet in plain text, the words between « and »."""
    text, end = "", 0
    if one.snippet is None:
        return ""
    for mark in one.snippet.matches:
        text += f"{one.snippet.text[end : mark.start]}«{one.snippet.text[mark.start : mark.end]}»"
        end = mark.end
    return visible(text + one.snippet.text[end:])


def hits(found: Sequence["SearchHit"]) -> Grid:
    return Grid(
        columns=("SCORE", "SESSION", "UPDATED", "MATCHES", "PROJECT", "TITLE", "SNIPPET"),
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
                marked(one),
            )
            for one in found
        ],
    )


NUMBERS = ("SESSIONS", "CALLS", "FRESH", "CACHED", "WRITTEN", "OUTPUT", "THINKING", "USD")
TOKENS = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "thinking_tokens")


def costs(report: "CostSummary", groups: Sequence[str], zone: str) -> Grid:
    rows = list((report.breakdowns or {}).values())
    in_time = groups[0] in IN_TIME
    most = max((row.total_usd or Decimal(0) for row in rows), default=Decimal(0))
    return Grid(
        columns=(*(name.upper() for name in groups), *NUMBERS),
        right=frozenset(NUMBERS),
        flexible="" if in_time else groups[-1].upper(),
        drop=("THINKING", "WRITTEN", "SESSIONS", "CALLS", "CACHED"),
        when_empty="No calls.",
        rows=[tuple(shown(name, row.keys[name]) for name in groups) + sums(row) for row in rows],
        bars=[float((row.total_usd or 0) / most) for row in rows] if in_time and most else (),
        total=("total", *[""] * (len(groups) - 1), *sums(report)),
        notes=cost_notes(report, zone if in_time else None),
    )


def shown(dimension: str, key: str) -> str:
    return tilde(key) if dimension == "project" else visible(key)


def cost_notes(report: "CostSummary", zone: str | None) -> list[str]:
    """What one should know to trust the numbers: where they come from, what is missing in them."""
    notes = []
    if report.recorded_usd is not None and report.estimated_usd is not None:
        notes.append(
            f"{money(report.recorded_usd, estimated=False)} recorded, {money(report.estimated_usd, estimated=True)} estimated"
        )
    if report.prices:
        notes.append(f"estimates: prices of {report.prices.date} ({report.prices.source} {report.prices.version})")
    if report.approximate:
        notes.append("approximate: some agents keep only totals, which are priced at the base tier")
    if report.free:
        notes.append(f"free: {', '.join(map(visible, report.free))}")
    if report.unpriced:
        models = ", ".join(f"{visible(model)} ({count(tokens)} tokens)" for model, tokens in report.unpriced.items())
        notes.append(f"no price known: {models}")
    if zone:
        notes.append(f"days of {zone}")
    return notes


def cost_csv(report: "CostSummary") -> str:
    """The rows for a spreadsheet: exact numbers, one line a row, no total."""
    import csv  # noqa: PLC0415 - two modules that only this needs
    import io  # noqa: PLC0415

    rows = list((report.breakdowns or {}).values())
    names = list(rows[0].keys) if rows else []
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, "sessions", "calls", *TOKENS, "usd", "source"])
    for row in rows:
        keys = [spreadsheet(row.keys[name]) for name in names]
        numbers = [getattr(row, name) for name in ("session_count", "call_count", *TOKENS)]
        amount = f"{row.total_usd:.6f}" if row.total_usd is not None else None
        writer.writerow([*keys, *numbers, amount, row.source])
    return text.getvalue()


def spreadsheet(text: str) -> str:
    """A cell that a spreadsheet does not take for a formula: model ids and directories are untrusted."""
    return "'" + text if text.startswith(("=", "+", "-", "@", "\t")) else visible(text)


BLOCKS = "█▓▒░▞▚▤▥"
CHART_WIDTH = 60


def chart(report: "CostSummary") -> str:
    """Bars over time, stacked by what the second group is; each series has a pattern of its own."""
    rows = list((report.breakdowns or {}).values())
    if not rows:
        return "No calls."
    time, stacked = rows[0].keys
    series: dict[str, Decimal] = {}
    bars: dict[str, dict[str, Decimal]] = {}
    for row in rows:
        amount = row.total_usd or Decimal(0)
        series[row.keys[stacked]] = series.get(row.keys[stacked], Decimal(0)) + amount
        bars.setdefault(row.keys[time], {})[row.keys[stacked]] = amount
    names = sorted(series, key=lambda name: (-series[name], name))
    most = max(sum(bar.values()) for bar in bars.values()) or Decimal(1)
    lines = [bar_line(label, bars[label], names, most) for label in sorted(bars)]
    legend = "  ".join(f"{BLOCKS[place % len(BLOCKS)]} {visible(name)}" for place, name in enumerate(names))
    return "\n".join([legend, *lines])


def bar_line(label: str, bar: dict[str, Decimal], names: Sequence[str], most: Decimal) -> str:
    drawn, before = "", Decimal(0)
    for place, name in enumerate(names):
        # Ends are rounded, not lengths: the whole bar is as long as its sum.
        start, before = before, before + bar.get(name, Decimal(0))
        drawn += BLOCKS[place % len(BLOCKS)] * (round(before / most * CHART_WIDTH) - round(start / most * CHART_WIDTH))
    return f"{label:10}  {money(before, estimated=False):>10}  {drawn}"


def sums(of: object) -> tuple[str, ...]:
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


def agents(found: Sequence["AgentStatus"]) -> Grid:
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
                (one.program_version or "installed") if one.installed else "not installed",
                "yes" if one.can_resume else "no",
                "yes" if one.can_fork else "no",
                ", ".join(map(tilde, one.found)) or f"{tilde(one.stores[0])} (not there)",
            )
            for one in found
        ],
    )


def tree(found: Sequence[SessionSummary], short: Mapping[str, str] | None = None) -> Grid:
    """Forks and sub-agents below the session they come from; `short` are ids for a terminal."""
    by_id = {(one.agent, one.session_id): one for one in found}
    children: dict[tuple[str, str] | None, list[SessionSummary]] = {}
    for one in found:
        above = (one.agent, one.parent_id or one.forked_from or "")
        children.setdefault(above if above in by_id and by_id[above] is not one else None, []).append(one)
    rows: list[tuple[str, ...]] = []
    for root in children.get(None, ()):
        branch(root, "", "", children, rows, short or {})
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
    short: Mapping[str, str],
) -> None:
    kind = "sub-agent: " if one.kind == "subagent" else "fork: " if one.forked_from else ""
    cost = usd(one.cost) if one.kind == "main" else f"in the above: {usd(one.cost)}"
    id = f"{one.agent} {short[one.unified_id]}" if one.unified_id in short else one.unified_id
    rows.append((f"{lead}{visible(id)}  {kind}{title(one)}", turns(one.turn_count), cost))
    # A session is drawn once: what hangs below it is taken out, so that a loop of links ends.
    forks = children.pop((one.agent, one.session_id), [])
    for place, child in enumerate(forks):
        last = place == len(forks) - 1
        branch(child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "), children, rows, short)
