"""One rollout file as lines of one shape, whichever version wrote it.

Up to 0.1.2505 (TypeScript) a file is one JSON document, `{session, items}`; from 0.8 a header line and bare items; from
0.34 lines of `{timestamp, type, payload}`; from 0.149 the same with an `ordinal` that a fork's or revert's file
continues. `.jsonl.zst` is a whole file compressed by codex itself after a week.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from amux.errors import UnreadableSession
from amux.readers import _zstd
from amux.readers._json import Record, at, bytes_of, decoded, document, int_at, list_at, located, regular, text_at
from amux.readers.codex.store import PACKED

META, ITEM, EVENT, BREAK = "session_meta", "response_item", "event_msg", "break"
LONGEST_LINE = 2**28
"""A compressed file of a few kilobytes can hold a line of any length."""


class Line(NamedTuple):
    """A record in the shape of today's.

    `offset` is its place in bytes; `summary` marks what a compaction call answered; `event` is the kind of event it tells of.
    """

    kind: str
    payload: Record
    time: str | None = None
    ordinal: int | None = None
    offset: int = 0
    summary: bool = False
    event: str | None = None


def lines(path: str) -> list[Line]:
    """Raises UnreadableSession, also when there is not one record in the file."""
    if path.endswith(".json"):
        found = [(0, record) for record in items(path)]
    else:
        found = list(unpacked(path) if path.endswith(PACKED) else located(path))
    if not found:
        raise UnreadableSession(path, "there is no record in it")
    return [line for offset, record in found if (line := line_of(record, offset))]


def lines_from(path: str, offset: int) -> Iterator[Line]:
    """The lines of a plain file from a place in it on. Raises UnreadableSession."""
    return (line for place, record in located(path, start=offset) if (line := line_of(record, place)))


def raw(path: str) -> Any:
    """The records of a file as they are; a file that is one document, as that document."""
    if path.endswith(".json"):
        return document(path)
    return [record for _, record in (unpacked(path) if path.endswith(PACKED) else located(path))]


def line_of(record: Record, offset: int) -> Line | None:
    """A record of any version as a line; None: it is of no known kind."""
    kind, payload, time = record.get("type"), record.get("payload"), text_at(record, "timestamp")
    if isinstance(kind, str) and isinstance(payload, dict):
        summary = at(record, "metadata", "compaction_output") is True
        event = text_at(payload, "type") if kind == EVENT else None
        return Line(kind, payload, time, int_at(record, "ordinal"), offset, summary, event)
    if isinstance(record.get("message"), dict):
        return Line(ITEM, record["message"], time, offset=offset)
    if text_at(record, "role") or (isinstance(kind, str) and kind.endswith(("reasoning", "_call", "_output"))):
        return Line(ITEM, record, time, offset=offset)
    if record.get("record_type") == "state":
        return Line(BREAK, {}, offset=offset)  # stands before and after the items of each call
    if kind is None and text_at(record, "id"):
        return Line(META, record, time, offset=offset)
    return None


# One JSON document


def items(path: str) -> Iterator[Record]:
    """Header and items of a document; of one that is cut short, those that stand whole in it."""
    content = bytes_of(path)
    whole = decoded(content)
    if isinstance(whole, dict):
        found = [whole.get("session"), *list_at(whole, "items")]
    else:
        found = whole if isinstance(whole, list) else list(whole_objects(content.decode("utf-8", "replace")))
    for item in found:
        if isinstance(item, dict):
            yield item
            if str(item.get("type")).endswith("_output"):
                # The TypeScript version let the model call one tool at a time: an output ends a response.
                yield {"record_type": "state"}


def whole_objects(text: str) -> Iterator[Any]:
    place, decoder = text.find("{") + 1, json.JSONDecoder(strict=False)
    with suppress(ValueError, RecursionError):
        while (start := text.find("{", place)) >= 0:
            found, place = decoder.raw_decode(text, start)
            yield found


# Compressed


def unpacked(path: str) -> Iterator[tuple[int, Record]]:
    """The records of a compressed file that stand before any damage in it, each with its offset when unpacked."""
    zstd = _zstd.decoder()
    if zstd is None:
        raise UnreadableSession(path, _zstd.MISSING)
    offset = 0
    try:
        with regular(path) as packed, zstd.open(packed, "rb") as file:
            while line := file.readline(LONGEST_LINE):
                record = decoded(line) if len(line) > 1 else None
                if isinstance(record, dict):
                    yield offset, record
                offset += len(line)
    except (EOFError, zstd.ZstdError):
        return
    except OSError as error:
        raise UnreadableSession(path, error.strerror or str(error)) from error
