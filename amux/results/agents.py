"""What is known of an agent on a host."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar


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
