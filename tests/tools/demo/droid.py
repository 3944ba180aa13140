"""Droid 0.225: ~/.factory/sessions/<directory>/<session>.jsonl, the tokens in <session>.settings.json beside it."""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from demo.script import (
    Act,
    Answer,
    Call,
    Edit,
    Made,
    Read,
    Search,
    Shell,
    Story,
    Usage,
    Write,
    acts,
    iso,
    json_lines,
    spent,
)


def files(stories: Iterable[Story]) -> dict[str, str]:
    found = {}
    for story in stories:
        session, performed = story.chance("session").uuid(), acts(story)
        path = f".factory/sessions/{story.cwd.replace('/', '-')}/{session}"
        found[f"{path}.jsonl"] = json_lines(lines(story, session, performed))
        found[f"{path}.settings.json"] = json.dumps(settings(story, performed), indent=2)
    return found


def lines(story: Story, session: str, performed: list[Act]) -> Iterable[dict[str, Any]]:
    chance = story.chance("lines")
    prompt = performed[0].prompt
    about = {"owner": "dev", "version": 2, "cwd": story.cwd, "hostId": chance.uuid()}
    yield {"type": "session_start", "id": session, "title": story.title or prompt} | about
    before: dict[str, str] = {}
    for act in performed:
        turn = chance.uuid()
        content = [{"type": "text", "text": act.prompt}]
        yield message(turn, before, iso(act.at), {"role": "user", "content": content, "interactionMode": "auto"})
        before = {"parentId": turn}
        for answer in act.answers:
            id = chance.uuid()
            yield message(id, before, iso(answer.at), said(story, answer))
            before = {"parentId": id}
            if answer.calls:
                id = chance.uuid()
                results = [result(made) for made in answer.calls]
                yield message(id, before, iso(answer.calls[-1].at), {"role": "user", "content": results})
                before = {"parentId": id}
        yield {"type": "agent_turn_outcome", "turnId": turn, "reason": "completed", "resultKind": "text"}


def message(id: str, before: dict[str, str], at: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": id} | before | {"timestamp": at, "message": content}


def said(story: Story, answer: Answer) -> dict[str, Any]:
    text = [{"type": "text", "text": answer.reply.text}] if answer.reply.text else []
    calls = [
        {"type": "tool_use", "id": f"toolu_01{made.id[:22]}", "name": name, "input": given}
        for made in answer.calls
        for name, given in [tool(made.call, story.cwd)]
    ]
    return {"role": "assistant", "content": text + calls, "modelId": story.model.id, "reasoningEffort": "medium"}


def result(made: Made) -> dict[str, Any]:
    call = made.call
    text = f"{call.output}\n\n\n[Process exited with code {call.exit}]" if isinstance(call, Shell) else call.output
    failed = isinstance(call, Shell) and call.exit != 0
    id = f"toolu_01{made.id[:22]}"
    return {"type": "tool_result", "tool_use_id": id, "is_error": failed, "content": text or "The file was changed."}


def tool(call: Call, cwd: str) -> tuple[str, dict[str, Any]]:
    match call:
        case Shell(command, _, about):
            return "Execute", {"command": command, "summary": about, "riskLevel": "low"}
        case Read(path):
            return "Read", {"file_path": f"{cwd}/{path}"}
        case Search(pattern):
            return "Grep", {"pattern": pattern, "output_mode": "content"}
        case Edit(path, old, new):
            return "Edit", {"file_path": f"{cwd}/{path}", "old_str": old, "new_str": new}
        case Write(path, text):
            return "Create", {"file_path": f"{cwd}/{path}", "content": text}
        case _:
            raise ValueError(f"no story has droid do this: {call}")


def settings(story: Story, performed: list[Act]) -> dict[str, Any]:
    """The tokens are those of the whole session: droid keeps none by the call."""
    total, last = tokens(spent(performed)), performed[-1].answers[-1].usage
    active = sum((answer.at - answer.began for act in performed for answer in act.answers), timedelta())
    return {
        "assistantActiveTimeMs": active // timedelta(milliseconds=1),
        "model": story.model.id,
        "reasoningEffort": "medium",
        "interactionMode": "auto",
        "autonomyLevel": "low",
        "autonomyMode": "auto-low",
        "tags": [{"name": tag} for tag in story.tags],
        "tokenUsage": total,
        "inclusiveTokenUsage": total,
        "childInclusiveTokenUsageBySessionId": {},
        "providerLock": story.model.provider,
        "providerLockTimestamp": iso(story.began),
        "lastCallTokenUsage": {key: value for key, value in tokens(last).items() if key in LAST},
    }


LAST = ("inputTokens", "outputTokens", "cacheReadTokens")


def tokens(used: Usage) -> dict[str, int]:
    return {
        "inputTokens": used.fresh,
        "outputTokens": used.output,
        "cacheCreationTokens": used.written,
        "cacheReadTokens": used.cached,
        "thinkingTokens": used.thinking,
    }
