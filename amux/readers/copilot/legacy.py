"""One JSON document per session: `history-session-state/session_<id>_<milliseconds>.json` of the first previews.

It holds `timeline`, what the user saw, with times, and `chatMessages`, what the model saw: the same conversation twice.
The first versions with events take such a document over whole, as one `session.import_legacy` event. Documents with a
plain list of messages, as older descriptions of the agent have them under `github-copilot/sessions`, are read alike.
None of them records tokens.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from amux.errors import UnreadableSession
from amux.model import Attachment, Json, Message, Role, Session, ToolCall, ToolResult
from amux.readers import _base
from amux.readers._base import SessionRef
from amux.readers._json import Record, at, decoded, document, list_at, text_at, time_at

NAME = re.compile(r"session_(.+)_(\d+)\.json")
LISTS = ("chatMessages", "messages", "history")
TIMES = ("timestamp", "time", "createdAt", "created_at")
ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "copilot": "assistant",
    "tool": "tool",
    "function": "tool",
}


def identity(name: str) -> tuple[str, int]:
    """The session a document is of, and which of several is the newest, by its name."""
    if found := NAME.fullmatch(name):
        return found[1], int(found[2][:18])
    return name.removesuffix(".json"), 0


def unwrapped(text: str) -> str:
    """A prompt without what the program wrapped around it for the model."""
    for tag in ("reminder", "system_reminder"):
        if text.rstrip().endswith(f"</{tag}>") and f"<{tag}>" in text:
            text = text[: text.rfind(f"<{tag}>")].rstrip()
    if text.startswith("<current_datetime>"):
        text = text.partition("</current_datetime>")[2].lstrip()
    return text


def sessions(agent: str, ref: SessionRef) -> list[Session]:
    whole = document(ref.path)
    if not isinstance(whole, dict | list):
        raise UnreadableSession(ref.path, "it is no JSON document")
    found = messages(whole)
    if not any(message.role in ("user", "assistant") for message in found):
        return []
    created = time_at(whole, "startTime") or time_of(whole)
    names = ("cwd", "workspacePath", "workspace")
    return [
        _base.session(
            agent,
            text_at(whole, "sessionId") or ref.key,
            found,
            path=ref.path,
            title=text_at(whole, "title"),
            created_at=created,
            began=created,
            model=text_at(whole, "selectedModel") or text_at(whole, "model"),
            cwd=next((cwd for name in names if (cwd := text_at(whole, name))), None),
            usage_recorded=False,
        )
    ]


def messages(whole: Json) -> list[Message]:
    if timeline := list_at(whole, "timeline"):
        return list(seen(timeline, text_at(whole, "selectedModel")))
    found = whole if isinstance(whole, list) else next((list_at(whole, name) for name in LISTS if at(whole, name)), [])
    return list(exchanged(found))


def time_of(record: Json) -> datetime | None:
    return next((time for name in TIMES if (time := time_at(record, name))), None)


# What the user saw


def seen(timeline: list[Any], model: str | None) -> Iterator[Message]:
    """Each text of the model begins an answer; the calls after it belong to it."""
    answer: list[Record] = []
    for entry in timeline:
        match at(entry, "type"):
            case "copilot":
                yield from answered(answer, model)
                answer = [entry]
            case "tool_call_requested" | "tool_call_completed":
                answer.append(entry)
            case "group_tool_call_requested" | "group_tool_call_completed":
                answer.append({"name": at(entry, "title"), **entry})
            case "user" | "info" | "error" as kind:
                yield from answered(answer, model)
                answer = []
                yield from spoken(kind, entry)
    yield from answered(answer, model)


def spoken(kind: str, entry: Record) -> Iterator[Message]:
    text = text_at(entry, "text")
    if text and kind == "user":
        yield Message("user", unwrapped(text), time_of(entry))
    elif text:
        yield Message("system", text, time_of(entry), is_error=kind == "error", event=kind)


def answered(entries: list[Record], model: str | None) -> Iterator[Message]:
    if not entries:
        return
    # An entry is asked for first and completed later, under the same id.
    calls = {id: entry for entry in entries if (id := text_at(entry, "callId"))}
    yield Message(
        "assistant",
        text_at(entries[0], "text") or "",
        time_of(entries[0]),
        tool_calls=tuple(
            ToolCall(id, text_at(entry, "name") or "", entry.get("arguments"), result(entry), is_error=failed(entry))
            for id, entry in calls.items()
        ),
        model=model,
    )
    for id, entry in calls.items():
        if (log := result(entry)) is not None:
            name = text_at(entry, "name")
            yield Message("tool", log, time_of(entry), tool_result=ToolResult(id, name, log), is_error=failed(entry))


def result(entry: Record) -> str | None:
    if not isinstance(entry.get("result"), dict):
        return None
    return text_at(entry, "result", "log") or (text_at(entry, "result", "type") if failed(entry) else None) or ""


def failed(entry: Record) -> bool:
    return at(entry, "result", "type") in ("failure", "rejected", "denied")


# What the model saw


def exchanged(found: list[Any]) -> Iterator[Message]:
    outputs = {id: text_of(record) for record in found if (id := text_at(record, "tool_call_id"))}
    names: dict[str, str] = {}
    for record in found:
        role = ROLES.get((text_at(record, "role") or "").lower())
        text, time = text_of(record), time_of(record)
        if role == "user":
            attached = tuple(attachments(record))
            if (typed := unwrapped(text)) or attached:
                yield Message("user", typed, time, attachments=attached)
        elif role == "assistant":
            calls = tuple(call(one, outputs) for one in list_at(record, "tool_calls") if text_at(one, "id"))
            names.update((one.tool_call_id, one.tool_name) for one in calls)
            yield Message("assistant", text, time, tool_calls=calls, model=text_at(record, "model"))
        elif role == "tool":
            id = text_at(record, "tool_call_id")
            name = names.get(id or "") or text_at(record, "name")
            yield Message("tool", text, time, tool_result=ToolResult(id, name, text))


def call(given: Json, outputs: dict[str, str]) -> ToolCall:
    id = text_at(given, "id") or ""
    name = text_at(given, "function", "name") or text_at(given, "custom", "name") or ""
    arguments = text_at(given, "function", "arguments") or text_at(given, "custom", "input") or ""
    parsed = decoded(arguments)
    return ToolCall(id, name, arguments if parsed is None else parsed, outputs.get(id))


def text_of(record: Json) -> str:
    content = at(record, "content")
    if isinstance(content, str):
        return content
    return "\n".join(text for part in list_at(content) if (text := text_at(part, "text") or text_at(part, "refusal")))


def attachments(record: Json) -> Iterator[Attachment]:
    for part in list_at(record, "content"):
        match at(part, "type"):
            case "image_url":
                yield Attachment("image")
            case "file" | "input_audio" as kind:
                yield Attachment(str(kind), None, text_at(part, "file", "filename"))
