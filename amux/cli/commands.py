"""Commands and groups of commands as Typer runs them, with our own words for what is wrong."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from amux.output import note


class Command(TyperCommand):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # Newer Typers put what is required in braces.
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class WordsCommand(Command):
    """A command that takes words: -push is one, and not the options -p, -u, -s and -h."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.help_option_names = ["--help"]
        ctx.ignore_unknown_options = True
        return super().parse_args(ctx, ["--help" if arg == "-h" else arg for arg in args])


def need_command(ctx: typer.Context) -> None:
    """Show the help to who named a group and none of its commands."""
    if ctx.invoked_subcommand is None:
        note(ctx.get_help())
        raise typer.Exit(2)


class Group(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of the help: groups first, since most of what can be done is in them."""
        return sorted(self.commands, key=lambda name: not hasattr(self.commands[name], "commands"))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands and not args[0].startswith("-"):
            from amux.cli.wording import unknown_command  # noqa: PLC0415 - only mistakes need it

            raise unknown_command(args, ctx.command_path.split()[1:], ctx.find_root().command)
        return super().resolve_command(ctx, args)
