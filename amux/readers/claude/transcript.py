"""Claude Code's JSONL: from records to sessions.

One answer of the model is written as one line per content block, all with the answer's `message.id` and its usage; a
line that was flushed before the stream ended has a placeholder for the output count, so the highest count is the right
one. Lines form a tree by `parentUuid`; a rewind leaves the abandoned branch in the file, a compaction starts anew at a
boundary that names what came before as `logicalParentUuid`.
"""

import os
from collections.abc import Iterable, Iterator, Reversible
from dataclasses import dataclass, field
from typing import Any

from amux.model import Message, Session
from amux.readers import _base
from amux.readers._base import SessionRef, stamp
from amux.readers._json import OFFSET, Record, document, placed, text_at, time_at, when
from amux.readers.claude.branch import active
from amux.readers.claude.charges import charges
from amux.readers.claude.conversation import Spilled, conversation
from amux.readers.claude.lines import kind_of, maker

STATE = frozenset({"custom-title", "ai-title", "summary", "tag", "permission-mode"})
COPIES = frozenset({"api-request", "api-request-shape", "api-request-blob"})
"""Lines that repeat what was sent to the model: no place in the conversation."""
PASSED_OVER = (b'{"type":"api-request', b'{"type":"file-history-')
"""How the largest lines begin that say nothing here: they are not even decoded."""
SILENCE = 64
"""How many lines may stand between two of one answer: results of parallel calls and what hooks and sub-agents write."""


@dataclass(slots=True)
class Log:
    """What one pass over a transcript finds: the chain of its main line, side chains, and the state lines that matter.

    `began` is the first time in the file, `own` the first after the lines that are marked as copied, the last of which
    came from `parent` and stands at the offset `copied`.
    """

    chain: dict[str, Record] = field(default_factory=dict)
    side: dict[str, Record] = field(default_factory=dict)
    custom_title: str | None = None
    ai_title: str | None = None
    summaries: list[Record] = field(default_factory=list)
    tag: str | None = None
    mode: str | None = None
    began: str | None = None
    own: str | None = None
    latest: str = ""
    parent: str | None = None
    copied: int = -1

    @property
    def title(self) -> str | None:
        """The agent's own title, else a summary; up to 2.0 a file begins with those of other sessions."""
        leaves = ((summary, self.chain.get(text_at(summary, "leafUuid") or "")) for summary in self.summaries)
        own = (text_at(summary, "summary") for summary, leaf in leaves if leaf and leaf[OFFSET] > self.copied)
        return self.ai_title or next(own, None)


def sessions(agent: str, ref: SessionRef) -> list[Session]:
    """The session of a file and the sub-agents recorded inside it."""
    if os.path.basename(ref.path).startswith("agent-"):
        log = read_log(ref.path, None)
        return [subagent_session(agent, ref, log)] if log.chain else []
    log = read_log(ref.path, ref.key)
    found = [main_session(agent, ref, log), *inline_subagents(agent, ref, log.side)]
    return [one for one in found if one.messages or one.charges]


def read_log(path: str, session_id: str | None) -> Log:
    """What a transcript holds; without an id it is a sub-agent's, all of it a side chain of its parent."""
    log = Log()
    for number, record in enumerate(placed(path, PASSED_OVER)):
        stamped = text_at(record, "timestamp")
        if stamped:
            log.began = log.began or stamped
            log.latest = max(log.latest, stamped)
        if session_id:
            note_origin(log, record, stamped, session_id)
        kind = text_at(record, "type")
        if kind and kind in STATE:
            note_state(log, kind, record)
        elif kind not in COPIES and ("uuid" in record or "message" in record):
            lines = log.side if record.get("isSidechain") is True and session_id else log.chain
            lines[text_at(record, "uuid") or f"line {number}"] = record
    if log.own is None and not any("forkedFrom" in record for record in log.chain.values()):
        log.parent, log.copied = None, -1  # no line is its own, and none says that it is a copy: the file was renamed
    return log


def note_origin(log: Log, record: Record, stamped: str | None, session_id: str) -> None:
    """Copied lines come first in the file of a fork."""
    made_by = maker(record)
    if made_by and made_by != session_id:
        log.parent, log.copied = made_by, record[OFFSET]
        if record.get("type") != "assistant":  # where answers alone are marked, lines between them do not tell
            log.own = None
    elif log.own is None:
        log.own = stamped


def note_state(log: Log, kind: str, record: Record) -> None:
    """State lines have no place in the conversation; of those that repeat, the last one counts."""
    match kind:
        case "custom-title":
            log.custom_title = text_at(record, "customTitle") or log.custom_title
        case "ai-title":
            log.ai_title = text_at(record, "aiTitle") or log.ai_title
        case "summary":
            log.summaries.append(record)
        case "tag":
            log.tag = text_at(record, "tag")
        case "permission-mode":
            log.mode = text_at(record, "permissionMode") or log.mode


def main_session(agent: str, ref: SessionRef, log: Log) -> Session:
    session_id = ref.key
    spilled = Spilled(ref.path)
    messages, places = conversation(active(log.chain), spilled)
    copied = sum((message.offset or 0) <= log.copied for message in messages)
    lines = log.chain.values()
    beside = (text_at(document(file), "customTitle") for file in ref.files if file.endswith("custom-title.json"))
    return _base.session(
        agent,
        session_id,
        [*_base.inherited(messages[:copied]), *messages[copied:]],
        path=ref.path,
        title=log.custom_title or next(beside, None) or log.title,
        charges=charges(lines, session_id, places),
        created_at=when(log.own or (log.latest if log.parent else log.began)),
        updated_at=when(log.latest),
        began=when(log.began),
        tags=(log.tag,) if log.tag else (),
        forked_from=log.parent,
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
    spilled = Spilled(ref.path)
    messages, places = conversation(active(log.chain), spilled)
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
        based_on=tuple(spilled.elsewhere),
        **surroundings(lines),
    )


def inline_subagents(agent: str, ref: SessionRef, side: dict[str, Record]) -> Iterator[Session]:
    """Up to 2.0.0 a sub-agent's lines stand among its parent's and have no id: one is made of both."""
    chains: dict[str, dict[str, Record]] = {}
    roots: dict[str, str] = {}
    for uuid, record in side.items():
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


def surroundings(lines: Reversible[Record]) -> dict[str, Any]:
    """Where it ran: the first cwd (a resume from elsewhere appends to the same file), the latest branch and version."""
    return {
        "cwd": next((cwd for record in lines if (cwd := text_at(record, "cwd"))), None),
        "git_branch": last_of(lines, "gitBranch"),
        "agent_version": last_of(lines, "version"),
    }


def last_of(lines: Reversible[Record], name: str) -> str | None:
    return next((text for record in reversed(lines) if (text := text_at(record, name))), None)


# One message


def message_at(path: str, offset: int) -> Message | None:
    """The message that begins at an offset; None where none does, or more than one: results of tools can share a line."""
    messages, _ = conversation(lines_of_message(path, offset), Spilled(path))
    found = [message for message in messages if message.offset == offset]
    return found[0] if len(found) == 1 else None


def lines_of_message(path: str, offset: int) -> list[Record]:
    """The line at an offset and, if it begins an answer, the others of that answer; of a line written twice the last."""
    following = placed(path, PASSED_OVER, offset)
    first = next(following, None)
    if first is None or first[OFFSET] != offset:
        return []
    own = [first, *rest_of_answer(first, following)]
    return list({text_at(line, "uuid") or line[OFFSET]: line for line in own}.values())


def rest_of_answer(first: Record, following: Iterable[Record]) -> Iterator[Record]:
    """The other lines of an answer: it is over where the model goes on from it, or when none has come for long."""
    id = answer_id(first)
    descended = {text_at(first, "uuid") or ""}
    silent = 0
    for record in following if id else ():
        goes_on = text_at(record, "parentUuid") in descended
        if answer_id(record) == id and record.get("isSidechain") == first.get("isSidechain"):
            silent, goes_on = 0, True
            yield record
        elif silent == SILENCE or (goes_on and kind_of(record) == "assistant"):
            return
        silent += 1
        if goes_on:
            descended.add(text_at(record, "uuid") or "")


def answer_id(record: Record) -> str | None:
    return text_at(record, "message", "id") if kind_of(record) == "assistant" else None
