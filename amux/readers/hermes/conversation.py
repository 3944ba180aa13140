"""One conversation of a database as a session: its rows' messages once, their charges, and what it is to others."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import takewhile

from amux.model import Session
from amux.readers import _base
from amux.readers._json import Record, text_at, time_at
from amux.readers.hermes import usage
from amux.readers.hermes.database import number
from amux.readers.hermes.store import Place, Store
from amux.readers.hermes.transcript import Line, lines, messages

COPYING = 1.0
"""Seconds after its start in which a branch certainly only copied."""


def read(agent: str, store: Store, newest: str) -> Sequence[Session]:
    """The conversation listed under an id; nothing where nobody said anything. Raises UnreadableSession."""
    chain = store.chain(newest)
    records = store.messages(chain)
    said = lines(records)
    place = settled(store, chain[0], said)
    rows = [store.sessions[id] for id in chain]
    charges = [
        charge
        for id in chain
        for charge in usage.charges(
            store.sessions[id], store.used.get(id, ()), last_time([store.sessions[id]], records)
        )
    ]
    found = messages(said)
    if not found and not charges:
        store.check()
        return []
    return [
        _base.session(
            agent,
            newest,
            found,
            path=store.path,
            title=last_text(rows, "title"),
            charges=charges,
            created_at=time_at(rows[0], "started_at"),
            updated_at=last_time(rows, records),
            model=last_text(rows, "model"),
            kind=place.kind,
            parent_id=place.parent_id,
            forked_from=place.forked_from,
            cwd=directory(store, chain, place),
            git_branch=last_text(rows, "git_branch"),
            archived=bool(rows[-1].get("archived") or rows[-1].get("hidden")),
            channel=last_text(rows, "source"),
            began=time_at(rows[0], "started_at"),
            based_on=sources(store, chain, place),
            usage_recorded=any("input_tokens" in row for row in rows),
        )
    ]


def last_text(rows: Sequence[Record], name: str) -> str | None:
    return next((text for row in reversed(rows) if (text := text_at(row, name))), None)


def last_time(rows: Sequence[Record], records: Iterable[Record]) -> datetime | None:
    """When any of the rows was last active: `ended_at` is often missing and lost when a session is resumed."""
    ids = {row["id"] for row in rows}
    times = [time_at(record, "timestamp") for record in records if record.get("session_id") in ids]
    times += [time_at(row, name) for row in rows for name in ("started_at", "ended_at", "last_activity_at")]
    return max((time for time in times if time), default=None)


# Where it ran


def directory(store: Store, chain: Sequence[str], place: Place) -> str | None:
    """Branches and sub-agents have no directory of their own until they are resumed: it is their parent's."""
    own = store.recorded_cwd(chain) or store.prompt_cwd(chain)
    parent = store.parent(chain[0])
    if own or not parent or not place.related:
        return own
    return store.borrowed_cwd(chain[0]) or store.prompt_cwd(store.chains[parent])


def sources(store: Store, chain: Sequence[str], place: Place) -> tuple[str, ...]:
    """The refs it was read from besides its own: the parent's messages tell a copy, its prompt the directory."""
    parent = store.parent(chain[0])
    told = store.recorded_cwd(chain) or store.borrowed_cwd(chain[0])
    needed = place.unsure or place.forked_from or (place.related and not told)
    return (store.prefix + parent,) if parent and needed else ()


# Whose messages they are


def settled(store: Store, first: str, said: Sequence[Line]) -> Place:
    """What the conversation is to its parent; what it copied of it is marked as inherited."""
    place = store.place(first)
    parent = store.parent(first)
    if not place.unsure and not place.forked_from:
        return place
    started = number(store.sessions[first], "started_at") + COPYING
    copied = copies(said, lines(store.messages(store.chains[parent])), started) if parent else early(said, started)
    if place.unsure and len(copied) < 2:
        return place
    for line in copied:
        line.inherited = True
    return place if place.forked_from else Place(forked_from=parent, unsure=True)


def copies(said: Sequence[Line], parents: Iterable[Line], until: float) -> list[Line]:
    """The lines at the start that stood in the parent when it was copied; the barest copies keep only role and text.

    What the parent undid may have been gone by then: only a line as old as the branch is a copy of that.
    """
    before = [line for line in parents if not line.repeated and number(line.record, "timestamp") <= until]
    kept = Counter(line.spoken for line in before if not line.undone)
    undone = Counter(line.spoken for line in before if line.undone)
    found = []
    for line in said:
        early = number(line.record, "timestamp") <= until
        there = kept if kept[line.spoken] or not early else undone
        if not there[line.spoken]:
            break
        there[line.spoken] -= 1
        found.append(line)
    return found


def early(said: Iterable[Line], until: float) -> list[Line]:
    """The lines at the start that are too early to be anything but copies: for a branch whose parent is gone."""
    return list(takewhile(lambda line: number(line.record, "timestamp") <= until, said))
