"""Tables, search results and progress at a terminal."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from amux.catalog import Progress as Filled
from amux.output.grids import Card, Grid, Table, padded, width
from amux.output.plain import visible

MARGIN = "  "
FAINT = frozenset({"UPDATED", "TURNS"})
NARROWEST_FLEXIBLE = 24
SHORTEST_BAR, LONGEST_BAR = 6, 40
WORTH_SHOWING = 20_000_000
"""Bytes: less is read before a bar could be seen."""
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


def draw(shown: Table) -> None:
    console = Console(highlight=False)
    if not (shown.rows if isinstance(shown, Grid) else shown.cards):
        console.print(Text(shown.when_empty))
        return
    made = lines(shown, console.width) if isinstance(shown, Grid) else card_lines(shown.cards, console.width)
    for line in made:
        console.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def lines(grid: Grid, columns: int) -> Iterator[Text]:
    """The table line by line: two blanks between columns, no frames, nothing wider than the terminal."""
    shown = fit(grid, columns - len(MARGIN))
    widths = column_widths(shown, columns - len(MARGIN))
    room = min(LONGEST_BAR, columns - len(MARGIN) - sum(widths) - 2 * len(widths)) if grid.bars else 0
    if grid.header:
        yield Text(MARGIN) + joined(shown.columns, shown, widths, style="dim")
    headings = dict(grid.sections)
    for place, row in enumerate(shown.rows):
        if place in headings:
            yield Text(headings[place], style="bold")
        line = Text(MARGIN) + joined(row, shown, widths)
        yield line + Text("  " + "▇" * round(grid.bars[place] * room), style="cyan") if room >= SHORTEST_BAR else line
    if shown.total:
        yield Text(MARGIN) + joined(shown.total, shown, widths, style="bold")
    for note in grid.notes:
        yield Text(MARGIN + note, style="dim")


def card_lines(cards: Sequence[Card], columns: int) -> Iterator[Text]:
    """Search results: who, when and where; the title; the words in their line."""
    for card in cards:
        head = Text.assemble(MARGIN, (card.agent, hue(card.agent)), (f":{card.id}", "bold"))
        for fact in (card.when, card.place, card.cost):
            if fact and fact != "–" and head.cell_len + width(fact) + 3 < columns - len(card.score) - 2:
                head += Text(f"  {fact}", style="dim")
        yield head + Text(card.score.rjust(columns - head.cell_len), style="dim")
        yield Text(f"{MARGIN * 2}{cut(card.title, columns - 4)}")
        if card.snippet:
            yield snippet_line(card, columns - len(MARGIN) * 2)


def snippet_line(card: Card, columns: int) -> Text:
    """The words in their line, as much of it as fits, with … where something is missing."""
    source = f"{MARGIN * 2}{card.source}  "
    room = columns - len(source) - len(card.matches) + 2
    first = card.marks[0][0] if card.marks else 0
    start = max(0, min(first - room // 3, len(card.snippet) - room))
    text = Text(visible(card.snippet), style="default")
    for begin, end in card.marks:
        text.stylize("bold yellow", begin, end)
    shown = Text.assemble("…", text[start + 1 :]) if start else text
    shown.truncate(room, overflow="ellipsis", pad=True)
    return Text.assemble((source, "dim"), shown, (f"  {card.matches}", "dim"))


def joined(row: Sequence[str], grid: Grid, widths: Sequence[int], style: str = "") -> Text:
    cells = [
        cell(padded(cut(text, size), size, right=name in grid.right), name, style)
        for text, size, name in zip(row, widths, grid.columns, strict=True)
    ]
    return Text("  ").join(cells)


def cell(text: str, column: str, style: str) -> Text:
    """A cell: agents in one hue each, estimates and what is unknown dim."""
    if style:
        return Text(text, style=style)
    if column == "AGENT":
        return Text(text, style=hue(text.strip()))
    return Text(text, style="dim" if column in FAINT or text.strip().startswith("~$") or text.strip() == "–" else "")


def hue(agent: str) -> str:
    return HUES[sum(map(ord, agent)) % len(HUES)]


def cut(text: str, size: int) -> str:
    """A text that fits, with … where something is missing."""
    if width(text) <= size:
        return text
    kept = ""
    for one in text:
        if width(kept + one) > size - 1:
            break
        kept += one
    return kept + "…"


def column_widths(grid: Grid, columns: int) -> list[int]:
    """As wide as the longest cell; the flexible column has what is left."""
    rows = [*([grid.columns] if grid.header else []), *grid.rows, *([grid.total] if grid.total else [])]
    natural = [max(width(row[place]) for row in rows) for place in range(len(grid.columns))]
    if grid.flexible in grid.columns:
        place = grid.columns.index(grid.flexible)
        others = sum(natural) - natural[place] + 2 * (len(natural) - 1)
        natural[place] = max(min(natural[place], columns - others), 8)
    return natural


def fit(grid: Grid, columns: int) -> Grid:
    """The grid without the columns that a narrow terminal has no room for."""
    shown = grid
    for name in grid.drop:
        least = NARROWEST_FLEXIBLE if grid.flexible else 0
        place = shown.columns.index(grid.flexible) if grid.flexible else None
        widths = [least if number == place else size for number, size in enumerate(column_widths(shown, 10**6))]
        if sum(widths) + 2 * (len(widths) - 1) <= columns:
            break
        shown = without(shown, name)
    return shown


def without(grid: Grid, name: str) -> Grid:
    gone = grid.columns.index(name)

    def kept(row: tuple[str, ...]) -> tuple[str, ...]:
        return (*row[:gone], *row[gone + 1 :])

    return replace(
        grid,
        columns=kept(grid.columns),
        rows=[kept(row) for row in grid.rows],
        total=kept(grid.total) if grid.total else None,
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
    started: list[TaskID] = []

    def report(filled: Filled) -> None:
        if filled.bytes < WORTH_SHOWING:
            return
        sessions, megabytes = f"{filled.done:,} of {filled.sessions:,}", f"{filled.bytes / 1e6:,.0f} MB"
        if not started:
            bar.start()
            started.append(bar.add_task("", total=filled.bytes, sessions=sessions, megabytes=megabytes))
        bar.update(started[0], completed=filled.done_bytes, sessions=sessions, megabytes=megabytes)
        if filled.done == filled.sessions:
            bar.stop()
            started.clear()

    return report


@contextmanager
def counting(what: str, count: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr for work that is told how much of it is done."""
    columns = (TextColumn(what), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=count)
        yield lambda done: bar.update(task, completed=done)
