"""Who made a call, whose fork a session is: what can be told only from an agent's sessions together.

Forks copy their parent's records and resumes repeat them, so one call of a model can stand in several sessions. Each
key gets one owner: a record that claims the call as its own before one that does not say, before one marked as a copy;
then the earlier record; then the session that began earlier; then, of a parent and its fork that tell no difference, the
one that was not gone on with. What a session holds but does not own, it inherited.
"""

import sqlite3
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from amux.money import added

CLAIMS = ("own", "unknown", "copied")
LATE = 2**62

TOUCHED = "create temp table if not exists touched (key integer primary key)"
SHARED = """
    select c.key, c.rowid, c.session, c.claim, coalesce(c.at, :late) at, coalesce(s.began, :late) began, s.id
    from charge c join session s on s.no = c.session
    where c.scope = :scope and c.key in (
        select key from charge where scope = :scope and key in (select key from touched)
        group by key having min(session) < max(session))
    order by c.key, c.claim, at, began, s.updated_at, s.id
"""
NEW = """
    insert or ignore into touched
    select key from charge where session in (select no from session where scope = :scope and linked = 0)
"""
AFFECTED = """
    insert into affected select session from charge where scope = :scope and key in (select key from touched)
    union select no from session where scope = :scope and linked = 0
"""
INHERITED = """
    select c.session, c.message, o.session owner_session, s.id owner, s.kind, s.parent_id
    from charge c
    join charge o on o.key = c.key and o.scope = c.scope and o.owned = 1
    join session s on s.no = o.session
    where c.session in (select no from affected) and c.owned = 0 and o.session <> c.session
    order by c.session, c.position
"""
TOKENS = "coalesce(input, 0) + coalesce(output, 0) + coalesce(cached, 0) + coalesce(written, 0)"
ADDED = {
    **{name: name for name in ("input", "output", "thinking", "cached", "written", "usd", "estimate")},
    "auto": "case when usd is null or usd = 0 then estimate end",
    "unpriced": f"case when usd is null and estimate is null then {TOKENS} end",
    "unestimated": f"case when estimate is null then {TOKENS} end",
    "unrecorded": f"case when usd is null then {TOKENS} end",
}
SUMS = ", ".join(
    ["sum(calls) calls", *(f"{added(amounts)} {name}" for name, amounts in ADDED.items()), "max(aggregate) aggregate"]
)
"""What calls come to. `auto` is what is estimated of them: a call without USD, and one whose recorded 0 is a subscription's."""
SPEND = f"""
    insert into spend select session, scope, model, at / 900000 quarter, {SUMS} from charge
    where session in (select no from affected) and owned = 1 group by session, model, quarter
"""
"""What a session's own calls come to, by model and quarter of an hour: every time zone's days are made of those."""


def let_go(db: sqlite3.Connection, ref: int) -> None:
    """Note the calls of a ref that is about to be dropped: another session may own them now."""
    db.execute(TOUCHED)
    db.execute(
        "insert or ignore into touched select key from charge where session in (select no from session where ref = ?)",
        (ref,),
    )


def link(db: sqlite3.Connection, scope: int) -> None:
    """Bring owners, forks and totals of a store up to date after some of its sessions came, changed or went."""
    db.execute(TOUCHED)
    db.execute(NEW, {"scope": scope})
    give_owners(db, scope)
    with chosen(db, AFFECTED, {"scope": scope}):
        add_up(db)
        link_forks(db)
    give_roots(db, scope)
    db.execute("delete from touched")


@contextmanager
def chosen(db: sqlite3.Connection, choice: str, values: dict[str, int]) -> Iterator[None]:
    """A table `affected` of the sessions to bring up to date."""
    db.execute("create temp table affected (no integer primary key)")
    db.execute(choice, values)
    yield
    db.execute("drop table affected")


def add_up_all(db: sqlite3.Connection) -> None:
    with chosen(db, "insert into affected select no from session", {}):
        add_up(db)


def add_up(db: sqlite3.Connection) -> None:
    db.execute("delete from spend where session in (select no from affected)")
    db.execute(SPEND)


def give_owners(db: sqlite3.Connection, scope: int) -> None:
    db.execute(
        "update charge set owned = 1 where owned = 0 and scope = ? and key in (select key from touched)", (scope,)
    )
    holders = db.execute(SHARED, {"scope": scope, "late": LATE}).fetchall()
    copies = [(record[1],) for _, same in groupby(holders, itemgetter(0)) for record in list(same)[1:]]
    db.executemany("update charge set owned = 0 where rowid = ?", copies)


class Fork(NamedTuple):
    """What a session inherited: how many of its first messages, and from whom it has the last of its copied calls."""

    inherited: int = 0
    forked_from: str | None = None
    created_at: int | None = None


def link_forks(db: sqlite3.Connection) -> None:
    db.execute(
        "update session set linked = 1, inherited = 0, link_from = null, link_created = null"
        " where no in (select no from affected)"
    )
    for no, copied in groupby(db.execute(INHERITED).fetchall(), itemgetter(0)):
        fork = fork_of(db, no, [calls[1:] for calls in copied])
        db.execute(
            "update session set inherited = ?, link_from = ?, link_created = ? where no = ?",
            (fork.inherited, fork.forked_from, fork.created_at, no),
        )


def fork_of(db: sqlite3.Connection, no: int, copied: list[tuple[int | None, int, str, str, str | None]]) -> Fork:
    id, kind, created, began, times = db.execute(
        "select id, kind, created_at, began, times from session where no = ?", (no,)
    ).fetchone()
    if kind != "main":
        return Fork()
    _, _, owner, owner_kind, owner_parent = copied[-1]
    parent = owner if owner_kind == "main" else owner_parent
    count = 1 + max((message for message, *_ in copied if message is not None), default=-1)
    return Fork(count, parent if parent != id else None, started(array("q", times), count, created, began))


def started(times: "array[int]", inherited: int, created: int, began: int | None) -> int:
    """When a fork began: its first own record, unless the session's own start is already later than what it inherited."""
    last = max(times[:inherited], default=0)
    if created > last:
        return created
    if began and began > last:
        return began
    return next((time for time in times[inherited:] if time >= last), last or created)


def give_roots(db: sqlite3.Connection, scope: int) -> None:
    """The main session each sub-agent belongs to, through sub-agents of sub-agents; an orphan is its own."""
    db.execute("update session set root = no where scope = ? and kind = 'main' and root is not no", (scope,))
    parents: dict[str, tuple[int, str | None]] = {}
    for id, no, kind, parent in db.execute(
        "select id, no, kind, parent_id from session where scope = ? order by no desc", (scope,)
    ):
        parents[id] = (no, parent if kind != "main" else None)
    children = db.execute("select no, parent_id from session where scope = ? and kind <> 'main'", (scope,)).fetchall()
    db.executemany("update session set root = ? where no = ?", list(roots(parents, children)))


def roots(
    parents: dict[str, tuple[int, str | None]], children: list[tuple[int, str | None]]
) -> Iterator[tuple[int, int]]:
    for no, parent in children:
        root, above, seen = no, parent, set[str]()
        while above in parents and above not in seen:
            seen.add(above)
            root, above = parents[above]
        yield root, no
