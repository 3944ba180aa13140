"""From a thread's history to its session."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from amux.errors import UnreadableSession
from amux.model import Charge, Json, Message, Session
from amux.readers import _base
from amux.readers._base import SessionRef
from amux.readers._json import Record, at, text_at, when
from amux.readers.codex import rollout
from amux.readers.codex.index import Known
from amux.readers.codex.store import Rollout
from amux.readers.codex.thread import Find, Part, Thread, Told
from amux.readers.codex.usage import Counted

COUNTING = frozenset({rollout.EVENT, "turn_context", "token_usage_record"})
"""Lines that only versions write which count tokens."""
FIRST = datetime.min.replace(tzinfo=UTC)


def sessions(agent: str, ref: SessionRef, own: Sequence[Rollout], known: Known, find: Find) -> list[Session]:
    """The session of a thread; none when nothing was said. Raises UnreadableSession when no file of it can be read."""
    parts = sorted(readable(own), key=lambda part: (part.created or FIRST, part.rollout.id))
    active = next((part for part in parts if part.rollout.name == known.active), parts[-1])
    thread = Thread(parts, ref.path, find)
    told = thread.told(active)
    messages, places = told.conversation.messages()
    calls = {call.key: call for call in told.calls}
    for part in parts:
        if part is not active:
            # What was taken back stays in the thread's older files: it was paid for.
            calls = {call.key: call for call in thread.told(part).calls} | calls
    charges = [charge(call, active, places) for call in calls.values()]
    return [session(agent, ref, parts, told, messages, charges, known)] if messages or charges else []


def readable(own: Iterable[Rollout]) -> list[Part]:
    parts: list[Part] = []
    failed: UnreadableSession | None = None
    for one in own:
        try:
            parts.append(Part.read(one))
        except UnreadableSession as error:
            failed = failed or error
    if failed and not parts:
        raise failed
    return parts


def charge(call: Counted, active: Part, places: dict[int, int]) -> Charge:
    return Charge(
        key=call.key,
        usage=call.counts.usage(),
        at=call.at,
        model=call.model,
        provider=text_at(active.header, "model_provider"),
        claim=call.claim,
        message=places.get(id(call.answer)),
    )


def session(
    agent: str,
    ref: SessionRef,
    parts: Sequence[Part],
    told: Told,
    messages: Sequence[Message],
    charges: Sequence[Charge],
    known: Known,
) -> Session:
    first, active = parts[0], told.parts[-1]
    header, id = first.header, first.thread
    times = [line.time for part in parts for line in part.lines if line.time]
    subagent = is_subagent(header)
    return _base.session(
        agent,
        id,
        messages,
        path=active.rollout.path,
        title=known.name or (first_own_prompt(messages) if subagent else None),
        charges=charges,
        created_at=first.created,
        updated_at=when(max(times, default=None)),
        began=when(times[0]) if times else first.created,
        model=told.conversation.model,
        archived=active.rollout.archived or known.archived,
        kind="subagent" if subagent else "main",
        parent_id=spawned_by(header, id, known) if subagent else None,
        forked_from=forked_from(parts),
        based_on=tuple(sorted(bases(told, parts) - {ref.key})),
        usage_recorded=usage_recorded(parts, messages, charges),
        cwd=text_at(header, "cwd") or first_cwd(parts) or told.conversation.cwd,
        git_branch=text_at(header, "git", "branch"),
        git_commit=text_at(header, "git", "commit_hash"),
        agent_version=text_at(active.header, "cli_version"),
        mode=mode(told.parts),
    )


def first_own_prompt(messages: Iterable[Message]) -> str | None:
    """What a sub-agent was asked, after the conversation of its parent that it may have been given."""
    return next((one.content for one in messages if one.role == "user" and not one.inherited), None)


def first_cwd(parts: Iterable[Part]) -> str | None:
    contexts = (line.payload for part in parts for line in part.lines if line.kind == "turn_context")
    return next((cwd for context in contexts if (cwd := text_at(context, "cwd"))), None)


def usage_recorded(parts: Iterable[Part], messages: Iterable[Message], charges: Sequence[Charge]) -> bool:
    """Whether no charge means no use. Answers without one were killed before they were counted, or never are."""
    counting = any(line.kind in COUNTING for part in parts for line in part.lines)
    answers = any(one.role == "assistant" and not one.inherited for one in messages)
    return counting and (bool(charges) or not answers)


# Family


def is_subagent(header: Record) -> bool:
    """`source` is a word for threads of a person, an object for those of an agent."""
    return at(header, "source", "subagent") is not None or header.get("thread_source") == "subagent"


def spawned_by(header: Record, id: str, known: Known) -> str | None:
    """The main thread a sub-agent belongs to, where its header names that one, else the thread that spawned it."""
    main = text_at(header, "session_id")
    return (
        (main if main != id else None)
        or text_at(header, "parent_thread_id")
        or text_at(header, "source", "subagent", "thread_spawn", "parent_thread_id")
        or known.parent
    )


def forked_from(parts: Sequence[Part]) -> str | None:
    """The nearest ancestor. Versions before `forked_from_id` leave only the parent's header after their own."""
    named = (text_at(part.header, "forked_from_id") for part in parts)
    return next((id for id in named if id), None) or next(iter(parts[0].ancestors), None)


def bases(told: Told, parts: Sequence[Part]) -> set[str]:
    """The threads whose rollouts the session shows, or would if they were there."""
    if not any(part.base for part in parts):
        return set()
    missing = {told.missing, forked_from(parts)} if told.missing else set()
    return {part.rollout.thread for part in told.parts} | {id for id in missing if id}


# Mode


def mode(parts: Sequence[Part]) -> str | None:
    """What the last turn was allowed to do, as "approval never, sandbox danger-full-access"."""
    contexts = (
        line.payload for part in reversed(parts) for line in reversed(part.lines) if line.kind == "turn_context"
    )
    context = next(contexts, {})
    named = {"approval": context.get("approval_policy"), "sandbox": context.get("sandbox_policy")}
    if not label(named["sandbox"]):
        named["permissions"] = context.get("permission_profile")
    return ", ".join(f"{name} {found}" for name, value in named.items() if (found := label(value))) or None


def label(policy: Json) -> str | None:
    """A policy by its name: a word, or an object that has it as its type, mode (up to 0.58) or only key."""
    if isinstance(policy, dict):
        return text_at(policy, "type") or text_at(policy, "mode") or next(iter(policy), None)
    return text_at(policy)
