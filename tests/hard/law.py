"""What amux tells of a home, and the law it keeps whatever happened to a file: what stood before the damage is told."""

import json
import os
import re
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from amux import readers
from amux.errors import AmuxError
from amux.manager import SessionManager
from amux.model import Session
from amux.output import grids, html, jsonout, markdown
from amux.query import Query
from amux.readers._base import Host

SECONDS = 10
SOAK = bool(os.environ.get("AMUX_SOAK"))
MAGIC = b"SQLite format 3\0"

Said = tuple[str, str]
"""Who said something, and what."""


class Hang(BaseException):
    """Not an Exception: what takes too long must not be caught as if a file were to blame."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang(f"not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def agents() -> tuple[str, ...]:
    """The agents whose reader is there."""
    return tuple(name for name in readers.names() if hasattr(readers, "reader_class") and has_reader(name))


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
    """List, read, search, cost and, with `shown`, print every session in every format."""
    try:
        with at_most(SECONDS):
            manager = SessionManager(host, cache=False)
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
    except Hang as hang:
        return Telling({}, wrong=[str(hang)])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the law forbids
        return Telling({}, wrong=[f"{type(error).__name__}: {error} {place_of(error)}"])


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


def whole_lines(content: bytes, start: int) -> int:
    """Where the line begins in which `start` lies."""
    return content.rfind(b"\n", 0, start) + 1


def required(before: Telling, path: str, content: bytes, start: int, prefix: Telling | None) -> dict[str, list[Said]]:
    """For each session in a file, what was said in it before the damage.

    Of lines the reader itself is the witness, given only those before the damage (`prefix`); of a file that is one value,
    the file: a text that does not stand in it from the damage on stood before it, whatever a reader makes of that.
    """
    found: dict[str, list[Said]] = {}
    for id, session in before.sessions.items():
        if session.path != path:
            continue
        stood = texts_before(session, content, start if prefix is None else whole_lines(content, start))
        if prefix is None:
            found[id] = stood[:-1]
        elif id in prefix.sessions:
            lost = missing(session.said, prefix.sessions[id].said)
            found[id] = without(session.said, lost)
        else:
            found[id] = stood if len(stood) > 1 else []
    return {id: stood for id, stood in found.items() if stood}


def texts_before(session: Told, content: bytes, end: int) -> list[Said]:
    return [one for one in session.said if session.said.count(one) == 1 and ends_before(content, one[1], end)]


def without(said: Sequence[Said], lost: Sequence[Said]) -> list[Said]:
    gone = list(lost)
    kept = []
    for one in reversed(said):
        if one in gone:
            gone.remove(one)
        else:
            kept.append(one)
    return kept[::-1]


def ends_before(content: bytes, text: str, end: int) -> bool:
    places = [content.rfind(form) + len(form) for form in forms(text) if form in content]
    return bool(places) and max(places) <= end


def forms(text: str) -> Iterator[bytes]:
    """A text as it stands in JSON: as it is, or in escapes."""
    for ascii_only in (True, False):
        written = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        if len(written) > 10:  # a shorter one may stand anywhere
            yield written


def missing(wanted: Sequence[Said], found: Sequence[Said]) -> list[Said]:
    """What is wanted and not among what was found, in order."""
    remaining = list(found)
    lost = []
    for one in wanted:
        if one in remaining:
            del remaining[: remaining.index(one) + 1]
        else:
            lost.append(one)
    return lost


def broken_law(before: Telling, after: Telling, path: str, stood: dict[str, list[Said]]) -> list[str]:
    """How amux broke the law in what it tells after a file was damaged."""
    found = list(after.wrong)
    if found:
        return found
    for id, session in before.sessions.items():
        if session.path != path and id not in after.sessions:
            found.append(f"{id} is gone, which is not in the file")
    for id, wanted in stood.items():
        if id not in after.sessions:
            found.append(f"{id} is gone, of which {len(wanted)} messages stood before the damage; {after.skipped}")
        elif lost := missing(wanted, after.sessions[id].said):
            found.append(f"{id} lost {len(lost)} of {len(wanted)} messages, first {lost[0]!r:.80}")
    return found


# Databases


def lost_rows(clean: bytes, damaged: Path, whole: Path) -> str:
    """The text of every row of a database that is not in its damaged copy as it was."""
    whole.write_bytes(clean)
    now, then = sqlite3.connect(f"file:{damaged}?immutable=1", uri=True), sqlite3.connect(whole)
    for db in (now, then):
        db.text_factory = bytes
    try:
        tables = then.execute("select name from sqlite_master where type = 'table' and sql not like '%virtual%'").fetchall()
        texts = [row_text for (name,) in tables for row_text in lost_in(name.decode(), now, then)]
    finally:
        now.close()
        then.close()
    return "\n".join(texts)


def lost_in(table: str, now: sqlite3.Connection, then: sqlite3.Connection) -> Iterator[str]:
    key = "rowid" if not without_rowid(then, table) else re.sub(r"\W", "", "rowid")
    for rowid, *row in then.execute(f'select {key}, * from "{table}"').fetchall():
        try:
            same = now.execute(f'select * from "{table}" where {key} = ?', (rowid,)).fetchone() == tuple(row)
        except (sqlite3.Error, UnicodeError):
            same = False
        if not same:
            yield repr(row)


def without_rowid(db: sqlite3.Connection, table: str) -> bool:
    try:
        db.execute(f'select rowid from "{table}" limit 0')
    except sqlite3.Error:
        return True
    return False
