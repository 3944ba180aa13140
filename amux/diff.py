"""Two sessions aligned message by message: what is the same, what changed, and what that makes in tools, files and cost."""

import ntpath
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, reduce
from itertools import accumulate, chain, count, groupby, islice, takewhile
from math import isqrt
from typing import Literal

from amux.model import CostRecord, Json, Message, Session, ToolCall
from amux.readers._base import turns
from amux.results.differences import DiffOperation, DiffSide, DiffStats, SessionDiff

Pairs = list[tuple[int, int]]
Pieces = list[tuple[Literal["unchanged", "remove", "add"], str]]

MASKS_KEPT = 4096
"""At 100,000 messages a side a mask takes 13 KB: this many are 55 MB."""
GAP_COMPARED = 4096
"""Up to this many pairs in a gap are compared by their content; in larger gaps roles alone decide."""
UNITS_MARKED = 20_000
"""Characters up to which texts are compared word by word, and lines up to which they are compared line by line."""
PATH_LENGTH = 4096

PUNCTUATION = r"!-/:-@\[-\^`{-~\u2010-\u2027"
WORDS_THEMSELVES = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Kana and Han are written without spaces: each character is a word of its own."""
WORD = re.compile(rf"\s+|[^\s{PUNCTUATION}{WORDS_THEMSELVES}]+|.", re.DOTALL)
LINE = re.compile(r"[^\n]*\n|[^\n]+")

NAMES_FILES = re.compile(r"(?:file|absolute|notebook)?_?paths?|files?|file_?name|target_?file", re.IGNORECASE)
"""The keys of tool inputs under which agents name files."""
LOOKS_AROUND = re.compile(
    r"find|glob|grep|list|list_?dir(?:ectory)?|ls|(?:\w+_)?search(?:_file_content|_?files)?", re.IGNORECASE
)
"""Tools whose path is a place to look in, not a file they touch."""
PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Departure:
    """Where two sessions part: after so many messages (system messages aside) with so many turns in them.

    `midway` is True when one of them goes on with something other than a prompt: they part within the last of the turns.
    """

    messages: int
    turns: int
    midway: bool


@dataclass(frozen=True, slots=True)
class Balance:
    """What b has more than a; numbers are b's less a's, None when either is unknown.

    Tools are names with how many calls more or fewer. Tokens and cost are the sessions' own: a fork's do not hold what
    it inherited.
    """

    turns: int
    tools_added: Mapping[str, int]
    tools_removed: Mapping[str, int]
    files_added: tuple[str, ...]
    files_removed: tuple[str, ...]
    output_tokens: int | None
    usd: Decimal | None


def difference(a: Session, b: Session) -> SessionDiff:
    """What makes b of a. Unchanged operations carry positions only; the others also the messages concerned."""
    numbers: defaultdict[Hashable, int] = defaultdict(count().__next__)  # long texts are compared once, then by number
    same = common([numbers[key(message)] for message in a.messages], [numbers[key(message)] for message in b.messages])
    operations = tuple(aligned(a.messages, b.messages, same))
    counts = Counter(operation.type for operation in operations)
    stats = DiffStats(
        removals=counts["remove"],
        additions=counts["add"],
        modifications=counts["modify"],
        unchanged=counts["unchanged"],
    )
    return SessionDiff(a=side(a), b=side(b), operations=operations, stats=stats)


def departure(a: Session, b: Session) -> Departure:
    """Where a fork left its parent, whichever of the two is the fork."""
    # Agents note a fork, a resume or a change of model on one side only: such notes part nothing.
    left, right = ([message for message in session.messages if message.role != "system"] for session in (a, b))
    shared = alike(map(key, left), map(key, right))
    following = left[shared : shared + 1] + right[shared : shared + 1]
    return Departure(
        messages=shared,
        turns=turns(left[:shared]),
        midway=shared > 0 and any(message.role != "user" for message in following),
    )


def balance(a: Session, b: Session) -> Balance:
    tools_a, tools_b = (Counter(call.tool_name for call in calls(session)) for session in (a, b))
    files_a, files_b = files(a), files(b)
    cost_a, cost_b = a.cost or CostRecord(), b.cost or CostRecord()
    tokens_a, tokens_b = cost_a.output_tokens, cost_b.output_tokens
    usd_a, usd_b = cost_a.total_usd, cost_b.total_usd
    return Balance(
        turns=b.turn_count - a.turn_count,
        tools_added=dict(tools_b - tools_a),
        tools_removed=dict(tools_a - tools_b),
        files_added=tuple(sorted(files_b - files_a)),
        files_removed=tuple(sorted(files_a - files_b)),
        output_tokens=None if tokens_a is None or tokens_b is None else tokens_b - tokens_a,
        usd=None if usd_a is None or usd_b is None else usd_b - usd_a,
    )


def words(a: str, b: str) -> tuple[Pieces, Pieces]:
    """Both texts in pieces that say what changed: a's unchanged or removed, b's unchanged or added.

    The pieces of a side make up its text as it was compared (trailing whitespace and CRLF aside). Long texts are marked
    by lines, and those of very many lines as a whole.
    """
    left, right = units(plain(a), plain(b))
    kept_a, kept_b = kept(left, right)
    return pieces(left, kept_a, "remove"), pieces(right, kept_b, "add")


def kept(a: Sequence[str], b: Sequence[str]) -> tuple[set[int], set[int]]:
    """The positions of what both have; a blank counts only beside a word that does.

    Blanks are left out of the alignment: there are as many as words and all alike, so they would decide it.
    """
    solid_a, solid_b = ([i for i, unit in enumerate(text) if not unit.isspace()] for text in (a, b))
    found = common([a[i] for i in solid_a], [b[j] for j in solid_b])
    pairs = [(solid_a[i], solid_b[j]) for i, j in found]
    kept_a, kept_b = {i for i, _ in pairs}, {j for _, j in pairs}
    blanks_a, blanks_b = set(range(len(a))).difference(solid_a), set(range(len(b))).difference(solid_b)
    for i, j in chain(((i + 1, j + 1) for i, j in pairs), ((i - 1, j - 1) for i, j in pairs)):
        if i in blanks_a and j in blanks_b and not (i in kept_a or j in kept_b) and a[i] == b[j]:
            kept_a.add(i)
            kept_b.add(j)
    return kept_a, kept_b


def units(a: str, b: str) -> tuple[list[str], list[str]]:
    if max(len(a), len(b)) <= UNITS_MARKED:
        return WORD.findall(a), WORD.findall(b)
    if max(a.count("\n"), b.count("\n")) <= UNITS_MARKED:
        return LINE.findall(a), LINE.findall(b)
    return [a], [b]


def pieces(parts: Sequence[str], kept: set[int], otherwise: Literal["remove", "add"]) -> Pieces:
    runs = groupby(range(len(parts)), key=kept.__contains__)
    return [("unchanged" if same else otherwise, "".join(parts[i] for i in run)) for same, run in runs]


def key(message: Message) -> Hashable:
    """What two messages must share to be the same one, whichever agents wrote them.

    Ids, times, tokens, thinking and models do not count. Nor does the output kept with a call: the tool message has it.
    """
    result = message.tool_result
    output = result.output if result and result.output is not None else message.content
    asked = tuple((call.tool_name, canonical(call.input)) for call in message.tool_calls)
    return message.role, plain(message.content), asked, plain(output)


def plain(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip()


def canonical(value: Json) -> tuple[str, ...]:
    """A JSON value laid out flat, the same for any order of keys. Without recursion: input nests as deep as it likes."""
    parts: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            parts.append(f"object {len(item)}")
            for name in sorted(item, key=str):
                waiting += (name, item[name])
        elif isinstance(item, list | tuple):
            parts.append(f"array {len(item)}")
            waiting.extend(item)
        else:
            parts.append(f"{type(item).__name__} {item}")
    return tuple(parts)


def common(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """A longest common subsequence, as pairs of positions in order."""
    start = alike(a, b)
    end = alike(reversed(a[start:]), reversed(b[start:]))
    stop_a, stop_b = len(a) - end, len(b) - end
    both = set(a[start:stop_a]) & set(b[start:stop_b])
    left = [i for i in range(start, stop_a) if a[i] in both]
    right = [j for j in range(start, stop_b) if b[j] in both]
    middle = longest([a[i] for i in left], [b[j] for j in right])
    return [
        *zip(range(start), range(start), strict=True),
        *((left[i], right[j]) for i, j in middle),
        *zip(range(stop_a, len(a)), range(stop_b, len(b)), strict=True),
    ]


def alike(a: Iterable[Hashable], b: Iterable[Hashable]) -> int:
    """How many items from the start are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def longest(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """A longest common subsequence by bit vectors, all of a at once (Hyyrö's form of the recurrence).

    There is a row for each number of items of b; its bit i is 0 where the subsequence of that much of b and a[: i + 1] is
    longer than the one of a[:i]. Of all rows only one in √len(b) is kept, those between are made again on the way back:
    100,000 items a side take megabytes, not a gigabyte.
    """
    full = (1 << len(a)) - 1
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i, item in enumerate(a):
        places[item].append(i)

    @lru_cache(maxsize=MASKS_KEPT)
    def mask(item: Hashable) -> int:
        bits = bytearray(len(a) // 8 + 1)
        for i in places[item]:
            bits[i >> 3] |= 1 << (i & 7)
        return int.from_bytes(bits, "little")

    def next_row(row: int, item: Hashable) -> int:
        matched = row & mask(item)
        return ((row + matched) | (row - matched)) & full

    step = isqrt(len(b)) + 1
    blocks = [b[start : start + step] for start in range(0, len(b), step)]
    kept = list(accumulate(blocks, lambda row, block: reduce(next_row, block, row), initial=full))
    pairs: Pairs = []
    i = len(a) - 1
    for number in reversed(range(len(blocks))):
        rows = list(accumulate(blocks[number], next_row, initial=kept[number]))
        for j in reversed(range(len(blocks[number]))):
            while i >= 0 and rows[j + 1] >> i & 1:
                i -= 1
            if i >= 0 and rows[j] >> i & 1:  # b[j] is what made a[i] count: they are equal
                pairs.append((i, number * step + j))
                i -= 1
    return pairs[::-1]


def aligned(a: Sequence[Message], b: Sequence[Message], same: Pairs) -> Iterator[DiffOperation]:
    i = j = 0
    for next_i, next_j in [*same, (len(a), len(b))]:
        yield from gap(a, b, range(i, next_i), range(j, next_j))
        if next_i < len(a):
            yield DiffOperation(type="unchanged", index_a=next_i, index_b=next_j)
        i, j = next_i + 1, next_j + 1


def gap(a: Sequence[Message], b: Sequence[Message], left: range, right: range) -> Iterator[DiffOperation]:
    """What stands between two messages that are the same: changed where roles meet, else removed or added."""
    i, j = left.start, right.start
    met = counterparts(a[i : left.stop], b[j : right.stop])
    for next_i, next_j in [*((left[x], right[y]) for x, y in met), (left.stop, right.stop)]:
        yield from (DiffOperation(type="remove", index_a=k, message_a=a[k]) for k in range(i, next_i))
        yield from (DiffOperation(type="add", index_b=k, message_b=b[k]) for k in range(j, next_j))
        if next_i < left.stop:
            yield DiffOperation(type="modify", index_a=next_i, index_b=next_j, message_a=a[next_i], message_b=b[next_j])
        i, j = next_i + 1, next_j + 1


def counterparts(a: Sequence[Message], b: Sequence[Message]) -> Pairs:
    """As many pairs of one role as there can be in order; of several ways the one whose pairs are most similar."""
    if len(a) * len(b) > GAP_COMPARED:
        return common([message.role for message in a], [message.role for message in b])
    words_a, words_b = ([vocabulary(message) for message in messages] for messages in (a, b))
    most = 1 + min(len(a), len(b))

    def worth(i: int, j: int) -> float:
        """All similarities together weigh less than one pair more."""
        if a[i].role != b[j].role:
            return -1
        return 1 + len(words_a[i] & words_b[j]) / max(len(words_a[i]), len(words_b[j]), 1) / most

    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            best[i][j] = max(worth(i, j) + best[i + 1][j + 1], best[i + 1][j], best[i][j + 1])
    pairs: Pairs = []
    i = j = 0
    while i < len(a) and j < len(b):
        if best[i][j] == worth(i, j) + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def vocabulary(message: Message) -> frozenset[str]:
    """The words a message begins with, with what its tools were asked."""
    asked = (part for call in message.tool_calls for part in (call.tool_name, *canonical(call.input)))
    return frozenset(chain(message.content[:1000].split(), islice(asked, 100)))


def side(session: Session) -> DiffSide:
    return DiffSide(agent=session.agent, session_id=session.session_id, unified_id=session.unified_id)


def calls(session: Session) -> Iterator[ToolCall]:
    return (call for message in session.messages for call in message.tool_calls)


def files(session: Session) -> frozenset[str]:
    """The files its tools were told to read or write, below the session's directory relative to it."""
    named = (path for call in calls(session) for path in paths(call))
    return frozenset(relative(path, session.cwd or "") for path in named if is_path(path))


def paths(call: ToolCall) -> Iterator[str]:
    touches = not LOOKS_AROUND.fullmatch(call.tool_name)
    waiting: list[tuple[str, Json]] = [("", call.input)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend((str(inner), item) for inner, item in value.items())
        elif isinstance(value, list | tuple):
            waiting.extend((name, item) for item in value)
        elif isinstance(value, str) and "*** Begin Patch" in value:
            yield from (path.strip() for path in PATCHED.findall(value))
        elif isinstance(value, str) and touches and NAMES_FILES.fullmatch(name):
            yield value


def is_path(text: str) -> bool:
    return 0 < len(text) <= PATH_LENGTH and "\n" not in text and "://" not in text


def relative(path: str, cwd: str) -> str:
    """The path below the directory, so that sessions in two copies of a project touch the same files."""
    system = ntpath if ntpath.splitdrive(cwd)[0] else posixpath
    whole: str = system.normpath(system.join(cwd, path))
    return whole.removeprefix(system.normpath(cwd) + system.sep).replace(system.sep, "/")
