"""Hermes Agent (NousResearch).

The root is $HERMES_HOME, else ~/.hermes (Windows: %LOCALAPPDATA%/hermes); a root has named profiles, `profiles/<name>/`, each
a whole home of its own, and $HERMES_HOME may name one of them. A home's sessions are in `state.db`, SQLite in WAL mode: after
`hermes chat -q` everything may still be in the -wal. The version of its schema (a row of `schema_version`: 11 is 0.13 and
0.14, 22 is 0.19, git's main branch is at 30) does not tell which columns there are, since any opening for writing adds those
that are missing. Ids look like 20261118_060710_b2020f and are unique in one database only. With `database.backend: postgres`
nothing is on the disk.

What is not in the database lies in `sessions/` and `memories/`. No sessions: config.yaml, SOUL.md, skills/, logs/, cron/,
checkpoints/, cache/delegation/ (live logs of sub-agents), kanban*.db, state.db.bak*, `request_dump_*.json`.
"""

import os
import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from amux.errors import UnreadableSession
from amux.model import Json, Session, SessionSummary
from amux.readers._base import Host, Reader, SessionRef, broken_ref, entries, stamp
from amux.readers._json import text_of
from amux.readers._sqlite import database_stamp, reading
from amux.readers.hermes import conversation, files, index
from amux.readers.hermes.store import Store
from amux.search import Words

DATABASE = "state.db"
PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Home:
    """The default home or a profile's; `prefix` is what the keys of its refs begin with."""

    path: str
    prefix: str = ""

    @property
    def database(self) -> str:
        return os.path.join(self.path, DATABASE)


class HermesReader(Reader):
    title = "Hermes Agent"
    program = "hermes"
    install = "curl -fsSL https://hermes-agent.nousresearch.com/install.sh | bash"
    fork_hint = "hermes forks only from within: resume the session and type /branch"

    def __init__(self, agent: str, host: Host) -> None:
        super().__init__(agent, host)
        self.stores: dict[str, Store] = {}

    def roots(self) -> Sequence[Path]:
        native = self.native_root()
        moved = self.host.env.get("HERMES_HOME", "").strip()
        if not moved:
            return [native]
        path = self.host.expand(moved)
        if path.is_relative_to(native):
            return [native]
        return [path.parent.parent if path.parent.name == "profiles" else path]

    def native_root(self) -> Path:
        if self.host.platform == "win32":
            return self.host.directory("LOCALAPPDATA", "AppData", "Local") / "hermes"
        return self.host.home / ".hermes"

    def homes(self) -> Iterator[Home]:
        for root in self.roots():
            yield Home(str(root))
            for entry in entries(root / "profiles"):
                if PROFILE.fullmatch(entry.name) and os.path.isdir(entry.path):
                    yield Home(entry.path, f"profiles/{entry.name}/")

    def state(self) -> str | None:
        found = []
        for home in self.homes():
            found.append(f"{home.path}:{database_stamp(home.database)}")
            for folder in ("sessions", "memories"):
                listed = entries(os.path.join(home.path, folder))
                found += [f"{entry.name}:{told[0]}" for entry in listed if (told := stamp(entry.path))]
        return "\n".join(found)

    # Refs

    def refs(self) -> Iterator[SessionRef]:
        # A profile can be made as a copy of another one, sessions included: the one that went on has it all.
        found: dict[object, SessionRef] = {}
        for home in self.homes():
            for same, ref in self.home_refs(home):
                if same not in found or found[same].size < ref.size:
                    found[same] = ref
        yield from found.values()

    def home_refs(self, home: Home) -> Iterator[tuple[object, SessionRef]]:
        """The refs of a home, each with what another ref to the same session has in common with it."""
        if os.path.lexists(home.database):
            yield from self.database_refs(home)
        for ref in self.file_refs(home):
            yield ref.key, ref

    def database_refs(self, home: Home) -> Iterator[tuple[object, SessionRef]]:
        try:
            store = self.store(home)
            yield from store.refs()
            store.check()
        except UnreadableSession as error:
            yield error.path, broken_ref(error)

    def file_refs(self, home: Home) -> Iterator[SessionRef]:
        """What lies in files and is not in the database, if there is one that opened."""
        store = self.stores.get(home.database)
        yield from files.legacy_refs(home.path, home.prefix, store.sessions if store else ())
        yield from files.memory_refs(home.path, home.prefix)

    # Reading

    def store(self, home: Home) -> Store:
        """The database of a home, opened once. Raises UnreadableSession."""
        path = home.database
        if path not in self.stores:
            self.stores[path] = Store(path, home.prefix, self.opened.enter_context(reading(path)))
        return self.stores[path]

    def read(self, ref: SessionRef) -> Sequence[Session]:
        if ref.path.endswith(DATABASE):
            return conversation.read(self.agent, self.stored(ref), ref.files[0])
        if ref.path.endswith(".md"):
            return files.read_memory(self.agent, ref)
        return files.read_legacy(self.agent, ref)

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        if ref.path.endswith(DATABASE):
            store = self.stored(ref)
            return store.every_row(store.chain(session_id))
        return text_of(ref.path) if ref.path.endswith(".md") else files.raw_legacy(ref)

    def stored(self, ref: SessionRef) -> Store:
        return self.store(Home(os.path.dirname(ref.path), ref.key.removesuffix(ref.files[0])))

    def search(self, words: Words) -> Collection[str] | None:
        """What hermes' own index finds; the memory and sessions in files, which it does not know, are looked into."""
        try:
            with closing(index.Probe()) as probe:
                found = [self.found_in(home, words, probe) for home in self.homes()]
        except (sqlite3.Error, UnreadableSession):
            return None
        return None if None in found else {id for ids in found for id in ids or ()}

    def found_in(self, home: Home, words: Words, probe: index.Probe) -> Collection[str] | None:
        ids: set[str] = set()
        if os.path.lexists(home.database):
            asked = index.Index(self.store(home), probe)
            if not asked.usable:
                return None
            ids = index.chosen(words, asked.holders)
        sessions = [session for ref in self.file_refs(home) for session in self.read(ref)]
        return ids | index.chosen(words, lambda term: {one.session_id for one in sessions if probe.holds(one, term)})

    # Going on

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        if not (session.path or "").endswith(DATABASE):
            return None  # hermes resumes from its database only
        profile = self.profile_option(os.path.dirname(session.path or ""))
        # The main parser takes --model too, but only `chat` heeds it.
        chosen = ["chat", f"--model={model}"] if model else []
        return [self.program, *profile, *chosen, f"--resume={session.session_id}"]

    def profile_option(self, home: str) -> list[str]:
        """The option that makes hermes use a home, where it would not by itself."""
        folder, name = os.path.split(home)
        if os.path.basename(folder) == "profiles":
            return ["-p", name]
        return ["-p", "default"] if self.other_profile(home) else []

    def other_profile(self, root: str) -> bool:
        """Whether hermes would use another profile than the default: the variable names one, or the user chose one."""
        if os.path.basename(os.path.dirname(self.host.env.get("HERMES_HOME", "").strip())) == "profiles":
            return True
        path = os.path.join(root, "active_profile")
        try:
            return text_of(path).strip() not in ("", "default")
        except UnreadableSession:
            return False


READER = HermesReader
