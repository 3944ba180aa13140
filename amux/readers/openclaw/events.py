"""Events as a database stores them: JSON, a zstd frame of it, or lines of an archive in cold storage.

Beside a compressed event stands what openclaw needs to find its way without it: its place in the tree, who spoke, which
tools were called. Without a decoder that is all, and the text of prompts and answers is in the full-text index.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from amux.model import Json
from amux.readers._json import Record, decoded, dict_at, int_at, list_at, text_at
from amux.readers.openclaw import packed

Event = tuple[int, Record]
"""An event and its number in its session."""
STUB = "\0stub"
"""The key that marks an event of which only a stub could be read: no event's own key holds a NUL."""
SPOKEN = ("user", "assistant")


def value_of(column: Any) -> Json:
    return decoded(column) if isinstance(column, str | bytes) else None


def stored(rows: Iterable[Record]) -> Iterator[Event]:
    """The events of a session's rows; those of which nothing can be read are passed over."""
    for row in rows:
        compressed = row.get("event_zstd")
        found = value_of(packed.unpacked(compressed) if isinstance(compressed, bytes) else row.get("event_json"))
        event = found if isinstance(found, dict) else stub(row)
        if event:
            yield int_at(row, "seq") or 0, event


def stub(row: Record) -> Record | None:
    navigation = value_of(row.get("navigation_json"))
    found = dict_at(navigation, "model") or dict_at(navigation, "navigation")
    return {**found, STUB: True} if found else None


def completed(event: Record, words: dict[str, str]) -> Record:
    """A stub with the text that is known of it; any other event as it is."""
    message = dict_at(event, "message")
    text = words.get(text_at(event, "id") or "")
    if STUB not in event or not text or message.get("role") not in SPOKEN:
        return event
    return {**event, "message": {**message, "content": [{"type": "text", "text": text}, *list_at(message, "content")]}}


def archived(lines: bytes) -> tuple[list[Event], list[int]]:
    """The events of a session in cold storage, and the numbers of the active ones."""
    events: list[Event] = []
    active: list[int] = []
    for line in lines.split(b"\n"):
        record = decoded(line)
        row = dict_at(record, "row")
        match text_at(record, "kind"):
            case "event" if isinstance(event := value_of(row.get("event_json")), dict):
                events.append((int_at(row, "seq") or 0, event))
            case "active" if (seq := int_at(row, "event_seq")) is not None:
                active.append(seq)
    return events, active
