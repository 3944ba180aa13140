"""OpenCode's messages and parts: from stored records to a session.

Every era is brought into the shape of the 1.x database before it comes here: a message (role, time, tokens, cost) and
its parts in order. From 1.0 on an answer of the model is one message; before, a message was a whole turn whose steps
begin with a `step-start`, whose tokens are those of its last step and whose cost is that of all: a `step-finish` has
what each step took. The agent shows messages by time, never by `parentID`, which names the prompt that was answered.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from amux.model import Attachment, Charge, Message, Session, ToolCall, ToolResult
from amux.readers import _base
from amux.readers._json import Record, at, dict_at, int_at, list_at, text_at, time_at
from amux.readers.opencode.charges import calls, charge
from amux.readers.opencode.records import Entry, Stored

UNTITLED = re.compile(r"(new|child) session - \d{4}-\d\d-\d\dT[\d:.]+Z( \(fork #\d+\))?", re.IGNORECASE)
"""Titles the program gives until the model made one."""
CONTENT = frozenset({"text", "reasoning", "tool", "file"})
ABORTED = frozenset({"MessageAbortedError", "aborted"})


@dataclass(slots=True)
class Conversation:
    messages: list[Message] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)


def session(agent: str, stored: Stored, **known: Any) -> Session:
    told = conversation(stored)
    title = text_at(stored.info, "title")
    parent = text_at(stored.info, "parentID")
    ends = [time for entry in stored.entries if (time := time_at(entry.info, "time", "completed") or entry.created)]
    return _base.session(
        agent,
        stored.id,
        told.messages,
        path=stored.path,
        title=None if title and UNTITLED.fullmatch(title) else title,
        charges=told.charges,
        created_at=stored.created,
        updated_at=max((time for time in (time_at(stored.info, "time", "updated"), *ends) if time), default=None),
        model=asked_model(stored),
        began=stored.created,
        kind="subagent" if parent else "main",
        parent_id=parent,
        cwd=text_at(stored.info, "directory") or first_cwd(stored),
        archived=at(stored.info, "time", "archived") is not None,
        agent_version=text_at(stored.info, "version"),
        usage_recorded=tells_usage(stored.entries),
        **known,
    )


def first_cwd(stored: Stored) -> str | None:
    return next((cwd for entry in stored.entries if (cwd := text_at(entry.info, "path", "cwd"))), None)


def asked_model(stored: Stored) -> str | None:
    """The model a session was told to use, for those that never got an answer."""
    asked = (text_at(entry.info, "model", "modelID") for entry in reversed(stored.entries))
    return text_at(stored.info, "model", "id") or next((model for model in asked if model), None)


def tells_usage(entries: Sequence[Entry]) -> bool:
    answers = [entry for entry in entries if entry.role == "assistant"]
    return not answers or any(
        isinstance(record.get("tokens"), dict) for one in answers for record in (one.info, *one.parts)
    )


def conversation(stored: Stored) -> Conversation:
    told = Conversation()
    revert = dict_at(stored.info, "revert")
    undone = False
    for entry in stored.entries:
        shown = () if undone else entry.parts
        if entry.id == text_at(revert, "messageID"):
            shown = before(entry.parts, text_at(revert, "partID"))
            undone = True
        visible = bool(shown) or not undone
        start = len(told.messages)
        if entry.role == "user" and visible:
            told.messages += prompt(entry, shown)
        elif entry.role == "assistant":
            add_answer(told, stored, entry, shown, visible=visible)
        if stored.copied(entry):
            told.messages[start:] = _base.inherited(told.messages[start:])
    return told


def before(parts: Sequence[Record], part_id: str | None) -> Sequence[Record]:
    """What a revert to a part leaves of its message; a revert to the message itself leaves nothing."""
    places = (place for place, part in enumerate(parts) if part.get("id") == part_id)
    return parts[: next(places, 0)] if part_id else ()


# What was typed


def prompt(entry: Entry, parts: Sequence[Record]) -> Iterator[Message]:
    """The prompt of a user message; none for what the program wrote in the user's name."""
    content = "\n".join(texts(parts)) or "\n".join(asked for part in parts if (asked := subtask(part)))
    attached = tuple(attachment(part) for part in parts if part.get("type") == "file")
    if content or attached:
        yield Message("user", content, entry.created, attachments=attached)


def subtask(part: Record) -> str | None:
    return text_at(part, "prompt") if part.get("type") == "subtask" else None


def texts(parts: Sequence[Record], kind: str = "text") -> list[str]:
    return [
        text
        for part in parts
        if part.get("type") == kind
        and part.get("synthetic") is not True
        and part.get("ignored") is not True
        and (text := text_at(part, "text"))
    ]


def attachment(part: Record) -> Attachment:
    media_type = text_at(part, "mime") or text_at(part, "mediaType")
    url = text_at(part, "url") or ""
    name = text_at(part, "filename") or (url.rpartition("/")[2] or None if url.startswith("file:") else None)
    return Attachment("image" if (media_type or "").startswith("image/") else "file", media_type, name)


# What was answered


def add_answer(told: Conversation, stored: Stored, entry: Entry, shown: Sequence[Record], *, visible: bool) -> None:
    """An assistant message, one step after the other: what it said, what its tools gave, what it cost."""
    found = steps(entry.parts)
    left = len(shown)
    for step, call in zip(found, calls(entry, found), strict=True):
        place = len(told.messages)
        told.messages += said(entry, step[:left])
        left = max(0, left - len(step))
        if call is not None:
            spent = charge(stored, entry, call, step, started(entry, step))
            told.charges.append(replace(spent, message=place) if len(told.messages) > place else spent)
    if visible and (problem := failure(entry)):
        told.messages.append(problem)


def steps(parts: Sequence[Record]) -> list[list[Record]]:
    """The parts of each call of the model; a message without any is one call all the same."""
    found: list[list[Record]] = [[]]
    ended = False
    for part in parts:
        kind = text_at(part, "type")
        if (kind == "step-start" and found[-1]) or (ended and kind in CONTENT):
            found.append([])
            ended = False
        found[-1].append(part)
        ended = ended or kind == "step-finish"
    return found


def said(entry: Entry, step: Sequence[Record]) -> Iterator[Message]:
    content = "\n\n".join(texts(step))
    if entry.info.get("summary") is True:
        if content:
            yield Message("system", content, started(entry, step), event="compaction")
        return
    tools = [part for part in step if part.get("type") == "tool"]
    thinking = "\n\n".join(texts(step, "reasoning")) or None
    files = tuple(attachment(part) for part in step if part.get("type") == "file")
    if content or thinking or tools or files:
        yield Message(
            "assistant",
            content,
            started(entry, step),
            tool_calls=tuple(tool_call(part) for part in tools),
            thinking=thinking,
            model=text_at(entry.info, "modelID"),
            attachments=files,
        )
    for part in tools:
        yield from tool_answer(part)


def started(entry: Entry, step: Sequence[Record]) -> datetime | None:
    """When a step began: the first one with its message, a later one with the first of its parts that has a time."""
    if not entry.parts or (step and step[0] is entry.parts[0]):
        return entry.created
    times = (time_at(part, "time", "start") or time_at(part, "state", "time", "start") for part in step)
    return next((time for time in times if time), entry.created)


def tool_call(part: Record) -> ToolCall:
    begun, ended = int_at(part, "state", "time", "start"), int_at(part, "state", "time", "end")
    return ToolCall(
        text_at(part, "callID") or text_at(part, "id") or "",
        text_at(part, "tool") or "",
        at(part, "state", "input"),
        output(part),
        ended - begun if begun and ended and ended >= begun else None,
        at(part, "state", "status") == "error",
    )


def output(part: Record) -> str | None:
    """What a tool gave; None while it is pending or running: it never ended."""
    match at(part, "state", "status"):
        case "completed":
            return text_at(part, "state", "output") or ""
        case "error":
            return text_at(part, "state", "error") or text_at(part, "state", "output") or ""
        case _:
            return None


def tool_answer(part: Record) -> Iterator[Message]:
    call = tool_call(part)
    if call.output is not None:
        files = (one for one in list_at(part, "state", "attachments") if isinstance(one, dict))
        yield Message(
            "tool",
            call.output,
            time_at(part, "state", "time", "end"),
            tool_result=ToolResult(call.tool_call_id or None, call.tool_name or None, call.output),
            is_error=call.is_error,
            attachments=tuple(attachment(one) for one in files),
        )


def failure(entry: Entry) -> Message | None:
    error = dict_at(entry.info, "error")
    if not error:
        return None
    name = text_at(error, "name") or text_at(error, "type") or "error"
    text = text_at(error, "data", "message") or text_at(error, "message") or name
    time = time_at(entry.info, "time", "completed") or entry.created
    if name in ABORTED:
        return Message("system", text, time, event="interrupt")
    return Message("system", text, time, is_error=True, event="error")
