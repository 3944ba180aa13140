"""Claude Code about 0.2.96: every session in one SQLite file, `__store.db`, in rollback-journal mode.

A continued conversation has a new session id; its first row's parent_uuid points into the old session and nothing is
copied. Times are whole seconds: the order is that of the rows. `cost_usd` is stored per response.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from amux.model import Charge, Json, Session
from amux.readers import _base
from amux.readers._base import SessionRef
from amux.readers._json import Record, decoded, text_at, when
from amux.readers._sqlite import reading, rows
from amux.readers._tree import branch
from amux.readers.claude.charges import charges
from amux.readers.claude.conversation import Spilled, conversation
from amux.readers.claude.transcript import surroundings

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


def refs(opened: ExitStack, path: str) -> Iterator[SessionRef]:
    db = opened.enter_context(reading(path))
    for row in rows(db, SESSIONS):
        yield SessionRef(str(row["session_id"]), path, f"{row['n']}:{row['last']}:{row['latest']}")


def records(opened: ExitStack, path: str) -> dict[str, Record]:
    """Every row of the store in the shape of the later transcripts."""
    db = opened.enter_context(reading(path))
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


def read(agent: str, opened: ExitStack, ref: SessionRef) -> Session:
    everything = records(opened, ref.path)
    own = {uuid: line for uuid, line in everything.items() if line["sessionId"] == ref.key}
    main = {uuid: line for uuid, line in everything.items() if not line["isSidechain"]}
    parents = {uuid: line["parentUuid"] for uuid, line in main.items()}
    last = next((uuid for uuid in reversed(own) if uuid in main), None)
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
        charges=[moved(charge, len(before)) for charge in charges(own.values(), ref.key, places)],
        created_at=min(times, default=None),
        updated_at=max(times, default=None),
        began=min(times, default=None),
        forked_from=text_at(inherited[-1], "sessionId") if inherited else None,
        based_on=tuple({str(line["sessionId"]) for line in inherited}),
        **surroundings(own.values()),
    )


def moved(charge: Charge, by: int) -> Charge:
    return replace(charge, message=charge.message + by if charge.message is not None else None, claim="own")


def raw(opened: ExitStack, ref: SessionRef) -> Json:
    found: list[Any] = [line for line in records(opened, ref.path).values() if line["sessionId"] == ref.key]
    return found
