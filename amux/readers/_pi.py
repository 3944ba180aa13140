"""Transcripts made of pi's session entries: pi itself and what descends from it.

A header (`type: session`) and entries, one JSON object each, in the order they were written. Version 1 (no `version`) is a
plain sequence; since version 2 each entry has an `id` and a `parentId` and the entries form a tree whose leaf is the last
one written: nothing else says which branch is active. Entries of every type are nodes of the tree, so a message's parent
may be a label. Version 3 only renamed the role `hookMessage` to `custom`. Opening an old file with a newer program rewrites
it as version 3 with ids made up on the spot, so the same call can have an id in one copy and none, or another, in the next:
what all copies keep are its times and its usage.

A fork is a new file that begins with copies of its parent's entries, times included; its header is younger than those.

`usage` is that of one call: input without the cache, output with reasoning. Versions of pi's wire library before 0.70 (omp
13, openclaw 2026.2) added reasoning to the output of OpenAI chat models once more, and priced it so; they do not record how
much reasoning there was, so it stays as recorded. Before 0.81 compactions, branch summaries and tools that asked a model
recorded no usage.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from amux.model import Attachment, Charge, Claim, Json, Message, Session, ToolCall, ToolResult, Usage
from amux.readers import _base
from amux.readers._json import MAX_COUNT, Record, at, dict_at, int_at, list_at, text_at, time_at, usd_at
from amux.readers._tree import branch

Id = str | int
Named = tuple[str | None, str | None]
"""A provider and its name for a model."""

FILE = re.compile(r'<file name="([^"]*)">(.*?)</file>(?:\n|\Z)', re.DOTALL)
SKILL = re.compile(r'<skill name="([^"]+)"[^>]*>\n.*?\n</skill>\s*', re.DOTALL)
PICTURE = "[Image"
"""How the text begins that stands in a file's wrapper in place of a picture; mostly there is none."""
FAILED = ("error", "aborted")
SUMMARIES = {"compaction": "compaction", "branch_summary": "branch"}
"""Entries that hold a summary, and the event it tells of."""
CALLS = frozenset({"message", "usage", "model_usage", *SUMMARIES})
"""Entries that can record what a model call used."""


@dataclass(slots=True)
class Transcript:
    """A session's header and its entries in the order they were written, all branches."""

    header: Record
    entries: list[Record]
    opened: datetime | None = field(init=False)
    """When the header was written."""
    numbers: dict[Id, int] = field(init=False, default_factory=dict)
    """Where the entry of an id stands."""
    parents: list[int | None] = field(init=False, default_factory=list)
    """Where each entry's parent stands: always earlier, so there are no loops."""

    def __post_init__(self) -> None:
        self.opened = time_at(self.header, "timestamp")
        for number, record in enumerate(self.entries):
            self.parents.append(self.parent(number, record))
            if (id := id_of(record)) is not None:
                self.numbers[id] = number

    @classmethod
    def of(cls, records: Iterable[Record]) -> Self:
        """The transcript that records make; an empty header where there is none among them."""
        header: Record = {}
        entries = []
        for record in records:
            if record.get("type") != "session":
                entries.append(record)
            elif not header:
                header = record
        return cls(header, entries)

    def parent(self, number: int, record: Record, key: str = "parentId") -> int | None:
        """Where the entry stands that the record names under `key`; null makes it a root."""
        id = record.get(key)
        if isinstance(id, Id) and id in self.numbers:
            return self.numbers[id]
        if id is None and key in record:
            return None
        # Version 1 has no links; and one that is lost or leads nowhere is damage: what stands before it came before it.
        return number - 1 if number else None

    def branch(self, leaf: int | None = None) -> list[int]:
        """Where the entries from the root to a leaf stand; the leaf is the last one written unless another is given."""
        last = len(self.entries) - 1 if leaf is None else leaf
        return branch(dict(enumerate(self.parents)), last)

    @property
    def link(self) -> str | None:
        """What the header names as the session it was forked from or belongs to; `branchedFrom` in version 1."""
        return text_at(self.header, "parentSession") or text_at(self.header, "branchedFrom")

    @property
    def began(self) -> datetime | None:
        """A fork began with its header; 0.7 and 0.13 wrote the header after the first answer."""
        first = next((time for record in self.entries if (time := time_of(record))), None)
        if self.opened and first and not self.link:
            return min(self.opened, first)
        return self.opened or first

    @property
    def latest(self) -> datetime | None:
        spoken = (record for record in self.entries if message_of(record).get("role") in ("user", "assistant"))
        return max((time for record in spoken if (time := time_of(record))), default=None)

    def claim(self, record: Record) -> Claim:
        """Whether an entry was written here: one older than the header was copied, or the header came late."""
        time = time_of(record)
        if not self.opened or not time or time >= self.opened:
            return "own"
        return "copied" if self.link else "unknown"

    def models(self) -> list[Named]:
        """The provider and model in force at each entry of the tree."""
        found: list[Named] = []
        for record, parent in zip(self.entries, self.parents, strict=True):
            above = found[parent] if parent is not None else named(self.header)
            own = named(record) if names_model(record) else (None, None)
            found.append(own if own[1] else above)
        return found


def id_of(record: Record) -> Id | None:
    id = record.get("id")
    return id if isinstance(id, Id) and id != "" else None


def message_of(record: Record) -> Record:
    """The message of an entry; other tools write it bare."""
    return dict_at(record, "message") or (record if isinstance(record.get("role"), str) else {})


def time_of(record: Record) -> datetime | None:
    """When an entry was written: an answer's own time is that of the request."""
    return time_at(record, "timestamp") or time_at(record, "message", "timestamp")


def names_model(record: Record) -> bool:
    if record.get("type") == "model_change":
        return record.get("role") in (None, "default")  # omp also keeps models for other roles
    return message_of(record).get("role") == "assistant"


def named(record: Record) -> Named:
    """The provider and model that a model change, an answer or a version 1 header names, apart or in one string."""
    record = dict_at(record, "message") or record
    provider, model = text_at(record, "provider"), text_at(record, "modelId") or text_at(record, "model")
    if provider or not model or "/" not in model:
        return provider, model
    provider, _, model = model.partition("/")
    return provider, model


def session_name(entries: Iterable[Record]) -> str | None:
    """The last name given to a session; an empty one takes it away."""
    name: Any = None
    for record in entries:
        if record.get("type") == "session_info":
            name = record.get("name")
    return re.sub(r"[\r\n]+", " ", name) if isinstance(name, str) else None


# From entries to messages


@dataclass
class Conversation:
    """The messages of a branch. A descendant of pi changes the methods for what it writes differently."""

    transcript: Transcript
    messages: list[Message] = field(init=False, default_factory=list)
    places: dict[int, int] = field(init=False, default_factory=dict)
    """For the number of an entry the place of its message."""
    names: dict[str, str] = field(init=False, default_factory=dict)
    results: dict[str, ToolCall] = field(init=False, default_factory=dict)

    def follow(self, numbers: Iterable[int]) -> Self:
        for number in numbers:
            record = self.transcript.entries[number]
            told = list(self.told(record))
            if told:
                self.places[number] = len(self.messages)
            copied = self.transcript.claim(record) == "copied"
            self.messages += _base.inherited(told) if copied else told
        self.messages[:] = [self.answered(message) for message in self.messages]
        return self

    def told(self, record: Record) -> Iterator[Message]:
        """What an entry adds to the conversation; nothing for most types."""
        kind = record.get("type")
        if isinstance(kind, str) and kind in SUMMARIES:
            yield Message("system", text_at(record, "summary") or "", time_of(record), event=SUMMARIES[kind])
        elif kind == "custom_message":
            yield from self.note(record, record)
        elif message := message_of(record):
            yield from self.spoken(message, record)

    def spoken(self, message: Record, record: Record) -> Iterator[Message]:
        """`system` is the program's own prompt, `developer` what it injects: neither is shown."""
        match message.get("role"):
            case "user":
                yield from self.prompt(message, record)
            case "assistant":
                yield from self.answer(message, record)
            case "toolResult":
                yield self.result(message, record)
            case "bashExecution" | "pythonExecution":
                yield shell(message, time_of(record))
            case "custom" | "hookMessage":
                yield from self.note(message, record)

    def prompt(self, message: Record, record: Record) -> Iterator[Message]:
        text, attachments = typed(message.get("content"))
        if text or attachments:
            yield Message("user", text, time_of(record), attachments=attachments)

    def note(self, message: Record, record: Record) -> Iterator[Message]:
        """What an extension put into the context; one that is not displayed is its own business."""
        text = plain(message.get("content"))
        if text and message.get("display") is not False:
            yield Message("system", text, time_of(record), event="notification")

    def answer(self, message: Record, record: Record) -> Iterator[Message]:
        blocks = blocks_of(message.get("content"))
        calls = tuple(self.calls(blocks))
        spoken = Message(
            "assistant",
            "\n\n".join(text for block in blocks if (text := part(block, "text"))),
            time_of(record),
            tool_calls=calls,
            thinking="\n\n".join(text for block in blocks if (text := part(block, "thinking"))) or None,
            model=text_at(message, "model"),
        )
        stopped = message.get("stopReason")
        if stopped not in FAILED or spoken.content or spoken.thinking or calls:
            yield spoken
        if stopped == "error":
            reason = text_at(message, "errorMessage") or "error"
            yield Message("system", reason, time_of(record), is_error=True, event="error")
        elif stopped == "aborted":
            yield Message("system", text_at(message, "errorMessage") or "aborted", time_of(record), event="interrupt")

    def calls(self, blocks: Iterable[Record]) -> Iterator[ToolCall]:
        for block in blocks:
            if block.get("type") == "toolCall" and (id := text_at(block, "id")):
                self.names[id] = text_at(block, "name") or ""
                yield ToolCall(id, self.names[id], block.get("arguments"))

    def result(self, message: Record, record: Record) -> Message:
        id = text_at(message, "toolCallId")
        name = text_at(message, "toolName") or self.names.get(id or "")
        text, failed = self.output(message), message.get("isError") is True
        if id:
            self.results[id] = ToolCall(id, name or "", None, text, self.duration(message, record), failed)
        return Message(
            "tool",
            text,
            time_of(record),
            tool_result=ToolResult(id, name, text),
            is_error=failed,
            attachments=tuple(pictures(message.get("content"))),
        )

    def output(self, message: Record) -> str:
        return plain(message.get("content"))

    def duration(self, message: Record, record: Record) -> int | None:
        """How many milliseconds a tool took, where that was recorded."""
        for path in (("durationMs",), ("details", "durationMs"), ("details", "wallTimeMs")):
            took = at(message, *path)
            if isinstance(took, int | float) and not isinstance(took, bool) and 0 <= took <= MAX_COUNT:
                return round(took)
        return None

    def answered(self, message: Message) -> Message:
        """The message, each of its calls with the result that came later."""
        if not any(call.tool_call_id in self.results for call in message.tool_calls):
            return message
        return replace(message, tool_calls=tuple(self.done(call) for call in message.tool_calls))

    def done(self, call: ToolCall) -> ToolCall:
        result = self.results.get(call.tool_call_id)
        if not result:
            return call
        return replace(call, output=result.output, duration_ms=result.duration_ms, is_error=result.is_error)


def blocks_of(content: Json) -> list[Record]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in list_at(content) if isinstance(block, dict)]


def part(block: Record, kind: str) -> str | None:
    """The text of a block of that kind: it stands under the kind's own name."""
    return text_at(block, kind) if block.get("type") == kind else None


def plain(content: Json) -> str:
    return "\n".join(text for block in blocks_of(content) if (text := part(block, "text")))


def pictures(content: Json, names: Sequence[str] = ()) -> Iterator[Attachment]:
    """The pictures of a message, and what is known by name only."""
    given = list(names)
    for block in blocks_of(content):
        if block.get("type") == "image":
            yield Attachment("image", text_at(block, "mimeType"), given.pop(0) if given else None)
    for name in given:
        yield Attachment("image", None, name)


def typed(content: Json) -> tuple[str, tuple[Attachment, ...]]:
    """What the user typed, without the files and the skill that the program put in front of it."""
    texts: list[str] = []
    files: list[Attachment] = []
    shown: list[str] = []
    for block in blocks_of(content):
        text = part(block, "text") or ""
        while wrapped := FILE.match(text):
            name, inside = wrapped.groups()
            if not inside or inside.startswith(PICTURE):
                shown.append(name)
            else:
                files.append(Attachment("file", None, name))
            text = text[wrapped.end() :]
        if skill := SKILL.match(text):
            text = f"/skill:{skill[1]} {text[skill.end() :]}".rstrip()
        if text:
            texts.append(text)
    return "\n".join(texts), (*files, *pictures(content, shown))


def shell(message: Record, time: datetime | None) -> Message:
    """A command of the user's own: neither a prompt nor a call of the model."""
    command = text_at(message, "command") or text_at(message, "code") or ""
    return Message("system", f"$ {command}\n{text_at(message, 'output') or ''}".strip(), time, event="shell")


# Charges


def charges(transcript: Transcript, places: dict[int, int]) -> list[Charge]:
    """One charge per record of a model call, abandoned branches included: they were paid for."""
    found: dict[str, Charge] = {}
    holders: dict[str, Id | None] = {}
    models = transcript.models()
    for number, record in enumerate(transcript.entries):
        billed = bill(record)
        if not billed or failed_unbilled(billed):
            continue
        key = call_key(transcript, number, billed)
        # Two entries of one file are two calls, however alike; the same entry written twice is one.
        while key in holders and holders[key] != id_of(record):
            key += "+"
        holders[key] = id_of(record)
        found[key] = charge(key, billed, transcript, number, caller(transcript, number, models), places.get(number))
    return list(found.values())


def bill(record: Record) -> Record:
    """The part of an entry that holds the usage of a call; empty where it records none."""
    if isinstance(record.get("type"), str) and record["type"] not in CALLS:
        return {}
    holder = message_of(record) or record
    return holder if isinstance(holder.get("usage"), dict) else {}


def failed_unbilled(billed: Record) -> bool:
    """A call that failed or was aborted before anything was counted is written with zeros."""
    counts = ("input", "output", "cacheRead", "cacheWrite")
    return billed.get("stopReason") in FAILED and not any(int_at(billed, "usage", name) for name in counts)


def call_key(transcript: Transcript, number: int, billed: Record) -> str:
    """What every copy of a call has in common: its times, its response and what it used."""
    record = transcript.entries[number]
    times = (time_at(record, "timestamp"), time_at(record, "message", "timestamp"))
    usage = usage_of(billed["usage"])
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)
    place = () if any(times) else (id_of(record) or f"{text_at(transcript.header, 'id')} {number}",)
    told = (record.get("type") == "message", text_at(billed, "responseId"), text_at(billed, "model"))
    return " ".join(map(str, (*times, *told, *counts, *place)))


def caller(transcript: Transcript, number: int, models: Sequence[Named]) -> Named:
    """Who was called: a summary is made by the model in force where the session stood; a tool's own model is not told."""
    record = transcript.entries[number]
    provider, model = named(bill(record))
    if model or message_of(record).get("role") == "toolResult":
        return provider, model
    left = record.get("fromId")
    return models[transcript.numbers.get(left, number) if isinstance(left, Id) else number]


def charge(key: str, billed: Record, transcript: Transcript, number: int, called: Named, place: int | None) -> Charge:
    usage = billed["usage"]
    record = transcript.entries[number]
    return Charge(
        key=key,
        at=time_of(record),
        provider=called[0],
        model=called[1],
        usage=usage_of(usage),
        hour_write_tokens=int_at(usage, "cacheWrite1h") or int_at(usage, "cttl", "ephemeral1h") or 0,
        usd=usd_at(usage, "cost", "total"),
        claim=transcript.claim(record),
        message=place,
    )


def usage_of(usage: Json) -> Usage:
    reasoning = int_at(usage, "reasoning")
    return Usage(
        input_tokens=int_at(usage, "input"),
        output_tokens=int_at(usage, "output"),
        thinking_tokens=int_at(usage, "reasoningTokens") if reasoning is None else reasoning,
        cached_tokens=int_at(usage, "cacheRead"),
        cache_write_tokens=int_at(usage, "cacheWrite"),
    )


def tells_usage(entries: Iterable[Record]) -> bool:
    """Whether what answers took was recorded at all; other tools that write such files leave it out."""
    answers = [message for record in entries if (message := message_of(record)).get("role") == "assistant"]
    return not answers or any(isinstance(message.get("usage"), dict) for message in answers)


def session(
    agent: str, session_id: str, path: str, said: Conversation, calls: Sequence[Charge], **known: Any
) -> Session:
    """The session of a transcript; `known` adds to and replaces what the transcript alone tells."""
    transcript = said.transcript
    models = transcript.models()
    told = {
        "created_at": transcript.began,
        "updated_at": transcript.latest,
        "began": transcript.began,
        "cwd": text_at(transcript.header, "cwd"),
        "model": models[-1][1] if models else None,
        "usage_recorded": tells_usage(transcript.entries),
    }
    if known.get("forked_from") == session_id:
        known["forked_from"] = None
    found = _base.session(agent, session_id, said.messages, path=path, charges=calls, **{**told, **known})
    # A fork's model is the one of its own calls, however many it copied.
    own = _base.models_of([call for call in calls if call.claim != "copied"], ())
    return replace(found, model=own[0], models=tuple(dict.fromkeys((*own, *found.models)))) if own else found
