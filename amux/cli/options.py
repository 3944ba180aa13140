"""Options that several commands share, and what the ones before the command said."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amux import readers
from amux.errors import AgentNotFound, AmbiguousId, InvalidValue, SessionNotFound
from amux.manager import LATEST, SessionManager
from amux.output import note
from amux.places import real, told
from amux.query import Query, moment
from amux.readers._base import Host, encodable

if TYPE_CHECKING:
    from amux.output.redact import Redactor


MOST = 10**9
"""More than this cannot be counted here; SQLite takes no limit beyond 64 bits."""


def whole_number(given: str | int) -> int:
    """What an option that counts takes; the default comes as the number it is."""
    try:
        number = int(given)
    except ValueError:
        number = -1
    if number < 0:
        raise typer.BadParameter(f"{given!r} is no whole number from 0 on")
    return min(number, MOST)


Agent = Annotated[str | None, typer.Argument(metavar="AGENT", help="Only this agent.", show_default=False)]
AgentOrId = Annotated[
    str, typer.Argument(metavar="AGENT", help="An agent; or one id such as claude:fbe2e13d; or latest.")
]
Id = Annotated[
    str | None,
    typer.Argument(metavar="ID", help="The session's id, the beginning of it, or latest.", show_default=False),
]
OnlyAgents = Annotated[
    list[str] | None,
    typer.Option("--agent", help="Only this agent; may be repeated.", metavar="AGENT", show_default=False),
]
Since = Annotated[
    str | None,
    typer.Option(help="From this date on: 2026-11-18, 7d, 2w, today.", metavar="DATE", show_default=False),
]
Until = Annotated[
    str | None, typer.Option(help="Up to this date; a day means the whole day.", metavar="DATE", show_default=False)
]
Model = Annotated[
    str | None, typer.Option(help="Only models with this in their id.", metavar="TEXT", show_default=False)
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", help="Only with this tag; repeated: any of them.", metavar="TAG", show_default=False),
]
Limit = Annotated[int, typer.Option(help="At most so many; 0 means all.", parser=whole_number, metavar="N")]
Cwd = Annotated[
    Path | None, typer.Option(help="Only this directory and what is below it.", metavar="DIR", show_default=False)
]
Here = Annotated[bool, typer.Option("--here", help="Only this git repository and its worktrees, else this directory.")]
Redact = Annotated[bool, typer.Option("--redact", help="Without secrets, e-mail addresses and your user name.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass
class Settings:
    home: Path | None = None
    demo: bool = False
    cache: bool = True
    color: bool = True
    verbose: bool = False


settings = Settings()
NOT_UTF8 = "is no UTF-8 text; amux reads only homes and stores whose names are"


def host() -> Host:
    if settings.demo:
        return Host.current(Path(__file__).parents[1] / "demo")
    if settings.home is not None and not os.path.isdir(settings.home):
        raise InvalidValue(f"--home {settings.home} is no directory")
    found = Host.current(settings.home)
    if not encodable(str(found.home)):
        raise InvalidValue(f"the home {told(found.home)} {NOT_UTF8}")
    return replace(found, env=Named(found.env))


class Named(Mapping[str, str]):
    """An environment of UTF-8 text; whoever asks for a variable that holds none gets InvalidValue."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env

    def __getitem__(self, name: str) -> str:
        value = self.env[name]
        if not encodable(value):
            raise InvalidValue(f"{name}, {told(value)}, {NOT_UTF8}")
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in self.env.items() if encodable(name + value))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def manager() -> SessionManager:
    report = None
    if sys.stderr and sys.stderr.isatty():
        from amux.output.terminal import filling  # noqa: PLC0415 - only a terminal sees progress

        report = filling()
    return SessionManager(host(), cache=settings.cache, report=report)


def known(agents: Iterable[str]) -> tuple[str, ...]:
    """The agents, each of which must be one. Raises AgentNotFound."""
    for agent in agents:
        if agent not in readers.names():
            raise AgentNotFound(agent, readers.names())
    return tuple(agents)


def since(text: str | None) -> datetime | None:
    return moment(text) if text else None


def until(text: str | None) -> datetime | None:
    return moment(text, end=True) if text else None


def directory(path: Path | None) -> tuple[str, ...]:
    return (told(real(path)),) if path else ()


def chosen(sessions: SessionManager, agent_or_id: str, id: str | None) -> tuple[str, str]:
    """The agent and whole id a person means by `AGENT ID`, `agent:id`, a unique prefix or `latest`."""
    if id is not None:
        (agent,) = known([agent_or_id])
        return agent, sessions.resolve_native_id(agent, id)
    if ":" in agent_or_id:
        known([agent_or_id.partition(":")[0]])
        return sessions.resolve_unified_id(agent_or_id)
    if agent_or_id in readers.names():
        raise InvalidValue(
            f"which session of {agent_or_id}? Give an id, or latest; amux sessions list {agent_or_id} shows them"
        )
    if agent_or_id == LATEST:
        newest = sessions.list(Query(limit=1))
        if not newest:
            raise SessionNotFound("there are no sessions; amux agents shows where they were looked for")
        return newest[0].agent, newest[0].session_id
    return among_all(sessions, agent_or_id)


def among_all(sessions: SessionManager, prefix: str) -> tuple[str, str]:
    found = sessions.ask((), lambda catalog: catalog.candidates(readers.names(), prefix))
    if len(found) > 1:
        raise AmbiguousId(prefix, [f"{agent}:{id}" for agent, id in found])
    if not found:
        raise SessionNotFound.named(prefix)
    return found[0][0], sessions.resolve_native_id(found[0][0], prefix)


def redactor(sessions: SessionManager) -> "Redactor":
    from amux.output.redact import Redactor  # noqa: PLC0415 - rules that only sharing needs

    return Redactor(str(sessions.host.home))


def note_skipped(sessions: SessionManager) -> None:
    """Say how many sessions could not be read; with -v, which and why."""
    skipped = sessions.skipped
    if not skipped:
        return
    if settings.verbose:
        for one in skipped:
            note(f"amux: {one.agent}: cannot read {one.path}: {one.reason}")
    else:
        some = "1 session" if len(skipped) == 1 else f"{len(skipped)} sessions"
        note(f"amux: {some} could not be read (-v shows which)")


def note_first_run(sessions: SessionManager) -> None:
    """Where there is no session at all, say where they were looked for and how to try amux nevertheless."""
    if settings.demo or sessions.count(Query()):
        return
    from amux.output.grids import tilde  # noqa: PLC0415 - an answer in JSON does without

    places = ", ".join(tilde(str(sessions.readers[agent].roots()[0])) for agent in readers.names())
    note(wrapped(f"amux: looked for sessions in {places}; amux agents says more"))
    note_samples()


def note_samples() -> None:
    note(wrapped("amux: to see what amux does, try it on sample sessions: amux --demo sessions list"))


def wrapped(text: str) -> str:
    """A long note in lines that fit the terminal, if it goes to one."""
    if not (sys.stderr and sys.stderr.isatty()):
        return text
    return textwrap.fill(text, shutil.get_terminal_size().columns, subsequent_indent="  ", break_on_hyphens=False)
