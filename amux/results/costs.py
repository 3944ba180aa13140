"""What a cost report answers with."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

from amux.model import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSource:
    source: str | None = None
    version: str | None = None
    date: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBreakdown:
    ALWAYS: ClassVar = frozenset({"key", "keys", "session_count", "call_count"})

    key: str
    keys: dict[str, str]
    total_usd: Decimal | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    source: Source | None = None
    approximate: bool = False
    session_count: int = 0
    call_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSummary:
    """The sums of a cost report. `recorded_usd` and `estimated_usd` are the parts of `total_usd`."""

    ALWAYS: ClassVar = frozenset({"session_count", "run_count", "call_count", "unpriced"})

    total_usd: Decimal | None = None
    recorded_usd: Decimal | None = None
    estimated_usd: Decimal | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    source: Source | None = None
    approximate: bool = False
    session_count: int = 0
    run_count: int = 0
    call_count: int = 0
    unpriced: dict[str, int] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    """Models that are known to cost nothing."""
    prices: PriceSource | None = None
    breakdowns: dict[str, CostBreakdown] | None = None
