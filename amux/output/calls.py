"""How a tool call reads: what it is about, what it was given, what came of it."""

import json
import re
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import PurePosixPath
from shlex import join
from typing import NamedTuple

from amux.model import Json, Message, ToolCall
from amux.output.plain import line_count, one_line

DIFF_LINES = 1000
"""Above this a diff takes too long: all old lines are shown as gone and all new ones as added."""

LINE_LENGTH = 100

COMMANDS = ("command", "cmd", "script", "code")
PATHS = ("filepath", "path", "filename", "file", "targetfile", "absolutepath", "notebookpath")
SUBJECTS = (*COMMANDS, *PATHS, "pattern", "query", "url", "skill", "prompt", "description", "name")
"""Arguments that tell best what a call is about, as `argument_name` spells them, the best first."""

PATCHED_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
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
    texts = {(name := argument_name(key)): text_of(name, item) for key, item in value.items()}
    return next((text for name in names if (text := texts.get(name)) is not None), None)


def text_of(name: str, value: Json) -> str | None:
    """An argument's text; a command given as words is one line, without the shell it was wrapped in."""
    if name in COMMANDS and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value[2] if len(value) == 3 and value[1] in ("-c", "-lc") else join(value)
    return value if isinstance(value, str) else None


def subject(call: ToolCall) -> str:
    """What a call is about, on one line: its command, its file, its question; else all its arguments."""
    if files := PATCHED_FILE.findall(patch_text(call.input)):
        return one_line(", ".join(files), 120)
    if isinstance(call.input, str):
        return one_line(call.input, 120)
    return one_line(argument(call.input, SUBJECTS) or (json_text(call.input) if call.input else ""), 120)


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
        name = argument_name(key)
        text = text_of(name, item)
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
    if text := patch_text(value):
        return text
    edits = value.get("edits") if isinstance(value, dict) else None
    changes = (changed(edit) for edit in (edits if isinstance(edits, list) else [value]))
    return "\n@@\n".join(filter(None, changes))


def patch_text(value: Json) -> str:
    """The argument in which models are taught to write a patch of several files; "" when there is none."""
    given = value.values() if isinstance(value, dict) else [value]
    return next((text for text in given if isinstance(text, str) and text.startswith("*** Begin Patch")), "")


def changed(edit: Json) -> str:
    old, new = argument(edit, BEFORE), argument(edit, AFTER)
    if old is None or new is None:
        return ""
    before, after = old.split("\n") if old else [], new.split("\n") if new else []
    if len(before) + len(after) > DIFF_LINES:
        return "\n".join([*("-" + line for line in before), *("+" + line for line in after)])
    lines = list(unified_diff(before, after, lineterm=""))[3:]  # without the names of two files and the first position
    return "\n".join("@@" if line.startswith("@@ ") else line for line in lines)


def json_text(value: Json) -> str:
    """JSON as a person reads it: on one line where it fits."""
    try:
        line = json.dumps(value, ensure_ascii=False, default=str)
        return line if len(line) <= LINE_LENGTH else json.dumps(value, indent=2, ensure_ascii=False, default=str)
    except RecursionError:
        return "(nested too deeply to be shown)"
