"""amux sessions resume, fork, tag: going on with a session."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amux import readers
from amux.cli import options
from amux.cli.commands import Command
from amux.cli.sessions import app
from amux.errors import AmuxError, CapabilityError, InvalidValue, SessionNotFound
from amux.manager import LATEST, SessionManager
from amux.model import SessionSummary
from amux.output import emit, note
from amux.output.plain import visible
from amux.query import Query, here

if TYPE_CHECKING:
    from amux.launch import Launch, Verb, Wish
    from amux.output.terminal.picker import Choice
    from amux.tags import Target

SHOWN_MATCHES = 200
"""So many sessions does the picker show of what a search found: nobody scrolls through more."""


class WithRest(Command):
    """A command that keeps what follows `--` apart: it is the agent's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])


@dataclass(frozen=True, slots=True)
class Manner:
    """How a session is carried on."""

    cwd: Path | None
    tags: tuple[str, ...]
    ask: bool
    only_show: bool
    json: bool


def carry_on(
    ctx: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT",
            help="An agent; or one id such as claude:fbe2e13d; or latest. None: choose at the terminal.",
            show_default=False,
        ),
    ] = None,
    id: options.Id = None,
    last: Annotated[bool, typer.Option("--last", help="The newest session, of AGENT if one is given.")] = False,
    cwd: Annotated[
        Path | None, typer.Option(help="Start here instead of where it ran.", metavar="DIR", show_default=False)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="With this model, as the agent calls it.", metavar="MODEL", show_default=False)
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="Tag the session; may be repeated.", metavar="TAG", show_default=False),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            "--in",
            help="In a new session of this agent, with a brief of the old one.",
            metavar="AGENT",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the command and start nothing.")] = False,
    json: options.Json = False,
) -> None:
    from amux.launch import Wish  # noqa: PLC0415 - what only a launch needs
    from amux.tags import checked  # noqa: PLC0415

    verb: Verb = "fork" if ctx.info_name == "fork" else "resume"
    at_terminal = all(stream and stream.isatty() for stream in (sys.stdin, sys.stderr))
    manner = Manner(cwd, checked(tag or ()), at_terminal and not yes and not json, show or json, json)
    wish = Wish(verb=verb, model=model, extra=ctx.obj)
    if into:
        options.known([into])
    sessions = options.manager()
    session = named(sessions, agent, id, last=last)
    if session is None:
        choice = picked(sessions, agent, verb, at_terminal=at_terminal and not json)
        session = choice.session
        wish = replace(wish, verb="fork" if choice.verb == "fork" else verb)
        manner = replace(manner, only_show=manner.only_show or choice.verb == "print")
    if into:
        hand_over(sessions, session, into, wish, manner)
    else:
        go_on(sessions, session, wish, manner)


HELP = """{what}

The agent's own program is started where the session ran. What follows -- goes to it as it is.

Example: amux sessions {verb} codex 01a1d46b --print"""
for verb, what in (("resume", "Go on with a session."), ("fork", "Go on from a session in a new one.")):
    app.command(verb, cls=WithRest, help=HELP.format(what=what, verb=verb))(carry_on)


# Which session


def named(sessions: SessionManager, agent: str | None, id: str | None, *, last: bool) -> SessionSummary | None:
    """The session a person named; None when they named none, or only an agent."""
    if last:
        if id or (agent and agent not in readers.names()):
            raise InvalidValue("--last is the newest session: give an agent with it, or nothing")
        agent, id = (agent, LATEST) if agent else (LATEST, None)
    if agent is None or (id is None and agent in readers.names()):
        return None
    return found(sessions, *options.chosen(sessions, agent, id))


def found(sessions: SessionManager, agent: str, id: str) -> SessionSummary:
    one = sessions.ask((agent,), lambda catalog: catalog.found(agent, id))
    if one is None:
        raise SessionNotFound.named(id, agent)
    return one.summary


def picked(sessions: SessionManager, agent: str | None, verb: "Verb", *, at_terminal: bool) -> "Choice":
    """What a person chooses; only the sessions of one agent if it is given. Raises InvalidValue without a terminal."""
    if not at_terminal:
        raise InvalidValue(
            f"which session? Give AGENT ID, one id such as claude:fbe2e13d, or --last"
            f"{f' {agent}' if agent else ''}; amux sessions list shows them"
        )
    from amux.output.terminal.picker import Source, pick  # noqa: PLC0415 - only a terminal needs Rich

    agents = (agent,) if agent else ()
    everything = sessions.list(Query(agents=agents))
    if not everything:
        whose = f"{agent} has" if agent else "there are"
        raise SessionNotFound(f"{whose} no sessions; amux agents shows where they were looked for")
    local = sessions.list(Query(agents=agents, directories=here(Path.cwd())))
    ids = {one.unified_id for one in local}
    source = Source(
        here=local,
        elsewhere=[one for one in everything if one.unified_id not in ids],
        search=lambda text: searched(sessions, agents, text),
        last_prompt=lambda session: last_prompt(sessions, session),
    )
    choice = pick(source, verb, color=options.settings.color)
    if choice is None:
        raise typer.Exit(130)
    return choice


def searched(sessions: SessionManager, agents: tuple[str, ...], text: str) -> list[SessionSummary]:
    from amux.search import words  # noqa: PLC0415

    query = Query(agents=agents, limit=SHOWN_MATCHES, sort="relevance")
    matched, _ = sessions.ask(agents, lambda catalog: catalog.matches(words(text), query, None))
    return [one.summary for one in matched if one.summary.kind == "main"]


def last_prompt(sessions: SessionManager, session: SessionSummary) -> Callable[[], str]:
    known = sessions.ask((session.agent,), lambda catalog: catalog.found(session.agent, session.session_id))

    def read() -> str:
        if known is None:
            return ""
        with readers.open_reader(session.agent, sessions.host) as reader:
            whole = next(one for one in reader.read(known.ref) if one.session_id == session.session_id)
        return next((message.content for message in reversed(whole.messages) if message.role == "user"), "")

    return read


# Going on


def go_on(sessions: SessionManager, session: SessionSummary, wish: "Wish", manner: Manner) -> None:
    from amux.launch import carried_on  # noqa: PLC0415
    from amux.tags import Target  # noqa: PLC0415

    if session.kind != "main":
        session = parent(sessions, session, wish.verb, manner)
    cwd = directory(session, manner)
    forks = [one for one in sessions.list(Query(agents=(session.agent,))) if one.forked_from == session.session_id]
    with readers.open_reader(session.agent, sessions.host) as reader:
        launch = carried_on(reader, session, wish, cwd, forks=forks)
    launch = replace(launch, obstacles=(*elsewhere(sessions, launch, manner), *launch.obstacles))
    target = {"fork_of" if wish.verb == "fork" else "session_id": session.session_id}
    conclude(launch, manner, Target(agent=session.agent, **target))


def hand_over(sessions: SessionManager, session: SessionSummary, into: str, wish: "Wish", manner: Manner) -> None:
    from amux import handover  # noqa: PLC0415
    from amux.launch import started  # noqa: PLC0415
    from amux.tags import Target  # noqa: PLC0415

    cwd = directory(session, manner)
    redactor = options.redactor(sessions)
    whole = redactor.session(sessions.get(session.agent, session.session_id))
    text = handover.brief(whole, redactor.text(str(sessions.host.home)))
    try:
        brief = handover.keep(session, text)
    except OSError as error:
        raise AmuxError(f"cannot keep the brief: {error}") from error
    with readers.open_reader(into, sessions.host) as reader:
        launch = started(reader, session, handover.prompt(session, brief), str(brief), wish, cwd)
    if manner.only_show and not manner.json:
        note(text)
    conclude(launch, manner, Target(agent=into, started_in=cwd))


def parent(sessions: SessionManager, session: SessionSummary, verb: str, manner: Manner) -> SessionSummary:
    """The session a sub-agent worked for, if the person agrees. Raises CapabilityError."""
    from amux.launch import quoted  # noqa: PLC0415

    told = visible(session.unified_id)
    if not session.parent_id:
        raise CapabilityError(f"{told} is no session of its own and names none that it belongs to")
    name = f"{session.agent}:{session.parent_id}"
    question = f"amux: {told} is a sub-agent's; {verb} its parent {visible(name)}?"
    if manner.ask and typer.confirm(question, default=True, err=True):
        return found(sessions, session.agent, session.parent_id)
    raise CapabilityError(f"{told} is a sub-agent's; {verb} its parent: amux sessions {verb} {quoted(name)}")


def directory(session: SessionSummary, manner: Manner) -> str:
    """Where the agent is started: where it ran, unless the person says otherwise; here when nobody knows."""
    if manner.cwd:
        return existing(manner.cwd)
    if not session.cwd or not os.path.isabs(session.cwd):
        return os.getcwd()
    if manner.ask and not manner.only_show and not os.path.isdir(session.cwd):
        answer = typer.prompt(
            f"amux: {session.cwd!r} is gone; go on in which directory? (empty: leave)",
            default="",
            show_default=False,
            err=True,
        )
        if answer.strip():
            return existing(Path(answer.strip()))
    return session.cwd


def existing(path: Path) -> str:
    absolute = os.path.abspath(os.path.expanduser(path))
    if not os.path.isdir(absolute):
        raise InvalidValue(f"{str(path)!r} is no directory; give one that is there: --cwd DIR")
    return absolute


def conclude(launch: "Launch", manner: Manner, target: "Target") -> None:
    """Show the launch, or say what is worth saying, note the tags and start it."""
    from amux.launch import become, shell_line  # noqa: PLC0415

    if manner.only_show:
        launch = replace(launch, warnings=(*launch.warnings, *map(str, launch.obstacles)))
    if not manner.json:
        for warning in launch.warnings:
            note(f"amux: {warning}")
    if manner.only_show:
        emit(launch, as_json=manner.json, view=shell_line)
        return
    if launch.obstacles:
        raise launch.obstacles[0]
    if manner.tags:
        keep(target, manner.tags)
    note(f"({shell_line(launch)})")
    raise typer.Exit(become(launch))


def elsewhere(sessions: SessionManager, launch: "Launch", manner: Manner) -> list[AmuxError]:
    """Sessions of another home are not where an agent looks for them."""
    if sessions.host.home == Path(os.path.expanduser("~")):
        return []
    hint = "" if manner.only_show else "; --print shows the command"
    return [InvalidValue(f"the session is in {sessions.host.home}, where {launch.argv[0]} would not look{hint}")]


# Tags


@app.command(cls=Command)
def tag(
    words: Annotated[list[str], typer.Argument(metavar="AGENT ID TAG…", help="A session, and the tags it is to have.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take the tags away.")] = False,
    json: options.Json = False,
) -> None:
    """Tag a session with words of your own.

    List, search and cost report take them: --tag TAG.

    Example: amux sessions tag claude fbe2e13d release urgent
    """
    from amux.tags import Target, checked, kept  # noqa: PLC0415

    sessions = options.manager()
    agent, id, given = parted(words)
    names = checked(given)
    session = found(sessions, *options.chosen(sessions, agent, id))
    if session.kind != "main":
        named_parent = visible(f"{session.agent}:{session.parent_id}")
        raise InvalidValue(f"{visible(session.unified_id)} is a sub-agent's; tag its parent {named_parent}")
    if remove:
        tags = sessions.ask((session.agent,), lambda catalog: kept(catalog.db, catalog.scopes))
        own = tags.get((session.agent, session.session_id), [])
        if foreign := [name for name in names if name in session.tags and name not in own]:
            raise InvalidValue(f"{foreign[0]!r} was given by {session.agent} or in the run index: it stays")
    keep(Target(agent=session.agent, session_id=session.session_id), names, remove=remove)
    now = set(session.tags) - set(names) if remove else {*session.tags, *names}
    emit(
        replace(session, tags=tuple(sorted(now))),
        as_json=json,
        view=lambda it: f"{visible(it.unified_id)}: {', '.join(map(visible, it.tags)) or 'no tags'}",
    )


def parted(words: Sequence[str]) -> tuple[str, str | None, Sequence[str]]:
    """The words of a command as what names a session and the tags behind it. Raises InvalidValue."""
    count = 2 if words[0] in readers.names() else 1
    if len(words) <= count:
        raise InvalidValue("which session, and which tags? For example: amux sessions tag claude:fbe2e13d urgent")
    return words[0], words[1] if count == 2 else None, words[count:]


def keep(target: "Target", names: Sequence[str], *, remove: bool = False) -> None:
    from amux.tags import note as note_tags  # noqa: PLC0415

    try:
        note_tags(target, names, remove=remove)
    except OSError as error:
        raise AmuxError(f"cannot keep the tags: {error}") from error
