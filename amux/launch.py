"""Resume and fork: find the program, enter the directory, become it.

Session files are untrusted. Nothing is run through a shell, only a program on PATH is started, no word of a session can
become an option, and the mode a session ran with is told, never applied.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import ClassVar, Literal

from amux.errors import AgentNotInstalled, AmuxError, CapabilityError, InvalidValue, UnreadableSession
from amux.model import INTERNAL, SessionSummary
from amux.output.plain import visible
from amux.preflight import around, of_agent, of_session
from amux.readers._base import Reader, stamp
from amux.readers._json import at, document, text_at

Verb = Literal["resume", "fork"]

PACKAGE_DEPTH = 4
"""How far above a program npm's description of its package may lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A program about to be started: `env` is what is set beside the inherited environment.

    `obstacles` are what keeps it from being started; shown only, they are warnings like the others.
    """

    ALWAYS: ClassVar = frozenset({"agent", "session_id", "argv", "cwd", "env", "warnings"})

    agent: str
    session_id: str
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    warnings: tuple[str, ...]
    handed_over_from: str | None = None
    brief: str | None = None
    obstacles: tuple[AmuxError, ...] = field(default=(), metadata=INTERNAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person asked for: `extra` goes to the agent as it is."""

    verb: Verb = "resume"
    model: str | None = None
    extra: tuple[str, ...] = ()


def carried_on(
    reader: Reader, session: SessionSummary, wish: Wish, cwd: str, *, forks: Sequence[SessionSummary] = ()
) -> Launch:
    """The launch that resumes or forks a session in a directory. Raises CapabilityError where the agent cannot."""
    argv = command(reader, session, wish)
    since = reader.fork_since if wish.verb == "fork" else reader.resume_since
    return Launch(
        agent=session.agent,
        session_id=session.session_id,
        argv=(*argv, *wish.extra),
        cwd=cwd,
        env={"PWD": cwd},
        warnings=(*of_session(session, forks), *around(session, cwd), *of_agent(reader, session, cwd)),
        obstacles=tuple(obstacles(reader, argv[0], cwd, since, wish.verb)),
    )


def started(reader: Reader, source: SessionSummary, prompt: str, brief: str, wish: Wish, cwd: str) -> Launch:
    """The launch of a new session that goes on with another's work. Raises CapabilityError where the agent cannot."""
    argv = reader.start_command(prompt, wish.model)
    if argv is None:
        raise CapabilityError(
            f"{reader.agent} takes no prompt when it is started; start it yourself and point it to {brief}"
        )
    guard(reader, argv, wish.model)
    return Launch(
        agent=reader.agent,
        session_id=source.session_id,
        argv=(*argv, *wish.extra),
        cwd=cwd,
        env={"PWD": cwd},
        warnings=tuple(around(source, cwd)),
        handed_over_from=source.unified_id,
        brief=brief,
        obstacles=tuple(obstacles(reader, argv[0], cwd, "", "start")),
    )


# The command


def command(reader: Reader, session: SessionSummary, wish: Wish) -> list[str]:
    """What the reader says resumes or forks the session. Raises CapabilityError."""
    ask = reader.resume_command if wish.verb == "resume" else reader.fork_command
    argv = ask(session, wish.model)
    if argv is None:
        raise CapabilityError(incapable(reader, session, wish.verb))
    guard(reader, argv, wish.model, session.session_id, session.path, session.cwd)
    return argv


def incapable(reader: Reader, session: SessionSummary, verb: Verb) -> str:
    """Why there is no command, and what to do instead."""
    if verb == "fork" and type(reader).fork_command is Reader.fork_command:
        return f"{reader.agent} has no command that forks; {reader.fork_hint or 'resume the session instead'}"
    if verb == "fork" and reader.fork_hint:
        return f"{visible(session.unified_id)} cannot be forked; {reader.fork_hint}"
    return (
        f"{reader.agent} cannot {verb} {visible(session.unified_id)}; to go on with it in a new session:"
        f" amux sessions resume {quoted(session.unified_id)} --in {reader.agent}"
    )


def guard(reader: Reader, argv: Sequence[str], model: str | None, *told: str | None) -> None:
    """Make sure that nothing told by a session or a person has become an option. Raises InvalidValue, CapabilityError."""
    for text in (model, *told):
        if text and text.startswith("-") and text in argv:
            raise InvalidValue(
                f"{text!r} would be an option of {reader.program}: {reader.agent} is not started with it"
            )
    if any("\0" in one for one in argv):
        raise InvalidValue(f"a NUL stands in what {reader.program} would be given: it is not started")
    if model and not any(model in one for one in argv):
        raise CapabilityError(f"{reader.agent} takes no model here; leave --model out and choose it from inside")


def shell_line(launch: Launch) -> str:
    """The launch as a line for the user's shell."""
    if os.name == "nt":
        return f"cd /d {subprocess.list2cmdline([launch.cwd])} && {subprocess.list2cmdline(launch.argv)}"
    assigned = [f"{name}={quoted(value)}" for name, value in launch.env.items() if name != "PWD"]
    return " ".join(["cd", quoted(launch.cwd), "&&", *assigned, *map(quoted, launch.argv)])


def quoted(text: str) -> str:
    """The text for a POSIX shell; what a terminal would act upon is spelled out, and so are bytes that are no UTF-8."""
    runs = groupby(text, key=lambda one: visible(one) == one)
    return "".join(shlex.quote("".join(run)) if plain else spelled("".join(run)) for plain, run in runs) or "''"


def spelled(text: str) -> str:
    octal = "".join(f"\\{byte:03o}" for byte in text.encode("utf-8", "surrogateescape"))
    return f"\"$(printf '{octal}')\""


# The program


def obstacles(reader: Reader, name: str, cwd: str, since: str, verb: str) -> Iterator[AmuxError]:
    """What keeps the launch from being started."""
    if not os.path.isdir(cwd):
        yield InvalidValue(f"{visible(cwd)} is gone; say where the session goes on: --cwd DIR")
    program = program_path(name)
    install = f": {reader.install}" if reader.install else ""
    if program is None:
        yield AgentNotInstalled(f"{name} is not on your PATH; install it{install}")
        return
    version = version_of(program) if since else None
    if version and numbers(version) < numbers(since):
        yield AgentNotInstalled(f"{name} {version} cannot {verb} yet, {since} can; update it{install}")


def program_path(name: str) -> str | None:
    """Where PATH has a program; a relative entry does not count, for it would mean another directory after `cd`."""
    places = [place for place in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(place)]
    found = shutil.which(name, path=os.pathsep.join(places)) if places else None
    return found if found and os.path.isabs(found) else None


def version_of(program: str) -> str | None:
    """The version of a program that npm installed, as its package has it; None where only the program could tell."""
    name = os.path.basename(program)
    for folder in islice(Path(os.path.realpath(program)).parents, PACKAGE_DEPTH):
        package = package_at(folder)
        commands = at(package, "bin")
        if isinstance(commands, str):  # the one program of a package that bears its name
            commands = {(text_at(package, "name") or "").rpartition("/")[2]: commands}
        if isinstance(commands, dict) and name in commands:
            return text_at(package, "version")
    return None


def package_at(folder: Path) -> object:
    path = folder / "package.json"
    try:
        return document(str(path)) if stamp(path) else None
    except UnreadableSession:
        return None


def numbers(version: str) -> tuple[int, ...]:
    """What a version is compared by: 1.0.128-beta is 1.0.128."""
    return tuple(map(int, re.findall(r"\d+", version.partition("-")[0])))


# Starting


def become(launch: Launch) -> int:
    """Become the program; where a process cannot, its exit status. Raises AmuxError."""
    program = program_path(launch.argv[0])
    if program is None:
        raise AgentNotInstalled(f"{launch.argv[0]} is not on your PATH")
    environment = {**os.environ, **launch.env}
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    try:
        os.chdir(launch.cwd)
        if os.name == "nt":  # its exec returns to the shell before the program has ended
            return ended(subprocess.Popen([program, *launch.argv[1:]], env=environment))
        restore_signals()
        os.execvpe(program, launch.argv, environment)  # noqa: S606 - a list, no shell
    except OSError as error:
        raise AmuxError(f"cannot start {program} in {visible(launch.cwd)}: {error.strerror or error}") from error


def restore_signals() -> None:
    """What Python ignores, and a program it becomes would go on ignoring."""
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


def ended(child: "subprocess.Popen[bytes]") -> int:
    """The exit status of a child; an interrupt is its own business."""
    while True:
        try:
            status = child.wait()
        except KeyboardInterrupt:
            continue
        return status if status >= 0 else 128 - status
