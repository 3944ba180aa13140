"""Which sessions, in what order, how many; dates as people type them."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from pathlib import Path
from typing import Literal

from amux.errors import InvalidValue
from amux.places import LONGEST_PATH, real, text_of, told
from amux.readers._base import entries

RELATIVE = re.compile(r"(\d+)\s*([hdwmy]|mo)", re.IGNORECASE)
DATE_ONLY = re.compile(r"\d{4}-\d\d?-\d\d?|\d{4}-\d\d?|\d{4}")
GROUPS = ("agent", "model", "day", "week", "month", "tag", "project", "session")
"""What a cost report can be broken down by."""
IN_TIME = ("day", "week", "month")
MOST_WORKTREES = 200
"""How many places one question to the catalog may name."""
ACCEPTED = "ISO 8601 such as 2026-11-18 or 2026-11-18T09:30, or 7d, 2w, 3h, today, yesterday"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question about sessions. None and empty mean: no restriction. `limit` 0 means all."""

    agents: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    model: str | None = None
    tags: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    limit: int = 0
    sort: Literal["date", "cost", "turns", "relevance"] = "date"
    ascending: bool = False
    subagents: bool = False
    archived: bool = True


def escaped(text: str) -> str:
    """A text in which `like` finds no wildcards."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def milliseconds(time: datetime | None) -> int | None:
    return int(time.timestamp() * 1000) if time else None


def moment(text: str, *, end: bool = False, zone: tzinfo | None = None, now: datetime | None = None) -> datetime:
    """The time a person means; a date without a time is the whole day: its start, or with `end` the start of the next.

    `zone` is the time zone of times without one (None: local). Raises InvalidValue.
    """
    here = (now or datetime.now(UTC)).astimezone(zone)
    given = text.strip()
    days = {"today": 0, "yesterday": 1}.get(given.lower())
    if days is not None:
        return day_of(here - timedelta(days=days), end=end)
    if given.lower() == "now":
        return here.astimezone(UTC)
    if relative := RELATIVE.fullmatch(given):
        return back(here, relative[1], relative[2].lower(), given)
    return absolute(given, here, end=end)


def day_of(time: datetime, *, end: bool) -> datetime:
    """The local day a time is in, as UTC: its start or, with `end`, the start of the next one."""
    start = time.replace(hour=0, minute=0, second=0, microsecond=0)
    wall = (start + timedelta(days=1) if end else start).replace(tzinfo=None)
    # The local offset may change over night: let the zone decide anew.
    return (wall.replace(tzinfo=time.tzinfo) if has_rules(time.tzinfo) else wall).astimezone(UTC)


def has_rules(zone: tzinfo | None) -> bool:
    """Whether a zone knows its own offsets; astimezone() gives the local time only a fixed one."""
    return hasattr(zone, "key") or zone is UTC


def back(here: datetime, count: str, unit: str, given: str) -> datetime:
    from dateutil.relativedelta import relativedelta  # noqa: PLC0415 - 5 ms that only relative dates cost

    names = {"h": "hours", "d": "days", "w": "weeks", "m": "months", "mo": "months", "y": "years"}
    try:
        return (here - relativedelta(**{names[unit]: int(count)})).astimezone(UTC)  # type: ignore[arg-type]
    except (ValueError, OverflowError) as error:
        raise InvalidValue(f"{given!r} is too long ago; dates are {ACCEPTED}") from error


def absolute(given: str, here: datetime, *, end: bool) -> datetime:
    from dateutil import parser  # noqa: PLC0415 - 10 ms that only typed dates cost

    start = here.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    try:
        parsed = parser.parse(given, default=start)
        if parsed.tzinfo is None and has_rules(here.tzinfo):
            parsed = parsed.replace(tzinfo=here.tzinfo)
        found = whole(parsed, given, end=end) if DATE_ONLY.fullmatch(given) else parsed
        return found.astimezone(UTC)
    except (ValueError, ArithmeticError, OSError) as error:
        raise InvalidValue(f"{given!r} is no date, or too far away; dates are {ACCEPTED}") from error


def whole(parsed: datetime, given: str, *, end: bool) -> datetime:
    """The start or the end of the day, month or year a date names."""
    if not end:
        return parsed
    from dateutil.relativedelta import relativedelta  # noqa: PLC0415

    unit = ("years", "months", "days")[given.count("-")]
    return parsed + relativedelta(**{unit: 1})  # type: ignore[arg-type]


def here(directory: Path) -> tuple[str, ...]:
    """The git repository a directory is in and its worktrees; the directory itself outside of git."""
    resolved = Path(real(directory))
    top = next((place for place in (resolved, *resolved.parents) if os.path.exists(place / ".git")), None)
    if top is None:
        return (told(resolved),)
    shared = top / ".git"
    if os.path.isfile(shared):  # a worktree: the file names its own directory inside the repository's
        named = text_of(shared, LONGEST_PATH).partition("gitdir:")[2].strip()
        shared = Path(real(top / named)).parent.parent
    return tuple(dict.fromkeys(map(told, (top, shared.parent, *islice(worktrees(shared), MOST_WORKTREES)))))


def worktrees(repository: Path) -> Iterator[Path]:
    for entry in entries(repository / "worktrees"):
        if named := text_of(Path(entry.path, "gitdir"), LONGEST_PATH).strip():
            yield Path(named).parent
