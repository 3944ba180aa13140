"""How a tool call reads: what it is about, what it was given, what came of it."""

import json
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import PurePosixPath
from shlex import join
from typing import NamedTuple

from amux.model import Json, Message, ToolCall
from amux.output.plain import line_count, one_line

DIFF_LINES = 1000
"""Above this a diff takes too long: all old lines are shown as gone and all new ones as added."""

COMMANDS = ("command", "cmd", "script", "code")
PATHS = ("filepath", "path", "filename", "file", "targetfile", "absolutepath", "notebookpath")
SUBJECTS = (*COMMANDS, *PATHS, "pattern", "query", "url", "skill", "prompt", "description", "name")
"""Arguments that tell best what a call is about, as `argument_name` spells them, the best first."""

BEFORE = ("oldstring", "oldtext", "oldstr")
AFTER = ("newstring", "newtext", "newstr")


class Part(NamedTuple):
    """A piece of a tool call's input: what it is called ("" where that goes without saying), its language, its text."""

    label: str
    language: str
    text: str


def answers(messages: Sequence[Message]) -> dict[tuple[int, int], int]:
    """Which message answers which call: (message, call) positions to the position of the tool's message."""
    waiting: dict[str, list[tuple[int, int]]] = {}
    found = {}
    for position, message in enumerate(messages):
        for number, call in enumerate(message.tool_calls):
            waiting.setdefault(call.tool_call_id, []).append((position, number))
        answered = message.tool_result.tool_call_id if message.role == "tool" and message.tool_result else None
        if answered and waiting.get(answered):
            found[waiting[answered].pop(0)] = position
    return found


def argument_name(key: str) -> str:
    """An argument's name as all agents would spell it: file_path, filePath and file-path are one."""
    return key.replace("_", "").replace("-", "").lower()


def argument(value: Json, names: Sequence[str]) -> str | None:
    """The text of the first of these arguments that has one."""
    if not isinstance(value, dict):
        return None
    by_name = {argument_name(key): text for key, item in value.items() if (text := words(item))}
    return next((by_name[name] for name in names if name in by_name), None)


def words(value: Json) -> str | None:
    """An argument's text; a command given as words is one line, without the shell it was wrapped in."""
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return value[2] if len(value) == 3 and value[1] in ("-c", "-lc") else join(value)
    return value if isinstance(value, str) else None


def subject(call: ToolCall) -> str:
    """What a call is about, on one line: its command, its file, its question; else all its arguments."""
    text = call.input if isinstance(call.input, str) else argument(call.input, SUBJECTS)
    if text is None:
        text = json_text(call.input, indent=None) if call.input else ""
    return one_line(text, 120)


def outcome(call: ToolCall, output: str | None) -> str:
    """What came of a call, in a word or two: `31 lines`, `+14 −2`, `failed`; "" when nothing is known."""
    if call.is_error:
        return "failed"
    if diff := patch(call.input):
        lines = diff.split("\n")
        return f"+{sum(line[:1] == '+' for line in lines)} −{sum(line[:1] == '-' for line in lines)}"
    if output is None:
        return ""
    count = line_count(output)
    return f"{count:,} {'line' if count == 1 else 'lines'}" if count else "no output"


def input_parts(value: Json) -> list[Part]:
    """A call's input as a person reads it best: a command or a program as it is, an edit as a diff, the rest as JSON."""
    diff = patch(value)
    if not isinstance(value, dict):
        language = "diff" if diff else "" if isinstance(value, str) else "json"
        return [Part("", language, value if isinstance(value, str) else json_text(value))]
    path = PurePosixPath(argument(value, PATHS) or "")
    commands, texts, rest = [], [], {}
    for key, item in value.items():
        name, text = argument_name(key), words(item)
        if diff and (name in (*BEFORE, *AFTER, "edits") or text == diff):
            continue
        if text and name in COMMANDS:
            commands.append(Part("", "sh" if name in ("command", "cmd") else "", text))
        elif text and "\n" in text:
            texts.append(Part(key, path.suffix.removeprefix("."), text))
        else:
            rest[key] = item
    if diff:
        texts.append(Part("", "diff", diff))
    others = [Part("", "json", json_text(rest))] if rest else []
    return [*commands, *others, *texts]


def patch(value: Json) -> str:
    """The change to a file that a call asks for, as a diff; "" when it asks for none."""
    if isinstance(value, str):
        return value if value.startswith("*** Begin Patch") else ""
    if not isinstance(value, dict):
        return ""
    for item in value.values():
        if isinstance(item, str) and item.startswith("*** Begin Patch"):
            return item
    edits = value.get("edits")
    changes = (changed(edit) for edit in (edits if isinstance(edits, list) else [value]))
    return "\n@@\n".join(filter(None, changes))


def changed(edit: Json) -> str:
    old, new = argument(edit, BEFORE), argument(edit, AFTER)
    if old is None or new is None:
        return ""
    before, after = old.split("\n") if old else [], new.split("\n") if new else []
    if len(before) + len(after) > DIFF_LINES:
        return "\n".join([*("-" + line for line in before), *("+" + line for line in after)])
    lines = list(unified_diff(before, after, lineterm=""))[3:]  # without the names of two files and the first position
    return "\n".join("@@" if line.startswith("@@ ") else line for line in lines)


def json_text(value: Json, indent: int | None = 2) -> str:
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    except RecursionError:
        return "(nested too deeply to be shown)"
