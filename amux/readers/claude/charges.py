"""What the calls of a transcript used."""

from collections.abc import Iterable

from amux.model import Charge, Claim, Json, Usage
from amux.readers._json import OFFSET, Record, at, int_at, text_at, time_at, usd_at
from amux.readers.claude.lines import SYNTHETIC, kind_of, maker


def charges(lines: Iterable[Record], session_id: str, places: dict[str, int]) -> list[Charge]:
    """One charge per response of the model, abandoned branches included: they were paid for."""
    best: dict[str, tuple[int, Record]] = {}
    for record in lines:
        message = record.get("message")
        if (
            not isinstance(message, dict)
            or not isinstance(message.get("usage"), dict)
            or kind_of(record) != "assistant"
        ):
            continue
        if message.get("model") == SYNTHETIC or record.get("isApiErrorMessage"):
            continue
        key = text_at(message, "id") or text_at(record, "requestId") or text_at(record, "uuid")
        key = key or f"{session_id}:{record.get(OFFSET)}"  # tools that imitate the format leave all of them out
        output = int_at(message["usage"], "output_tokens") or 0
        # The whole line with the highest output, not field by field: a fallback in mid-stream changes them all.
        if key not in best or output >= best[key][0]:
            best[key] = output, record
    return [charge(key, record, session_id, places.get(key)) for key, (_, record) in best.items()]


def charge(key: str, record: Record, session_id: str, place: int | None) -> Charge:
    usage = at(record, "message", "usage")
    # Lines of a sub-agent bear the id of its main session, whose a call is that both hold: a side question repeats it all.
    made_by = maker(record)
    claim: Claim = "copied" if made_by and made_by != session_id else "unknown"
    return Charge(
        key=key,
        at=time_at(record, "timestamp"),
        model=text_at(record, "message", "model"),
        usage=usage_of(usage),
        hour_write_tokens=int_at(usage, "cache_creation", "ephemeral_1h_input_tokens") or 0,
        usd=usd_at(record, "costUSD") or None,  # 0.2.126 writes 0 in the copies a resume makes
        claim=claim,
        message=place,
    )


def usage_of(usage: Json) -> Usage:
    """Input excludes the cache, output includes thinking: amux's own meaning."""
    return Usage(
        input_tokens=int_at(usage, "input_tokens"),
        output_tokens=int_at(usage, "output_tokens"),
        thinking_tokens=int_at(usage, "output_tokens_details", "thinking_tokens"),
        cached_tokens=int_at(usage, "cache_read_input_tokens"),
        cache_write_tokens=int_at(usage, "cache_creation_input_tokens"),
    )
