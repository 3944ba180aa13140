"""amux schema: what --json prints, for programs that read it."""

from typing import Annotated

import typer

from amux.cli import options
from amux.output import emit
from amux.schema import Name, schema, schemas


def schema_(
    name: Annotated[Name | None, typer.Argument(help="Only this one; else all of them.", show_default=False)] = None,
    _json: options.Json = False,
) -> None:
    """JSON Schema of what --json prints: one value; a list is an array of them.

    Example: amux schema summary
    """
    emit(schema(name) if name else schemas(), as_json=True, view=str)
