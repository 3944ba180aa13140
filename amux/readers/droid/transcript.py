"""Droid's lines as a conversation.

Tool results, injected context, errors and hooks that ran are lines of the user's; what was typed is told by `visibility`
and by markup. Injected context is a line of its own since 0.215, before that blocks beside the prompt's.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from amux.model import Attachment, Message, ToolCall, ToolResult
from amux.readers import _base
from amux.readers._json import Record, at, dict_at, text_at, time_at
from amux.readers._tree import branch

INJECTED = {"<system-reminder>": "</system-reminder>", "<system-notification>": "</system-notification>"}
SERIALIZED = "provider_switch_serialization"
"""A summary made without a model when the provider changed: it repeats the whole conversation."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Names and results of calls by the id that pairs them."""

    names: dict[str, str] = field(default_factory=dict)
    results: dict[str, Record] = field(default_factory=dict)


def conversation(lines: Mapping[str, Record], copied: int) -> list[Message]:
    """The messages of a file's lines; the first lines, as many as were copied, are inherited."""
    shown = active(lines)
    before = [record for id, record in islice(lines.items(), copied) if id in shown]
    after = [record for id, record in islice(lines.items(), copied, None) if id in shown]
    tools = tools_of([*before, *after])
    return [
        *_base.inherited(message for record in before for message in said(record, tools)),
        *(message for record in after for message in said(record, tools)),
    ]


def active(lines: Mapping[str, Record]) -> set[str]:
    """The branch that ends at the last message, and the summaries made on it."""
    parents: dict[str, str | None] = {}
    summaries: dict[str, str | None] = {}
    previous = None
    linked = False
    for id, record in lines.items():
        if record.get("type") == "compaction_state":
            summaries[id] = previous
            continue
        parent = text_at(record, "parentId")
        if parent in lines and parent != id:
            parents[id] = parent
        elif linked and begins_anew(record):
            parents[id] = None
        else:
            # Injected context has no parent and a torn line is none: what stands before in the file came before.
            parents[id] = previous
        linked = linked or parent is not None
        previous = id
    shown = set(branch(parents, previous))
    return shown | {id for id, before in summaries.items() if before is None or before in shown}


def begins_anew(record: Record) -> bool:
    """Whether a line among linked ones is the prompt that took the place of the first: it says that it has no parent."""
    if record.get("parentId", "") is not None or hidden(record):
        return False
    return any(message.role == "user" for message in prompt(record, None))


def tools_of(lines: Iterable[Record]) -> Tools:
    tools = Tools()
    for block in (block for record in lines for block in blocks(record)):
        if block.get("type") == "tool_use" and (id := text_at(block, "id")):
            tools.names[id] = text_at(block, "name") or ""
        elif block.get("type") == "tool_result" and (id := text_at(block, "tool_use_id")):
            tools.results[id] = block
    return tools


# What a line holds


def spoken(record: Record) -> Record:
    """The message of a line; other programs write its fields into the line itself."""
    return dict_at(record, "message") or record


def answered(record: Record) -> bool:
    """Whether the line is a model's answer; one that only the user sees is the program's own."""
    return spoken(record).get("role") == "assistant" and spoken(record).get("visibility") != "user_only"


def blocks(record: Record) -> list[Record]:
    return parts(spoken(record).get("content"))


def parts(content: Any) -> list[Record]:
    """Content as blocks: it may be one string, or have bare strings among its blocks."""
    found = content if isinstance(content, list) else [content]
    whole = ({"type": "text", "text": part} if isinstance(part, str) else part for part in found)
    return [part for part in whole if isinstance(part, dict)]


def texts(found: Iterable[Record]) -> list[str]:
    return [text for block in found if block.get("type") == "text" and (text := text_at(block, "text"))]


def typed(text: str) -> str:
    """What a person wrote of a text: injected context is a block of its own, or stands before the prompt."""
    for opening, closing in INJECTED.items():
        if text.lstrip().startswith(opening):
            _, closed, rest = text.rpartition(closing)
            text = rest.strip() if closed else ""
    return text


def hidden(record: Record) -> bool:
    """Context for the model alone, and hooks that ran: nobody typed it."""
    line = spoken(record)
    context = (text_at(record, "id") or "").startswith("context-") or line.get("visibility") == "llm_only"
    unseen = line.get("hiddenFromUserViews") is True or line.get("isUserVisible") is False
    return context or unseen or "hookEventName" in line


# From lines to messages


def said(record: Record, tools: Tools) -> Iterator[Message]:
    time = time_at(record, "timestamp")
    if record.get("type") == "compaction_state":
        summary = text_at(record, "summaryText")
        if summary and record.get("summaryKind") != SERIALIZED:
            yield Message("system", summary, time, event="compaction")
        return
    if answered(record):
        yield answer(record, time, tools)
    for block in blocks(record):
        if block.get("type") == "tool_result":
            yield result(block, time, tools)
    if not answered(record) and not hidden(record):
        yield from prompt(record, time)


def prompt(record: Record, time: datetime | None) -> Iterator[Message]:
    """What was typed, or what the program told the user alone: an error."""
    line, found = spoken(record), blocks(record)
    text = "\n".join(own for text in texts(found) if (own := typed(text)))
    attached = attachments(found)
    if line.get("visibility") == "user_only":
        if text:
            yield Message("system", text, time, is_error=True, event="error")
    elif line.get("role") == "user" and (text or attached):
        yield Message("user", text, time, attachments=attached)


def answer(record: Record, time: datetime | None, tools: Tools) -> Message:
    line, found = spoken(record), blocks(record)
    thoughts = "\n\n".join(text for block in found if (text := text_at(block, "thinking")))
    # Models behind Responses think in a field of the message; chat completions there and in a block.
    apart = text_at(line, "openaiReasoningSummary") or text_at(line, "chatCompletionReasoningContent")
    return Message(
        "assistant",
        "\n\n".join(texts(found)),
        time,
        tool_calls=tuple(call(block, tools) for block in found if block.get("type") == "tool_use"),
        thinking=thoughts or apart,
        model=text_at(line, "modelId"),
    )


def call(block: Record, tools: Tools) -> ToolCall:
    id = text_at(block, "id") or ""
    done = tools.results.get(id)
    output = "\n".join(texts(parts(done.get("content")))) if done else None
    return ToolCall(id, text_at(block, "name") or "", block.get("input"), output, is_error=at(done, "is_error") is True)


def result(block: Record, time: datetime | None, tools: Tools) -> Message:
    found = parts(block.get("content"))
    id, text = text_at(block, "tool_use_id"), "\n".join(texts(found))
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
