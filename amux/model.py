"""What a session is, whichever agent wrote it: frozen values, no I/O.

Python fields are snake_case; JSON has the same fields in camelCase. A field that is unknown is None and left out of
JSON; the names in a class's ALWAYS are never left out. Fields whose metadata says `internal` are not shown at all.
"""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Literal

Role = Literal["user", "assistant", "system", "tool"]
Kind = Literal["main", "subagent", "memory"]
Claim = Literal["own", "unknown", "copied"]
Source = Literal["native", "run-index", "estimated", "mixed"]
Json = Any


INTERNAL = {"internal": True}
FOREIGN = {"foreign": True}
"""JSON of an agent, shown as it is."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call: input is fresh (neither read from nor written to a cache), output includes thinking."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CostRecord:
    """What something cost: None is unknown, never free."""

    total_usd: Decimal | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Charge:
    """One call of a model, as one session recorded it; several sessions may hold records of the same call.

    `key` says which records are the same call (within one agent). `claim` is what this record says about whose call it
    was: `own`, `copied` (a marker says so) or `unknown`. `message` is the position, among the session's messages, of the
    answer the call gave; None when that answer is not on the active branch. `hour_write_tokens` is the part of
    `usage.cache_write_tokens` written for an hour. An agent that keeps only totals gives one `aggregate` charge for
    `calls` calls.
    """

    key: str
    usage: Usage
    at: datetime | None = None
    model: str | None = None
    provider: str | None = None
    hour_write_tokens: int = 0
    usd: Decimal | None = None
    claim: Claim = "unknown"
    calls: int = 1
    aggregate: bool = False
    message: int | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    ALWAYS: ClassVar = frozenset({"kind"})

    kind: str
    media_type: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    ALWAYS: ClassVar = frozenset({"tool_call_id", "tool_name", "input"})

    tool_call_id: str
    tool_name: str
    input: Json = field(metadata=FOREIGN)
    output: str | None = None
    duration_ms: int | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    tool_call_id: str | None = None
    tool_name: str | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation. `inherited` marks what a fork copied; `event` says what a system message tells of."""

    ALWAYS: ClassVar = frozenset({"role", "content"})

    role: Role
    content: str = ""
    timestamp: datetime | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_result: ToolResult | None = None
    token_usage: Usage | None = None
    cost: CostRecord | None = None
    thinking: str | None = None
    model: str | None = None
    is_error: bool = False
    event: str | None = None
    attachments: tuple[Attachment, ...] = ()
    inherited: bool = False
    offset: int | None = field(default=None, metadata=INTERNAL)
    """Where in the ref's file the message's record begins, for readers of lines: a snippet need not read the whole file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """What a list shows of a session."""

    ALWAYS: ClassVar = frozenset(
        {"agent", "session_id", "title", "created_at", "updated_at", "turn_count", "message_count", "tags", "kind"}
    )
    COMPUTED: ClassVar = ("unified_id",)

    agent: str
    session_id: str
    title: str
    created_at: datetime
    updated_at: datetime
    turn_count: int
    message_count: int
    tags: tuple[str, ...] = ()
    kind: Kind = "main"
    model: str | None = None
    models: tuple[str, ...] = ()
    cost: CostRecord | None = None
    cwd: str | None = None
    git_branch: str | None = None
    git_commit: str | None = None
    forked_from: str | None = None
    parent_id: str | None = None
    archived: bool = False
    agent_version: str | None = None
    mode: str | None = None
    channel: str | None = None
    path: str | None = None

    @property
    def unified_id(self) -> str:
        return f"{self.agent}:{self.session_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(SessionSummary):
    """A whole session.

    The internal fields are what a reader tells the catalog: the charges it found; `began`, the time of the file's first
    record of any kind (who of two holders of one call came first); `based_on`, the keys of other refs whose content this
    session shows (a change there makes this one stale); `usage_recorded`, False where the store cannot tell what was used.
    """

    ALWAYS: ClassVar = SessionSummary.ALWAYS | {"messages"}

    messages: tuple[Message, ...] = ()
    raw: Json = field(default=None, metadata=FOREIGN)
    charges: tuple[Charge, ...] = field(default=(), metadata=INTERNAL)
    began: datetime | None = field(default=None, metadata=INTERNAL)
    based_on: tuple[str, ...] = field(default=(), metadata=INTERNAL)
    usage_recorded: bool = field(default=True, metadata=INTERNAL)
