"""Snippets: one line around the best match, and looking into the text itself where words alone do not find it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache
from itertools import islice, takewhile
from typing import NamedTuple

from amux.errors import UnreadableSession
from amux.model import Message, Session, SessionSummary
from amux.readers._base import Reader, SessionRef
from amux.results.hits import Match, SearchHit, Snippet
from amux.search import ACCENTS, LATER, Term, flat, stands_alone, unaccented

WIDTH = 160
BEFORE = WIDTH // 3
"""How much of a line stands before its first match."""
MOST_MATCHES = 200
"""How many matches of a text are looked at for the best place in it."""
Span = tuple[int, int]


class Wanted(NamedTuple):
    """What is looked for in a text; unless it is `raw`, accents aside."""

    pattern: re.Pattern[str]
    raw: bool = False

    def spans(self, text: str) -> Iterator[Span]:
        """Where it stands in a text; what is empty stands nowhere."""
        plain, places = (text, range(len(text) + 1)) if self.raw else folded(text)
        for found in self.pattern.finditer(plain):
            if found.end() > found.start():
                yield places[found.start()], places[found.end()]

    def within(self, text: str) -> bool:
        return bool(self.pattern.search(text if self.raw else unaccented(text)))


def wanted(terms: Sequence[Term]) -> Wanted | None:
    """What the terms look like in a text: words from their beginning, their parts with anything between."""
    found = [one for term in terms if (one := term_pattern(term))]
    return Wanted(re.compile("|".join(found), re.IGNORECASE)) if found else None


def term_pattern(term: Term) -> str:
    plain = unaccented(term.text)
    words = [plain.strip()] if term.signed else re.findall(r"\w+", plain.replace("_", " "))
    if not words:
        return ""
    start = "" if stands_alone(words[0]) else r"(?<![^\W_])"
    end = r"(?![^\W_])" if term.phrase and not term.signed and not stands_alone(words[-1]) else ""
    return start + r"[\W_]+".join(map(re.escape, words)) + end


def folded(text: str) -> tuple[str, Sequence[int]]:
    """The text without accents, and for each place in it the place in the original."""
    plain = unaccented(text)
    if text.isascii() or (len(plain) == len(text) and not composed().search(text)):
        return plain, range(len(text) + 1)
    letters = [(found.start(), unaccented(found[0])) for found in written().finditer(text)]
    places = [start for start, letter in letters for _ in letter]
    return "".join(letter for _, letter in letters), [*places, len(text)]


@cache
def composed() -> re.Pattern[str]:
    """What changes the letter before it, or goes with it."""
    return re.compile(f"[{ACCENTS}{LATER}]")


@cache
def written() -> re.Pattern[str]:
    """A letter with everything that belongs to it."""
    return re.compile(f".[{ACCENTS}{LATER}]*", re.DOTALL)


def hit(summary: SessionSummary, score: float, matches: int, snippet: Snippet | None) -> SearchHit:
    known = {field.name: getattr(summary, field.name) for field in fields(SessionSummary)}
    return SearchHit(**known, relevance_score=score, match_count=matches, snippet=snippet)


def parts(session: Session) -> Iterator[tuple[int, str, str]]:
    """Everything of a session that is searched: (message, -1 for the title; the part; its text)."""
    yield -1, "title", session.title
    for place, message in enumerate(session.messages):
        yield from ((place, part, text) for part, text in message_parts(message))


def message_parts(message: Message) -> Iterator[tuple[str, str]]:
    yield message.role, message.content
    if message.thinking:
        yield "thinking", message.thinking
    for call in message.tool_calls:
        yield "tool", f"{call.tool_name}\n{flat(call.input)}"


# The line


def around(
    text: str, wanted: Wanted, role: str, timestamp: datetime | None, exact: Wanted | None = None
) -> Snippet | None:
    """One line of a text around its best match: of all the words together, else of the most different ones."""
    together = next(exact.spans(text), None) if exact else None
    best = together or densest(text, list(islice(wanted.spans(text), MOST_MATCHES)))
    if best is None:
        return None
    start = max(best[0] - BEFORE, 0)
    end = min(start + WIDTH, len(text))
    line, places = on_one_line(text[start:end])
    lead = "…" if start else ""
    marks = [
        Match(start=len(lead) + places[max(first - start, 0)], end=len(lead) + places[min(last, end) - start])
        for first, last in takewhile(lambda span: span[0] < end, wanted.spans(text))
        if last > start
    ]
    shown = lead + line + ("…" if end < len(text) else "")
    return Snippet(
        text=shown, matches=tuple(mark for mark in marks if mark.end > mark.start), role=role, timestamp=timestamp
    )


def densest(text: str, spans: Sequence[Span]) -> Span | None:
    """The match after which the most different ones follow on its line, the first of them."""

    def different(place: int) -> int:
        near = takewhile(lambda span: span[1] <= spans[place][0] + WIDTH - BEFORE, spans[place:])
        return len({text[start:end].casefold() for start, end in near})

    return spans[max(range(len(spans)), key=different)] if spans else None


def on_one_line(text: str) -> tuple[str, list[int]]:
    """The text with each stretch of white space a blank, and for each place in the text the place in the line."""
    line = ""
    places = []
    for one in text:
        places.append(len(line))
        if not one.isspace():
            line += one
        elif line and not line.endswith(" "):
            line += " "
    line = line.rstrip()
    return line, [min(place, len(line)) for place in (*places, len(line))]


# Where the text is


def part_of(message: Message, part: str) -> str:
    return "\n".join(text for name, text in message_parts(message) if name == part)


def in_lines(reader: Reader, ref: SessionRef, offset: int, part: str) -> str | None:
    """The text of one part of a message, from the lines of its records alone where those tell."""
    try:
        message = reader.message_at(ref, offset)
    except UnreadableSession:
        return None
    return part_of(message, part) if message else None


def in_session(reader: Reader, ref: SessionRef, session_id: str, message: int, part: str) -> str | None:
    """The text of one part of a message, from the whole session."""
    session = read(reader, ref, session_id)
    return part_of(session.messages[message], part) if session and message < len(session.messages) else None


def read(reader: Reader, ref: SessionRef, session_id: str) -> Session | None:
    try:
        return next((one for one in reader.read(ref) if one.session_id == session_id), None)
    except UnreadableSession:
        return None
