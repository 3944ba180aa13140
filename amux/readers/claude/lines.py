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
    """The session a line was written in first, as far as the line says.

    /branch and the SDK mark each line they copy, `--fork-session` in 2.1.326 only the answers; 0.2.109 lets copies keep the
    id of their session, which all others replace.
    """
    if "forkedFrom" in record:
        return text_at(record, "forkedFrom", "sessionId")
    found = record.get("requestSessionId") or record.get("sessionId")
    return found if isinstance(found, str) else None
