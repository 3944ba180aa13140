"""amux cost report."""

from datetime import tzinfo
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from amux.cli import options
from amux.cli.commands import Command, Group, need_command
from amux.errors import InvalidValue
from amux.manager import SessionManager
from amux.output import at_terminal, emit, grids, note
from amux.query import GROUPS, IN_TIME, Query, moment

if TYPE_CHECKING:
    from amux.results.costs import CostSummary

app = typer.Typer(
    cls=Group,
    help="""What the calls of the models cost.

    Example: amux cost report""",
    rich_markup_mode=None,
)

app.callback(invoke_without_command=True)(need_command)


class CostMode(StrEnum):
    auto = "auto"
    native = "native"
    estimate = "estimate"


class CostOrder(StrEnum):
    key = "key"
    cost = "cost"
    tokens = "tokens"
    calls = "calls"


@app.command(cls=Command)
def report(
    agent: options.OnlyAgents = None,
    since: options.Since = None,
    until: options.Until = None,
    model: options.Model = None,
    tag: options.Tags = None,
    group_by: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(GROUPS)}; several with commas.", metavar="GROUPS", show_default=False),
    ] = None,
    cost_mode: Annotated[
        CostMode,
        typer.Option(help="auto: what was recorded, else an estimate; native: only recorded; estimate: all estimated."),
    ] = CostMode.auto,
    timezone: Annotated[
        str | None, typer.Option(help="Days of this zone, Europe/Berlin say.", metavar="ZONE", show_default="local")
    ] = None,
    sort: Annotated[CostOrder | None, typer.Option(help="What comes first.", show_default="time, else cost")] = None,
    limit: options.Limit = 0,
    chart: Annotated[bool, typer.Option("--chart", help="Bars over time, stacked by agent or model.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    json: options.Json = False,
) -> None:
    """Tokens and money, each call once.

    What the agents recorded, else an estimate (marked ~) from the price each model had on the day of the call.

    Example: amux cost report --group-by day,model
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
    from amux.output import costs  # noqa: PLC0415
    from amux.output.chart import chart as bars  # noqa: PLC0415

    asked = Report(group_by=groups, mode=cost_mode.value, zone=where, sort=sort.value if sort else None, limit=limit)
    sessions = options.manager()
    found = sessions.total_cost(query, report=asked)

    def table(of: "CostSummary") -> grids.Grid:
        names = session_names(sessions, of) if at_terminal() and "session" in groups else {}
        return costs.table(of, groups, timezone or "local time", names)

    emit(found, as_json=json, view=costs.spreadsheet if csv else bars if chart else table)
    if limit and (rows := found.breakdowns) is not None and len(rows) == limit:
        note(f"amux: the first {limit} rows (--limit 0 for all); the total is of all")
    if not found.call_count and not json:
        options.note_first_run(sessions)
    options.note_skipped(sessions)


def names(group_by: str | None) -> tuple[str, ...]:
    """The groups a person typed, each once. Raises InvalidValue."""
    found = tuple(name.strip() for name in (group_by or "").split(",") if name.strip())
    for name in found:
        if name not in GROUPS:
            from amux.cli.wording import no_choice  # noqa: PLC0415 - only mistakes need it

            raise no_choice("--group-by", name, GROUPS)
    return tuple(dict.fromkeys(found))


def session_names(sessions: SessionManager, report: "CostSummary") -> dict[str, str]:
    """What a terminal calls the sessions of a report: short ids and titles."""
    spent = {row.keys["session"] for row in (report.breakdowns or {}).values()}
    found = [one for one in sessions.list(Query(subagents=True)) if one.unified_id in spent]
    short = sessions.short_ids(found)
    return {one.unified_id: f"{one.agent}:{short[one.unified_id]}  {grids.title(one)}" for one in found}


def charted(groups: tuple[str, ...]) -> tuple[str, ...]:
    """A time and what is stacked over it."""
    time = next((name for name in groups if name in IN_TIME), "day")
    stacked = next((name for name in groups if name in ("agent", "model")), "agent")
    return time, stacked


def zone(name: str | None) -> tzinfo | None:
    if not name:
        return None
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415 - only a zone that is not the machine's needs it

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        from amux.cli.wording import corrected  # noqa: PLC0415

        wrong = f"no time zone is called {name!r}"
        known = available_timezones()
        raise InvalidValue(corrected(wrong, name, known, "they are named like Europe/Berlin or UTC")) from error
