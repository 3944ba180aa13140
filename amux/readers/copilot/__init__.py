"""GitHub Copilot CLI (`copilot`; the older `gh copilot` and the chats of editors are other products).

The root is $COPILOT_HOME, else ~/.copilot; up to about 0.0.369 $XDG_STATE_HOME moved it. The first previews kept one
document per session, `history-session-state/session_<id>_<milliseconds>.json`; about 0.0.354 it became
`session-state/<id>.jsonl`; since 0.0.399 at the latest a session is the directory `session-state/<id>/` with
`events.jsonl` and `workspace.yaml`, whose `updated_at` is stale. A flat file is moved into its directory when resumed, a
document is taken over whole and may stay where it was. Sub-agents have no file: their events stand among the session's.

Beside them lie `session-store.db` (an index; it counts calls since 1.0.71), `session.db` (the model's own tables),
checkpoints, `inuse.<pid>.lock` (also left by a kill), `.session-operation-locks/`, and `config.json`, which holds tokens
and is not read. A directory without events.jsonl is a start without login or an id that a resume made: no session.
Older descriptions name `~/.config/github-copilot/sessions/<id>.json`; no version examined writes there, but documents
found there are read as far as they can be understood.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from amux.model import Json, Session, SessionSummary
from amux.readers._base import Host, Reader, SessionRef, entries, file_ref, stamp
from amux.readers._json import document
from amux.readers.copilot.store import Stores

STATE = "session-state"
HISTORY = "history-session-state"
INDEX = "session-store.db"
DOCUMENTS = ("github-copilot", "sessions")


class CopilotReader(Reader):
    title = "GitHub Copilot CLI"
    program = "copilot"
    install = "npm install -g @github/copilot"
    fork_hint = "copilot forks only from within: resume the session and type /fork"

    def __init__(self, agent: str, host: Host) -> None:
        super().__init__(agent, host)
        self.stores = Stores(self.opened)

    def roots(self) -> Sequence[Path]:
        found = [self.host.directory("COPILOT_HOME", ".copilot")]
        if moved := self.host.env.get("XDG_STATE_HOME"):
            found.append(self.host.expand(moved) / ".copilot")
        return [*dict.fromkeys(found), self.host.config_home.joinpath(*DOCUMENTS)]

    def refs(self) -> Iterator[SessionRef]:
        found: dict[str, SessionRef] = {}
        *homes, documents = self.roots()
        for home in homes:
            for ref in self.state_refs(home):
                found.setdefault(ref.key, ref)
        for directory in (*(home / HISTORY for home in homes), documents):
            for ref in document_refs(directory):
                found.setdefault(ref.key, ref)
        yield from found.values()

    def state_refs(self, home: Path) -> Iterator[SessionRef]:
        """The sessions kept as events, by names alone; one that was moved into its directory comes before its flat file."""
        index = str(home / INDEX)
        listed = list(named(home / STATE))
        directories = [(name, f"{path}/events.jsonl") for name, path in listed]
        flat = [(name.removesuffix(".jsonl"), path) for name, path in listed if name.endswith(".jsonl")]
        versions = self.stores.versions(index) if listed else {}
        for key, path in (*directories, *flat):
            ref = file_ref(key, path, f"{home}/{STATE}/{key}/workspace.yaml")
            if ref and holds_something(path):
                # The index changes with every session; what it says of this one is what counts.
                fingerprint = f"{ref.fingerprint}|{versions.get(key, '')}"
                yield ref._replace(fingerprint=fingerprint, files=(*ref.files, index))

    def read(self, ref: SessionRef) -> Sequence[Session]:
        from amux.readers.copilot import legacy, transcript  # noqa: PLC0415 - a list of unchanged sessions does without

        if ref.path.endswith(".json"):
            return legacy.sessions(self.agent, ref)
        workspace, index = ref.files
        state = os.path.dirname(os.path.dirname(workspace))
        return transcript.sessions(
            self.agent,
            ref,
            rows=lambda session_id: self.stores.calls(index, session_id),
            kept=lambda session_id: holds_something(f"{state}/{session_id}/events.jsonl"),
        )

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        from amux.readers.copilot import events  # noqa: PLC0415

        return document(ref.path) if ref.path.endswith(".json") else list(events.records(ref.path))

    def start_command(self, prompt: str, model: str | None) -> list[str] | None:
        return [self.program, *(("--model", model) if model else ()), "--interactive", prompt]

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        if session.kind != "main" or os.path.dirname(session.path or "") == str(self.roots()[-1]):
            return None  # a sub-agent has no session of its own, and no version of the program opens those documents
        # With a space the id would be taken for a prompt: the value of --resume is optional.
        return [self.program, *(("--model", model) if model else ()), f"--resume={session.session_id}"]


def named(directory: Path) -> Iterator[tuple[str, str]]:
    """Name and path of what may be a session; a name that is no text cannot be an id."""
    for entry in entries(directory):
        if entry.name.isprintable() and not entry.name.startswith("."):
            yield entry.name, entry.path


def holds_something(path: str) -> bool:
    found = stamp(path)
    return found is not None and found[1] > 0


def document_refs(directory: Path) -> Iterator[SessionRef]:
    """Sessions of one document each; of several of one session the newest."""
    newest: dict[str, tuple[int, str]] = {}
    for name, path in named(directory):
        if name.endswith(".json"):
            from amux.readers.copilot import legacy  # noqa: PLC0415

            key, number = legacy.identity(name)
            newest[key] = max((number, path), newest.get(key, (-1, "")))
    for key, (_, path) in newest.items():
        ref = file_ref(key, path)
        if ref and ref.size:
            yield ref


READER = CopilotReader
