"""Words: how a session's text goes into the index, and what a person typed as questions to it.

A row of the index is one part of one message. Messages are numbered through the whole catalog, each session having a
stretch of them, so a row's number tells the session, the message and the part. Every CJK, kana, Hangul and Thai character is a word of its own.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from math import log
from typing import NamedTuple

from amux.model import Json, Session

PARTS = ("title", "user", "assistant", "thinking", "tool", "system")
PART_BITS = 3

UNKNOWN = "\u2065-\u2069\u20ba-\u20cf\u20f1-\u20ff\u218a-\u218f\u23f4-\u23ff\u2427-\u243f\u244b-\u245f\u2700-\u2700\u2b4d-\u2bff"
"""Signs that SQLite does not know, and takes for letters of the word beside them."""
SEPARATORS = "".join(
    chr(code) for first, _, last in zip(*[iter(UNKNOWN)] * 3, strict=True) for code in range(ord(first), ord(last) + 1)
)
TOKENIZER = f"unicode61 remove_diacritics 2 categories 'L* N* Mn Mc' separators '{SEPARATORS}'"
"""Marks are parts of a word: many scripts write vowels with them."""
ALONE = "\u0e00-\u0e7f\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
"""Scripts written without blanks between words, and Hangul, whose particles hang on the word."""
NEAR = bytes((*range(0x03), 0x1E, *range(0x20, 0x2C)))
"""High bytes of UTF-16 of what FTS5 reads as it should: Latin letters, arrows, dashes and other signs."""
SIGNS = "\ue000-\uf8ff\ufe00-\ufe0f\U0001f000-\U0001faff\U000e0000-\U0010ffff"
"""Emoji, how they are to look, and signs of private use: FTS5 takes them for letters of the word beside them."""
ACCENTS = "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
"""Accents, and the points of Hebrew and Arabic: a word is the same without them."""
LATER = "\u1160-\u11ff\u3099\u309a"
"""What makes another letter of the one before it: vowels and endings of Hangul, the marks of voiced kana."""
DECOMPOSED = "\u0370-\u0590\u1f00-\u1fff"
"""Letters of scripts of which FTS5 folds none."""
FEW_LETTERS = 2
PIECE = 2**16
WORD = re.compile(r"[^\W_]")
TERM = re.compile(r'(?P<minus>-(?!-))?(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))')


def row_number(message: int, part: str) -> int:
    """The number of a row: that of the message in the catalog, and the part."""
    return (message << PART_BITS) + PARTS.index(part)


@cache
def unbroken() -> re.Pattern[str]:
    """Compiled when the first text needs it: it takes longer than a warm search."""
    return re.compile(f"[{ALONE}]+")


@cache
def accented() -> re.Pattern[str]:
    return re.compile(f"[{ACCENTS}{DECOMPOSED}{LATER}]")


@cache
def accents() -> re.Pattern[str]:
    return re.compile(f"[{ACCENTS}]+")


@cache
def signs() -> re.Pattern[str]:
    return re.compile(f"[{SIGNS}]+")


def spaced(text: str) -> str:
    """The text as the index and its questions need it: no accents, each character of a script without blanks set apart."""
    if text.isascii() or all_near(text):
        return text
    plain = unaccented(text) if accented().search(text) else text
    return unbroken().sub(lambda run: f" {' '.join(run[0])} ", signs().sub(" ", plain))


def unaccented(text: str) -> str:
    """The text without accents, letters that were written in parts made whole: those of Hangul, voiced kana."""
    if text.isascii():
        return text
    from unicodedata import normalize  # noqa: PLC0415 - only such a text needs it

    return normalize("NFC", accents().sub("", normalize("NFD", text)))


def indexed(text: str) -> str | bytes:
    """A text as it goes into the index: a huge one as the bytes that SQLite would make of it, never whole as anything else."""
    if len(text) <= PIECE or text.isascii():
        return spaced(text)
    return b"".join(spaced(piece).encode() for piece in pieces(text))


def pieces(text: str) -> Iterator[str]:
    """A text piece by piece: a huge one is not to be taken apart into millions of strings at once."""
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def all_near(text: str) -> bool:
    """Whether FTS5 reads every character as it should, told at a quarter of what a regular expression takes."""
    return not text.encode("utf-16-le", "surrogatepass")[1::2].translate(None, NEAR)


def stands_alone(word: str) -> bool:
    """Whether a word is of a script whose every character is a word to the index."""
    return not word.isascii() and bool(unbroken().match(word))


def index_rows(first: int, session: Session) -> Iterator[tuple[int, str | bytes]]:
    """Everything of a session that is searched, once: a tool's output stands in its message, not again in its call.

    The title stands at `first`, message n at `first` + 1 + n.
    """
    if session.title:
        yield row_number(first, "title"), indexed(session.title)
    for number, message in enumerate(session.messages, first + 1):
        if message.content:
            yield row_number(number, message.role), indexed(message.content)
        if message.thinking:
            yield row_number(number, "thinking"), indexed(message.thinking)
        if message.tool_calls:
            inputs = "\n".join(f"{call.tool_name}\n{flat(call.input)}" for call in message.tool_calls)
            yield row_number(number, "tool"), indexed(inputs)


def strings(value: Json, *, keys: bool = True) -> Iterator[str]:
    """The texts inside a JSON value in order, numbers and, if wanted, keys included."""
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case dict() as members:
                for key, member in reversed(members.items()):
                    waiting.extend((member, key) if keys else (member,))
            case list() as items:
                waiting.extend(reversed(items))
            case None | bool():
                pass
            case number:
                yield str(number)


def flat(value: Json) -> str:
    return "\n".join(strings(value))


class Term(NamedTuple):
    """One thing that must (or must not) occur: a word from its beginning, or a phrase."""

    text: str
    phrase: bool = False

    @property
    def question(self) -> str:
        """As FTS5 asks it: always quoted, so that nothing a person types is an operator."""
        quoted = '"' + spaced(self.text).replace('"', " ") + '"'
        return quoted if self.phrase or self.signed else quoted + "*"

    @property
    def signed(self) -> bool:
        """Whether its signs make it what it is: C++ is not every word with a c, nor is C#."""
        return sum(map(str.isalnum, self.text)) <= FEW_LETTERS and any(map(is_sign, self.text))


def is_sign(one: str) -> bool:
    """Whether a character is one between words and more than a blank; apostrophes are parts of a word."""
    from unicodedata import category  # noqa: PLC0415 - few words are so short

    return one not in "_'’" and category(one)[0] in "PS"


class Words(NamedTuple):
    """What a person typed: every group must occur, by one of its terms; no excluded term may."""

    groups: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(term for group in self.groups for term in group)

    @property
    def phrase(self) -> Term | None:
        """All the words as they were typed, where there are several: found so, they are worth more than scattered."""
        if len(self.groups) < 2 or any(len(group) > 1 for group in self.groups):
            return None
        return Term(" ".join(group[0].text for group in self.groups), phrase=True)


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
PART_MASK = (1 << PART_BITS) - 1
SATURATION, LENGTH = 1.2, 0.3
"""bm25's k1 and b: how soon more matches stop to count, and how much a long session has to have more of them."""
EXACT, RECENT = 2.0, 0.15
"""What words found together are worth over scattered ones; how much the newest session gains over the oldest."""
HALF_LIFE = 30 * 86_400_000


def part_of(row: int) -> str:
    return PARTS[row & PART_MASK]


def weight(row: int) -> float:
    """How much a match is worth by the part it is in."""
    return PART_WEIGHTS[row & PART_MASK]


def best_row(held: Sequence[Sequence[int]]) -> int | None:
    """The row to show: of those in which the most groups match, the one in the weightiest part, the first of them."""
    together = Counter(row for rows in held for row in rows)
    return min(together, key=lambda row: (-together[row], -weight(row), row), default=None)


FEWER = 8
"""How many times fewer rows than sessions there must be for it to be quicker to go by the rows."""
Stretch = tuple[int, int, int, int]
"""A session in the index: its first message's number, how many messages, its own number, when it was last written."""


def holders(stretches: Sequence[Stretch], rows: Sequence[int]) -> dict[int, list[int]]:
    """For each session that has some, its rows among those given."""
    held: dict[int, list[int]] = {}
    if len(rows) < len(stretches) // FEWER:
        stretches = near(stretches, rows)
    for first, count, no, _ in stretches:
        start = bisect_left(rows, first << PART_BITS)
        if start < len(rows) and rows[start] < (first + count + 1) << PART_BITS:
            held[no] = list(rows[start : bisect_left(rows, (first + count + 1) << PART_BITS, start)])
    return held


def near(stretches: Sequence[Stretch], rows: Sequence[int]) -> list[Stretch]:
    """The stretches that some of the rows may lie in."""
    firsts = [first for first, _, _, _ in stretches]
    places = {bisect_right(firsts, row >> PART_BITS) - 1 for row in rows}
    return [stretches[place] for place in sorted(places) if place >= 0]


def scores(
    stretches: Sequence[Stretch],
    held: Sequence[Mapping[int, Sequence[int]]],
    among: Collection[int],
    exact: Collection[int],
) -> dict[int, float]:
    """bm25 over sessions, on a scale from 0 to 1 that is the same for every agent.

    A session's matches count by the part they are in; 1 would be a session that says nothing else, has the words together
    and is the newest. All of it follows from the sessions alone, so that a cold catalog gives the same scores.
    """
    usual = 1 + sum([count for _, count, _, _ in stretches]) / max(len(stretches), 1)
    rare = [log(1 + (len(stretches) - len(one) + 0.5) / (len(one) + 0.5)) for one in held]
    weighed = list(zip(rare, held, strict=True))
    highest = sum(rare) * (SATURATION + 1) * EXACT * (1 + RECENT)
    newest = max([updated for _, _, _, updated in stretches], default=0)
    found = {}
    for _, count, no, updated in [stretch for stretch in stretches if stretch[2] in among]:
        room = SATURATION * (1 - LENGTH + LENGTH * (count + 1) / usual)
        score = 0.0
        for idf, one in weighed:
            times = 0.0
            for row in one[no]:  # a common word has thousands of them: sum() of a generator takes twice as long
                times += PART_WEIGHTS[row & PART_MASK]
            score += idf * times * (SATURATION + 1) / (times + room)
        score *= (EXACT if no in exact else 1) * (1 + RECENT * 0.5 ** ((newest - updated) / HALF_LIFE))
        found[no] = round(score / highest, 4)
    return found
