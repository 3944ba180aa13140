"""GitHub Copilot CLI 1.0.102: ~/.copilot/session-state/<session>/events.jsonl and workspace.yaml."""

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
    Search,
    Shell,
    Story,
    Usage,
    acts,
    iso,
    json_lines,
    milliseconds,
    spent,
)

VERSION = "1.0.102"


def files(stories: Iterable[Story]) -> dict[str, str]:
    found = {}
    for story in stories:
        log = played(story)
        directory = f".copilot/session-state/{log.session}"
        found[f"{directory}/events.jsonl"] = json_lines(log.events)
        found[f"{directory}/workspace.yaml"] = workspace(story, log)
    return found


def played(story: Story) -> "Log":
    log = Log(story, story.chance("session").uuid(), story.chance("events"))
    log.open()
    performed = acts(story)
    for act in performed:
        log.act(act)
    log.close(performed)
    return log


def workspace(story: Story, log: "Log") -> str:
    values = {
        "id": log.session,
        "cwd": story.cwd,
        "git_root": story.cwd,
        "branch": story.branch,
        "client_name": "github/cli",
        "name": story.title,
        "user_named": "true",
        "summary_count": 0,
        "fork_count": 0,
        "created_at": iso(story.began),
        "updated_at": iso(story.began + timedelta(milliseconds=144)),
    }
    return "".join(f"{name}: {value}\n" for name, value in values.items())


@dataclass
class Log:
    story: Story
    session: str
    chance: Chance
    interaction: str = ""
    calls: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def event(self, at: datetime, type: str, **data: Any) -> None:
        before = self.events[-1]["id"] if self.events else None
        self.events.append(
            {"type": type, "data": data, "id": self.chance.uuid(), "timestamp": iso(at), "parentId": before}
        )

    def open(self) -> None:
        story = self.story
        context = {"cwd": story.cwd, "gitRoot": story.cwd, "branch": story.branch, "headCommit": story.commit}
        self.event(
            story.began,
            "session.start",
            sessionId=self.session,
            version=1,
            producer="copilot-agent",
            copilotVersion=VERSION,
            startTime=iso(story.began),
            selectedModel=story.model.id,
            reasoningEffort="medium",
            context=context,
        )

    def act(self, act: Act) -> None:
        self.interaction = self.chance.uuid()
        message = {"content": act.prompt, "messageId": self.chance.uuid(), "attachments": []}
        self.event(act.at, "user.message", **message, interactionId=self.interaction)
        for turn, answer in enumerate(act.answers):
            self.answer(answer, str(turn))

    def answer(self, answer: Answer, turn: str) -> None:
        call, model = f"resp-{self.chance.hex(24)}", self.story.model.id
        self.event(answer.began, "assistant.turn_start", turnId=turn, interactionId=self.interaction)
        self.count(answer, call, "agent" if int(turn) else "user")
        message = {"messageId": self.chance.uuid(), "model": model, "content": answer.reply.text}
        thought = {"reasoningText": answer.reply.thinks} if answer.reply.thinks else {}
        requests = [request(made, self.story.cwd) for made in answer.calls]
        at = {"interactionId": self.interaction, "turnId": turn, "apiCallId": call}
        self.event(answer.at, "assistant.message", **message, toolRequests=requests, **at, **thought)
        for made in answer.calls:
            self.run(made, turn)
        self.event(answer.ended, "assistant.turn_end", turnId=turn)

    def count(self, answer: Answer, call: str, initiator: str) -> None:
        self.calls += 1
        took = (answer.at - answer.began) // timedelta(milliseconds=1)
        accounting = {"sourceSessionId": self.session, "sequence": self.calls, "usageId": call}
        about = {"cost": 0, "duration": took, "initiator": initiator, "isByok": False, "apiCallId": call}
        used = {"model": self.story.model.id} | tokens(answer.usage) | about | {"accounting": accounting}
        self.event(answer.at, "session.usage_record", usage=used)

    def run(self, made: Made, turn: str) -> None:
        name, given, output = tool(made.call, self.story.cwd)
        id, model = f"call_{made.id}", self.story.model.id
        self.event(
            made.began, "tool.execution_start", toolCallId=id, toolName=name, arguments=given, turnId=turn, model=model
        )
        self.event(
            made.at,
            "tool.execution_complete",
            toolCallId=id,
            model=model,
            interactionId=self.interaction,
            turnId=turn,
            success=True,
            result={"content": output},
        )

    def close(self, performed: list[Act]) -> None:
        at = performed[-1].ended + timedelta(seconds=50)
        metrics = {"requests": {"count": self.calls, "cost": 0}, "usage": tokens(spent(performed))}
        self.event(
            at,
            "session.shutdown",
            shutdownType="routine",
            totalPremiumRequests=len(performed),
            sessionStartTime=milliseconds(self.story.began),
            modelMetrics={self.story.model.id: metrics},
            currentModel=self.story.model.id,
        )


def tokens(used: Usage) -> dict[str, int]:
    return {
        "inputTokens": used.prompt,
        "outputTokens": used.output,
        "cacheReadTokens": used.cached,
        "cacheWriteTokens": used.written,
        "reasoningTokens": used.thinking,
    }


def request(made: Made, cwd: str) -> dict[str, Any]:
    name, given, _ = tool(made.call, cwd)
    return {"toolCallId": f"call_{made.id}", "name": name, "arguments": given, "type": "function"}


def tool(call: Call, cwd: str) -> tuple[str, dict[str, Any], str]:
    match call:
        case Shell(command, output, about, exit):
            ended = f"{output}\n<shellId: 0 completed with exit code {exit}>"
            return "bash", {"command": command, "description": about}, ended
        case Read(path, output):
            numbered = "\n".join(f"{number}. {line}" for number, line in enumerate(output.split("\n"), 1))
            return "view", {"path": f"{cwd}/{path}"}, numbered
        case Search(pattern, output):
            return "grep", {"pattern": pattern, "output_mode": "content"}, output
        case Edit(path, old, new):
            return "edit", {"path": f"{cwd}/{path}", "old_str": old, "new_str": new}, f"{cwd}/{path} was changed"
        case _:
            raise ValueError(f"no story has copilot do this: {call}")
