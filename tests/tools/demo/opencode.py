"""Opencode 1.1: a JSON file for each session, message and part below ~/.local/share/opencode/storage."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from demo.script import (
    Act,
    Answer,
    Call,
    Chance,
    Edit,
    Made,
    Shell,
    Story,
    Usage,
    Write,
    acts,
    milliseconds,
    usd,
)

STORAGE = ".local/share/opencode/storage"
VERSION = "1.1.65"


def files(stories: Iterable[Story]) -> dict[str, str]:
    found = {f"{STORAGE}/migration": "2"}
    for story in stories:
        store = Store(story, story.chance("store"))
        store.play()
        found |= {f"{STORAGE}/{path}.json": json.dumps(value, indent=2) for path, value in store.files.items()}
    return found


@dataclass
class Store:
    story: Story
    chance: Chance
    session: str = ""
    made: int = 0
    files: dict[str, Any] = field(default_factory=dict)

    def id(self, kind: str, at: datetime) -> str:
        """Ids sort by time; those of sessions the other way round, the newest first."""
        self.made += 1
        time = milliseconds(at) * 0x1000 + self.made % 0x1000
        if kind == "ses":
            time = ~time
        return f"{kind}_{time & 0xFFFF_FFFF_FFFF:012x}{self.chance.hex(14)}"

    def play(self) -> None:
        story = self.story
        self.session = self.id("ses", story.began)
        performed = acts(story)
        for act in performed:
            self.act(act)
        times = {"created": milliseconds(story.began), "updated": milliseconds(performed[-1].ended)}
        self.files[f"project/{story.commit}"] = {
            "id": story.commit,
            "worktree": story.cwd,
            "vcs": "git",
            "sandboxes": [],
            "time": {"created": times["created"], "updated": times["created"]},
        }
        self.files[f"session/{story.commit}/{self.session}"] = {
            "id": self.session,
            "slug": "quiet-harbor",
            "version": VERSION,
            "projectID": story.commit,
            "directory": story.cwd,
            "title": story.title,
            "time": times,
            "summary": summary([made.call for act in performed for one in act.answers for made in one.calls]),
        }

    def act(self, act: Act) -> None:
        model = {"providerID": self.story.model.provider, "modelID": self.story.model.id}
        said = {"role": "user", "time": {"created": milliseconds(act.at)}, "agent": "build", "model": model}
        prompt = self.message(act.at, said)
        self.part(prompt, act.at, type="text", text=act.prompt)
        for answer in act.answers:
            self.answer(prompt, answer)

    def message(self, at: datetime, fields: dict[str, Any]) -> str:
        id = self.id("msg", at)
        self.files[f"message/{self.session}/{id}"] = {"id": id, "sessionID": self.session} | fields
        return id

    def part(self, message: str, at: datetime, **fields: Any) -> None:
        id = self.id("prt", at)
        self.files[f"part/{message}/{id}"] = {"id": id, "sessionID": self.session, "messageID": message} | fields

    def answer(self, prompt: str, answer: Answer) -> None:
        story = self.story
        cost, counts = usd(story.model, answer.usage)["total"], tokens(answer.usage)
        finish = "tool-calls" if answer.calls else "stop"
        id = self.message(
            answer.began,
            {
                "role": "assistant",
                "time": {"created": milliseconds(answer.began), "completed": milliseconds(answer.ended)},
                "parentID": prompt,
                "modelID": story.model.id,
                "providerID": story.model.provider,
                "mode": "build",
                "agent": "build",
                "path": {"cwd": story.cwd, "root": story.cwd},
                "cost": cost,
                "tokens": counts,
                "finish": finish,
            },
        )
        self.part(id, answer.began, type="step-start")
        if answer.reply.text:
            self.part(id, answer.at, type="text", text=answer.reply.text, time=span(answer.began, answer.at))
        for made in answer.calls:
            name, state = tool(made, story.cwd)
            self.part(id, made.began, type="tool", callID=f"toolu_01{made.id[:22]}", tool=name, state=state)
        self.part(id, answer.ended, type="step-finish", reason=finish, cost=cost, tokens=counts)


def summary(calls: list[Call]) -> dict[str, int]:
    edits = [call for call in calls if isinstance(call, Edit)]
    writes = [call for call in calls if isinstance(call, Write)]
    added = [*(call.new for call in edits), *(call.text for call in writes)]
    return {
        "additions": sum(len(text.split("\n")) for text in added),
        "deletions": sum(len(call.old.split("\n")) for call in edits),
        "files": len({*(call.path for call in edits), *(call.path for call in writes)}),
    }


def span(began: datetime, ended: datetime) -> dict[str, int]:
    return {"start": milliseconds(began), "end": milliseconds(ended)}


def tokens(used: Usage) -> dict[str, Any]:
    cache = {"read": used.cached, "write": used.written}
    return {
        "total": used.prompt + used.output,
        "input": used.fresh,
        "output": used.output,
        "reasoning": 0,
        "cache": cache,
    }


def tool(made: Made, cwd: str) -> tuple[str, dict[str, Any]]:
    """The tool's name and its state: in opencode a call and its answer are one part."""
    name, given, title = asked(made.call, cwd)
    output = made.call.output or f"{title} was changed"
    state = {"status": "completed", "input": given, "output": output, "title": title, "metadata": {}}
    return name, state | {"time": span(made.began, made.at)}


def asked(call: Call, cwd: str) -> tuple[str, dict[str, Any], str]:
    match call:
        case Shell(command, _, about):
            return "bash", {"command": command, "description": about}, about
        case Edit(path, old, new):
            return "edit", {"filePath": f"{cwd}/{path}", "oldString": old, "newString": new}, path
        case Write(path, text):
            return "write", {"filePath": f"{cwd}/{path}", "content": text}, path
        case _:
            raise ValueError(f"no story has opencode do this: {call}")
