"""A cost report as a table and for a spreadsheet."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from io import StringIO

from amux.output.grids import ESTIMATED, Grid, count, money, tilde
from amux.output.plain import visible
from amux.query import IN_TIME
from amux.results.costs import CostSummary

NUMBERS = ("SESSIONS", "CALLS", "FRESH", "CACHED", "WRITTEN", "OUTPUT", "THINKING", "USD")
TOKENS = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "thinking_tokens")


def table(report: CostSummary, groups: Sequence[str], zone: str, names: Mapping[str, str] | None = None) -> Grid:
    """The report as a table; `names` are what a terminal calls sessions, by their unified ids."""
    rows = list((report.breakdowns or {}).values())
    in_time = groups[0] in IN_TIME
    most = max((row.total_usd or Decimal(0) for row in rows), default=Decimal(0))
    found = Grid(
        columns=(*(name.upper() for name in groups), *NUMBERS),
        right=frozenset(NUMBERS),
        flexible=next((name.upper() for name in reversed(groups) if name not in IN_TIME), ""),
        narrowest=36 if "session" in groups else 30,
        drop=("THINKING", "WRITTEN", "SESSIONS", "CALLS", "CACHED", "FRESH", "OUTPUT"),
        when_empty="No calls.",
        rows=[tuple(shown(name, row.keys[name], names or {}) for name in groups) + sums(row) for row in rows],
        bars=[float((row.total_usd or 0) / most) for row in rows] if in_time and most else (),
        total=("total", *[""] * (len(groups) - 1), *sums(report)),
        notes=[*trust_notes(report), *grouping_notes(report, groups, zone)],
    )
    return found.without("SESSIONS") if "session" in groups else found


def shown(dimension: str, key: str, names: Mapping[str, str]) -> str:
    return tilde(key) if dimension == "project" else visible(names.get(key, key))


def grouping_notes(report: CostSummary, groups: Sequence[str], zone: str) -> Iterator[str]:
    if groups[0] in IN_TIME:
        yield f"{groups[0]}s in {zone}"
    if "tag" in groups and sum(row.call_count for row in (report.breakdowns or {}).values()) > report.call_count:
        yield "a call counts under each tag of its session, and once in the total"


def trust_notes(report: CostSummary) -> list[str]:
    """What one should know to trust the numbers: where they come from, what is missing in them."""
    notes = []
    if report.recorded_usd is not None and report.estimated_usd is not None:
        notes.append(
            f"{money(report.recorded_usd, estimated=False)} recorded, {money(report.estimated_usd, estimated=True)} estimated"
        )
    if report.prices:
        notes.append(f"estimates: prices of {report.prices.date} ({report.prices.source} {report.prices.version})")
    if report.approximate:
        notes.append("approximate: some agents keep only totals, which are priced at the base tier")
    if report.free:
        notes.append(f"free: {', '.join(map(visible, report.free))}")
    if report.unpriced:
        models = ", ".join(f"{visible(model)} ({count(tokens)} tokens)" for model, tokens in report.unpriced.items())
        notes.append(f"no price known: {models}")
    return notes


def spreadsheet(report: CostSummary) -> str:
    """The rows for a spreadsheet: exact numbers, one line a row, no total."""
    import csv  # noqa: PLC0415 - what only --csv needs

    rows = list((report.breakdowns or {}).values())
    names = list(rows[0].keys) if rows else []
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, "sessions", "calls", *TOKENS, "usd", "source"])
    for row in rows:
        keys = [harmless(row.keys[name]) for name in names]
        numbers = [getattr(row, name) for name in ("session_count", "call_count", *TOKENS)]
        amount = f"{row.total_usd:.6f}" if row.total_usd is not None else None
        writer.writerow([*keys, *numbers, amount, row.source])
    return text.getvalue()


def harmless(text: str) -> str:
    """A cell that a spreadsheet does not take for a formula: model ids and directories are untrusted."""
    return "'" + text if text.startswith(("=", "+", "-", "@", "\t")) else visible(text)


def sums(of: object) -> tuple[str, ...]:
    def number(name: str) -> str:
        return count(getattr(of, name))

    total = getattr(of, "total_usd", None)
    estimated = getattr(of, "source", None) in ESTIMATED
    return (
        number("session_count"),
        number("call_count"),
        number("input_tokens"),
        number("cached_tokens"),
        number("cache_write_tokens"),
        number("output_tokens"),
        number("thinking_tokens"),
        money(total, estimated=estimated) if total is not None else "–",
    )
