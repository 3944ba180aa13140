"""OpenCode.

Everything lies in $XDG_DATA_HOME/opencode, else ~/.local/share/opencode, on every system. Up to 0.5 sessions were JSON files
in `project/<slug>/storage/session`, then up to 1.1 in `storage`, since 1.2 rows of `opencode.db`. $OPENCODE_DB names another
database, relative to that directory; builds of other channels use `opencode-<channel>.db`. Each change of layout copied
what it could and left the old: 1.2 to 1.15 imported JSON files once, except sessions that do not say their directory,
later versions import nothing. So the same session can be in several places, and the latest generation has it all.

After a normal exit `opencode.db` can be one empty page with every row still in its `-wal`. No sessions: `log`, `snapshot`,
`tool-output`, `storage/session_diff`, `storage/migration`, `project/*/app.json`; in the database `event`, which repeats
every message and part, the totals in `session`, which repeat the sum of the messages and in a fork count its parent's
too, and `session_input`, prompts not yet sent. `account`, `credential` and `session_share` hold secrets.

`parent_id` is a sub-agent's. A fork up to 1.x has no link: its copied messages keep the time they have in the parent.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from amux.errors import UnreadableSession
from amux.model import Json, Session, SessionSummary
from amux.readers._base import Host, Reader, SessionRef, broken_ref, entries, stamp
from amux.readers._sqlite import database_stamp, reading
from amux.readers.opencode import files, transcript
from amux.readers.opencode.database import Database, Listed

MEMORY = ":memory:"


class OpencodeReader(Reader):
    title = "OpenCode"
    program = "opencode"
    install = "npm install -g opencode-ai"
    fork_since = "1.1"
    fork_hint = "opencode before 1.1 cannot fork: resume the session instead"

    def __init__(self, agent: str, host: Host) -> None:
        super().__init__(agent, host)
        self.databases: dict[str, Database] = {}

    @property
    def root(self) -> Path:
        return self.host.data_home / "opencode"

    def roots(self) -> Sequence[Path]:
        named = self.host.env.get("OPENCODE_DB")
        return [self.root, self.root / named] if named and named != MEMORY else [self.root]

    def paths(self) -> list[str]:
        """Every database there is, the one the environment names included."""
        found = [e.path for e in entries(self.root) if e.name.startswith("opencode") and e.name.endswith(".db")]
        return [path for path in dict.fromkeys([*found, *map(str, self.roots()[1:])]) if stamp(path)]

    def state(self) -> str | None:
        """None where there are JSON files: they are written in place, so that only looking at each one would tell."""
        if any(True for _ in files.places(str(self.root))):
            return None
        return "\n".join(f"{path} {database_stamp(path)}" for path in self.paths())

    def refs(self) -> Iterator[SessionRef]:
        """Each session once: version 2 before version 1 before the files, of equals the one that changed last."""
        broken: list[SessionRef] = []
        listed = [one for path in self.paths() for one in self.listed(path, broken)]
        found: dict[str, SessionRef] = {}
        for one in sorted(listed, key=lambda one: (-one.generation, -one.updated)):
            found.setdefault(one.ref.key, one.ref)
        for place in files.places(str(self.root)):
            if place.id not in found and (ref := files.ref(place)):
                found[place.id] = ref
        yield from found.values()
        yield from broken

    def listed(self, path: str, broken: list[SessionRef]) -> Iterator[Listed]:
        """The sessions of a database; one that cannot be read to its end is noted as broken."""
        try:
            yield from self.database(path).listed()
        except UnreadableSession as error:
            broken.append(broken_ref(error))

    def database(self, path: str) -> Database:
        """The database, opened once: a copy may have to be made. Raises UnreadableSession."""
        if path not in self.databases:
            self.databases[path] = Database(path, self.opened.enter_context(reading(path)))
        return self.databases[path]

    def read(self, ref: SessionRef) -> Sequence[Session]:
        if ref.files:
            stored = files.read(ref)
            parent = files.parent(ref, stored)
        else:
            database = self.database(ref.path)
            stored = database.read(ref.key)
            parent = database.parent(stored)
        based_on = (parent,) if parent else ()
        return [transcript.session(self.agent, stored, forked_from=parent, based_on=based_on)] if stored.entries else []

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        return files.raw(ref) if ref.files else self.database(ref.path).raw(session_id)

    def start_command(self, prompt: str, model: str | None) -> list[str] | None:
        return [self.program, *(("--model", model) if model else ()), "--prompt", prompt]

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        if (session.path or "").endswith(".json") and self.paths():
            return None  # a version that has a database does not read the files
        id = session.session_id
        chosen = [f"--session={id}"] if id.startswith("-") else ["--session", id]
        return [self.program, *(("--model", model) if model else ()), *chosen]

    def fork_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        if "/session/info/" in (session.path or ""):
            return None
        resume = self.resume_command(session, model)
        return [*resume, "--fork"] if resume else None


READER = OpencodeReader
