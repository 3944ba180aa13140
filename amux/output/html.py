"""A session as one self-contained page: it loads nothing, and what the session holds is text in it, whatever it is."""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import cache
from hashlib import sha256
from html import escape
from itertools import pairwise
from pathlib import Path

from amux import __version__
from amux.model import CostRecord, Message, Session, SessionSummary, ToolCall
from amux.output.calls import Part, answers, input_parts, outcome, subject
from amux.output.plain import SOURCES, attachment, facts, one_line, pieces, price, stamp, token_counts
from amux.output.prose import coloured, prose

RENDERED_LENGTH = 100_000
"""A longer message is a pasted file rather than prose: it is shown as it was typed."""
LONG = 500
"""Messages above which the browser lays out only the turns in view."""
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Crect width='16' height='16' rx='4' fill='%233b6fb6'/%3E"
    "%3Cpath d='M4 5l3 3-3 3M8.5 11H12' fill='none' stroke='%23fff' stroke-width='1.6'/%3E%3C/svg%3E"
)


def page(session: Session) -> Iterator[str]:
    """The page in pieces, for a session too large to be held twice."""
    yield from head(session)
    yield from contents(session.messages)
    yield '<main class="long">\n' if len(session.messages) > LONG else "<main>\n"
    yield from Transcript(session).sections()
    yield from foot(session)
    yield f"</main>\n<script>{asset('page.js')}</script>\n</body>\n</html>\n"


@cache
def asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def policy() -> str:
    def digest(name: str) -> str:
        return b64encode(sha256(asset(name).encode()).digest()).decode()

    return (
        f"default-src 'none'; style-src 'sha256-{digest('page.css')}'; script-src 'sha256-{digest('page.js')}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def head(session: SessionSummary) -> Iterator[str]:
    title = escape(one_line(session.title, 200) or "(no title)")
    yield f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy()}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="amux {__version__}">
<title>{title}</title>
<link rel="icon" href="{ICON}">
<style>{asset("page.css")}</style>
</head>
<body>
<header>
<h1 dir="auto">{title}</h1>
<dl class="facts">
"""
    for name, value in facts(session):
        yield f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>\n"
    yield "</dl>\n</header>\n"


def contents(messages: Sequence[Message]) -> Iterator[str]:
    yield """<aside>
<div class="search" role="search">
<input type="search" placeholder="Search this session" aria-label="Search this session" autocomplete="off">
<output></output>
<button type="button">Unfold all</button>
</div>
<details class="contents" open>
<summary>Prompts</summary>
<ol>
"""
    for number, message in enumerate(messages, 1):
        if message.role == "user":
            inherited = ' class="inherited"' if message.inherited else ""
            yield f'<li{inherited}><a href="#m{number}" dir="auto">{escape(prompt_line(message))}</a></li>\n'
    yield "</ol>\n</details>\n</aside>\n"


def prompt_line(message: Message) -> str:
    return one_line(message.content, 100) or " ".join(map(attachment, message.attachments)) or "(empty)"


def foot(session: SessionSummary) -> Iterator[str]:
    cost = session.cost
    yield '<footer>\n<h2>Cost</h2>\n<dl class="facts">\n'
    source = f" {SOURCES[cost.source]}" if cost and cost.source and cost.total_usd is not None else ""
    yield f"<div><dt>total</dt><dd>{price(cost) + source if cost else 'not recorded'}</dd></div>\n"
    for kind, count in token_counts(cost):
        yield f"<div><dt>{kind} tokens</dt><dd>{count:,}</dd></div>\n"
    yield f"</dl>\n<p>Made by amux {__version__}. Times are UTC.</p>\n</footer>\n"


class Transcript:
    """The messages of a session, turn by turn; an answer of a tool stands with the call it answers."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.messages = session.messages
        self.answers = answers(self.messages)
        self.answering = frozenset(self.answers.values())
        self.inherited = [position for position, message in enumerate(self.messages) if message.inherited]
        self.model = session.model

    def sections(self) -> Iterator[str]:
        prompts = (position for position, message in enumerate(self.messages) if message.role == "user")
        bounds = sorted({0, *prompts, len(self.messages)})
        number = 0
        for start, end in pairwise(bounds):
            yield '<section class="turn">\n'
            for position in range(start, end):
                yield from self.around(position)
            number += self.messages[start].role == "user"
            yield spent(number, self.messages[start:end])
            yield "</section>\n"

    def around(self, position: int) -> Iterator[str]:
        if position in self.inherited[:1]:
            yield f'<p class="boundary">{inheritance(self.session, len(self.inherited))}</p>\n'
        if position not in self.answering:
            yield from self.article(position)
        if position in self.inherited[-1:]:
            yield '<hr class="boundary">\n'

    def article(self, position: int) -> Iterator[str]:
        message = self.messages[position]
        classes = f"message {message.role}" + (" error" if message.is_error else "")
        classes += " inherited" if message.inherited else ""
        yield f'<article class="{classes}" id="m{position + 1}">\n<header>'
        yield from self.caption(position, message)
        yield "</header>\n"
        if message.thinking:
            yield '<details class="thinking">\n<summary>Thinking</summary>\n'
            yield from body(message.thinking)
            yield "</details>\n"
        if message.role == "tool":
            yield from tool_answer(message)
        elif message.content.strip():
            yield from body(message.content, line_breaks=message.role != "assistant")
        yield attached(message)
        for number, call in enumerate(message.tool_calls):
            yield from self.call(call, self.answers.get((position, number)))
        yield "</article>\n"

    def caption(self, position: int, message: Message) -> Iterator[str]:
        told = message.event or ("error" if message.is_error else "")
        yield f"<h2>{message.role.capitalize()}{escape(f': {one_line(told, 60)}') if told else ''}</h2>"
        if message.model and message.model != self.model:
            self.model = message.model
            yield f'<span class="model">{escape(one_line(message.model, 80))}</span>'
        if message.timestamp:
            shown = f"{message.timestamp:{'%Y-%m-%d %H:%M' if message.role == 'user' else '%H:%M:%S'}}"
            full = stamp(message.timestamp)
            yield f'<time datetime="{message.timestamp:%Y-%m-%dT%H:%M:%SZ}" title="{full}">{shown}</time>'
        yield link_to(position)

    def call(self, call: ToolCall, answer: int | None) -> Iterator[str]:
        output = call.output if answer is None else self.messages[answer].content
        yield f'<details class="call{" failed" if call.is_error else ""}">\n<summary>'
        yield f'<span class="name">{escape(one_line(call.tool_name, 80) or "tool")}</span>'
        yield f'<span class="subject">{escape(subject(call))}</span>'
        yield f'<span class="outcome">{outcome(call, output)}</span></summary>\n'
        for part in input_parts(call.input) if call.input else ():
            yield from shown(part)
        if answer is not None:
            yield f'<div class="answer" id="m{answer + 1}">\n<p class="label">Output {link_to(answer)}</p>\n'
            yield from plain(output or "")
            yield attached(self.messages[answer])
            yield "</div>\n"
        elif output is not None:
            yield '<p class="label">Output</p>\n'
            yield from plain(output)
        yield "</details>\n"


def inheritance(session: SessionSummary, count: int) -> str:
    origin = f" from {escape(one_line(session.forked_from, 200))}" if session.forked_from else ""
    return f"inherited{origin}: {count:,} {'message' if count == 1 else 'messages'}"


def link_to(position: int) -> str:
    number = position + 1
    return f'<a class="link" href="#m{number}" title="Link to message {number}">#{number}</a>'


def body(text: str, *, line_breaks: bool = False) -> Iterator[str]:
    if len(text) > RENDERED_LENGTH:
        yield from plain(text)
    else:
        yield f'<div class="prose" dir="auto">\n{prose(text, line_breaks=line_breaks)}</div>\n'


def plain(text: str) -> Iterator[str]:
    """A text as it is. The newline after the tag is the one that HTML takes away."""
    yield '<pre class="plain">\n'
    yield from map(escape, pieces(text))
    yield "</pre>\n"


def shown(part: Part) -> Iterator[str]:
    if part.label:
        yield f'<p class="label">{escape(one_line(part.label, 80))}</p>\n'
    if len(part.text) > RENDERED_LENGTH:
        yield from plain(part.text)
    else:
        yield f'<pre class="plain">\n{coloured(part.text, part.language)}</pre>\n'


def tool_answer(message: Message) -> Iterator[str]:
    name = (message.tool_result and message.tool_result.tool_name) or "tool"
    call = ToolCall("", name, None, is_error=message.is_error)
    yield f'<details class="call{" failed" if message.is_error else ""}">\n'
    yield f'<summary><span class="name">{escape(one_line(name, 80))}</span><span class="subject"></span>'
    yield f'<span class="outcome">{outcome(call, message.content)}</span></summary>\n'
    yield from plain(message.content)
    yield "</details>\n"


def attached(message: Message) -> str:
    names = (f'<span class="attachment">{escape(attachment(found))}</span>' for found in message.attachments)
    return f"<p>{' '.join(names)}</p>\n" if message.attachments else ""


def spent(turn: int, messages: Sequence[Message]) -> str:
    """One line on what a turn took; nothing where nothing is known. What was inherited was another session's to pay."""
    own = [message for message in messages if not message.inherited]
    figures = [f"{short_count(count)} {kind}" for kind, count in tokens(own).items()]
    if amount := paid(own):
        figures.append(amount)
    times = [message.timestamp for message in own if message.timestamp]
    if figures and times and max(times) > min(times):
        figures.append(duration(max(times) - min(times)))
    items = "".join(f"<li>{figure}</li>" for figure in figures)
    return f'<ul class="spent"><li>Turn {turn}</li>{items}</ul>\n' if items else ""


def tokens(messages: Sequence[Message]) -> Counter[str]:
    total: Counter[str] = Counter()
    for message in messages:
        for kind, count in token_counts(message.token_usage):
            total[kind] += count
    return total


def paid(messages: Sequence[Message]) -> str:
    """The sum of what the messages cost; `at least` where some used tokens at a price nobody knows."""
    costs = [message.cost for message in messages if message.cost and message.cost.total_usd is not None]
    if not costs:
        return ""
    total = sum((cost.total_usd for cost in costs if cost.total_usd is not None), Decimal())
    estimated = any(cost.source in ("estimated", "mixed") for cost in costs)
    unknown = any(
        message.token_usage and not (message.cost and message.cost.total_usd is not None) for message in messages
    )
    amount = price(CostRecord(total_usd=total, source="estimated" if estimated else "native"))
    return f"at least {amount}" if unknown else amount


def short_count(count: int) -> str:
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"


def duration(time: timedelta) -> str:
    seconds = int(time.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min {seconds % 60} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
