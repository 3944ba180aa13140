"""Cursor: the CLI (`cursor-agent`, of late also `agent`) and the IDE.

Three stores that know nothing of each other, the same on every system unless said otherwise:
- the CLI's, a database for each session: `~/.cursor/chats/<md5 of the cwd>/<id>/store.db`, since 2026 with a `meta.json` that is
  there before the database is; editors that run the CLI have theirs in `~/.cursor/acp-sessions/<id>/`;
- transcripts of what the agent did, in the CLI and in the IDE: `~/.cursor/projects/<cwd with "-" for "/", "_" and ".">/agent-transcripts/`,
  as `<id>.txt` until January 2026, then `<id>.jsonl`, now `<id>/<id>.jsonl` with `<id>/subagents/<id>.jsonl`. That name cannot be
  turned back into a path; it can be a number or missing, where no folder was open. Cursor throws old ones away;
- the IDE's: `globalStorage/state.vscdb` and `workspaceStorage/<id>/state.vscdb` in `~/.config/Cursor/User`, on macOS in
  `~/Library/Application Support/Cursor/User`, on Windows in `%APPDATA%/Cursor/User`, on servers in `~/.cursor-server/data/User`.
And `~/.cursor/sessions/sessions.db`, of which little is known. $CURSOR_CONFIG_DIR and $XDG_CONFIG_HOME/cursor move the CLI's
configuration and, it was once seen, its chats. One session can be in several of them: the CLI's has the most, the IDE's comes next.

Nobody writes down what was used: every count of tokens in these stores is the size of a context, so that usage is unknown.

No sessions: `~/.cursor/ai-tracking`, `prompt_history.json`, `agent-cli-state.json`, `cli-config.json`; of `~/.cursor/projects/*`
`agent-tools`, `terminals`, `assets`, `mcps`, `repo.json`; `User/History`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Protocol, TypeVar, cast

from amux.errors import UnreadableSession
from amux.model import Json, Message, Session, SessionSummary
from amux.readers import _base
from amux.readers._base import Host, Reader, SessionRef, broken_ref, stamp
from amux.readers._sqlite import Salvaged, database_stamp, reading
from amux.readers.cursor import places, tables, workspace
from amux.readers.cursor.composer import Composers
from amux.readers.cursor.conversation import Conversation
from amux.readers.cursor.places import Found
from amux.readers.cursor.store import StoreFile
from amux.readers.cursor.tables import FILE, Tables
from amux.readers.cursor.transcript import Transcript
from amux.readers.cursor.workspace import STATE, Chats, workspaces

Kind = TypeVar("Kind", Composers, Tables)
GLOBAL = "globalStorage"
SPOKEN = ("user", "assistant")


class Source(Protocol):
    """A file or database with sessions in it."""

    def session(self, id: str, folder: str) -> Conversation | None: ...

    def raw(self, id: str) -> Json: ...


class CursorReader(Reader):
    title = "Cursor"
    program = "cursor-agent"
    install = "curl https://cursor.com/install -fsS | bash"
    bound_to_cwd = True
    fork_hint = "cursor-agent cannot fork: resume the session instead"

    def __init__(self, agent: str, host: Host) -> None:
        super().__init__(agent, host)
        self.databases: dict[str, Salvaged] = {}
        self.chats: Chats | None = None
        """Those of the workspace that was read last."""

    def roots(self) -> Sequence[Path]:
        return [*self.homes(), *self.users()]

    def homes(self) -> list[Path]:
        """Where the CLI keeps its sessions and transcripts are."""
        moved = self.host.env.get("CURSOR_CONFIG_DIR")
        found = [
            self.host.home / ".cursor",
            *([self.host.expand(moved)] if moved else []),
            self.host.config_home / "cursor",
        ]
        return list(dict.fromkeys(found))

    def users(self) -> list[Path]:
        """Where the IDE keeps its databases."""
        match self.host.platform:
            case "darwin":
                own = self.host.home / "Library" / "Application Support"
            case "win32":
                own = self.host.directory("APPDATA", "AppData", "Roaming")
            case _:
                own = self.host.config_home
        return [own / "Cursor" / "User", self.host.home / ".cursor-server" / "data" / "User"]

    def state(self) -> str:
        found = [
            one for home in self.homes() for one in (*places.stores(str(home), {}), *places.transcripts(str(home)))
        ]
        told = [f"{one.path} {one.fingerprint}" for one in found]
        told += [f"{path} {database_stamp(path)}" for path in (*self.shared_databases(), *self.tables())]
        told += [one.stamp for user in self.users() for one in workspaces(str(user))]
        return blake2b("\n".join(told).encode("utf-8", "replace"), digest_size=16).hexdigest()

    def shared_databases(self) -> list[str]:
        return [path for user in self.users() if stamp(path := f"{user}/{GLOBAL}/{STATE}")]

    def tables(self) -> list[str]:
        return [path for home in self.homes() if stamp(path := f"{home}/sessions/{FILE}")]

    # Refs

    def refs(self) -> Iterator[SessionRef]:
        broken: list[SessionRef] = []
        same: dict[str, list[Found]] = {}
        for found in self.found(broken):
            same.setdefault(found.id, []).append(found)
        yield from map(places.ref, same.values())
        yield from broken

    def found(self, broken: list[SessionRef]) -> Iterator[Found]:
        """Every record of every session; what could not be listed is noted as broken."""
        folders: dict[str, str] = {}
        for user in map(str, self.users()):
            yield from self.found_in_ide(user, folders, broken)
        hashed = {places.bucket(path): path for path in folders.values()}
        for home in map(str, self.homes()):
            yield from places.stores(home, hashed)
            yield from places.transcripts(home)
        for path in self.tables():
            with noting(broken):
                sessions = self.database(path, Tables)
                yield from sessions.listed()
                sessions.check()

    def found_in_ide(self, user: str, folders: dict[str, str], broken: list[SessionRef]) -> Iterator[Found]:
        """The chats of one installation; `folders` is given the folder of each of its workspaces."""
        belonging: dict[str, str] = {}
        for one in workspaces(user):
            folders[one.id] = one.folder
            with noting(broken):
                listing = workspace.listing(one)
                belonging.update(dict.fromkeys(listing.composers, one.folder))
                yield from listing.chats
        path = f"{user}/{GLOBAL}/{STATE}"
        if stamp(path):
            with noting(broken):
                composers = self.database(path, Composers)
                yield from composers.listed(folders, belonging)
                composers.check()

    def database(self, path: str, kind: type[Kind]) -> Kind:
        """A database of many sessions, opened once. Raises UnreadableSession."""
        if path not in self.databases:
            self.databases[path] = kind(path, self.opened.enter_context(reading(path)))
        return cast(Kind, self.databases[path])

    # Reading

    def read(self, ref: SessionRef) -> Sequence[Session]:
        best = self.best(ref)
        return [self.session(ref, *best)] if best else []

    def message_at(self, ref: SessionRef, offset: int) -> Message | None:
        """Of transcripts: what databases hold has no place in a file."""
        source = self.source(ref.path)
        return source.message_at(offset) if isinstance(source, Transcript) else None

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        best = self.best(ref)
        return self.source(best[0]).raw(session_id) if best else None

    def best(self, ref: SessionRef) -> tuple[str, Conversation] | None:
        """The first of the session's records in which something is said. Raises UnreadableSession when none can be read."""
        if ref.key == ref.path:
            raise UnreadableSession(ref.path, ref.reason or "its sessions cannot be listed")
        folder, _, *others = ref.files
        problem: UnreadableSession | None = None
        for path in (ref.path, *others):
            try:
                told = self.source(path).session(ref.key, folder)
            except UnreadableSession as error:
                problem = problem or error
                continue
            if told and any(message.role in SPOKEN for message in told.messages):
                return path, told
        if problem:
            raise problem
        return None

    def source(self, path: str) -> Source:
        """What reads a file or database. Raises UnreadableSession."""
        match PurePath(path).parts[-2:]:
            case _, places.STORE:
                return StoreFile(path)
            case "globalStorage", workspace.STATE:
                return self.database(path, Composers)
            case _, workspace.STATE:
                return self.chats_in(path)
            case "sessions", tables.FILE:
                return self.database(path, Tables)
        return Transcript(path)

    def chats_in(self, path: str) -> Chats:
        if self.chats is None or self.chats.path != path:
            self.chats = Chats(path)
        return self.chats

    def session(self, ref: SessionRef, path: str, told: Conversation) -> Session:
        parent = told.parent_id or ref.files[1]
        within = path == ref.path
        return _base.session(
            self.agent,
            ref.key,
            told.messages if within else [replace(message, offset=None) for message in told.messages],
            path=ref.path,
            title=told.title,
            created_at=told.created_at,
            updated_at=told.updated_at,
            model=told.model,
            cwd=told.cwd,
            git_branch=told.git_branch,
            mode=told.mode,
            archived=told.archived,
            kind="subagent" if told.subagent or parent else "main",
            parent_id=parent or None,
            began=told.created_at,
            usage_recorded=False,
        )

    def start_command(self, prompt: str, model: str | None) -> list[str] | None:
        return [self.program, *(("--model", model) if model else ()), prompt]

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        """Only what the CLI itself began: given any other id, it begins a new session under it."""
        if PurePath(session.path or "").parts[-4:-3] != ("chats",) or session.kind != "main":
            return None
        return [self.program, *([f"--model={model}"] if model else []), f"--resume={session.session_id}"]


@contextmanager
def noting(broken: list[SessionRef]) -> Iterator[None]:
    """Note a database that cannot be read to its end."""
    try:
        yield
    except UnreadableSession as error:
        broken.append(broken_ref(error))


READER = CursorReader
