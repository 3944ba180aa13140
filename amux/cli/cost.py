"""amux cost report."""

from typing import Annotated

import typer

from amux.cli import options
from amux.output import emit, grids
from amux.query import Query

app = typer.Typer(help="What the calls of the models cost.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def cost() -> None:
    """A group, so that `report` is a command of its own."""


@app.command()
def report(
    agent: options.OnlyAgents = None,
    since: options.Since = None,
    until: options.Until = None,
    model: options.Model = None,
    group_by: Annotated[
        str | None, typer.Option(help="agent, model, day or session; several with commas.", show_default=False)
    ] = None,
    json: options.Json = False,
) -> None:
    """Tokens and money, each call once.

    Example: amux cost report --since 7d --group-by day
    """
    sessions = options.manager()
    query = Query(
        agents=options.known(agent or ()), since=options.since(since), until=options.until(until), model=model
    )
    groups = [name.strip() for name in (group_by or ("" if json else "agent")).split(",") if name.strip()]
    emit(sessions.total_cost(query, groups), as_json=json, view=grids.costs)
    options.note_skipped(sessions)
