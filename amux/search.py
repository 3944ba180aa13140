"""Words: how a session's text goes into the index, and what a person typed as questions to it.

A row of the index is one part of one message. Messages are numbered through the whole catalog, each session having a
stretch of them, so a row's number tells the session, the message and the part. Every CJK, kana, Hangul and Thai character is a word of its own.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from amux.model import Json, SearchHit, Session, SessionSummary

PARTS = ("title", "user", "assistant", "thinking", "tool", "system")
PART_BITS = 3

TOKENIZER = "unicode61 remove_diacritics 2"
ALONE = "\u0e00-\u0e7f\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
"""Scripts written without blanks between words, and Hangul, whose particles hang on the word."""
SINGLE = re.compile(f"([{ALONE}])")
WORD = re.compile(r"\w", re.UNICODE)
TERM = re.compile(r'(?P<minus>-)?(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))')


def row_number(message: int, part: str) -> int:
    """The number of a row: that of the message in the catalog, and the part."""
    return (message << PART_BITS) + PARTS.index(part)


def spaced(text: str) -> str:
    """The text with each character of a script without blanks set apart, as the index and its questions need it."""
    return text if text.isascii() else SINGLE.sub(r" \1 ", text)


def index_rows(first: int, session: Session) -> Iterator[tuple[int, str]]:
    """Everything of a session that is searched, once: a tool's output stands in its message, not again in its call.

    The title stands at `first`, message n at `first` + 1 + n.
    """
    if session.title:
        yield row_number(first, "title"), spaced(session.title)
    for number, message in enumerate(session.messages, first + 1):
        if message.content:
            yield row_number(number, message.role), spaced(message.content)
        if message.thinking:
            yield row_number(number, "thinking"), spaced(message.thinking)
        if message.tool_calls:
            inputs = "\n".join(f"{call.tool_name}\n{flat(call.input)}" for call in message.tool_calls)
            yield row_number(number, "tool"), spaced(inputs)


def flat(value: Json) -> str:
    """The texts inside a tool's input, keys included."""
    found: list[str] = []
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                found.append(text)
            case dict() as members:
                waiting.extend(reversed([part for pair in members.items() for part in pair]))
            case list() as items:
                waiting.extend(reversed(items))
            case None | bool():
                pass
            case other:
                found.append(str(other))
    return "\n".join(found)


@dataclass(frozen=True, slots=True)
class Term:
    """One thing that must (or must not) occur: a word from its beginning, or a phrase."""

    text: str
    phrase: bool = False

    @property
    def question(self) -> str:
        """As FTS5 asks it: always quoted, so that nothing a person types is an operator."""
        quoted = '"' + spaced(self.text).replace('"', " ") + '"'
        return quoted if self.phrase else quoted + "*"


@dataclass(frozen=True, slots=True)
class Words:
    """What a person typed: every group must occur, by one of its terms; no excluded term may."""

    groups: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(term for group in self.groups for term in group)


def words(text: str) -> Words:
    """The question in a text; whatever has no letter or digit in it (a lone quote, an operator) asks nothing."""
    groups: list[list[Term]] = []
    excluded: list[Term] = []
    joining = False
    for found in TERM.finditer(text):
        if found["word"] == "OR" and not found["minus"]:
            joining = bool(groups)
            continue
        phrase = found["phrase"] is not None
        term = Term(found["phrase"] if phrase else found["word"], phrase)
        if not WORD.search(term.text):
            continue
        if found["minus"] and (phrase or term.text):
            excluded.append(term)
        elif joining:
            groups[-1].append(term)
        else:
            groups.append([term])
        joining = False
    return Words(tuple(tuple(group) for group in groups), tuple(excluded))


WEIGHTS = {"title": 8.0, "user": 4.0, "assistant": 2.0, "thinking": 1.0, "tool": 1.0, "system": 1.0}
PART_WEIGHTS = tuple(WEIGHTS[part] for part in PARTS)


def weight(row: int) -> float:
    """How much a match is worth by the part it is in."""
    return PART_WEIGHTS[row & ((1 << PART_BITS) - 1)]


def hit(summary: SessionSummary, score: float, matches: int) -> SearchHit:
    known = {field.name: getattr(summary, field.name) for field in fields(SessionSummary)}
    return SearchHit(**known, relevance_score=score, match_count=matches)


def holders(stretches: Sequence[tuple[int, int, int]], rows: Sequence[int]) -> dict[int, list[int]]:
    """For each session that has some, its rows among those given; a stretch is (first message, message count, session)."""
    held: dict[int, list[int]] = {}
    for first, count, no in stretches:
        start = bisect_left(rows, first << PART_BITS)
        if start < len(rows) and rows[start] < (first + count + 1) << PART_BITS:
            held[no] = list(rows[start : bisect_left(rows, (first + count + 1) << PART_BITS, start)])
    return held


def scores(weights: dict[int, float]) -> dict[int, float]:
    """Weights on one scale from 0 to 1: the best is 1, the others relative to it."""
    best = max(weights.values(), default=0.0) or 1.0
    return {no: round(weight / best, 4) for no, weight in weights.items()}
