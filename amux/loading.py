"""Exported sessions read back."""

import types
from dataclasses import fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from amux.errors import UnreadableSession
from amux.model import Session
from amux.output.jsonout import camel
from amux.readers._json import decoded, records


def load(path: str | Path) -> Session:
    """The session in a file that `amux sessions export` wrote as json or jsonl. Raises UnreadableSession."""
    name = str(path)
    found = list(records(name))
    if not found:  # one JSON value over several lines
        found = [value for value in [decoded(Path(path).read_bytes())] if isinstance(value, dict)]
    if not found or "sessionId" not in found[0]:
        raise UnreadableSession(name, "it is no exported session")
    head = found[0]
    try:
        session: Session = made(Session, head if "messages" in head else {**head, "messages": found[1:]})
    except (TypeError, ValueError, ArithmeticError) as error:
        raise UnreadableSession(name, f"it is no exported session: {error}") from error
    return session


@cache
def hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def made(kind: Any, value: Any) -> Any:
    """A value of the model from its JSON form, by its type."""
    if value is None or kind is Any:
        return value
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return made(next(part for part in parts if part is not type(None)), value)
    if origin is tuple:
        return tuple(made(parts[0], one) for one in value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    if kind is Decimal:
        return Decimal(repr(value))
    if isinstance(kind, type) and is_dataclass(kind):
        known = hints(kind)
        shown = {field.name: camel(field.name) for field in fields(kind)}
        return kind(**{name: made(known[name], value[key]) for name, key in shown.items() if key in value})
    return value
