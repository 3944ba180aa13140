"""Charges added up by agent, model, day, session: each call once."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from amux.errors import InvalidValue
from amux.model import Charge, CostBreakdown, CostRecord, CostSummary, Source
from amux.query import Query

if TYPE_CHECKING:
    from amux.catalog import Catalog

PICO = Decimal(10) ** 12
"""Money is kept in whole picodollars: exact for any price per token, and 64 bits hold nine million dollars."""
QUARTER = 900_000
"""Milliseconds: the days of every time zone are made of quarters of an hour."""
GROUPS = ("agent", "model", "day", "session")
UNKNOWN = "(unknown)"


def pico(amount: Decimal | None) -> int | None:
    return int((amount * PICO).to_integral_value()) if amount is not None else None


def usd(count: int | None) -> Decimal | None:
    return Decimal(count) / PICO if count is not None else None


def record(charge: Charge) -> CostRecord | None:
    """The cost of one call as its agent recorded it."""
    if charge.usd is None:
        return None
    usage = charge.usage
    return CostRecord(
        charge.usd,
        usage.input_tokens,
        usage.output_tokens,
        usage.thinking_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
        "native",
    )


def source(native: int | None, estimate: int | None) -> Source | None:
    if native is None and estimate is None:
        return None
    return "native" if estimate is None else "mixed" if native else "estimated"


def report(catalog: "Catalog", query: Query, group_by: Sequence[str], zone: tzinfo | None = None) -> CostSummary:
    for name in group_by:
        if name not in GROUPS:
            raise InvalidValue(f"cannot group by {name!r}; the groups are {', '.join(GROUPS)}")
    offsets = list(catalog_offsets(catalog, zone)) if "day" in group_by else []
    total = next(iter(catalog.spending(query, (), offsets)))
    rows = catalog.spending(query, tuple(group_by), offsets) if group_by else ()
    breakdowns = {made.key: made for row in rows if (made := breakdown(group_by, row))} if group_by else None
    return CostSummary(**sums(total), unpriced=catalog.unpriced(query), breakdowns=breakdowns)


def sums(row: dict[str, Any]) -> dict[str, Any]:
    native, estimate = row["usd"], row["auto"]
    both = None if native is None and estimate is None else (native or 0) + (estimate or 0)
    return {
        "total_usd": usd(both),
        "input_tokens": row["input"],
        "output_tokens": row["output"],
        "thinking_tokens": row["thinking"],
        "cached_tokens": row["cached"],
        "cache_write_tokens": row["written"],
        "source": source(native, estimate),
        "approximate": bool(row["aggregate"]),
        "session_count": row["sessions"],
        "call_count": row["calls"] or 0,
    }


def breakdown(group_by: Sequence[str], row: dict[str, Any]) -> CostBreakdown:
    keys = {name: label(name, row[name]) for name in group_by}
    return CostBreakdown(key="/".join(keys.values()), keys=keys, **sums(row))


def label(name: str, value: Any) -> str:
    if value is None:
        return UNKNOWN
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat() if name == "day" else str(value)


def catalog_offsets(catalog: "Catalog", zone: tzinfo | None) -> Iterator[tuple[int, int]]:
    """(from when on, milliseconds ahead of UTC) for the time the calls span: the offset changes twice a year or so."""
    first, last = catalog.span()
    offset = None
    at = first
    while at <= last:
        now = ahead(at, zone)
        if now != offset:
            yield (at if offset is None else turn(at - 24 * 4, at, zone)) * QUARTER, now
            offset = now
        at += 24 * 4


def ahead(quarter: int, zone: tzinfo | None) -> int:
    local = datetime.fromtimestamp(quarter * QUARTER / 1000, UTC).astimezone(zone)
    return int((local.utcoffset() or timedelta()).total_seconds() * 1000)


def turn(before: int, after: int, zone: tzinfo | None) -> int:
    """The first quarter of an hour with the later offset."""
    later = ahead(after, zone)
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if ahead(middle, zone) == later else (middle, after)
    return after
