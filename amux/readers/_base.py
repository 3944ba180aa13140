"""What a reader is, what it is given (Host) and what it gives (SessionRef, Session)."""

import os
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self

from amux.errors import UnreadableSession
from amux.model import Charge, Json, Message, Session, SessionSummary
from amux.readers._json import LATEST
from amux.search import Words

MARGIN = 100
"""How much white space may stand before a text and between its characters when it is compared with its beginning."""
TITLE_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Host:
    """The machine as a reader may see it: a home, its environment, the kind of system."""

    home: Path
    env: Mapping[str, str]
    platform: str = sys.platform

    @classmethod
    def current(cls, home: str | Path | None = None) -> Self:
        """The user's own host; with `home`, that directory as if it were one: variables that move a store do not count."""
        if home is not None:
            return cls(Path(home).absolute(), {})
        return cls(Path(os.path.expanduser("~")), dict(os.environ))

    @property
    def name(self) -> str:
        """What tells it from other hosts whose stores one catalog may keep."""
        return f"{self.platform} {self.home}"

    def directory(self, variable: str, *default: str) -> Path:
        """The directory a variable names (`~` is the host's home), else the default below the home."""
        return self.expand(self.env[variable]) if self.env.get(variable) else self.home.joinpath(*default)

    def expand(self, text: str) -> Path:
        if text == "~" or text.startswith("~/"):
            return self.home / text[2:]
        return self.home / text  # an absolute path stays as it is

    @property
    def config_home(self) -> Path:
        return self.directory("XDG_CONFIG_HOME", ".config")

    @property
    def data_home(self) -> Path:
        return self.directory("XDG_DATA_HOME", ".local", "share")


class Watched(Mapping[str, str]):
    """An environment that remembers which variables were asked for: what a store's place depends on."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.asked: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        self.asked[name] = self.env.get(name)
        return self.env[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.env)

    def __len__(self) -> int:
        return len(self.env)


class SessionRef(NamedTuple):
    """What can be read in one go, not yet opened: usually one session.

    `key` is unique within the reader's store; `fingerprint` changes when anything that reading it opens does;
    `size` is about how many bytes reading it takes; `files` are what the reader needs to remember besides `path`.
    `reason` says why it cannot be read, where that shows before reading: a database that does not open is one ref.
    """

    key: str
    path: str
    fingerprint: str
    size: int = 0
    files: tuple[str, ...] = ()
    reason: str | None = None


class Reader:
    """One agent's store on one host. Use it as a context manager: databases stay open until it is left."""

    title: ClassVar[str]
    program: ClassVar[str] = ""
    install: ClassVar[str] = ""
    """How people install the agent's program, one line."""
    fork_hint: ClassVar[str] = ""
    """What to do instead where the agent has no command that forks."""
    resume_since: ClassVar[str] = ""
    fork_since: ClassVar[str] = ""
    """The first version of the program that has what resume_command and fork_command use."""
    bound_to_cwd: ClassVar[bool] = False
    """Whether the program finds a session only in the directory it ran in."""

    def __init__(self, agent: str, host: Host) -> None:
        self.agent = agent
        self.host = host
        self.opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.opened.close()

    def roots(self) -> Sequence[Path]:
        """Where this agent's store is looked for on this host, whether it is there or not."""
        raise NotImplementedError

    def state(self) -> str | None:
        """A fingerprint of the whole store that is cheaper than refs(); None where there is none.

        While it stays the same the catalog does not call refs(): a database need not be opened to learn that it did not
        change.
        """
        return None

    def refs(self) -> Iterable[SessionRef]:
        """Every session of the store, found without parsing; nothing when the agent was never used.

        Never raises for what is wrong with a store: that is a broken_ref.
        """
        raise NotImplementedError

    def read(self, ref: SessionRef) -> Sequence[Session]:
        """The sessions the ref holds: usually one; with it the sub-agents recorded inside; none if it is only a stub.

        Raises UnreadableSession.
        """
        raise NotImplementedError

    def message_at(self, ref: SessionRef, offset: int) -> Message | None:
        """The message whose first record begins at an offset of the ref's file, from there on alone.

        What other records tell of it may be missing, but for its role, its texts and what tools were called with. None
        where that takes the whole session. Raises UnreadableSession.
        """
        return None

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        """The agent's own records of a session, whole trees included."""
        raise NotImplementedError

    def search(self, words: Words) -> Collection[str] | None:
        """The ids of the sessions that match by an index of the agent's own; None where it has none that can be asked."""
        return None

    def ids_in(self, path: Path) -> list[str]:
        """The session ids a file names, one a line; nothing when it cannot be read."""
        try:
            return path.read_text(errors="replace").split()
        except OSError:
            return []

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        """The argv that resumes the session in its cwd; None: cannot. `model` is one the user asked for."""
        return None

    def fork_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        """The argv that forks the session in its cwd; None: cannot."""
        return None

    def start_command(self, prompt: str, model: str | None) -> list[str] | None:
        """The argv that starts a new session with a prompt; None: cannot. The prompt never begins with "-"."""
        return None


def stamp(path: str | os.PathLike[str]) -> tuple[str, int] | None:
    """Fingerprint and size of a regular file; None for anything else: a FIFO would block, a directory is no session."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ino}", found.st_size


def file_ref(key: str, path: str, *others: str) -> SessionRef | None:
    """A ref to a file and the other files that reading it opens; None when the file itself is not a regular one."""
    own = stamp(path)
    if own is None:
        return None
    fingerprint, size = own
    for other in others:
        more = stamp(other)
        fingerprint += f"|{other}:{more[0] if more else ''}"
        size += more[1] if more else 0
    return SessionRef(key, path, fingerprint, size, others)


def broken_ref(error: UnreadableSession) -> SessionRef:
    """A ref in place of the sessions of a store that cannot be opened."""
    found = stamp(error.path)
    return SessionRef(error.path, error.path, found[0] if found else "", reason=error.reason)


def encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def entries(directory: str | os.PathLike[str]) -> Iterator[os.DirEntry[str]]:
    """What lies in a directory, in name order; nothing when it cannot be listed."""
    try:
        with os.scandir(directory) as found:
            # A name that is no UTF-8 can be neither kept in the catalog nor printed: no agent writes one.
            listed = [entry for entry in found if entry.name.isascii() or encodable(entry.name)]
    except (OSError, ValueError):
        return
    listed.sort(key=attrgetter("name"))
    yield from listed


def modified(path: str) -> datetime:
    """When a file was last written, within what a time can be: for sessions in which no record has one."""
    try:
        return datetime.fromtimestamp(min(max(os.stat(path).st_mtime, 0), LATEST.timestamp()), UTC)
    except (OSError, OverflowError, ValueError):
        return datetime.fromtimestamp(0, UTC)


def inherited(messages: Iterable[Message]) -> Iterator[Message]:
    """The messages, marked as what a fork copied."""
    return (replace(message, inherited=True) for message in messages)


def turns(messages: Sequence[Message]) -> int:
    """How many prompts got an answer before the next prompt came."""
    count, waiting = 0, False
    for message in messages:
        if message.role == "user":
            waiting = True
        elif waiting and message.role == "assistant":
            count, waiting = count + 1, False
    return count


def title_from(text: str) -> str:
    """A title made of a text: its first line with anything in it, cut at 100 characters."""
    line = text.lstrip().partition("\n")[0].rstrip()
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


def begins(text: str, beginning: str) -> bool:
    """Whether a text begins so once both stand on one line, each stretch of white space a blank."""
    wanted = " ".join(beginning.split())
    near = text[: MARGIN + MARGIN * len(wanted)]  # of a huge text as much as can matter
    return " ".join(near.split()).startswith(wanted)


def models_of(charges: Sequence[Charge], messages: Sequence[Message]) -> tuple[str, ...]:
    """The models that answered, the one with the most calls first; a fork's are those of its own calls, if it has any."""
    calls: dict[str, int] = {}
    for charge in [charge for charge in charges if charge.claim != "copied"] or charges:
        if charge.model:
            calls[charge.model] = calls.get(charge.model, 0) + charge.calls
    if not calls:
        for message in messages:
            if message.model and message.role == "assistant":
                calls[message.model] = calls.get(message.model, 0) + 1
    return tuple(sorted(calls, key=lambda model: -calls[model]))


def session(
    agent: str,
    session_id: str,
    messages: Sequence[Message],
    *,
    path: str,
    title: str | None = None,
    charges: Sequence[Charge] = (),
    created_at: datetime | None = None,
    updated_at: datetime | None = None,
    model: str | None = None,
    **known: Any,
) -> Session:
    """A session from what a reader found; what follows from the messages is worked out here.

    Times not given are those of the first and last message, then the file's. The title not given is the first prompt.
    """
    times = [message.timestamp for message in messages if message.timestamp]
    created = created_at or (min(times) if times else None) or updated_at or modified(path)
    updated = updated_at or (max(times) if times else None) or created
    models = models_of(charges, messages)
    prompts = (message.content for message in messages if message.role == "user")
    return Session(
        agent=agent,
        session_id=session_id,
        title=title_from(title or "") or next((line for text in prompts if (line := title_from(text))), ""),
        created_at=created,
        updated_at=max(created, updated),
        turn_count=turns(messages),
        message_count=len(messages),
        model=models[0] if models else model,
        models=models or ((model,) if model else ()),
        messages=tuple(messages),
        charges=tuple(charges),
        path=path,
        **known,
    )
