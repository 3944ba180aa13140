"""What can go wrong, each with its code and exit status; a message names the thing and the next step."""

from collections.abc import Sequence


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
        super().__init__(f"no agent is called {agent!r}; the agents are {', '.join(known)}")


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

    def __init__(self, agent: str, given: str) -> None:
        super().__init__(f"{agent} has no session that begins with {given!r}; amux sessions list {agent} shows them")
