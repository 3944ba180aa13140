"""amux sessions: list, show, search."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from amux import readers
from amux.cli import options
from amux.cli.commands import Command, Group, WordsCommand, need_command
from amux.errors import InvalidValue, closest
from amux.manager import SessionManager
from amux.model import Session, SessionSummary
from amux.output import at_terminal, emit, grids, note, tame, write
from amux.query import Query, here

if TYPE_CHECKING:
    from amux.output.terminal.transcript import Family
    from amux.results.hits import SearchHit

app = typer.Typer(
    cls=Group,
    help="""List, read, search and resume sessions.

    Example: amux sessions list""",
    rich_markup_mode=None,
)

app.callback(invoke_without_command=True)(need_command)


class ListOrder(StrEnum):
    date = "date"
    cost = "cost"
    turns = "turns"


class Format(StrEnum):
    markdown = "markdown"
    json = "json"
    jsonl = "jsonl"


class Tools(StrEnum):
    full = "full"
    short = "short"
    none = "none"


@app.command("list", cls=Command)
def list_(
    agent: options.Agent = None,
    since: options.Since = None,
    until: options.Until = None,
    model: options.Model = None,
    tag: options.Tags = None,
    cwd: options.Cwd = None,
    in_here: options.Here = False,
    limit: options.Limit = 100,
    sort: Annotated[ListOrder, typer.Option(help="What comes first.")] = ListOrder.date,
    asc: Annotated[bool, typer.Option("--asc", help="The least first.")] = False,
    subagents: Annotated[bool, typer.Option("--subagents", help="Sub-agents too.")] = False,
    tree: Annotated[
        bool, typer.Option("--tree", help="Forks and sub-agents below the session they come from.")
    ] = False,
    no_archived: Annotated[bool, typer.Option("--no-archived", help="Without archived sessions.")] = False,
    ids_from: Annotated[
        Path | None,
        typer.Option(
            help="Only the ids in this file, in its order: agentloop.json, or one id a line.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """The sessions, newest first.

    At a terminal by day, in a pipe with whole ids and absolute times.

    Example: amux sessions list claude --sort cost --limit 5
    """
    sessions = options.manager()
    query = replace(
        chosen_sessions(agent, since, until, model, tag, cwd, in_here=in_here),
        limit=limit,
        sort=sort.value,
        ascending=asc,
        subagents=subagents or tree,
        archived=not no_archived,
    )
    found = listed_in(sessions, query, ids_from) if ids_from else list(sessions.list(query))

    def view(shown: list[SessionSummary]) -> grids.Grid:
        short = sessions.short_ids(shown) if at_terminal() else {}
        if tree:
            return grids.tree(shown, short)
        if not short:
            return grids.sessions(shown)
        by_day = sort is ListOrder.date and not ids_from
        return grids.days(shown, short) if by_day else grids.ranked(shown, short)

    emit(found, as_json=json, view=view)
    if not ids_from and len(found) == limit:
        note_rest(limit, sessions.count(query))
    if not found and not json:
        options.note_first_run(sessions)
    options.note_skipped(sessions)


def note_rest(limit: int, total: int) -> None:
    """Say so where a limit cut something."""
    if 0 < limit < total:
        note(f"amux: {limit:,} of {total:,} sessions (--limit 0 for all)")


def chosen_sessions(
    agent: str | None,
    since: str | None,
    until: str | None,
    model: str | None,
    tag: list[str] | None,
    cwd: Path | None,
    *,
    in_here: bool,
) -> Query:
    """The query that list's filters make."""
    return Query(
        agents=options.known([agent] if agent else []),
        since=options.since(since),
        until=options.until(until),
        model=model,
        tags=tuple(tag or ()),
        directories=here(Path.cwd()) if in_here else options.directory(cwd),
    )


def listed_in(sessions: SessionManager, query: Query, path: Path) -> list[SessionSummary]:
    """The sessions a file names, in its order; what has no transcript is said on the side."""
    ids: dict[str, None] = {}
    for agent in query.agents or readers.names():
        ids.update(dict.fromkeys(sessions.readers[agent].ids_in(path)))
    if not ids:
        raise InvalidValue(f"{path} names no session ids; it should be agentloop.json or hold one id a line")
    found = {one.session_id: one for one in sessions.list(replace(query, ids=tuple(ids), limit=0))}
    for id in ids:
        if id not in found:
            note(f"amux: {id} has no transcript")
    return [found[id] for id in ids if id in found]


@app.command(cls=Command)
def show(
    agent: options.AgentOrId,
    id: options.Id = None,
    format: Annotated[Format, typer.Option(help="How to print it.")] = Format.markdown,
    tools: Annotated[Tools, typer.Option(help="Tool calls: whole, one line each, or none.")] = Tools.short,
    thinking: Annotated[bool, typer.Option("--thinking", help="With the model's thinking.")] = False,
    head: Annotated[
        int,
        typer.Option(help="Only the first N turns.", parser=options.whole_number, metavar="N", show_default=False),
    ] = 0,
    tail: Annotated[
        int,
        typer.Option(help="Only the last N turns.", parser=options.whole_number, metavar="N", show_default=False),
    ] = 0,
    raw: Annotated[bool, typer.Option("--raw", help="With the agent's own records (JSON).")] = False,
    redact: options.Redact = False,
    json: options.Json = False,
) -> None:
    """One session, from first prompt to last answer.

    At a terminal in colour and through your pager, in a pipe as Markdown.

    Example: amux sessions show claude latest
    """
    sessions = options.manager()
    name, whole_id = options.chosen(sessions, agent, id)
    session = part(sessions.get(name, whole_id, raw=raw), head, tail)
    if redact:
        redactor = options.redactor(sessions)
        session = redactor.session(session)
        note(f"amux: {redactor.summary()}")
    if json or format is not Format.markdown:
        print_chunks(session, "json" if json else format.value)
    elif at_terminal():
        from amux.output.terminal.transcript import Style, show  # noqa: PLC0415 - Rich

        show(session, Style(tools.value, thinking, family(sessions, session)), color=options.settings.color)
    else:
        from amux.output.markdown import chunks  # noqa: PLC0415

        for chunk in chunks(session, tools=tools.value, thinking=thinking):
            write(chunk.encode("utf-8", "replace"), end=b"")


def print_chunks(session: Session, form: str) -> None:
    from amux.output.export import chunks  # noqa: PLC0415

    for chunk in chunks(session, form):
        write(tame(chunk) if at_terminal() else chunk, end=b"")


def family(sessions: SessionManager, session: Session) -> "Family":
    from amux.output.terminal.transcript import Family  # noqa: PLC0415

    found = sessions.relatives(session.agent, session.session_id)
    short = sessions.short_ids(found)
    return Family(
        forked_from=session.forked_from,
        forks=[short[one.unified_id] for one in found if one.kind == "main"],
        subagents=sum(one.kind == "subagent" for one in found),
    )


def part(session: Session, head: int, tail: int) -> Session:
    """The session with only its first or last turns; what precedes the first prompt belongs to the first."""
    starts = [place for place, message in enumerate(session.messages) if message.role == "user"]
    end = starts[head] if head and head < len(starts) else len(session.messages)
    start = starts[-tail] if tail and tail < len(starts) else 0
    return replace(session, messages=session.messages[start:end]) if head or tail else session


class HitOrder(StrEnum):
    relevance = "relevance"
    date = "date"
    cost = "cost"


Role = Literal["user", "assistant", "tool", "thinking", "title"]


@app.command(cls=WordsCommand)
def search(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="QUERY", help='Words; "a phrase"; -without; one OR other.')],
    agent: options.OnlyAgents = None,
    since: options.Since = None,
    until: options.Until = None,
    model: options.Model = None,
    tag: options.Tags = None,
    cwd: options.Cwd = None,
    role: Annotated[Role | None, typer.Option(help="Only in what this one said.", show_default=False)] = None,
    limit: options.Limit = 50,
    sort: Annotated[HitOrder, typer.Option(help="What comes first.")] = HitOrder.relevance,
    regex: Annotated[bool, typer.Option("--regex", help="QUERY is a regular expression.")] = False,
    json: options.Json = False,
) -> None:
    """Sessions in which all the words occur.

    The best come first. Titles, prompts, replies, thinking and tool calls are searched; words match from their
    beginning.

    Example: amux sessions search webhook retry
    """
    note_mistyped(ctx, words)
    sessions = options.manager()
    query = Query(
        agents=tuple(agent or ()),
        since=options.since(since),
        until=options.until(until),
        model=model,
        tags=tuple(tag or ()),
        directories=options.directory(cwd),
        limit=limit,
        sort=sort.value,
    )
    found = sessions.search(" ".join(words), query, role=role, regex=regex)
    if found and found.literal and not regex:
        note("amux: no session has these words; looked for the text as it is")

    def cards(of: "list[SearchHit]") -> grids.Cards:
        return grids.cards(of, sessions.short_ids(of))

    emit(list(found), as_json=json, view=cards)
    note_rest(limit, found.total)
    if not found and not json:
        options.note_first_run(sessions)
    options.note_skipped(sessions)


def note_mistyped(ctx: typer.Context, words: list[str]) -> None:
    """Say so when a word that is searched for looks like a mistyped option: flags are searched for as well."""
    flags = [word for word in words if word.startswith("--") and word.isascii()]
    if not flags:
        return
    from amux.cli.wording import options_of  # noqa: PLC0415 - only such words need it

    for flag in flags:
        if option := closest(flag.partition("=")[0], options_of(ctx.command), 0.8):
            note(f"amux: looked for {flag!r} as a word; did you mean {option}?")
