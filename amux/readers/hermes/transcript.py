"""From records to messages: rows of `messages`, or the messages of a legacy file, in the order they were written.

A row is one message of the model's own protocol. A compaction writes part of the conversation a second time: the
first exchange, its summary, the last turns; undone rows stay behind, marked.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from amux.model import Attachment, Json, Message, Role, ToolCall, ToolResult
from amux.readers._json import Record, at, decoded, int_at, list_at, text_at, time_at
from amux.readers.hermes.typed import Prompt, content, prompt

SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
PRIOR = "[PRIOR CONTEXT"
SUMMARY_BELOW = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
SUMMARY_END = re.compile(r"--- END OF CONTEXT SUMMARY[^\n]*")
INTERRUPTED = "Operation interrupted"
ROLES = frozenset({"user", "assistant", "tool", "system"})
"""The messaging gateway also writes `session_meta`, its tool definitions."""


class Line:
    """One record: what it says, and whether it is still part of the conversation."""

    def __init__(self, record: Record, text: str, attachments: tuple[Attachment, ...], *, summary: bool) -> None:
        self.record = record
        self.role = str(record.get("role"))
        self.text = text
        self.attachments = attachments
        self.summary = summary
        self.archived = record.get("active") == 0 and bool(record.get("compacted"))
        self.undone = record.get("active") == 0 and not self.archived
        self.repeated = record.get("display_kind") == "hidden"
        self.inherited = False

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        stored = self.record.get("tool_calls") if self.role == "assistant" else None
        found = decoded(stored) if isinstance(stored, str | bytes) else stored
        return tuple(call(one) for one in list_at(found) if isinstance(one, dict))

    @cached_property
    def prompt(self) -> Prompt:
        if self.role != "user" or self.summary:
            return Prompt(self.text, self.attachments)
        if int_at(self.record, "observed"):
            return Prompt(self.text, self.attachments, event="observed")
        return prompt(self.text, self.attachments)

    @cached_property
    def key(self) -> object:
        """What a copy has in common with its original; the output of an old tool call is shortened in copies."""
        if self.calls:
            return "calls", tuple(call.tool_call_id for call in self.calls)
        if self.role == "tool" and (id := text_at(self.record, "tool_call_id")):
            return "tool", id
        return self.spoken

    @property
    def spoken(self) -> object:
        """What even the barest copy keeps: role and text."""
        return self.role, (self.prompt.text or self.text).strip()

    @property
    def shown(self) -> bool:
        return not self.undone and not self.repeated


def call(found: Record) -> ToolCall:
    """A call; its arguments are JSON in a string, which a model may have got wrong: then the string."""
    given = at(found, "function", "arguments")
    given = at(found, "arguments") if given is None else given
    input: Json = decoded(given) if isinstance(given, str) else given
    return ToolCall(
        text_at(found, "id") or text_at(found, "call_id") or "",
        text_at(found, "function", "name") or text_at(found, "name") or "",
        given if input is None else input,
    )


def lines(records: Iterable[Record]) -> list[Line]:
    """The records as lines; those that a compaction copied are marked as repeated."""
    found = [line for record in records if text_at(record, "role") in ROLES for line in lines_of(record)]
    mark_copies(found)
    mark_unsummarised(found)
    mark_reviews(found)
    return found


def lines_of(record: Record) -> Iterator[Line]:
    """One line, but two where a compaction put its summary into the same record as a message that it kept."""
    text, attachments = content(record.get("content"))
    summary, rest = parted(text)
    if summary is None and record.get("_compressed_summary"):
        summary, rest = text, ""
    if summary is not None:
        yield Line({**record, "tool_calls": None}, summary, (), summary=True)
    if summary is None or rest or record.get("tool_calls"):
        yield Line(record, rest, attachments, summary=False)


def parted(text: str) -> tuple[str | None, str]:
    """The summary in a text (None: there is none) and the rest of it."""
    before, below, after = text.partition(SUMMARY_BELOW)
    if below:
        first, _, kept = before.strip().partition("\n")
        return SUMMARY_END.sub("", after).strip(), kept.strip() if first.startswith(PRIOR) else before.strip()
    if not text.lstrip().startswith(SUMMARIES):
        return None, text
    end = SUMMARY_END.search(text)
    return (text[: end.start()].strip(), text[end.end() :].strip()) if end else (text, "")


# What a compaction wrote again


def mark_copies(found: Sequence[Line]) -> None:
    """Mark what stands there a second time.

    Around its summary a compaction writes the start of the conversation and its end once more; what was new at that
    moment follows. A copy that was undone takes its original along.
    """
    live: list[Line] = []
    place = 0
    while place < len(found):
        line = found[place]
        place += 1
        if not line.summary:
            live.append(line)
            continue
        before = [one for one in live if not one.undone]
        head = start_again(before) or anchored(before)
        mark(before[:head], before[len(before) - head :])
        before = before[: len(before) - head]
        after = found[place : place + len(before) + 1]
        anchor, tail = end_again(before, after)
        kept = before[len(before) - tail :]
        mark(after[:anchor], after[:anchor])
        mark(kept, after[anchor : anchor + tail])
        live = [*before[:head], line, *kept]
        place += anchor + tail


def mark_unsummarised(found: Sequence[Line]) -> None:
    """Mark what repeats archived lines after a compaction that left no summary one can tell."""
    archived = Counter(line.key for line in found if line.archived)
    live = [line for line in found if not line.archived]
    if any(line.summary for line in live):
        return
    for line in live:
        if not archived[line.key]:
            break
        archived[line.key] -= 1
        line.repeated = True


def mark(originals: Sequence[Line], copies: Sequence[Line]) -> None:
    for original, copy in zip(originals, copies, strict=True):
        copy.repeated = True
        original.undone = original.undone or copy.undone


def start_again(before: Sequence[Line]) -> int:
    """How many lines at the end repeat those at the start."""
    found = borders([line.key for line in before])
    size = found[-1] if found else 0
    while size > len(before) // 2:
        size = found[size - 1]
    return size


def anchored(before: Sequence[Line]) -> int:
    """1 where the last prompt is written once more, so that the summary does not stand without any."""
    if not before or before[-1].role != "user":
        return 0
    earlier = next((line for line in reversed(before[:-1]) if line.role == "user"), None)
    return 1 if earlier and earlier.key == before[-1].key else 0


def end_again(before: Sequence[Line], after: Sequence[Line]) -> tuple[int, int]:
    """How many lines after a summary repeat the end of what was before it; before them there may be a prompt again."""
    earlier = {line.key for line in before}
    for anchor in (0, 1):
        keys = [line.key for line in after[anchor:]]
        again = borders([*keys, object(), *(line.key for line in before)])[-1] if keys else 0
        if again and all(line.key in earlier for line in after[:anchor]):
            return anchor, again
    return 0, 0


def borders(keys: Sequence[object]) -> list[int]:
    """For each beginning of the sequence, how much of its end repeats its start (the prefix function)."""
    found = [0] * len(keys)
    for place in range(1, len(keys)):
        size = found[place - 1]
        while size and keys[place] != keys[size]:
            size = found[size - 1]
        found[place] = size + (keys[place] == keys[size])
    return found


def mark_reviews(found: Sequence[Line]) -> None:
    """A review of the conversation is no part of it, nor is what the curator answered."""
    reviewing = False
    for line in found:
        if line.role == "user":
            reviewing = line.prompt.event == "review"
        if reviewing:
            line.repeated = True


# Messages


def messages(found: Iterable[Line]) -> list[Message]:
    shown = [line for line in found if line.shown]
    outputs = answers(shown)
    made = [replace(message(line, place, outputs), inherited=line.inherited) for place, line in enumerate(shown)]
    return [one for one in made if one.content or one.tool_calls or one.thinking or one.attachments or one.tool_result]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered, and the name of the tool."""

    name: str
    output: str
    is_error: bool


Answers = dict[tuple[int, str], Answer]
"""Under the place of the call and under that of the answer: some servers use the same ids in every turn."""


def answers(shown: Sequence[Line]) -> Answers:
    made: dict[str, tuple[int, str]] = {}
    found: Answers = {}
    for place, line in enumerate(shown):
        made.update({call.tool_call_id: (place, call.tool_name) for call in line.calls})
        if line.role == "tool":
            id = text_at(line.record, "tool_call_id") or ""
            asked, name = made.get(id, (-1, ""))
            output, failed = told(line)
            named = text_at(line.record, "tool_name") or text_at(line.record, "name") or name
            found[asked, id] = found[place, id] = Answer(named, output, failed)
    return found


def told(line: Line) -> tuple[str, bool]:
    """The output of a tool and whether it failed; most tools answer with a JSON object."""
    value = decoded(line.text) if line.text.startswith("{") else None
    if not isinstance(value, dict):
        return line.text, line.record.get("finish_reason") == "error"
    error = text_at(value, "error") or ""
    failed = bool(error) or value.get("success") is False or value.get("exit_code") not in (None, 0)
    if not isinstance(value.get("output"), str):
        return line.text, failed
    return "\n".join(text for text in (value["output"], error) if text), failed


def message(line: Line, place: int, outputs: Answers) -> Message:
    time = time_at(line.record, "timestamp")
    if line.summary:
        return Message("system", line.text, time, event="compaction")
    match line.role:
        case "user":
            said = line.prompt
            role: Role = "system" if said.event else "user"
            return Message(role, said.text, time, event=said.event, attachments=said.attachments)
        case "tool":
            id = text_at(line.record, "tool_call_id")
            answer = outputs[place, id or ""]
            result = ToolResult(id, answer.name or None, answer.output)
            return Message("tool", answer.output, time, tool_result=result, is_error=answer.is_error)
        case "assistant" if line.text.startswith(INTERRUPTED) and not line.record.get("finish_reason"):
            return Message("system", line.text, time, event="interrupt")
        case "assistant":
            # Both columns usually hold the same text; a branch copies only the second.
            thinking = text_at(line.record, "reasoning_content") or text_at(line.record, "reasoning")
            calls = tuple(with_answer(made, outputs.get((place, made.tool_call_id))) for made in line.calls)
            return Message("assistant", line.text, time, tool_calls=calls, thinking=thinking)
    return Message("system", line.text, time)


def with_answer(made: ToolCall, answer: Answer | None) -> ToolCall:
    return replace(made, output=answer.output, is_error=answer.is_error) if answer else made
