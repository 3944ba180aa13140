"""A cost report as bars over time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate

from amux.output.grids import ESTIMATED, money
from amux.output.plain import visible
from amux.results.costs import CostBreakdown, CostSummary

BLOCKS = "█▓▒░▞▚▤▥"
PLAIN_ROOM = 60
"""Columns of the longest bar in a pipe."""


@dataclass(frozen=True, slots=True)
class Bar:
    """`shares` are what each series makes of this bar, as parts of the longest bar there is."""

    label: str
    amount: str
    shares: Sequence[Decimal]

    def pieces(self, room: int) -> list[str]:
        """What is drawn for each series where the longest bar has so many columns."""
        # Ends are rounded, not lengths: the whole bar is as long as its sum.
        ends = [0, *(round(end * room) for end in accumulate(self.shares))]
        return [block(place) * (ends[place + 1] - ends[place]) for place in range(len(self.shares))]


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars stacked from series, the dearest first; each series has a pattern of its own."""

    dimension: str
    series: Sequence[str]
    bars: Sequence[Bar]
    when_empty: str = "No calls."

    def plain(self) -> str:
        if not self.bars:
            return self.when_empty
        legend = "  ".join(f"{block(place)} {name}" for place, name in enumerate(self.series))
        return "\n".join([legend, *(head(bar) + "".join(bar.pieces(PLAIN_ROOM)) for bar in self.bars)])


def block(place: int) -> str:
    return BLOCKS[place % len(BLOCKS)]


def head(bar: Bar) -> str:
    return f"{bar.label:10}  {bar.amount:>10}  "


def chart(report: CostSummary) -> Chart:
    """A report by a time and by what is stacked over it."""
    rows = list((report.breakdowns or {}).values())
    time, stacked = rows[0].keys if rows else ("", "")
    bars = grouped(rows, time)
    series = grouped(rows, stacked)
    names = sorted(series, key=lambda name: (-total(series[name]), name))
    most = max(map(total, bars.values()), default=Decimal(0)) or Decimal(1)
    return Chart(
        dimension=stacked,
        series=[visible(name) for name in names],
        bars=[
            Bar(
                label,
                amount(bars[label]),
                [total(grouped(bars[label], stacked).get(name, [])) / most for name in names],
            )
            for label in sorted(bars)
        ],
    )


def grouped(rows: Iterable[CostBreakdown], dimension: str) -> dict[str, list[CostBreakdown]]:
    found: dict[str, list[CostBreakdown]] = {}
    for row in rows:
        found.setdefault(row.keys[dimension], []).append(row)
    return found


def total(rows: Iterable[CostBreakdown]) -> Decimal:
    return sum((row.total_usd or Decimal(0) for row in rows), Decimal(0))


def amount(rows: Sequence[CostBreakdown]) -> str:
    return money(total(rows), estimated=any(row.source in ESTIMATED for row in rows))
