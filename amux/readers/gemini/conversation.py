"""From Gemini CLI's records to messages and charges."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from amux.model import Attachment, Charge, Message, ToolCall, ToolResult, Usage
from amux.readers._json import Record, dict_at, int_at, text_at, time_at
from amux.readers.gemini.record import (
    ACKNOWLEDGED,
    CONTINUED,
    SUMMARY,
    calls_of,
    paid,
    parts,
    prompt_of,
    responses_of,
    stock,
    text_of,
    thinking_of,
)
from amux.readers.gemini.replay import Log

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
FILES_BEGIN = "\n--- Content from referenced files ---"
FILES_END = "\n--- End of content ---"
FILE_NAME = re.compile(r"^Content from @?(.+):$", re.MULTILINE)
EVENTS = (("/", "command"), ("?", "command"), ("I ran the following shell command:\n", "shell"))
"""What stands in the user's name but went to the program, by how it begins."""
OUTPUTS = ("output", "error", "result", "content", "llmContent")
FAILED = ("error", "cancelled")


@dataclass(slots=True)
class Conversation:
    """The messages of a branch, where among them each answer is, and how many of the first were imported."""

    messages: list[Message] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    imported: int = 0


def conversation(log: Log) -> Conversation:
    lines = ordered(log)
    told = Conversation()
    known = {id for line in lines for call in calls_of(line) if (id := text_at(call, "id"))}
    answers = answers_of(lines)
    for line, following in zip(lines, [*lines[1:], {}], strict=False):
        match line.get("type"):
            case "user":
                told.messages += unasked(line, known)
                told.messages += said(line, summary=line["id"] in log.summaries or is_summary(line, following))
            case "gemini" if not stock(line):
                told.places[line["id"]] = len(told.messages)
                told.messages += answered(line, answers)
            case "info" | "warning" | "error" as kind:
                if line["id"] == log.imported:
                    told.imported, kind = len(told.messages), "branch"
                told.messages += notice(line, kind)
    return told


def ordered(log: Log) -> list[Record]:
    """The records of the branch; that of an import stands before what it copied, but came after."""
    lines = [log.records[id] for id in log.branch if id != log.imported]
    if log.imported:
        last = max((place for place, line in enumerate(lines) if log.copied(line)), default=-1)
        lines.insert(last + 1, log.records[log.imported])
    return lines


def is_summary(line: Record, following: Record) -> bool:
    """Whether it is a compression's summary; in an import, which copies what the program had left, it comes first."""
    text = prompt_of(line).lstrip()
    acknowledged = stock(following) and text_of(following.get("content")) == ACKNOWLEDGED
    return text.startswith(SUMMARY) or bool(text and acknowledged)


# What the user said


def said(line: Record, *, summary: bool) -> Iterator[Message]:
    text, time = prompt_of(line), time_at(line, "timestamp")
    if event := "compaction" if summary else event_of(text):
        yield Message("system", text.strip(), time, event=event)
        return
    prompt = typed(line, text)
    attached = () if responses_of(line.get("content")) else tuple(attachments(line.get("content")))
    if prompt.strip() or (attached and not text):
        yield Message("user", prompt, time, attachments=attached)


def event_of(text: str) -> str | None:
    return next((event for begin, event in EVENTS if text.lstrip().startswith(begin)), None)


def typed(line: Record, text: str) -> str:
    """What was typed: `displayContent` where the program expanded it, else the text without the files it names.

    The program's own prompts carry the `displayContent` of the prompt before, or of a tool's result.
    """
    if parts(line.get("displayContent")):
        return "" if text.strip() in ("", CONTINUED) else text_of(line.get("displayContent"))
    before, _, files = text.partition(FILES_BEGIN)
    return before + files.partition(FILES_END)[2]


def attachments(content: Any) -> Iterator[Attachment]:
    """Images and files: the names of those that `@` put into the prompt stand before what they hold."""
    name, inside = None, False
    for part in parts(content):
        if held := inlined(part):
            yield replace(held, name=name or held.name)
            name = None
            continue
        text = text_at(part, "text") or ""
        inside = inside or FILES_BEGIN in text
        for following in FILE_NAME.findall(text.partition(FILES_END)[0]) if inside else ():
            if name:
                yield Attachment("file", name=name)
            name = following
    if name:
        yield Attachment("file", name=name)


def inlined(part: Record) -> Attachment | None:
    held = dict_at(part, "inlineData") or dict_at(part, "fileData")
    if not held:
        return None
    media = text_at(held, "mimeType")
    kind = "image" if (media or "").startswith("image/") else "file"
    return Attachment(kind, media, text_at(held, "displayName") or text_at(held, "fileUri"))


def notice(line: Record, kind: str) -> Iterator[Message]:
    """What the program told at the screen; a compression's is empty."""
    text = text_of(line.get("content"))
    if text.strip():
        yield Message("system", text, time_at(line, "timestamp"), is_error=kind == "error", event=kind)


# What the model and its tools answered


def answered(line: Record, answers: dict[str, Record]) -> Iterator[Message]:
    calls = [told_call(line, number, call, answers) for number, call in enumerate(calls_of(line))]
    yield Message(
        "assistant",
        text_of(line.get("content")),
        time_at(line, "timestamp"),
        tool_calls=tuple(call for call, _ in calls),
        thinking=thinking_of(line) or None,
        model=text_at(line, "model"),
    )
    for call, record in calls:
        if call.output is not None:
            yield tool_message(call, record)


def told_call(line: Record, number: int, call: Record, answers: dict[str, Record]) -> tuple[ToolCall, Record]:
    """A call and its record; a result that is missing there may stand in the record that went back to the model."""
    id = text_at(call, "id") or f"{line['id']}#{number}"
    record = {**answers.get(id, {}), **{name: value for name, value in call.items() if value not in (None, "", [])}}
    output, failed = outcome(record.get("result"), id)
    return ToolCall(
        id,
        text_at(record, "name") or "",
        record.get("args"),
        output if output is not None else text_at(record, "resultDisplay"),
        is_error=failed or record.get("status") in FAILED,
    ), record


def answers_of(lines: Sequence[Record]) -> dict[str, Record]:
    """The results that went back to the model, by the call's id, each in the shape of a call's record."""
    found: dict[str, Record] = {}
    for line in lines:
        for response in responses_of(line.get("content")):
            if id := text_at(response, "id"):
                result = [{"functionResponse": response}]
                found.setdefault(id, {"result": result, "timestamp": line.get("timestamp")})
    return found


def unasked(line: Record, known: set[str]) -> Iterator[Message]:
    """Results of calls that stand nowhere, each once: a resume repeats them under the answer's id and `_response`."""
    for response in responses_of(line.get("content")):
        id = text_at(response, "id")
        if id in known:
            continue
        known.update([id] if id else [])
        output, failed = outcome([{"functionResponse": response}], id)
        call = ToolCall(id or "", text_at(response, "name") or "", None, output or "", is_error=failed)
        yield tool_message(call, line)


def tool_message(call: ToolCall, record: Record) -> Message:
    return Message(
        "tool",
        call.output or "",
        time_at(record, "timestamp"),
        tool_result=ToolResult(call.tool_call_id or None, call.tool_name or None, call.output),
        is_error=call.is_error,
        attachments=tuple(held for part in parts(record.get("result")) if (held := inlined(part))),
    )


def outcome(result: Any, id: str | None) -> tuple[str | None, bool]:
    """The text of a result, None when there is none, and whether it failed.

    A result written back from the history holds those of parallel calls as well.
    """
    responses = responses_of(result)
    own = [response for response in responses if text_at(response, "id") == id][:1] or responses
    texts = [text for response in own if (text := response_text(response.get("response"))) is not None]
    if len(own) == len(responses):
        texts += [text for part in parts(result) if (text := text_at(part, "text"))]
    failed = any(isinstance(one.get("response"), dict) and one["response"].get("error") for one in own)
    return ("\n".join(texts) if texts else None), failed


def response_text(response: Any) -> str | None:
    if isinstance(response, dict):
        response = next((response[name] for name in OUTPUTS if response.get(name) is not None), response)
    if response is None or isinstance(response, str):
        return response
    return orjson.dumps(response).decode()


# Charges


def charges(log: Log, places: dict[str, int]) -> list[Charge]:
    """One per message with tokens, from every line: what was rewound or compressed had been paid."""
    return [
        Charge(
            key=key(record),
            usage=usage(record["tokens"]),
            at=time_at(record, "timestamp"),
            model=text_at(record, "model"),
            claim="copied" if log.copied(record) else "unknown",
            message=places.get(id),
        )
        for id, record in log.records.items()
        if paid(record)
    ]


def key(record: Record) -> str:
    """An import keeps the ids of what it copies. Ids of other writers' files count from 1: only with the time they tell."""
    id = str(record["id"])
    return id if UUID.fullmatch(id) else f"{id} {record.get('timestamp')}"


def usage(tokens: Record) -> Usage:
    """`input` includes the cached and excludes what tools put into the prompt; `output` excludes thoughts."""
    cached, thoughts = int_at(tokens, "cached"), int_at(tokens, "thoughts")
    prompt, output = int_at(tokens, "input"), int_at(tokens, "output")
    return Usage(
        input_tokens=None if prompt is None else max(0, prompt - (cached or 0)) + (int_at(tokens, "tool") or 0),
        output_tokens=None if output is None and thoughts is None else (output or 0) + (thoughts or 0),
        thinking_tokens=thoughts,
        cached_tokens=cached,
    )
