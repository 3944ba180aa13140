"""What every era of OpenCode's stores is brought into: a session's own record, its messages and their parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from amux.readers._json import Record, text_at, time_at


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored message and its parts in order; `reasoning_apart` when its output is known not to include reasoning."""

    id: str
    info: Record
    parts: Sequence[Record] = ()
    reasoning_apart: bool = False

    @property
    def role(self) -> str | None:
        return text_at(self.info, "role")

    @property
    def created(self) -> datetime | None:
        return time_at(self.info, "time", "created")


@dataclass(frozen=True, slots=True)
class Stored:
    """A session as a store has it, whichever era: its own record in the shape of the JSON files, and its messages."""

    id: str
    path: str
    info: Record
    entries: Sequence[Entry]

    @property
    def created(self) -> datetime | None:
        return time_at(self.info, "time", "created")

    def copied(self, entry: Entry) -> bool:
        """Whether a fork took the message from its parent: copies keep their time, which is before the fork's own."""
        return bool(self.created and entry.created and entry.created < self.created)
