"""OpenAI Codex CLI.

The root is $CODEX_HOME, else ~/.codex. A session, codex says thread, is a rollout file: flat
`sessions/rollout-<date>-<uuid>.json` in the TypeScript version (0.1.25xx), `sessions/YYYY/MM/DD/rollout-<local
time>-<uuid>.jsonl` since 0.8. `codex archive` moves it to `archived_sessions/`, without the dated directories. Files not
touched for a week may be replaced by `.jsonl.zst`; where both lie, the plain one counts. Since 0.149 taking back a turn
begins a second file of the thread, `…-<thread>_<rollout>.jsonl`, that refers to the first. Resuming appends.

No sessions: `history.jsonl` (prompts for recall), `session_index.jsonl` (names), `state_*.sqlite` and the other
databases, files ending in `.tmp`, and what `codex exec --json` prints. `codex exec --ephemeral` leaves nothing.
Older documents tell of `sessions/<id>.jsonl` with a message a line; no version writes it, but it is read where it lies.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from amux.model import Json, Message, Session, SessionSummary
from amux.readers._base import Host, Reader, SessionRef
from amux.readers.codex import store
from amux.readers.codex.index import UNKNOWN, Known, known_threads
from amux.readers.codex.store import Found, Rollout


class CodexReader(Reader):
    title = "Codex"
    program = "codex"
    install = "npm install -g @openai/codex"
    fork_since = "0.98"

    def __init__(self, agent: str, host: Host) -> None:
        super().__init__(agent, host)
        self.root = str(host.directory("CODEX_HOME", ".codex"))
        self.found: dict[str, Found] | None = None
        self.known: dict[str, Known] | None = None

    def roots(self) -> Sequence[Path]:
        return [Path(self.root)]

    def refs(self) -> Iterator[SessionRef]:
        self.found = store.rollouts(self.root)
        self.known = known_threads(self.host, self.root) if self.found else {}
        yield from store.refs(self.found.values(), self.known)

    def read(self, ref: SessionRef) -> Sequence[Session]:
        from amux.readers.codex.session import sessions  # noqa: PLC0415 - a list of unchanged sessions does without

        if self.known is None:
            self.known = known_threads(self.host, self.root)
        return sessions(self.agent, ref, self.own(ref), self.known.get(ref.key, UNKNOWN), self.rollout)

    def message_at(self, ref: SessionRef, offset: int) -> Message | None:
        from amux.readers.codex.conversation import message_at  # noqa: PLC0415

        return message_at(ref.path, offset)

    def own(self, ref: SessionRef) -> list[Rollout]:
        paths = (*ref.files, ref.path)
        return [found for path in paths if (found := store.rollout_at(self.root, path))]

    def rollout(self, id: str) -> Rollout | None:
        """The rollout of that id, whichever thread's it is."""
        if self.found is None:
            self.found = store.rollouts(self.root)
        found = self.found.get(id)
        return found.rollout if found else None

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        """The records of all the thread's files, the oldest file's first."""
        from amux.readers.codex import rollout  # noqa: PLC0415

        read = [rollout.raw(path) for path in sorted((*ref.files, ref.path))]
        if len(read) == 1:
            return read[0]
        return [record for found in read for record in (found if isinstance(found, list) else [found])]

    def start_command(self, prompt: str, model: str | None) -> list[str] | None:
        return [self.program, *(("-m", model) if model else ()), prompt]

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        return self.command("resume", session, model)

    def fork_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        return self.command("fork", session, model)

    def command(self, verb: str, session: SessionSummary, model: str | None) -> list[str] | None:
        # Files without a version are older than resuming; an id that begins with a dash would be an option.
        if not session.agent_version or session.session_id.startswith("-"):
            return None
        return [self.program, verb, *(("-m", model) if model else ()), session.session_id]


READER = CodexReader
