"""pi, the coding agent (npm @mariozechner/pi-coding-agent up to 0.73, @earendil-works/pi-coding-agent since).

A session is one file, `<agent directory>/sessions/--<cwd, each "/" a "-">--/<time>_<id>.jsonl`; the directory's name cannot
be turned back into a path, the header has the cwd. The agent directory is ~/.pi/agent, or what PI_CODING_AGENT_DIR
(CODING_AGENT_DIR in 0.7) names. `sessionDir` in settings.json (0.63) and PI_CODING_AGENT_SESSION_DIR (0.71) move the
sessions alone, and then they lie flat in one directory; 0.30.0 left them flat in the agent directory. The id is the header's:
0.27 wrote another one into the file's name. Up to 0.87 nothing is written before the first answer.

Only files one level below `sessions/` are sessions: extensions keep transcripts of their own sub-agents further down. No
sessions: auth.json, models.json, settings.json, prompts/, skills/, extensions/, themes/, bin/, tools/.

omp reads the same two variables, so a directory they name can hold files of both. What lies below ~/.pi is pi's, what lies
below omp's own directories is omp's; anywhere else a file is omp's when a record of it is one that only omp writes.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from amux.errors import UnreadableSession
from amux.model import Json, Session, SessionSummary
from amux.readers import _pi
from amux.readers._base import Host, Reader, SessionRef, entries, file_ref, stamp
from amux.readers._json import Record, at, document, records, text_at
from amux.readers._pi import Conversation, Transcript

SUFFIX = ".jsonl"
STAMPED = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z_(.+)\.jsonl")
PLAIN_ID = re.compile(r"(?!.*\.jsonl$)[A-Za-z0-9._][A-Za-z0-9._-]*")
"""An id that the program can take neither for an option nor for a path."""
ELSEWHERE = re.compile(r"(?:/home/[^/]+|/Users/[^/]+|/root|[A-Za-z]:\\Users\\[^\\]+)[/\\](.+)", re.DOTALL)
OMP_ALONE = frozenset(
    {"credential_pin", "mcp_tool_selection", "mode_change", "model_usage", "reset_boundary", "service_tier_change"}
    | {"session_init", "title", "title_change", "ttsr_injection"}
)
"""Types of entries that omp writes and pi does not."""


class PiReader(Reader):
    title = "pi"
    program = "pi"
    install = "npm install -g @earendil-works/pi-coding-agent"
    fork_since = "0.60"
    bound_to_cwd = True
    resume_option = "--session"

    # Where files lie

    def agent_directory(self) -> Path:
        moved = self.host.env.get("PI_CODING_AGENT_DIR") or self.host.env.get("CODING_AGENT_DIR")
        return self.host.expand(moved) if moved else self.host.home / ".pi" / "agent"

    def roots(self) -> Sequence[Path]:
        return [self.agent_directory(), *self.flat_directories()]

    def stores(self) -> Sequence[Path]:
        """The directories that have a directory for each cwd."""
        return [self.agent_directory() / "sessions"]

    def flat_directories(self) -> Sequence[Path]:
        """The directories that sessions alone were moved to."""
        settings = self.agent_directory() / "settings.json"
        named = [self.host.env.get("PI_CODING_AGENT_SESSION_DIR"), text_at(read_document(settings), "sessionDir")]
        return [self.local(path) for path in named if path and "\0" not in path]

    def local(self, recorded: str) -> Path:
        """A path as it is found on this host: one below a home that is not here is looked for below this one."""
        path = self.host.expand(recorded)
        if not (below := ELSEWHERE.fullmatch(recorded)) or os.path.exists(path):
            return path
        parts = re.split(r"[/\\]", below[1])
        return path if ".." in parts else self.host.home.joinpath(*parts)

    def folders(self) -> Iterator[str]:
        """Every directory that can hold session files, each once."""
        found: dict[str, None] = {}
        for directory in (self.agent_directory(), *self.flat_directories()):
            found[os.path.realpath(directory)] = None
        for store in self.stores():
            found[os.path.realpath(store)] = None
            for entry in entries(store):
                if os.path.isdir(entry.path):
                    found[os.path.realpath(entry.path)] = None
        yield from found

    def refs(self) -> Iterator[SessionRef]:
        # A session moved or copied to another directory keeps its file's name: the longer one has it all.
        found: dict[str, SessionRef] = {}
        for ref in self.all_refs():
            name = os.path.basename(ref.path)
            known = name if STAMPED.fullmatch(name) and not ref.files else ref.key
            if known not in found or found[known].size < ref.size:
                found[known] = ref
        yield from found.values()

    def all_refs(self) -> Iterator[SessionRef]:
        for folder in self.folders():
            for entry in entries(folder):
                if entry.name.endswith(SUFFIX) and (ref := whole_file(entry.path)):
                    yield ref

    # Sessions

    def read(self, ref: SessionRef) -> Sequence[Session]:
        transcript = Transcript.of(records(ref.path))
        session_id = id_of(transcript.header, ref.path)
        if not session_id or self.writer(ref.path, transcript) != self.agent:
            return []
        said = Conversation(transcript).follow(transcript.branch())
        calls = _pi.charges(transcript, said.places)
        if not said.messages and not calls:
            return []
        parent, looked_at = self.linked(transcript.link, ref.path)
        return [
            _pi.session(
                self.agent,
                session_id,
                ref.path,
                said,
                calls,
                title=_pi.session_name(transcript.entries),
                forked_from=parent,
                based_on=looked_at,
            )
        ]

    def writer(self, path: str, transcript: Transcript) -> str:
        """Which agent wrote a file, pi or omp."""
        own = {"pi": [self.host.home / ".pi"], "omp": [omp_directory(self.host), self.host.data_home / "omp"]}
        for agent, directories in own.items():
            if lies_below(path, directories):
                return agent
        return "omp" if any(map(omp_wrote, (transcript.header, *transcript.entries))) else "pi"

    def linked(self, link: str | None, path: str) -> tuple[str | None, tuple[str, ...]]:
        """The id of the session that a link names, by id or as the path its file had, and the refs that decide it."""
        if not link:
            return None, ()
        places = self.places_of(link, path)
        if not places:
            return (link if PLAIN_ID.fullmatch(link) else None), ()
        found = (id_of(header_of(place), place) for place in places if stamp(place))
        return next(found, None) or id_of({}, places[0]), tuple(places)

    def places_of(self, recorded: str, path: str) -> list[str]:
        """Where in the stores a file can lie whose path was recorded, perhaps on another machine; nothing for no file."""
        *above, name = re.split(r"[/\\]", recorded)
        folder = above[-1] if above else ""
        if not name.endswith(SUFFIX) or folder in (".", ".."):
            return []
        places = [os.path.join(os.path.dirname(path), name)]
        for store in map(os.path.realpath, (*self.stores(), *self.flat_directories())):
            places += [os.path.join(store, folder, name), os.path.join(store, name)]
        return list(dict.fromkeys(places))

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        return list(records(ref.path))

    # Commands

    def start_command(self, prompt: str, model: str | None) -> list[str] | None:
        return [self.program, *(("--model", model) if model else ()), prompt]

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        return self.command(self.resume_option, session, model)

    def fork_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        return self.command("--fork", session, model)

    def command(self, option: str, session: SessionSummary, model: str | None) -> list[str] | None:
        target = self.target(session)
        if not target or session.kind != "main":
            return None
        return [self.program, *(("--model", model) if model else ()), option, target]

    def target(self, session: SessionSummary) -> str | None:
        """What the program finds a session by: its id, or its file where the id could be taken for something else."""
        return session.session_id if PLAIN_ID.fullmatch(session.session_id) else session.path


def omp_directory(host: Host) -> Path:
    return host.home / (host.env.get("PI_CONFIG_DIR") or ".omp").lstrip("/")


def lies_below(path: str, directories: Iterable[Path]) -> bool:
    return any(path.startswith(os.path.realpath(directory) + os.sep) for directory in directories)


def whole_file(path: str) -> SessionRef | None:
    """A ref to a file that holds something."""
    ref = file_ref(path, path)
    return ref if ref and ref.size else None


def read_document(path: Path) -> Json:
    """The JSON of a file beside the sessions; None when it is not there or not to be read."""
    try:
        return document(str(path)) if stamp(path) else None
    except UnreadableSession:
        return None


def header_of(path: str) -> Record:
    """A file's header, read without the rest; a title may stand before it."""
    try:
        first = islice(records(path), 3)
        return next((record for record in first if record.get("type") == "session"), {})
    except UnreadableSession:
        return {}


def id_of(header: Record, path: str) -> str | None:
    """A session's id: the header's; where that is lost the one in the file's name.

    In the layout that older documents name, `sessions/<id>/*.jsonl`, a file without a header has its directory's. None: the
    file is no session.
    """
    name = os.path.basename(path)
    folder = os.path.dirname(path)
    if (id := text_at(header, "id")) or ((stamped := STAMPED.fullmatch(name)) and (id := stamped[1])):
        return id
    if os.path.basename(os.path.dirname(folder)) == "sessions" and not os.path.basename(folder).startswith("-"):
        return os.path.basename(folder)
    return name.removesuffix(SUFFIX) if header else None


def omp_wrote(record: Record) -> bool:
    """Whether only omp writes such a record; its title slot, its session_exit and its shape of model_change are in all."""
    match record.get("type"):
        case "session":
            return "titleSource" in record or "title" in record
        case "model_change":
            return "modelId" not in record and "model" in record
        case "thinking_level_change":
            return "configured" in record
        case "custom":
            return record.get("customType") in ("tool_execution_start", "session_exit")
        case "message":
            return at(record, "message", "role") == "user" and "attribution" in _pi.message_of(record)
        case kind:
            return isinstance(kind, str) and kind in OMP_ALONE


READER = PiReader
