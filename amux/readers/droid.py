"""Droid, Factory's CLI.

`~/.factory/sessions/<cwd with its separators as "-">/<uuid>.jsonl`; FACTORY_HOME_OVERRIDE stands for the home. Up to October
2025, and for sessions without a cwd, files lie in `sessions/` itself; the side questions of /btw in `sessions/btw/`. Beside
each lies `<uuid>.settings.json` with model, tags and usage; its `.bak` is an older copy. `cache/` and `sessions-index.json`
hold indexes that lag. Line 1 is the header and is rewritten in place when the title changes. No sessions: everything else
in `~/.factory`, of which `config.json` and `settings.json` hold keys.

Tokens are kept per session only. A fork and a rewind copy lines with their ids and count from zero; the header names the
last line copied, in 0.99 only the parent. /compact goes on in a new file that has the parent's name and a summary instead of
its lines, but whose usage begins at the parent's. Only forks and those have a `parent`; a sub-agent has the session that
called it, and a fork of one keeps that. Credits are no money.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from amux.errors import UnreadableSession
from amux.model import Attachment, Charge, Json, Message, Session, SessionSummary, ToolCall, ToolResult, Usage
from amux.readers import _base
from amux.readers._base import Reader, SessionRef, entries, file_ref, stamp
from amux.readers._json import Record, at, dict_at, document, int_at, list_at, records, text_at, time_at
from amux.readers._tree import branch

ID = re.compile(r"\w[\w.-]*", re.ASCII)
PWD = re.compile(r"^% pwd\r?\n(\S.*)$", re.MULTILINE)
INJECTED = {"<system-reminder>": "</system-reminder>", "<system-notification>": "</system-notification>"}
UNTITLED = "New Session"
SERIALIZED = "provider_switch_serialization"
"""A summary made without a model when the provider changed: it repeats the whole conversation."""
PRIVATE = frozenset({"systemInfo", "systemInfoText"})
"""What a summary tells of the user's machine, the names of its environment variables too."""


class DroidReader(Reader):
    title = "Droid"
    program = "droid"
    install = "npm install -g droid"

    def roots(self) -> Sequence[Path]:
        return [self.host.directory("FACTORY_HOME_OVERRIDE") / ".factory" / "sessions"]

    def refs(self) -> Iterator[SessionRef]:
        # The same session can be met twice, once where it lay in 2025: the longer one has it all.
        found: dict[str, SessionRef] = {}
        for path in transcripts(self.roots()[0]):
            ref = file_ref(os.path.basename(path).removesuffix(".jsonl"), path, sidecar(path))
            if ref and (ref.key not in found or found[ref.key].size < ref.size):
                found[ref.key] = ref
        yield from found.values()

    def read(self, ref: SessionRef) -> Sequence[Session]:
        log = read_log(ref.path)
        parent = text_at(log.header, "parent")
        if parent and ID.fullmatch(parent) and not caller(log) and "forkedAtMessageId" not in log.header:
            return sessions(self.agent, ref, log, self.transcript(parent))
        return sessions(self.agent, ref, log, None)

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        lines = [{name: value for name, value in line.items() if name not in PRIVATE} for line in records(ref.path)]
        return {"records": lines, "settings": settings_of(ref.path)}

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        # There is no option for a model here: -m belongs to `droid exec`, which wants a prompt.
        return [self.program, "--resume", session.session_id] if ID.fullmatch(session.session_id) else None

    def fork_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        return [self.program, "--fork", session.session_id] if ID.fullmatch(session.session_id) else None

    def transcript(self, session_id: str) -> str:
        """Where a session's file is, or would be."""
        root = self.roots()[0]
        beside = [os.path.join(entry.path, f"{session_id}.jsonl") for entry in entries(root) if entry.is_dir()]
        return next((path for path in beside if stamp(path)), str(root / f"{session_id}.jsonl"))


def transcripts(root: Path) -> Iterator[str]:
    for directory, below, names in os.walk(root):
        below.sort()
        yield from (os.path.join(directory, name) for name in sorted(names) if name.endswith(".jsonl"))


def sidecar(path: str) -> str:
    return path.removesuffix(".jsonl") + ".settings.json"


def settings_of(path: str) -> Record:
    """What lies beside a transcript; nothing when it is missing or damaged."""
    try:
        return dict_at(document(sidecar(path))) if stamp(sidecar(path)) else {}
    except UnreadableSession:
        return {}


# The file


@dataclass(slots=True)
class Log:
    """What one pass over a file finds: its header, and its messages and summaries by id."""

    header: Record = field(default_factory=dict)
    lines: dict[str, Record] = field(default_factory=dict)
    times: list[datetime] = field(default_factory=list)
    settings: Record = field(default_factory=dict)


def read_log(path: str) -> Log:
    log = Log(settings=settings_of(path))
    for number, record in enumerate(records(path)):
        match record.get("type"):
            case "session_start":
                log.header = log.header or record
            case "message" | "compaction_state":
                log.lines[text_at(record, "id") or f"line {number}"] = record
        if time := time_at(record, "timestamp"):
            log.times.append(time)
    return log


def sessions(agent: str, ref: SessionRef, log: Log, parent: str | None) -> list[Session]:
    """The session of a file; none of a file with nothing but a header. `parent` is the file it may have begun from."""
    session_id = text_at(log.header, "id") or ref.key
    if not ID.fullmatch(session_id):
        session_id = ref.key
    copied = inherited_lines(log, parent)
    own = list(islice(log.lines.values(), copied, None))
    messages = conversation(log, copied)
    charges = charges_of(session_id, log, own, parent)
    if not messages and not charges:
        return []
    own_times = [time for record in own if (time := time_at(record, "timestamp"))]
    made = _base.session(
        agent,
        session_id,
        messages,
        path=ref.path,
        title=title(log.header, messages),
        charges=charges,
        created_at=min(own_times, default=max(log.times, default=None)),
        updated_at=max(log.times, default=None),
        began=min(own_times, default=None),
        model=text_at(log.settings, "model"),
        cwd=cwd(log),
        tags=tags(log.settings),
        archived=bool(log.settings.get("archivedAt")),
        mode=text_at(log.settings, "autonomyMode") or text_at(log.settings, "autonomyLevel"),
        usage_recorded=bool(charges) or (bool(log.settings) and not any(map(answered, own))),
        based_on=(os.path.basename(parent).removesuffix(".jsonl"),) if parent else (),
        **family(log),
    )
    models = tuple(models_of(own))
    return [replace(made, models=models) if len(models) > 1 else made]


def inherited_lines(log: Log, parent: str | None) -> int:
    """How many lines a fork copied."""
    ids = list(log.lines)
    last = text_at(log.header, "forkedAtMessageId")
    if last in log.lines:
        return ids.index(last) + 1
    if last:  # that line was lost: the one after it still names it
        return next((place for place, id in enumerate(ids) if log.lines[id].get("parentId") == last), 0)
    shared = read_log(parent).lines if parent and stamp(parent) else {}
    return max((place for place, id in enumerate(ids, 1) if id in shared), default=0)


def caller(log: Log) -> str | None:
    """The session that called a sub-agent. Forks take over tags and header."""
    if "forkedAtMessageId" in log.header:
        return None
    tagged = None if text_at(log.header, "parent") else called_by(log.settings)
    return text_at(log.header, "callingSessionId") or tagged


def called_by(settings: Record) -> str | None:
    named = (tag for tag in list_at(settings, "tags") if at(tag, "name") == "subagent")
    return next((id for tag in named if (id := text_at(tag, "metadata", "callingSessionId"))), None)


def family(log: Log) -> dict[str, Any]:
    if parent := caller(log):
        return {"kind": "subagent", "parent_id": parent}
    return {"forked_from": text_at(log.header, "parent")}


def tags(settings: Record) -> tuple[str, ...]:
    named = (tag if isinstance(tag, str) else text_at(tag, "name") for tag in list_at(settings, "tags"))
    return tuple(dict.fromkeys(name for name in named if name))


def cwd(log: Log) -> str | None:
    """The directory it last ran in; before there was one in the header, the program told the model."""
    if known := text_at(log.header, "lastCwd") or text_at(log.header, "cwd"):
        return known
    texts = (
        text for record in islice(log.lines.values(), 1) for block in blocks(record) if (text := text_at(block, "text"))
    )
    return next((told[1].strip() for text in texts if (told := PWD.search(text))), None)


def title(header: Record, messages: Iterable[Message]) -> str | None:
    """What it was named; None where that is only the first prompt on one line, cut at 150 characters."""
    given = text_at(header, "sessionTitle")
    if not given or given == UNTITLED:
        given = text_at(header, "title")
    if not given or given == UNTITLED or not typed(given):
        return None
    first = next((message.content for message in messages if message.role == "user"), "")
    repeated = " ".join(first.split()).startswith(given.removesuffix("..."))
    return None if repeated and header.get("isSessionTitleManuallySet") is not True else given


# From lines to messages


@dataclass(frozen=True, slots=True)
class Tools:
    """Calls and answers by the id that pairs them."""

    names: dict[str, str]
    results: dict[str, Record]


def conversation(log: Log, copied: int) -> list[Message]:
    shown = active(log.lines)
    before = [record for id, record in islice(log.lines.items(), copied) if id in shown]
    after = [record for id, record in islice(log.lines.items(), copied, None) if id in shown]
    tools = tools_of([*before, *after])
    return [
        *_base.inherited(message for record in before for message in said(record, tools)),
        *(message for record in after for message in said(record, tools)),
    ]


def active(lines: dict[str, Record]) -> set[str]:
    """The branch that ends at the last message, and the summaries made on it."""
    parents: dict[str, str | None] = {}
    summaries: dict[str, str | None] = {}
    previous = None
    for id, record in lines.items():
        if record.get("type") == "compaction_state":
            summaries[id] = previous
            continue
        parent = text_at(record, "parentId")
        # Injected context has no parent and a torn line is none: what stands before in the file came before.
        parents[id] = parent if parent in lines and parent != id else previous
        previous = id
    shown = set(branch(parents, previous))
    return shown | {id for id, before in summaries.items() if before is None or before in shown}


def spoken(record: Record) -> Record:
    """The message of a line; other programs write its fields into the line itself."""
    return dict_at(record, "message") or record


def answered(record: Record) -> bool:
    """Whether the line is an answer of a model; one meant only for the user is the program's own."""
    return spoken(record).get("role") == "assistant" and spoken(record).get("visibility") != "user_only"


def blocks(record: Record) -> list[Record]:
    return parts(spoken(record).get("content"))


def parts(content: Any) -> list[Record]:
    """Content as blocks: it may be one string, or have bare strings among its blocks."""
    found = content if isinstance(content, list) else [content]
    as_blocks = ({"type": "text", "text": part} if isinstance(part, str) else part for part in found)
    return [part for part in as_blocks if isinstance(part, dict)]


def texts_of(found: Iterable[Record]) -> list[str]:
    return [text for block in found if block.get("type") == "text" and (text := text_at(block, "text"))]


def tools_of(lines: Iterable[Record]) -> Tools:
    tools = Tools({}, {})
    for block in (block for record in lines for block in blocks(record)):
        if block.get("type") == "tool_use" and (id := text_at(block, "id")):
            tools.names[id] = text_at(block, "name") or ""
        elif block.get("type") == "tool_result" and (id := text_at(block, "tool_use_id")):
            tools.results[id] = block
    return tools


def said(record: Record, tools: Tools) -> Iterator[Message]:
    time = time_at(record, "timestamp")
    if record.get("type") == "compaction_state":
        summary = text_at(record, "summaryText")
        if summary and record.get("summaryKind") != SERIALIZED:
            yield Message("system", summary, time, event="compaction")
        return
    if spoken(record).get("role") == "assistant":
        yield answer(record, time, tools)
    for block in blocks(record):
        if block.get("type") == "tool_result":
            yield result(block, time, tools)
    if spoken(record).get("role") == "user" and not hidden(record):
        yield from prompt(record, time)


def hidden(record: Record) -> bool:
    """Context for the model alone, and hooks that ran: lines of the user's that nobody typed."""
    line = spoken(record)
    context = (text_at(record, "id") or "").startswith("context-") or line.get("visibility") == "llm_only"
    unseen = line.get("hiddenFromUserViews") is True or line.get("isUserVisible") is False
    return context or unseen or "hookEventName" in line


def prompt(record: Record, time: datetime | None) -> Iterator[Message]:
    text = "\n".join(text for found in texts_of(blocks(record)) if (text := typed(found)))
    attached = attachments(blocks(record))
    if spoken(record).get("visibility") == "user_only":
        if text:
            yield Message("system", text, time, is_error=True, event="error")
    elif text or attached:
        yield Message("user", text, time, attachments=attached)


def typed(text: str) -> str:
    """What a person wrote of a text: injected context is a block of its own, or stands before the prompt."""
    for opening, closing in INJECTED.items():
        if text.lstrip().startswith(opening):
            _, closed, rest = text.rpartition(closing)
            text = rest.strip() if closed else ""
    return text


def answer(record: Record, time: datetime | None, tools: Tools) -> Message:
    line, found = spoken(record), blocks(record)
    thoughts = "\n\n".join(text for block in found if (text := text_at(block, "thinking")))
    # Responses models think in a field of the message; chat completions there and in a block.
    apart = text_at(line, "openaiReasoningSummary") or text_at(line, "chatCompletionReasoningContent")
    return Message(
        "assistant",
        "\n\n".join(texts_of(found)),
        time,
        tool_calls=tuple(call(block, tools) for block in found if block.get("type") == "tool_use"),
        thinking=thoughts or apart,
        model=text_at(line, "modelId"),
    )


def call(block: Record, tools: Tools) -> ToolCall:
    id = text_at(block, "id") or ""
    done = tools.results.get(id)
    output = "\n".join(texts_of(parts(done.get("content")))) if done else None
    return ToolCall(id, text_at(block, "name") or "", block.get("input"), output, is_error=at(done, "is_error") is True)


def result(block: Record, time: datetime | None, tools: Tools) -> Message:
    found = parts(block.get("content"))
    id, text = text_at(block, "tool_use_id"), "\n".join(texts_of(found))
    return Message(
        "tool",
        text,
        time,
        tool_result=ToolResult(id, tools.names.get(id or ""), text),
        is_error=block.get("is_error") is True,
        attachments=attachments(found),
    )


def attachments(found: Iterable[Record]) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(
            str(block["type"]),
            text_at(block, "source", "media_type") or text_at(block, "source", "mime"),
            text_at(block, "source", "name") or text_at(block, "name"),
        )
        for block in found
        if block.get("type") in ("image", "document", "file")
    )


# Charges


def charges_of(session_id: str, log: Log, own: Sequence[Record], parent: str | None) -> list[Charge]:
    """One charge for all calls of the session; none when its settings do not tell, or tell of nothing."""
    if not isinstance(log.settings.get("tokenUsage"), dict):
        return []
    successor = parent and next(iter(log.lines.values()), {}).get("type") == "compaction_state"
    usage = usage_of(log.settings, settings_of(parent) if parent and successor else {})
    answers = [record for record in own if answered(record)]
    if not answers and not any(
        (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)
    ):
        return []
    times = [time for record in answers if (time := time_at(record, "timestamp"))]
    return [
        Charge(
            key=session_id,
            usage=usage,
            at=max(times or log.times, default=None),
            model=next(models_of(own), None) or text_at(log.settings, "model"),
            provider=text_at(log.settings, "providerLock"),
            claim="own",
            calls=len(answers) or 1,
            aggregate=True,
        )
    ]


def models_of(own: Iterable[Record]) -> Iterator[str]:
    """The models that answered, the one with the most answers first."""
    named = Counter(model for record in own if answered(record) and (model := text_at(spoken(record), "modelId")))
    return (model for model, _ in named.most_common())


def usage_of(settings: Record, before: Record) -> Usage:
    """Input without the cache, output with thinking: amux's own meaning. `before` is whose usage this one's began at."""

    def own(name: str) -> int | None:
        total = int_at(settings, "tokenUsage", name)
        return None if total is None else max(0, total - (int_at(before, "tokenUsage", name) or 0))

    return Usage(
        input_tokens=own("inputTokens"),
        output_tokens=own("outputTokens"),
        thinking_tokens=own("thinkingTokens"),
        cached_tokens=own("cacheReadTokens"),
        cache_write_tokens=own("cacheCreationTokens"),
    )


READER = DroidReader
