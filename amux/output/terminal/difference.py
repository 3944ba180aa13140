"""Two sessions compared, at a terminal: what is common folded, what differs side by side or one above the other."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from amux.diff import words
from amux.model import Session
from amux.output.differences import Line, block, heads, lines, said, summary_line
from amux.output.terminal.pager import paged
from amux.output.terminal.palette import ADDED, REMOVED
from amux.results.differences import DiffOperation, SessionDiff

STYLES = {"remove": REMOVED, "add": ADDED, "dim": "dim", "bold": "bold", "": "default"}
SIDE_BY_SIDE = 140
"""Columns from which on two messages have room beside each other."""
GAP = 2


def show(found: SessionDiff, a: Session, b: Session, *, color: bool) -> None:
    paged(lambda console: draw(console, found, a, b), color=color)


def draw(console: Console, found: SessionDiff, a: Session, b: Session) -> None:
    if console.width < SIDE_BY_SIDE:
        for line in lines(found, a, b):
            console.print(hanging(line, console.width))
        return
    for line in heads(a, b):
        console.print(hanging(line, console.width))
    console.print(beside(found, (console.width - GAP) // 2))
    console.print(hanging([(summary_line(found, a, b), "bold")], console.width))


def hanging(line: Line, columns: int) -> RenderableType:
    """A line that goes on to the right of its sign where it is longer than there are columns."""
    whole = styled(line)
    if whole.cell_len <= columns:
        return whole
    sign, *rest = line if len(line) > 1 else [("", ""), *line]
    made = Table.grid(padding=0)
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    made.add_row(styled([sign]), styled(rest))
    return made


def styled(line: Line) -> Text:
    return Text.assemble(*((text, STYLES[style]) for text, style in line))


def beside(found: SessionDiff, columns: int) -> Table:
    table = Table.grid(expand=True, padding=(0, GAP, 0, 0), pad_edge=False)
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    same = 0
    for operation in [*found.operations, None]:
        if operation and operation.type == "unchanged":
            same += 1
            continue
        if same:
            table.add_row(Text(f"  {same} the same", style="dim"), "")
            same = 0
        if operation:
            left, right = sides(operation)
            table.add_row(*(Group(*(hanging(line, columns) for line in side)) for side in (left, right)))
    return table


def sides(operation: DiffOperation) -> tuple[Iterator[Line], Iterator[Line]]:
    """What stands left and right of one difference, with the words that differ marked."""
    before, after = operation.message_a, operation.message_b
    old, new = words(said(before) if before else "", said(after) if after else "")
    left = (
        block("−", before, [(text, "remove" if kind == "remove" else "") for kind, text in old]) if before else iter(())
    )
    right = block("+", after, [(text, "add" if kind == "add" else "") for kind, text in new]) if after else iter(())
    return left, right
