"""From a rollout's lines to messages.

Response items are the conversation; events repeat their texts and add how long tools took. Nothing says which items are
one response of the model: it ends where a new call begins (a turn_context up to 0.98, a state line before 0.34), where
its usage is counted, or at a tool's output. Outputs alone do not tell: up to 0.42 each stands right after its call, so
that those of parallel calls lie between them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice

from amux.model import Json, Message, Role, ToolCall, ToolResult
from amux.readers._json import Record, decoded, int_at, text_at, when
from amux.readers.codex import rollout, texts
from amux.readers.codex.rollout import Line

TURN_EVENTS = frozenset({"task_started", "turn_started", "task_complete", "turn_complete", "token_count"})
SYSTEM_ROLES = frozenset({"system", "developer"})
TOOL_ROLES = frozenset({"tool", "function"})
NEAR = 4
"""How many lines from a prompt on may hold its twin: it stands right after it, but from 0.36 to 0.42 before it."""


@dataclass(slots=True)
class Answer:
    """One response of the model, gathered from its items; `summary`: what a compaction left of the history before it."""

    time: datetime | None
    model: str | None
    inherited: bool
    offset: int | None
    summary: bool = False
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: dict[str, "Call"] = field(default_factory=dict)

    @property
    def content(self) -> str:
        return "\n\n".join(self.texts)

    def message(self) -> Message | None:
        """None when nothing of it can be read."""
        if not (self.texts or self.thoughts or self.calls or self.summary):
            return None
        return Message(
            "system" if self.summary else "assistant",
            self.content,
            self.time,
            tool_calls=tuple(call.tool_call() for call in self.calls.values()),
            thinking="\n\n".join(self.thoughts) or None,
            model=self.model,
            event="compaction" if self.summary else None,
            inherited=self.inherited,
            offset=self.offset,
        )


@dataclass(slots=True)
class Call:
    """A tool call and what came of it: its output item and the event of its end, in either order."""

    id: str
    name: str
    input: Json
    time: datetime | None
    output: texts.Outcome | None = None
    ended: texts.Outcome | None = None
    answered: datetime | None = None

    @property
    def failed(self) -> bool:
        return any(one.failed for one in (self.output, self.ended) if one)

    @property
    def took(self) -> int | None:
        for one in (self.ended, self.output):
            if one and one.took is not None:
                return one.took
        if self.time and self.answered and self.answered > self.time:
            return round((self.answered - self.time).total_seconds() * 1000)
        return None

    def tool_call(self) -> ToolCall:
        text = self.output.text if self.output else None
        return ToolCall(self.id, self.name, self.input, text, self.took, self.failed)


@dataclass(slots=True)
class Output:
    """A tool's answer as a message of its own."""

    id: str | None
    call: Call | None
    outcome: texts.Outcome
    time: datetime | None
    inherited: bool
    offset: int | None

    def message(self) -> Message:
        failed = self.call.failed if self.call else bool(self.outcome.failed)
        return Message(
            "tool",
            self.outcome.text,
            self.time,
            tool_result=ToolResult(self.id, self.call.name if self.call else None, self.outcome.text),
            is_error=failed,
            attachments=self.outcome.attachments,
            inherited=self.inherited,
            offset=self.offset,
        )


class Conversation:
    """What was said, line by line.

    `inherited` and `copied` say whose the lines are that follow: another thread's, read there or from a copy; `here`, that
    they stand in the thread's active file as it is, so that a place in it finds them again. `unpaid` is
    the latest response whose usage has not been met yet.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self.twins = texts.typed(lines)
        self.spoken: list[Message | Answer | Output] = []
        self.calls: dict[str, Call] = {}
        self.model: str | None = None
        self.cwd: str | None = None
        self.inherited = False
        self.copied = False
        self.here = False
        self.unpaid: Answer | None = None
        self.open: Answer | None = None
        self.answered = False

    def messages(self) -> tuple[list[Message], dict[int, int]]:
        """The messages, and for each answer (by its identity) its place among them."""
        found: list[Message] = []
        places: dict[int, int] = {}
        for one in self.spoken:
            message = one if isinstance(one, Message) else one.message()
            if message:
                places[id(one)] = len(found)
                found.append(message)
        return found, places

    def add(self, line: Line) -> None:
        match line.kind:
            case rollout.ITEM:
                self.item(line)
            case rollout.EVENT:
                self.event(line)
            case "turn_context":
                self.model = text_at(line.payload, "model") or self.model
                self.end_turn()
            case "compacted":
                self.compact(line)
            case "token_usage_record" | rollout.BREAK:
                self.open = None

    def first_is_whole(self) -> bool:
        """Whether no line to come can change what was said first: a compaction makes the last answer its summary."""
        if not self.spoken or not isinstance(first := self.spoken[0], Answer):
            return True
        return len(self.spoken) > 1 and self.open is not first

    def time(self, line: Line) -> datetime | None:
        """When a line was written; None for a copy, whose times are those of the copying."""
        return None if self.copied else when(line.time)

    def offset(self, line: Line) -> int | None:
        return line.offset if self.here else None

    # Responses

    def response(self, line: Line, *, call: bool = False) -> Answer:
        """The response an item belongs to; a new one where the last has ended."""
        current = self.open
        if current is None or current.summary != line.summary or (self.answered and not call):
            model = self.model or text_at(line.payload, "model")
            current = Answer(self.time(line), model, self.inherited, self.offset(line), line.summary)
            self.spoken.append(current)
            self.unpaid = current
        self.open, self.answered = current, False
        return current

    def end_turn(self) -> None:
        self.open = self.unpaid = None

    def say(self, role: Role, text: str, line: Line, event: str | None = None, *, failed: bool = False) -> None:
        self.spoken.append(
            Message(
                role,
                text,
                self.time(line),
                event=event,
                is_error=failed,
                inherited=self.inherited,
                offset=self.offset(line),
            )
        )

    def note_missing(self, base: str) -> None:
        text = f"What came before is not here: it is in rollout {base}, which was not found."
        self.spoken.append(Message("system", text, event="branch"))

    # Items

    def item(self, line: Line) -> None:
        kind = line.payload.get("type")
        if kind == "reasoning":
            self.response(line).thoughts += texts.thoughts(line.payload)
        elif not isinstance(kind, str) or kind == "message":
            self.message(line)
        elif kind.endswith("_call"):
            self.call(line, kind)
        elif kind.endswith("_output"):
            output = line.payload.get("output", line.payload.get("tools"))
            self.output(line, text_at(line.payload, "call_id"), output)

    def message(self, line: Line) -> None:
        role, content = text_at(line.payload, "role"), line.payload.get("content")
        if role == "user":
            self.prompt(line)
        elif role == "assistant":
            if text := texts.joined(content):
                self.response(line).texts.append(text)
        elif role in TOOL_ROLES and content:
            self.output(line, text_at(line.payload, "tool_call_id"), content)
        elif role in SYSTEM_ROLES and (text := texts.configured(content)):
            self.say("system", text, line)

    def prompt(self, line: Line) -> None:
        self.end_turn()
        text = texts.joined(line.payload.get("content"))
        self.cwd = self.cwd or texts.cwd_in(text)
        attached = texts.attachments(line.payload.get("content"))
        if (event := texts.event_of(text)) and texts.squeezed(text) not in self.twins:
            self.say("system", event[1], line, event[0])
        elif (request := texts.prompt(line.payload, self.twins)) or attached:
            self.spoken.append(
                Message(
                    "user",
                    request,
                    self.time(line),
                    attachments=attached,
                    inherited=self.inherited,
                    offset=self.offset(line),
                )
            )

    def call(self, line: Line, kind: str) -> None:
        payload = line.payload
        id = text_at(payload, "call_id") or text_at(payload, "id") or f"call {len(self.calls)}"
        call = Call(id, text_at(payload, "name") or kind.removesuffix("_call"), given(payload), self.time(line))
        self.response(line, call=True).calls[id] = self.calls[id] = call

    def output(self, line: Line, id: str | None, output: Json) -> None:
        call = self.calls.get(id or "")
        outcome = texts.outcome(output)
        time = self.time(line)
        if call:
            call.output, call.answered = outcome, time
        self.spoken.append(Output(id, call, outcome, time, self.inherited, self.offset(line)))
        self.answered = True

    # Events

    def event(self, line: Line) -> None:
        payload = line.payload
        match line.event:
            case str(kind) if kind in TURN_EVENTS:
                self.open = None
            case "thread_settings_applied":
                self.model = self.model or text_at(payload, "thread_settings", "model")
            case "thread_rolled_back":
                self.roll_back(int_at(payload, "num_turns") or 0)
            case "turn_aborted":
                self.say("system", f"Turn aborted: {text_at(payload, 'reason') or 'unknown'}", line, "interrupt")
                self.end_turn()
            case "error":
                self.say("system", text_at(payload, "message") or "", line, "error", failed=True)
            case _:
                if (end := texts.ending(payload)) and (call := self.calls.get(end[0])):
                    call.ended = end[1]

    def roll_back(self, turns: int) -> None:
        """Take back the last turns: what was said since the prompt that began them."""
        prompts = [place for place, one in enumerate(self.spoken) if isinstance(one, Message) and one.role == "user"]
        if turns and prompts:
            del self.spoken[prompts[max(len(prompts) - turns, 0)] :]
        self.end_turn()

    def compact(self, line: Line) -> None:
        """The history was replaced by a summary. The call that made it may have left its answer right before."""
        message = text_at(line.payload, "message") or ""
        last = self.spoken[-1] if self.spoken else None
        if isinstance(last, Answer) and not last.calls and (last.summary or (last.content and last.content in message)):
            last.summary = True
            last.texts = last.texts or [message]
        else:
            told = [message] if message else []
            summary = Answer(self.time(line), self.model, self.inherited, self.offset(line), summary=True, texts=told)
            self.spoken.append(summary)
            self.unpaid = summary
        self.open = None


def given(payload: Record) -> Json:
    """What a tool was called with; arguments that are no JSON stay the text they are."""
    arguments = payload.get("arguments")
    if isinstance(arguments, str):
        found = decoded(arguments)
        return arguments if found is None else found
    return next((payload[name] for name in ("arguments", "input", "action", "query") if name in payload), None)


# One message


def message_at(path: str, offset: int) -> Message | None:
    """The message that begins at an offset; None where none does, or where lines before it have a say in what it is."""
    following = rollout.lines_from(path, offset)
    near = list(islice(following, NEAR))
    if not near or near[0].offset != offset:
        return None
    conversation = Conversation(near)
    if text_at(near[0].payload, "role") == "user" and not texts.unmistakable(near[0].payload, conversation.twins):
        return None
    conversation.here = True
    for line in chain(near, following):
        conversation.add(line)
        if conversation.first_is_whole():
            break
    found, _ = conversation.messages()
    return found[0] if found and found[0].offset == offset else None
