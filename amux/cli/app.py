"""The commands put together."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from amux import __version__
from amux.cli import agents, carry, cost, schema, sessions, share  # noqa: F401 - carry and share add theirs to sessions
from amux.cli.commands import Command, Group, need_command
from amux.cli.options import settings

app = typer.Typer(
    cls=Group,
    help="""Read, search, cost and compare the sessions of every coding agent on your disk.

    The options below may also follow a command.

    Example: amux --demo sessions list""",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(sessions.app, name="sessions")
app.add_typer(cost.app, name="cost")
app.command(cls=Command)(agents.agents)
app.command(cls=Command)(schema.schema)

Shell = Literal["bash", "zsh", "fish"]


def say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"amux {__version__}")
        if {"-v", "--verbose"} & set(sys.argv):
            typer.echo(versions())
        raise typer.Exit


def versions() -> str:
    """What an answer depends on besides the version: the prices and the form of the catalog."""
    from amux.cachefile import FORMAT  # noqa: PLC0415
    from amux.manager import user_prices  # noqa: PLC0415
    from amux.money import Prices  # noqa: PLC0415

    prices = Prices(user_prices()).source
    return f"prices {prices.date} ({prices.source} {prices.version})\ncatalog format {FORMAT:08x}"


def install_completion(shell: Shell | None) -> None:
    if shell:
        from amux.completion import install  # noqa: PLC0415
        from amux.readers._base import Host  # noqa: PLC0415

        typer.echo(install(shell, Host.current()))
        raise typer.Exit


@app.callback(invoke_without_command=True)
def amux(
    ctx: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(
            help="Read this directory as if it were your home (AMUX_HOME).", metavar="DIR", show_default=False
        ),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Read the sample sessions that come with amux.")] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Answer from the files alone.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour, as with NO_COLOR=1.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Say which sessions could not be read, and why.")
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Say the version and stop.", callback=say_version, is_eager=True)
    ] = False,
    _install: Annotated[
        Shell | None,
        typer.Option(
            "--install-completion",
            help="Let a shell complete amux's words, yours if none is named, and stop.",
            show_default=False,
            callback=install_completion,
            is_eager=True,
        ),
    ] = None,
) -> None:
    named = os.environ.get("AMUX_HOME")  # asked here: Typer 0.26 does not pass on what a variable says
    settings.home = home or (Path(named) if named else None)
    settings.demo = demo
    settings.cache = not no_cache
    if no_color:
        os.environ["NO_COLOR"] = "1"  # what draws tables, and the programs amux starts, look there
    settings.color = not os.environ.get("NO_COLOR")
    settings.verbose = verbose
    need_command(ctx)
