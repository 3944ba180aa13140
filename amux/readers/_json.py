"""Foreign JSON: lines of a file another program is writing, and fields that may not be what they should."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, BinaryIO

import orjson

from amux.errors import UnreadableSession

MAX_COUNT = 2**53
"""Counts above what a JSON number can hold exactly are no counts."""
MAX_USD = 1_000_000
"""No call, and no session that keeps only its total, costs more."""
EARLIEST = datetime(1971, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
"""Times outside are none: a zero that was formatted, a counter taken for a clock, the last year there is."""

BUFFER = 128 * 1024
"""Lines are long: with Python's own 8 kB, reading them takes three times as long."""

Record = dict[str, Any]


def decoded(line: bytes | str) -> Any:
    """The JSON value of a text, or None: torn, foreign or damaged.

    What orjson refuses but can be made sense of is read all the same: a BOM, NUL bytes of a crashed disk, bytes that are
    no UTF-8, and half a surrogate pair, each replaced by U+FFFD.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    raw = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
    raw = raw.removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r\n")
    if raw[:1] not in (b"{", b"["):
        return None
    import json  # noqa: PLC0415 - seldom needed

    try:
        value = json.loads(raw.decode("utf-8", "replace"), strict=False, parse_int=number)
        return json.loads(
            json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    except (ValueError, RecursionError):
        return None


def number(digits: str) -> int | float:
    """As orjson reads it: what 64 bits do not hold is a float."""
    return int(digits) if len(digits) < 19 else float(digits)


OFFSET = "\0offset"
"""The key under which a record of placed() says where its line begins: no agent's own key holds a NUL."""


def placed(path: str, passed_over: tuple[bytes, ...] = (), start: int = 0) -> Iterator[Record]:
    """As records(), each record knowing where its line begins; lines that begin so are not even decoded."""
    for offset, record in located(path, passed_over, start):
        record[OFFSET] = offset
        yield record


def records(path: str) -> Iterator[Record]:
    """The objects of a JSON-lines file, in order; what is no object is passed over, anywhere in the file.

    Lines end at a line feed only: agents write U+2028 raw inside strings.
    """
    for _, record in located(path):
        yield record


def located(path: str, passed_over: tuple[bytes, ...] = (), start: int = 0) -> Iterator[tuple[int, Record]]:
    """As records(), each with the byte offset of its line, from the line on that begins at an offset."""
    offset = start
    try:
        with regular(path) as lines:
            lines.seek(start)
            for line in lines:
                record = None if line.startswith(passed_over) else decoded(line)
                if isinstance(record, dict):
                    yield offset, record
                offset += len(line)
    except OSError as error:
        raise UnreadableSession(path, error.strerror or str(error)) from error


def regular(path: str) -> BinaryIO:
    """A file opened for reading; never a pipe, which would wait for a writer. Raises UnreadableSession."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise UnreadableSession(path, "it is no regular file")
    return open(path, "rb", buffering=BUFFER)


def bytes_of(path: str, limit: int = -1) -> bytes:
    """What a file holds, with a limit the beginning of it. Raises UnreadableSession."""
    try:
        with regular(path) as file:
            return file.read(limit)
    except OSError as error:
        raise UnreadableSession(path, error.strerror or str(error)) from error


def text_of(path: str, limit: int = -1) -> str:
    """As bytes_of(); what is no UTF-8 is replaced by U+FFFD."""
    return bytes_of(path, limit).decode("utf-8", "replace")


def document(path: str) -> Any:
    """The one JSON value a file holds, or None when it is damaged. Raises UnreadableSession."""
    return decoded(bytes_of(path))


def at(value: Any, *path: str | int) -> Any:
    """What lies at a path of keys and positions; None as soon as there is nothing."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return None
    return value


def text_at(value: Any, *path: str | int) -> str | None:
    """The string there; None for anything else and for an empty one."""
    for key in path:  # as at(), which is too dear to be called a million times
        value = value.get(key) if isinstance(value, dict) else at(value, key)
    return value if isinstance(value, str) and value else None


def int_at(value: Any, *path: str | int) -> int | None:
    """The count there; None for anything that cannot be one: negative, absurd, a bool, a text."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else at(value, key)
    if type(value) is int:  # not isinstance: a bool is no count
        return value if 0 <= value <= MAX_COUNT else None
    return int_at(int(value)) if isinstance(value, float) and value.is_integer() else None


def usd_at(value: Any, *path: str | int) -> Decimal | None:
    """The amount of money there, exactly as it was written; None for what cannot be one."""
    found = at(value, *path)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= MAX_USD:
        return None
    return Decimal(repr(found))


def time_at(value: Any, *path: str | int) -> datetime | None:
    """The time there as aware UTC: ISO 8601 text, or a number of seconds or milliseconds since 1970."""
    return when(at(value, *path))


def when(found: Any) -> datetime | None:
    """A time as agents write it; a number above 10^11 counts milliseconds. None for one no agent ran at."""
    try:
        if isinstance(found, str):
            parsed = datetime.fromisoformat(found)
            time = parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        elif isinstance(found, int | float) and not isinstance(found, bool):
            time = datetime.fromtimestamp(found / 1000 if found > 1e11 else found, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return time if EARLIEST <= time <= LATEST else None


def list_at(value: Any, *path: str | int) -> list[Any]:
    """The list there; an empty one for anything else."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def dict_at(value: Any, *path: str | int) -> Record:
    """The object there; an empty one for anything else."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}
