"""From the lines of a branch to messages."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from amux.errors import UnreadableSession
from amux.model import Attachment, Json, Message, ToolCall, ToolResult
from amux.readers._json import OFFSET, Record, at, dict_at, int_at, text_at, text_of, time_at
from amux.readers.claude.lines import SYNTHETIC, blocks, kind_of

SPILLED = re.compile(r"([0-9a-fA-F-]{36})[/\\]tool-results[/\\]([^/\\\n]+)")
SUBAGENTS = re.compile(r"[/\\][0-9a-fA-F-]{36}[/\\]subagents[/\\]")
TAG = re.compile(r"</?[a-z][a-z-]*>")
COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
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
        below = SUBAGENTS.search(transcript)
        self.project = transcript[: below.start()] if below else os.path.dirname(transcript)
        self.elsewhere: set[str] = set()

    def text(self, recorded: str) -> str | None:
        if not (found := SPILLED.search(recorded)):
            return None
        owner, name = found.groups()
        path = f"{self.project}/{owner}/tool-results/{name}"
        self.elsewhere.add(owner)
        try:
            return text_of(path)
        except UnreadableSession:
            return None


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


def synthetic(record: Record) -> Iterator[Message]:
    """What the program wrote in the model's name: an error is worth showing, "No response requested." is not."""
    if record.get("isApiErrorMessage"):
        text = "\n".join(text for block in blocks(record) if (text := text_at(block, "text")))
        yield Message(
            "system", text, time_at(record, "timestamp"), is_error=True, event="error", offset=record.get(OFFSET)
        )


def said(record: Record, names: dict[str, str], spilled: Spilled) -> Iterator[Message]:
    """What a `user` line holds: tool results, or what was put in the user's name."""
    found = blocks(record)
    results = [block for block in found if block.get("type") == "tool_result"]
    for block in results:
        yield tool_message(block, record, names, spilled)
    if not results and not record.get("isMeta"):
        yield from written(record, found)


def written(record: Record, found: list[Record]) -> Iterator[Message]:
    """A compaction's summary, the program's own notes, or a typed prompt."""
    time = time_at(record, "timestamp")
    texts = [text for block in found if (text := text_at(block, "text")) and not text.startswith(INJECTED)]
    text = "\n".join(texts)
    attached = tuple(attachment for block in found if (attachment := attachment_of(block)))
    if record.get("isCompactSummary"):
        yield Message("system", text, time, event="compaction", offset=record.get(OFFSET))
    elif event := event_of(text) or (None if by_person(record) else "notification"):
        if told := spelled_out(text):
            yield Message("system", told, time, event=event, offset=record.get(OFFSET))
    elif text or attached:
        yield Message("user", text, time, attachments=attached, offset=record.get(OFFSET))


def by_person(record: Record) -> bool:
    """Whether a prompt was typed, or sent through the SDK: newer versions say so; where nothing is said, its text tells."""
    origin = at(record, "origin", "kind")
    return record.get("humanTurn") is True or (record.get("promptSource") != "system" and origin in ("human", None))


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


def tool_message(block: Record, record: Record, names: dict[str, str], spilled: Spilled) -> Message:
    content = block.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = "\n".join(text for part in parts if (text := text_at(part, "text")))
    if text.startswith("<persisted-output>"):
        # Sub-agents have no toolUseResult: there the path stands only in the text that replaces the output.
        path = text_at(record, "toolUseResult", "persistedOutputPath") or text
        text = spilled.text(path) or text_at(record, "toolUseResult", "stdout") or text
    id = text_at(block, "tool_use_id")
    return Message(
        "tool",
        text,
        time_at(record, "timestamp"),
        tool_result=ToolResult(id, names.get(id or ""), text),
        is_error=block.get("is_error") is True,
        attachments=tuple(
            attachment for part in parts if isinstance(part, dict) and (attachment := attachment_of(part))
        ),
        offset=record.get(OFFSET),
    )


def queued(record: Record) -> Iterator[Message]:
    """A prompt typed while the turn ran is kept only as an attachment; all other attachments are injected context."""
    queue = dict_at(record, "attachment")
    if queue.get("type") != "queued_command" or queue.get("commandMode") not in ("prompt", None):
        return
    if by_person(queue) and not queue.get("isMeta"):
        found = written(record, blocks({"message": {"content": queue.get("prompt")}}))
        yield from (message for message in found if message.role == "user")


def told(record: Record) -> Iterator[Message]:
    text = text_at(record, "content") or ""
    if record.get("subtype") == "local_command" and (event := event_of(text)) and (shown := spelled_out(text)):
        yield Message("system", shown, time_at(record, "timestamp"), event=event, offset=record.get(OFFSET))
