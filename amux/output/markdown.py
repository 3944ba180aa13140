"""A session as Markdown.

What people and models wrote is Markdown already and stays as it is, but for what would reach beyond its message: HTML,
a fence that is never closed, a heading that reads like one of ours.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, groupby
from typing import TYPE_CHECKING, Literal

from amux.model import Message, Session, SessionSummary, ToolCall
from amux.output.calls import answers, input_parts, outcome, subject
from amux.output.plain import FOREIGN_FACTS, SOURCES, attachment, facts, one_line, pieces, price, token_counts, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Tools = Literal["full", "short", "none"]
Block = Iterable[str]
"""A paragraph, a list item, a fence: its text in one or more pieces, without the newline at its end."""

PARSED_LENGTH = 100_000
"""A longer message is a pasted file rather than prose: it stands in a fence, unparsed."""
TICKS = re.compile("`+")
LANGUAGE = re.compile(r"[\w+#-]{1,20}", re.ASCII)
HEADING = r"^( {0,3})(### +(?:User|Assistant|System|Tool)\b)"
TAG = r"<(?=[A-Za-z/!?])(?![A-Za-z][A-Za-z0-9+.-]{1,31}:)"
REACHES_OUT = re.compile(rf"{TAG}|```|~~~|{HEADING}", re.MULTILINE)
TAG_OR_CODE = re.compile(rf"\\.|(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|{TAG}", re.DOTALL)


def markdown(session: Session, *, tools: Tools = "full", thinking: bool = True) -> str:
    return "".join(chunks(session, tools=tools, thinking=thinking))


def chunks(session: Session, *, tools: Tools = "full", thinking: bool = True) -> Iterator[str]:
    """The text in pieces, for a session too large to be held twice.

    `tools`: calls with their input and output, or one line for each call, or none of them.
    """
    last = ""
    for block in chain(head(session), Transcript(session, tools, thinking).blocks(), foot(session)):
        text = iter(block)
        first = next(text, "")
        if last:
            yield "\n" if last.startswith("- ") and first.startswith("- ") else "\n\n"
        yield first
        yield from text
        last = first
    yield "\n"


def head(session: SessionSummary) -> Iterator[Block]:
    yield [f"# {contained(one_line(session.title, 200)) or '(no title)'}"]
    for name, value in facts(session):
        yield [f"- {name}: {code(value) if name in FOREIGN_FACTS else value}"]


def foot(session: SessionSummary) -> Iterator[Block]:
    yield ["---"]
    cost = session.cost
    if cost is None:
        yield ["Cost: not recorded"]
        return
    source = f" ({SOURCES[cost.source]})" if cost.source and cost.total_usd is not None else ""
    yield [f"Cost: {price(cost)}{source}"]
    if counts := token_counts(cost):
        yield ["Tokens: " + ", ".join(f"{count:,} {kind}" for kind, count in counts)]


class Transcript:
    """The messages of a session as blocks; in short, one heading serves all answers up to the next prompt."""

    def __init__(self, session: Session, tools: Tools, thinking: bool) -> None:
        self.session = session
        self.tools = tools
        self.thinking = thinking
        self.answers = answers(session.messages)
        self.answered = {
            answer: session.messages[position].tool_calls[number] for (position, number), answer in self.answers.items()
        }

    def blocks(self) -> Iterator[Block]:
        inherited = [position for position, message in enumerate(self.session.messages) if message.inherited]
        heading = ""
        for position, message in enumerate(self.session.messages):
            if inherited and position == inherited[0]:
                yield [inheritance(self.session, len(inherited))]
            body = self.body(position, message)
            first = next(body, None)
            if first is not None or self.tools == "full":
                above, heading = heading, heading_of(message)
                if self.tools == "full" or message.role == "user" or heading != above:
                    yield [f"### {heading}"]
            if first is not None:
                yield from chain([first], body)
            if inherited and position == inherited[-1]:
                yield ["---"]
                heading = ""

    def body(self, position: int, message: Message) -> Iterator[Block]:
        if message.role == "tool":
            yield from self.answer(position, message)
            return
        if self.thinking and message.thinking:
            yield ["<details>\n<summary>Thinking</summary>"]
            yield written(message.thinking)
            yield ["</details>"]
        if message.content.strip():
            yield written(message.content)
        yield from attached(message)
        for number, call in enumerate(message.tool_calls):
            yield from self.call(call, self.answers.get((position, number)))

    def call(self, call: ToolCall, answer: int | None) -> Iterator[Block]:
        if self.tools == "short":
            output = call.output if answer is None else self.session.messages[answer].content
            yield [in_short(call, output)]
        elif self.tools == "full":
            yield from in_full(call)
            if answer is None and call.output is not None:
                yield ["failed:" if call.is_error else "output:"]
                yield fenced(call.output)

    def answer(self, position: int, message: Message) -> Iterator[Block]:
        name = (message.tool_result and message.tool_result.tool_name) or "tool"
        call = self.answered.get(position) or ToolCall("", name, None, is_error=message.is_error)
        if self.tools == "full":
            yield [title(call) + (" failed" if message.is_error else "")]
            if message.content:
                yield fenced(message.content)
            yield from attached(message)
        elif self.tools == "short" and position not in self.answered:
            yield [in_short(call, message.content)]


def inheritance(session: Session, count: int) -> str:
    origin = f" from {code(session.forked_from)}" if session.forked_from else ""
    return f"inherited{origin}: {count:,} {'message' if count == 1 else 'messages'}"


def heading_of(message: Message) -> str:
    told = message.event or ("error" if message.is_error and message.role != "tool" else "")
    return message.role.capitalize() + (f": {contained(one_line(told, 60))}" if told else "")


def attached(message: Message) -> Iterator[Block]:
    yield from ([contained(attachment(found))] for found in message.attachments)


def in_short(call: ToolCall, output: str | None) -> str:
    came = outcome(call, output)
    return f"- {title(call)}" + (f" · {came}" if came else "")


def in_full(call: ToolCall) -> Iterator[Block]:
    yield [bold(call.tool_name)]
    for part in input_parts(call.input) if call.input else ():
        if part.label:
            yield [f"{code(part.label)}:"]
        yield fenced(part.text, part.language)


def title(call: ToolCall) -> str:
    return " ".join(filter(None, (bold(call.tool_name), code(subject(call)))))


def bold(name: str) -> str:
    escaped = re.sub(r"([\\`*_<\[\]])", r"\\\1", one_line(name, 80))
    return f"**{escaped or 'tool'}**"


def code(text: str) -> str:
    """The text on one line, in more backticks than stand together in it; nothing for nothing."""
    line = one_line(text, 1000)
    if not line:
        return ""
    ticks = "`" * (longest_run(line) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def fenced(text: str, language: str = "") -> Block:
    fence = "`" * max(3, longest_run(text) + 1)
    yield f"{fence}{language if LANGUAGE.fullmatch(language) else ''}\n"
    yield from pieces(text)
    yield fence if text.endswith("\n") or not text else f"\n{fence}"


def longest_run(text: str) -> int:
    return max((len(run[0]) for run in TICKS.finditer(text)), default=0)


def written(text: str) -> Block:
    return fenced(text) if len(text) > PARSED_LENGTH else [contained(visible(text).strip("\n"))]


def contained(text: str) -> str:
    """Markdown that ends where its message ends and has no HTML in it: what was typed is what is read."""
    if not REACHES_OUT.search(text):
        return text
    lines = text.split("\n")
    tokens = parser().parse(text)
    code_blocks = (token.map for token in tokens if token.type in ("fence", "code_block") and token.map)
    code_lines = {line for start, end in code_blocks for line in range(start, end)}
    if fence := unclosed(lines, tokens):
        lines.append(fence)
    harmless = outside(code_lines, lines, escaped_tags)
    if has_html(parser().parse(harmless)):
        # Backticks of two paragraphs were taken for a pair, and what lies between for code.
        harmless = outside(code_lines, lines, lambda prose: re.sub(TAG, "&lt;", prose))
    return harmless


def outside(code_lines: set[int], lines: Sequence[str], escape: Callable[[str], str]) -> str:
    """The lines, escaped where they are not code."""
    runs = groupby(range(len(lines)), key=code_lines.__contains__)
    texts = ((is_code, "\n".join(lines[line] for line in run)) for is_code, run in runs)
    return "\n".join(
        text if is_code else re.sub(HEADING, r"\1\\\2", escape(text), flags=re.MULTILINE) for is_code, text in texts
    )


def escaped_tags(prose: str) -> str:
    return TAG_OR_CODE.sub(lambda found: "\\<" if found[0] == "<" else found[0], prose)


def unclosed(lines: Sequence[str], tokens: Sequence["Token"]) -> str:
    """The end of a fence that the text leaves open; one inside a list or a quotation ends with that."""
    last = tokens[-1] if tokens else None
    if last is None or last.type != "fence" or last.level or not last.map:
        return ""
    start, end = last.map
    closing = lines[end - 1].strip()
    closed = end - 1 > start and len(closing) >= len(last.markup) and not closing.strip(last.markup[0])
    return "" if closed else last.markup


def has_html(tokens: Sequence["Token"]) -> bool:
    return any(
        token.type in ("html_block", "html_inline") or (token.children and has_html(token.children)) for token in tokens
    )


@cache
def parser() -> "MarkdownIt":
    # Not at the top: most sessions are printed without it, and it takes as long to load as all of amux.
    from markdown_it import MarkdownIt  # noqa: PLC0415

    return MarkdownIt("commonmark").enable("table")
