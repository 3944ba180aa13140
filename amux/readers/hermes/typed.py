"""What a person typed, and what hermes wrote around it or in the user's name.

Notes about images, voice and documents stand before the typed text or after it, expanded `/skill` commands and
`@file` references around it, and whole messages of the user's role come from hermes itself.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from amux.model import Attachment
from amux.readers._json import decoded, list_at, text_at

STRUCTURED = "\0json:"
"""How content that is no text is stored: a NUL byte, then JSON."""
IMAGES = frozenset({"image", "image_url", "input_image"})
DATA_URL = re.compile(r"data:([\w.+/-]+)[;,]")
FENCE = re.compile(r"<(/?)\s*memory-context\s*>\s*", re.IGNORECASE)
"""Around what hermes recalled from its memory."""

REVIEWS = (
    "Review the conversation above and update the skill library",
    "Review the conversation above and consider saving to memory",
)
"""The curator's orders, which older versions kept among the user's messages."""
TASK_LIST = "[Your active task list was preserved across context compression]"
SCAFFOLDING = (
    TASK_LIST,
    "[System: Your previous response was truncated",
    "[System: The previous response was cut off",
    "[System: Your previous tool call",
    "[System: Continue now.",
    "Continue from the compressed conversation context above. This marker exists",
)
SKILL = re.compile(r'\[IMPORTANT: The user has invoked the "([^"]*)" (?:stacked )?skill( bundle)?')
LOADED_SKILL = re.compile(r'\[IMPORTANT: The "([^"]*)" skill is auto-loaded\.')
INSTRUCTION = "The user has provided the following instruction alongside the skill invocation: "
BUNDLE_INSTRUCTION = "\nUser instruction: "
CRON = "[IMPORTANT: You are running as a scheduled cron job."

BEFORE = re.compile(
    r"""
    \[System\ note:[^\]]*\]\s*
    | \[IMPORTANT:\ You\ are\ running\ as\ a\ scheduled\ cron\ job\..*?\]\n\n
    | \[The\ user\ (?:attached|sent)\ an\ image.*?image_url:\ (?P<image>[^\]\n]*?)(?:\ ~)?\]\s*
    | \[The\ user\ sent\ an?\ (?P<kind>voice|audio|video|text\ document|document)[^:\]]*:\ (?P<file>'[^']*'|[^\]\s]+)[^\]]*\]\s*
    """,
    re.VERBOSE | re.DOTALL,
)
AFTER = re.compile(r"\[Image attached(?: at)?: (?P<image>.*)\]")
PICTURES = frozenset(
    {"[screenshot]", "[screenshot removed to save context]", "[Attached image — stripped after compression]"}
)
"""What stands in a text where a picture stood."""
EXPANDED = re.compile(r"\n\n--- (?:Context Warnings|Attached Context) ---\n")
REFERENCE = re.compile(r"^\S+ @(?:file:|folder:|url:)?(.+) \(\d+ tokens\)$", re.MULTILINE)
KINDS = {"voice": "audio", "audio": "audio", "video": "video"}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message of the user's role: what was typed, or (with an event) what hermes tells in the user's name.

    Without text and attachments it is nothing anybody saw.
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    event: str | None = None


def content(stored: Any) -> tuple[str, tuple[Attachment, ...]]:
    """The text of a message's content and what is attached to it; images are left out, a text in their place is not."""
    if isinstance(stored, str):
        if not stored.startswith(STRUCTURED):
            return stored, ()
        value = decoded(stored.removeprefix(STRUCTURED))
        return content(value) if isinstance(value, list | dict) else (stored.removeprefix(STRUCTURED), ())
    if isinstance(stored, bytes):
        return stored.decode("utf-8", "replace"), ()
    if isinstance(stored, dict):
        return content(list_at(stored, "content") or [stored])
    parts = list_at(stored)
    texts = [part if isinstance(part, str) else text_at(part, "text") or text_at(part, "content") for part in parts]
    return "\n".join(text for text in texts if text), tuple(attached(parts))


def attached(parts: list[Any]) -> Iterator[Attachment]:
    for part in parts:
        kind = text_at(part, "type") or ""
        if kind in IMAGES:
            url = text_at(part, "image_url", "url") or text_at(part, "image_url") or ""
            data = DATA_URL.match(url)
            yield Attachment("image", data[1] if data else None, None if data else url or None)
        elif kind in ("audio", "input_audio"):
            yield Attachment("audio")


def prompt(text: str, attachments: tuple[Attachment, ...] = ()) -> Prompt:
    """What a message of the user's role is."""
    text = without_recalled(text)
    if text.startswith(SCAFFOLDING):
        return Prompt("")
    if text.lstrip().startswith(REVIEWS):
        return Prompt("", event="review")
    if skill := SKILL.match(text):
        return typed(skill_command(skill, text), (*attachments, Attachment("skill", name=skill[1])))
    if skill := LOADED_SKILL.match(text):
        # The typed text comes last, after a blank line; nothing tells the skill's own paragraphs from its first ones.
        return typed(text.rpartition("\n\n")[2], (*attachments, Attachment("skill", name=skill[1])))
    if notification(text):
        return Prompt(text, event="notification")
    return typed(text, attachments)


def without_recalled(text: str) -> str:
    kept = []
    place, inside = 0, False
    for fence in FENCE.finditer(text):
        kept += [] if inside else [text[place : fence.start()]]
        place, inside = fence.end(), not fence[1]
    return "".join((*kept, text[place:]))


def notification(text: str) -> bool:
    """Whether hermes woke itself up: a background process, a sub-agent that came back, reloaded servers."""
    if text.startswith("[ASYNC DELEGATION "):
        return True
    return text.startswith("[IMPORTANT: ") and not text.startswith(CRON) and text.rstrip().endswith("]")


def skill_command(skill: re.Match[str], text: str) -> str:
    """An expanded `/skill` as it was typed."""
    if skill[2]:
        instruction = text.partition(BUNDLE_INSTRUCTION)[2].partition("\n\n[Loaded as part of the ")[0]
    else:
        # The skill's own text may quote the sentence: the last one is hermes'.
        instruction = text.rpartition(INSTRUCTION)[2] if INSTRUCTION in text else ""
        instruction = instruction.partition("\n\n[Runtime note:")[0]
    name = skill[1] if skill[1].startswith("/") else "/" + re.sub(r"[^a-z0-9]+", "-", skill[1].lower()).strip("-")
    return f"{name} {typed(instruction.strip()).text}".strip()


def typed(text: str, attachments: tuple[Attachment, ...] = ()) -> Prompt:
    """The text without the notes before and after it; what they tell of is attached."""
    names: list[str] = []
    others = [one for one in attachments if one.kind != "image"]
    while note := BEFORE.match(text):
        names += [note["image"]] if note["image"] is not None else []
        others += [Attachment(KINDS.get(note["kind"], "file"), name=note["file"].strip("'"))] if note["file"] else []
        text = text[note.end() :]
    if expansion := EXPANDED.search(text):
        others += [Attachment("file", name=name) for name in REFERENCE.findall(text, expansion.end())]
        text = text[: expansion.start()]
    text = text.partition("\n\n" + TASK_LIST)[0]
    text, named, placeholders = without_notes_after(text)
    pictures = [one for one in attachments if one.kind == "image"]
    return Prompt(text, (*images([*names, *named], pictures, placeholders), *others))


def without_notes_after(text: str) -> tuple[str, list[str], int]:
    """The text, the images that lines at its end name, and how many lines there stand for a picture."""
    kept = text.split("\n")
    names: list[str] = []
    placeholders = 0
    while kept:
        last = kept[-1].strip()
        if last in PICTURES:
            placeholders += 1
        elif note := AFTER.fullmatch(last):
            names.insert(0, note["image"])
        elif last:
            break
        kept.pop()
    return ("\n".join(kept) if names or placeholders else text), names, placeholders


def images(names: list[str], pictures: list[Attachment], placeholders: int) -> Iterator[Attachment]:
    """The images of a prompt: the picture itself, the note that names it and the line in its place are one of them."""
    for number in range(max(len(names), len(pictures), placeholders)):
        picture = pictures[number] if number < len(pictures) else Attachment("image")
        name = names[number] if number < len(names) else picture.name
        yield Attachment("image", picture.media_type, name or None)
