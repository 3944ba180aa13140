"""What a session holds as plain text, fit for a terminal, a table or a page: characters, facts and amounts."""

import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from amux.model import Attachment, CostRecord, SessionSummary, Usage

UNSAFE = re.compile("\r\n|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
PIECE = 1 << 20

SOURCES = {
    "native": "recorded by the agent",
    "run-index": "recorded in the run index",
    "estimated": "estimated",
    "mixed": "partly estimated",
}

FOREIGN_FACTS = frozenset({"id", "model", "cwd", "branch", "forked from", "parent", "tags"})
"""The facts that are told in the agent's own characters rather than in our words and figures."""


def visible(text: str) -> str:
    """The text with every character in it that acts instead of being seen replaced by one that is seen.

    Those are controls but for newline and tab, overrides of the reading direction, the line separators of Unicode and
    halves of surrogate pairs. A Windows line end becomes a newline.
    """
    return UNSAFE.sub(symbol, text) if UNSAFE.search(text) else text


def symbol(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\r\n":
        return "\n"
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"


def pieces(text: str) -> Iterator[str]:
    """The visible text in pieces, so that a huge one is never held twice."""
    start = 0
    while start < len(text):
        end = start + PIECE
        if text.startswith("\r\n", end - 1):
            end += 1
        yield visible(text[start:end])
        start = end


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line, at most `width` characters."""
    beginning = text[: width * 8]
    line = visible(" ".join(beginning.split()))
    if len(line) <= width and len(beginning) == len(text):
        return line
    return line[: width - 1].rstrip() + "…"


def stamp(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def dollars(amount: Decimal) -> str:
    """An amount in USD: cents, and more places where it is less than ten of them."""
    if amount == 0:
        return "$0.00"
    if amount < Decimal("0.0001"):
        return "<$0.0001"
    return f"${amount:,.2f}" if amount >= Decimal("0.1") else f"${amount:.4f}"


def price(cost: CostRecord | None) -> str:
    """What a cost record says in a word: `~` marks an estimate, `–` an amount nobody knows."""
    if cost is None or cost.total_usd is None:
        return "–"
    return ("~" if cost.source in ("estimated", "mixed") else "") + dollars(cost.total_usd)


def token_counts(usage: Usage | CostRecord | None) -> list[tuple[str, int]]:
    """The tokens by kind, each with its name; what is unknown is left out."""
    if usage is None:
        return []
    counts = (
        ("fresh", usage.input_tokens),
        ("cached", usage.cached_tokens),
        ("written", usage.cache_write_tokens),
        ("output", usage.output_tokens),
        ("thinking", usage.thinking_tokens),
    )
    return [(kind, count) for kind, count in counts if count is not None]


def facts(session: SessionSummary) -> list[tuple[str, str]]:
    """What is known of a session, each fact with its name."""
    known = (
        ("id", session.unified_id),
        ("agent", " ".join(filter(None, (session.agent, session.agent_version)))),
        ("model", ", ".join(session.models) or session.model),
        ("cwd", session.cwd),
        ("branch", session.git_branch),
        ("created", stamp(session.created_at)),
        ("updated", stamp(session.updated_at)),
        ("turns", f"{session.turn_count:,}"),
        ("messages", f"{session.message_count:,}"),
        ("cost", price(session.cost) if session.cost else None),
        ("forked from", session.forked_from),
        ("parent", session.parent_id),
        ("tags", ", ".join(session.tags)),
    )
    return [(name, one_line(value, 1000)) for name, value in known if value]


def attachment(found: Attachment) -> str:
    name = found.name or found.media_type
    return one_line(f"[{found.kind}: {name}]" if name else f"[{found.kind}]", 200)


def line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0
