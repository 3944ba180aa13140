"""Messages as the AI SDK has them, which the CLI keeps as JSON; and what every store of Cursor's is read into."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from amux.model import Attachment, Message, ToolCall, ToolResult
from amux.readers._json import Record, at, decoded, dict_at, list_at, text_at, when
from amux.readers.cursor.prompts import typed

DEFAULT_TITLES = frozenset({"New Agent", "New Chat"})
AUTOMATIC = "default"
"""What stands for a model where Cursor chose one: it does not say which."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a store tells of one session; None where it does not."""

    messages: Sequence[Message]
    title: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    model: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    mode: str | None = None
    archived: bool = False
    subagent: bool = False
    parent_id: str | None = None


def title(value: Any) -> str | None:
    """A name, unless it is the one that Cursor gives to every session."""
    return value if isinstance(value, str) and value.strip() and value.strip() not in DEFAULT_TITLES else None


def model(value: Any) -> str | None:
    named = value if isinstance(value, str) else text_at(value, "model") or text_at(value, "id")
    return named if named and named != AUTOMATIC else None


def moment(value: Any) -> datetime | None:
    """A time; some builds write the milliseconds as text."""
    return when(int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 17 else value)


def as_text(value: Any) -> str:
    """What a tool gave back as text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if parts := [text for part in list_at(value) if (text := text_at(part, "text"))]:
        return "\n".join(parts)
    if at(value, "type") in ("text", "error-text") and (text := text_at(value, "value")):
        return text
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""


def json_in(value: Any) -> Any:
    """The JSON inside a text, where there is any; the value itself otherwise."""
    found = decoded(value) if isinstance(value, str) else None
    return value if found is None else found


# From records to messages


def messages(records: Iterable[Record]) -> Iterator[Message]:
    for record in records:
        match record.get("role"):
            case "user":
                yield from said(record)
            case "assistant":
                yield from answered(record)
            case "tool":
                yield from given_back(record)


def blocks(record: Record) -> list[Record]:
    content = record.get("content")
    found = content if isinstance(content, list) else [content]
    texts = ({"type": "text", "text": part} if isinstance(part, str) else part for part in found)
    return [part for part in texts if isinstance(part, dict)]


def texts(found: Iterable[Record]) -> list[str]:
    return [text for block in found if block.get("type") == "text" and (text := text_at(block, "text"))]


def is_summary(record: Record) -> bool:
    return at(record, "providerOptions", "cursor", "isSummary") is True


def said(record: Record) -> Iterator[Message]:
    found = blocks(record)
    text = "\n".join(texts(found))
    if is_summary(record):
        yield Message("system", text, event="compaction")
        return
    prompt = typed(text)
    attached = tuple(one for block in found if (one := attachment(block)))
    if prompt:
        yield Message("user", prompt.text, prompt.at, attachments=(*prompt.attachments, *attached))
    elif attached:
        yield Message("user", attachments=attached)


def attachment(block: Record) -> Attachment | None:
    kind = block.get("type")
    if kind not in ("image", "file"):
        return None
    media = text_at(block, "mediaType") or text_at(block, "mimeType")
    return Attachment(kind, media, text_at(block, "filename"))


def answered(record: Record) -> Iterator[Message]:
    found = blocks(record)
    thoughts = [text for block in found if block.get("type") == "reasoning" and (text := text_at(block, "text"))]
    calls = (*(call(block) for block in found if block.get("type") == "tool-call"), *openai_calls(record))
    message = Message(
        "assistant",
        "\n\n".join(texts(found)),
        tool_calls=calls,
        thinking="\n\n".join(thoughts) or None,
        model=model(at(record, "providerOptions", "cursor", "modelName")),
    )
    if message.content or calls or thoughts:
        yield message


def call(block: Record) -> ToolCall:
    given = block.get("args") if "args" in block else block.get("input")
    return ToolCall(text_at(block, "toolCallId") or "", text_at(block, "toolName") or "", given)


def openai_calls(record: Record) -> Iterator[ToolCall]:
    for one in list_at(record, "tool_calls"):
        function = dict_at(one, "function")
        if name := text_at(function, "name"):
            yield ToolCall(text_at(one, "id") or "", name, json_in(function.get("arguments")))


def given_back(record: Record) -> Iterator[Message]:
    found = blocks(record)
    results = [block for block in found if block.get("type") == "tool-result"]
    for block in results:
        output = as_text(block.get("result") if "result" in block else block.get("output"))
        output = output or as_text(block.get("experimental_content"))
        result = ToolResult(text_at(block, "toolCallId"), text_at(block, "toolName"), output)
        yield Message("tool", output, tool_result=result, is_error=block.get("isError") is True)
    if not results and (id := text_at(record, "tool_call_id")):
        output = "\n".join(texts(found))
        yield Message("tool", output, tool_result=ToolResult(id, text_at(record, "name"), output))


def paired(spoken: Iterable[Message]) -> list[Message]:
    """The messages, each tool's answer also told by its call; ids may be used again, so the last call before it is meant."""
    found = list(spoken)
    waiting: dict[str, tuple[int, int]] = {}
    for place, message in enumerate(found):
        for number, one in enumerate(message.tool_calls):
            waiting[one.tool_call_id] = place, number
        id = message.tool_result.tool_call_id if message.tool_result else None
        if id and id in waiting:
            asked, number = waiting[id]
            calls = list(found[asked].tool_calls)
            calls[number] = replace(calls[number], output=message.content, is_error=message.is_error)
            found[asked] = replace(found[asked], tool_calls=tuple(calls))
    return found
