"""What the databases and the directories of files have in common."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from amux.model import Json, Session
from amux.readers._base import SessionRef

Kin = Callable[[str, int | None], str | None]
"""The id of the session that a key named at a time (in milliseconds), whichever agent of the installation has it."""


class Store(Protocol):
    agent: str
    path: str

    def holds(self, path: str) -> bool:
        """Whether a session of this path is one of the store's."""
        ...

    def state(self) -> str:
        """What changes when anything in the store does."""
        ...

    def refs(self, kin: Kin) -> Iterator[SessionRef]:
        """Raises UnreadableSession, after what stands before the damage."""
        ...

    def read(self, agent: str, ref: SessionRef, kin: Kin) -> Sequence[Session]:
        """Raises UnreadableSession."""
        ...

    def raw(self, ref: SessionRef) -> Json:
        """Raises UnreadableSession."""
        ...

    def session_of(self, key: str, when: int | None) -> str | None:
        """The session that a key named at a time, as far as this store knows. Raises UnreadableSession."""
        ...

    def key_of(self, session_id: str) -> str | None:
        """The key by which a session can be reached now: older sessions of a key cannot. Raises UnreadableSession."""
        ...
