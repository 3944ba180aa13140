"""events.jsonl as a list of events: damaged lines mended where they can be, each event with whose it is.

A crash leaves NUL bytes or half a line, to which the next process appends; some versions break an event over several
lines by writing the line feeds of a tool's output raw. `parentId` is no tree: it names the line before, or an event
that was never written. A fork's file is its own session.start, the parent's events copied as they are, and a marker
that names both.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from amux.errors import UnreadableSession
from amux.readers._json import Record, decoded, dict_at, list_at, regular, text_at, time_at

HEAD = b'{"type":"'
"""How the program begins every line."""
MAX_JOINED = 8 * 2**20
MAX_TRIES = 20
"""How much of a file is put together, and how often it is tried, before a broken event is given up."""
CLOSES_STRING = re.compile(rb'(?<!\\)(?:\\\\)*"')
UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
IDS = re.compile(UUID)
MAX_FORKS = 100
PARENT = re.compile(rf"\(({UUID})\) as ")


# Lines


def records(path: str) -> Iterator[Record]:
    """The events of a file as they were written, in order. Raises UnreadableSession."""
    broken = Broken()
    try:
        with regular(path) as lines:
            for line in lines:
                if record := whole(line) or broken.ended_by(line) or appended(line):
                    broken = Broken()
                    yield record
                else:
                    broken = broken.followed_by(line)
    except OSError as error:
        raise UnreadableSession(path, error.strerror or str(error)) from error


def whole(line: bytes) -> Record | None:
    record = decoded(line) if len(line) > 1 else None
    return record if isinstance(record, dict) and text_at(record, "type") else None


@dataclass(slots=True)
class Broken:
    """The lines of an event that was broken by raw line feeds inside one of its strings."""

    pieces: bytearray = field(default_factory=bytearray)
    tries: int = 0

    def ended_by(self, line: bytes) -> Record | None:
        # Inside a string every quote is escaped: the first that is not stands in the line where the string ends.
        if not self.pieces or not line.rstrip(b"\0 \r\n").endswith(b"}") or not CLOSES_STRING.search(line):
            return None
        self.tries += 1
        return whole(bytes(self.pieces) + line)

    def followed_by(self, line: bytes) -> "Broken":
        if self.pieces and self.tries < MAX_TRIES and len(self.pieces) < MAX_JOINED:
            self.pieces += line
            return self
        return Broken(bytearray(line)) if line.lstrip(b"\0 ").startswith(b"{") else Broken()


def appended(line: bytes) -> Record | None:
    """The event that a process appended to the half line a killed one had left."""
    place = 0
    for _ in range(MAX_TRIES):
        place = line.find(HEAD, place + 1)
        if place < 0:
            return None
        if record := whole(line[place:]):
            return record
    return None


# Events


@dataclass(frozen=True, slots=True)
class Event:
    """`agent` is the sub-agent it belongs to; None is the session itself."""

    id: str
    kind: str
    data: Record
    time: datetime | None
    agent: str | None


@dataclass(frozen=True, slots=True)
class Fork:
    """A marker in a fork's file: the events before it are the parent's."""

    position: int
    parent: str
    time: datetime | None


@dataclass(slots=True)
class Log:
    session_id: str
    events: list[Event] = field(default_factory=list)
    callers: dict[str, str] = field(default_factory=dict)
    """The sub-agent that each call of a tool started."""
    forks: list[Fork] = field(default_factory=list)
    """How this session came to be, the first fork first, its own last; empty when it is no fork."""

    @property
    def inherited(self) -> int:
        """How many of the events are the parent's."""
        return self.forks[-1].position if self.forks else 0

    def holders(self, position: int) -> list[str]:
        """The other sessions that had the event at this position: who wrote it first."""
        return [fork.parent for fork in self.forks if fork.position > position]


def log(path: str, session_id: str) -> Log:
    found = Log(session_id)
    for number, record in enumerate(records(path)):
        if record.get("ephemeral") is not True:
            found.events.append(event(found, number, record))
    found.forks = forks(found)
    return found


def event(found: Log, number: int, record: Record) -> Event:
    id = text_at(record, "id") or f"{found.session_id} line {number}"
    kind = text_at(record, "type") or ""
    data = dict_at(record, "data")
    return Event(id, kind, data, time_at(record, "timestamp"), agent_of(found, id, record))


def agent_of(found: Log, id: str, record: Record) -> str | None:
    """The sub-agent an event belongs to. Versions about 1.0.24 name only the call that started it: an id is made."""
    data = dict_at(record, "data")
    named = text_at(record, "agentId")
    if named in (found.session_id, "main"):
        return None
    if named:
        if record.get("type") == "subagent.started" and (call := text_at(data, "toolCallId")):
            found.callers[call] = named
        return named
    if call := text_at(data, "parentToolCallId"):
        return found.callers.setdefault(call, f"{found.session_id}-{id[:8]}")
    return None


def forks(found: Log) -> list[Fork]:
    """The markers up to the one that names this session as the child; a fork of a fork holds its parent's too."""
    markers: list[Fork] = []
    own = 0
    for position, event in enumerate(found.events):
        message = text_at(event.data, "message") or ""
        ids = IDS.findall(message) if event.kind == "session.info" and event.data.get("infoType") == "fork" else []
        if not ids or (len(ids) == 1 and (" into " in message or ids[0] == found.session_id)):
            continue  # the note that a parent keeps of its fork
        parent = PARENT.search(message)
        markers.append(Fork(position, parent[1] if parent else ids[0], event.time))
        if len(ids) == 1 or ids[-1] == found.session_id:
            own = len(markers)
    return markers[:own][-MAX_FORKS:]


def rewound(found: Log) -> set[int]:
    """The positions of events that a rewind took back; most versions take them out of the file."""
    gone: set[int] = set()
    left: list[int] = []
    places: dict[str, int] = {}
    for position, event in enumerate(found.events):
        if event.kind == "session.snapshot_rewind":
            start = places.get(text_at(event.data, "upToEventId") or "", position)
            while left and left[-1] >= start:
                gone.add(left.pop())
            gone.update(places[id] for id in list_at(event.data, "eventIds") if isinstance(id, str) and id in places)
        places[event.id] = position
        left.append(position)
    return gone
