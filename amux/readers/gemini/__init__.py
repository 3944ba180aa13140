"""Gemini CLI.

The root is $GEMINI_CLI_HOME/.gemini (since 0.25; the variable names the home), else ~/.gemini, on every system. A
session lies in `tmp/<project>/chats/session-<UTC minute>-<first 8 of its id>`: `.json` up to 0.38, `.jsonl` since 0.39,
with milliseconds for the minute where it was imported. `<project>` is the sha256 of the cwd up to 0.28, then a slug.

One session may be in several files. The first start of a slug version copies the hash directory; resuming a `.json`
writes a `.jsonl` beside it; resuming a `.jsonl` in a later minute leaves a stub of that minute. The id is only inside,
so files are put together by its first 8 characters, and two ids that share these are told apart when they are read.

Sub-agents are `chats/<session>/<id>.jsonl` since 0.37, in 0.40 with an id of six characters. Before, their files lay
among the others with the id of the session that started them, from 0.31 with `kind: "subagent"`. No sessions:
`logs.json`, `checkpoint-*.json`, `logs/`, `checkpoints/`, `tool-outputs/`, `memory/`, `history/`,
`chats/*.unreadable-*` and `*.tmp-*`, and whatever lies beside `tmp/`. `~/.gemini/sessions/<id>.jsonl` is in documents,
no release wrote it; it is read where it is found.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from amux.errors import UnreadableSession
from amux.model import Json, Session, SessionSummary
from amux.readers import _base
from amux.readers._base import Reader, SessionRef
from amux.readers._json import text_at
from amux.readers.gemini.conversation import charges, conversation
from amux.readers.gemini.cwd import directory
from amux.readers.gemini.files import Transcript, contents, session_id, transcript
from amux.readers.gemini.record import IMPORTED, is_import, spoken
from amux.readers.gemini.replay import Log
from amux.readers.gemini.store import EXTENSION, PLAIN, Store


class GeminiReader(Reader):
    title = "Gemini CLI"
    program = "gemini"
    install = "npm install -g @google/gemini-cli"
    resume_since = "0.15"
    fork_since = "0.43"
    bound_to_cwd = True
    listed: Store | None = None

    def roots(self) -> Sequence[Path]:
        return [self.host.directory("GEMINI_CLI_HOME") / ".gemini"]

    def refs(self) -> Sequence[SessionRef]:
        self.listed = None
        return list(self.store.refs())

    @property
    def store(self) -> Store:
        if self.listed is None:
            self.listed = Store(str(self.roots()[0]), str(self.host.home))
        return self.listed

    def read(self, ref: SessionRef) -> Sequence[Session]:
        found = (self.session(ref, *family) for family in families(ref))
        return [session for session in found if session]

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        """The records of each file of the session, by the file's path."""
        return {one.path: contents(one.path) for id, _, same in families(ref) for one in same if id == session_id}

    def session(self, ref: SessionRef, id: str, parent: str | None, files: Sequence[Transcript]) -> Session | None:
        """A session of all its files together; None for a start without a prompt and the stub a resume leaves."""
        log = Log()
        for record in (record for one in files for record in one.records):
            log.add(record)
        told = conversation(log)
        paid = charges(log, told.places)
        if not paid and not any(message.role in ("user", "assistant") for message in told.messages):
            return None
        origin, based_on = self.origin(log, id)
        copied = told.imported if origin else 0
        return _base.session(
            self.agent,
            id,
            [*_base.inherited(told.messages[:copied]), *told.messages[copied:]],
            path=next((one.path for one in reversed(files) if any(map(spoken, one.messages()))), ref.path),
            title=None if parent else log.title,  # of a sub-agent, the summary is its result
            charges=paid,
            created_at=min(log.started, default=None),
            updated_at=max(log.updated, default=None),
            began=min(log.started or log.updated, default=None),
            kind="subagent" if parent else "main",
            parent_id=parent,
            forked_from=origin,
            based_on=based_on,
            cwd=directory(log, self.store.cwds(ref.key, [one.path for one in files])),
            usage_recorded=bool(paid) or not told.places,
        )

    def origin(self, log: Log, id: str) -> tuple[str | None, tuple[str, ...]]:
        """The session an import was made from, None when its file is gone, and the key under which it would be."""
        if not log.imported:
            return None, ()
        recorded = text_at(log.records, log.imported, "content") or ""
        key, path = self.store.named(recorded.removeprefix(IMPORTED).strip())
        try:
            origin = session_id(path) if path else None
        except UnreadableSession:
            origin = None
        return origin if origin != id else None, (key,)

    def start_command(self, prompt: str, model: str | None) -> list[str] | None:
        return [self.program, *(("--model", model) if model else ()), "--prompt-interactive", prompt]

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        if not resumable(session) or session.session_id.startswith("-"):
            return None
        return [self.program, *(("--model", model) if model else ()), "--resume", session.session_id]

    def fork_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        """An import into a new id (since 0.43)."""
        if not resumable(session):
            return None
        return [self.program, *(("--model", model) if model else ()), "--session-file", session.path or ""]


def resumable(session: SessionSummary) -> bool:
    return session.kind == "main" and os.path.basename(os.path.dirname(session.path or "")) == "chats"


def families(ref: SessionRef) -> list[tuple[str, str | None, list[Transcript]]]:
    """The files of a ref by the session they belong to: its id, the session that started a sub-agent, oldest file first."""
    readable = sorted(transcripts(ref), key=age)
    id = next((one.session_id for one in readable if one.session_id), ref.key.split("/")[-1])
    found: dict[tuple[str, str | None], list[Transcript]] = {}
    for one in readable:
        found.setdefault(identity(one, id), []).append(one)
    return [(id, parent, files) for (id, parent), files in found.items()]


def transcripts(ref: SessionRef) -> list[Transcript]:
    """What can be read of a ref's files. Raises UnreadableSession when that is nothing."""
    found, broken = [], []
    for path in (ref.path, *ref.files):
        try:
            found.append(transcript(path))
        except UnreadableSession as error:
            broken.append(error)
    if broken and not any(one.records for one in found):
        raise broken[0]
    return [one for one in found if one.records]


def age(one: Transcript) -> tuple[str, bool, str, str]:
    """Files of a session in the order they were written: a log goes on where a document ended."""
    return one.started, one.path.endswith(".jsonl"), one.updated, one.path


def identity(one: Transcript, id: str) -> tuple[str, str | None]:
    """The id of a file's session, and for a sub-agent the id of the one that started it; `id` where a header is lost."""
    folder, name = os.path.split(one.path)
    folder = os.path.basename(folder)
    if folder not in ("chats", PLAIN):
        return EXTENSION.sub("", name), folder
    id = one.session_id or id
    # An import of a sub-agent's file keeps its kind, but somebody goes on with it.
    if one.kind == "subagent" and not any(map(is_import, one.messages())):
        first = next((text_at(record, "id") or "" for record in one.messages()), "")
        return f"{id}-{first[:8]}", id
    return id, None


READER = GeminiReader
