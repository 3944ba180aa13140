"""What the calls of a model used, each counted once, whichever version recorded them.

Every process of the program is looked at by itself, since a session may be resumed by a newer version. In the order of
trust: `session.usage_record`, one per call (1.0.102); the rows of session-store.db (since 1.0.71); the totals in
`session.shutdown`; the output tokens that answers carry (1.0.20 to 1.0.79). Input tokens include what was read from
and written to a cache. Money is nowhere: `cost` counts premium requests.

What a shutdown's totals add to those before is charged under the id of its event, which copies keep. Calls that
compacted the conversation are in no total, nor in usage records: `session.compaction_complete` has them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from amux.model import Charge, Claim, Usage
from amux.readers._json import Record, dict_at, int_at, text_at, when
from amux.readers.copilot import totals
from amux.readers.copilot.events import Event, Log
from amux.readers.copilot.totals import Totals

WORK = frozenset({"user.message", "assistant.message", "session.compaction_complete"})
"""Events without which a process called no model."""
Rows = Callable[[str], Iterable[Record]]
"""The rows of session-store.db for a session."""


@dataclass(frozen=True, slots=True)
class Spent:
    """A charge, the sub-agent that made the call, and how its answer is found: by an id, or only by the time."""

    charge: Charge
    agent: str | None
    answer: str | None = None
    timed: bool = False


@dataclass(slots=True)
class Process:
    """What one process wrote: up to its shutdown, to the resume after a kill, or to where a fork was taken.

    `owner` is the session it worked on, which for what a fork copied is another; `copies` are all others that had it.
    """

    owner: str
    claim: Claim
    copies: Sequence[str]
    until: datetime | None
    began: datetime | None = None
    records: list[Event] = field(default_factory=list)
    answers: dict[str, Event] = field(default_factory=dict)
    compactions: list[Spent] = field(default_factory=list)
    summarising: list[Event] = field(default_factory=list)
    rows: list[Record] = field(default_factory=list)
    busy: bool = False
    shutdown: Event | None = None
    spent: Totals = field(default_factory=dict)
    covered: bool = False
    """Whether a later process has what this one used in its totals: it was killed before it wrote its own."""

    def note(self, event: Event) -> None:
        self.began = self.began or event.time
        self.busy = self.busy or event.kind in WORK
        match event.kind:
            case "session.usage_record" if dict_at(event.data, "usage"):
                self.records.append(event)
            case "assistant.message":
                self.note_answer(event)
            case "session.compaction_start":
                self.summarising = []
            case "model.model_call_success":
                self.summarising.append(event)
            case "session.compaction_complete" if isinstance(event.data.get("compactionTokensUsed"), dict):
                self.compactions.append(compaction(event, self.summarising, self.claim))
                self.summarising = []
            case "session.shutdown" if event.agent is None:
                self.shutdown = event

    def note_answer(self, event: Event) -> None:
        """The parts of one response repeat its output tokens, or only one of them has them."""
        key = text_at(event.data, "apiCallId") or event.id
        if key not in self.answers or output_of(event) > output_of(self.answers[key]):
            self.answers[key] = event

    @property
    def output(self) -> int | None:
        """The output tokens of its answers; None in a version that does not record them."""
        if self.answers and not any("outputTokens" in event.data for event in self.answers.values()):
            return None
        return sum(output_of(event) for event in self.answers.values())


def spending(log: Log, rows: Rows, kept: Callable[[str], bool]) -> list[Spent]:
    """Every call a session's file holds, those a fork copied included. `kept` says which sessions the store has."""
    found = processes(log)
    add_totals(found)
    add_rows(found, rows)
    return [spent for process in found for spent in charged(process, log.session_id, kept)]


def processes(log: Log) -> list[Process]:
    found = [process_at(log, 0)]
    markers = {fork.position for fork in log.forks}
    for position, event in enumerate(log.events):
        if event.kind == "session.resume" or position in markers or found[-1].shutdown:
            found.append(process_at(log, position))
        found[-1].note(event)
    return found


def process_at(log: Log, position: int) -> Process:
    before = [fork for fork in log.forks if fork.position > position]
    if before:
        return Process(before[0].parent, "copied", [fork.parent for fork in before], before[0].time)
    return Process(log.session_id, "own" if log.forks else "unknown", (), None)


def charged(process: Process, session_id: str, kept: Callable[[str], bool]) -> Iterator[Spent]:
    if process.records:
        yield from (recorded(event, process.claim, session_id) for event in process.records)
    elif process.rows:
        yield from (stored(row, process) for row in rows_to_count(process))
    elif process.shutdown:
        yield from totalled(process)
    elif any(map(kept, process.copies)):
        # A fork taken while this process ran: its session has it whole, with the totals at its end.
        return
    elif not process.covered:
        yield from (answered(event, process.claim) for event in process.answers.values() if output_of(event))
    yield from process.compactions


# One record per call


def recorded(event: Event, claim: Claim, session_id: str) -> Spent:
    usage = dict_at(event.data, "usage")
    call = text_at(usage, "apiCallId")
    source = text_at(usage, "accounting", "sourceSessionId")
    if claim == "unknown" and source and not event.agent:
        claim = "own" if source == session_id else "copied"
    provider = text_at(usage, "modelProvider")
    charge = Charge(
        key=record_key(usage) or event.id,
        usage=usage_of(usage),
        at=event.time,
        model=text_at(usage, "model"),
        provider=provider if provider != "other" else None,
        claim=claim,
    )
    return Spent(charge, event.agent, call, timed=not call)


def record_key(usage: Record) -> str | None:
    """Copies keep all of it; servers that number their answers in each conversation differ in source or sequence."""
    call = text_at(usage, "accounting", "usageId") or text_at(usage, "apiCallId")
    source, sequence = text_at(usage, "accounting", "sourceSessionId"), int_at(usage, "accounting", "sequence")
    return f"{call}:{source}:{sequence}" if call else None


def usage_of(usage: Record) -> Usage:
    read, written = int_at(usage, "cacheReadTokens"), int_at(usage, "cacheWriteTokens")
    return Usage(
        fresh(int_at(usage, "inputTokens"), read, written),
        int_at(usage, "outputTokens"),
        int_at(usage, "reasoningTokens"),
        read,
        written,
    )


def fresh(input: int | None, read: int | None, written: int | None) -> int | None:
    return None if input is None else max(input - (read or 0) - (written or 0), 0)


def compaction(event: Event, calls: Sequence[Event], claim: Claim) -> Spent:
    """The calls that made a summary. Only the raw record of a call says how much of the output was thinking."""
    used = dict_at(event.data, "compactionTokensUsed")
    # The names of 1.0.24 are shorter.
    usage = usage_of(
        {
            "inputTokens": first(used, "inputTokens", "input"),
            "outputTokens": first(used, "outputTokens", "output"),
            "cacheReadTokens": first(used, "cacheReadTokens", "cachedInput"),
            "cacheWriteTokens": used.get("cacheWriteTokens"),
        }
    )
    answers = [dict_at(call.data, "responseUsage") for call in calls]
    if answers and sum(int_at(one, "completion_tokens") or 0 for one in answers) == usage.output_tokens:
        thoughts = [int_at(one, "completion_tokens_details", "reasoning_tokens") for one in answers]
        usage = replace(usage, thinking_tokens=None if None in thoughts else sum(filter(None, thoughts)))
    count = int_at(used, "requestCount") or 1
    model = text_at(used, "model") or text_at(event.data, "behaviorModelId")
    charge = Charge(event.id, usage, event.time, model, claim=claim, calls=count, aggregate=count > 1)
    return Spent(charge, event.agent, event.id)


def first(record: Record, *names: str) -> Any:
    return next((record[name] for name in names if name in record), None)


def answered(event: Event, claim: Claim) -> Spent:
    usage = Usage(output_tokens=int_at(event.data, "outputTokens"))
    return Spent(Charge(event.id, usage, event.time, text_at(event.data, "model"), claim=claim), event.agent, event.id)


def output_of(event: Event) -> int:
    return int_at(event.data, "outputTokens") or 0


# Rows of session-store.db


def add_rows(found: Sequence[Process], rows: Rows) -> None:
    """Give each process without records the rows of its time: those after it began and before the next one did."""
    for owner in dict.fromkeys(process.owner for process in found if process.busy and not process.records):
        own = [process for process in found if process.owner == owner]
        for row in rows(owner):
            time = when(row.get("created_at"))
            if time and own[-1].until and time > own[-1].until:
                continue  # after the fork was taken
            earlier = [one for one in own if time is None or one.began is None or one.began <= time]
            process = earlier[-1] if earlier else own[0]
            if process.busy:
                process.rows.append(row)


def stored(row: Record, process: Process) -> Spent:
    charge = Charge(
        key=f"store:{process.owner}:{row.get('number')}",
        usage=row_usage(row),
        at=when(row.get("created_at")),
        model=text_at(row, "model"),
        claim=process.claim,
    )
    agent = text_at(row, "agent_id") or text_at(row, "parent_tool_call_id")
    return Spent(charge, agent, timed=not compacted(row))


def row_usage(row: Record) -> Usage:
    return usage_of(
        {
            "inputTokens": row.get("input_tokens"),
            "outputTokens": row.get("output_tokens"),
            "cacheReadTokens": row.get("cache_read_tokens"),
            "cacheWriteTokens": row.get("cache_write_tokens"),
            "reasoningTokens": row.get("reasoning_tokens"),
        }
    )


def rows_to_count(process: Process) -> Sequence[Record]:
    """The rows but those of compactions, whose events tell more. 1.0.79 leaves `initiator` empty: the numbers must tell."""
    if not process.compactions:
        return process.rows
    if any(map(compacted, process.rows)):
        return [row for row in process.rows if not compacted(row)]
    told = Counter(figures(one.charge.usage) for one in process.compactions)
    found = []
    for row in process.rows:
        same = figures(row_usage(row))
        if told[same] and not row.get("initiator"):
            told[same] -= 1
        else:
            found.append(row)
    return found


def figures(usage: Usage) -> tuple[int, ...]:
    """What the event and the row of one call have in common."""
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)
    return tuple(count or 0 for count in counts)


def compacted(row: Record) -> bool:
    return row.get("initiator") == "compaction"


# Totals at a shutdown


def add_totals(found: Sequence[Process]) -> None:
    """Work out from the totals at each shutdown what its process used."""
    split = totals.by_agent(process.shutdown.data for process in found if process.shutdown)
    done: Totals = {}
    last: Totals = {}
    running: list[Process] = []
    for process in found:
        running.append(process)
        if not process.shutdown:
            continue
        now = totals.totals(process.shutdown.data, split=split)
        base, all_of_them = totals.base(now, (done, last, {}), [one.output for one in running])
        process.spent = totals.minus(now, base)
        for killed in running[:-1]:
            killed.covered = all_of_them
        done, last, running = totals.plus(done, process.spent), now, []


def totalled(process: Process) -> Iterator[Spent]:
    end = process.shutdown
    for (agent, model), used in process.spent.items():
        if end and (used.calls or used.input or used.output):
            usage = Usage(
                fresh(used.input, used.read, used.written), used.output, used.thinking, used.read, used.written
            )
            key = f"{end.id}:{agent or ''}:{model}"
            charge = Charge(key, usage, end.time, model, claim=process.claim, calls=max(used.calls, 1), aggregate=True)
            yield Spent(charge, agent)
