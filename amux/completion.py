"""Completion in shells: the values they ask for, and their scripts.

A shell asks at every press of Tab. So the catalog is taken as it is, nothing is refreshed and no store is read, and
whatever goes wrong is no answer rather than an error.
"""

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import orjson

from amux import readers, runs, tags
from amux.cachefile import FORMAT, secure
from amux.errors import AmuxError
from amux.manager import LATEST, SHORTEST_PREFIX, cache_file
from amux.output import write
from amux.output.grids import ago
from amux.output.plain import one_line, visible
from amux.query import GROUPS
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
    write(lines.encode("utf-8", "replace"), end=b"")


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
            yield from agents(asked)
        case "models" | "tags":
            yield from counted(asked)
        case "groups":
            yield from groups(asked.prefix)
        case "zones":
            yield from zones(asked.prefix)
        case "ids":
            yield from latest(asked.prefix)
            yield from ids(asked)
        case "sessions":
            yield from agents(asked)
            yield from latest(asked.prefix)
            # All ids at once would bury the agents; a word that can only be an id is completed as one.
            if ":" in asked.prefix or len(asked.prefix) >= SHORTEST_PREFIX:
                yield from ids(asked)


def typeable(value: str) -> bool:
    """Whether a shell can insert the value as it is and amux takes it for a value, not for an option."""
    return value == visible(value) and not value.startswith("-") and not {"\n", "\t"} & set(value)


def agents(asked: Question) -> Iterator[Candidate]:
    counts: dict[str, int] = {}
    with suppress(sqlite3.Error, OSError):  # without a catalog there are agents all the same
        counts.update(rows(asked.host, readers.names(), COUNTS["agents"]))
    for name in readers.names():
        if name.startswith(asked.prefix):
            yield name, sessions(counts[name]) if name in counts else ""


def groups(prefix: str) -> Iterator[Candidate]:
    """What may follow the last comma; what stands before it is not offered again."""
    chosen, comma, begun = prefix.rpartition(",")
    for name in GROUPS:
        if name.startswith(begun) and name not in chosen.split(","):
            yield f"{chosen}{comma}{name}", ""


def zones(prefix: str) -> Iterator[Candidate]:
    from zoneinfo import available_timezones  # noqa: PLC0415 - it looks into hundreds of files

    for name in sorted(available_timezones()):
        if name.startswith(prefix):
            yield name, ""


def latest(prefix: str) -> Iterator[Candidate]:
    if LATEST.startswith(prefix):
        yield LATEST, "the newest session"


def ids(asked: Question) -> Iterator[Candidate]:
    """The sessions, newest first: by their own id after an agent or where it was begun, else by agent:id."""
    agent, colon, beginning = asked.prefix.partition(":")
    unified = asked.agent is None and (colon or not agent)
    chosen = [asked.agent] if asked.agent else [agent] if colon else readers.names()
    for name, id, title, updated in rows(asked.host, chosen, SESSIONS):
        if id.startswith(beginning if unified else asked.prefix):
            said = f"{ago(from_milliseconds(updated))} · {one_line(title, TITLE_WIDTH)}"
            yield f"{name}:{id}" if unified else id, said


SESSIONS = """
    select sc.agent, s.id, s.title, s.updated_at from session s join scope sc on sc.no = s.scope
    where s.scope in ({scopes}) and s.kind = 'main' order by s.updated_at desc, s.id
"""
COUNTS = {
    "agents": """
        select sc.agent, count(*) from session s join scope sc on sc.no = s.scope
        where s.scope in ({scopes}) and s.kind = 'main' group by sc.agent
    """,
    "models": """
        select value, count(*) from session, json_each(models) where scope in ({scopes}) and kind = 'main' group by value
    """,
    "tags": "select tag, count(*) from temp.tag group by tag",
}


def counted(asked: Question) -> Iterator[Candidate]:
    """Models or tags, each with how many sessions have it."""
    for value, count in rows(asked.host, readers.names(), COUNTS[asked.kind]):
        if value.startswith(asked.prefix):
            yield value, sessions(count)


def sessions(count: int) -> str:
    return "1 session" if count == 1 else f"{count:,} sessions"


def rows(host: Host, chosen: Iterable[str], select: str) -> list[tuple[Any, ...]]:
    """What the catalog knows of these agents on this host; nothing where there is no catalog."""
    path = cache_file()
    if not path.is_file():
        return []
    secure(path.parent)
    db = sqlite3.connect(uri(str(path), "mode=ro"), uri=True, timeout=PATIENCE_SECONDS)
    with closing(db):
        if db.execute("pragma user_version").fetchone()[0] != FORMAT:
            return []
        scopes = dict(own_scopes(db, host, set(chosen)))
        if "temp.tag" in select:
            noted = runs.runs(runs.index_files(host.home, Path.cwd()))
            runs.lay_over(db, scopes, noted, tags.kept(db, scopes))
        return db.execute(select.format(scopes=", ".join(map(str, scopes)))).fetchall()


def own_scopes(db: sqlite3.Connection, host: Host, chosen: Collection[str]) -> Iterator[tuple[int, str]]:
    """The stores of these agents on this host: the catalog may know those of other homes as well."""
    for no, agent, roots, asked in db.execute("select no, agent, roots, asked from scope where host = ?", [host.name]):
        if agent in chosen and (same_variables(host, asked) or roots == roots_of(agent, host)):
            yield no, agent


def same_variables(host: Host, asked: str) -> bool:
    """Whether what a store's place depends on is as it was: its reader need not be loaded to tell where it is."""
    return all(host.env.get(name) == value for name, value in orjson.loads(asked).items())


def roots_of(agent: str, host: Host) -> str:
    return "\n".join(map(str, readers.open_reader(agent, host).roots()))


# The shells' scripts


Shell = Literal["bash", "zsh", "fish"]
SCRIPTS: dict[Shell, str] = {"bash": "amux.bash", "zsh": "_amux", "fish": "amux.fish"}


def script(shell: Shell) -> Path:
    """Where the script lies: inside the installed package, or at the top of a source tree."""
    package = Path(__file__).parent
    return next(
        path for place in (package, package.parent) if (path := place / "completions" / SCRIPTS[shell]).is_file()
    )


def install(shell: Shell, host: Host) -> str:
    """Put a shell's script where that shell looks for it; what was done and what is left to do. Raises AmuxError."""
    places: dict[Shell, Path] = {
        "bash": host.data_home / "bash-completion" / "completions" / "amux",
        "zsh": host.data_home / "zsh" / "site-functions" / "_amux",
        "fish": host.config_home / "fish" / "completions" / "amux.fish",
    }
    path = places[shell]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(script(shell).read_bytes())
    except OSError as error:
        raise AmuxError(f"cannot write {path}: {error.strerror}; is the directory yours?") from error
    return "\n".join([f"Wrote {path}.", *left_to_do(shell, path, host)])


def left_to_do(shell: Shell, path: Path, host: Host) -> Iterator[str]:
    match shell:
        case "bash":
            yield "New shells have it if the bash-completion package is installed; else add to ~/.bashrc:"
            yield f"  source {quote(str(path))}"
        case "zsh" if not mentioned(path.parent, host):
            yield "Add to ~/.zshrc, then start a new shell:"
            yield f"  fpath=({quote(str(path.parent))} $fpath)"
            yield "  autoload -Uz compinit && compinit"
        case _:
            yield "New shells have it."


def mentioned(directory: Path, host: Host) -> bool:
    """Whether zsh's own file names a directory, in full or from the home on."""
    file = host.directory("ZDOTDIR") / ".zshrc"
    said = file.read_text(errors="replace") if file.is_file() else ""
    return str(directory) in said or f"/{os.path.relpath(directory, host.home)}" in said
