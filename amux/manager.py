"""SessionManager: the library's face."""

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any, TypeVar

from amux import money, readers, runs, tags
from amux.answers import Skipped
from amux.catalog import Catalog, Report
from amux.errors import AgentNotFound, AmbiguousId, InvalidValue, SessionNotFound, UnreadableSession
from amux.model import Message, Session, SessionSummary
from amux.query import Query
from amux.readers._base import Host, Reader
from amux.tables import Found

if TYPE_CHECKING:
    from amux import cost
    from amux.finding import Hits
    from amux.results.agents import AgentStatus
    from amux.results.costs import CostSummary
    from amux.results.differences import SessionDiff

TOKENS = ("input_tokens", "output_tokens", "thinking_tokens", "cached_tokens", "cache_write_tokens")
CACHE_FAILS = (sqlite3.Error, OSError, ValueError, ArithmeticError, SubprocessError)
"""What a cache can do wrong: refuse, be unreadable, hold nonsense, or leave no room for the processes that fill it."""
SHORTEST_PREFIX = 4
SHORT_ID = 8
LATEST = "latest"
Answer = TypeVar("Answer")


def cache_file() -> Path:
    if named := os.environ.get("AMUX_CACHE_DIR"):
        return Path(named) / "catalog.db"
    from platformdirs import user_cache_path  # noqa: PLC0415 - needed only where the variable does not say

    return user_cache_path("amux", appauthor=False) / "catalog.db"


class SessionManager:
    """The sessions of every agent on a host, as they were when first asked for. Errors are children of AmuxError."""

    def __init__(self, host: Host | None = None, *, cache: bool = True, report: Report | None = None) -> None:
        self.host = host or Host.current()
        self.readers = readers.Readers(self.host)
        self.report = report
        self.prices = money.Prices(user_prices())
        self.catalog = kept_catalog(self.prices) if cache else Catalog.in_memory(self.prices)
        opened = ExitStack()
        opened.callback(self.readers.close)
        opened.callback(self.catalog.close)
        weakref.finalize(self, opened.close)

    # Operations

    def list(self, query: Query | None = None) -> Sequence[SessionSummary]:
        """The sessions a query asks for, newest first unless it says otherwise."""
        wanted = query or Query()
        return self.ask(wanted.agents, lambda catalog: catalog.sessions(wanted))

    def count(self, query: Query) -> int:
        """How many sessions a query asks for, its limit aside."""
        return self.ask(query.agents, lambda catalog: catalog.count(query))

    def get(self, agent: str, session_id: str, *, raw: bool = False, path: str | None = None) -> Session:
        """One whole session. `session_id` may be a unique prefix, or "latest".

        Some agents have one id in two projects: with the `path` of a summary it is the very session of that summary.
        """
        id = session_id if path else self.resolve_native_id(agent, session_id)
        found = self.ask((agent,), lambda catalog: catalog.found(agent, id, path))
        if found is None:
            raise SessionNotFound.named(session_id, agent)
        reader = self.readers[agent]
        session = next((one for one in reader.read(found.ref) if one.session_id == id), None)
        if session is None:
            raise UnreadableSession(found.ref.path, f"session {id} is no longer in it")
        return linked(session, found, self.prices, reader.raw(found.ref, id) if raw else None)

    def search(self, text: str, query: Query | None = None, *, role: str | None = None, regex: bool = False) -> "Hits":
        """The sessions in which every word of the text occurs, best first.

        Where no word matches, the text is looked for as it is in the files; `regex` takes it as a regular expression.
        """
        from amux.finding import Hits, Question, hits  # noqa: PLC0415 - what only a search needs

        wanted = query or Query(limit=50, sort="relevance")
        if any(agent not in readers.names() for agent in wanted.agents):
            return Hits()
        asked = Question(text, wanted, role, regex)
        return self.ask(wanted.agents, lambda catalog: hits(catalog, self.readers, asked))

    def total_cost(
        self, query: Query | None = None, group_by: Sequence[str] = (), report: "cost.Report | None" = None
    ) -> "CostSummary":
        """What the calls a query asks for cost; its dates are those of the calls."""
        from amux import cost  # noqa: PLC0415 - what only a report needs

        wanted = query or Query()
        asked = report or cost.Report(group_by=tuple(group_by))
        return self.ask(wanted.agents, lambda catalog: cost.report(catalog, wanted, asked))

    def export(self, agent: str, session_id: str, form: str = "json", *, raw: bool = False) -> bytes:
        """One session as `amux sessions export` writes it: json, jsonl, markdown or html."""
        from amux.output.export import ENDINGS, chunks  # noqa: PLC0415

        if form not in ENDINGS:
            raise InvalidValue(f"cannot export as {form!r}; the formats are {', '.join(ENDINGS)}")
        return b"".join(chunks(self.get(agent, session_id, raw=raw), form))

    def diff(self, a: Session, b: Session) -> "SessionDiff":
        """Two sessions aligned message by message."""
        from amux.diff import difference  # noqa: PLC0415

        return difference(a, b)

    def relatives(self, agent: str, session_id: str) -> Sequence[SessionSummary]:
        """The forks and the sub-agents of a session."""
        return self.ask((agent,), lambda catalog: catalog.relatives(agent, session_id))

    def charges(self, summary: SessionSummary) -> Sequence[dict[str, Any]]:
        """The calls a session made itself, each once over all sessions, as rows of a data set."""
        rows = self.ask(
            (summary.agent,), lambda catalog: catalog.charges(summary.agent, summary.session_id, summary.path)
        )
        names = ("main_session_id", "at", "model", "provider", "calls", *TOKENS, "usd_recorded", "usd_estimated")
        return [
            {
                "agent": summary.agent,
                "session_id": summary.session_id,
                **dict(zip(names, row, strict=True)),
                "usd_recorded": float(money.usd(row[-2]) or 0) if row[-2] is not None else None,
                "usd_estimated": float(money.usd(row[-1]) or 0) if row[-1] is not None else None,
            }
            for row in rows
        ]

    def resolve_unified_id(self, unified_id: str) -> tuple[str, str]:
        """Agent and whole session id of `<agent>:<id or prefix of it>`."""
        agent, colon, id = unified_id.partition(":")
        if not colon or not agent or not id:
            raise InvalidValue(f"{unified_id!r} is no session id; one looks like claude:fbe2e13d")
        return agent, self.resolve_native_id(agent, id)

    def resolve_native_id(self, agent: str, prefix: str) -> str:
        """The whole id of the session whose id begins so."""
        if prefix == LATEST:
            newest = self.list(Query(agents=(agent,), limit=1))
            if not newest:
                raise SessionNotFound.named(prefix, agent)
            return newest[0].session_id
        found = self.ask((agent,), lambda catalog: catalog.candidates((agent,), prefix))
        if any(id == prefix for _, id in found):
            return prefix
        if found and len(prefix) < SHORTEST_PREFIX:
            raise InvalidValue(
                f"{prefix!r} is too short for the beginning of an id; give {SHORTEST_PREFIX} characters or more"
            )
        if len(found) > 1:
            raise AmbiguousId(prefix, [f"{name}:{id}" for name, id in found])
        if not found:
            if broken := self.catalog.unreadable(agent, prefix):
                raise UnreadableSession(broken.path, broken.reason)
            raise SessionNotFound.named(prefix, agent)
        return found[0][1]

    def short_ids(self, sessions: Iterable[SessionSummary]) -> dict[str, str]:
        """For each unified id, the beginning of the native one that is enough to name it."""
        return {one.unified_id: self.catalog.short_id(one.agent, one.session_id, SHORT_ID) for one in sessions}

    def about(self, agent: str) -> "AgentStatus":
        """Where an agent's sessions were looked for, how many there are, and what can be done with them."""
        from amux.launch import program_path, version_of  # noqa: PLC0415
        from amux.results.agents import AgentStatus  # noqa: PLC0415

        newest = self.list(Query(agents=(agent,), limit=1))
        reader = self.readers[agent]
        program = program_path(reader.program) if reader.program else None
        return AgentStatus(
            agent=agent,
            title=reader.title,
            session_count=self.count(Query(agents=(agent,))),
            unreadable=sum(one.agent == agent for one in self.skipped),
            stores=tuple(str(root) for root in reader.roots()),
            found=tuple(str(root) for root in reader.roots() if os.path.exists(root)),
            newest=newest[0].updated_at if newest else None,
            program=reader.program or None,
            program_version=version_of(program) if program else None,
            installed=program is not None,
            install=reader.install or None,
            can_resume=type(reader).resume_command is not Reader.resume_command,
            can_fork=type(reader).fork_command is not Reader.fork_command,
        )

    @property
    def skipped(self) -> Sequence[Skipped]:
        """What could not be read of the stores asked so far."""
        return self.catalog.skipped()

    # The catalog

    def ask(self, agents: Iterable[str], question: Callable[[Catalog], Answer]) -> Answer:
        """An answer of the catalog, brought up to date for these agents (none: all) before."""
        chosen = tuple(agents) or readers.names()
        for agent in chosen:
            if agent not in readers.names():
                raise AgentNotFound(agent, readers.names())
        try:
            return self.answer(chosen, question)
        except CACHE_FAILS as error:
            # A damaged cache file or a full disk must not cost the answer: the same code runs in memory.
            if self.catalog.path is None:
                raise
            if not isinstance(error, sqlite3.OperationalError | OSError):
                self.catalog.abandon()
            self.catalog = Catalog.in_memory(self.prices)
            return self.answer(chosen, question)

    def answer(self, agents: Sequence[str], question: Callable[[Catalog], Answer]) -> Answer:
        unseen = [agent for agent in agents if agent not in self.catalog.scopes.values()]
        if unseen:
            used = [agent for agent in unseen if not self.catalog.unused(agent, self.host)]
            self.catalog.refresh((self.readers[agent] for agent in used), self.report)
            noted = runs.runs(runs.index_files(self.host.home, working_directory(self.host)))
            runs.lay_over(self.catalog.db, self.catalog.scopes, noted, tags.kept(self.catalog.db, self.catalog.scopes))
        return question(self.catalog)


def working_directory(host: Host) -> Path:
    """Where the user stands; the home when that place is gone."""
    try:
        return Path.cwd()
    except OSError:
        return host.home


def user_prices() -> Path:
    from platformdirs import user_config_path  # noqa: PLC0415

    return user_config_path("amux", appauthor=False) / "prices.toml"


def kept_catalog(prices: money.Prices) -> Catalog:
    """The user's catalog; one in memory where it cannot be kept."""
    try:
        return Catalog.at(cache_file(), prices)
    except (sqlite3.Error, OSError):
        return Catalog.in_memory(prices)


def linked(session: Session, found: Found, prices: money.Prices, raw: object) -> Session:
    """A session as its file has it, with what only the other sessions tell: list and show never disagree."""
    known = found.summary
    return replace(
        session,
        messages=tuple(inherited(with_charges(session, prices), found.inherited)),
        created_at=known.created_at,
        updated_at=known.updated_at,
        forked_from=known.forked_from,
        parent_id=known.parent_id,
        cost=known.cost,
        tags=known.tags,
        raw=raw,
    )


def with_charges(session: Session, prices: money.Prices) -> list[Message]:
    """The messages, each answer with the usage of the call that gave it."""
    messages = list(session.messages)
    for charge in session.charges:
        if charge.message is not None and not charge.aggregate:
            messages[charge.message] = replace(
                messages[charge.message], token_usage=charge.usage, cost=money.record(charge, prices)
            )
    return messages


def inherited(messages: Sequence[Message], count: int) -> Iterable[Message]:
    """The first messages marked as inherited: as many as linking counted, and the tool results that belong to them."""
    while count and count < len(messages) and messages[count].role == "tool":
        count += 1
    for place, message in enumerate(messages):
        yield replace(message, inherited=True) if place < count and not message.inherited else message
