"""Claude Code 2.1.326: ~/.claude/projects/<directory>/<session>.jsonl, sub-agents below <session>/subagents/."""

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from shlex import quote
from typing import Any

from demo.script import (
    Act,
    Answer,
    Call,
    Chance,
    Delegate,
    Edit,
    Made,
    Model,
    Read,
    Search,
    Shell,
    Story,
    Write,
    acts,
    iso,
    json_line,
    json_lines,
    report,
    spent,
)

VERSION = "2.1.326"
INTERRUPTED = "[Request interrupted by user for tool use]"


def files(stories: Iterable[Story]) -> dict[str, str]:
    found = {}
    for story in stories:
        transcript = played(story)
        path = f".claude/projects/{story.cwd.replace('/', '-')}/{transcript.session}"
        found[f"{path}.jsonl"] = json_lines(transcript.records)
        for name, text in transcript.agents.items():
            found[f"{path}/subagents/{name}"] = text
    return found


def played(story: Story) -> "Transcript":
    transcript = Transcript(story, story.chance("session").uuid(), story.chance("transcript"), story.model)
    if story.forked_from:
        transcript.branch_off(played(story.forked_from))
    else:
        transcript.open()
    for act in acts(story):
        transcript.act(act)
    transcript.close()
    return transcript


@dataclass
class Transcript:
    """The lines of a session, or of the sub-agent named. `leaf` is the line that the next one hangs on."""

    story: Story
    session: str
    chance: Chance
    model: Model
    agent: str | None = None
    leaf: str | None = None
    prompt_id: str = ""
    prompts: list[str] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    agents: dict[str, str] = field(default_factory=dict)
    reports: list[tuple[datetime, str]] = field(default_factory=list)

    def state(self, type: str, **fields: Any) -> None:
        """A line outside the chain."""
        self.records.append({"type": type, **fields, "sessionId": self.session})

    def link(self, at: datetime, **fields: Any) -> None:
        uuid = self.chance.uuid()
        mine = {"agentId": self.agent} if self.agent else {}
        self.records.append(
            {"parentUuid": self.leaf, "isSidechain": bool(self.agent)}
            | mine
            | fields
            | {"uuid": uuid, "timestamp": iso(at), "userType": "external", "entrypoint": "cli"}
            | {"cwd": self.story.cwd, "sessionId": self.session, "version": VERSION, "gitBranch": self.story.branch}
        )
        self.leaf = uuid

    def open(self) -> None:
        self.state("mode", mode="normal")
        self.state("permission-mode", permissionMode="default")

    def close(self) -> None:
        self.state("last-prompt", lastPrompt=self.prompts[-1], leafUuid=self.leaf)
        self.name()

    def name(self) -> None:
        if self.story.title:
            kind, key = ("custom-title", "customTitle") if self.story.forked_from else ("ai-title", "aiTitle")
            self.state(kind, **{key: self.story.title})

    def branch_off(self, parent: "Transcript") -> None:
        """What /branch does: the lines so far under another session's id, each with where it came from."""
        for record in parent.records[: parent.turns[self.story.after - 1]]:
            if "uuid" in record:
                origin = {"sessionId": parent.session, "messageUuid": record["uuid"]}
                self.records.append(record | {"sessionId": self.session, "forkedFrom": origin})
                self.leaf = record["uuid"]
        self.prompts = parent.prompts[: self.story.after]
        self.name()
        self.open()
        command = f"<command-name>/branch</command-name>\n<command-args>{self.story.title}</command-args>"
        at = self.story.began - timedelta(seconds=41)
        self.link(at, type="system", subtype="local_command", content=command, level="info", isMeta=False)

    def act(self, act: Act) -> None:
        self.prompt_id = self.chance.uuid()
        if act.summary:
            self.compact(act)
        else:
            self.turn(act)
        self.turns.append(len(self.records))

    def turn(self, act: Act) -> None:
        typed = {"permissionMode": "default", "origin": {"kind": "human"}, "promptSource": "typed"}
        self.user(act.at, act.prompt, **{} if self.agent else typed)
        self.prompts.append(act.prompt)
        for answer in act.answers:
            self.answer(answer)
            if not answer.calls:
                self.notify()
            for made in answer.calls:
                self.result(made)
        if act.answers[-1].calls:
            self.user(act.ended, [{"type": "text", "text": INTERRUPTED}])
        elif not self.agent:
            took = (act.ended - act.at) // timedelta(milliseconds=1)
            self.link(act.ended, type="system", subtype="turn_duration", durationMs=took, isMeta=False)
            if not self.turns:
                self.name()

    def user(self, at: datetime, content: Any, **fields: Any) -> None:
        message = {"role": "user", "content": content}
        self.link(at, promptId=self.prompt_id, type="user", message=message, **fields)

    def answer(self, answer: Answer) -> None:
        """One line for each block of the response, all with its usage."""
        message = {"id": f"msg_01{self.chance.hex(22)}", "type": "message", "role": "assistant"}
        end = {"stop_reason": "tool_use" if answer.calls else "end_turn"}
        request = f"req_011{self.chance.hex(21)}"
        for index, block in enumerate(self.blocks(answer)):
            said = message | {"model": self.model.id, "content": [block]} | end | {"usage": usage(answer)}
            self.link(answer.at, message=said, apiBlockIndex=index, requestId=request, type="assistant")

    def blocks(self, answer: Answer) -> Iterable[dict[str, Any]]:
        if answer.reply.thinks:
            signature = b64encode(self.chance.hex(48).encode()).decode()
            yield {"type": "thinking", "thinking": answer.reply.thinks, "signature": signature}
        if answer.reply.text:
            yield {"type": "text", "text": answer.reply.text}
        for made in answer.calls:
            name, given = tool(made.call, self.story.cwd)
            yield {"type": "tool_use", "id": f"toolu_01{made.id[:22]}", "name": name, "input": given}

    def result(self, made: Made) -> None:
        if isinstance(made.call, Delegate):
            self.delegate(made, made.call)
            return
        text, structured, failed = outcome(made.call, self.story.cwd)
        content = {"tool_use_id": f"toolu_01{made.id[:22]}", "type": "tool_result", "content": text}
        told = {} if self.agent else {"toolUseResult": structured}
        self.user(made.at, [content | {"is_error": failed}], **told)

    def delegate(self, made: Made, call: Delegate) -> None:
        name, use = f"a{made.id[:16]}", f"toolu_01{made.id[:22]}"
        structured = {"isAsync": True, "status": "async_launched", "agentId": name, "description": call.about}
        text = f"Started in the background as {name}."
        content = {"tool_use_id": use, "type": "tool_result", "content": [{"type": "text", "text": text}]}
        self.user(made.at, [content], toolUseResult=structured)
        other = Transcript(self.story, self.session, self.story.chance(name), call.model, agent=name)
        for act in made.acts:
            other.act(act)
        meta = {"agentType": "general-purpose", "description": call.about, "toolUseId": use, "spawnDepth": 1}
        self.agents[f"agent-{name}.jsonl"] = json_lines(other.records)
        self.agents[f"agent-{name}.meta.json"] = json_line(meta)
        self.reports.append((made.acts[-1].ended, notification(name, made, call)))

    def notify(self) -> None:
        """The reports of sub-agents come back as prompts of their own kind."""
        for at, text in self.reports:
            self.user(at, text, origin={"kind": "task-notification"}, promptSource="system")
        self.reports.clear()

    def compact(self, act: Act) -> None:
        before, self.leaf = self.leaf, None
        boundary = {"trigger": "manual", "preTokens": self.chance.between(48_000, 61_000)}
        self.link(
            act.at,
            logicalParentUuid=before,
            type="system",
            subtype="compact_boundary",
            content="Conversation compacted",
            isMeta=False,
            level="info",
            compactMetadata=boundary,
        )
        self.user(act.at, act.summary, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        self.user(act.at, "<command-name>/compact</command-name>\n<command-args></command-args>")


def notification(agent: str, made: Made, call: Delegate) -> str:
    parts = {
        "task-id": agent,
        "status": "completed",
        "summary": f'Agent "{call.about}" finished',
        "result": report(made),
        "usage": f"<subagent_tokens>{spent(made.acts).output}</subagent_tokens>",
    }
    lines = "\n".join(f"<{name}>{text}</{name}>" for name, text in parts.items())
    return f"<task-notification>\n{lines}\n</task-notification>"


def usage(answer: Answer) -> dict[str, Any]:
    used = answer.usage
    return {
        "input_tokens": used.fresh,
        "cache_creation_input_tokens": used.written,
        "cache_read_input_tokens": used.cached,
        "output_tokens": used.output,
        "output_tokens_details": {"thinking_tokens": used.thinking},
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": used.written},
    }


def tool(call: Call, cwd: str) -> tuple[str, dict[str, Any]]:
    """The tool's name and what it was given."""
    match call:
        case Shell():
            return "Bash", {"command": call.command, "description": call.about}
        case Read():
            return "Read", {"file_path": f"{cwd}/{call.path}"}
        case Search():
            return "Bash", {"command": f"rg -n {quote(call.pattern)}", "description": f"Search for {call.pattern}"}
        case Edit():
            return "Edit", {"file_path": f"{cwd}/{call.path}", "old_string": call.old, "new_string": call.new}
        case Write():
            return "Write", {"file_path": f"{cwd}/{call.path}", "content": call.text}
        case Delegate():
            return "Agent", {"description": call.about, "prompt": call.prompt, "subagent_type": "general-purpose"}


def outcome(call: Call, cwd: str) -> tuple[str, Any, bool]:
    """What the model was told, what the program keeps besides, and whether the call failed."""
    match call:
        case Shell(interrupted=True):
            return "Interrupted by the user.", "User rejected tool use", True
        case Shell(exit=0) | Search():
            return call.output, {"stdout": call.output, "stderr": "", "interrupted": False, "isImage": False}, False
        case Shell():
            text = f"Exit code {call.exit}\n{call.output}"
            return text, f"Error: {text}", True
        case Read():
            lines = call.output.split("\n")
            numbered = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1))
            file = {"filePath": f"{cwd}/{call.path}", "numLines": len(lines), "startLine": 1, "totalLines": len(lines)}
            return numbered, {"type": "text", "file": file}, False
        case Edit():
            return f"{cwd}/{call.path} was changed.", {"filePath": f"{cwd}/{call.path}", "replaceAll": False}, False
        case Write():
            return f"{cwd}/{call.path} was written.", {"type": "create", "filePath": f"{cwd}/{call.path}"}, False
        case _:
            raise ValueError(f"a sub-agent answers later: {call}")
