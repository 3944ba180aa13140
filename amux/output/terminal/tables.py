"""Tables, search results, charts and progress at a terminal."""

import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from amux.catalog import Progress as Filled
from amux.output.chart import Chart, block, head
from amux.output.grids import Card, Cards, Grid, Table, padded, width
from amux.output.plain import visible
from amux.output.terminal.palette import ACCENT, HUES, MATCH, console, hue

MARGIN = "  "
FAINT = frozenset({"UPDATED", "TURNS"})
ENDS_TELL = frozenset({"STORE"})
"""Columns whose cells are cut at their beginning: where a path ends says more than where it begins."""
SHORTEST_BAR, LONGEST_BAR = 6, 40
LONGEST_CHART_BAR = 100
WORTH_SHOWING = 20_000_000
"""Bytes: less is read before a bar could be seen."""


def draw(shown: Table) -> None:
    screen = console()
    for line in drawn(shown, screen.width):
        screen.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def drawn(shown: Table, columns: int) -> Iterable[Text]:
    match shown:
        case Grid() if shown.rows:
            return lines(shown, columns)
        case Cards() if shown.cards:
            return card_lines(shown.cards, columns)
        case Chart() if shown.bars:
            return chart_lines(shown, columns)
        case _:
            return [Text(shown.plain())]


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
        yield line + Text("  " + "▇" * round(grid.bars[place] * room), style=ACCENT) if room >= SHORTEST_BAR else line
    if shown.total:
        yield Text(MARGIN) + joined(shown.total, shown, widths, style="bold")
    for note in grid.notes:
        yield from faint(note, columns)


def faint(note: str, columns: int) -> Iterator[Text]:
    """A note below a table; what does not fit goes on in the next line."""
    for line in textwrap.wrap(note, max(1, columns - 2 * len(MARGIN)), subsequent_indent=MARGIN):
        yield Text(MARGIN + line, style="dim")


def chart_lines(chart: Chart, columns: int) -> Iterator[Text]:
    """Bars as long as the terminal is wide; agents in their hues, other series in those of the first agents."""
    hues = [
        hue(name) if chart.dimension == "agent" else HUES[place % len(HUES)] for place, name in enumerate(chart.series)
    ]
    yield from legend(chart.series, hues, columns - len(MARGIN))
    room = min(LONGEST_CHART_BAR, columns - len(MARGIN) - width(head(chart.bars[0])))
    for bar in chart.bars:
        yield Text.assemble(MARGIN, head(bar), *zip(bar.pieces(max(room, 1)), hues, strict=True))


def legend(series: Sequence[str], hues: Sequence[str], columns: int) -> Iterator[Text]:
    line = Text()
    for place, (name, color) in enumerate(zip(series, hues, strict=True)):
        entry = Text.assemble((block(place), color), f" {name}")
        if line and line.cell_len + entry.cell_len + 2 > columns:
            yield Text(MARGIN) + line
            line = Text()
        line = Text("  ").join([line, entry]) if line else entry
    yield Text(MARGIN) + line


def card_lines(cards: Sequence[Card], columns: int) -> Iterator[Text]:
    """Search results: who, when and where; the title; the words in their line."""
    for card in cards:
        head = Text.assemble(MARGIN, (card.agent, hue(card.agent)), (f":{card.id}", "bold"))
        for fact in (card.when, card.place, card.cost):
            if fact and fact != "–" and head.cell_len + width(fact) + 3 < columns - len(card.score) - 2:
                head += Text(f"  {fact}", style="dim")
        yield head + Text(card.score.rjust(columns - head.cell_len), style="dim")
        if card.snippet:
            yield Text(f"{MARGIN * 2}{cut(card.title, columns - 4)}")
            yield words_line(card, f"{card.source}  ", card.snippet, columns)
        else:
            yield words_line(card, "", card.title, columns)


def words_line(card: Card, source: str, words: str, columns: int) -> Text:
    """The words in their line, as much of it as fits, with … where something is missing, and how many matches there are."""
    lead = MARGIN * 2 + source
    room = columns - len(lead) - len(card.matches) - 2
    shown = from_first_mark(marked(words, card.marks), room)
    shown.truncate(room, overflow="ellipsis", pad=True)
    return Text.assemble((lead, "dim"), shown, (f"  {card.matches}", "dim"))


def marked(words: str, marks: Sequence[tuple[int, int]]) -> Text:
    """The words as they can be seen, piece by piece: what is seen of a character may be longer than it."""
    text, end = Text(style="default"), 0
    for begin, stop in marks:
        text.append(visible(words[end:begin]))
        text.append(visible(words[begin:stop]), MATCH)
        end = stop
    return text.append(visible(words[end:]))


def from_first_mark(text: Text, room: int) -> Text:
    """The text without what must go from its beginning for the first mark to be seen in a room of so many cells."""
    first = text.spans[0].start if text.spans else 0
    start = min(width(text.plain[:first]) - room // 3, width(text.plain) - room)
    if start <= 0:
        return text
    cells = zip(text.plain, accumulate(map(width, text.plain), initial=0), strict=False)
    # What combines with the last character that is left out would stand on the ellipsis.
    kept = next((place for place, (one, cell) in enumerate(cells) if cell > start and width(one)), len(text))
    return Text.assemble("…", text[kept:])


def joined(row: Sequence[str], grid: Grid, widths: Sequence[int], style: str = "") -> Text:
    cells = [
        cell(padded(cut(text, size, end=name not in ENDS_TELL), size, right=name in grid.right), name, style)
        for text, size, name in zip(row, widths, grid.columns, strict=True)
    ]
    return Text("  ").join(cells)


def cell(text: str, column: str, style: str) -> Text:
    """A cell: agents in one hue each, estimates and what is unknown dim."""
    if style:
        return Text(text, style=style)
    if column == "AGENT":
        return Text(text, style=hue(text.strip()))
    unsure = column == "USD" and text.strip().startswith(("~", "("))
    return Text(text, style="dim" if column in FAINT or unsure or text.strip() == "–" else "")


def cut(text: str, size: int, *, end: bool = True) -> str:
    """A text that fits, with … where something is missing, at its end or at its beginning."""
    if width(text) <= size:
        return text
    kept = ""
    for one in text if end else reversed(text):
        if width(kept + one) > size - 1:
            break
        kept += one
    return f"{kept}…" if end else f"…{kept[::-1]}"


def column_widths(grid: Grid, columns: int) -> list[int]:
    """As wide as the longest cell; the flexible column has what is left."""
    rows = [*([grid.columns] if grid.header else []), *grid.rows, *([grid.total] if grid.total else [])]
    natural = [max(width(row[place]) for row in rows) for place in range(len(grid.columns))]
    found = [min(size, grid.widest.get(name, size)) for name, size in zip(grid.columns, natural, strict=True)]
    if grid.flexible in grid.columns:
        place = grid.columns.index(grid.flexible)
        others = sum(found) - found[place] + 2 * (len(found) - 1)
        found[place] = max(min(found[place], columns - others), 8)
    return found


def fit(grid: Grid, columns: int) -> Grid:
    """The grid without the columns that a narrow terminal has no room for."""
    shown = grid
    for name in grid.drop:
        least = [
            min(size, grid.narrowest) if column == grid.flexible else size
            for column, size in zip(shown.columns, column_widths(shown, 10**6), strict=True)
        ]
        if sum(least) + 2 * (len(least) - 1) <= columns:
            break
        if name in shown.columns:
            shown = shown.without(name)
    return shown


def filling() -> Callable[[Filled], None]:
    """A progress bar on stderr while the catalog is filled, once it takes more than a moment."""
    bar = Progress(
        TextColumn("amux: reading sessions"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[sessions]}  {task.fields[megabytes]}"),
        TimeRemainingColumn(compact=True),
        console=console(sys.stderr),
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
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=count)
        yield lambda done: bar.update(task, completed=done)
