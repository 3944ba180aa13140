"""What OpenCode recorded of each call of a model, in amux's meaning of tokens.

A message has the tokens and the cost of its call. Up to 1.0.61 `input` includes what was read from a cache, unless the
provider itself counts that apart. Up to 1.3.2 `output` includes reasoning, since 1.14.34 it does not, and neither does it in
the rows of version 2; where there is a `total`, it tells. Killed and refused calls have zeros. The calls that made a title
are recorded nowhere.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b

from amux.model import Charge, Usage
from amux.readers._json import Record, at, dict_at, int_at, text_at, usd_at
from amux.readers.opencode.records import Entry, Stored

NUMBER = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")
CACHE_APART = (1, 0, 98)
"""1.0.61 still counted cached input as input, 1.0.98 does not."""
ALWAYS_APART = frozenset({"anthropic", "google-vertex-anthropic", "amazon-bedrock"})
"""Providers that never count cached input as input."""
TOKENS = (("input",), ("output",), ("reasoning",), ("cache", "read"), ("cache", "write"))


def calls(entry: Entry, found: Sequence[Sequence[Record]]) -> list[Record | None]:
    """For each step the record of what its call took; None where nothing was recorded: killed, refused, no call at all.

    Only a message of several steps needs their own records; for others the message has it, unless the program died
    before it wrote it there.
    """
    ends = [next((part for part in step if part.get("type") == "step-finish" and spent(part)), None) for step in found]
    finished = [number for number, end in enumerate(ends) if end]
    if len(finished) < 2 and spent(entry.info):
        taken: list[Record | None] = [None] * len(found)
        taken[finished[0] if finished else -1] = entry.info
        return taken
    return ends


def spent(record: Record) -> bool:
    return any(int_at(record, "tokens", *path) for path in TOKENS) or bool(usd_at(record, "cost"))


def charge(stored: Stored, entry: Entry, call: Record, step: Sequence[Record], time: datetime | None) -> Charge:
    return Charge(
        key=key(stored, entry, call, step),
        usage=usage(stored, entry, call),
        at=time,
        model=text_at(entry.info, "modelID"),
        provider=text_at(entry.info, "providerID"),
        usd=usd_at(call, "cost"),
        claim="copied" if stored.copied(entry) else "own",
    )


def key(stored: Stored, entry: Entry, call: Record, step: Sequence[Record]) -> str:
    """What a copy in a fork keeps: when, by which model, how many tokens, and what was said. Ids are new there."""
    said = [text_at(part, name) for part in step for name in ("text", "callID")]
    digest = blake2b(repr(said).encode("utf-8", "replace"), digest_size=8).hexdigest()
    times = (at(entry.info, "time", "created"), at(entry.info, "time", "completed"))
    names = (text_at(entry.info, "providerID"), text_at(entry.info, "modelID"))
    if entry.created is None:
        names = (stored.id, entry.id)
    return " ".join(map(str, (*times, *names, *(int_at(call, "tokens", *path) for path in TOKENS), digest)))


def usage(stored: Stored, entry: Entry, call: Record) -> Usage:
    fresh, output, reasoning, read, written = (int_at(call, "tokens", *path) for path in TOKENS)
    if fresh is not None and read and counts_cache_as_input(stored, entry, call):
        fresh -= read
    if output is not None and reasoning and (entry.reasoning_apart or counts_reasoning_apart(call)):
        output += reasoning
    return Usage(fresh, output, reasoning, read, written)


def counts_cache_as_input(stored: Stored, entry: Entry, call: Record) -> bool:
    """Versions up to 1.0.61 did, unless the provider itself counts apart; only such providers report writes."""
    tokens = dict_at(call, "tokens")
    version = NUMBER.match(text_at(stored.info, "version") or "")
    if entry.reasoning_apart or "total" in tokens or not version:
        return False
    return (
        tuple(map(int, version.groups())) < CACHE_APART
        and text_at(entry.info, "providerID") not in ALWAYS_APART
        and not int_at(tokens, "cache", "write")
        and (int_at(tokens, "input") or 0) >= (int_at(tokens, "cache", "read") or 0)
    )


def counts_reasoning_apart(call: Record) -> bool:
    """Whether `output` leaves reasoning out: since 1.14 it does. `total` is nearer to the sum that was meant."""
    total = int_at(call, "tokens", "total")
    fresh, output, reasoning, read, written = (int_at(call, "tokens", *path) or 0 for path in TOKENS)
    if total is None:
        return reasoning > output
    included = fresh + output + read + written
    return abs(total - included) > abs(total - included - reasoning)
