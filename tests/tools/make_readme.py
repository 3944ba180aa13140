"""Runs the commands in the README's console blocks on the sample sessions, and puts what they print below them.

Also draws the picture at its top: real output at a terminal of 100 columns, as an SVG.
"""

import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

TOP = Path(__file__).parents[2]
README = TOP / "README.md"
PICTURE = TOP / "amux" / "demo.svg"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
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


def printed(command: str, env: dict[str, str]) -> str:
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, cwd=env["HOME"], check=False)
    return run.stdout + run.stderr


def refreshed(text: str) -> str:
    """The README with what its commands print now; a line `…` at the end of a block stands for the rest."""
    with tempfile.TemporaryDirectory() as private:
        env = environment(private)
        return BLOCK.sub(lambda block: f"```console\n{shown(block[1], env)}```", text)


def shown(block: str, env: dict[str, str]) -> str:
    """A block anew: each command, its output, cut where the block was cut."""
    made = []
    for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
        if not part.startswith("$ "):
            continue
        command, _, before = part[2:].partition("\n")
        output = printed(command, env).rstrip("\n").split("\n")
        lines = before.rstrip("\n").split("\n")
        if lines[-1] == "…":
            output = [*output[: len(lines) - 1], "…"]
        made.append("\n".join([f"$ {command}", *[line.rstrip() for line in output]]).rstrip() + "\n")
    return "\n".join(made)


def picture() -> str:
    """List, search and cost as a terminal shows them."""
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from amux.cost import Report  # noqa: PLC0415
    from amux.manager import SessionManager  # noqa: PLC0415
    from amux.output import grids  # noqa: PLC0415
    from amux.output.terminal import tables  # noqa: PLC0415
    from amux.query import Query  # noqa: PLC0415
    from amux.readers._base import Host  # noqa: PLC0415

    grids.ago = partial(grids.ago, now=NOW)
    sessions = SessionManager(Host.current(TOP / "amux" / "demo"), cache=False)
    console = Console(record=True, width=COLUMNS, force_terminal=True, file=open(os.devnull, "w"), highlight=False)  # noqa: SIM115
    newest = sessions.list(Query(limit=8))
    found = sessions.search("webhook retry", Query(limit=2, sort="relevance"))
    week = Query(since=datetime(2026, 11, 11, tzinfo=UTC))
    spent = sessions.total_cost(week, report=Report(group_by=("day",)))
    for command, lines in (
        ("amux sessions list", tables.lines(grids.days(newest, sessions.short_ids(newest), NOW), COLUMNS)),
        (
            "amux sessions search webhook retry",
            tables.card_lines(grids.cards(found, sessions.short_ids(found)).cards, COLUMNS),
        ),
        (
            "amux cost report --group-by day --since 2026-11-11",
            tables.lines(grids.costs(spent, ("day",), "local time"), COLUMNS),
        ),
    ):
        console.print(Text("$ ", style="dim") + Text(command, style="bold"))
        for line in lines:
            console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        console.print()
    # Without the fonts Rich would have the reader's browser fetch: any monospaced one will do.
    return re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="amux", unique_id="amux"), flags=re.DOTALL)


def main() -> None:
    README.write_text(refreshed(README.read_text()))
    PICTURE.write_text(picture())


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    main()
