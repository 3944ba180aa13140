"""amux cost report."""

from datetime import tzinfo
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from amux.cli import options
from amux.errors import InvalidValue
from amux.output import emit, grids, note
from amux.query import GROUPS, IN_TIME, Query, moment

if TYPE_CHECKING:
    from amux.results.costs import CostSummary

app = typer.Typer(help="What the calls of the models cost.", no_args_is_help=True, rich_markup_mode=None)


class CostMode(StrEnum):
    auto = "auto"
    native = "native"
    estimate = "estimate"


class CostOrder(StrEnum):
    key = "key"
    cost = "cost"
    tokens = "tokens"
    calls = "calls"


@app.callback()
def cost() -> None:
    """What the calls of the models cost."""


@app.command()
def report(
    agent: options.OnlyAgents = None,
    since: options.Since = None,
    until: options.Until = None,
    model: options.Model = None,
    tag: options.Tags = None,
    group_by: Annotated[
        str | None, typer.Option(help=f"{', '.join(GROUPS)}; several with commas.", show_default=False)
    ] = None,
    cost_mode: Annotated[
        CostMode,
        typer.Option(help="auto: what was recorded, else an estimate; native: only recorded; estimate: all estimated."),
    ] = CostMode.auto,
    timezone: Annotated[
        str | None, typer.Option(help="Days of this zone, Europe/Berlin say.", show_default="local")
    ] = None,
    sort: Annotated[CostOrder | None, typer.Option(help="What comes first.", show_default="time, else cost")] = None,
    limit: Annotated[int, typer.Option(help="At most so many rows; 0 means all.", min=0)] = 0,
    chart: Annotated[bool, typer.Option("--chart", help="Bars over time, stacked by agent or model.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    json: options.Json = False,
) -> None:
    """Tokens and money, each call once.

    Example: amux cost report --since 7d --group-by day
    """
    if sum((json, csv, chart)) > 1:
        raise InvalidValue("--json, --csv and --chart exclude each other")
    where = zone(timezone)
    groups = charted(names(group_by)) if chart else names(group_by) or (() if json else ("agent",))
    query = Query(
        agents=options.known(agent or ()),
        since=moment(since, zone=where) if since else None,
        until=moment(until, end=True, zone=where) if until else None,
        model=model,
        tags=tuple(tag or ()),
    )
    from amux.cost import Report  # noqa: PLC0415 - this command's alone

    asked = Report(group_by=groups, mode=cost_mode.value, zone=where, sort=sort.value if sort else None, limit=limit)
    sessions = options.manager()
    found = sessions.total_cost(query, report=asked)

    def table(of: "CostSummary") -> grids.Grid:
        return grids.costs(of, groups, timezone or "local time")

    emit(found, as_json=json, view=grids.cost_csv if csv else grids.chart if chart else table)
    if limit and (rows := found.breakdowns) is not None and len(rows) == limit:
        note(f"amux: the first {limit} rows (--limit 0 for all); the total is of all")
    options.note_skipped(sessions)


def names(group_by: str | None) -> tuple[str, ...]:
    found = tuple(name.strip() for name in (group_by or "").split(",") if name.strip())
    return tuple(dict.fromkeys(found))


def charted(groups: tuple[str, ...]) -> tuple[str, ...]:
    """A time and what is stacked over it."""
    time = next((name for name in groups if name in IN_TIME), "day")
    stacked = next((name for name in groups if name in ("agent", "model")), "agent")
    return time, stacked


def zone(name: str | None) -> tzinfo | None:
    if not name:
        return None
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - needed only for a zone that is not the machine's

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidValue(f"no time zone is called {name!r}; they are named like Europe/Berlin or UTC") from error
