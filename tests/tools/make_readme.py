"""Runs the commands in the README's console blocks, and puts what they print below them.

A line that begins with `> ` goes on with the command above it. The commands find the tests' corpus in `tests/`. Also draws the picture at its top: real output at a terminal of 100 columns, as an SVG.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from pathlib import Path
from textwrap import dedent, indent
from unittest.mock import patch

TOP = Path(__file__).parents[2]
README = TOP / "README.md"
PICTURE = TOP / "amux" / "demo.svg"
BLOCK = re.compile(r"^(?P<indent> *)```console\n(?P<commands>.*?)^ *```$", re.DOTALL | re.MULTILINE)
COLUMNS = 100
NOW = datetime(2026, 11, 18, 9, 0, tzinfo=UTC)
"""The day after the last sample session: what is drawn with ages must not age."""


def environment(private: str) -> dict[str, str]:
    keep = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    beside = str(Path(sys.executable).parent)
    return {
        **keep,
        "PATH": f"{beside}{os.pathsep}{keep.get('PATH', '')}",
        "HOME": private,
        "TZ": "UTC",
        "AMUX_CACHE_DIR": f"{private}/cache",
        "COLUMNS": str(COLUMNS),
    }


def printed(command: str, env: dict[str, str]) -> list[str]:
    """The lines a command prints; those it prints on the side come last. Raises CalledProcessError."""
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, cwd=env["HOME"], check=True)
    return [line.rstrip() for line in (run.stdout + run.stderr).splitlines()]


def refreshed(text: str) -> str:
    """The README with what its commands print now."""
    with tempfile.TemporaryDirectory() as private:
        env = environment(private)
        (Path(private) / "tests").symlink_to(TOP / "tests")
        return BLOCK.sub(lambda block: anew(block, env), text)


def anew(block: re.Match[str], env: dict[str, str]) -> str:
    """A block with the same commands, each with what it prints now."""
    typed = dedent(block["commands"])
    commands = re.findall(r"^\$ .*\n(?:> .*\n)*", typed, flags=re.MULTILINE)
    shown = [line for command in commands for line in (*command.splitlines(), *printed(meant(command), env), "")]
    return indent("\n".join(["```console", *shown[:-1], "```"]), block["indent"])


def meant(command: str) -> str:
    """A command as it is typed, without the prompts before its lines."""
    return "\n".join(line[2:] for line in command.splitlines())


def picture() -> str:
    """List, search and cost as a terminal shows them."""
    from rich.console import Console  # noqa: PLC0415
    from rich.terminal_theme import DEFAULT_TERMINAL_THEME, TerminalTheme  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from amux.cost import Report  # noqa: PLC0415
    from amux.manager import SessionManager  # noqa: PLC0415
    from amux.output import costs, grids  # noqa: PLC0415
    from amux.output.terminal import tables  # noqa: PLC0415
    from amux.query import Query  # noqa: PLC0415
    from amux.readers._base import Host  # noqa: PLC0415

    sessions = SessionManager(Host.current(TOP / "amux" / "demo"), cache=False)
    # Height and colours are given too, or Rich would go by the terminal this runs in.
    console = Console(
        record=True,
        width=COLUMNS,
        height=COLUMNS,
        force_terminal=True,
        color_system="truecolor",
        file=StringIO(),
        highlight=False,
    )
    newest = sessions.list(Query(limit=8))
    found = sessions.search("webhook retry", Query(limit=2, sort="relevance"))
    week = Query(since=datetime(2026, 11, 11, tzinfo=UTC))
    spent = sessions.total_cost(week, report=Report(group_by=("day",)))
    with patch.object(grids, "ago", partial(grids.ago, now=NOW)):
        cards = grids.cards(found, sessions.short_ids(found)).cards
    for command, lines in (
        ("amux sessions list", tables.lines(grids.days(newest, sessions.short_ids(newest), NOW), COLUMNS)),
        ("amux sessions search webhook retry", tables.card_lines(cards, COLUMNS)),
        (
            "amux cost report --group-by day --since 2026-11-11",
            tables.lines(costs.table(spent, ("day",), "local time"), COLUMNS),
        ),
    ):
        console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
        for line in lines:
            console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        console.print()
    usual = DEFAULT_TERMINAL_THEME.ansi_colors
    dark = TerminalTheme((13, 17, 23), (230, 237, 243), [usual[number] for number in range(8)])
    drawn = console.export_svg(title="amux", unique_id="amux", theme=dark)
    # Without the fonts Rich would have the reader's browser fetch: any monospaced one will do.
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def main() -> None:
    README.write_text(refreshed(README.read_text()))
    PICTURE.write_text(picture())


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    main()
