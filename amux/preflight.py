"""What is worth saying before an agent goes on with a session: how it and its directory stand now.

Git is read from its files: no program is started to look at a directory that a session file named.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from amux.model import SessionSummary
from amux.output.plain import one_line, visible
from amux.places import real, text_of
from amux.readers._base import Reader, stamp

LIVELY = 15
"""Seconds: a session written to so lately may have an agent running in it."""
USUAL_MODES = frozenset({"default", "normal", "interactive"})
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
SHORT_COMMIT = 7
DATABASE = b"SQLite format 3\0"


def of_session(session: SessionSummary, forks: Sequence[SessionSummary]) -> Iterator[str]:
    """What is worth knowing of the session itself."""
    if session.archived:
        yield "the session is archived"
    if session.forked_from:
        yield f"the session is a fork of {one_line(session.forked_from, 80)}"
    if forks:
        newest = max(forks, key=lambda fork: fork.updated_at)
        others = f" and {len(forks) - 1} more" if len(forks) > 1 else ""
        yield f"the session was forked: {one_line(newest.unified_id, 100)}{others} went on from it"
    seconds = seconds_since_written(session)
    if seconds is not None and seconds < LIVELY:
        yield f"the session was written to {int(seconds)} s ago: {session.agent} may still be running in it"


def around(session: SessionSummary, cwd: str) -> Iterator[str]:
    """What differs between the directory as it was and as it is."""
    if not session.cwd or not os.path.isabs(session.cwd):
        yield f"the session does not say where it ran; it goes on in {visible(cwd)}"
    branch = None if session.git_branch == "HEAD" else session.git_branch
    if not branch and not session.git_commit:
        return
    now = git_place(Path(cwd))
    was = place_name(branch, session.git_commit)
    if now is None:
        if os.path.isdir(cwd):
            yield f"the session ran on {was}, and {visible(cwd)} is in no git repository that can be read"
    elif branch and branch != now.branch:
        yield f"the session ran on {was}, you are on {place_name(now.branch, None if now.branch else now.commit)}"
    elif session.git_commit and now.commit and not same_commit(session.git_commit, now.commit):
        yield f"the session ran at {short(session.git_commit)}, {place_name(now.branch, None)} is at {short(now.commit)} now"


def of_agent(reader: Reader, session: SessionSummary, cwd: str) -> Iterator[str]:
    """What the agent will not restore, or may not find."""
    if session.mode and session.mode not in USUAL_MODES:
        yield f"it ran with {one_line(session.mode, 100)}; {reader.program} starts with your own settings"
    elsewhere = session.cwd and real(cwd) != real(session.cwd)
    if elsewhere and reader.bound_to_cwd:
        yield f"{reader.program} looks for sessions by directory: in another one it may not find this one"


def seconds_since_written(session: SessionSummary) -> float | None:
    """How long ago the session's file was written; of a database that many share, when the session says so itself."""
    now = datetime.now(UTC)
    age = (now - session.updated_at).total_seconds()
    written = None if not session.path or is_database(session.path) else modified(session.path)
    ages = [age, now.timestamp() - written] if written is not None else [age]
    return min((one for one in ages if one >= 0), default=None)


def is_database(path: str) -> bool:
    if not stamp(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(DATABASE)) == DATABASE
    except OSError:
        return False


def modified(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime
    except (OSError, ValueError):
        return None


# Git, read without git


@dataclass(frozen=True, slots=True)
class GitPlace:
    """Where a working tree stands: no branch when it is detached, no commit before the first."""

    branch: str | None
    commit: str | None


def git_place(directory: Path) -> GitPlace | None:
    """Where the repository a directory is in stands; None outside of one, and for one that is kept in another way."""
    top = next((place for place in (directory, *directory.parents) if os.path.exists(place / ".git")), None)
    if top is None:
        return None
    own = top / ".git"
    if os.path.isfile(own):  # a worktree or submodule: the file names its directory
        own = top / text_of(own).partition("gitdir:")[2].strip()
    shared = own / (text_of(own / "commondir").strip() or ".")
    head = text_of(own / "HEAD").strip()
    if COMMIT.fullmatch(head):
        return GitPlace(None, head)
    name = head.removeprefix("ref: ")
    if not name.startswith("refs/heads/") or ".." in name or name == "refs/heads/.invalid":
        return None  # `.invalid` is what a repository with reftables says
    return GitPlace(name.removeprefix("refs/heads/"), commit_of(name, own, shared))


def commit_of(name: str, own: Path, shared: Path) -> str | None:
    loose = next((found for place in (own, shared) if COMMIT.fullmatch(found := text_of(place / name).strip())), None)
    lines = (line.split(" ") for line in ([] if loose else text_of(shared / "packed-refs").splitlines()))
    packed = next((line[0] for line in lines if line[1:] == [name] and COMMIT.fullmatch(line[0])), None)
    return loose or packed


def same_commit(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def short(commit: str) -> str:
    return visible(commit[:SHORT_COMMIT])


def place_name(branch: str | None, commit: str | None) -> str:
    names = ([one_line(branch, 80)] if branch else []) + ([short(commit)] if commit else [])
    return " at ".join(names) or "no branch"
