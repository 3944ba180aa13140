"""A session as a person reads it: prompts set apart, replies as Markdown, tool calls on one line."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import ClassVar

from pygments.token import Comment, Keyword, Name, Number, Operator, String
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.rule import Rule
from rich.style import Style as Drawn
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text

from amux.model import Message, Session, SessionSummary, ToolCall
from amux.output.calls import input_parts, outcome, subject
from amux.output.grids import tilde, turns, usd, width
from amux.output.plain import attachment, line_count, one_line, visible
from amux.output.terminal.pager import paged
from amux.output.terminal.palette import ACCENT, ERROR

LONGEST_MARKDOWN = 50_000
"""Characters: longer texts are shown as they are, since laying out Markdown takes its time."""
TURNING_POINTS = ("compaction", "branch")
"""Events that part a conversation; others are notes within it."""
FOLDED = 3
"""Lines of what is folded that stay in sight."""
CODE = ANSISyntaxTheme(
    {
        Comment: Drawn(dim=True, italic=True),
        Keyword: Drawn.parse("color(98)"),
        Name.Builtin: Drawn.parse(ACCENT),
        Name.Class: Drawn(bold=True),
        Name.Function: Drawn(bold=True),
        Number: Drawn.parse("color(130)"),
        Operator.Word: Drawn.parse("color(98)"),
        String: Drawn.parse("color(28)"),
    }
)
"""Code in colours without a background: one of its own would be a dark box on a light screen, or a light one on a dark."""


class PlainHeading(Heading):
    """A heading where the text begins, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class PlainCode(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Syntax(str(self.text).rstrip(), self.lexer_name, theme=CODE, word_wrap=True, padding=(0, 2))


class Reply(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": PlainHeading,
        "fence": PlainCode,
        "code_block": PlainCode,
    }


@dataclass(frozen=True, slots=True)
class Family:
    """Whose fork a session is, its forks and its sub-agents, by the ids a person would type."""

    forked_from: str | None = None
    forks: Sequence[str] = ()
    subagents: int = 0


@dataclass(frozen=True, slots=True)
class Style:
    """How much of a session is shown."""

    tools: str = "short"
    thinking: bool = False
    family: Family = field(default_factory=Family)


def show(session: Session, style: Style, *, color: bool) -> None:
    """Draw a session, through the pager when it is longer than the screen."""
    paged(lambda console: draw(console, session, style), color=color)


def draw(console: Console, session: Session, style: Style) -> None:
    for line in header(session, style.family, console.width):
        console.print(line)
    if not session.messages or not session.messages[0].inherited:
        console.print(Rule(style="dim"))
    answered = {m.tool_result.tool_call_id: m for m in session.messages if m.tool_result and m.tool_result.tool_call_id}
    for inherited, messages in groupby(session.messages, key=lambda message: message.inherited):
        if inherited:
            console.print(
                Rule(Text(f"inherited from {visible(session.forked_from or 'its parent')}", style="dim"), style="dim")
            )
        for message in messages:
            for part in drawn(message, style, answered):
                console.print(part)
        if inherited:
            console.print(Rule(Text("from here on its own", style="dim"), style="dim"))
    console.print(Rule(style="dim"))
    console.print(Text(f"{usd(session.cost)}  {spent(session)}", style="dim"))


def header(session: Session, family: Family, columns: int) -> Iterator[Text]:
    yield Text(visible(session.title) or "(no title)", style="bold")
    place = tilde(session.cwd) + (f" on {visible(session.git_branch)}" if session.git_branch else "")
    facts = [visible(session.unified_id), visible(session.model or ""), place, span(session)]
    yield from flowing(filter(None, facts), columns)
    counts = [f"{turns(session.turn_count)}, {session.message_count} messages", usd(session.cost)]
    if family.forked_from:
        counts.append(f"forked from {visible(family.forked_from)}")
    if family.forks:
        counts.append(f"forks: {', '.join(map(visible, family.forks))}")
    if family.subagents:
        counts.append(f"sub-agents: {family.subagents}")
    if session.archived:
        counts.append("archived")
    yield from flowing(counts, columns)


def flowing(facts: Iterable[str], columns: int) -> Iterator[Text]:
    """Facts one after another, in lines that end between two of them."""
    line = ""
    for fact in facts:
        if line and width(f"{line} · {fact}") > columns:
            yield Text(line, style="dim")
            line = fact
        else:
            line = f"{line} · {fact}" if line else fact
    yield Text(line, style="dim")


def span(session: SessionSummary) -> str:
    """From when to when, the second time without its day when it is the same."""
    start, end = session.created_at.astimezone(), session.updated_at.astimezone()
    day = start.strftime("%Y-%m-%d %H:%M")
    return f"{day}–{end.strftime('%H:%M' if start.date() == end.date() else '%Y-%m-%d %H:%M')}"


def spent(session: Session) -> str:
    cost = session.cost
    names = {
        "fresh": "input_tokens",
        "cached": "cached_tokens",
        "written": "cache_write_tokens",
        "output": "output_tokens",
    }
    known = [(name, getattr(cost, attribute)) for name, attribute in names.items() if cost] if cost else []
    return " · ".join(f"{number:,} {name}" for name, number in known if number is not None)


def drawn(message: Message, style: Style, answered: dict[str, Message]) -> Iterator[RenderableType]:
    match message.role:
        case "user":
            yield prompt(message)
        case "assistant":
            yield from reply(message, style, answered)
        case "system":
            yield notice(message)
        case "tool" if style.tools != "none" and (message.tool_result is None or not message.tool_result.tool_call_id):
            yield folded(message.content, style.tools)  # an answer to no call on the branch


def prompt(message: Message) -> RenderableType:
    line = Table.grid(expand=True)
    line.add_column(width=2)
    line.add_column(ratio=1)
    line.add_column(justify="right", no_wrap=True)
    typed = Text.assemble((visible(message.content), "bold"))
    for one in message.attachments:
        typed += Text(f"\n{attachment(one)}", style="dim")
    time = clock(message.timestamp)
    line.add_row(Text("❯", style=f"bold {ACCENT}"), typed, Text(f"  {time}" if time else "", style="dim"))
    return Padding(line, (1, 0, 1, 0))


def clock(time: datetime | None) -> str:
    return time.astimezone().strftime("%H:%M") if time else ""


def reply(message: Message, style: Style, answered: dict[str, Message]) -> Iterator[RenderableType]:
    if message.thinking:
        yield thought(message.thinking, whole=style.thinking)
    if message.content:
        text = visible(message.content)
        yield Reply(text) if len(text) <= LONGEST_MARKDOWN else Text(text)
    if style.tools != "none":
        for call in message.tool_calls:
            answer = answered.get(call.tool_call_id)
            yield from called(call, answer.content if answer else call.output, style.tools)


def thought(text: str, *, whole: bool) -> Text:
    if whole:
        return Text(visible(text), style="dim italic")
    return Text(f"∴ {one_line(text, 90)}", style="dim italic")


def called(call: ToolCall, output: str | None, tools: str) -> Iterator[RenderableType]:
    """A call on one line, with what came of it; in full, what it was given and what it answered."""
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    line.add_column(justify="right", no_wrap=True)
    style = ERROR if call.is_error else "dim"
    head = Text.assemble(("  ▸ ", style), (visible(call.tool_name), ACCENT), (f"  {subject(call)}", style))
    line.add_row(head, Text(outcome(call, output), style=style))
    yield line
    if tools == "full":
        for part in input_parts(call.input):
            yield Padding(Text(visible(part.text), style="dim"), (0, 0, 0, 6))
        if output:
            yield Padding(Text(visible(output), style=ERROR if call.is_error else ""), (0, 0, 1, 6))


def folded(text: str, tools: str) -> RenderableType:
    if tools == "full":
        return Padding(Text(visible(text)), (0, 0, 1, 6))
    return Padding(Text(f"{one_line(text, 80)}  {line_count(text)} lines", style="dim"), (0, 0, 0, 4))


def notice(message: Message) -> RenderableType:
    """What the program said: an error in red, a compaction as a line with the beginning of its summary."""
    text = visible(message.content)
    if message.event == "error" or message.is_error:
        return Padding(Text(f"✗ {text}", style=ERROR), (0, 0, 1, 0))
    lines = text.split("\n")
    shown = "\n".join(lines[:FOLDED]) + (f"\n… {len(lines) - FOLDED} more lines" if len(lines) > FOLDED else "")
    if message.event not in TURNING_POINTS:
        return Text(f"· {shown}", style="dim")
    return Group(
        Rule(Text(message.event or "note", style="dim"), style="dim"), Padding(Text(shown, style="dim"), (0, 0, 1, 2))
    )
