"""The first generation: JSON lines, a header and then messages and summaries in the order they came.

A fork's second line names its parent's file and the last entry it copied; copies are the same to the byte. A summary stands
between the prompt that set it off and the answer, and everything before it stays. Costs are zeros: never filled in. Whether
`input` includes what was read from the cache depends on the API, not on `provider`; the total tells.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from amux.errors import UnreadableSession
from amux.model import Attachment, Charge, Message, Session, ToolCall, ToolResult, Usage
from amux.readers import _base
from amux.readers._base import SessionRef, stamp
from amux.readers._json import Record, at, decoded, int_at, list_at, regular, text_at, time_at, usd_at

NAME = re.compile(r"\d{8}-\d{6}-([0-9a-f]{8})\.jsonl")
START = re.compile(rb'\{"type":"(?:session|message|compaction|branch)","id":"')
"""How a line begins. Inside a string the quotes would have backslashes before them."""
FAILED = ("error", "aborted")


@dataclass(slots=True)
class Log:
    header: Record = field(default_factory=dict)
    branch: Record = field(default_factory=dict)
    entries: list[Record] = field(default_factory=list)


def records(path: str) -> Iterator[Record]:
    """The objects of a file. A resume after a crash goes on behind a torn line: what it wrote there is found too."""
    try:
        with regular(path) as lines:
            for line in lines:
                record = decoded(line) or decoded(appended(line))
                if isinstance(record, dict):
                    yield record
    except OSError as error:
        raise UnreadableSession(path, error.strerror or str(error)) from error


def appended(line: bytes) -> bytes:
    starts = [found.start() for found in START.finditer(line)]
    return line[starts[-1] :] if starts else b""


def read_log(path: str) -> Log:
    log = Log()
    for record in records(path):
        match record.get("type"):
            case "session":
                log.header = log.header or record
            case "branch":
                log.branch = log.branch or record
            case "message" | "compaction":
                log.entries.append(record)
    return log


def session_id(log: Log, path: str) -> str | None:
    """The header's id; where a crash took the header, what the file's name has of it; None: another program's file."""
    if log.header:
        return text_at(log.header, "id") if log.header.get("version") == 1 else None
    named = NAME.fullmatch(os.path.basename(path))
    return named[1] if named and any("parent_id" in entry for entry in log.entries) else None


def sessions(agent: str, ref: SessionRef) -> list[Session]:
    log = read_log(ref.path)
    id = session_id(log, ref.path)
    copied = inherited_entries(log)
    messages, places = conversation(log, copied)
    if not id or not messages:
        return []
    parent = parent_file(ref.path, log)
    began = time_at(log.header, "timestamp")
    made = _base.session(
        agent,
        id,
        messages,
        path=ref.path,
        charges=charges(log, id, copied, places),
        created_at=began,
        updated_at=max((time for entry in log.entries for time in times(entry)), default=None),
        began=began,
        cwd=text_at(log.header, "cwd"),
        forked_from=parent_id(parent) if parent else None,
        based_on=(os.path.basename(parent),) if parent else (),
    )
    return [made]


# Forks


def inherited_entries(log: Log) -> int:
    """How many entries a fork copied: up to the one it names; where that line is torn, those older than the file."""
    last = text_at(log.branch, "fork_entry_id")
    if not last:
        return 0
    ids = [entry.get("id") for entry in log.entries]
    if last in ids:
        return ids.index(last) + 1
    began = time_at(log.header, "timestamp")
    older = (time_at(entry, "timestamp") for entry in log.entries)
    return sum(bool(began and time and time < began) for time in older)


def parent_file(path: str, log: Log) -> str | None:
    """Where a fork's parent would lie: its path is of the machine that wrote it, only the name counts."""
    name = re.split(r"[/\\]", text_at(log.branch, "parent_session_path") or "")[-1]
    named = name.endswith(".jsonl") and "\0" not in name and name != os.path.basename(path)
    return os.path.join(os.path.dirname(path), name) if named else None


def parent_id(path: str) -> str | None:
    """The parent's id; the digits its file's name has of it where the file is gone."""
    named = NAME.fullmatch(os.path.basename(path))
    short = named[1] if named else None
    try:
        first = next(records(path), {}) if stamp(path) else {}
    except UnreadableSession:
        return short
    return (text_at(first, "id") if first.get("type") == "session" else None) or short


# From entries to messages


def conversation(log: Log, copied: int) -> tuple[list[Message], dict[int, int]]:
    """The messages, and where among them the answer of an entry stands."""
    results = {id: entry for entry in log.entries if (id := text_at(entry, "message", "tool_call_id"))}
    messages: list[Message] = []
    places: dict[int, int] = {}
    for number, entry in enumerate(log.entries):
        if number == copied:
            messages += left_behind(log)
        for message in said(entry, results):
            if message.role == "assistant":
                places[number] = len(messages)
            messages.append(replace(message, inherited=number < copied))
    if copied == len(log.entries):
        messages += left_behind(log)
    return messages, places


def left_behind(log: Log) -> Iterator[Message]:
    """What a fork says of the part of its parent that it did not copy."""
    if summary := text_at(log.branch, "branch_summary"):
        yield Message("system", summary, time_at(log.branch, "timestamp"), event="branch")


def said(entry: Record, results: dict[str, Record]) -> Iterator[Message]:
    time = next(times(entry), None)
    blocks = blocks_of(entry)
    if entry.get("type") == "compaction":
        yield Message("system", text_at(entry, "summary") or "", time, event="compaction")
        return
    match at(entry, "message", "role"):
        case "user" if blocks:
            yield Message("user", "\n".join(texts(blocks)), time, attachments=images(blocks))
        case "assistant":
            yield from answered(entry, blocks, time, results)
        case "tool_result":
            yield result(entry, blocks, time)


def times(entry: Record) -> Iterator[datetime]:
    """When it was said, to the millisecond (an answer: when it began), and when the line was written."""
    if time := time_at(entry, "message", "timestamp"):
        yield time
    if time := time_at(entry, "timestamp"):
        yield time


def blocks_of(entry: Record) -> list[Record]:
    return [block for block in list_at(entry, "message", "content") if isinstance(block, dict)]


def texts(blocks: list[Record], kind: str = "text") -> list[str]:
    return [text for block in blocks if block.get("type") == kind and (text := text_at(block, kind))]


def images(blocks: list[Record]) -> tuple[Attachment, ...]:
    return tuple(Attachment("image", text_at(block, "mime_type")) for block in blocks if block.get("type") == "image")


def answered(
    entry: Record, blocks: list[Record], time: datetime | None, results: dict[str, Record]
) -> Iterator[Message]:
    """An answer, as much of it as had arrived, and the error that ended it."""
    error = failure(entry)
    if blocks or not error:
        yield Message(
            "assistant",
            "\n\n".join(texts(blocks)),
            time,
            tool_calls=tuple(call(block, results) for block in blocks if block.get("type") == "tool_call"),
            # Each part of a summary is followed by a blank line.
            thinking="\n\n".join(thought.strip() for thought in texts(blocks, "thinking")) or None,
            model=text_at(entry, "message", "model"),
        )
    if error:
        yield Message("system", error, time, is_error=True, event="error")


def failure(entry: Record) -> str | None:
    reason = text_at(entry, "message", "stop_reason")
    return text_at(entry, "message", "error_message") or (reason if reason in FAILED else None)


def call(block: Record, results: dict[str, Record]) -> ToolCall:
    id = text_at(block, "id") or ""
    done = results.get(id)
    output = "\n".join(texts(blocks_of(done))) if done else None
    failed = at(done, "message", "is_error") is True
    # An empty object is left out when it is written.
    return ToolCall(id, text_at(block, "name") or "", block.get("arguments", {}), output, is_error=failed)


def result(entry: Record, blocks: list[Record], time: datetime | None) -> Message:
    text = "\n".join(texts(blocks))
    return Message(
        "tool",
        text,
        time,
        tool_result=ToolResult(text_at(entry, "message", "tool_call_id"), text_at(entry, "message", "tool_name"), text),
        is_error=at(entry, "message", "is_error") is True,
        attachments=images(blocks),
    )


# Charges


def charges(log: Log, id: str, copied: int, places: dict[int, int]) -> list[Charge]:
    found = []
    for number, entry in enumerate(log.entries):
        told = at(entry, "message", "usage")
        usage = usage_of(told)
        # A failed call has zeros; so has an answer of a server that does not count, but that one was a call.
        if at(entry, "message", "role") != "assistant" or (usage == Usage() and failure(entry)):
            continue
        charge = Charge(
            key=key(entry) or f"{id} {number}",
            usage=usage,
            at=next(times(entry), None),
            model=text_at(entry, "message", "model"),
            provider=text_at(entry, "message", "provider"),
            usd=usd_at(told, "cost", "total") or None,
            claim="copied" if number < copied else "own",
            message=places.get(number),
        )
        found.append(charge)
    return found


def key(entry: Record) -> str | None:
    """Eight digits are too few to tell all entries of a store apart; with the time they do, and a copy has both."""
    id = text_at(entry, "id")
    return f"{id} {at(entry, 'message', 'timestamp') or entry.get('timestamp')}" if id else None


def usage_of(told: Any) -> Usage:
    """Fresh input: where the total is input and output alone, what was read from the cache is part of the input."""
    names = ("input", "output", "cache_read", "cache_write", "total_tokens")
    fresh, output, read, written, total = (int_at(told, name) for name in names)
    if not any((fresh, output, read, written)):
        return Usage()
    if fresh is not None and read and total == fresh + (output or 0):
        fresh = max(0, fresh - read)
    return Usage(input_tokens=fresh, output_tokens=output, cached_tokens=read, cache_write_tokens=written)
