"""From the events of a session, or of one of its sub-agents, to messages.

`user.message.content` is what was typed; `transformedContent` and `system.message` are what the program made of it for
the model. A response of the model can be split into several events with one `apiCallId`. A tool's result has no name
of its own: the request has it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from amux.model import Attachment, Json, Message, ToolCall, ToolResult
from amux.readers._json import Record, at, decoded, list_at, text_at
from amux.readers.copilot import legacy
from amux.readers.copilot.events import Event

TAG = re.compile(r"</?[a-z][a-z_-]*>")
CHOSEN = {"session.start": "selectedModel", "session.resume": "selectedModel", "session.model_change": "newModel"}
"""Which field of an event names the model that is used from then on."""
COMPACTED = "session.compaction_complete"
NOTES = {
    "session.info": "info",
    "session.warning": "warning",
    "session.error": "error",
    "subagent.failed": "error",
    "system.notification": "notification",
    "session.handoff": "handoff",
    COMPACTED: "compaction",
    "abort": "interrupt",
}
"""What the program tells of, and the event it is."""


@dataclass(slots=True)
class Call:
    id: str
    name: str
    input: Json
    began: datetime | None = None
    output: str | None = None
    took: timedelta | None = None
    is_error: bool = False

    def plain(self) -> ToolCall:
        took = int(self.took.total_seconds() * 1000) if self.took is not None else None
        return ToolCall(self.id, self.name, self.input, self.output, took, self.is_error)


@dataclass(slots=True)
class Answer:
    """One response of the model; `part` says which events are parts of the same."""

    part: tuple[Any, ...] | None
    timestamp: datetime | None
    model: str | None
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def message(self) -> Message:
        return Message(
            "assistant",
            "\n\n".join(self.texts),
            self.timestamp,
            tool_calls=tuple(call.plain() for call in self.calls),
            thinking="\n\n".join(self.thoughts) or None,
            model=self.model,
        )


@dataclass(slots=True)
class Conversation:
    subagent: bool = False
    model: str | None = None
    """The model chosen or heard last, for answers and compactions that do not name theirs."""
    spoken: list[Message | Answer] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    """Where the answer of a call, or the message of an event, stands."""
    calls: dict[str, Call] = field(default_factory=dict)

    def messages(self) -> list[Message]:
        return [one.message() if isinstance(one, Answer) else one for one in self.spoken]

    def hear(self, event: Event) -> None:
        match event.kind:
            case kind if kind in CHOSEN:
                self.model = text_at(event.data, CHOSEN[kind]) or self.model
            case "subagent.started" | "subagent.configured" if self.subagent:
                self.model = text_at(event.data, "model") or self.model
            case "session.shutdown":
                self.model = self.model or text_at(event.data, "currentModel")
            case "session.import_legacy":
                self.spoken += legacy.messages(event.data.get("legacySession"))
            case "user.message":
                self.spoken += said(event, subagent=self.subagent)
            case "assistant.message":
                self.answered(event)
            case "tool.user_requested":
                self.asked_for(event)
            case "tool.execution_start":
                self.started(event)
            case "tool.execution_complete":
                self.completed(event)
            case _:
                self.told(event)

    def answered(self, event: Event) -> None:
        data = event.data
        self.model = text_at(data, "model") or self.model
        api_call = text_at(data, "apiCallId")
        part = (api_call, data.get("interactionId"), data.get("turnId")) if api_call else None
        last = next((one for one in reversed(self.spoken) if isinstance(one, Answer)), None)
        if part is None or last is None or last.part != part:
            last = Answer(part, event.time, self.model)
            self.spoken.append(last)
            self.places[api_call or event.id] = len(self.spoken) - 1
        self.places[event.id] = self.places[api_call or event.id]
        last.texts += [text] if (text := text_at(data, "content")) else []
        last.thoughts += [text] if (text := text_at(data, "reasoningText")) else []
        for request in list_at(data, "toolRequests"):
            if id := text_at(request, "toolCallId"):
                self.calls[id] = Call(id, text_at(request, "name") or "", arguments(request))
                last.calls.append(self.calls[id])

    def asked_for(self, event: Event) -> None:
        """A tool that the user ran, most often a shell command after `!`."""
        name, given = text_at(event.data, "toolName") or "", event.data.get("arguments")
        self.spoken.append(Message("system", text_at(given, "command") or name, event.time, event="shell"))
        if id := text_at(event.data, "toolCallId"):
            self.calls[id] = Call(id, name, given)

    def started(self, event: Event) -> None:
        if id := text_at(event.data, "toolCallId"):
            name, given = text_at(event.data, "toolName") or "", event.data.get("arguments")
            self.calls.setdefault(id, Call(id, name, given)).began = event.time

    def completed(self, event: Event) -> None:
        self.model = self.model or text_at(event.data, "model")
        id = text_at(event.data, "toolCallId")
        call = self.calls.get(id or "") or Call("", "", None)
        if call.output is not None:
            return  # some versions write the result of one call twice
        text, is_error = output(event.data), event.data.get("success") is False
        call.output, call.is_error = text, is_error
        if call.began and event.time and event.time >= call.began:
            call.took = event.time - call.began
        self.spoken.append(
            Message(
                "tool",
                text,
                event.time,
                tool_result=ToolResult(id, call.name or None, text),
                is_error=is_error,
                attachments=tuple(binaries(event.data)),
            )
        )

    def told(self, event: Event) -> None:
        text, kind = note(event)
        if text and kind:
            self.places[event.id] = len(self.spoken)
            model = self.model if event.kind == COMPACTED else None
            self.spoken.append(Message("system", text, event.time, model=model, is_error=kind == "error", event=kind))


def places_by_time(conversation: Conversation, times: Sequence[datetime]) -> list[int | None]:
    """Where the answers of calls stand of which only the times are known, in order: between one call and the next."""
    timed = [
        (one.timestamp, place)
        for place, one in enumerate(conversation.spoken)
        if isinstance(one, Answer) and one.timestamp
    ]
    timed.sort()
    found: list[int | None] = []
    for time, following in zip(times, [*times[1:], None], strict=False):
        number = bisect_left(timed, time, key=lambda one: one[0])
        fits = number < len(timed) and (following is None or timed[number][0] < following)
        found.append(timed[number][1] if fits else None)
    return found


def said(event: Event, *, subagent: bool) -> Iterator[Message]:
    """A prompt. What skills, hooks, notifications and other agents put into the conversation names its source."""
    source = text_at(event.data, "source") or "user"
    # A prompt typed on another device comes as `command-<id>`; an agent's prompt is what its sub-agent was asked.
    typed = source == "user" or source.startswith(("command-", "agent-") if subagent else "command-")
    if not typed or event.data.get("isAutopilotContinuation") is True:
        return
    text = text_at(event.data, "content") or ""
    if not text_at(event.data, "transformedContent"):
        text = legacy.unwrapped(text)
    attached = tuple(attachment(one) for one in list_at(event.data, "attachments") if isinstance(one, dict))
    if text or attached:
        yield Message("user", text, event.time, attachments=attached)


def arguments(request: Json) -> Json:
    """What a tool was given: an object, which some versions write as text."""
    given = at(request, "arguments")
    if isinstance(given, str) and at(request, "type") != "custom":
        read = decoded(given)
        return given if read is None else read
    return given


def attachment(given: Record) -> Attachment:
    kind, media = text_at(given, "type") or "file", text_at(given, "mimeType")
    names = ("displayName", "title", "name", "filename", "path", "filePath", "url")
    name = next((text for key in names if (text := text_at(given, key))), None)
    if kind in ("blob", "file"):
        kind = "image" if (media or "").startswith("image/") else "file"
    return Attachment(kind, media, name)


def output(data: Record) -> str:
    """What a tool answered, as the model got it; a failed one has an error's message instead."""
    result = data.get("result")
    parts = (text for part in list_at(result, "contents") if (text := text_at(part, "text")))
    return (
        text_at(data, "error", "message")
        or text_at(result, "content")
        or "\n".join(parts)
        or text_at(result, "detailedContent")
        or ""
    )


def binaries(data: Record) -> Iterator[Attachment]:
    """Images and other files among a tool's results."""
    parts = [*list_at(data, "result", "contents"), *list_at(data, "result", "binaryResultsForLlm")]
    for part in parts:
        if text_at(part, "mimeType") and not text_at(part, "text"):
            yield attachment({"type": "file", **part})


def note(event: Event) -> tuple[str | None, str | None]:
    """What an event tells the user, and the kind of event it is; nothing for the many that only the program needs."""
    data, kind = event.data, NOTES.get(event.kind)
    match event.kind:
        case "session.info" if data.get("infoType") == "fork":
            return text_at(data, "message"), "branch"
        case "session.compaction_complete" if not text_at(data, "summaryContent"):
            return text_at(data, "error"), "error"
        case "session.compaction_complete":
            return text_at(data, "summaryContent"), kind
        case "system.notification":
            return TAG.sub("", text_at(data, "content") or "").strip(), kind
        case "abort":
            return text_at(data, "reason"), kind
        case "session.handoff":
            return text_at(data, "summary"), kind
        case "subagent.failed":
            return text_at(data, "error"), kind
    return text_at(data, "message"), kind
