"""Damage to a file, as crashes, disks, editors and attackers do it: each function does one kind at a place it draws.

What stands in a file before `Damage.start` is as it was. A function returns None where a file offers no place for its
kind of damage.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from random import Random

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}\[\]]', re.DOTALL)
COLON = re.compile(rb"\s*:")
DEPTH = 10_000
VALUES = {
    "an object": b"{}",
    "a list": b"[]",
    "a list of null": b"[null]",
    "an object in a list": b'[{"type":null,"text":7,"id":[]}]',
    "an empty text": b'""',
    "a text": b'"marmalade"',
    "null": b"null",
    "true": b"true",
    "false": b"false",
    "zero": b"0",
    "a negative number": b"-7",
    "a fraction": b"0.5",
    "a huge number": b"9" * 400,
    "a number of 19 digits": b"9223372036854775808",
    "a huge float": b"1e308",
    "infinity": b"1e999",
    "NaN": b"NaN",
    "half a surrogate pair": b'"\\ud83d"',
    "a NUL": b'"\\u0000"',
    "a deep list": b"[" * DEPTH + b"]" * DEPTH,
    "a deep object": b'{"a":' * DEPTH + b"null" + b"}" * DEPTH,
}
PAGE = 4096
MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Damage:
    """A file after something happened to it at `start`; `about` says what."""

    about: str
    content: bytes
    start: int


Mutation = Callable[[bytes, Random], Damage | None]


@dataclass(frozen=True, slots=True)
class Span:
    """Where a JSON value stands; `key` is the name it has in its object."""

    start: int
    end: int
    key: bytes = b""


def spans(content: bytes, begin: int = 0, end: int | None = None) -> list[Span]:
    """Every value of the JSON in a stretch of bytes, keys aside."""
    found: list[Span] = []
    opened: list[tuple[int, bytes]] = []
    key = b""
    for token in TOKEN.finditer(content, begin, len(content) if end is None else end):
        sign = token[0]
        if sign in b"{[":
            opened.append((token.start(), key))
        elif sign in b"}]":
            if opened:
                start, name = opened.pop()
                found.append(Span(start, token.end(), name))
        elif COLON.match(content, token.end()) and sign.startswith(b'"'):
            key = sign[1:-1]
            continue
        else:
            found.append(Span(token.start(), token.end(), key))
        key = b""
    return found


def line_starts(content: bytes) -> list[int]:
    """Where the lines begin that are not empty."""
    starts = [0, *(end.end() for end in re.finditer(b"\n", content))]
    return [start for start in starts if start < len(content) and content[start : start + 1] != b"\n"]


def line_end(content: bytes, start: int) -> int:
    """Behind the line feed of the line that begins at `start`."""
    return content.find(b"\n", start) + 1 or len(content)


def drawn_line(content: bytes, dice: Random) -> tuple[int, int] | None:
    starts = line_starts(content)
    if not starts:
        return None
    start = dice.choice(starts)
    return start, line_end(content, start)


def drawn_string(content: bytes, dice: Random) -> int | None:
    """A place inside a text, right behind its opening quote."""
    line = drawn_line(content, dice)
    texts = [one for one in spans(content, *line) if content[one.start : one.start + 1] == b'"'] if line else []
    return dice.choice(texts).start + 1 if texts else None


def spliced(about: str, content: bytes, start: int, end: int, instead: bytes) -> Damage:
    return Damage(about, content[:start] + instead + content[end:], start)


# Cuts


def byte_class(content: bytes, place: int) -> str:
    """What kind of byte stands at a place."""
    byte = content[place]
    if byte >= 0x80:
        return "inside a character" if byte < 0xC0 else "before a character of many bytes"
    sign = chr(byte)
    if place and content[place - 1] == ord("\\"):
        return "behind a backslash"
    if sign.isalpha():
        return "letter"
    return "digit" if sign.isdigit() else "control" if byte < 0x20 and sign != "\n" else repr(sign)


def cuts(content: bytes, dice: Random) -> Iterator[Damage]:
    """The file cut at one place of every class of bytes it has."""
    places = list(range(len(content))) if len(content) < 20_000 else dice.sample(range(len(content)), 20_000)
    dice.shuffle(places)
    classes: dict[str, int] = {}
    for place in places:
        classes.setdefault(byte_class(content, place), place)
    for name, place in sorted(classes.items()):
        yield Damage(f"cut at {place}, {name}", content[:place], place)


# Lines


def line_removed(content: bytes, dice: Random) -> Damage | None:
    line = drawn_line(content, dice)
    return spliced(f"line at {line[0]} removed", content, *line, b"") if line else None


def line_doubled(content: bytes, dice: Random) -> Damage | None:
    line = drawn_line(content, dice)
    if not line:
        return None
    start, end = line
    return spliced(f"line at {start} doubled", content, end, end, content[start:end])


def lines_swapped(content: bytes, dice: Random) -> Damage | None:
    starts = line_starts(content)
    if len(starts) < 2:
        return None
    one, other = sorted(dice.sample(starts, 2))
    end, other_end = line_end(content, one), line_end(content, other)
    swapped = content[other:other_end].rstrip(b"\n") + b"\n" + content[end:other] + content[one:end]
    return spliced(f"lines at {one} and {other} swapped", content, one, other_end, swapped)


def foreign_line(content: bytes, dice: Random) -> Damage | None:
    line = drawn_line(content, dice)
    foreign = dice.choice(
        [b"[1,2]\n", b'"text"\n', b"7\n", b"null\n", b"{}\n", b"<html>\n", b'{"type":"nobody knows"}\n']
    )
    return spliced(f"{foreign!r} before the line at {line[0]}", content, line[0], line[0], foreign) if line else None


# Values


def value_changed(content: bytes, dice: Random) -> Damage | None:
    """A value of another type, of an absurd size or depth, in the place of one."""
    line = drawn_line(content, dice)
    values = spans(content, *line) if line else []
    if not values:
        return None
    chosen = dice.choice(values)
    name, instead = dice.choice(sorted(VALUES.items()))
    if instead == b"null" and b"parent" in chosen.key.lower():
        return None  # that is no damage: a record without a parent begins a conversation anew
    about = f"{chosen.key.decode('utf-8', 'replace')!r} at {chosen.start} is {name}"
    return spliced(about, content, chosen.start, chosen.end, instead)


def key_changed(content: bytes, dice: Random) -> Damage | None:
    line = drawn_line(content, dice)
    keys = [one for one in TOKEN.finditer(content, *line) if COLON.match(content, one.end())] if line else []
    if not keys:
        return None
    chosen = dice.choice(keys)
    about = f"key {chosen[0].decode('utf-8', 'replace')} at {chosen.start()} renamed"
    return spliced(about, content, chosen.start(), chosen.end(), b'"nobody knows"')


# Bytes


def inserted(about: str, what: bytes) -> Mutation:
    """Damage that puts bytes into a text."""

    def insert(content: bytes, dice: Random) -> Damage | None:
        place = drawn_string(content, dice)
        return spliced(f"{about} at {place}", content, place, place, what) if place is not None else None

    insert.__name__ = about
    return insert


def zeroed(content: bytes, dice: Random) -> Damage | None:
    """A stretch of NUL bytes, as a file system leaves it after a crash."""
    if not content:
        return None
    start = dice.randrange(len(content))
    length = min(dice.choice([1, 64, 512, PAGE]), len(content) - start)
    return spliced(f"{length} NUL bytes at {start}", content, start, start + length, b"\0" * length)


def scrambled(content: bytes, dice: Random) -> Damage | None:
    if not content:
        return None
    start = dice.randrange(len(content))
    length = min(dice.choice([1, 2, 16, 256]), len(content) - start)
    return spliced(f"{length} random bytes at {start}", content, start, start + length, dice.randbytes(length))


def byte_order_mark(content: bytes, dice: Random) -> Damage | None:
    return Damage("BOM", b"\xef\xbb\xbf" + content, len(content))


def windows_line_ends(content: bytes, dice: Random) -> Damage | None:
    return Damage("CRLF", content.replace(b"\n", b"\r\n"), len(content))


def emptied(content: bytes, dice: Random) -> Damage | None:
    return Damage("empty", b"", 0)


TEXT: tuple[Mutation, ...] = (
    line_removed,
    line_doubled,
    lines_swapped,
    foreign_line,
    value_changed,
    key_changed,
    inserted("bytes that are no UTF-8", b"\xff\xc3\x28\xed\xa0\x80"),
    inserted("half a surrogate pair", rb"\ud83d"),
    inserted("U+2028", "\u2028".encode()),
    inserted("a NUL", b"\0"),
    inserted("an escaped NUL", rb"\u0000"),
    inserted("a bare control character", b"\x1b"),
    inserted("a bare line feed", b"\n"),
    zeroed,
    scrambled,
    byte_order_mark,
    windows_line_ends,
    emptied,
)


# Databases


def page_size(content: bytes) -> int:
    told = int.from_bytes(content[16:18], "big")
    return 65536 if told == 1 else told or PAGE


def page_overwritten(content: bytes, dice: Random) -> Damage | None:
    """A page of a database as a bad disk leaves it: noise, nothing, or another page."""
    size = page_size(content)
    pages = len(content) // size
    if not pages:
        return None
    page, other = dice.randrange(pages), dice.randrange(pages)
    kinds = {
        "noise": dice.randbytes(size),
        "zeros": bytes(size),
        "ones": b"\xff" * size,
        f"page {other}": content[other * size : (other + 1) * size],
    }
    name = dice.choice(sorted(kinds))
    return spliced(f"page {page} of {pages} is {name}", content, page * size, (page + 1) * size, kinds[name])


def bits_flipped(content: bytes, dice: Random) -> Damage | None:
    if not content:
        return None
    changed = bytearray(content)
    places = sorted(dice.randrange(len(content)) for _ in range(dice.choice([1, 4, 32])))
    for place in places:
        changed[place] ^= 1 << dice.randrange(8)
    return Damage(f"{len(places)} bits from {places[0]} on", bytes(changed), places[0])


def torn(content: bytes, dice: Random) -> Damage | None:
    place = dice.randrange(len(content) + 1)
    return Damage(f"cut at {place}", content[:place], place)


COLUMN = (
    None,
    "",
    "marmalade",
    7,
    -7,
    0.5,
    2**63 - 1,
    float("inf"),
    b"\xff\0",
    "[]",
    "{}",
    '{"type":null}',
    "[" * DEPTH,
)
"""What may stand in a column that should hold something else."""
TABLES = """
    select name from sqlite_master
    where type = 'table' and sql not like '%virtual%' and sql not like '%without rowid%'
"""


def column_changed(content: bytes, dice: Random) -> Damage | None:
    """Another value in one column of one row; where it is JSON, with damage inside of it."""
    if not content.startswith(MAGIC):
        return None
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.deserialize(content[:18] + b"\1\1" + content[20:])  # not in WAL mode: a database in memory has no -wal
        tables = [name for (name,) in db.execute(TABLES) if db.execute(f'select 1 from "{name}"').fetchone()]
        if not tables:
            return None
        table = dice.choice(tables)
        column = dice.choice([row[1] for row in db.execute(f'pragma table_info("{table}")')])
        number, old = dice.choice(db.execute(f'select rowid, "{column}" from "{table}"').fetchall())
        json = isinstance(old, str) and old[:1] in ("{", "[")
        damage = dice.choice(TEXT)(old.encode(), dice) if json else None
        new = damage.content if damage else dice.choice(COLUMN)
        value = "cast(? as text)" if damage else "?"
        db.execute("pragma ignore_check_constraints = on")
        with suppress(sqlite3.IntegrityError):  # a number must be one
            db.execute(f'update or ignore "{table}" set "{column}" = {value} where rowid = ?', (new, number))
        return Damage(f"{table} {number} {column} = {new!r:.60}", db.serialize(), 0)


DATABASE: tuple[Mutation, ...] = (
    column_changed,
    column_changed,
    column_changed,
    page_overwritten,
    page_overwritten,
    page_overwritten,
    bits_flipped,
    torn,
    zeroed,
    emptied,
)
