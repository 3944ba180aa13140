"""The history of a thread: its rollouts and those it goes on from.

Since 0.149 a fork or revert refers to its history: `history_base` names a rollout and how far of it counts, through that
rollout's own base. Before, a fork copied it: its file begins with a session_meta per generation, its own first, then all
of the parent's records. A sub-agent given its parent's context is a fork as well.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from amux.errors import UnreadableSession
from amux.model import Claim
from amux.readers._json import Record, dict_at, int_at, text_at, time_at, when
from amux.readers.codex import rollout
from amux.readers.codex.conversation import Conversation
from amux.readers.codex.rollout import META, Line
from amux.readers.codex.store import Rollout
from amux.readers.codex.usage import NOTHING, STARTS, Counted, Meter

Find = Callable[[str], Rollout | None]


@dataclass(frozen=True, slots=True)
class Part:
    """A rollout's lines, or as many of them as belong to a history; `thread` is the id of the thread it is of."""

    rollout: Rollout
    lines: Sequence[Line]
    metas: Sequence[Record]
    thread: str

    @classmethod
    def read(cls, found: Rollout) -> "Part":
        """Raises UnreadableSession."""
        lines = rollout.lines(found.path)
        metas = list(leading(lines))
        # The header names the thread. Where its line is torn the next one is the parent's: then the file's name does.
        torn = found.named and (not metas or lines[0].offset > 0)
        return cls(found, lines, metas, found.thread if torn else text_at(metas, 0, "id") or found.thread)

    @property
    def header(self) -> Record:
        return self.metas[0] if self.metas else {}

    @property
    def base(self) -> Record:
        """What it goes on from. Where the header of a thread's later file is torn: the first file, up to its own beginning."""
        if self.metas or self.rollout.id == self.rollout.thread:
            return dict_at(self.header, "history_base")
        after = [line.ordinal for line in self.lines if line.ordinal is not None and line.kind != META]
        return {"thread_id": self.rollout.thread, "end_ordinal_exclusive": min(after) - 1 if after else None}

    @property
    def ancestors(self) -> list[str]:
        """The threads a copying fork descends from, the nearest first."""
        ids = [id for meta in self.metas if (id := text_at(meta, "id")) and id != self.thread]
        named = text_at(self.header, "forked_from_id")
        return ids if ids or not named else [named]

    @property
    def created(self) -> datetime | None:
        return time_at(self.header, "timestamp") or next((when(line.time) for line in self.lines if line.time), None)

    def up_to(self, ordinal: float, offset: int | None) -> "Part":
        """The part of it that a history takes in; a line without an ordinal goes by its place in the file."""

        def within(line: Line) -> bool:
            if line.ordinal is not None:
                return line.ordinal < ordinal
            return offset is None or line.offset < offset

        return replace(self, lines=[line for line in self.lines if within(line)])

    def copied(self) -> int | None:
        """How many of the first lines are an ancestor's; None when the lines do not tell: before 0.117 turns have no id.

        Ids of threads and turns are of version 7: they sort by the time they were made.
        """
        if not self.ancestors or self.base:
            return 0
        turns = [(place, id) for place, line in enumerate(self.lines) if (id := turn_begun(line))]
        if not turns or not is_timed(self.thread):
            return None
        return next((place for place, id in turns if id > self.thread), len(self.lines))


def leading(lines: Sequence[Line]) -> Iterator[Record]:
    for line in lines:
        if line.kind != META:
            return
        yield line.payload


def turn_begun(line: Line) -> str | None:
    id = text_at(line.payload, "turn_id") if line.kind == "turn_context" or line.event in STARTS else None
    return id.lower() if id and is_timed(id) else None


def is_timed(id: str) -> bool:
    return len(id) == 36 and id[14] == "7"


# The history of a thread


@dataclass(frozen=True, slots=True)
class Told:
    """What was said and used along one history; `missing` is the base that is not there."""

    parts: Sequence[Part]
    conversation: Conversation
    calls: Sequence[Counted]
    missing: str | None


class Thread:
    """The rollouts of one thread; `find` gives those of others by their id, `path` is the file of its ref."""

    def __init__(self, own: Sequence[Part], path: str, find: Find) -> None:
        self.own = {part.rollout.id: part for part in own}
        self.path = path
        self.find = find

    def history(self, end: Part) -> tuple[list[Part], str | None]:
        """The parts that lead up to one, the oldest first, and the base that could not be found."""
        parts, seen = [end], {end.rollout.id}
        ordinal, base = float("inf"), end.base
        while id := text_at(base, "thread_id"):
            before = self.part(id) if id not in seen else None
            if before is None:
                return parts[::-1], id
            seen.add(id)
            cut = int_at(base, "end_ordinal_exclusive")
            ordinal = min(ordinal, float("inf") if cut is None else cut)
            parts.append(before.up_to(ordinal, int_at(base, "end_byte_offset")))
            base = before.base
        return parts[::-1], None

    def part(self, id: str) -> Part | None:
        if id in self.own:
            return self.own[id]
        found = self.find(id)
        try:
            return Part.read(found) if found else None
        except UnreadableSession:
            return None

    def told(self, end: Part) -> Told:
        parts, missing = self.history(end)
        conversation = Conversation([line for part in parts for line in part.lines])
        beginning = parts[0]
        ancestors = beginning.ancestors
        whole = not ancestors and missing is None
        meter = Meter(end.thread, ancestors[-1] if ancestors else beginning.thread, NOTHING if whole else None)
        if missing:
            conversation.note_missing(missing)
        for part in parts:
            conversation.here = part is end and part.rollout.path == self.path and self.path.endswith(".jsonl")
            follow(part, conversation, meter, foreign=part.rollout.thread != end.rollout.thread)
        return Told(parts, conversation, meter.calls, missing)


def follow(part: Part, conversation: Conversation, meter: Meter, *, foreign: bool) -> None:
    copied = part.copied()
    meter.counting = not foreign
    for place, line in enumerate(part.lines):
        meter.claim = claim(place, copied)
        conversation.copied = meter.claim == "copied"
        conversation.inherited = foreign or conversation.copied
        conversation.add(line)
        meter.add(line, conversation)
    conversation.end_turn()


def claim(place: int, copied: int | None) -> Claim:
    if copied is None:
        return "unknown"
    return "copied" if place < copied else "own"
