"""Money: exact amounts, where they come from, and the prices that estimates are made of."""

from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from amux.model import Charge, CostRecord, Source, Usage
from amux.readers._base import stamp
from amux.readers._json import MAX_USD

if TYPE_CHECKING:
    from amux.pricing import PriceTable
    from amux.results.costs import PriceSource

PRICES = Path(__file__).with_name("prices.json")
PICO = Decimal(10) ** 12
"""Money is kept in whole picodollars: finer than any price per token, and a sum of them may be four million dollars."""
MOST = 2**62
"""A sum that is not below is unknown."""
MOST_TOKENS = 10**12
"""No call, and no session that keeps only its total, has more."""
MOST_CALLS = 10**9
QUARTER = 900_000
"""Milliseconds: the days of every time zone are made of quarters of an hour."""


class Prices:
    """The price table, loaded only when a call has to be estimated."""

    def __init__(self, user_file: Path | None) -> None:
        self.user_file = user_file

    @cached_property
    def table(self) -> "PriceTable":
        from amux.pricing import PriceTable  # noqa: PLC0415 - a few milliseconds that a warm run does without

        return PriceTable.load(self.user_file)

    @cached_property
    def fingerprint(self) -> str:
        """Changes when any price may have: told by the files, since hashing them would cost every run a millisecond."""
        found = [stamp(path) for path in (PRICES, self.user_file) if path]
        return "|".join(one[0] if one else "" for one in found)

    def estimate(self, charge: Charge) -> int | None:
        usage = counted(charge.usage)
        return pico(self.table.price(charge if usage is charge.usage else replace(charge, usage=usage)))

    @property
    def source(self) -> "PriceSource":
        from amux.results.costs import PriceSource  # noqa: PLC0415

        return PriceSource(source=self.table.source, version=self.table.version, date=self.table.date)


def pico(amount: Decimal | None) -> int | None:
    """The amount as it is kept; None, unknown, for one that nothing costs: a file that tells it is wrong or forged."""
    return int((amount * PICO).to_integral_value()) if amount is not None and amount <= MAX_USD else None


def counted(usage: Usage) -> Usage:
    """The tokens as they are kept; all unknown where one count is more than any call has."""
    highest = max(
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.thinking_tokens or 0,
        usage.cached_tokens or 0,
        usage.cache_write_tokens or 0,
    )
    return usage if highest <= MOST_TOKENS else Usage()


def added(amounts: str) -> str:
    """SQL for the sum of a column of amounts or counts, of which none is negative; null from MOST on.

    sum() fails when it outgrows 64 bits, and then every command would. Neither half of it does, whatever the rows hold.
    """
    high, low = f"sum(({amounts}) >> 31)", f"sum(({amounts}) & 0x7fffffff)"
    return f"case when {high} < {MOST >> 31} then ({high} << 31) + {low} end"


def usd(count: int | None) -> Decimal | None:
    return Decimal(count) / PICO if count is not None else None


def record(charge: Charge, prices: Prices) -> CostRecord | None:
    """The cost of one call: as its agent recorded it, else estimated; None where neither is known."""
    estimate = usd(prices.estimate(charge)) if not charge.usd else None
    amount = charge.usd or (estimate if estimate is not None else charge.usd)
    if amount is None:
        return None
    usage = counted(charge.usage)
    return CostRecord(
        amount,
        usage.input_tokens,
        usage.output_tokens,
        usage.thinking_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
        "estimated" if estimate is not None else "native",
    )


def source(native: int | None, run: int | None, estimate: int | None) -> Source | None:
    """Where an amount comes from. A recorded zero beside other sources says nothing of its own."""
    parts: list[Source] = []
    if native or (native is not None and run is None and estimate is None):
        parts.append("native")
    if run is not None:
        parts.append("run-index")
    if estimate is not None:
        parts.append("estimated")
    return parts[0] if len(parts) == 1 else "mixed" if parts else None


def joined(*parts: int | None) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
