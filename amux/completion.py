"""Completion in shells: the values they ask for, and their scripts.

A shell asks at every press of Tab. So the catalog is taken as it is, nothing is refreshed and no store is read, and
whatever goes wrong is no answer rather than an error.
"""

import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from amux import readers, runs
from amux.catalog import FORMAT, secure
from amux.errors import AmuxError
from amux.manager import LATEST, SHORTEST_PREFIX, cache_file
from amux.output.grids import ago
from amux.output.plain import one_line, visible
from amux.readers._base import Host
from amux.readers._sqlite import uri
from amux.tables import from_milliseconds

PATIENCE_SECONDS = 0.1
"""How long to wait for another amux that holds the catalog."""
TITLE_WIDTH = 60
Candidate = tuple[str, str]
"""A value and what is said of it."""


@dataclass(frozen=True, slots=True)
class Question:
    """What may stand at one place of a command line: a value of this kind that begins so; ids may be one agent's alone."""

    kind: str
    prefix: str
    host: Host
    agent: str | None = None


def answer(argv: Sequence[str]) -> None:
    """Print what may stand there, `value<TAB>description` a line; nothing where nothing is known."""
    found: dict[str, str] = {}
    with suppress(Exception):
        for value, said in candidates(question(argv)):
            if typeable(value):
                found.setdefault(value, said)
    lines = "".join(f"{value}\t{said}\n" for value, said in found.items())
    sys.stdout.buffer.write(lines.encode("utf-8", "replace"))


def question(argv: Sequence[str]) -> Question:
    """The question in `[--home DIR | --demo] KINDS [ARGUMENT...] PREFIX`.

    KINDS are those of the command's arguments, with commas; the ARGUMENTs before the one asked for tell which it is.
    """
    words = list(argv)
    home = os.environ.get("AMUX_HOME") or None
    while words[0].startswith("--"):
        home = str(Path(__file__).parent / "demo") if words.pop(0) == "--demo" else os.path.expanduser(words.pop(0))
    kinds, *arguments, prefix = words
    kind, agent = place(kinds.split(","), arguments)
    return Question(kind, prefix, Host.current(home), agent)


def place(kinds: Sequence[str], arguments: Sequence[str]) -> tuple[str, str | None]:
    """The kind of the next argument, and the agent whose session it names. A kind with `+` may be repeated."""
    left = list(arguments)
    for kind in kinds:
        if not left or kind.endswith("+"):
            return kind.rstrip("+"), None
        agent = left.pop(0)
        if kind == "sessions" and agent in readers.names():  # AGENT ID takes two words, agent:id one
            if not left:
                return "ids", agent
            left.pop(0)
    return "", None


def candidates(asked: Question) -> Iterator[Candidate]:
    match asked.kind:
        case "agents":
            yield from agents(asked.prefix)
        case "models" | "tags":
            yield from counted(asked)
        case "ids":
            yield from latest(asked.prefix)
            yield from ids(asked)
        case "sessions":
            yield from agents(asked.prefix)
            yield from latest(asked.prefix)
            # All ids at once would bury the agents; a word that can only be an id is completed as one.
            if ":" in asked.prefix or len(asked.prefix) >= SHORTEST_PREFIX:
                yield from ids(asked)


def typeable(value: str) -> bool:
    """Whether a shell can insert the value as it is and amux takes it for a value, not for an option."""
    return value == visible(value) and not value.startswith("-") and not {"\n", "\t"} & set(value)


def agents(prefix: str) -> Iterator[Candidate]:
    for name in readers.names():
        if name.startswith(prefix):
            yield name, readers.reader_class(name).title


def latest(prefix: str) -> Iterator[Candidate]:
    if LATEST.startswith(prefix):
        yield LATEST, "the newest session"


def ids(asked: Question) -> Iterator[Candidate]:
    """The sessions, newest first: by their own id after an agent or where it was begun, else by agent:id."""
    agent, colon, beginning = asked.prefix.partition(":")
    named = asked.agent is None and (colon or not agent)
    chosen = [asked.agent] if asked.agent else [agent] if colon else readers.names()
    for name, id, title, updated in rows(asked.host, chosen, SESSIONS):
        if id.startswith(beginning if named else asked.prefix):
            said = f"{ago(from_milliseconds(updated))} · {one_line(title, TITLE_WIDTH)}"
            yield f"{name}:{id}" if named else id, said


SESSIONS = """
    select sc.agent, s.id, s.title, s.updated_at from session s join scope sc on sc.no = s.scope
    where s.scope in ({scopes}) and s.kind = 'main' order by s.updated_at desc, s.id
"""
COUNTS = {
    "models": """
        select value, count(*) from session, json_each(models) where scope in ({scopes}) and kind = 'main' group by value
    """,
    "tags": "select tag, count(*) from temp.tag group by tag",
}


def counted(asked: Question) -> Iterator[Candidate]:
    """Models or tags, each with how many sessions have it."""
    for value, count in rows(asked.host, readers.names(), COUNTS[asked.kind]):
        if value.startswith(asked.prefix):
            yield value, "1 session" if count == 1 else f"{count:,} sessions"
