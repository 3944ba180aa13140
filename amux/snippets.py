"""Snippets: one line around the best match, and looking into the text itself where words alone do not find it."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from itertools import islice

from amux.errors import UnreadableSession
from amux.model import Message, Session, SessionSummary
from amux.readers._base import Reader, SessionRef
from amux.readers._json import decoded, regular
from amux.results.hits import Match, SearchHit, Snippet
from amux.search import Term, flat, stands_alone, strings

WIDTH = 160
LINES_OF_A_MESSAGE = 64
"""How many lines from a message's first one on may hold its parts: one per content block, others in between."""
Pattern = re.Pattern[str]


def pattern(terms: Sequence[Term]) -> Pattern | None:
    """What the terms look like in a folded text: words from their beginning, their parts with anything between."""
    found = [one for term in terms if (one := term_pattern(term))]
    return re.compile("|".join(found), re.IGNORECASE) if found else None


def term_pattern(term: Term) -> str:
    words = re.findall(r"\w+", folded(term.text).replace("_", " "))
    if not words:
        return ""
    start = "" if stands_alone(words[0]) else r"(?<![^\W_])"
    end = r"(?![^\W_])" if term.phrase and not stands_alone(words[-1]) else ""
    return start + r"[\W_]+".join(map(re.escape, words)) + end


def folded(text: str) -> str:
    """The text without accents, character for character: what is found in it stands at the same place in the original."""
    if text.isascii():
        return text
    return "".join(base if len(base := unicodedata.normalize("NFD", one)[:1]) == 1 else one for one in text)


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


def around(text: str, wanted: Pattern, role: str, timestamp: datetime | None) -> Snippet | None:
    """One line of a text around its first match; None when it has none."""
    found = wanted.search(folded(text))
    if not found:
        return None
    start = max(found.start() - WIDTH // 3, 0)
    end = min(start + WIDTH, len(text))
    line = " ".join(text[start:end].split())
    line = ("…" if start else "") + line + ("…" if end < len(text) else "")
    marks = tuple(
        Match(start=one.start(), end=one.end()) for one in wanted.finditer(folded(line)) if one.end() > one.start()
    )
    return Snippet(text=line, matches=marks, role=role, timestamp=timestamp)


def in_lines(path: str, offset: int, wanted: Pattern) -> str | None:
    """The text of a message in which something is found, from the lines of its records alone."""
    try:
        with regular(path) as file:
            file.seek(offset)
            for line in islice(file, LINES_OF_A_MESSAGE):
                found = [text for text in strings(decoded(line), keys=False) if wanted.search(folded(text))]
                if found:  # a model's id may match as well: what was said is longer
                    return max(found, key=len)
    except (OSError, UnreadableSession):
        return None
    return None


def in_session(reader: Reader, ref: SessionRef, session_id: str, message: int, part: str) -> str | None:
    """The text of one part of a message, from the whole session."""
    session = read(reader, ref, session_id)
    if session is None or message >= len(session.messages):
        return None
    found = [text for name, text in message_parts(session.messages[message]) if name == part]
    return "\n".join(found) or None


def read(reader: Reader, ref: SessionRef, session_id: str) -> Session | None:
    try:
        return next((one for one in reader.read(ref) if one.session_id == session_id), None)
    except UnreadableSession:
        return None
