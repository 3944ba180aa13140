"""Rows of the catalog: the model as SQL columns and back."""

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import orjson

from amux import linking, money, search
from amux.model import Charge, CostRecord, Session, SessionSummary, Usage
from amux.query import milliseconds
from amux.readers._base import SessionRef

CREATED = "coalesce(s.link_created, s.created_at)"
PARENT = """
    coalesce((select case m.kind when 'main' then m.id else m.parent_id end from session m where m.no = s.root and s.kind <> 'main'), s.parent_id)
"""
"""The main session that a sub-agent belongs to, also through the sub-agent that started it."""
SUMMARY = f"""
    s.no, sc.agent, s.id, s.title, {CREATED} created, s.updated_at, s.turn_count, s.message_count,
    s.kind, s.model, s.models, s.cwd, s.git_branch, s.git_commit, coalesce(s.forked_from, s.link_from) fork, {PARENT} parent,
    s.archived, s.agent_version, s.mode, s.channel, s.path, s.usage_recorded
"""


INSERT_SESSION = """
    insert into session (ref, scope, id, kind, title, created_at, updated_at, turn_count, message_count, tags, model, models, cwd,
        git_branch, git_commit, forked_from, parent_id, archived, agent_version, mode, channel, path, usage_recorded, began, times, offsets, first)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
INSERT_CHARGE = """
    insert into charge (session, scope, position, key, at, model, provider, input, output, thinking, cached, written, hour, usd,
        claim, calls, aggregate, message, estimate)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SESSIONS = "session s join scope sc on sc.no = s.scope"
TOTAL = ", ".join(
    money.added(f"t.{name}") for name in ("usd", "auto", "input", "output", "thinking", "cached", "written")
)
WORTH = f"coalesce({money.added('t.usd')}, 0) + coalesce({money.added('t.auto')}, 0)"
FAMILY = f"""
    select f.root root, {WORTH} worth
    from session f join spend t on t.session = f.no group by f.root
"""
PRICED = (
    f"{SESSIONS} left join ({FAMILY}) family on family.root = s.no left join temp.covered on covered.session = s.no"
)
ORDERS = {
    "date": "s.updated_at",
    "turns": "s.turn_count",
    "cost": f"coalesce(covered.usd, family.worth, (select {WORTH} from spend t where t.session = s.no), 0)",
    "relevance": "s.updated_at",
}


MATCHED = f"{SUMMARY}, s.first, s.times, s.offsets, r.key, r.path, r.fingerprint, r.size, r.files, r.based_on"
"""What matched() needs."""


def ordered(sort: str) -> str:
    """The sessions with what their order goes by: what each cost is added up only for who asks for it."""
    return PRICED if sort == "cost" else SESSIONS


class Found(NamedTuple):
    ref: SessionRef
    summary: SessionSummary
    inherited: int


class Matched(NamedTuple):
    """A session that search found, and where: the message that matches best (-1: the title) and its part."""

    summary: SessionSummary
    ref: SessionRef
    score: float
    matches: int
    message: int
    part: str
    timestamp: datetime | None
    offset: int | None
    elsewhere: bool
    """Whether some of its text is in the files of other sessions."""


def from_milliseconds(count: int) -> datetime:
    return datetime.fromtimestamp(count / 1000, UTC)


def key_number(key: str) -> int:
    """A key as 64 bits: a number in an index takes a quarter of the space of a text, and equal keys stay equal."""
    from hashlib import blake2b  # noqa: PLC0415 - loads OpenSSL, which a warm run does without

    return int.from_bytes(blake2b(key.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)


def session_row(ref: int, scope: int, session: Session) -> tuple[Any, ...]:
    times = array("q", (milliseconds(message.timestamp) or 0 for message in session.messages))
    offsets = [message.offset if message.offset is not None else -1 for message in session.messages]
    return (
        ref,
        scope,
        session.session_id,
        session.kind,
        session.title,
        milliseconds(session.created_at),
        milliseconds(session.updated_at),
        session.turn_count,
        session.message_count,
        orjson.dumps(session.tags).decode(),
        session.model,
        orjson.dumps(session.models).decode(),
        session.cwd,
        session.git_branch,
        session.git_commit,
        session.forked_from,
        session.parent_id,
        session.archived,
        session.agent_version,
        session.mode,
        session.channel,
        session.path,
        session.usage_recorded,
        milliseconds(session.began),
        times.tobytes(),
        array("q", offsets).tobytes() if any(offset >= 0 for offset in offsets) else b"",
    )


def charge_row(session: int, scope: int, position: int, key: int, charge: Charge) -> tuple[Any, ...]:
    usage = money.counted(charge.usage)
    return (
        session,
        scope,
        position,
        key,
        milliseconds(charge.at),
        charge.model,
        charge.provider,
        usage.input_tokens,
        usage.output_tokens,
        usage.thinking_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
        min(charge.hour_write_tokens, money.MOST_TOKENS),
        money.pico(charge.usd),
        linking.CLAIMS.index(charge.claim),
        min(charge.calls, money.MOST_CALLS),
        charge.aggregate,
        charge.message,
    )


def charge_from(row: Sequence[Any]) -> Charge:
    """What a price depends on, from a row of reprice()."""
    _, model, provider, at, input, output, thinking, cached, written, hour, aggregate = row
    return Charge(
        key="",
        usage=Usage(input, output, thinking, cached, written),
        at=from_milliseconds(at) if at is not None else None,
        model=model,
        provider=provider,
        hour_write_tokens=hour,
        aggregate=bool(aggregate),
    )


def summary(row: Sequence[Any], spent: CostRecord | None, tags: Sequence[str]) -> SessionSummary:
    (_, agent, id, title, created, updated, turns, messages, kind, model, models, cwd, branch, commit) = row[:14]
    (fork, parent, archived, version, mode, channel, path, usage_recorded) = row[14:22]
    return SessionSummary(
        agent=agent,
        session_id=id,
        title=title,
        created_at=from_milliseconds(created),
        updated_at=from_milliseconds(updated),
        turn_count=turns,
        message_count=messages,
        tags=tuple(tags),
        kind=kind,
        model=model,
        models=tuple(orjson.loads(models)),
        cost=spent or (NOTHING if usage_recorded else None),
        cwd=cwd,
        git_branch=branch,
        git_commit=commit,
        forked_from=fork,
        parent_id=parent,
        archived=bool(archived),
        agent_version=version,
        mode=mode,
        channel=channel,
        path=path,
    )


NOTHING = CostRecord(Decimal(0), 0, 0, 0, 0, 0, "native")
"""No calls at all cost nothing, unless the store could not tell."""


def cost_record(sums: Sequence[Any]) -> CostRecord:
    native, estimate, input, output, thinking, cached, written, run = sums
    estimate = None if run is not None else estimate
    both = money.usd(money.joined(native, run, estimate))
    return CostRecord(both, input, output, thinking, cached, written, money.source(native, run, estimate))


def matched(row: Sequence[Any], summary: SessionSummary, score: float, held: Sequence[Sequence[int]]) -> Matched:
    first, times, offsets, key, path, fingerprint, size, files, based_on = row[-9:]
    when, start = array("q", times), array("q", offsets)

    def near(row: int) -> bool:
        """Whether the message can be found again without reading the whole session; the title always can."""
        place = (row >> search.PART_BITS) - first - 1
        return bool(place < 0 or (place < len(start) and start[place] >= 0))

    best = search.best_row([[row for row in rows if near(row)] for rows in held]) or search.best_row(held)
    message = (best >> search.PART_BITS) - first - 1 if best is not None else -1
    time = when[message] if 0 <= message < len(when) else 0
    offset = start[message] if 0 <= message < len(start) else -1
    return Matched(
        summary=summary,
        ref=SessionRef(key, path, fingerprint, size, tuple(orjson.loads(files))),
        score=score,
        matches=len(set().union(*held)),
        message=message,
        part=search.part_of(best) if best is not None else "title",
        timestamp=from_milliseconds(time) if time else None,
        offset=offset if offset >= 0 else None,
        elsewhere=based_on is not None,
    )


def marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
