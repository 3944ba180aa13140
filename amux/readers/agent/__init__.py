"""agent, of bitop-dev (before that of nickcecere and ncecere).

Two programs under one name, neither of which reads the other's sessions; both count their versions from 0.1.0. Up to
March 2026 each start of the program wrote a file, `$XDG_CONFIG_HOME/agent/sessions/<time>-<8 hex digits>.jsonl`, else below
`~/.config`; many hold a header and nothing more. Since then all sessions are in `~/.agent/sessions/sessions.db`, which only
the home moves. Beside it, `~/.agent/config.yaml` can hold keys, and `profiles/` and `plugins/` are no sessions.

Other programs are called `agent` too, Cursor's for one: a file without this one's header, or a database without its
columns, is not read.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from amux.errors import UnreadableSession
from amux.model import Json, Session, SessionSummary
from amux.readers._base import Reader, SessionRef, broken_ref, entries, file_ref, stamp
from amux.readers._sqlite import database_stamp, reading
from amux.readers.agent import journal, store
from amux.readers.agent.store import Store

STORE = "sessions.db"
SHORT = re.compile(r"[0-9a-f]{8}")


class AgentReader(Reader):
    title = "agent (bitop-dev)"
    program = "agent"
    install = "go install github.com/bitop-dev/agent/cmd/agent@latest"
    fork_hint = "a session from before March 2026 can be resumed and forked from inside, with /fork; later ones cannot be forked"

    def roots(self) -> Sequence[Path]:
        return [self.host.config_home / "agent" / "sessions", self.host.home / ".agent" / "sessions"]

    @property
    def database(self) -> str:
        return str(self.roots()[1] / STORE)

    @cached_property
    def store(self) -> Store:
        """Raises UnreadableSession."""
        return Store(self.database, self.opened.enter_context(reading(self.database)))

    def state(self) -> str:
        told = [database_stamp(self.database), *(f"{ref.key} {ref.fingerprint}" for ref in self.journals())]
        return blake2b("\n".join(told).encode("utf-8", "replace"), digest_size=16).hexdigest()

    def refs(self) -> Iterator[SessionRef]:
        yield from self.journals()
        if stamp(self.database):
            try:
                yield from self.store.refs()
            except UnreadableSession as error:
                yield broken_ref(error)

    def journals(self) -> Iterator[SessionRef]:
        for entry in entries(self.roots()[0]):
            if entry.name.endswith(".jsonl") and (ref := file_ref(entry.name, entry.path)):
                yield ref

    def read(self, ref: SessionRef) -> Sequence[Session]:
        if os.path.basename(ref.path) == STORE:
            return store.sessions(self.agent, self.store, ref)
        return journal.sessions(self.agent, ref)

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        return self.store.raw(ref.key) if os.path.basename(ref.path) == STORE else list(journal.records(ref.path))

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        """Neither generation takes a model: the first has it from agent.yaml, the second from the profile."""
        if os.path.basename(session.path or "") == STORE:
            return [self.program, "chat", "--session", session.session_id]
        # The first generation looks for the argument in file names, and those have only the beginning of the id.
        short = session.session_id[:8]
        return [self.program, "-session", short] if SHORT.fullmatch(short) else None


READER = AgentReader
