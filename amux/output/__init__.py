"""emit() and note(): the only writers to stdout and stderr."""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from amux.output.grids import Table

Value = TypeVar("Value")


def at_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


def emit(value: Value, *, as_json: bool, view: "Callable[[Value], Table | str]") -> None:
    """The answer of a command: the value itself as JSON, or what people see of it."""
    if as_json:
        from amux.output.jsonout import dumps  # noqa: PLC0415 - orjson is needed for JSON alone

        text = dumps(value, indent=at_terminal())
        write(tame(text) if at_terminal() else text)
        return
    shown = view(value)
    if isinstance(shown, str):
        write(shown.encode("utf-8", "replace"))
    elif at_terminal():
        from amux.output import terminal  # noqa: PLC0415 - only tables at a terminal need Rich

        terminal.draw(shown)
    else:
        write(shown.plain().encode("utf-8", "replace"))


def tame(text: bytes) -> bytes:
    """JSON that a terminal shows and does not obey: what JSON itself leaves unescaped (C1, bidi controls) is escaped."""
    import re  # noqa: PLC0415

    acting = "[\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
    return re.sub(acting, lambda found: f"\\u{ord(found[0]):04x}", text.decode()).encode()


def write(text: bytes, end: bytes = b"\n") -> None:
    """Bytes, since the locale's encoding may not hold what people typed; they end with `end`, once."""
    if sys.stdout:
        sys.stdout.flush()
        sys.stdout.buffer.write(text if text.endswith(end) else text + end)
        sys.stdout.buffer.flush()


def note(text: str) -> None:
    """A word on the side: never part of the answer, which is given even where the word cannot be said.

    It may quote a path or an id of somebody else's.
    """
    if not text.isprintable():
        from amux.output.plain import visible  # noqa: PLC0415

        text = visible(text)
    if sys.stderr:
        with suppress(OSError):
            sys.stderr.flush()
            sys.stderr.buffer.write(text.encode("utf-8", "replace") + b"\n")
            sys.stderr.buffer.flush()


def note_error(code: str, message: str, *, recoverable: bool, as_json: bool) -> None:
    if as_json:
        from amux.output.jsonout import dumps  # noqa: PLC0415

        error: dict[str, Any] = {"code": code, "message": message, "recoverable": recoverable}
        note(dumps({"error": error}).decode())
    else:
        note(f"amux: {message}")
