"""The model as camelCase JSON and JSON lines; keys inside foreign JSON stay as they are."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import orjson

from amux.model import Session


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


@cache
def shown(kind: type) -> tuple[tuple[str, str, bool, bool], ...]:
    """For each field of a class that JSON shows: its name, its JSON name, whether it is never left out, whether it is foreign."""
    always: frozenset[str] = getattr(kind, "ALWAYS", frozenset())
    found = [
        (field.name, camel(field.name), field.name in always, bool(field.metadata.get("foreign")))
        for field in fields(kind)
        if not field.metadata.get("internal")
    ]
    # After the two fields they are made of.
    found[2:2] = [(name, camel(name), True, False) for name in getattr(kind, "COMPUTED", ())]
    return tuple(found)


def plain(value: Any) -> Any:
    """A value of the model as JSON can hold it; what is unknown is left out."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    if isinstance(value, Decimal):
        return float(round(value, 6))
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if is_dataclass(value):
        return members(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def members(value: Any, without: str | None = None) -> dict[str, Any]:
    """The fields of a value that JSON shows; `without` leaves one out, a long list that is written piece by piece."""
    found = {}
    kind: Any = type(value)
    for name, key, always, foreign in shown(kind):
        if name == without:
            continue
        one = getattr(value, name)
        if always or (one is not None and one is not False and one != ()):
            found[key] = one if foreign else plain(one)
    return found


def dumps(value: Any, *, indent: bool = False) -> bytes:
    return orjson.dumps(plain(value), option=orjson.OPT_INDENT_2 if indent else 0)


def lines(session: Session) -> Iterator[bytes]:
    """A session as JSON lines: its own fields first, then one message a line."""
    yield orjson.dumps(members(session, without="messages"))
    for message in session.messages:
        yield orjson.dumps(plain(message))
