"""Claude Code.

The root is $CLAUDE_CONFIG_DIR (one path; a comma-separated list is taken too), else ~/.claude; 1.0.30 alone used
$XDG_CONFIG_HOME/claude. Up to 0.2.74 nothing was kept; about 0.2.96 kept one SQLite file, `__store.db`; since 0.2.109
a session is `projects/<cwd with everything but letters and digits as "-">/<uuid>.jsonl`. That directory name cannot be
turned back into a path: the records have the cwd.

Sub-agents are inline side chains up to 2.0.0, `agent-<hex>.jsonl` beside the sessions up to 2.1.0, and since 2.1.20
`<session>/subagents/**/agent-<hex>.jsonl`. Beside them lie `<session>/tool-results/*.txt` (output too big for its line) and
`<session>/custom-title.json`. No sessions: `history.jsonl`, `todos/`, `sessions/`, `sessions-index.json` (stale),
`journal.jsonl`, zero-byte files and files of nothing but `summary` lines.
"""

import os
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from amux.errors import UnreadableSession
from amux.model import Json, Message, Session, SessionSummary
from amux.readers._base import Reader, SessionRef, broken_ref, entries, file_ref
from amux.readers._json import document, list_at, records

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
STORE = "__store.db"


class ClaudeReader(Reader):
    title = "Claude Code"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    fork_since = "1.0.128"

    def roots(self) -> Sequence[Path]:
        if moved := self.host.env.get("CLAUDE_CONFIG_DIR"):
            return [self.host.expand(path.strip()) for path in moved.split(",") if path.strip()]
        return [self.host.home / ".claude", self.host.config_home / "claude"]

    def refs(self) -> Iterator[SessionRef]:
        # The same session can be met twice, through a linked directory or a copied file: the longer one has it all.
        found: dict[str, SessionRef] = {}
        for ref in self.all_refs():
            if ref.key not in found or found[ref.key].size < ref.size:
                found[ref.key] = ref
        yield from found.values()

    def all_refs(self) -> Iterator[SessionRef]:
        for root in self.roots():
            for project in entries(root / "projects"):
                if os.path.isdir(project.path):
                    yield from project_refs(project.path)
            if os.path.isfile(root / STORE):
                try:
                    yield from old_store().refs(str(root / STORE))
                except UnreadableSession as error:
                    yield broken_ref(error)

    def read(self, ref: SessionRef) -> Sequence[Session]:
        from amux.readers.claude import transcript  # noqa: PLC0415 - a list of unchanged sessions does without

        if ref.path.endswith(STORE):
            return list(old_store().read(self.agent, ref))
        return transcript.sessions(self.agent, ref)

    def message_at(self, ref: SessionRef, offset: int) -> Message | None:
        from amux.readers.claude import transcript  # noqa: PLC0415

        return transcript.message_at(ref.path, offset)

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        if ref.path.endswith(STORE):
            return old_store().raw(ref)
        return list(records(ref.path))

    def ids_in(self, path: Path) -> list[str]:
        """As always; and the agentloop.json that programs on the Claude Agent SDK keep in their working directory."""
        loop = document(str(path)) if os.path.isfile(path) else None
        if isinstance(loop, dict):
            return [id for id in list_at(loop, "session_ids") if isinstance(id, str)]
        return super().ids_in(path)

    def start_command(self, prompt: str, model: str | None) -> list[str] | None:
        return [self.program, *(("--model", model) if model else ()), prompt]

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        # A sub-agent is no session to the program; 0.2.96 could only go on with the latest: --continue.
        if session.kind != "main" or (session.path or "").endswith(STORE):
            return None
        return [self.program, *(("--model", model) if model else ()), "--resume", session.session_id]

    def fork_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        resume = self.resume_command(session, model)
        return [*resume, "--fork-session"] if resume else None


def old_store() -> ModuleType:
    """The reader of `__store.db`: few have one, so nobody else loads it."""
    return import_module("amux.readers.claude.store")


def project_refs(project: str) -> Iterator[SessionRef]:
    """The sessions of one project directory and their sub-agents, by names alone."""
    found = list(entries(project))
    beside = {entry.name for entry in found if UUID.fullmatch(entry.name) and os.path.isdir(entry.path)}
    for entry in found:
        stem = entry.name.removesuffix(".jsonl")
        ref = None
        if stem == entry.name:
            continue
        if UUID.fullmatch(stem):
            ref = file_ref(stem, entry.path, *(companions(f"{project}/{stem}") if stem in beside else ()))
        elif stem.startswith("agent-"):
            ref = file_ref(stem, entry.path)
        if ref and ref.size:
            yield ref
    for session_id in beside:
        yield from subagent_refs(f"{project}/{session_id}/subagents", session_id)


def companions(directory: str) -> list[str]:
    """What reading a session opens besides its transcript."""
    found = [f"{directory}/custom-title.json"]
    found += [entry.path for entry in entries(f"{directory}/tool-results") if os.path.isfile(entry.path)]
    return [path for path in found if os.path.isfile(path)]


def subagent_refs(directory: str, session_id: str) -> Iterator[SessionRef]:
    for entry in entries(directory):
        if entry.is_dir(follow_symlinks=False):
            yield from subagent_refs(entry.path, session_id)
        elif entry.name.startswith("agent-") and entry.name.endswith(".jsonl"):
            stem = entry.name.removesuffix(".jsonl")
            ref = file_ref(f"{session_id}/{stem}", entry.path, f"{directory}/{stem}.meta.json")
            if ref and ref.size:
                yield ref


READER = ClaudeReader
