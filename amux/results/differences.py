"""What a comparison of two sessions answers with."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from amux.model import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSide:
    ALWAYS: ClassVar = frozenset({"agent", "session_id", "unified_id"})

    agent: str
    session_id: str
    unified_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOperation:
    ALWAYS: ClassVar = frozenset({"type"})

    type: Literal["unchanged", "remove", "add", "modify"]
    index_a: int | None = None
    index_b: int | None = None
    message_a: Message | None = None
    message_b: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffStats:
    ALWAYS: ClassVar = frozenset({"removals", "additions", "modifications", "unchanged"})

    removals: int = 0
    additions: int = 0
    modifications: int = 0
    unchanged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDiff:
    ALWAYS: ClassVar = frozenset({"a", "b", "operations", "stats"})

    a: DiffSide
    b: DiffSide
    operations: tuple[DiffOperation, ...]
    stats: DiffStats
