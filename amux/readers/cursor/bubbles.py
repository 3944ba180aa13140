"""The IDE's bubbles: what it shows, one for each thought, text and tool; from them to messages.

A bubble's type is 1 for the user and 2 for the model; the chat pane of 2024 wrote `user` and `ai`. A tool's call and what it
gave back are one bubble, its arguments and its result JSON as text. Bubbles before October 2025 have no time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from amux.model import Attachment, Message, ToolCall, ToolResult
from amux.readers._json import Record, at, decoded, dict_at, list_at, text_at
from amux.readers.cursor.conversation import as_text, json_in, model, moment
from amux.readers.cursor.prompts import typed

SPEAKERS: dict[Any, str] = {1: "user", 2: "assistant", "user": "user", "ai": "assistant", "assistant": "assistant"}
SUMMARY = 22
"""The capabilityType of a bubble that tells of a compaction."""
OUTPUTS = ("output", "contents", "content", "result")
"""Where in a tool's result its text may be."""


@dataclass(slots=True)
class Answer:
    """One response of the model, gathered from its bubbles; tools are the last of them."""

    at: datetime | None = None
    model: str | None = None
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)

    def messages(self) -> Iterator[Message]:
        if self.texts or self.thoughts or self.calls:
            yield Message(
                "assistant",
                "\n\n".join(self.texts),
                self.at,
                tool_calls=tuple(self.calls),
                thinking="\n\n".join(self.thoughts) or None,
                model=self.model,
            )
        yield from self.results

    def add(self, bubble: Record) -> None:
        self.at = self.at or moment(bubble.get("createdAt"))
        self.texts += [text] if (text := text_of(bubble)) else []
        thought = text_at(bubble, "thinking") or text_at(bubble, "thinking", "text")
        self.thoughts += [thought] if thought else []
        if tool := dict_at(bubble, "toolFormerData"):
            self.use(tool, bubble)

    def use(self, tool: Record, bubble: Record) -> None:
        id = text_at(tool, "toolCallId") or text_at(bubble, "bubbleId") or ""
        name = text_at(tool, "name") or ""
        output, failed = output_of(tool), bool(tool.get("error")) or tool.get("status") == "error"
        given = json_in(tool.get("rawArgs") or tool.get("params"))
        self.calls.append(ToolCall(id, name, given, output, is_error=failed))
        if output is not None:
            result = ToolResult(id, name, output)
            time = moment(bubble.get("createdAt"))
            self.results.append(Message("tool", output, time, tool_result=result, is_error=failed))


def messages(bubbles: Iterable[Record]) -> Iterator[Message]:
    answer = Answer()
    chosen: str | None = None
    for bubble in bubbles:
        kind = bubble.get("type")
        speaker = SPEAKERS.get(kind) if isinstance(kind, int | str) else None
        chosen = model(at(bubble, "modelInfo", "modelName")) or model(bubble.get("modelType")) or chosen
        if speaker == "user" or (answer.calls and says_more(bubble)):
            yield from answer.messages()
            answer = Answer()
        if speaker == "user":
            yield from said(bubble)
        elif speaker == "assistant" and bubble.get("capabilityType") != SUMMARY:
            answer.model = answer.model or chosen
            answer.add(bubble)
        if noted := list(notes(bubble)):
            yield from answer.messages()
            yield from noted
            answer = Answer()
    yield from answer.messages()


def says_more(bubble: Record) -> bool:
    """Whether a bubble after a tool begins another response: tools that follow each other were called together."""
    return not dict_at(bubble, "toolFormerData") or bool(text_of(bubble) or dict_at(bubble, "thinking"))


def notes(bubble: Record) -> Iterator[Message]:
    """What a bubble tells of besides the conversation: a compaction, an error."""
    time = moment(bubble.get("createdAt"))
    if bubble.get("capabilityType") == SUMMARY:
        yield Message("system", text_of(bubble), time, event="compaction")
    if details := bubble.get("errorDetails"):
        told = text_at(details, "message") or text_at(details, "error", "message") or as_text(details)
        yield Message("system", told, time, event="error", is_error=True)


def said(bubble: Record) -> Iterator[Message]:
    prompt = typed(text_of(bubble))
    images = tuple(
        Attachment("image", text_at(image, "mimeType"), text_at(image, "path")) for image in list_at(bubble, "images")
    )
    if prompt or images:
        text, attached = (prompt.text, prompt.attachments) if prompt else ("", ())
        yield Message("user", text, moment(bubble.get("createdAt")), attachments=(*attached, *images))


def text_of(bubble: Record) -> str:
    return text_at(bubble, "text") or text_at(bubble, "rawText") or rich_text(bubble.get("richText"))


def rich_text(value: Any) -> str:
    """The text in the editor's own JSON: a tree of nodes, those of text inside paragraphs."""
    tree = decoded(value) if isinstance(value, str) else value
    if not isinstance(tree, dict):
        return value if isinstance(value, str) else ""
    pieces: list[str] = []
    waiting = [tree.get("root")]
    while waiting:
        node = waiting.pop()
        if at(node, "type") == "linebreak" or (at(node, "type") == "paragraph" and pieces):
            pieces.append("\n")
        pieces += [text] if (text := text_at(node, "text")) else []
        waiting.extend(reversed(list_at(node, "children")))
    return "".join(pieces)


def output_of(tool: Record) -> str | None:
    """What a tool gave back, or why it failed; None while it runs."""
    result = json_in(tool.get("result"))
    if result is None or result == "":
        error = json_in(tool.get("error"))
        told = text_at(error, "clientVisibleErrorMessage") or text_at(error, "modelVisibleErrorMessage")
        done = "" if tool.get("status") == "completed" else None
        return (told or as_text(error)) if error else done
    return next((text for name in OUTPUTS if (text := text_at(result, name))), None) or as_text(tool.get("result"))
