"""Droid, Factory's CLI.

`~/.factory/sessions/<cwd with its separators as "-">/<uuid>.jsonl`; FACTORY_HOME_OVERRIDE stands for the home. Up to October
2025, and for sessions without a cwd, files lie in `sessions/` itself; the side questions of /btw lie in `sessions/btw/`.
Beside each is `<uuid>.settings.json` with model, tags and usage; its `.bak` is an older copy. `cache/` and
`sessions-index.json` are indexes that lag. Line 1 is the header, rewritten in place when the title changes. No sessions:
everything else in `~/.factory`, of which `config.json` and `settings.json` hold keys.

Tokens are kept per session only, and no money: credits are none. A fork, and a rewind, which is one too, copies lines with
their ids and counts from zero; its header names the last line copied, by 0.99 only the parent. /compact goes on in a new
file, with a summary in place of the parent's lines, whose usage begins at the parent's. Only these have a `parent`; a
sub-agent has the session that called it, and a fork of a sub-agent keeps that.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from amux.errors import UnreadableSession
from amux.model import Charge, Json, Message, Session, SessionSummary, Usage
from amux.readers import _base
from amux.readers._base import Reader, SessionRef, begins, entries, file_ref, stamp
from amux.readers._json import Record, at, dict_at, document, int_at, list_at, records, text_at, time_at
from amux.readers.droid.transcript import answered, blocks, conversation, hidden, spoken, typed

ID = re.compile(r"\w[\w.-]*", re.ASCII)
PWD = re.compile(r"^% pwd\r?\n(\S.*)$", re.MULTILINE)
UNTITLED = "New Session"
PRIVATE = frozenset({"systemInfo", "systemInfoText"})
"""What a summary tells of the user's machine, the names of its environment variables too."""


class DroidReader(Reader):
    title = "Droid"
    program = "droid"
    install = "npm install -g droid"

    def roots(self) -> Sequence[Path]:
        return [self.host.directory("FACTORY_HOME_OVERRIDE") / ".factory" / "sessions"]

    def refs(self) -> Iterator[SessionRef]:
        # The same session can be met twice, once where it lay in 2025: the longer one has it all.
        found: dict[str, SessionRef] = {}
        for path in transcripts(self.roots()[0]):
            ref = file_ref(stem(path), path, sidecar(path))
            if ref and (ref.key not in found or found[ref.key].size < ref.size):
                found[ref.key] = ref
        yield from found.values()

    def read(self, ref: SessionRef) -> Sequence[Session]:
        log = read_log(ref.path)
        return sessions(self.agent, ref, log, self.parent(ref, log))

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        lines = [{name: value for name, value in line.items() if name not in PRIVATE} for line in records(ref.path)]
        return {"records": lines, "settings": settings_of(ref.path)}

    def start_command(self, prompt: str, model: str | None) -> list[str] | None:
        return None if model else [self.program, prompt]  # only `droid exec` takes a model

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        # There is no option for a model: -m belongs to `droid exec`, which wants a prompt.
        return [self.program, "--resume", session.session_id] if ID.fullmatch(session.session_id) else None

    def fork_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        return [self.program, "--fork", session.session_id] if ID.fullmatch(session.session_id) else None

    def parent(self, ref: SessionRef, log: "Log") -> str | None:
        """The file a session began from, where it must be asked what was taken over; it need not be there."""
        id = text_at(log.header, "parent")
        if not id or not ID.fullmatch(id) or id == ref.key or caller(log) or "forkedAtMessageId" in log.header:
            return None
        root = self.roots()[0]
        beside = [os.path.join(entry.path, f"{id}.jsonl") for entry in entries(root) if os.path.isdir(entry.path)]
        return next((path for path in beside if stamp(path)), str(root / f"{id}.jsonl"))


def transcripts(root: Path) -> Iterator[str]:
    waiting = [str(root)]
    while waiting:
        for entry in entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.name.endswith(".jsonl"):
                yield entry.path


def stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".jsonl")


def sidecar(path: str) -> str:
    return path.removesuffix(".jsonl") + ".settings.json"


def settings_of(path: str) -> Record:
    """What lies beside a transcript; nothing when it is missing or damaged."""
    try:
        return dict_at(document(sidecar(path))) if stamp(sidecar(path)) else {}
    except UnreadableSession:
        return {}


@dataclass(slots=True)
class Log:
    """What one pass over a file finds: its header, its messages and summaries by id; and the settings beside it."""

    settings: Record
    header: Record = field(default_factory=dict)
    lines: dict[str, Record] = field(default_factory=dict)
    times: list[datetime] = field(default_factory=list)


def read_log(path: str) -> Log:
    log = Log(settings_of(path))
    for number, record in enumerate(records(path)):
        match record.get("type"):
            case "session_start":
                log.header = log.header or record
            case "message" | "compaction_state":
                log.lines[text_at(record, "id") or f"line {number}"] = record
        if time := time_at(record, "timestamp"):
            log.times.append(time)
    return log


def sessions(agent: str, ref: SessionRef, log: Log, parent: str | None) -> list[Session]:
    """The session of a file; none of a file with nothing but a header."""
    named = text_at(log.header, "id")
    session_id = named if named and ID.fullmatch(named) else ref.key
    copied = inherited_lines(log, parent)
    own = list(islice(log.lines.values(), copied, None))
    messages = conversation(log.lines, copied)
    charges = charges_of(session_id, log, own, parent)
    if not messages and not charges:
        return []
    times = [time for record in own if (time := time_at(record, "timestamp"))]
    made = _base.session(
        agent,
        session_id,
        messages,
        path=ref.path,
        title=title(log.header, messages),
        charges=charges,
        created_at=min(times, default=max(log.times, default=None)),
        updated_at=max(log.times, default=None),
        began=min(times, default=None),
        model=text_at(log.settings, "model"),
        cwd=cwd(log),
        tags=tags(log.settings),
        archived=bool(log.settings.get("archivedAt")),
        mode=text_at(log.settings, "autonomyMode") or text_at(log.settings, "autonomyLevel"),
        usage_recorded=bool(charges) or (bool(log.settings) and not any(map(answered, own))),
        based_on=(stem(parent),) if parent else (),
        **family(log),
    )
    models = tuple(models_of(own))
    return [replace(made, models=models) if len(models) > 1 else made]


def inherited_lines(log: Log, parent: str | None) -> int:
    """How many lines a fork copied."""
    ids = list(log.lines)
    last = text_at(log.header, "forkedAtMessageId")
    if last in log.lines:
        return ids.index(last) + 1
    if last:  # that line was lost: the one after it still names it
        return next((place for place, id in enumerate(ids) if log.lines[id].get("parentId") == last), 0)
    shared = ids_in(parent) if parent else frozenset()
    return max((place for place, id in enumerate(ids, 1) if id in shared), default=0)


def ids_in(path: str) -> frozenset[str]:
    try:
        return frozenset(read_log(path).lines) if stamp(path) else frozenset()
    except UnreadableSession:
        return frozenset()


def family(log: Log) -> dict[str, Any]:
    if called := caller(log):
        return {"kind": "subagent", "parent_id": called}
    return {"forked_from": text_at(log.header, "parent")}


def caller(log: Log) -> str | None:
    """The session that called a sub-agent; forks took over what says so, and are none."""
    if "forkedAtMessageId" in log.header:
        return None
    tagged = (
        tag for tag in list_at(log.settings, "tags") if at(tag, "name") == "subagent" and "parent" not in log.header
    )
    told = (text_at(tag, "metadata", "callingSessionId") for tag in tagged)
    return text_at(log.header, "callingSessionId") or next(filter(None, told), None)


def tags(settings: Record) -> tuple[str, ...]:
    named = (tag if isinstance(tag, str) else text_at(tag, "name") for tag in list_at(settings, "tags"))
    return tuple(dict.fromkeys(name for name in named if name))


def cwd(log: Log) -> str | None:
    """Where it last ran; before the header had that, the program told the model."""
    first = next(iter(log.lines.values()), {})
    told = (PWD.search(text) for block in blocks(first) if (text := text_at(block, "text")))
    return (
        text_at(log.header, "lastCwd")
        or text_at(log.header, "cwd")
        or next((found[1].strip() for found in told if found), None)
    )


def title(header: Record, messages: Iterable[Message]) -> str | None:
    """What it was named; None where that is only the first prompt, on one line and cut at 150 characters."""
    names = (text_at(header, "sessionTitle"), text_at(header, "title"))
    given = next((name for name in names if name and name != UNTITLED and typed(name)), None)
    if not given or header.get("isSessionTitleManuallySet") is True:
        return given
    first = next((message.content for message in messages if message.role == "user"), "")
    return None if begins(first, given.removesuffix("...")) else given


# Charges


def charges_of(session_id: str, log: Log, own: Sequence[Record], parent: str | None) -> list[Charge]:
    """One charge for all calls of the session; none when its settings do not tell, or tell of nothing."""
    if not isinstance(log.settings.get("tokenUsage"), dict):
        return []
    compacted = next((record for record in log.lines.values() if not hidden(record)), {}).get("summaryText")
    usage = usage_of(log.settings, settings_of(parent) if parent and compacted else {})
    answers = [record for record in own if answered(record)]
    if not answers and not any(
        (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)
    ):
        return []
    times = [time for record in answers if (time := time_at(record, "timestamp"))]
    charge = Charge(
        key=session_id,
        usage=usage,
        at=max(times or log.times, default=None),
        model=next(models_of(own), None) or text_at(log.settings, "model"),
        provider=text_at(log.settings, "providerLock"),
        claim="own",
        calls=len(answers) or 1,
        aggregate=True,
    )
    return [charge]


def models_of(own: Iterable[Record]) -> Iterator[str]:
    """The models that answered, the one with the most answers first."""
    named = Counter(model for record in own if answered(record) and (model := text_at(spoken(record), "modelId")))
    return (model for model, _ in named.most_common())


def usage_of(settings: Record, before: Record) -> Usage:
    """Input without the cache, output with thinking: amux's own meaning. `before` tells where the counting began."""

    def own(name: str) -> int | None:
        total = int_at(settings, "tokenUsage", name)
        return None if total is None else max(0, total - (int_at(before, "tokenUsage", name) or 0))

    return Usage(
        input_tokens=own("inputTokens"),
        output_tokens=own("outputTokens"),
        thinking_tokens=own("thinkingTokens"),
        cached_tokens=own("cacheReadTokens"),
        cache_write_tokens=own("cacheCreationTokens"),
    )


READER = DroidReader
