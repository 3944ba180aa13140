"""What every line of a transcript may be asked."""

from amux.readers._json import Record, at, text_at

SYNTHETIC = "<synthetic>"
"""The model of lines that the program wrote itself."""


def kind_of(record: Record) -> str | None:
    """A record's type; records of other tools may have only the message's role."""
    return text_at(record, "type") or text_at(record, "message", "role")


def blocks(record: Record) -> list[Record]:
    content = at(record, "message", "content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def maker(record: Record) -> str | None:
    """The session a marker says a line was copied from."""
    return text_at(record, "forkedFrom", "sessionId") or text_at(record, "requestSessionId")
