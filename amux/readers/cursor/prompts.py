"""What a person typed, out of the text that Cursor sends to the model in their name.

Since the CLI began a prompt stands inside `<user_query>`, after `<timestamp>Tuesday, Nov 17, 2026, 9:50 PM (UTC+1)</timestamp>`
and blocks about files and images; older builds and sub-agents have the bare text. Context that nobody typed comes as
messages of its own, made of such blocks alone.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from amux.model import Attachment

OPEN, CLOSE = "<user_query>", "</user_query>"
BLOCK = re.compile(r"\s*<([a-z]+(?:_[a-z]+)+|rules|timestamp|system-reminder)(?:\s[^>]*)?>.*?</\1>\s*", re.DOTALL)
"""Context that stands before what was typed: a tag of the kind that Cursor makes up, up to its end."""
CONTEXT = ("<user_info>", "<system_reminder>", "<system-reminder>", "<open_and_recently_viewed_files>")
"""Blocks that are context also where their end was cut off."""
STAMP = re.compile(
    r"<timestamp>[^<]*?([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4}),? (\d{1,2}):(\d\d)(?::\d\d)?\s*([AP]M)?"
    r"\s*\(UTC(?:([+\-−])(\d{1,2})(?::?(\d\d))?)?\)"
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
IMAGES = re.compile(r"<image_files>(.*?)</image_files>", re.DOTALL)
NUMBERED = re.compile(r"^\s*\d+\.\s+(.+?)\s*$", re.MULTILINE)
FILE = re.compile(r"<(?:code_selection|file_contents|file)\s[^>]*?path=\"([^\"]+)\"")


@dataclass(frozen=True, slots=True)
class Typed:
    text: str
    at: datetime | None = None
    attachments: tuple[Attachment, ...] = ()


def typed(text: str) -> Typed | None:
    """The prompt in a text, with its time and what was attached; None when nobody typed any of it."""
    start = text.find(OPEN)
    if start < 0:
        said = outside(text)
        around = text[: len(text) - len(said)]
    else:
        said = query(text, start + len(OPEN))
        around = text[:start]
    attachments = attached(around) if start >= 0 else ()
    return Typed(said, when_sent(around), attachments) if attachments or not blank(said) else None


def query(text: str, start: int) -> str:
    """What stands between the tags but for the line breaks beside them, cut out at once: it may be huge."""
    end = text.rfind(CLOSE, start)
    end = end if end >= 0 else len(text)
    start += text.startswith("\n", start, end)
    end -= text.endswith("\n", start, end)
    return text[start:end]


def blank(text: str) -> bool:
    return not text or text.isspace()


def outside(text: str) -> str:
    """What follows the blocks of context at the beginning of a text."""
    while found := BLOCK.match(text):
        text = text[found.end() :]
    return "" if text.lstrip().startswith(CONTEXT) else text


def programmed(text: str) -> bool:
    """Whether Cursor wrote a query itself, such as a note on a sub-agent that ended: a typed one begins on its own line."""
    start = text.find(OPEN)
    return start >= 0 and text[start + len(OPEN) :][:1] not in ("\n", "\r")


def attached(context: str) -> tuple[Attachment, ...]:
    images = [Attachment("image", name=path) for block in IMAGES.findall(context) for path in NUMBERED.findall(block)]
    files = dict.fromkeys(FILE.findall(context))
    return (*images, *(Attachment("file", name=path) for path in files))


def when_sent(context: str) -> datetime | None:
    """The time of a prompt, to the minute."""
    if not (found := STAMP.search(context)) or found[1] not in MONTHS:
        return None
    month, day, year, hour, minute, half, sign, hours, minutes = found.groups()
    clock = int(hour) % 12 + 12 * (half == "PM") if half else int(hour)
    ahead = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (1 if sign == "+" else -1)
    try:
        local = datetime(int(year), MONTHS.index(month) + 1, int(day), clock, int(minute), tzinfo=timezone(ahead))
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
