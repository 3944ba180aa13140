"""Claude Code about 0.2.96: every session in one SQLite file, `__store.db`, in rollback-journal mode.

A continued conversation has a new session id; its first row's parent_uuid points into the old session and nothing is
copied. Times are whole seconds: the order is that of the rows. `cost_usd` is stored per response. Side chains are
sub-agents, as in the transcripts up to 2.0.0; a summary names the row at which it was made.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from amux.model import Charge, Json, Session
from amux.readers import _base
from amux.readers._base import SessionRef, title_from
from amux.readers._json import Record, decoded, text_at, when
from amux.readers._sqlite import columns, reading, rows
from amux.readers._tree import branch
from amux.readers.claude.charges import charges
from amux.readers.claude.conversation import Spilled, conversation
from amux.readers.claude.transcript import inline_subagents, surroundings

SESSIONS = (
    "select session_id, count(*) n, max(rowid) last, max(timestamp) latest from base_messages group by session_id"
)
ROWS = """
    select b.uuid, b.parent_uuid, b.session_id, b.timestamp, b.message_type, b.cwd, b.version, b.isSidechain,
           coalesce(u.message, a.message) message, u.tool_use_result, a.cost_usd, a.is_api_error_message
    from base_messages b
    left join user_messages u on u.uuid = b.uuid
    left join assistant_messages a on a.uuid = b.uuid
    order by b.rowid
"""
SUMMARIES = """
    select b.session_id, s.summary from conversation_summaries s join base_messages b on b.uuid = s.leaf_uuid
    where not coalesce(b.isSidechain, 0)
"""


def refs(path: str) -> Iterator[SessionRef]:
    """Every session of the store. Raises UnreadableSession."""
    with reading(path) as db:
        named = titles(db)
        for row in rows(db, SESSIONS):
            key = str(row["session_id"])
            yield SessionRef(key, path, f"{row['n']}:{row['last']}:{row['latest']}:{named.get(key, '')}")


def titles(db: sqlite3.Connection) -> dict[str, str]:
    """The newest summary of each session that has one; none where they are damaged: sessions can do without."""
    known = columns(db, "conversation_summaries")
    if not {"leaf_uuid", "summary"} <= known:
        return {}
    order = "s.updated_at, s.rowid" if "updated_at" in known else "s.rowid"
    try:
        found = list(rows(db, f"{SUMMARIES} order by {order}"))
    except sqlite3.Error:
        return {}
    return {str(row["session_id"]): title for row in found if (title := title_from(text_at(row, "summary") or ""))}


def records(db: sqlite3.Connection) -> dict[str, Record]:
    """Every row of the store in the shape of the later transcripts."""
    return {str(row["uuid"]): record(row) for row in rows(db, ROWS)}


def record(row: Record) -> Record:
    time = when(row["timestamp"])
    return {
        "uuid": row["uuid"],
        "parentUuid": row["parent_uuid"],
        "type": row["message_type"],
        "sessionId": row["session_id"],
        "timestamp": time.isoformat() if time else None,
        "cwd": row["cwd"],
        "version": row["version"],
        "isSidechain": bool(row["isSidechain"]),
        "isApiErrorMessage": bool(row["is_api_error_message"]),
        "message": decoded(row["message"] or ""),
        "toolUseResult": decoded(row["tool_use_result"] or ""),
        "costUSD": row["cost_usd"],
    }


def read(agent: str, ref: SessionRef) -> list[Session]:
    """A session and its sub-agents. Raises UnreadableSession."""
    with reading(ref.path) as db:
        everything, title = records(db), titles(db).get(ref.key)
    side = {uuid: line for uuid, line in everything.items() if line["isSidechain"] and line["sessionId"] == ref.key}
    main = main_session(agent, ref, everything, title)
    return [one for one in (main, *inline_subagents(agent, ref, side)) if one.messages or one.charges]


def main_session(agent: str, ref: SessionRef, everything: dict[str, Record], title: str | None) -> Session:
    own = {uuid: line for uuid, line in everything.items() if line["sessionId"] == ref.key}
    main = {uuid: line for uuid, line in everything.items() if not line["isSidechain"]}
    parents = {uuid: line["parentUuid"] for uuid, line in main.items()}
    spoken = {uuid: line for uuid, line in own.items() if uuid in main}
    last = next(reversed(spoken), None)
    shown = [main[uuid] for uuid in branch(parents, last)]
    inherited = [line for line in shown if line["sessionId"] != ref.key]
    before, _ = conversation(inherited, Spilled(ref.path))
    after, places = conversation([line for line in shown if line["sessionId"] == ref.key], Spilled(ref.path))
    times = [time for line in own.values() if (time := when(line["timestamp"]))]
    return _base.session(
        agent,
        ref.key,
        [*_base.inherited(before), *after],
        path=ref.path,
        title=title,
        charges=[moved(charge, len(before)) for charge in charges(spoken.values(), ref.key, places)],
        created_at=min(times, default=None),
        updated_at=max(times, default=None),
        began=min(times, default=None),
        forked_from=text_at(inherited[-1], "sessionId") if inherited else None,
        based_on=tuple({str(line["sessionId"]) for line in inherited}),
        **surroundings(own.values()),
    )


def moved(charge: Charge, by: int) -> Charge:
    return replace(charge, message=charge.message + by if charge.message is not None else None, claim="own")


def raw(ref: SessionRef) -> Json:
    with reading(ref.path) as db:
        found: list[Any] = [line for line in records(db).values() if line["sessionId"] == ref.key]
    return found
