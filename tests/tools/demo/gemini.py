"""Gemini CLI 0.61: ~/.gemini/tmp/<slug of the directory>/chats/session-<minute>-<start of the id>.jsonl."""

import json
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Any

from demo.script import (
    Answer,
    Call,
    Chance,
    Edit,
    Made,
    Read,
    Search,
    Shell,
    Story,
    acts,
    iso,
    json_lines,
    milliseconds,
)


def files(stories: Iterable[Story]) -> dict[str, str]:
    found, projects = {}, {}
    for story in stories:
        session = story.chance("session").uuid()
        projects[story.cwd] = story.project
        found[f".gemini/tmp/{story.project}/.project_root"] = story.cwd
        name = f"session-{story.began:%Y-%m-%dT%H-%M}-{session[:8]}.jsonl"
        found[f".gemini/tmp/{story.project}/chats/{name}"] = json_lines(lines(story, session))
    return found | {".gemini/projects.json": json.dumps({"projects": projects}, indent=2)}


def lines(story: Story, session: str) -> Iterable[dict[str, Any]]:
    began, chance = iso(story.began), story.chance("chat")
    project = {"projectHash": sha256(story.cwd.encode()).hexdigest()}
    yield {"sessionId": session} | project | {"startTime": began, "lastUpdated": began, "kind": "main"}
    for act in acts(story):
        yield from message(chance, act.at, "user", [{"text": act.prompt}])
        for answer in act.answers:
            yield from answered(story, chance, answer)
    if story.title:
        yield {"$set": {"summary": story.title}}


def message(chance: Chance, at: datetime, type: str, content: Any, **fields: Any) -> Iterable[dict[str, Any]]:
    yield {"id": chance.uuid(), "timestamp": iso(at), "type": type, "content": content} | fields
    yield {"$set": {"lastUpdated": iso(at)}}


def answered(story: Story, chance: Chance, answer: Answer) -> Iterable[dict[str, Any]]:
    """A response with calls is written again when they are done, and what they gave follows as a message."""
    thoughts = [{"subject": "", "description": answer.reply.thinks, "timestamp": iso(answer.at)}]
    said = {
        "thoughts": thoughts if answer.reply.thinks else [],
        "tokens": tokens(answer),
        "model": story.model.id,
    }
    record, updated = message(chance, answer.at, "gemini", answer.reply.text, **said)
    yield record
    yield updated
    if answer.calls:
        calls = [tool_call(made, story.cwd) for made in answer.calls]
        yield record | {"toolCalls": calls}
        yield from message(chance, answer.calls[-1].at, "user", [part for call in calls for part in call["result"]])


def tokens(answer: Answer) -> dict[str, int]:
    used = answer.usage
    said = used.output - used.thinking
    counts = {"input": used.prompt, "output": said, "cached": used.cached, "thoughts": used.thinking, "tool": 0}
    return counts | {"total": used.prompt + used.output}


def tool_call(made: Made, cwd: str) -> dict[str, Any]:
    name, given, output, shown, display = tool(made.call, cwd)
    id = f"{name}__{name}_{milliseconds(made.began)}_0"
    response = {"functionResponse": {"id": id, "name": name, "response": {"output": output}}}
    return {
        "id": id,
        "name": name,
        "args": given,
        "result": [response],
        "status": "success",
        "timestamp": iso(made.at),
        "resultDisplay": shown,
        "displayName": display,
    }


def tool(call: Call, cwd: str) -> tuple[str, dict[str, Any], str, Any, str]:
    """Name, arguments, output for the model, output for the screen and the name there."""
    match call:
        case Shell(command, output, about):
            wrapped = f"<untrusted_context>\nOutput: {output}\n</untrusted_context>"
            return "run_shell_command", {"command": command, "description": about}, wrapped, output, "Shell"
        case Read(path, output):
            return "read_file", {"file_path": f"{cwd}/{path}"}, output, "", "ReadFile"
        case Search(pattern, output):
            found = f"Found {len(output.splitlines())} matches"
            return "grep_search", {"pattern": pattern}, output, found, "SearchText"
        case Edit(path, old, new):
            given = {"file_path": f"{cwd}/{path}", "old_string": old, "new_string": new}
            return "replace", given, f"{path} was changed", {"fileName": path}, "Edit"
        case _:
            raise ValueError(f"no story has gemini do this: {call}")
