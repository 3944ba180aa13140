"""amux schema: what --json prints, for programs that read it."""

from typing import Annotated, Literal, get_args

import typer

from amux.cli import options
from amux.output import emit

Name = Literal["session", "summary", "hit", "cost", "diff", "stats", "agent", "launch", "error"]


def schema(
    name: Annotated[
        Name | None,
        typer.Argument(metavar="NAME", help=f"Only one of {', '.join(get_args(Name))}.", show_default=False),
    ] = None,
    _json: options.Json = False,
) -> None:
    """JSON Schema of what --json prints.

    Without a name all schemas, by their names. They describe one value: a list is an array of such values.

    Example: amux schema summary
    """
    from amux.schema import schemas  # noqa: PLC0415 - what only this command needs

    found = schemas()
    emit(found[name] if name else found, as_json=True, view=str)
