"""From openclaw's events to a session: pi's entries, and what openclaw writes differently.

`leaf` makes another entry the active one, and what is appended to it stands on that one's target. Entries with `appendMode:
side` never become active. `reset` starts anew what openclaw itself shows; the entries before it stay on the branch. Types
that openclaw does not know are no part of the branch's end.

A fork, a rewind and a switch to another branch are new sessions that begin with copies, ids, times and usage included. The
header is younger than what was copied. Only some forks' headers name the session they come from; the others' rows do. A
plain rollover names its predecessor in the same column and copies nothing.

Answers of the models `delivery-mirror` and `gateway-injected` were made by openclaw: the first repeat what was said before.
What was spent on compactions is not recorded. Costs are 0 where the configuration has no price for the model.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from amux.model import Attachment, Charge, Message, Session
from amux.readers import _pi
from amux.readers._json import Record, at, dict_at, list_at, text_at
from amux.readers._pi import Conversation, Transcript, time_of
from amux.readers.openclaw import typed
from amux.readers.openclaw.about import About
from amux.readers.openclaw.events import STUB
from amux.readers.openclaw.names import id_in

ACTIVE = frozenset(
    {"message", "thinking_level_change", "model_change", "compaction", "reset", "branch_summary"}
    | {"custom", "custom_message", "label", "session_info", "leaf", None}
)
"""Types of entries that move the branch's end; None is a bare message."""
MARKER = re.compile(r"sqlite:[^:]+:([^:]+):.*", re.DOTALL)
CHECKPOINT = re.compile(r"(.+)\.checkpoint\.[0-9a-f-]{36}\.jsonl")
MIRROR, INJECTED = "delivery-mirror", "gateway-injected"
NOT_TYPED = ("inter_session", "internal_system")


@dataclass
class Log(Transcript):
    """A session's events. `earlier` is the session its store says it came after."""

    earlier: str | None = None

    def __post_init__(self) -> None:
        self.entries = [unbilled(record) for record in self.entries]
        super().__post_init__()

    @cached_property
    def origin(self) -> str | None:
        """The session that copied events come from."""
        if named := text_at(self.header, "parentSession"):
            return linked_id(named)
        opened = self.opened
        times = (time_of(record) for record in self.entries)
        return self.earlier if opened and any(time and time < opened for time in times) else None

    @property
    def link(self) -> str | None:
        return self.origin

    def parent(self, number: int, record: Record, key: str = "parentId") -> int | None:
        found = super().parent(number, record, "targetId" if record.get("type") == "leaf" else key)
        while found is not None and aside(self.entries[found]) and not aside(record):
            found = self.parents[found]
        return found

    def active(self) -> list[int]:
        """Where the entries of the active branch stand."""
        last = (
            number
            for number in reversed(range(len(self.entries)))
            if not aside(self.entries[number]) and moves(self.entries[number])
        )
        found = next(last, None)
        return self.branch(found) if found is not None else []


def aside(record: Record) -> bool:
    return record.get("appendMode") == "side"


def moves(record: Record) -> bool:
    kind = record.get("type")
    return isinstance(kind, str | None) and kind in ACTIVE


def linked_id(recorded: str) -> str:
    """The id of the session that a header names: as the path its file had, or as a place in a database."""
    if marker := MARKER.fullmatch(recorded):
        return marker[1]
    name = re.split(r"[/\\]", recorded)[-1]
    checkpoint = CHECKPOINT.fullmatch(name)
    return id_in(checkpoint[1] if checkpoint else name.removesuffix(".jsonl"))


@dataclass
class Chat(Conversation):
    """The messages of a session; `delegated` when one of its prompts was written for a sub-agent."""

    subagent: bool
    delegated: bool = field(init=False, default=False)

    def told(self, record: Record) -> Iterator[Message]:
        match record.get("type"), record.get("customType"):
            case "reset", _:
                yield Message("system", text_at(record, "reason") or "reset", time_of(record), event="reset")
            case "custom", "openclaw:prompt-error":
                reason = text_at(record, "data", "error") or "error"
                yield Message("system", reason, time_of(record), is_error=True, event="error")
            case _:
                yield from super().told(record)

    def prompt(self, message: Record, record: Record) -> Iterator[Message]:
        for said in super().prompt(message, record):
            found = typed.prompt(said.content)
            self.delegated |= found.delegated
            attachments = (*(media(message) or said.attachments), *found.attachments)
            if found.text or attachments:
                shown = replace(said, content=found.text, attachments=attachments)
                automatic = at(message, "provenance", "kind") in NOT_TYPED and not self.subagent
                yield replace(shown, role="system", event="notification") if automatic else shown

    def note(self, message: Record, record: Record) -> Iterator[Message]:
        if message.get("customType") == "openclaw:turn-aborted":
            yield Message("system", "aborted", time_of(record), event="interrupt")
        else:
            yield from super().note(message, record)

    def answer(self, message: Record, record: Record) -> Iterator[Message]:
        author = written_by_openclaw(message)
        if author == INJECTED:
            yield Message("system", _pi.plain(message.get("content")), time_of(record), event="notification")
        elif author is None:
            yield from super().answer(message, record)


def media(message: Record) -> tuple[Attachment, ...]:
    """The files a channel's message came with, which newer versions keep apart from its text."""
    facts = [one for one in list_at(message, "__openclaw", "media") if isinstance(one, dict)]
    if not facts:
        types = list_at(message, "MediaTypes")
        facts = [
            {"path": path, "contentType": at(types, number)}
            for number, path in enumerate(list_at(message, "MediaPaths"))
        ]
    found = ((text_at(one, "path") or text_at(one, "url"), text_at(one, "contentType")) for one in facts)
    return tuple(typed.attachment(path, media_type) for path, media_type in found if path)


def written_by_openclaw(message: Record) -> str | None:
    """Which of the two kinds of answers that no model gave a message is."""
    if isinstance(message.get("openclawDeliveryMirror"), dict):
        return MIRROR
    model = message.get("model")
    return model if message.get("provider") == "openclaw" and model in (MIRROR, INJECTED) else None


def unbilled(record: Record) -> Record:
    """An entry without the usage of a call that was none."""
    message = dict_at(record, "message")
    return {**record, "message": {**message, "usage": None}} if written_by_openclaw(message) else record


def charges(log: Log, places: dict[int, int]) -> list[Charge]:
    """The calls of a session; those that openclaw had no price for have an unknown cost."""
    return [replace(one, usd=one.usd or None) for one in _pi.charges(log, places)]


def sessions(
    agent: str, session_id: str, path: str, log: Log, about: About, numbers: Iterable[int] | None = None
) -> Sequence[Session]:
    """The session of a log, none when nothing was said; `numbers` are the places of its active entries where known."""
    said = Chat(log, about.subagent).follow(log.active() if numbers is None else numbers)
    calls = charges(log, said.places)
    if not said.messages and not calls:
        return []
    subagent = about.subagent or (said.delegated and about.key is None)
    return [
        _pi.session(
            agent,
            session_id,
            path,
            said,
            calls,
            title=about.title or _pi.session_name(log.entries),
            kind="subagent" if subagent else "main",
            parent_id=about.parent_id,
            forked_from=None if subagent else log.origin,
            archived=about.archived,
            channel=about.channel,
            usage_recorded=not any(map(lost, log.entries)) and _pi.tells_usage(by_models(log.entries)),
        )
    ]


def by_models(entries: Iterable[Record]) -> Iterator[Record]:
    """The entries without the answers that openclaw gave."""
    return (entry for entry in entries if not written_by_openclaw(dict_at(entry, "message")))


def lost(entry: Record) -> bool:
    """Whether an answer is one of which only the stub could be read."""
    return STUB in entry and dict_at(entry, "message").get("role") == "assistant"
