"""OpenCode 2: rows of `session_message` in the shape of messages and parts.

The row's `type` says what it is. Only `user`, `assistant`, `shell` and `compaction` are conversation: `synthetic`, `system`
and `skill` were injected, `agent-switched`, `model-switched`, `location-switched` and `idle` are notes. Output never
includes reasoning, and a compaction has usage of its own from 2.0 on.
"""

from collections.abc import Iterable, Iterator

from amux.readers._json import Record, at, dict_at, list_at, text_at
from amux.readers.opencode.records import Entry


def entries(rows: Iterable[Record]) -> Iterator[Entry]:
    """The messages of a session from its rows, whose data is decoded."""
    for row in rows:
        id, data = str(row.get("id")), dict_at(row, "data")
        match row.get("type"):
            case "user":
                yield Entry(id, {"role": "user", "time": data.get("time")}, [*prompt_parts(data)])
            case "assistant":
                yield answer(id, data, [part for block in blocks(data, "content") if (part := content_part(block))])
            case "shell":
                yield answer(id, {"time": data.get("time"), "tokens": {}}, [shell_part(id, data)])
            case "compaction":
                yield answer(id, data, [{"type": "text", "text": data.get("summary")}], summary=True)


def answer(id: str, data: Record, parts: list[Record], *, summary: bool = False) -> Entry:
    info = {
        **{name: data.get(name) for name in ("time", "cost", "tokens", "error")},
        "role": "assistant",
        "modelID": at(data, "model", "id"),
        "providerID": at(data, "model", "providerID"),
        "summary": summary,
    }
    return Entry(id, info, parts, reasoning_apart=True)


def blocks(value: Record, *path: str) -> list[Record]:
    return [block for block in list_at(value, *path) if isinstance(block, dict)]


def prompt_parts(data: Record) -> Iterator[Record]:
    yield {"type": "text", "text": data.get("text")}
    yield from (file_part(file) for file in blocks(data, "files"))


def file_part(file: Record) -> Record:
    return {"type": "file", "mime": file.get("mime"), "filename": file.get("name"), "url": file.get("uri")}


def content_part(block: Record) -> Record | None:
    match block.get("type"):
        case "text" | "reasoning":
            return block
        case "tool":
            return tool_part(block)
        case _:
            return None


def tool_part(block: Record) -> Record:
    state = dict_at(block, "state")
    given = blocks(state, "content")
    return {
        "type": "tool",
        "tool": block.get("name"),
        "callID": block.get("callID") or block.get("id"),
        "state": {
            "status": state.get("status"),
            "input": state.get("input"),
            "output": "\n".join(text for one in given if (text := text_at(one, "text"))),
            "error": text_at(state, "error", "message") or text_at(state, "error"),
            "time": {
                "start": at(block, "time", "ran") or at(block, "time", "created"),
                "end": at(block, "time", "completed"),
            },
            "attachments": [file_part(one) for one in given if one.get("type") == "file"],
        },
    }


def shell_part(id: str, data: Record) -> Record:
    """A command the user ran: `output` is its text, in later versions an object that holds it."""
    output = text_at(data, "output") or text_at(data, "output", "output")
    return {
        "type": "tool",
        "tool": "bash",
        "callID": text_at(data, "callID") or text_at(data, "shellID") or id,
        "state": {
            "status": "running" if data.get("status") == "running" else "completed",
            "input": {"command": data.get("command")},
            "output": output,
            "time": {"start": at(data, "time", "created"), "end": at(data, "time", "completed")},
        },
    }
