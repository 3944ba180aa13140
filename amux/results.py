"""What operations answer with, as the model says what a session is: search hits, cost reports, differences."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import ClassVar, Literal

from amux.model import Message, SessionSummary, Source


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSource:
    source: str | None = None
    version: str | None = None
    date: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBreakdown:
    ALWAYS: ClassVar = frozenset({"key", "keys", "session_count", "call_count"})

    key: str
    keys: dict[str, str]
    total_usd: Decimal | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    source: Source | None = None
    approximate: bool = False
    session_count: int = 0
    call_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSummary:
    """The sums of a cost report. `recorded_usd` and `estimated_usd` are the parts of `total_usd`."""

    ALWAYS: ClassVar = frozenset({"session_count", "run_count", "call_count", "unpriced"})

    total_usd: Decimal | None = None
    recorded_usd: Decimal | None = None
    estimated_usd: Decimal | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    source: Source | None = None
    approximate: bool = False
    session_count: int = 0
    run_count: int = 0
    call_count: int = 0
    unpriced: dict[str, int] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    """Models that are known to cost nothing."""
    prices: PriceSource | None = None
    breakdowns: dict[str, CostBreakdown] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatus:
    """What is known of an agent on this host. `unreadable` counts sessions that could not be read."""

    ALWAYS: ClassVar = frozenset(
        {"agent", "title", "session_count", "unreadable", "stores", "can_resume", "can_fork", "installed"}
    )

    agent: str
    title: str
    session_count: int
    unreadable: int
    stores: tuple[str, ...]
    found: tuple[str, ...] = ()
    newest: datetime | None = None
    program: str | None = None
    program_version: str | None = None
    installed: bool = False
    install: str | None = None
    can_resume: bool = False
    can_fork: bool = False


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
