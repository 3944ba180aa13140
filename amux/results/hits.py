"""What a search answers with."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from amux.model import SessionSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Where in a snippet the words stand: [start, end) offsets into its text."""

    ALWAYS: ClassVar = frozenset({"start", "end"})

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One line around the best match, where it came from and where the words stand in it."""

    ALWAYS: ClassVar = frozenset({"text", "matches"})

    text: str
    role: str | None = None
    timestamp: datetime | None = None
    turn: int | None = None
    matches: tuple[Match, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit(SessionSummary):
    """A session that search found."""

    ALWAYS: ClassVar = SessionSummary.ALWAYS | {"relevance_score", "match_count"}

    relevance_score: float
    match_count: int
    snippet: Snippet | None = None
