"""Drawing with Rich: no other module imports it."""

import sys
from collections.abc import Callable

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from amux.catalog import Progress as Filled
from amux.output.grids import Grid, width

NARROWEST_FLEXIBLE = 24
HUES = (
    "cyan",
    "green",
    "yellow",
    "magenta",
    "blue",
    "bright_red",
    "bright_cyan",
    "bright_green",
    "bright_yellow",
    "bright_magenta",
)


def draw(grid: Grid) -> None:
    console = Console(highlight=False, soft_wrap=False)
    if not grid.rows:
        console.print(Text(grid.when_empty))
        return
    fitted = fit(grid, console.width)
    table = Table(
        box=box.SIMPLE_HEAD if grid.header else None,
        show_edge=False,
        pad_edge=False,
        show_header=grid.header,
        show_footer=False,
    )
    for name in fitted.columns:
        flexible = name == grid.flexible
        table.add_column(
            Text(name),
            justify="right" if name in grid.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if flexible else None,
        )
    headings = dict(grid.sections)
    for place, row in enumerate(fitted.rows):
        if place in headings:
            table.add_row(Text(headings[place], style="bold"))
        table.add_row(*map(cell, row, fitted.columns))
    if fitted.total:
        table.add_section()
        table.add_row(*(Text(text, style="bold") for text in fitted.total))
    console.print(table)
    for line in grid.notes:
        console.print(Text(line, style="dim"))


def cell(text: str, column: str) -> Text:
    """A cell: agents in one hue each, estimates and what is unknown dim."""
    if column == "AGENT":
        return Text(text, style=HUES[sum(map(ord, text)) % len(HUES)])
    return Text(text, style="dim" if text.startswith("~$") or text == "–" else "")


def fit(grid: Grid, columns: int) -> Grid:
    """The grid without the columns that a narrow terminal has no room for."""
    kept = list(grid.columns)
    lines = [*grid.rows, *([grid.total] if grid.total else [])]

    def needed() -> int:
        fixed = [place for place, name in enumerate(grid.columns) if name in kept and name != grid.flexible]
        widths = [max(width(grid.columns[place]), *(width(line[place]) for line in lines)) for place in fixed]
        return sum(widths) + 2 * len(widths) + (NARROWEST_FLEXIBLE if grid.flexible else 0)

    for name in grid.drop:
        if needed() <= columns:
            break
        kept.remove(name)
    places = [place for place, name in enumerate(grid.columns) if name in kept]
    return Grid(
        columns=tuple(grid.columns[place] for place in places),
        rows=[tuple(row[place] for place in places) for row in grid.rows],
        total=tuple(grid.total[place] for place in places) if grid.total else None,
    )


def filling() -> Callable[[Filled], None]:
    """A progress bar on stderr while the catalog is filled, once it takes more than a moment."""
    bar = Progress(
        TextColumn("amux: reading sessions"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[sessions]}  {task.fields[megabytes]}"),
        TimeRemainingColumn(compact=True),
        console=Console(file=sys.stderr),
        transient=True,
        refresh_per_second=5,
    )
    started: list[int] = []

    def report(filled: Filled) -> None:
        if filled.bytes < 20_000_000:
            return
        shown = {"sessions": f"{filled.done:,} of {filled.sessions:,}", "megabytes": f"{filled.bytes / 1e6:,.0f} MB"}
        if not started:
            bar.start()
            started.append(bar.add_task("", total=filled.bytes, **shown))
        bar.update(started[0], completed=filled.done_bytes, **shown)
        if filled.done == filled.sessions:
            bar.stop()
            started.clear()

    return report
