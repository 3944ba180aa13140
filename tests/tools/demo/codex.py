"""Codex 0.169: ~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<thread>.jsonl, names in session_index.jsonl."""

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
    Shell,
    Story,
    Usage,
    Write,
    acts,
    iso,
    json_line,
    json_lines,
    milliseconds,
)

VERSION = "0.169.0"
WINDOW = 258_400


def files(stories: Iterable[Story]) -> dict[str, str]:
    found, names = {}, []
    for story in stories:
        rollout = played(story)
        name = f"rollout-{story.began:%Y-%m-%dT%H-%M-%S}-{rollout.thread}.jsonl"
        found[f".codex/sessions/{story.began:%Y/%m/%d}/{name}"] = "".join(rollout.lines)
        if story.title:
            at = story.began + timedelta(minutes=12)
            names.append({"id": rollout.thread, "thread_name": story.title, "updated_at": iso(at)})
    return found | {".codex/session_index.jsonl": json_lines(names)}


def played(story: Story) -> "Rollout":
    rollout = Rollout(story, story.chance("thread").timed_uuid(story.began), story.chance("rollout"))
    rollout.open(played(story.forked_from) if story.forked_from else None)
    for act in acts(story):
        rollout.act(act)
    return rollout


@dataclass
class Rollout:
    """A thread's lines, the first of which has the ordinal `first`.

    `spent` is what the turn used so far, `total` the thread with what it was forked from, `ends` where each turn ended.
    """

    story: Story
    thread: str
    chance: Chance
    turn: str = ""
    first: int = 0
    spent: Usage = field(default_factory=Usage)
    total: Usage = field(default_factory=Usage)
    lines: list[str] = field(default_factory=list)
    ends: list[tuple[int, Usage]] = field(default_factory=list)

    @property
    def ordinal(self) -> int:
        return self.first + len(self.lines)

    def record(self, at: datetime, type: str, payload: dict[str, Any]) -> None:
        line = {"timestamp": iso(at), "ordinal": self.ordinal, "type": type, "payload": payload}
        self.lines.append(f"{json_line(line)}\n")

    def event(self, at: datetime, type: str, **fields: Any) -> None:
        self.record(at, "event_msg", {"type": type} | fields)

    def completed(self, at: datetime, item: dict[str, Any]) -> None:
        times = {"started_at_ms": milliseconds(at), "completed_at_ms": milliseconds(at)}
        self.event(at, "item_completed", thread_id=self.thread, turn_id=self.turn, item=item, **times)

    def item(self, at: datetime, item: dict[str, Any]) -> None:
        metadata = {"internal_chat_message_metadata_passthrough": {"turn_id": self.turn}}
        self.record(at, "response_item", item | metadata)

    def open(self, parent: "Rollout | None") -> None:
        story = self.story
        base = self.base(parent) if parent else {}
        about = {
            "session_id": self.thread,
            "id": self.thread,
            "timestamp": iso(story.began),
            "cwd": story.cwd,
            "originator": "codex_cli_rs",
            "cli_version": VERSION,
            "source": "cli",
            "thread_source": "user",
            "model_provider": story.model.provider,
            "history_mode": "paginated",
        }
        git = {"git": {"commit_hash": story.commit, "branch": story.branch}}
        self.record(story.began, "session_meta", about | base | git)
        if not parent:
            text = f"<environment_context>\n  <cwd>{story.cwd}</cwd>\n  <shell>bash</shell>\n</environment_context>"
            content = [{"type": "input_text", "text": text}]
            self.item(story.began, {"type": "message", "role": "user", "content": content})

    def base(self, parent: "Rollout") -> dict[str, Any]:
        """A fork holds its own lines only, and says how much of its parent's file comes before them."""
        self.first, self.total = parent.ends[self.story.after - 1]
        length = len("".join(parent.lines[: self.first - parent.first]).encode())
        history = {"thread_id": parent.thread, "end_ordinal_exclusive": self.first, "end_byte_offset": length}
        return {
            "forked_from_id": parent.thread,
            "forked_from_ordinal_exclusive": self.first,
            "history_base": history,
        }

    def act(self, act: Act) -> None:
        self.turn = self.chance.timed_uuid(act.at)
        began = milliseconds(act.at) // 1000
        self.event(act.at, "task_started", turn_id=self.turn, started_at=began, model_context_window=WINDOW)
        context = {"turn_id": self.turn, "cwd": self.story.cwd, "model": self.story.model.id, "effort": "medium"}
        policy = {"approval_policy": "on-request", "sandbox_policy": {"type": "workspace-write"}}
        self.record(act.at, "turn_context", context | policy)
        self.prompt(act.at, act.prompt)
        self.spent = Usage()
        for answer in act.answers:
            self.answer(answer)
        last, took = act.answers[-1].reply.text, (act.ended - act.at) // timedelta(milliseconds=1)
        self.event(act.ended, "task_complete", turn_id=self.turn, last_agent_message=last, duration_ms=took)
        self.ends.append((self.ordinal, self.total))

    def prompt(self, at: datetime, text: str) -> None:
        self.item(at, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        content = [{"type": "text", "text": text, "text_elements": []}]
        self.completed(at, {"type": "UserMessage", "id": self.chance.timed_uuid(at), "content": content})

    def answer(self, answer: Answer) -> None:
        """What the model said, and its twin for the screen; the usage stands between calls and outputs."""
        if thought := answer.reply.thinks:
            id, summary = f"rs_{self.chance.hex(24)}", [{"type": "summary_text", "text": thought}]
            self.completed(answer.at, {"type": "Reasoning", "id": id, "summary_text": [thought], "raw_content": []})
            self.item(answer.at, {"type": "reasoning", "id": id, "summary": summary, "content": None})
        if said := answer.reply.text:
            id, content = f"msg_{self.chance.hex(24)}", [{"type": "output_text", "text": said, "annotations": []}]
            self.completed(answer.at, {"type": "AgentMessage", "id": id, "content": [{"type": "Text", "text": said}]})
            self.item(answer.at, {"type": "message", "id": id, "role": "assistant", "content": content})
        for made in answer.calls:
            self.item(answer.at, tool(made.call) | {"call_id": f"call_{made.id}"})
        self.count(answer)
        for made in answer.calls:
            self.result(made)
        info = {"total_token_usage": tokens(self.total), "last_token_usage": tokens(answer.usage)}
        self.event(answer.ended, "token_count", info=info | {"model_context_window": WINDOW}, rate_limits=None)

    def count(self, answer: Answer) -> None:
        self.spent += answer.usage
        self.total += answer.usage
        ids = {"thread_id": self.thread, "turn_id": self.turn, "response_id": f"resp_{self.chance.hex(32)}"}
        counts = {"usage": answer.usage, "turn_token_usage": self.spent, "thread_token_usage": self.total}
        self.record(answer.at, "token_usage_record", ids | {name: tokens(used) for name, used in counts.items()})

    def result(self, made: Made) -> None:
        match made.call:
            case Shell() as call:
                self.ran(made, call)
            case Edit(path) | Write(path):
                kind = {"type": "custom_tool_call_output", "call_id": f"call_{made.id}"}
                self.item(made.at, kind | {"output": f"{path} was changed\n"})

    def ran(self, made: Made, call: Shell) -> None:
        took = made.at - made.began
        ended = {
            "type": "CommandExecution",
            "id": f"call_{made.id}",
            "command": ["/bin/bash", "-lc", call.command],
            "status": "failed" if call.exit else "completed",
            "aggregated_output": f"{call.output}\n",
            "exit_code": call.exit,
            "duration": {"secs": took.seconds, "nanos": took.microseconds * 1000},
        }
        head = f"Wall time: {took.total_seconds():.4f} seconds\nProcess exited with code {call.exit}\nOutput:\n"
        output = {"type": "function_call_output", "call_id": f"call_{made.id}", "output": f"{head}{call.output}\n"}
        self.completed(made.at, ended)
        self.item(made.at, output)


def tool(call: Call) -> dict[str, Any]:
    match call:
        case Shell(command):
            return {"type": "function_call", "name": "exec_command", "arguments": json_line({"cmd": command})}
        case Edit(path, old, new):
            removed = "".join(f"-{line}\n" for line in old.split("\n"))
            return patch(f"*** Update File: {path}\n@@\n{removed}", new)
        case Write(path, text):
            return patch(f"*** Add File: {path}\n", text)
        case _:
            raise ValueError(f"codex has no tool of its own for {call}")


def patch(head: str, new: str) -> dict[str, Any]:
    added = "".join(f"+{line}\n" for line in new.split("\n"))
    text = f"*** Begin Patch\n{head}{added}*** End Patch\n"
    return {"type": "custom_tool_call", "status": "completed", "name": "apply_patch", "input": text}


def tokens(used: Usage) -> dict[str, int]:
    return {
        "input_tokens": used.prompt,
        "cached_input_tokens": used.cached,
        "cache_write_input_tokens": used.written,
        "output_tokens": used.output,
        "reasoning_output_tokens": used.thinking,
        "total_tokens": used.prompt + used.output,
    }
