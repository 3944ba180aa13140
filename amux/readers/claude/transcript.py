"""Claude Code's JSONL: from records to sessions.

One answer of the model is written as one line per content block, all with the answer's `message.id` and its usage; a
line that was flushed before the stream ended has a placeholder for the output count, so the highest count is the right
one. Lines form a tree by `parentUuid`; a rewind leaves the abandoned branch in the file, a compaction starts anew at a
boundary that names what came before as `logicalParentUuid`.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from amux.model import Session
from amux.readers import _base
from amux.readers._base import SessionRef, stamp
from amux.readers._json import Record, document, placed, text_at, time_at, when
from amux.readers.claude.branch import active
from amux.readers.claude.charges import charges
from amux.readers.claude.conversation import Spilled, conversation

STATE = frozenset({"custom-title", "ai-title", "summary", "tag", "permission-mode"})
COPIES = frozenset({"api-request", "api-request-shape", "api-request-blob"})
"""Lines that repeat what was sent to the model: no place in the conversation."""
PASSED_OVER = (b'{"type":"api-request', b'{"type":"file-history-')
"""How the largest lines begin that say nothing here: they are not even decoded."""


@dataclass(slots=True)
class Log:
    """What one pass over a transcript finds: the chain of its main line, side chains, and the state lines that matter."""

    chain: dict[str, Record] = field(default_factory=dict)
    side: dict[str, Record] = field(default_factory=dict)
    custom_title: str | None = None
    ai_title: str | None = None
    summaries: list[Record] = field(default_factory=list)
    tag: str | None = None
    mode: str | None = None
    began: str | None = None
    latest: str = ""

    @property
    def title(self) -> str | None:
        own = (text_at(record, "summary") for record in self.summaries if text_at(record, "leafUuid") in self.chain)
        return self.custom_title or self.ai_title or next(own, None)


def sessions(agent: str, ref: SessionRef) -> list[Session]:
    """The session of a file and the sub-agents recorded inside it."""
    subagent = os.path.basename(ref.path).startswith("agent-")
    log = read_log(ref.path, subagent=subagent)
    if not log.chain:
        return []
    if subagent:
        return [subagent_session(agent, ref, log)]
    found = [main_session(agent, ref, log), *inline_subagents(agent, ref, log)]
    return [one for one in found if one.messages or one.charges]


def read_log(path: str, *, subagent: bool) -> Log:
    log = Log()
    for number, record in enumerate(placed(path, PASSED_OVER)):
        stamped = record.get("timestamp")
        if isinstance(stamped, str):
            log.began = log.began or stamped
            log.latest = max(log.latest, stamped)
        kind = text_at(record, "type")
        if kind and kind in STATE:
            note_state(log, kind, record)
        elif kind not in COPIES and ("uuid" in record or "message" in record):
            lines = log.side if record.get("isSidechain") is True and not subagent else log.chain
            uuid = record.get("uuid")
            lines[uuid if isinstance(uuid, str) else f"line {number}"] = record
    return log


def note_state(log: Log, kind: str, record: Record) -> None:
    """State lines have no place in the conversation; of those that repeat, the last one counts."""
    match kind:
        case "custom-title":
            log.custom_title = text_at(record, "customTitle") or log.custom_title
        case "ai-title":
            log.ai_title = text_at(record, "aiTitle") or log.ai_title
        case "summary":
            # Up to 2.0 a new file begins with summaries of other sessions: leafUuid tells whose it is.
            log.summaries.append(record)
        case "tag":
            log.tag = text_at(record, "tag")
        case "permission-mode":
            log.mode = text_at(record, "permissionMode") or log.mode


def main_session(agent: str, ref: SessionRef, log: Log) -> Session:
    session_id = ref.key
    spilled = Spilled(ref.path)
    messages, places = conversation(active(log.chain), spilled)
    lines = log.chain.values()
    titled = next(
        (text_at(document(file), "customTitle") for file in ref.files if file.endswith("custom-title.json")), None
    )
    return _base.session(
        agent,
        session_id,
        messages,
        path=ref.path,
        title=log.custom_title or titled or log.title,
        charges=charges(lines, session_id, places),
        created_at=first_own_time(lines) or when(log.began),
        updated_at=when(log.latest),
        began=when(log.began),
        tags=(log.tag,) if log.tag else (),
        forked_from=marked_parent(lines, session_id),
        mode=last_of(lines, "permissionMode") or log.mode,
        based_on=tuple(spilled.elsewhere - {session_id}),
        **surroundings(lines),
    )


def subagent_session(agent: str, ref: SessionRef, log: Log) -> Session:
    lines = log.chain.values()
    first = next(iter(lines))
    folder, _, stem = ref.key.rpartition("/")
    agent_id = text_at(first, "agentId") or stem.removeprefix("agent-")
    meta = next((document(file) for file in ref.files if stamp(file)), None)
    messages, places = conversation(active(log.chain), Spilled(ref.path))
    return _base.session(
        agent,
        agent_id,
        messages,
        path=ref.path,
        title=text_at(meta, "description"),
        charges=charges(lines, agent_id, places),
        created_at=when(log.began),
        updated_at=when(log.latest),
        began=when(log.began),
        kind="subagent",
        parent_id=folder or text_at(first, "sessionId"),
        **surroundings(lines),
    )


def inline_subagents(agent: str, ref: SessionRef, log: Log) -> Iterator[Session]:
    """Up to 2.0.0 a sub-agent's lines stand among its parent's and have no id: one is made of both."""
    chains: dict[str, dict[str, Record]] = {}
    roots: dict[str, str] = {}
    for uuid, record in log.side.items():
        root = roots[uuid] = roots.get(text_at(record, "parentUuid") or "", uuid)
        chains.setdefault(root, {})[uuid] = record
    for root, chain in chains.items():
        lines = chain.values()
        agent_id = f"{ref.key}-{root[:8]}"
        messages, places = conversation(active(chain), Spilled(ref.path))
        times = [time for record in lines if (time := time_at(record, "timestamp"))]
        yield _base.session(
            agent,
            agent_id,
            messages,
            path=ref.path,
            charges=charges(lines, agent_id, places),
            created_at=min(times, default=None),
            updated_at=max(times, default=None),
            began=min(times, default=None),
            kind="subagent",
            parent_id=ref.key,
            **surroundings(lines),
        )


def surroundings(lines: Iterable[Record]) -> dict[str, Any]:
    """Where it ran: the first cwd (a resume from elsewhere appends to the same file), the latest branch and version."""
    return {
        "cwd": next((cwd for record in lines if (cwd := text_at(record, "cwd"))), None),
        "git_branch": last_of(lines, "gitBranch"),
        "agent_version": last_of(lines, "version"),
    }


def last_of(lines: Iterable[Record], name: str) -> str | None:
    return next((text for record in reversed(list(lines)) if (text := text_at(record, name))), None)


def marked_parent(lines: Iterable[Record], session_id: str) -> str | None:
    """The nearest parent: `forkedFrom` of any copied line, else who made the request of the last copied answer."""
    parent = None
    for record in lines:
        if named := text_at(record, "forkedFrom", "sessionId"):
            return named
        made_by = text_at(record, "requestSessionId")
        if made_by and made_by != session_id:
            parent = made_by
    return parent


def first_own_time(lines: Iterable[Record]) -> datetime | None:
    """When a /branch or SDK fork began: its copied lines are marked and keep the parent's times."""
    marked = False
    for record in lines:
        if text_at(record, "forkedFrom", "sessionId"):
            marked = True
        elif marked and (time := time_at(record, "timestamp")):
            return time
    return None
