"""omp, "oh-my-pi": a fork of pi that has drifted; see there for what they share.

`<agent directory>/sessions/<cwd's name>/<time>_<id>.jsonl`, the cwd's name being `-work-shop` below the home, `-tmp-…` below
the temporary directory, else pi's (17.2.5 to 17.2.8: `home-…-<hash>`). The agent directory is ~/.omp/agent
(PI_CODING_AGENT_DIR; PI_CONFIG_DIR replaces `.omp`), ~/.omp/profiles/<name>/agent with a profile, and $XDG_DATA_HOME/omp
where that exists, without `agent`. PI_CODING_AGENT_SESSION_DIR and --session-dir make sessions lie flat elsewhere; each such
file's path is noted in `<agent directory>/custom-session-files/<hash>`.

Beside `<session>.jsonl` lies `<session>/` with what belongs to it: the transcripts of its sub-agents, `<Name>.jsonl` (theirs
in `<Name>/`), of its advisors, `__advisor*.jsonl`, and the whole of long tool outputs, `<n>.<tool>.log`, of the session and
all its sub-agents. `/fork` copies the directory. A sub-agent that its parent waited for is told of twice: the `task` tool's
result sums up what its transcript records. No sessions: `blobs/` (pictures), terminal-sessions/, *.db, *.jsonl.<digits>.bak.

Since 16.3 line 1 is a slot of 256 bytes for the title, rewritten in place; the header follows. Before, the header held the
title. Neither compactions nor titles record what they cost.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from amux.errors import UnreadableSession
from amux.model import Charge, Message, Session, SessionSummary
from amux.readers import _pi
from amux.readers._base import SessionRef, entries, stamp
from amux.readers._json import Record, at, dict_at, int_at, list_at, records, text_at, text_of, time_at
from amux.readers._pi import Conversation, Transcript
from amux.readers.pi import STAMPED, SUFFIX, PiReader, header_of, id_of, lies_below, omp_directory, whole_file

PROFILE = re.compile(r"[/\\]profiles[/\\]([a-z0-9][a-z0-9._-]*)[/\\](?:agent[/\\])?sessions[/\\]")
LOG = re.compile(r"\d+\..*\.log")
REPORT = ".md"
ADVISOR = "__advisor"
LOG_LIMIT = 16 * 2**20
"""How much of a tool's output is worth reading back."""
POINTER_LIMIT = 4096
COPY = "copy"
"""Marks the ref of a transcript that stands beside another session too."""
SPARE = 8
"""With less padding than this the title's slot was too short for it."""


class OmpReader(PiReader):
    title = "oh-my-pi"
    program = "omp"
    install = "bun install -g @oh-my-pi/pi-coding-agent"
    fork_since = ""
    bound_to_cwd = False
    resume_option = "--resume"

    # Where files lie

    def agent_directory(self) -> Path:
        moved = self.host.env.get("PI_CODING_AGENT_DIR")
        return self.host.expand(moved) if moved else omp_directory(self.host) / "agent"

    def roots(self) -> Sequence[Path]:
        profiles = omp_directory(self.host) / "profiles"
        return [self.agent_directory(), profiles, *self.shared_data(), *self.flat_directories()]

    def shared_data(self) -> Sequence[Path]:
        """The XDG directory counts only where the agent directory was not moved, and never on Windows."""
        moved = self.host.env.get("PI_CODING_AGENT_DIR") or self.host.platform == "win32"
        return [] if moved else [self.host.data_home / "omp"]

    def agent_directories(self) -> Iterator[Path]:
        """The agent directory and those of the profiles."""
        yield self.agent_directory()
        yield from (Path(entry.path) / "agent" for entry in entries(omp_directory(self.host) / "profiles"))
        for shared in self.shared_data():
            yield shared
            yield from (Path(entry.path) for entry in entries(shared / "profiles"))

    def stores(self) -> Sequence[Path]:
        return [directory / "sessions" for directory in self.agent_directories()]

    def flat_directories(self) -> Sequence[Path]:
        named = self.host.env.get("PI_CODING_AGENT_SESSION_DIR")
        return [self.local(named)] if named else []

    def refs(self) -> Iterator[SessionRef]:
        """As pi's; but a fork can have copies of the transcripts of its parent's sub-agents."""
        alike: dict[tuple[str, int], list[SessionRef]] = {}
        for ref in super().refs():
            if ref.files:
                name = os.path.relpath(ref.path, artifacts(ref.files[0]))
                alike.setdefault((name, ref.size), []).append(ref)
            else:
                yield ref
        for found in alike.values():
            yield from told_apart(found)

    def all_refs(self) -> Iterator[SessionRef]:
        for folder in self.folders():
            for entry in entries(folder):
                if entry.name.endswith(SUFFIX):
                    yield from main_ref(entry.path)
                elif entry.is_dir(follow_symlinks=False) and belongs_to_session(entry.path):
                    yield from nested_refs(entry.path, entry.path + SUFFIX, log_stamps(entry.path))
        for path in self.noted_files():
            yield from main_ref(path)
            yield from nested_refs(artifacts(path), path, log_stamps(artifacts(path)))

    def noted_files(self) -> Iterator[str]:
        """The files that the program noted as lying elsewhere."""
        state = self.host.directory("XDG_STATE_HOME", ".local", "state") / "omp"
        for directory in (*self.agent_directories(), state):
            for entry in entries(directory / "custom-session-files"):
                recorded = beginning(entry.path, POINTER_LIMIT).strip()
                if recorded.endswith(SUFFIX) and "\0" not in recorded:
                    yield os.path.realpath(self.local(recorded))

    # Sessions

    def read(self, ref: SessionRef) -> Sequence[Session]:
        transcript = Transcript.of(records(ref.path))
        if COPY in ref.files or self.writer(ref.path, transcript) != self.agent:
            return []
        above = ref.files[0] if ref.files else None
        subagent = above is not None or started_as_subagent(transcript)
        parent, looked_at = main_id(above) if above else self.linked(transcript.link, ref.path)
        name = artifacts(os.path.basename(ref.path))
        session_id = id_of(transcript.header, ref.path) or (f"{parent}-{name}" if above else None)
        said = OmpConversation(transcript, ref.path, above, subagent).follow(transcript.branch())
        own = _pi.charges(transcript, said.places)
        if not session_id or (not said.messages and not own):
            return []
        delegated, watched = self.delegated(said)
        return [
            _pi.session(
                self.agent,
                session_id,
                ref.path,
                said,
                [*own, *delegated],
                title=title(transcript) or (name if above else None),
                kind="subagent" if subagent else "main",
                parent_id=parent if subagent else None,
                forked_from=None if subagent else parent,
                based_on=(*looked_at, *watched),
            )
        ]

    def delegated(self, said: "OmpConversation") -> tuple[list[Charge], set[str]]:
        """What sub-agents used whose transcripts are gone, as their parent was told; and the refs that decide it."""
        found: list[Charge] = []
        watched: set[str] = set()
        for number, record in enumerate(said.transcript.entries):
            for task in tasks(record):
                places = self.transcripts_of(task, said)
                watched.update(places)
                if not any(stamp(place) for place in places):
                    found.append(told_charge(said, number, task))
        return found, watched

    def transcripts_of(self, task: Record, said: "OmpConversation") -> list[str]:
        """Where the transcripts of a task's sub-agents can lie; any of the session may be that of a task that names none."""
        named = [place for one in list_at(task, "results") for place in self.named_transcripts(one, said)]
        return named or transcripts(artifacts(said.path))

    def named_transcripts(self, result: Record, said: "OmpConversation") -> Iterator[str]:
        """Beside the session's file, or its parent's in a fork, under the sub-agent's id or the name of its report."""
        *above, folder, report = re.split(r"[/\\]", "//" + (text_at(result, "outputPath") or ""))
        sessions = self.places_of(f"{above[-1]}/{folder}{SUFFIX}", said.path) if folder.strip(".") else []
        for name in (text_at(result, "id") or "", report.removesuffix(REPORT)):
            if name and not re.search(r"[/\\\0]", name):
                for place in (*said.folders, *map(artifacts, sessions)):
                    yield os.path.join(place, name + SUFFIX)

    # Commands

    def command(self, option: str, session: SessionSummary, model: str | None) -> list[str] | None:
        found = super().command(option, session, model)
        if found and (profile := PROFILE.search(session.path or "")):
            return [found[0], "--profile", profile[1], *found[1:]]
        return found

    def target(self, session: SessionSummary) -> str | None:
        """Ids are looked up in the program's own directories only."""
        path = session.path or ""
        return super().target(session) if lies_below(path, self.roots()) else session.path


@dataclass
class OmpConversation(Conversation):
    """A session of omp. `above` is the file of the main session that a sub-agent's lies beside."""

    path: str
    above: str | None
    subagent: bool
    started: dict[str, datetime] = field(init=False, default_factory=dict)

    @property
    def folders(self) -> Sequence[str]:
        """Where what belongs to the session lies: a sub-agent shares its main session's directory."""
        shared = [os.path.dirname(self.path), artifacts(self.above)] if self.above else []
        return [artifacts(self.path), *shared]

    def told(self, record: Record) -> Iterator[Message]:
        if record.get("customType") == "tool_execution_start":
            id, time = text_at(record, "data", "toolCallId"), time_at(record, "data", "startedAt")
            if id and time:
                self.started[id] = time
        return super().told(record)

    def prompt(self, message: Record, record: Record) -> Iterator[Message]:
        for said in super().prompt(message, record):
            if message.get("attribution") == "agent" and not self.subagent:
                yield replace(said, role="system", event="notification")
            else:
                yield said

    def note(self, message: Record, record: Record) -> Iterator[Message]:
        report = message.get("customType") == "async-result"  # of a sub-agent that ran in the background
        return super().note({**message, "display": True} if report else message, record)

    def output(self, message: Record) -> str:
        """The whole output where the session has only its ends: a fork may have another file of that name."""
        shortened = dict_at(message, "details", "meta", "truncation")
        id, size = text_at(shortened, "artifactId") or "", int_at(shortened, "totalBytes")
        tool = re.sub(r"[^A-Za-z0-9_-]+", "_", text_at(message, "toolName") or "").strip("_")[:64]
        for folder in self.folders if id.isdecimal() else ():
            path = os.path.join(folder, f"{id}.{tool or 'tool'}.log")
            if (found := stamp(path)) and found[1] == size:
                return beginning(path, LOG_LIMIT) or super().output(message)
        return super().output(message)

    def duration(self, message: Record, record: Record) -> int | None:
        took = super().duration(message, record)
        began, ended = self.started.get(text_at(message, "toolCallId") or ""), _pi.time_of(record)
        if took is not None or not began or not ended or ended < began:
            return took
        return round((ended - began).total_seconds() * 1000)


def artifacts(session: str) -> str:
    """The directory of what belongs to a session's file."""
    return session.removesuffix(SUFFIX)


def belongs_to_session(directory: str) -> bool:
    """Whether a directory belongs to a session's file; the file may be gone."""
    return bool(STAMPED.fullmatch(os.path.basename(directory) + SUFFIX) or stamp(directory + SUFFIX))


def main_id(main: str) -> tuple[str | None, tuple[str, ...]]:
    """The id of the main session that a sub-agent's file lies beside, and the ref that decides it."""
    return id_of(header_of(main) if stamp(main) else {}, main) or artifacts(os.path.basename(main)), (main,)


def main_ref(path: str) -> Iterator[SessionRef]:
    """A session's own ref: which transcripts there are decides whether what a task tells of them counts."""
    if ref := whole_file(path):
        beside = "".join(f"|{transcript}" for transcript in transcripts(artifacts(path)))
        yield ref._replace(fingerprint=ref.fingerprint + log_stamps(artifacts(path)) + beside)


def nested_refs(directory: str, main: str, logs: str) -> Iterator[SessionRef]:
    for entry in entries(directory):
        if entry.is_dir(follow_symlinks=False):
            yield from nested_refs(entry.path, main, logs)
        elif entry.name.endswith(SUFFIX) and (ref := whole_file(entry.path)):
            yield ref._replace(fingerprint=ref.fingerprint + logs, files=(main,))


def transcripts(directory: str) -> list[str]:
    """The transcripts of sub-agents in a directory."""
    found = (entry for entry in entries(directory) if not entry.name.startswith(ADVISOR))
    return [entry.path for entry in found if entry.name.endswith(SUFFIX)]


def told_apart(alike: Sequence[SessionRef]) -> Iterator[SessionRef]:
    """Sub-agents' transcripts of one name and size; all but the oldest session's of each are marked as copies."""
    seen = set[str | None]()
    for ref in sorted(alike, key=lambda ref: os.path.basename(ref.files[0])):
        id = text_at(header_of(ref.path), "id") if len(alike) > 1 else None
        copied = id is not None and id in seen
        seen.add(id)
        yield ref._replace(fingerprint=f"{ref.fingerprint}|{COPY}", files=(*ref.files, COPY)) if copied else ref


def log_stamps(directory: str) -> str:
    """What changes when a tool's whole output is added to a session's directory."""
    found = ((entry.name, stamp(entry.path)) for entry in entries(directory) if LOG.fullmatch(entry.name))
    return "".join(f"|{name}:{one[0]}" for name, one in found if one)


def beginning(path: str, limit: int) -> str:
    """The text of a file up to a limit; nothing where it cannot be read."""
    try:
        return text_of(path, limit)
    except UnreadableSession:
        return ""


def started_as_subagent(transcript: Transcript) -> bool:
    inits = (record for record in transcript.entries if record.get("type") == "session_init")
    return any("task" in record or "systemPrompt" in record for record in inits)


def title(transcript: Transcript) -> str | None:
    """The slot's title, then the last one set, then the header's; a full slot may hold only a title's beginning."""
    slot = last(transcript.entries, "title")
    shown = text_at(slot, "title")
    whole = text_at(last(transcript.entries, "title_change"), "title") or text_at(transcript.header, "title")
    full = len(text_at(slot, "pad") or "") < SPARE
    return whole if whole and shown and full and whole.startswith(shown.rstrip("….")) else shown or whole


def last(lines: Iterable[Record], kind: str) -> Record:
    """The last record of a type that has a title."""
    found: Record = {}
    for record in lines:
        if record.get("type") == kind and text_at(record, "title"):
            found = record
    return found


def tasks(record: Record) -> Iterator[Record]:
    """What a `task` tool's result tells of its sub-agents, each apart where it does, else all in one."""
    message = _pi.message_of(record)
    details = dict_at(message, "details")
    if message.get("toolName") != "task" or not isinstance(details.get("usage"), dict):
        return
    each = [one for one in list_at(details, "results") if isinstance(at(one, "usage"), dict)]
    yield from ({**one, "results": [one]} for one in each)
    if not each:
        yield details


def told_charge(said: OmpConversation, number: int, task: Record) -> Charge:
    """One charge for the calls of a sub-agent that left only their sum."""
    called = _pi.named({"model": text_at(task, "resolvedModelIdentity") or text_at(task, "resolvedModel")})
    key = f"{_pi.call_key(said.transcript, number, task)} {text_at(task, 'id')}"
    one = _pi.charge(key, task, said.transcript, number, called, said.places.get(number))
    return replace(one, aggregate=True, calls=int_at(task, "requests") or 1)


READER = OmpReader
