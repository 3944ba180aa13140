"""From a file of events to its sessions: the session itself, then the sub-agents recorded in it."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from amux.model import Charge, Message, Session
from amux.readers import _base
from amux.readers._base import SessionRef, begins
from amux.readers._json import Record, text_at, time_at
from amux.readers.copilot import events, workspace
from amux.readers.copilot.conversation import Call, Conversation, places_by_time
from amux.readers.copilot.events import Event, Log
from amux.readers.copilot.usage import Rows, Spent, spending

TRUSTED = re.compile(r"Folder (.+) has been added to trusted folders")
ELLIPSES = ("...", "…")


@dataclass(slots=True)
class Part:
    """What one speaker's events come to: the session's own or a sub-agent's."""

    conversation: Conversation
    events: list[Event] = field(default_factory=list)
    last: int = 0
    inherited: int = 0

    def messages(self) -> list[Message]:
        found = self.conversation.messages()
        return [*_base.inherited(found[: self.inherited]), *found[self.inherited :]]

    def times(self) -> list[datetime]:
        return [event.time for event in self.events if event.time]


def sessions(agent: str, ref: SessionRef, rows: Rows, kept: Callable[[str], bool]) -> list[Session]:
    """The sessions of a file; none when nobody spoke. `kept` says which other sessions the store has."""
    log = events.log(ref.path, ref.key)
    parts = parts_of(log)
    # What a fork copied of sub-agents is theirs who have the original, as long as they are there.
    listed = {name: part for name, part in parts.items() if name and not any(map(kept, log.holders(part.last)))}
    charges = charges_of(log, parts, listed, spending(log, rows, kept))
    main = main_session(agent, ref, log, parts[None], charges[None])
    if not main.charges and not any(message.role in ("user", "assistant") for message in main.messages):
        return []
    started_by = {name: call for call, name in log.callers.items()}
    calls = {id: call for part in parts.values() for id, call in part.conversation.calls.items()}
    subagents = (
        subagent_session(main, name, part, calls.get(started_by.get(name, "")), charges.get(name, []))
        for name, part in listed.items()
    )
    return [main, *(one for one in subagents if one.messages or one.charges)]


def parts_of(log: Log) -> dict[str | None, Part]:
    gone = events.rewound(log)
    found: dict[str | None, Part] = {None: Part(Conversation())}
    for position, event in enumerate(log.events):
        if event.agent not in found:
            found[event.agent] = Part(Conversation(subagent=True))
        part = found[event.agent]
        part.events.append(event)
        part.last = position
        if position not in gone:
            part.conversation.hear(event)
        if position < log.inherited:
            part.inherited = len(part.conversation.spoken)
    return found


def main_session(agent: str, ref: SessionRef, log: Log, own: Part, charges: Sequence[Charge]) -> Session:
    start = next((event.data for event in own.events if event.kind == "session.start"), {})
    times = own.times()
    messages = own.messages()
    fields = workspace.fields(ref.files[0]) if ref.files else {}
    spawned_by = text_at(start, "detachedFromSpawningParentSessionId")
    began = time_at(start, "startTime") or min(times, default=None)
    return _base.session(
        agent,
        ref.key,
        messages,
        path=ref.path,
        title=title(fields, own.events, messages),
        charges=charges,
        created_at=began,
        updated_at=max((event.time for event in log.events if event.time), default=None),
        began=began,
        model=own.conversation.model,
        kind="subagent" if spawned_by else "main",
        parent_id=spawned_by,
        forked_from=log.forks[-1].parent if log.forks else None,
        based_on=tuple({fork.parent: None for fork in log.forks}),
        usage_recorded=bool(charges) or not any(m.role == "assistant" and not m.inherited for m in messages),
        agent_version=text_at(start, "copilotVersion"),
        channel=fields.get("client_name"),
        mode=mode(own.events),
        **surroundings(own.events, fields),
    )


def subagent_session(main: Session, name: str, own: Part, asked: Call | None, charges: Sequence[Charge]) -> Session:
    times = own.times()
    messages = own.messages()
    prompt = text_at(asked.input, "prompt") if asked else None
    if prompt and not any(message.role == "user" for message in messages):
        # Versions about 1.0.24 record what the sub-agent was asked only in the call that started it.
        messages.insert(0, Message("user", prompt, min(times, default=None), inherited=own.inherited > 0))
        charges = [replace(one, message=None if one.message is None else one.message + 1) for one in charges]
    return _base.session(
        main.agent,
        name,
        messages,
        path=main.path or "",
        title=text_at(asked.input, "description") if asked else None,
        charges=charges,
        created_at=min(times, default=main.created_at),
        updated_at=max(times, default=main.updated_at),
        began=min(times, default=None),
        model=own.conversation.model,
        kind="subagent",
        parent_id=main.session_id,
        usage_recorded=bool(charges),
        agent_version=main.agent_version,
        cwd=main.cwd,
        git_branch=main.git_branch,
        git_commit=main.git_commit,
    )


# What a session says of itself


def title(fields: dict[str, str], found: Sequence[Event], messages: Sequence[Message]) -> str | None:
    """What somebody called it. Unless the user did, `name` and `summary` may be no more than the beginning of a prompt."""
    name = fields.get("name")
    if name and fields.get("user_named", "").lower() == "true":
        return name
    prompts = [message.content for message in messages if message.role == "user"]
    changed = [text_at(event.data, "title") for event in found if event.kind == "session.title_changed"]
    for given in (*reversed(changed), name, fields.get("summary")):
        if given and not any(begins(prompt, uncut(given)) for prompt in prompts):
            return given
    return None


def uncut(given: str) -> str:
    """A title without the dots that say where a prompt was cut."""
    for dots in ELLIPSES:
        given = given.rstrip().removesuffix(dots)
    return given


def surroundings(found: Sequence[Event], fields: dict[str, str]) -> dict[str, Any]:
    """Where it ran: the first cwd (a resume from elsewhere appends to the same file), the latest branch and commit."""
    contexts = list(where(found))
    cwds = [*(text_at(context, "cwd") for context in contexts), fields.get("cwd"), trusted(found)]
    branches = [fields.get("branch"), *(text_at(context, "branch") for context in contexts)]
    commits = [text_at(context, "headCommit") for context in contexts]
    return {
        "cwd": next(filter(None, cwds), None),
        "git_branch": next(filter(None, reversed(branches)), None),
        "git_commit": next(filter(None, reversed(commits)), None),
    }


def where(found: Iterable[Event]) -> Iterator[Record]:
    for event in found:
        match event.kind:
            case "session.start" | "session.resume" if isinstance(context := event.data.get("context"), dict):
                yield context
            case "session.context_changed":
                yield event.data


def trusted(found: Iterable[Event]) -> str | None:
    """The first versions record no cwd, but that its folder was trusted."""
    told = (text_at(event.data, "message") for event in found if event.data.get("infoType") == "folder_trust")
    return next((folder[1] for text in told if text and (folder := TRUSTED.match(text))), None)


def mode(found: Iterable[Event]) -> str | None:
    latest, all_allowed = None, False
    for event in found:
        match event.kind:
            case "session.mode_changed":
                latest = text_at(event.data, "newMode") or latest
            case "session.permissions_changed":
                all_allowed = event.data.get("allowAllPermissions") is True
    return "allow-all" if all_allowed else latest


# Whose calls they were


def charges_of(
    log: Log, parts: dict[str | None, Part], listed: Container[str], spent: Iterable[Spent]
) -> dict[str | None, list[Charge]]:
    """The charges of the session and of each sub-agent listed; those of others are the session's."""
    made: dict[str | None, list[Spent]] = {None: []}
    for one in spent:
        maker = log.callers.get(one.agent or "", one.agent)
        made.setdefault(maker if maker in parts else None, []).append(one)
    found = {maker: list(placed(parts[maker].conversation, theirs)) for maker, theirs in made.items()}
    for maker in [name for name in found if name and name not in listed]:
        found[None] += [replace(charge, message=None) for charge in found.pop(maker)]
    return found


def placed(conversation: Conversation, spent: Sequence[Spent]) -> Iterator[Charge]:
    """The charges, each with the place of its answer and, where the record does not name it, its model."""
    times = [one.charge.at for one in spent if one.timed and one.charge.at]
    by_time = iter(places_by_time(conversation, times))
    for one in spent:
        timed = one.timed and one.charge.at
        place = next(by_time) if timed else conversation.places.get(one.answer or "")
        model = one.charge.model or (conversation.spoken[place].model if place is not None else conversation.model)
        yield replace(one.charge, message=place, model=model)
