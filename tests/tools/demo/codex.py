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
    Turn,
    Usage,
    Write,
    acts,
    compact,
    iso,
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
            at = story.began + timedelta(hours=1)
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
    """A thread's lines. `turns` are the ordinals at which its turns ended, `totals` the tokens spent by then."""

    story: Story
    thread: str
    chance: Chance
    turn: str = ""
    lines: list[str] = field(default_factory=list)
    first: int = 0
    turns: list[int] = field(default_factory=list)
    totals: list[Usage] = field(default_factory=list)

    def record(self, at: datetime, type: str, payload: dict[str, Any]) -> None:
        line = {"timestamp": iso(at), "ordinal": self.first + len(self.lines), "type": type, "payload": payload}
        self.lines.append(f"{compact(line)}\n")

    def event(self, at: datetime, type: str, **fields: Any) -> None:
        self.record(at, "event_msg", {"type": type} | fields)

    def completed(self, at: datetime, **item: Any) -> None:
        times = {"started_at_ms": milliseconds(at), "completed_at_ms": milliseconds(at)}
        self.event(at, "item_completed", thread_id=self.thread, turn_id=self.turn, item=item, **times)

    def item(self, at: datetime, type: str, **fields: Any) -> None:
        metadata = {"internal_chat_message_metadata_passthrough": {"turn_id": self.turn}}
        self.record(at, "response_item", {"type": type} | fields | metadata)

    def open(self, parent: "Rollout | None") -> None:
        story = self.story
        ids = {"session_id": self.thread, "id": self.thread}
        base = self.base(parent) if parent else {}
        about = {
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
        self.record(story.began, "session_meta", ids | about | base | git)

    def base(self, parent: "Rollout") -> dict[str, Any]:
        """A fork holds its own lines only, and says how much of its parent's file comes before them."""
        end = parent.turns[self.story.after - 1]
        self.first = end
        self.totals.append(parent.totals[self.story.after - 1])
        length = len("".join(parent.lines[: end - parent.first]).encode())
        reference = {"thread_id": parent.thread, "end_ordinal_exclusive": end, "end_byte_offset": length}
        return {
            "forked_from_id": parent.thread,
            "forked_from_ordinal_exclusive": end,
            "history_base": reference,
        }

    def act(self, act: Act) -> None:
        if not isinstance(act.turn, Turn):
            raise TypeError("a story of codex has turns only")
        self.turn = self.chance.timed_uuid(act.at)
        self.event(act.at, "task_started", turn_id=self.turn, started_at=milliseconds(act.at) // 1000)
        if not self.turns and not self.story.forked_from:
            self.environment(act.at)
        policy = {"approval_policy": "on-request", "sandbox_policy": {"type": "workspace-write"}}
        context = {"turn_id": self.turn, "cwd": self.story.cwd, "model": self.story.model.id, "effort": "medium"}
        self.record(act.at, "turn_context", context | policy)
        self.prompt(act.at, act.turn.prompt)
        spent = Usage()
        for answer in act.answers:
            spent += answer.usage
            self.answer(answer, spent)
        self.end(act)

    def environment(self, at: datetime) -> None:
        text = f"<environment_context>\n  <cwd>{self.story.cwd}</cwd>\n  <shell>bash</shell>\n</environment_context>"
        self.item(at, "message", role="user", content=[{"type": "input_text", "text": text}])

    def prompt(self, at: datetime, text: str) -> None:
        self.item(at, "message", role="user", content=[{"type": "input_text", "text": text}])
        self.completed(at, type="UserMessage", id=self.chance.timed_uuid(at), content=[{"type": "text", "text": text}])

    def answer(self, answer: Answer, spent: Usage) -> None:
        said, thought = answer.reply.text, answer.reply.thinks
        if thought:
            id, summary = f"rs_{self.chance.hex(24)}", [{"type": "summary_text", "text": thought}]
            self.completed(answer.at, type="Reasoning", id=id, summary_text=[thought], raw_content=[])
            self.item(answer.at, "reasoning", id=id, summary=summary, content=None)
        if said:
            id = f"msg_{self.chance.hex(24)}"
            self.completed(answer.at, type="AgentMessage", id=id, content=[{"type": "Text", "text": said}])
            content = [{"type": "output_text", "text": said, "annotations": []}]
            self.item(answer.at, "message", status="completed", id=id, role="assistant", content=content)
        for made in answer.calls:
            self.item(answer.at, **call_item(made.call), call_id=f"call_{made.id}")
        self.count(answer, spent)
        for made in answer.calls:
            self.result(made)
        self.tell_totals(answer)

    def count(self, answer: Answer, spent: Usage) -> None:
        total = self.totals[-1] if self.totals else Usage()
        before = total if not self.turns else self.totals[-1]
        self.record(
            answer.at,
            "token_usage_record",
            {
                "thread_id": self.thread,
                "turn_id": self.turn,
                "response_id": f"resp_{self.chance.hex(32)}",
                "usage": tokens(answer.usage),
                "turn_token_usage": tokens(spent),
                "thread_token_usage": tokens(before + spent),
            },
        )

    def tell_totals(self, answer: Answer) -> None: ...

    def result(self, made: Made) -> None:
        call = made.call
        if isinstance(call, Shell):
            took = made.at - made.began
            self.completed(
                made.at,
                type="CommandExecution",
                id=f"call_{made.id}",
                command=["/bin/bash", "-lc", call.command],
                status="failed" if call.exit else "completed",
                aggregated_output=f"{call.output}\n",
                exit_code=call.exit,
                duration={"secs": took.seconds, "nanos": took.microseconds * 1000},
            )
            text = f"Wall time: {took.total_seconds():.4f} seconds\nProcess exited with code {call.exit}\nOutput:\n"
            self.item(made.at, "function_call_output", call_id=f"call_{made.id}", output=f"{text}{call.output}\n")
        else:
            text = f"{call.path} was written\n"
            self.item(made.at, "custom_tool_call_output", call_id=f"call_{made.id}", output=text)

    def end(self, act: Act) -> None: ...
