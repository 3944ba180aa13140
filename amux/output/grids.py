"""The model as rows and columns: plain data, so that a test compares tuples and markup in a title stays text."""

import os
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from amux.model import CostRecord, SessionSummary
from amux.output.plain import visible

if TYPE_CHECKING:
    from amux.results.agents import AgentStatus
    from amux.results.hits import SearchHit

ESTIMATED = ("estimated", "mixed")
"""Where amounts come from that are not recorded in full."""
WIDEST_PROJECT = 20
PART_OF_PARENT = "(…) is part of the amount of the session that started the sub-agent"


class Table(Protocol):
    """What people see of an answer: drawn at a terminal, text in a pipe."""

    def plain(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Grid:
    """A table.

    Where the terminal is narrow, the column `flexible` gives way first, down to `narrowest`; then those in `drop` go.
    `sections` are headings, each with the number of the row it stands before; a pipe does not see them.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    right: frozenset[str] = frozenset()
    flexible: str = ""
    narrowest: int = 20
    drop: tuple[str, ...] = ()
    when_empty: str = ""
    sections: Sequence[tuple[int, str]] = ()
    total: tuple[str, ...] | None = None
    bars: Sequence[float] = ()
    """For each row how long its bar is, from 0 to 1; a pipe does not see them."""
    notes: Sequence[str] = ()
    header: bool = True
    widest: Mapping[str, int] = field(default_factory=dict)
    """For some columns how wide they may get at a terminal."""

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

    def without(self, name: str) -> "Grid":
        gone = self.columns.index(name)

        def kept(row: tuple[str, ...]) -> tuple[str, ...]:
            return (*row[:gone], *row[gone + 1 :])

        return replace(
            self,
            columns=kept(self.columns),
            rows=[kept(row) for row in self.rows],
            total=kept(self.total) if self.total else None,
        )


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
    return money(cost.total_usd, estimated=cost.source in ESTIMATED)


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


LISTED = ("AGENT", "ID", "UPDATED", "TURNS", "USD", "PROJECT", "TITLE")


def sessions(found: Sequence[SessionSummary]) -> Grid:
    """The sessions for a pipe: whole ids and absolute times."""
    return listing([("", one) for one in found])


def tree(found: Sequence[SessionSummary], short: Mapping[str, str] | None = None) -> Grid:
    """Forks and sub-agents below the session they come from; `short` are ids for a terminal."""
    return recent(family(found), short) if short else listing(family(found))


def days(found: Sequence[SessionSummary], short: Mapping[str, str], now: datetime | None = None) -> Grid:
    """The sessions for a terminal, by day, with the time of day."""
    today = (now or datetime.now(UTC)).astimezone()
    sections: list[tuple[int, str]] = []
    for place, one in enumerate(found):
        heading = day_heading(one.updated_at, today)
        if not sections or sections[-1][1] != heading:
            sections.append((place, heading))
    rows = [
        listed(one, visible(short[one.unified_id]), clock(one.updated_at, today), turns(one.turn_count))
        for one in found
    ]
    return replace(screen(rows, found), sections=sections)


def ranked(found: Sequence[SessionSummary], short: Mapping[str, str]) -> Grid:
    """The sessions for a terminal, in an order other than that of their dates."""
    return recent([("", one) for one in found], short)


def listing(found: Sequence[tuple[str, SessionSummary]]) -> Grid:
    rows = [
        listed(one, visible(one.session_id), stamp(one.updated_at), str(one.turn_count), branch)
        for branch, one in found
    ]
    return replace(screen(rows, [one for _, one in found]), header=True, notes=[])


def recent(found: Sequence[tuple[str, SessionSummary]], short: Mapping[str, str]) -> Grid:
    rows = [
        listed(one, visible(short[one.unified_id]), ago(one.updated_at), turns(one.turn_count), branch)
        for branch, one in found
    ]
    return screen(rows, [one for _, one in found])


def screen(rows: Sequence[tuple[str, ...]], found: Sequence[SessionSummary]) -> Grid:
    return Grid(
        columns=LISTED,
        rows=rows,
        right=frozenset({"TURNS", "USD"}),
        flexible="TITLE",
        drop=("TURNS", "PROJECT", "UPDATED", "USD"),
        widest={"PROJECT": WIDEST_PROJECT},
        when_empty="No sessions.",
        notes=[PART_OF_PARENT] if any(map(within, found)) else [],
        header=False,
    )


def listed(session: SessionSummary, id: str, when: str, turned: str, branch: str = "") -> tuple[str, ...]:
    spent = usd(session.cost)
    return (
        session.agent,
        id,
        when,
        turned,
        f"({spent})" if within(session) else spent,
        project(session.cwd),
        f"{branch}{mark(session)}{title(session)}",
    )


def within(session: SessionSummary) -> bool:
    """Whether what a session cost is part of what its parent did."""
    return session.kind == "subagent" and session.cost is not None and session.cost.total_usd is not None


def mark(session: SessionSummary) -> str:
    """What is special about a session, before its title."""
    known = (
        (session.kind == "subagent", "sub-agent"),
        (session.forked_from is not None, "fork"),
        (session.archived, "archived"),
    )
    said = ", ".join(word for so, word in known if so)
    return f"{said}: " if said else ""


def day_heading(time: datetime, today: datetime) -> str:
    local = time.astimezone(today.tzinfo)
    gone = (today.date() - local.date()).days
    if gone in (0, 1):
        return ("Today", "Yesterday")[gone]
    return f"{local:%A}, {local.day} {local:%B}" if gone < 300 else f"{local.day} {local:%B %Y}"


def clock(time: datetime, today: datetime) -> str:
    """How long ago today, else the time of day."""
    local = time.astimezone(today.tzinfo)
    return ago(time, today) if local.date() == today.date() else local.strftime("%H:%M")


def turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"


def family(found: Sequence[SessionSummary]) -> list[tuple[str, SessionSummary]]:
    """The sessions as a tree, each with the lines that lead to it."""
    children: dict[tuple[str, str], list[SessionSummary]] = {}
    roots: list[SessionSummary] = []
    known = {(one.agent, one.session_id) for one in found}
    for one in found:
        above = (one.agent, one.parent_id or one.forked_from or "")
        (children.setdefault(above, []) if above in known else roots).append(one)
    made: dict[tuple[str, str], tuple[str, SessionSummary]] = {}
    for root in (*roots, *found):  # sessions whose links go round have no root: the first of them is taken for one
        waiting = [("", "", root)]
        while waiting:
            lead, beneath, one = waiting.pop()
            made.setdefault((one.agent, one.session_id), (lead, one))
            for place, child in enumerate(reversed(children.pop((one.agent, one.session_id), []))):
                line, blank = ("├─ ", "│  ") if place else ("└─ ", "   ")
                waiting.append((beneath + line, beneath + blank, child))
    return list(made.values())


@dataclass(frozen=True, slots=True)
class Card:
    """A search result for a terminal: two lines about the session, one with the words in it.

    `snippet` is empty where the words are those of the title; `marks` are then the title's.
    """

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


def cards(found: Sequence["SearchHit"], short: Mapping[str, str]) -> Cards:
    return Cards([card(one, short[one.unified_id]) for one in found], hits(found))


def card(one: "SearchHit", id: str) -> Card:
    snippet = one.snippet
    in_title = snippet is not None and snippet.role == "title" and snippet.text == one.title
    return Card(
        agent=one.agent,
        id=visible(id),
        when=ago(one.updated_at),
        place=tilde(one.cwd),
        cost=usd(one.cost),
        score=f"{one.relevance_score:.2f}",
        title=one.title if in_title else title(one),  # the marks are places in the title as it is
        source=(snippet.role or "") if snippet else "",
        snippet=snippet.text if snippet and not in_title else "",
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


def agents(found: Sequence["AgentStatus"]) -> Grid:
    """The agents, those that were used first."""
    unreadable = any(one.unreadable for one in found)
    made = Grid(
        columns=("AGENT", "SESSIONS", "UNREADABLE", "NEWEST", "PROGRAM", "RESUME", "FORK", "STORE"),
        right=frozenset({"SESSIONS", "UNREADABLE"}),
        flexible="STORE",
        drop=("FORK", "RESUME", "NEWEST", "PROGRAM"),
        rows=[
            (
                one.agent,
                count(one.session_count) if one.session_count else "–",
                count(one.unreadable) if one.unreadable else "–",
                ago(one.newest) if one.newest else "–",
                (one.program_version or "installed") if one.installed else "not installed",
                "yes" if one.can_resume else "no",
                "yes" if one.can_fork else "no",
                ", ".join(map(tilde, one.found)) or f"not there: {tilde(one.stores[0])}",
            )
            for one in sorted(found, key=lambda one: (not one.session_count, not one.found))
        ],
    )
    return made if unreadable else made.without("UNREADABLE")
