"""JSON Schema of what --json prints, made from the model.

Fields are only ever added: a schema leaves room for members it does not know.
"""

import re
import types
from collections.abc import Iterator
from dataclasses import is_dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from amux.errors import AmuxError
from amux.launch import Launch
from amux.model import Session, SessionSummary
from amux.output.jsonout import camel, shown
from amux.results.agents import AgentStatus
from amux.results.costs import CostSummary
from amux.results.differences import DiffStats, SessionDiff
from amux.results.hits import SearchHit

DRAFT = "https://json-schema.org/draft/2020-12/schema"
FIELD = re.compile(r"(?<=`)\w+(?=`)")
PLAIN: dict[Any, dict[str, str]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Decimal: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
    type(None): {"type": "null"},
}
KINDS: dict[str, type] = {
    "session": Session,
    "summary": SessionSummary,
    "hit": SearchHit,
    "cost": CostSummary,
    "diff": SessionDiff,
    "stats": DiffStats,
    "agent": AgentStatus,
    "launch": Launch,
}


def schemas() -> dict[str, Any]:
    """Every schema by its name; a list, a search and the agents are arrays of such values."""
    return {**{name: schema(kind) for name, kind in KINDS.items()}, "error": failure()}


def schema(kind: type) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    found = {"$schema": DRAFT, "title": kind.__name__, **described(kind, definitions)}
    return {**found, "$defs": dict(sorted(definitions.items()))} if definitions else found


def failure() -> dict[str, Any]:
    """What stderr says when a command with --json fails."""
    error = {
        "type": "object",
        "properties": {
            "code": {"type": "string", "enum": sorted({kind.code for kind in descendants(AmuxError)})},
            "message": {"type": "string"},
            "recoverable": {"type": "boolean"},
        },
        "required": ["code", "message", "recoverable"],
    }
    whole = {"type": "object", "properties": {"error": error}, "required": ["error"]}
    return {"$schema": DRAFT, "title": "Error", **whole}


def descendants(kind: type[AmuxError]) -> Iterator[type[AmuxError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from descendants(child)


def described(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """A class of the model as an object; the classes in it are put into `definitions`."""
    hints = types_of(kind)
    properties = {}
    required = []
    for name, key, always, foreign in shown(kind):
        properties[key] = {} if foreign else shape(hints[name], definitions, nothing=always)
        if always:
            required.append(key)
    found: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    said = description(kind)
    return {"description": said, **found} if said else found


def description(kind: type) -> str:
    """What a class says of itself, with the names its fields have in JSON."""
    said = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    if said.startswith(f"{kind.__name__}("):  # the signature a dataclass without a docstring gets for one
        return ""
    return FIELD.sub(lambda found: camel(found[0]), said)


def types_of(kind: type) -> dict[str, Any]:
    """The types of the fields and of what is computed from them."""
    computed: tuple[str, ...] = getattr(kind, "COMPUTED", ())
    return get_type_hints(kind) | {name: get_type_hints(getattr(kind, name).fget)["return"] for name in computed}


def shape(hint: Any, definitions: dict[str, Any], *, nothing: bool = True) -> dict[str, Any]:
    """A type as a schema; without `nothing`, None is not among its values, since JSON then leaves the field out."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        some = [shape(part, definitions) for part in parts if nothing or part is not type(None)]
        return some[0] if len(some) == 1 else {"anyOf": some}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is tuple:
        return {"type": "array", "items": shape(parts[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": shape(parts[1], definitions)}
    if is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # what holds itself must not be described without end
            definitions[hint.__name__] = described(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return dict(PLAIN[hint])
