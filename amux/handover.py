"""A session's work handed over to another agent: a brief made of its own transcript; no model is asked."""

import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from amux.model import Json, Message, Session, SessionSummary, ToolCall
from amux.output.calls import PATCHED_FILE, PATHS, argument, argument_name, patch, subject
from amux.output.markdown import code
from amux.output.plain import one_line, stamp, visible
from amux.search import strings
from amux.userdata import data_directory, private

LAST_TURNS = 3
LONGEST_QUOTATION = 6_000
LONGEST_SUMMARY = 20_000
LINE = 160
MOST_FILES = 100
WRITTEN = ("content", "contents", "filetext", "newsource", "newcontent")
"""Arguments that, beside a path, make a call one that writes the file."""
PLANS = ("todos", "todolist", "plan", "tasks")
STEPS = ("content", "step", "text", "title", "description", "task")
DONE = frozenset({"completed", "complete", "done", "cancelled", "canceled"})
OPEN_STEP = re.compile(r"\[(?: |pending|in[_ -]progress)\]\s*(.+)", re.IGNORECASE)
"""A step that is not done, in a plan written as text: `- [ ] step`, `1. [pending] step`."""


def prompt(source: SessionSummary, brief: Path) -> str:
    return (
        f"Go on with the work of an earlier {source.agent} session in this directory. Its hand-over brief is the file"
        f' "{brief}": read it first. Then look at the files it names as they are now, and say in a few lines'
        " where the work stands and what you would do next."
    )


# The brief


def brief(session: Session, home: str) -> str:
    """The Markdown brief of a session, redacted before; paths below its directory or the home are told from there."""
    places = [(session.cwd, "."), (home, "~")]
    text = "\n\n".join(block for block in blocks(session) if block) + "\n"
    for path, name in places:
        if path and len(path) > 1:
            text = re.sub(rf"{re.escape(path.rstrip('/'))}(?![\w.-])", name, text)
    return text


def blocks(session: Session) -> Iterator[str]:
    turns = turns_of(session.messages)
    asked = [turn[0].content for turn in turns]
    yield f"# Hand-over: {one_line(session.title, 200) or '(no title)'}"
    yield "What stands in quotation below is from the transcript of that session; secrets are replaced by placeholders."
    yield "\n".join(f"- {name}: {value}" for name, value in facts(session))
    yield "## Goal"
    yield quoted(asked[0]) if asked else "Nothing was asked."
    yield "## Decisions"
    yield from decisions(session.messages, asked)
    yield "## Files edited"
    yield edited_files(session.messages)
    yield "## Last exchanges"
    for turn in turns[-LAST_TURNS:]:
        yield from exchange(turn)
    yield "## Open points"
    yield "\n".join(f"- {point}" for point in open_points(session.messages, turns)) or "None that the transcript shows."


def facts(session: SessionSummary) -> Iterator[tuple[str, str]]:
    yield "session", code(session.unified_id)
    if session.git_branch:
        yield "branch", code(session.git_branch)
    if session.model:
        yield "model", code(session.model)
    yield "time", f"{stamp(session.created_at)} to {stamp(session.updated_at)}"


def turns_of(messages: Sequence[Message]) -> list[list[Message]]:
    """The messages from one prompt to the next; what precedes the first prompt is in none."""
    turns: list[list[Message]] = []
    for message in messages:
        if message.role == "user":
            turns.append([message])
        elif turns:
            turns[-1].append(message)
    return turns


def decisions(messages: Sequence[Message], asked: Sequence[str]) -> Iterator[str]:
    """What the agent itself held fast when its context was compacted, and what the user said along the way."""
    summaries = [message.content for message in messages if message.event == "compaction" and message.content.strip()]
    if summaries:
        yield "The summary the agent wrote when it last compacted its context:"
        yield quoted(summaries[-1], LONGEST_SUMMARY)
    if asked[1:]:
        yield "What the user asked for after the goal, in order:"
        yield "\n".join(f"{number}. {one_line(text, LINE)}" for number, text in enumerate(asked[1:], 1))
    if not summaries and not asked[1:]:
        yield "None beyond the goal."


def exchange(turn: Sequence[Message]) -> Iterator[str]:
    yield "User:"
    yield quoted(turn[0].content)
    answer = next((one.content for one in reversed(turn) if one.role == "assistant" and one.content.strip()), None)
    yield "Agent:"
    yield quoted(answer) if answer else "(no answer in words)"


def quoted(text: str, longest: int = LONGEST_QUOTATION) -> str:
    kept = (
        text if len(text) <= longest else f"{text[:longest].rstrip()} … ({len(text) - longest:,} characters left out)"
    )
    return "\n".join(f"> {line}".rstrip() for line in visible(kept.strip()).split("\n"))


# Files


def edited_files(messages: Sequence[Message]) -> str:
    count: dict[str, int] = {}
    for message in messages:
        for path in (path for call in message.tool_calls if not call.is_error for path in edited(call)):
            count[path] = count.get(path, 0) + 1
    lines = [f"- {code(path)}{f' ({times} times)' if times > 1 else ''}" for path, times in count.items()]
    more = [f"- and {len(lines) - MOST_FILES} more"] if len(lines) > MOST_FILES else []
    return "\n".join([*lines[:MOST_FILES], *more]) or "None."


def edited(call: ToolCall) -> list[str]:
    """The files a call changed: those of a patch, wherever in its input it stands, or the one it writes to."""
    patched = [path for text in strings(call.input) for path in PATCHED_FILE.findall(text)]
    if patched or not isinstance(call.input, dict):
        return patched
    path = argument(call.input, PATHS)
    writes = patch(call.input) or argument(call.input, WRITTEN) is not None
    return [path] if path and writes else []


# What is left


def open_points(messages: Sequence[Message], turns: Sequence[Sequence[Message]]) -> Iterator[str]:
    yield from (one_line(step, LINE) for step in last_plan(messages))
    if turns and not any(message.role == "assistant" for message in turns[-1]):
        yield f"the last prompt was not answered: {one_line(turns[-1][0].content, LINE)}"
    last = messages[-1] if messages else None
    if last and last.is_error:
        yield f"the session ended with an error: {one_line(last.content, LINE)}"
    elif last and (call := next((call for call in last.tool_calls if call.output is None), None)):
        yield f"a tool call was under way: {one_line(f'{call.tool_name} {subject(call)}', LINE)}"


def last_plan(messages: Sequence[Message]) -> list[str]:
    """The steps not done of the last plan the agent wrote down."""
    calls = (call for message in reversed(messages) for call in reversed(message.tool_calls))
    return next((steps for call in calls if (steps := open_steps(call.input)) is not None), [])


def open_steps(value: Json) -> list[str] | None:
    """The steps of a plan that are not done; None when the value holds no plan."""
    if not isinstance(value, dict):
        return None
    plan = next((item for key, item in value.items() if argument_name(key) in PLANS), None)
    if isinstance(plan, str):
        return [found[1] for line in plan.split("\n") if (found := OPEN_STEP.search(line))]
    steps = [step for step in plan if isinstance(step, dict) and "status" in step] if isinstance(plan, list) else []
    if not steps:
        return None
    left = (argument(step, STEPS) for step in steps if str(step["status"]).lower() not in DONE)
    return [step for step in left if step]


# Keeping it


def brief_file(source: SessionSummary) -> Path:
    """Where the brief of a session is kept: one file for each, whatever its id is made of."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", source.session_id)[:80]
    if name != source.session_id:
        name += f"-{sha256(source.session_id.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return data_directory() / "handover" / f"{source.agent}-{name}.md"


def keep(source: SessionSummary, text: str) -> Path:
    """Write the brief; an agent that reads the one before keeps what it has. Raises OSError."""
    path = brief_file(source)
    private(path.parent.parent)
    private(path.parent)
    with NamedTemporaryFile("wb", dir=path.parent, prefix=".", delete=False) as file:  # made for the user alone
        try:
            file.write(text.encode("utf-8", "replace"))
            file.close()
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)
            raise
    return path
