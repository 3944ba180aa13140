"""Texts as codex records them: prompts among what it injects in the user's name, thoughts, and outputs of tools."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from amux.model import Attachment
from amux.readers._json import Record, at, decoded, dict_at, int_at, list_at, text_at
from amux.readers.codex.rollout import Line
from amux.search import pieces

INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<skill",
    "<recommended_plugins",
    "<goal_context>",
    "<codex_internal_context",
    "<external_",
    "<startup_context>",
    "<hook_prompt",
    "<user_action>",
    "Current working directory: ",
    "Warning: apply_patch was requested via ",
    "Warning: The maximum number of unified exec processes",
    "Warning: Your account was flagged",
    "Another language model started to solve this problem",
    "You were originally given instructions from a user over one or more turns",
)
"""How texts begin that the program puts into the user's messages."""
UNTWINNED = ("<", "Warning: ")
"""How texts of kinds not known yet begin: no prompt where prompts have twins and this one has none."""
EVENTS = {"<user_shell_command>": "shell", "<subagent_notification>": "notification"}
REQUEST = "## My request for Codex:"
"""Editors write what is open and selected before it."""
TAG = re.compile(r"</?[a-z_]+>")
IMAGE_TAG = re.compile(r"</?image\b[^>]*>")
CWD = re.compile(r"<cwd>(.+?)</cwd>|^Current working directory: (.+)$", re.MULTILINE)
EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
WALL_TIME = re.compile(r"^Wall time: (\d+(?:\.\d+)?) seconds", re.MULTILINE)
HEADER_LENGTH = 2000
"""How far the lines are looked for that stand before a command's output; one of them may repeat the command."""


def parts(content: Any) -> list[Any]:
    return [{"text": content}] if isinstance(content, str) else list_at(content)


def joined(content: Any) -> str:
    return "\n".join(text for part in parts(content) if (text := text_at(part, "text")))


def configured(content: Any) -> str:
    """What a developer message holds of the user's own configuration: what the program tells the model is in tags."""
    text = joined(content)
    return "" if text.startswith("<") else text


def thoughts(payload: Record) -> list[str]:
    """What can be read of a reasoning item: usually its summary, seldom the reasoning itself."""
    return [text for name in ("summary", "content") if (text := joined(payload.get(name)))]


def attachments(content: Any) -> tuple[Attachment, ...]:
    """Images and files among the parts of a content; their bytes stay behind."""
    found = []
    for part in parts(content):
        kind = (text_at(part, "type") or "").removeprefix("input_")
        if kind in ("image", "file", "audio"):
            url = text_at(part, "image_url") or text_at(part, "file_data") or ""
            media_type = url[5 : url.find(";")] if url.startswith("data:") and ";" in url[:100] else None
            found.append(Attachment(kind, media_type, text_at(part, "filename")))
    return tuple(found)


# Prompts


def squeezed(text: str) -> str:
    """A text without its white space: a twin joins the parts of a prompt in another way."""
    return "".join("".join(piece.split()) for piece in pieces(text))


def typed(lines: Iterable[Line]) -> dict[str, str]:
    """The prompts that have a twin, an event saying that a person typed them, by their squeezed text."""
    found: dict[str, str] = {}
    for line in lines:
        text = ""
        if line.event == "user_message" and line.payload.get("kind") in (None, "plain"):
            text = text_at(line.payload, "message") or ""
        elif line.event == "item_completed" and at(line.payload, "item", "type") == "UserMessage":
            text = "".join(text_at(part, "text") or "" for part in list_at(line.payload, "item", "content"))
        if text:
            found[squeezed(text)] = text
    return found


def prompt(payload: Record, twins: dict[str, str]) -> str:
    """What a person typed of a user message; "" when all of it is injected."""
    texts = list(spoken_parts(payload))
    twin = twins.get(squeezed("".join(text for text, _ in texts)))
    if twin is None:
        twin = "\n".join(text for text, origin in texts if (is_typed(text, twins) if origin is None else origin))
    before, request, after = twin.partition(REQUEST)
    return after.strip() if request and before.startswith("# ") else twin


def spoken_parts(payload: Record) -> Iterator[tuple[str, bool | None]]:
    """The texts of a message, each with whether a person typed it where the record says so (since 0.169)."""
    origins = list_at(payload, "internal_chat_message_metadata_passthrough", "content_item_metadata")
    for number, part in enumerate(parts(payload.get("content"))):
        text = text_at(part, "text")
        if text and not IMAGE_TAG.fullmatch(text.strip()):
            origin = text_at(origins, number, "provenance", "type")
            yield text, None if origin is None else origin == "user"


def is_typed(text: str, twins: dict[str, str]) -> bool:
    if squeezed(text) in twins:
        return True
    start = text.lstrip()
    return not start.startswith(INJECTED) and not (twins and start.startswith(UNTWINNED))


def unmistakable(payload: Record, twins: dict[str, str]) -> bool:
    """Whether a user message reads the same whatever twins there are besides these.

    It does where its own is among them, and where all of it is one text that does not begin as the program's do.
    """
    texts = [text for text, _ in spoken_parts(payload)]
    if squeezed("".join(texts)) in twins:
        return True
    return len(texts) < 2 and not any(text.lstrip().startswith((*INJECTED, *UNTWINNED)) for text in texts)


def event_of(text: str) -> tuple[str, str] | None:
    """The event an injected text tells of, and the text without its markup."""
    kind = next((event for start, event in EVENTS.items() if text.startswith(start)), None)
    return (kind, TAG.sub("", text).strip()) if kind else None


def cwd_in(text: str) -> str | None:
    found = CWD.search(text) if text.lstrip().startswith(INJECTED) else None
    return (found[1] or found[2]).strip() if found else None


# Outputs of tools


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a tool call; None is what was not recorded."""

    text: str = ""
    failed: bool | None = None
    took: int | None = None
    attachments: tuple[Attachment, ...] = ()


def outcome(output: Any) -> Outcome:
    """An output as written: text, a list of parts, an object, or up to 0.58 an object as text."""
    if isinstance(output, dict):
        failed = output.get("success") is False or None
        content = output.get("content", output.get("content_items"))
        return Outcome(joined(content), failed, None, attachments(content))
    if not isinstance(output, str):
        return Outcome(joined(output), None, None, attachments(output))
    if output.startswith('{"output":') and isinstance(text := at(found := decoded(output), "output"), str):
        told = at(found, "metadata")
        return Outcome(text, exit_failed(at(told, "exit_code")), milliseconds(at(told, "duration_seconds")))
    head, _, _ = output[:HEADER_LENGTH].partition("\nOutput:")
    code, wall = EXIT_CODE.search(head), WALL_TIME.search(head)
    return Outcome(output, code[1] != "0" if code else None, milliseconds(float(wall[1])) if wall else None)


def exit_failed(code: Any) -> bool | None:
    return code != 0 if isinstance(code, int) else None


def milliseconds(seconds: Any) -> int | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e9:
        return None
    return round(seconds * 1000)


def ending(payload: Record) -> tuple[str, Outcome] | None:
    """The call that an event says has ended, and how: exec_command_end and the like, or since 0.149 a completed item."""
    item = dict_at(payload, "item") or payload
    id = text_at(payload, "call_id") or text_at(payload, "item", "id")
    if id is None:
        return None
    took = duration(item.get("duration"))
    if took is None:
        started, completed = int_at(payload, "started_at_ms"), int_at(payload, "completed_at_ms")
        took = completed - started if started and completed and completed >= started else None
    failed = exit_failed(item.get("exit_code"))
    if item.get("success") is False or item.get("status") in ("failed", "declined") or "Err" in dict_at(item, "result"):
        failed = True
    return id, Outcome(failed=failed, took=took)


def duration(value: Any) -> int | None:
    seconds, nanos = int_at(value, "secs"), int_at(value, "nanos")
    return seconds * 1000 + (nanos or 0) // 1_000_000 if seconds is not None else None
