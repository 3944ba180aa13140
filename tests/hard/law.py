"""What amux tells of a home, and the law it keeps whatever happened to a file: what stood before the damage is told."""

import json
import os
import re
import resource
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from amux import readers
from amux.errors import AmuxError
from amux.manager import SessionManager
from amux.model import Session
from amux.output import grids, html, jsonout, markdown
from amux.query import Query
from amux.readers._base import Host

from .mutate import MAGIC

SECONDS = 10
MEMORY = 1_000_000_000
SOAK = bool(os.environ.get("AMUX_SOAK"))
DAMAGED = re.compile("[\0\x1b\u2028\ufffd(]")
"""What damage inside a text leaves in it."""

Said = tuple[str, str]
"""Who said something, and what."""


class Hang(BaseException):
    """Not an Exception: what takes too long must not be caught as if a file were to blame."""


@contextmanager
def at_most(seconds: float, memory: int) -> Iterator[None]:
    """Not longer, and not with so much more memory than now: a device that never ends would take all there is."""

    def stop(*_: object) -> None:
        raise Hang(f"not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else None
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, hard))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def agents() -> tuple[str, ...]:
    """The agents whose reader is there."""
    return tuple(filter(has_reader, readers.names()))


def has_reader(name: str) -> bool:
    try:
        readers.reader_class(name)
    except (ImportError, AttributeError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Told:
    """A session as amux tells it."""

    path: str
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Telling:
    """Everything amux says of an agent's sessions in a home; `wrong` is what no home may bring about."""

    sessions: dict[str, Told]
    skipped: tuple[str, ...] = ()
    wrong: list[str] = field(default_factory=list)


def told(agent: str, host: Host, *, shown: bool = True) -> Telling:
    """What amux says of an agent's sessions; with `shown`, everything is printed in every format as well."""
    try:
        with at_most(SECONDS, MEMORY):
            manager = SessionManager(host, cache=False)
            with closing(manager.catalog):
                return everything(manager, agent, shown=shown)
    except Hang as hang:
        return Telling({}, wrong=[str(hang)])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the law forbids
        return Telling({}, wrong=[f"{type(error).__name__}: {error} {place_of(error)}"])


def everything(manager: SessionManager, agent: str, *, shown: bool) -> Telling:
    listed = manager.list(Query(agents=(agent,), subagents=True))
    telling = Telling({}, tuple(f"{one.path}: {one.reason}" for one in manager.skipped))
    telling.wrong.extend(one for one in telling.skipped if ": unexpected " in one)
    for one in listed:
        try:
            session = manager.get(agent, one.session_id)
        except AmuxError as error:
            telling.wrong.append(f"{one.session_id} is listed and cannot be read: {error}")
            continue
        telling.sessions[one.session_id] = Told(one.path or "", said(session))
        if shown:
            print_all(session)
    if shown:
        grids.sessions(listed).plain()
        jsonout.dumps(listed)
        jsonout.dumps(manager.search("marmalade", Query(agents=(agent,), limit=5, sort="relevance")))
        jsonout.dumps(manager.total_cost(Query(agents=(agent,)), group_by=("session", "model", "day")))
    return telling


def place_of(error: BaseException) -> str:
    """Where in amux an error was raised."""
    places = []
    trace = error.__traceback__
    while trace:
        code = trace.tb_frame.f_code
        if f"{os.sep}amux{os.sep}" in code.co_filename:
            places.append(f"{Path(code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " < ".join(reversed(places))


def said(session: Session) -> tuple[Said, ...]:
    return tuple((message.role, message.content) for message in session.messages)


def print_all(session: Session) -> None:
    jsonout.dumps(session)
    for _ in jsonout.lines(session):
        pass
    markdown.markdown(session)
    for piece in html.page(session):
        piece.encode()


# What stood before the damage


def is_database(content: bytes) -> bool:
    return content.startswith(MAGIC)


def line_of(content: bytes, place: int) -> int:
    """Where the line begins in which a place lies."""
    return content.rfind(b"\n", 0, place) + 1


def sessions_in(telling: Telling, path: str) -> dict[str, Told]:
    """The sessions of a file; a database's -wal is part of it."""
    store = path.removesuffix("-wal").removesuffix("-shm")
    return {id: session for id, session in telling.sessions.items() if session.path == store}


def before_in_lines(whole: Telling, prefix: Telling, path: str, content: bytes, start: int) -> dict[str, list[Said]]:
    """What was said before the damage in a file of lines, or in a -wal.

    The reader itself is the witness, given nothing but what lies before the damage (`prefix`); that it tells anything at
    all, the file itself says: of two texts that stand in lines before it, the session must be there.
    """
    found: dict[str, list[Said]] = {}
    for id, session in sessions_in(whole, path).items():
        if id in prefix.sessions:
            found[id] = kept(session.said, prefix.sessions[id].said)
        elif len(stood := texts_before(session, content, line_of(content, start))) > 1:
            found[id] = stood
    return found


def before_in_a_value(whole: Telling, path: str, content: bytes, start: int) -> dict[str, list[Said]]:
    """What was said before the damage in a file that is one JSON value: the prompts after which more text stands."""
    found: dict[str, list[Said]] = {}
    for id, session in sessions_in(whole, path).items():
        stood = texts_before(session, content, start)
        prompts = [place for place, (role, _) in enumerate(stood[:-1]) if role == "user"]
        found[id] = stood[: prompts[-1] + 1] if prompts else []
    return found


def texts_before(session: Told, content: bytes, end: int) -> list[Said]:
    """What was said only once and does not stand in the file from a place on."""
    return [one for one in session.said if session.said.count(one) == 1 and ends_before(content, one[1], end)]


def ends_before(content: bytes, text: str, end: int) -> bool:
    places = [content.rfind(form) + len(form) for form in forms(text) if form in content]
    return bool(places) and max(places) <= end


def forms(text: str) -> Iterator[bytes]:
    """A text as it stands in JSON: as it is, or in escapes. A short one may stand anywhere."""
    for ascii_only in (True, False):
        written = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        if len(written) > 10:
            yield written


def same(wanted: Said, found: Said) -> bool:
    """Whether it is told; what comes behind the damage may have been added to it, and a later copy may be the damaged one."""
    return wanted[0] == found[0] and DAMAGED.sub("", found[1]).startswith(DAMAGED.sub("", wanted[1]))


def kept(wanted: Sequence[Said], found: Sequence[Said]) -> list[Said]:
    """What of the wanted is among what was found, in order."""
    told_of, place = [], 0
    for one in wanted:
        here = next((number for number in range(place, len(found)) if same(one, found[number])), None)
        if here is not None:
            told_of.append(one)
            place = here + 1
    return told_of


def broken_law(before: Telling, after: Telling, path: str, stood: dict[str, list[Said]]) -> list[str]:
    """How amux broke the law in what it tells after a file was damaged."""
    if after.wrong:
        return after.wrong
    inside = sessions_in(before, path)
    found = [
        f"{id} is gone, which is in another file" for id in before.sessions if id not in {**inside, **after.sessions}
    ]
    for id, wanted in stood.items():
        if wanted and id not in after.sessions:
            found.append(f"{id} is gone, and {len(wanted)} messages stood before the damage; skipped: {after.skipped}")
        elif wanted and (lost := len(wanted) - len(kept(wanted, after.sessions[id].said))):
            found.append(f"{id} lost {lost} of {len(wanted)} messages")
    return found


# Databases


TABLES = "select name, sql from sqlite_master where type = 'table' and sql not like '%virtual%'"


def lost_rows(whole: Path, damaged: Path) -> str:
    """The text of every row of a database that its damaged copy does not have as it was."""
    with closing(opened(whole)) as then, closing(opened(damaged)) as now:
        kept = tables(now)
        lost = (
            lost_of(name.decode(), then, now) if kept.get(name) == sql else every_row(name.decode(), then)
            for name, sql in tables(then).items()
        )
        return "\n".join(row for table in lost for row in table)


def tables(db: sqlite3.Connection) -> dict[bytes, bytes]:
    """The tables of a database, each with what made it: it tells the names of the columns."""
    try:
        return dict(db.execute(TABLES))
    except (sqlite3.Error, UnicodeError):
        return {}


def every_row(table: str, db: sqlite3.Connection) -> Iterator[str]:
    yield from map(repr, db.execute(f'select * from "{table}"'))


def opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    db.text_factory = bytes
    return db


def lost_of(table: str, then: sqlite3.Connection, now: sqlite3.Connection) -> Iterator[str]:
    try:
        rows = then.execute(f'select rowid, * from "{table}"').fetchall()
    except sqlite3.OperationalError:  # a table without row numbers is as good as its index
        yield from every_row(table, then)
        return
    for number, *row in rows:
        if row_at(now, table, number) != row:
            yield repr(row)


def row_at(db: sqlite3.Connection, table: str, number: int) -> list[object] | None:
    try:
        return list(db.execute(f'select * from "{table}" where rowid = ?', (number,)).fetchone() or ())
    except (sqlite3.Error, UnicodeError):  # the message of an error quotes what it is about
        return None


def untouched(before: Telling, path: str, lost: str) -> dict[str, list[Said]]:
    """What must still be told of a database: every session of which no lost row speaks, whole.

    Where a database is one session's, its rows need not name it.
    """
    inside = sessions_in(before, path)
    if lost and len(inside) == 1:
        return {}
    return {id: list(session.said) for id, session in inside.items() if id not in lost}
