"""Transcripts: a side record of what the agent did, without ids, times, models or what tools gave back.

JSON lines since the beginning of 2026; equal lines may follow each other and are all meant. Before that plain text:

    user:
    <user_query>
    What was typed
    </user_query>

    assistant:
    [Thinking] One line.
    What was said
    [Tool call] Shell
      command: ls

    [Tool result] Shell
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from amux.model import Json, Message, ToolCall, ToolResult
from amux.readers._json import OFFSET, Record, at, placed, records, text_at, text_of
from amux.readers.cursor.conversation import Conversation, as_text, blocks, paired, texts
from amux.readers.cursor.prompts import CLOSE, OPEN, programmed, typed

WITHHELD = "[REDACTED]"
SPEAKER = re.compile(r"(user|assistant|A):(?:\s*$|(?<=A:) (.+))")
MARK = re.compile(r"\[(Thinking|Tool call|Tool result)\]\s*(.*)")
ARGUMENT = re.compile(r"  (\w[\w-]*): ?(.*)")


class Transcript:
    def __init__(self, path: str) -> None:
        self.path = path

    def session(self, id: str, folder: str) -> Conversation:
        found = text_messages(self.path) if self.path.endswith(".txt") else line_messages(self.path)
        return Conversation(paired(found))

    def raw(self, id: str) -> Json:
        return text_of(self.path) if self.path.endswith(".txt") else list(records(self.path))

    def message_at(self, offset: int) -> Message | None:
        found = next(line_messages(self.path, offset), None) if self.path.endswith(".jsonl") else None
        return found if found and found.offset == offset else None


# JSON lines


def line_messages(path: str, start: int = 0) -> Iterator[Message]:
    for number, record in enumerate(placed(path, start=start)):
        found = [block for block in blocks({"content": at(record, "message", "content")}) if block]
        match record.get("role"), record.get("type"):
            case "user", _:
                yield from prompted(found, record)
            case "assistant", _:
                yield from answered(found, record, number)
            case _, "error":
                text = as_text(record.get("error"))
                yield Message("system", text, event="error", is_error=True, offset=record.get(OFFSET))


def prompted(found: Sequence[Record], record: Record) -> Iterator[Message]:
    text = "\n".join(texts(found))
    prompt = None if programmed(text) else typed(text)
    if prompt:
        yield Message("user", prompt.text, prompt.at, attachments=prompt.attachments, offset=record.get(OFFSET))


def answered(found: Sequence[Record], record: Record, number: int) -> Iterator[Message]:
    text = "\n\n".join(text for one in texts(found) if (text := shown(one)))
    uses = [block for block in found if block.get("type") == "tool_use"]
    calls = tuple(
        ToolCall(f"{number}.{place}", tool_name(block), block.get("input")) for place, block in enumerate(uses)
    )
    if text or calls:
        yield Message("assistant", text, tool_calls=calls, offset=record.get(OFFSET))


def shown(text: str) -> str:
    """What was said, without the mark that stands for reasoning which was withheld."""
    return "\n".join(line for line in text.split("\n") if line.strip() != WITHHELD).strip("\n")


def tool_name(block: Record) -> str:
    return " ".join((text_at(block, "name") or "").split())


# Plain text


@dataclass(slots=True)
class Answer:
    """One answer in a text transcript, line by line."""

    number: int
    lines: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    outputs: dict[int, list[str]] = field(default_factory=dict)
    """What tools gave back, by the place of the call; -1 where there is none."""

    def messages(self) -> Iterator[Message]:
        text = "\n".join(self.lines).strip("\n")
        ids = [f"{self.number}.{place}" for place in range(len(self.calls))]
        calls = tuple(ToolCall(id, name, given) for id, (name, given) in zip(ids, self.calls, strict=True))
        if text or calls or self.thoughts:
            yield Message("assistant", text, tool_calls=calls, thinking="\n".join(self.thoughts) or None)
        for place, lines in self.outputs.items():
            if place >= 0 and (output := "\n".join(lines).strip("\n")):
                yield Message("tool", output, tool_result=ToolResult(ids[place], self.calls[place][0], output))


def text_messages(path: str) -> Iterator[Message]:
    for number, (speaker, lines) in enumerate(speeches(text_of(path).replace("\r\n", "\n").split("\n"))):
        if speaker == "assistant":
            yield from answer(number, lines).messages()
        elif prompt := typed("\n".join(lines).strip("\n")):
            yield Message("user", prompt.text, prompt.at, attachments=prompt.attachments)


def speeches(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Who spoke, and the lines. A speaker is named after a blank line or a prompt's end: elsewhere it is part of the text."""
    speaker, said, typing = "", list[str](), False
    for line in lines:
        ended = not said or not said[-1].strip() or CLOSE in said[-1]
        if ended and not typing and (named := SPEAKER.match(line)):
            if speaker:
                yield speaker, said
            speaker, said = "user" if named[1] == "user" else "assistant", [named[2]] if named[2] else []
        else:
            said.append(line)
            typing = (typing or OPEN in line) and CLOSE not in line
    if speaker:
        yield speaker, said


def answer(number: int, lines: Sequence[str]) -> Answer:
    found = Answer(number)
    into: list[str] | dict[str, str] = found.lines
    for line in lines:
        if mark := MARK.match(line):
            into = marked(found, mark[1], mark[2].strip())
        elif isinstance(into, dict) and argument(into, line):
            continue
        elif isinstance(into, list) and (line or into):
            into.append(line)
        else:  # a call's arguments and a result that is empty end here
            into = found.lines
            into += [line] if line else []
    return found


def marked(found: Answer, kind: str, rest: str) -> list[str] | dict[str, str]:
    """Note what a mark begins; gives where the lines after it belong."""
    if kind == "Thinking":
        found.thoughts.append(rest)
        return found.lines
    if kind == "Tool call":
        found.calls.append((rest, {}))
        return found.calls[-1][1]
    waiting = (place for place, (name, _) in enumerate(found.calls) if name == rest and place not in found.outputs)
    return found.outputs.setdefault(next(waiting, -1), [])


def argument(given: dict[str, str], line: str) -> bool:
    """Take in a line of a call's arguments, which are indented by two blanks; False when it is none."""
    if new := ARGUMENT.match(line):
        given[new[1]] = new[2]
        return True
    if line.startswith("  ") and given:
        given[next(reversed(given))] += f"\n{line.removeprefix('  ')}"
        return True
    return False
