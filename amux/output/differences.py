"""Two sessions side by side, as lines of styled pieces: a terminal draws them, a pipe takes their text."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from amux.diff import Balance, balance, departure, words
from amux.model import Message, Session
from amux.output.calls import subject
from amux.output.grids import count, money, title, turns, usd
from amux.output.plain import one_line, visible
from amux.results.differences import DiffOperation, SessionDiff

Line = list[tuple[str, str]]
"""A line in pieces, each with its style: "", "bold", "dim", "remove" or "add"."""
LINES_SHOWN = 12
"""Lines of one message that are shown; more are counted."""
LINE_LENGTH = 300


def plain(found: SessionDiff, a: Session, b: Session) -> str:
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines(found, a, b))


def lines(found: SessionDiff, a: Session, b: Session) -> Iterator[Line]:
    yield from heads(a, b)
    for same, operations in groupby(found.operations, key=lambda one: one.type == "unchanged"):
        if same:
            number = sum(1 for _ in operations)
            yield [(f"  {number} {'message' if number == 1 else 'messages'} the same", "dim")]
        else:
            for operation in operations:
                yield from changed(operation)
    yield [(summary_line(found, a, b), "bold")]


def heads(a: Session, b: Session) -> Iterator[Line]:
    for name, session in (("a", a), ("b", b)):
        other = a if session is b else b
        forked = session.forked_from == other.session_id and session.agent == other.agent
        where = f"fork of {'a' if other is a else 'b'}, left {left(a, b)}" if forked else title(session)
        spent = usd(session.cost) + (" of its own" if forked else "")
        yield [
            (f"{name}  ", "bold"),
            (visible(session.unified_id), ""),
            (f"  {where}  {turns(session.turn_count)}  {spent}", "dim"),
        ]


def left(a: Session, b: Session) -> str:
    """Where a fork left its parent."""
    parted = departure(a, b)
    if not parted.turns:
        return "before the first answer"
    return f"{'in' if parted.midway else 'after'} turn {parted.turns}"


def changed(operation: DiffOperation) -> Iterator[Line]:
    before, after = operation.message_a, operation.message_b
    if before and after:
        old, new = words(said(before), said(after))
        yield from block("−", before, [(text, "remove" if kind == "remove" else "") for kind, text in old])
        yield from block("+", after, [(text, "add" if kind == "add" else "") for kind, text in new])
    elif before:
        yield from block("−", before, [(said(before), "remove")])
    elif after:
        yield from block("+", after, [(said(after), "add")])


def said(message: Message) -> str:
    """What a message says, its tool calls included, each on a line."""
    calls = [f"▸ {call.tool_name}  {subject(call)}" for call in message.tool_calls]
    return "\n".join([*([message.content] if message.content else []), *calls])


def block(sign: str, message: Message, pieces: Sequence[tuple[str, str]]) -> Iterator[Line]:
    """A message line by line behind its sign; the first line says whose it is."""
    style = "add" if sign == "+" else "remove"
    mark = {"user": "❯ ", "tool": "↳ ", "system": "• "}.get(message.role, "")
    made = by_line(pieces)
    for place, line in enumerate(made[:LINES_SHOWN]):
        yield [(f"{sign} {mark if place == 0 else ' ' * len(mark)}", style), *line]
    if len(made) > LINES_SHOWN:
        yield [(f"{sign} … {len(made) - LINES_SHOWN} more lines", "dim")]


def by_line(pieces: Sequence[tuple[str, str]]) -> list[Line]:
    made: list[Line] = [[]]
    for text, style in pieces:
        first, *rest = text.split("\n")
        made[-1].append((one_line(first, LINE_LENGTH) if len(first) > LINE_LENGTH else visible(first), style))
        made.extend(
            [(one_line(line, LINE_LENGTH) if len(line) > LINE_LENGTH else visible(line), style)] for line in rest
        )
    return made


def summary_line(found: SessionDiff, a: Session, b: Session) -> str:
    stats = found.stats
    parts = [
        f"{stats.unchanged} the same, {stats.modifications} changed, {stats.removals} only in a, {stats.additions} only in b"
    ]
    return " · ".join(parts + list(balance_parts(balance(a, b))))


def balance_parts(found: Balance) -> Iterator[str]:
    if found.turns:
        yield f"turns {signed(found.turns)}"
    if found.tools_removed or found.tools_added:
        gone, new = sum(found.tools_removed.values()), sum(found.tools_added.values())
        yield " ".join(["tools", *([f"−{gone}"] if gone else []), *([f"+{new}"] if new else [])])
    if found.files_removed or found.files_added:
        names = [f"−{visible(name)}" for name in found.files_removed] + [
            f"+{visible(name)}" for name in found.files_added
        ]
        yield f"files {' '.join(names[:6])}" + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    if found.output_tokens:
        yield f"output {signed(found.output_tokens)} tokens"
    if found.usd:
        yield f"cost {'−' if found.usd < 0 else '+'}{money(abs(found.usd), estimated=False)}"


def signed(number: int) -> str:
    return f"{'−' if number < 0 else '+'}{count(abs(number))}"
