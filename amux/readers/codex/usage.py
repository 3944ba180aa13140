"""What the calls of the model used.

Since 0.155 each call has a `token_usage_record` with its response id. Before, there are only `token_count` events with a
running total: repeated at the start of later calls, starting again at zero when 0.42 or 0.58 resume, set to the size of
the context window when it overflows, and after a compaction with a last usage that was never used. A call is a change of
the total.

A fork that copies its parent repeats its events, with times rewritten to the moment of the fork. What makes two of them
one call is the turn's id and the total; before 0.117 turns have none, and it is all that was said up to it, in threads
with the same first ancestor.
"""

from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from amux.model import Claim, Json, Usage
from amux.readers._json import Record, at, int_at, text_at, when
from amux.readers.codex import texts
from amux.readers.codex.conversation import Answer, Conversation
from amux.readers.codex.rollout import ITEM, Line

STARTS = frozenset({"task_started", "turn_started"})
SAID = ("type", "role", "name", "call_id", "arguments", "input", "output", "encrypted_content")
PARTS = ("content", "summary", "output")
SPOKEN = ("message", "reasoning", "_call", "_output")
"""Items that every version copies into a fork."""


class Counts(NamedTuple):
    """Tokens as codex counts them: input includes both kinds of cached input, output includes reasoning."""

    input: int | None
    cached: int | None
    written: int | None
    output: int | None
    reasoning: int | None

    def since(self, before: "Counts") -> "Counts | None":
        """What was added; None when the counter was set back in between."""
        parts = [None if now is None else now - (then or 0) for now, then in zip(self, before, strict=True)]
        return None if any(part is not None and part < 0 for part in parts) else Counts(*parts)

    @property
    def mark(self) -> str:
        """What tells one total from another in any version: those before 0.145 do not count what is written."""
        return f"{self.input}:{self.cached}:{self.output}:{self.reasoning}"

    def usage(self) -> Usage:
        fresh = None if self.input is None else max(self.input - (self.cached or 0) - (self.written or 0), 0)
        return Usage(fresh, self.output, self.reasoning, self.cached, self.written)


NOTHING = Counts(0, 0, 0, 0, 0)


def counts(found: Json) -> Counts | None:
    if not isinstance(found, dict):
        return None
    return Counts(
        int_at(found, "input_tokens"),
        int_at(found, "cached_input_tokens"),
        int_at(found, "cache_write_input_tokens"),
        int_at(found, "output_tokens"),
        int_at(found, "reasoning_output_tokens"),
    )


def spent(total: Counts, before: Counts | None, last: Counts | None) -> Counts | None:
    """What the call used that made a running total of `before` (None: not known) into this one; None: there was none."""
    real = last if last and any(last) else None
    if before is None:
        return real if last else total
    if real == total:
        return real  # the first one, or the first after a restart
    added = total.since(before)
    if added is None:
        return real
    return added if any(added) else None


@dataclass(slots=True)
class Counted:
    """One call of the model. `answer` is what it said, None as long as that has not been met."""

    key: str
    counts: Counts
    at: datetime | None
    model: str | None
    claim: Claim
    answer: Answer | None = None


class Meter:
    """Counts the calls of a thread, line by line, along with its conversation.

    `before` is the total to start from, None where the beginning of the history is missing. `root` is the thread's first
    ancestor. `claim` is whose the lines are that follow; `counting` is off while they are another thread's.
    """

    def __init__(self, thread: str, root: str, before: Counts | None) -> None:
        self.thread = thread
        self.before = before
        self.claim: Claim = "own"
        self.counting = True
        self.calls: list[Counted] = []
        self.waiting: Counted | None = None
        self.recorded = False
        self.turn: str | None = None
        self.said = blake2b(root.encode("utf-8", "replace"), digest_size=16)

    def add(self, line: Line, conversation: Conversation) -> None:
        if line.kind == ITEM:
            self.listen(line.payload)
        elif line.kind == "turn_context" or line.event in STARTS:
            self.turn = text_at(line.payload, "turn_id")
            self.waiting = None
        elif line.kind == "token_usage_record":
            self.record(line, conversation.model)
        elif line.event == "token_count" and not self.recorded:
            self.count(line, conversation.model)
        self.settle(conversation)

    def listen(self, payload: Record) -> None:
        """Take in what was said; a turn with an id needs none of it."""
        if self.turn is None and str(payload.get("type")).endswith(SPOKEN):
            said = [text_at(payload, name) or "" for name in SAID]
            said += [texts.joined(payload.get(name)) for name in PARTS]
            self.said.update("\0".join(said).encode("utf-8", "replace"))

    def record(self, line: Line, model: str | None) -> None:
        used = counts(line.payload.get("usage"))
        if used:
            self.recorded = True
            key = text_at(line.payload, "response_id") or f"{self.thread}:{line.ordinal}:{used}"
            maker = text_at(line.payload, "thread_id") or self.thread
            self.note(key, used, line, model, self.claim if maker == self.thread else "copied")

    def count(self, line: Line, model: str | None) -> None:
        total = counts(at(line.payload, "info", "total_token_usage"))
        if total is None or total == self.before:
            return
        last = counts(at(line.payload, "info", "last_token_usage"))
        # A sub-agent may be given its parent's last turns only: the first total there may repeat one of a turn left out.
        repeated = self.before is None and self.claim == "copied" and last != total
        used = None if repeated else spent(total, self.before, last)
        self.before = total
        if used:
            self.said.update(total.mark.encode())
            self.note(self.key(total), used, line, model, self.claim)

    def key(self, total: Counts) -> str:
        return f"{self.turn}:{total.mark}" if self.turn else self.said.hexdigest()

    def note(self, key: str, used: Counts, line: Line, model: str | None, claim: Claim) -> None:
        self.waiting = Counted(key, used, when(line.time), model, claim)
        if self.counting:
            self.calls.append(self.waiting)

    def settle(self, conversation: Conversation) -> None:
        """Bring a call and its answer together: up to 0.58 the answer's items come after its usage, later before it."""
        if self.waiting and conversation.unpaid:
            self.waiting.answer, conversation.unpaid = conversation.unpaid, None
            if self.turn is None and not self.recorded:
                self.waiting.key = self.said.hexdigest()  # with the answer: the same prompt may be typed in two forks
            self.waiting = None
