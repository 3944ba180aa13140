"""Claude Code's JSONL: from records to sessions.

One answer of the model is written as one line per content block, all with the answer's `message.id` and its usage; a
line that was flushed before the stream ended has a placeholder for the output count, so the highest count is the right
one. Lines form a tree by `parentUuid`; a rewind leaves the abandoned branch in the file, a compaction starts anew at a
boundary that names what came before as `logicalParentUuid`.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from amux.model import Attachment, Charge, Claim, Json, Message, Session, ToolCall, ToolResult, Usage
from amux.readers import _base
from amux.readers._base import SessionRef, stamp
from amux.readers._json import OFFSET, Record, at, document, int_at, list_at, placed, text_at, time_at, usd_at, when
from amux.readers._tree import branch

SPILLED = re.compile(r"([0-9a-fA-F-]{36})[/\\]tool-results[/\\]([^/\\]+)$")
TAG = re.compile(r"</?[a-z][a-z-]*>")
COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
STATE = frozenset({"custom-title", "ai-title", "summary", "tag", "permission-mode"})
COPIES = frozenset({"api-request", "api-request-shape", "api-request-blob"})
"""Lines that repeat what was sent to the model: no place in the conversation."""
SYNTHETIC = "<synthetic>"
"""The model of lines that the program wrote itself."""
INJECTED = ("<system-reminder>", "<ide_opened_file>", "<ide_selection>", "<local-command-caveat>", "Caveat:")
EVENTS = {
    "<command-name>": "command",
    "<command-message>": "command",
    "<local-command-stdout>": "command",
    "<local-command-stderr>": "command",
    "<bash-input>": "shell",
    "<bash-stdout>": "shell",
    "<bash-stderr>": "shell",
    "<task-notification>": "notification",
    "[Request interrupted by user": "interrupt",
}
"""What the program writes in the user's name, by how it begins, and the event it tells of."""


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
        own = (text_at(record, "summary") for record in self.summaries if record.get("leafUuid") in self.chain)
        return self.custom_title or self.ai_title or next(own, None)


def sessions(agent: str, ref: SessionRef) -> list[Session]:
    """The session of a file and the sub-agents recorded inside it."""
    subagent = os.path.basename(ref.path).startswith("agent-")
    log = read_log(ref.path, subagent=subagent)
    if not log.chain:
        return []
    if subagent:
        return [subagent_session(agent, ref, log)]
    main = main_session(agent, ref, log)
    return [main, *inline_subagents(agent, ref, log)]


def read_log(path: str, *, subagent: bool) -> Log:
    log = Log()
    for number, record in enumerate(placed(path)):
        stamped = record.get("timestamp")
        if isinstance(stamped, str):
            log.began = log.began or stamped
            log.latest = max(log.latest, stamped)
        kind = record.get("type")
        if kind in STATE:
            note_state(log, kind, record)
        elif kind not in COPIES and ("uuid" in record or "message" in record):
            lines = log.side if record.get("isSidechain") is True and not subagent else log.chain
            uuid = record.get("uuid")
            lines[uuid if isinstance(uuid, str) else f"line {number}"] = record
    return log


def note_state(log: Log, kind: Any, record: Record) -> None:
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
        root = roots[uuid] = roots.get(record.get("parentUuid") or "", uuid)
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


# Whose record it is


def maker(record: Record) -> str | None:
    """The session a marker says a line was copied from."""
    return text_at(record, "forkedFrom", "sessionId") or text_at(record, "requestSessionId")


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


# The active branch


def active(chain: dict[str, Record]) -> list[Record]:
    """The lines the program would show on resume, with what came before a compaction, in file order."""
    parents: dict[str, str | None] = {}
    previous = None
    for uuid, record in chain.items():
        parent = record.get("parentUuid") or record.get("logicalParentUuid")
        # A parent that is missing was a torn or unwritten line: what stands before it in the file came before it.
        parents[uuid] = parent if parent is None or parent in chain else previous
        previous = uuid
    on_branch = set(branch(parents, leaf(chain, parents)))
    on_branch |= parallel(chain, on_branch)
    return [record for uuid, record in chain.items() if uuid in on_branch]


def leaf(chain: dict[str, Record], parents: dict[str, str | None]) -> str | None:
    """The last answer or prompt in the file that ends a branch."""
    has_child = set(parents.values())
    position = {uuid: number for number, uuid in enumerate(chain)}
    best = None
    for end in reversed(chain):
        if end in has_child:
            continue
        spoken = next((uuid for uuid in reversed(branch(parents, end)) if spoke(chain[uuid])), None)
        if spoken and (best is None or position[spoken] > position[best]):
            best = spoken
        if best and position[best] > position[end]:
            break  # branches that ended earlier cannot have a later end
    return best or next(reversed(chain), None)


def spoke(record: Record) -> bool:
    return kind_of(record) in ("user", "assistant") and not record.get("isMeta") and not record.get("teamName")


def kind_of(record: Record) -> str | None:
    """A record's type; records of other tools may have only the message's role."""
    return text_at(record, "type") or text_at(record, "message", "role")


def parallel(chain: dict[str, Record], on_branch: set[str]) -> set[str]:
    """Lines beside the branch that belong to it: each result of parallel calls hangs on its own call's line."""
    beside = {uuid: record for uuid, record in chain.items() if uuid not in on_branch}
    if not beside:
        return set()
    answers = {id for uuid in on_branch if (id := text_at(chain[uuid], "message", "id"))}
    same = {uuid for uuid, record in beside.items() if text_at(record, "message", "id") in answers}
    lines = (chain[uuid] for uuid in on_branch | same)
    calls = {block.get("id") for record in lines for block in blocks(record) if block.get("type") == "tool_use"}
    return same | {
        uuid
        for uuid, record in beside.items()
        if any(block.get("tool_use_id") in calls for block in blocks(record) if "tool_use_id" in block)
    }


# From lines to messages


@dataclass(slots=True)
class Answer:
    """One response of the model, gathered from the lines of its blocks."""

    timestamp: datetime | None
    model: str | None
    offset: int | None
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: dict[str, tuple[str, Json]] = field(default_factory=dict)

    def add(self, block: Record) -> None:
        match block.get("type"):
            case "text" if text := text_at(block, "text"):
                self.texts.append(text)
            case "thinking" if text := text_at(block, "thinking"):
                self.thoughts.append(text)
            case "tool_use" | "server_tool_use" if id := text_at(block, "id"):
                self.calls[id] = (text_at(block, "name") or "", block.get("input"))

    def message(self, results: dict[str, ToolCall]) -> Message:
        unanswered = (ToolCall(id, name, given) for id, (name, given) in self.calls.items())
        return Message(
            "assistant",
            "\n\n".join(self.texts),
            self.timestamp,
            tool_calls=tuple(
                ToolCall(call.tool_call_id, call.tool_name, call.input, done.output, done.duration_ms, done.is_error)
                if (done := results.get(call.tool_call_id))
                else call
                for call in unanswered
            ),
            thinking="\n\n".join(self.thoughts) or None,
            model=self.model,
            offset=self.offset,
        )


class Spilled:
    """Output too big for its line, in `<session>/tool-results/`: its recorded path is of the machine that wrote it."""

    def __init__(self, transcript: str) -> None:
        self.project = os.path.dirname(transcript)
        self.elsewhere: set[str] = set()

    def text(self, recorded: str) -> str | None:
        if not (found := SPILLED.search(recorded)):
            return None
        owner, name = found.groups()
        path = f"{self.project}/{owner}/tool-results/{name}"
        self.elsewhere.add(owner)
        if not stamp(path):
            return None
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")


def conversation(lines: Iterable[Record], spilled: Spilled) -> tuple[list[Message], dict[str, int]]:
    """The messages of a branch, and for each answer's id its place among them."""
    spoken: list[Message | Answer] = []
    places: dict[str, int] = {}
    results: dict[str, ToolCall] = {}
    names: dict[str, str] = {}
    for record in lines:
        match kind_of(record):
            case "assistant" if record.get("isApiErrorMessage") or at(record, "message", "model") == SYNTHETIC:
                spoken += synthetic(record)
            case "assistant":
                answer = answer_of(record, spoken, places)
                for block in blocks(record):
                    answer.add(block)
                names.update((id, name) for id, (name, _) in answer.calls.items())
            case "user":
                for message in said(record, names, spilled):
                    spoken.append(message)
                    note_result(message, record, results)
            case "attachment":
                spoken += queued(record)
            case "system":
                spoken += told(record)
    return [one.message(results) if isinstance(one, Answer) else one for one in spoken], places


def answer_of(record: Record, spoken: list[Message | Answer], places: dict[str, int]) -> Answer:
    """The answer a line belongs to; a new one at the first line of its message id."""
    id = text_at(record, "message", "id")
    if id and id in places:
        found = spoken[places[id]]
        if isinstance(found, Answer):
            return found
    answer = Answer(time_at(record, "timestamp"), text_at(record, "message", "model"), record.get(OFFSET))
    if id:
        places[id] = len(spoken)
    spoken.append(answer)
    return answer


def note_result(message: Message, record: Record, results: dict[str, ToolCall]) -> None:
    if message.tool_result and (id := message.tool_result.tool_call_id):
        took = int_at(record, "toolUseResult", "totalDurationMs") or int_at(record, "toolUseResult", "durationMs")
        results[id] = ToolCall(id, "", None, message.content, took, message.is_error)


def blocks(record: Record) -> list[Record]:
    content = at(record, "message", "content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def synthetic(record: Record) -> Iterator[Message]:
    """What the program wrote in the model's name: an error is worth showing, "No response requested." is not."""
    if record.get("isApiErrorMessage"):
        text = "\n".join(text for block in blocks(record) if (text := text_at(block, "text")))
        yield Message(
            "system", text, time_at(record, "timestamp"), is_error=True, event="error", offset=record.get(OFFSET)
        )


def said(record: Record, names: dict[str, str], spilled: Spilled) -> Iterator[Message]:
    """What a `user` line holds: tool results, a compaction's summary, the program's own notes, or a typed prompt."""
    time = time_at(record, "timestamp")
    found = blocks(record)
    results = [block for block in found if block.get("type") == "tool_result"]
    if results:
        for block in results:
            yield tool_message(block, record, time, names, spilled)
        return
    if record.get("isMeta"):
        return
    texts = [text for block in found if (text := text_at(block, "text")) and not text.startswith(INJECTED)]
    text = "\n".join(texts)
    attached = tuple(attachment for block in found if (attachment := attachment_of(block)))
    if record.get("isCompactSummary"):
        yield Message("system", text, time, event="compaction", offset=record.get(OFFSET))
    elif event := event_of(text):
        if told := spelled_out(text):
            yield Message("system", told, time, event=event, offset=record.get(OFFSET))
    elif text or attached:
        yield Message("user", text, time, attachments=attached, offset=record.get(OFFSET))


def event_of(text: str) -> str | None:
    if not text.startswith(("<", "[")):
        return None
    return next((event for start, event in EVENTS.items() if text.startswith(start)), None)


def spelled_out(text: str) -> str:
    """A note of the program without its markup; a slash command as it was typed."""
    if command := COMMAND.search(text):
        given = ARGUMENTS.search(text)
        return f"{command[1]} {given[1] if given else ''}".strip()
    return TAG.sub("", text).strip()


def attachment_of(block: Record) -> Attachment | None:
    if block.get("type") not in ("image", "document"):
        return None
    return Attachment(str(block["type"]), text_at(block, "source", "media_type"), text_at(block, "title"))


def tool_message(
    block: Record, record: Record, time: datetime | None, names: dict[str, str], spilled: Spilled
) -> Message:
    content = block.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = "\n".join(text for part in parts if (text := text_at(part, "text")))
    if text.startswith("<persisted-output>"):
        path = text_at(record, "toolUseResult", "persistedOutputPath")
        text = (path and spilled.text(path)) or text_at(record, "toolUseResult", "stdout") or text
    id = text_at(block, "tool_use_id")
    return Message(
        "tool",
        text,
        time,
        tool_result=ToolResult(id, names.get(id or ""), text),
        is_error=block.get("is_error") is True,
        attachments=tuple(
            attachment for part in parts if isinstance(part, dict) and (attachment := attachment_of(part))
        ),
        offset=record.get(OFFSET),
    )


def queued(record: Record) -> Iterator[Message]:
    """A prompt typed while the turn ran is kept only as an attachment; all other attachments are injected context."""
    attachment = record.get("attachment")
    if at(attachment, "type") != "queued_command" or at(attachment, "commandMode") not in ("prompt", None):
        return
    origin = at(record, "origin", "kind") or at(attachment, "origin", "kind")
    human = record.get("humanTurn") is True or at(attachment, "humanTurn") is True or origin == "human"
    prompt = at(attachment, "prompt")
    text = (
        prompt
        if isinstance(prompt, str)
        else "\n".join(t for block in list_at(prompt) if (t := text_at(block, "text")))
    )
    if text and (human or origin is None) and not event_of(text):
        yield Message("user", text, time_at(record, "timestamp"), offset=record.get(OFFSET))


def told(record: Record) -> Iterator[Message]:
    text = text_at(record, "content") or ""
    if record.get("subtype") == "local_command" and (event := event_of(text)) and (shown := spelled_out(text)):
        yield Message("system", shown, time_at(record, "timestamp"), event=event, offset=record.get(OFFSET))


# Charges


def charges(lines: Iterable[Record], session_id: str, places: dict[str, int]) -> list[Charge]:
    """One charge per response of the model, abandoned branches included: they were paid for."""
    best: dict[str, tuple[int, Record]] = {}
    for record in lines:
        message = record.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("usage"), dict) or kind_of(record) != "assistant":
            continue
        if message.get("model") == SYNTHETIC or record.get("isApiErrorMessage"):
            continue
        key = text_at(message, "id") or text_at(record, "requestId") or text_at(record, "uuid") or ""
        output = int_at(message["usage"], "output_tokens") or 0
        # The whole line with the highest output, not field by field: a fallback in mid-stream changes them all.
        if key not in best or output >= best[key][0]:
            best[key] = output, record
    return [charge(key, record, session_id, places.get(key)) for key, (_, record) in best.items()]


def charge(key: str, record: Record, session_id: str, place: int | None) -> Charge:
    usage = at(record, "message", "usage")
    made_by = maker(record)
    claim: Claim = "copied" if made_by and made_by != session_id else "unknown"
    return Charge(
        key=key,
        at=time_at(record, "timestamp"),
        model=text_at(record, "message", "model"),
        usage=usage_of(usage),
        hour_write_tokens=int_at(usage, "cache_creation", "ephemeral_1h_input_tokens") or 0,
        usd=usd_at(record, "costUSD") or None,  # 0.2.126 writes 0 in the copies a resume makes
        claim=claim,
        message=place,
    )


def usage_of(usage: Json) -> Usage:
    """Input excludes the cache, output includes thinking: amux's own meaning."""
    return Usage(
        input_tokens=int_at(usage, "input_tokens"),
        output_tokens=int_at(usage, "output_tokens"),
        thinking_tokens=int_at(usage, "output_tokens_details", "thinking_tokens"),
        cached_tokens=int_at(usage, "cache_read_input_tokens"),
        cache_write_tokens=int_at(usage, "cache_creation_input_tokens"),
    )
