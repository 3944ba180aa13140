"""What a session used. hermes keeps totals only, in the session's own row and, since schema 20, by model and task.

Rows of `session_model_usage` without a task repeat the session's totals by model, and may hold less: the messaging gateway
sets the totals without them. Rows with a task (a title, a picture described) are calls that the totals leave out. A row
counts the calls made under its own id, so what a branch or a continuation copied costs it nothing.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from amux.model import Charge, Usage
from amux.readers._json import Record, int_at, text_at, time_at, usd_at

COUNTERS = (
    *("input_tokens", "output_tokens", "reasoning_tokens", "cache_read_tokens", "cache_write_tokens"),
    "api_call_count",
)
ROUTE = ("model", "billing_provider", "billing_base_url", "billing_mode", "task")
"""What tells the rows of one session apart."""
Counted = dict[str, int]


def charges(row: Record, by_model: Sequence[Record], latest: datetime | None) -> Iterator[Charge]:
    """The charges of one row of `sessions`; `latest` is when it was last written."""
    origin = f"{row.get('id')}@{row.get('started_at')}"
    main = [used for used in by_model if not text_at(used, "task")]
    for used in by_model:
        key = "/".join(str(used.get(name) or "") for name in ROUTE)
        yield from charge(f"{origin}/{key}", used, counted(used), usd(used), time_at(used, "last_seen") or latest)
    rest = remainder(counted(row), [counted(used) for used in main])
    paid = usd(row)
    if paid is not None:
        paid = max(paid - sum((usd(used) or Decimal(0) for used in main), Decimal(0)), Decimal(0))
    yield from charge(origin, row, rest, paid, latest)


def counted(record: Record) -> Counted:
    return {name: int_at(record, name) or 0 for name in COUNTERS}


def remainder(total: Counted, parts: Sequence[Counted]) -> Counted:
    return {name: max(total[name] - sum(part[name] for part in parts), 0) for name in COUNTERS}


def charge(key: str, record: Record, used: Counted, paid: Decimal | None, at: datetime | None) -> Iterator[Charge]:
    if not any(used.values()):
        return
    model = text_at(record, "model")
    yield Charge(
        key=key,
        usage=usage(used),
        at=at,
        model=None if model == "unknown" else model,
        provider=text_at(record, "billing_provider"),
        usd=paid,
        claim="own",
        calls=max(used["api_call_count"], 1),
        aggregate=True,
    )


def usage(used: Counted) -> Usage:
    """Input is without the cache and output includes reasoning, as in amux. Calls of no tokens at all told none."""
    if not any(used[name] for name in COUNTERS[:-1]):
        return Usage()
    return Usage(*(used[name] for name in COUNTERS[:-1]))


def usd(record: Record) -> Decimal | None:
    """What was recorded: the provider's own amount, else hermes' estimate. Its estimate of an unknown price is 0.0."""
    actual, estimated = usd_at(record, "actual_cost_usd"), usd_at(record, "estimated_cost_usd")
    match text_at(record, "cost_status"):
        case "actual":
            return actual if actual is not None else estimated
        case "included":
            return actual or estimated or Decimal(0)
        case "estimated":
            return actual or estimated
        case "unknown":
            return actual or None
    return actual or estimated or None
