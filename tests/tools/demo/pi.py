"""Pi 1.5 and omp 18.2, which grew out of it: one file a session, a tree of entries, and what each call cost in USD."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from demo.script import (
    Act,
    Answer,
    Call,
    Chance,
    Edit,
    Made,
    Read,
    Shell,
    Story,
    Usage,
    Write,
    acts,
    iso,
    json_line,
    json_lines,
    milliseconds,
    usd,
)

SLOT = 256
APIS = {"anthropic": "anthropic-messages", "openai": "openai-responses"}


def files(stories: Iterable[Story]) -> dict[str, str]:
    found = {}
    for story in stories:
        session = story.chance("session").timed_uuid(story.began)
        tree = (Omp if story.agent == "omp" else Pi)(story, story.chance("entries"))
        tree.open(session)
        for act in acts(story):
            tree.act(act)
        tree.close()
        time = iso(story.began).replace(":", "-").replace(".", "-")
        found[f"{tree.directory()}/{time}_{session}.jsonl"] = json_lines(tree.entries)
    return found


@dataclass
class Pi:
    """A session's entries; `leaf` is the one that the next hangs on."""

    story: Story
    chance: Chance
    leaf: str | None = None
    last: datetime | None = None
    entries: list[dict[str, Any]] = field(default_factory=list)

    def directory(self) -> str:
        return f".pi/agent/sessions/--{self.story.cwd[1:].replace('/', '-')}--"

    def entry(self, at: datetime, type: str, **fields: Any) -> None:
        id = self.chance.hex(8)
        self.entries.append({"type": type, "id": id, "parentId": self.leaf, "timestamp": iso(at)} | fields)
        self.leaf, self.last = id, at

    def open(self, session: str) -> None:
        story = self.story
        self.entries.append(header(story, session))
        self.entry(story.began, "model_change", provider=story.model.provider, modelId=story.model.id)
        self.entry(story.began, "thinking_level_change", thinkingLevel="medium")

    def act(self, act: Act) -> None:
        fork = self.leaf
        content = [{"type": "text", "text": act.prompt}]
        message = {"role": "user", "content": content} | self.author() | {"timestamp": milliseconds(act.at)}
        self.entry(act.at, "message", message=message)
        for answer in act.answers:
            self.answer(answer)
        if act.left:
            left, self.leaf = self.leaf, fork
            self.entry(act.ended + timedelta(seconds=9), "branch_summary", fromId=left, summary=act.left)

    def answer(self, answer: Answer) -> None:
        story, reply = self.story, answer.reply
        text = [{"type": "text", "text": reply.text}] if reply.text else []
        message = {
            "role": "assistant",
            "content": text + [self.call(made) for made in answer.calls],
            "api": APIS[story.model.provider],
            "provider": story.model.provider,
            "model": story.model.id,
            "usage": self.usage(answer.usage),
            "stopReason": "toolUse" if answer.calls else "stop",
            "timestamp": milliseconds(answer.began),
            "responseId": f"resp_{self.chance.hex(32)}",
        }
        self.entry(answer.at, "message", message=message | self.timing(answer))
        for made in answer.calls:
            self.result(made)

    def call(self, made: Made) -> dict[str, Any]:
        name, given = tool(made.call)
        return {"type": "toolCall", "id": call_id(made), "name": name, "arguments": given}

    def result(self, made: Made) -> None:
        call = made.call
        failed = isinstance(call, Shell) and call.exit != 0
        content = [{"type": "text", "text": self.output(made)}]
        about = {"role": "toolResult", "toolCallId": call_id(made), "toolName": tool(call)[0]}
        ended = {"isError": failed} | self.duration(made) | {"timestamp": milliseconds(made.at)}
        self.entry(made.at, "message", message=about | {"content": content} | ended)

    def output(self, made: Made) -> str:
        return f"{made.call.output or 'The file was changed.'}\n"

    def usage(self, used: Usage) -> dict[str, Any]:
        counts = {"input": used.fresh, "output": used.output, "cacheRead": used.cached, "cacheWrite": used.written}
        counts |= self.thought(used) | {"totalTokens": used.prompt + used.output}
        return counts | {"cost": usd(self.story.model, used)}

    def author(self) -> dict[str, Any]:
        return {}

    def thought(self, used: Usage) -> dict[str, int]:
        return {"reasoning": used.thinking}

    def timing(self, answer: Answer) -> dict[str, Any]:
        return {"durationMs": took(answer.began, answer.at), "thinkingLevel": "medium"}

    def duration(self, made: Made) -> dict[str, Any]:
        return {"durationMs": took(made.began, made.at)}

    def close(self) -> None:
        if self.story.title and self.last:
            self.entry(self.last + timedelta(seconds=20), "session_info", name=self.story.title)


class Omp(Pi):
    """Omp keeps the title in a first line of fixed length, so that it can be written anew in place."""

    def directory(self) -> str:
        return f".omp/agent/sessions/{self.story.cwd.removeprefix('/home/dev').replace('/', '-')}"

    def open(self, session: str) -> None:
        story = self.story
        named = story.began + timedelta(seconds=11)
        slot = {"type": "title", "v": 1, "title": story.title, "source": "auto", "updatedAt": iso(named), "pad": ""}
        slot["pad"] = " " * (SLOT - 1 - len(json_line(slot)))
        self.entries.append(slot)
        self.entries.append(header(story, session) | {"title": story.title, "titleSource": "auto"})
        self.entry(story.began, "model_change", model=f"{story.model.provider}/{story.model.id}")
        self.entry(story.began, "thinking_level_change", thinkingLevel="medium", configured=None)

    def result(self, made: Made) -> None:
        name, given = tool(made.call)
        started = {"toolCallId": call_id(made), "toolName": name, "startedAt": iso(made.began), "args": given}
        self.entry(made.began, "custom", customType="tool_execution_start", data=started)
        super().result(made)

    def output(self, made: Made) -> str:
        text = super().output(made)
        seconds = (made.at - made.began).total_seconds()
        return f"{text}\n\nWall time: {seconds:.2f} seconds" if isinstance(made.call, Shell) else text

    def author(self) -> dict[str, Any]:
        return {"attribution": "user"}

    def thought(self, used: Usage) -> dict[str, int]:
        return {"reasoningTokens": used.thinking}

    def timing(self, answer: Answer) -> dict[str, Any]:
        return {"duration": took(answer.began, answer.at), "completedAt": milliseconds(answer.at)}

    def duration(self, made: Made) -> dict[str, Any]:
        return {"details": {"wallTimeMs": took(made.began, made.at)}} if isinstance(made.call, Shell) else {}

    def close(self) -> None:
        if self.last:
            at = self.last + timedelta(seconds=30)
            self.entry(at, "custom", customType="session_exit", data={"reason": "dispose", "kind": "normal"})


def header(story: Story, session: str) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": session, "timestamp": iso(story.began), "cwd": story.cwd}


def call_id(made: Made) -> str:
    return f"call_{made.id}"


def took(began: datetime, ended: datetime) -> int:
    return (ended - began) // timedelta(milliseconds=1)


def tool(call: Call) -> tuple[str, dict[str, Any]]:
    match call:
        case Shell(command):
            return "bash", {"command": command}
        case Read(path):
            return "read", {"path": path}
        case Edit(path, old, new):
            return "edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}
        case Write(path, text):
            return "write", {"path": path, "content": text}
        case _:
            raise ValueError(f"no story has pi or omp do this: {call}")
