"""What can go wrong, each with its code and exit status; a message names the thing and the next step."""

from collections.abc import Iterable, Sequence
from typing import Self


def closest(given: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known word that is most like a mistyped one."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    return next(iter(get_close_matches(given, list(known), 1, likeness)), None)


class AmuxError(Exception):
    code = "INTERNAL"
    exit_status = 1
    recoverable = False


class UnreadableSession(AmuxError):
    code = "PARSE_ERROR"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot read {path}: {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        # Raised in worker processes too: an exception travels as its arguments.
        return type(self), (self.path, self.reason)


class InvalidValue(AmuxError):
    """A value the user gave is not one of those accepted."""

    code = "VALIDATION_ERROR"
    exit_status = 2
    recoverable = True


class AmbiguousId(AmuxError):
    code = "AMBIGUOUS_ID"
    exit_status = 2
    recoverable = True

    def __init__(self, given: str, candidates: Sequence[str]) -> None:
        shown = ", ".join(candidates[:10]) + (f" and {len(candidates) - 10} more" if len(candidates) > 10 else "")
        super().__init__(f"{given!r} is the beginning of {len(candidates)} sessions: {shown}; give more of it")
        self.candidates = tuple(candidates)


class AgentNotFound(AmuxError):
    code = "AGENT_NOT_FOUND"
    exit_status = 3
    recoverable = True

    def __init__(self, agent: str, known: Sequence[str]) -> None:
        meant = closest(agent, known)
        hint = f"did you mean {meant!r}?" if meant else f"the agents are {', '.join(known)}"
        super().__init__(f"no agent is called {agent!r}; {hint}")


class AgentNotInstalled(AmuxError):
    code = "AGENT_NOT_INSTALLED"
    exit_status = 4
    recoverable = True


class CapabilityError(AmuxError):
    """This agent cannot resume or fork."""

    code = "CAPABILITY_ERROR"
    exit_status = 6


class SessionNotFound(AmuxError):
    code = "SESSION_NOT_FOUND"
    exit_status = 8
    recoverable = True

    @classmethod
    def named(cls, given: str, agent: str | None = None) -> Self:
        """No session of the agent, or of any, has an id that begins so."""
        listing = f"amux sessions list {agent}" if agent else "amux sessions list"
        return cls(
            f"{agent or 'no agent'} has {'no' if agent else 'a'} session that begins with {given!r}; {listing} shows them"
        )
