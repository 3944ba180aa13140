"""amux sessions export and diff."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from amux.cli import options
from amux.cli.commands import Command
from amux.cli.sessions import app, chosen_sessions
from amux.errors import InvalidValue
from amux.manager import SessionManager
from amux.model import Session, SessionSummary
from amux.output import at_terminal, emit, note, tame, write
from amux.query import Query

if TYPE_CHECKING:
    from amux.output.redact import Redactor
    from amux.results.differences import SessionDiff

Form = Literal["json", "jsonl", "markdown", "html", "parquet"]


@app.command(cls=Command)
def export(
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT",
            help="An agent; or one id such as claude:fbe2e13d; or latest. With --all: only this agent.",
            show_default=False,
        ),
    ] = None,
    id: options.Id = None,
    format: Annotated[Form, typer.Option(help="What to write.")] = "json",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="A file, or with --all a directory.", metavar="PATH", show_default="stdout"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    redact: options.Redact = False,
    raw: Annotated[bool, typer.Option("--raw", help="With the agent's own records.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Every session, one file each; list's filters apply.")
    ] = False,
    since: options.Since = None,
    until: options.Until = None,
    model: options.Model = None,
    tag: options.Tags = None,
    cwd: options.Cwd = None,
    in_here: options.Here = False,
    subagents: Annotated[bool, typer.Option("--subagents", help="Sub-agents too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Write sessions to files, to keep or share.

    One session, or with --all every one that list would show.

    Example: amux sessions export claude latest --format html -o page.html
    """
    if json and format != "json":
        raise InvalidValue(f"--json and --format {format} exclude each other")
    sessions = options.manager()
    redactor = options.redactor(sessions) if redact else None
    if everything:
        query = chosen_sessions(agent, since, until, model, tag, cwd, in_here=in_here)
        # An archive is asked for sums, and the calls of sub-agents are part of them.
        query = replace(query, subagents=subagents or format == "parquet")
        export_all(sessions, query, format, output, redactor, force=force, raw=raw)
    elif agent is None:
        raise InvalidValue("which session? Give AGENT ID, or --all with --output DIR; amux sessions list shows them")
    elif format == "parquet":
        raise InvalidValue("--format parquet is for many sessions: add --all --output DIR")
    else:
        export_one(sessions, options.chosen(sessions, agent, id), format, output, redactor, force=force, raw=raw)
    if redactor:
        note(f"amux: {redactor.summary()}")


def export_one(
    sessions: SessionManager,
    named: tuple[str, str],
    form: str,
    output: Path | None,
    redactor: "Redactor | None",
    *,
    force: bool,
    raw: bool,
) -> None:
    from amux.output.export import chunks, write_file  # noqa: PLC0415

    session = sessions.get(*named, raw=raw)
    shown = redactor.session(session) if redactor else session
    if output:
        write_file(output, chunks(shown, form), force=force)
        return
    for chunk in chunks(shown, form):
        write(tame(chunk) if at_terminal() else chunk, end=b"")


def export_all(
    sessions: SessionManager,
    query: Query,
    form: str,
    directory: Path | None,
    redactor: "Redactor | None",
    *,
    force: bool,
    raw: bool,
) -> None:
    from amux.output import export, parquet  # noqa: PLC0415

    if directory is None:
        raise InvalidValue("--all writes one file a session: say where with --output DIR")
    found = list(sessions.list(query))
    if not found:
        options.note_first_run(sessions)

    def whole(summary: SessionSummary) -> Session:
        session = sessions.get(summary.agent, summary.session_id, raw=raw, path=summary.path)
        return redactor.session(session) if redactor else session

    with bar(len(found)) as done:
        if form == "parquet":
            parquet.write(found, whole, sessions.charges, directory, done)
            failed = []
        else:
            failed = export.write_all(found, whole, directory, form, force=force, done=done)
    written = len(found) - len(failed)
    note(f"amux: {written:,} {'session' if written == 1 else 'sessions'} written to {directory}")
    for summary, reason in failed:
        note(f"amux: {summary.unified_id} was not written: {reason}")


def bar(count: int) -> AbstractContextManager[Callable[[int], None]]:
    """A progress bar where there is a terminal to see it."""
    if not sys.stderr or not sys.stderr.isatty():
        return nullcontext(lambda _: None)
    from amux.output.terminal.tables import counting  # noqa: PLC0415

    return counting("amux: writing sessions", count)


@app.command(cls=Command)
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A session: agent:id, the beginning of an id, or latest.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    stat: Annotated[bool, typer.Option("--stat", help="Only the counts.")] = False,
    json: options.Json = False,
) -> None:
    """What differs between two sessions.

    They may be of one agent or of two. Of a fork and its parent it is said where they part.

    Example: amux sessions diff codex:01a1d46b codex:01a1d470
    """
    sessions = options.manager()
    left, right = (sessions.get(*options.chosen(sessions, one, None)) for one in (a, b))
    found = sessions.diff(left, right)
    if stat and json:
        from amux.output.jsonout import dumps  # noqa: PLC0415

        write(dumps(found.stats))
        return

    def text(of: "SessionDiff") -> str:
        from amux.output.differences import plain, summary_line  # noqa: PLC0415

        return summary_line(of, left, right) if stat else plain(of, left, right)

    if at_terminal() and not json and not stat:
        from amux.output.terminal.difference import show  # noqa: PLC0415

        show(found, left, right, color=options.settings.color)
    else:
        emit(found, as_json=json, view=text)
