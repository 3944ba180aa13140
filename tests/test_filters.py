"""Filters: whatever narrows a list narrows a count and every kind of search alike."""

import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from amux import tags
from amux.catalog import Catalog
from amux.manager import SessionManager
from amux.model import Message, Session, SessionSummary
from amux.money import Prices
from amux.query import Query
from amux.readers._base import Host, Reader, SessionRef, session
from amux.runs import lay_over

HOMES = (
    "claude/fork",
    "claude/subagent",
    "claude/other-cwd",
    "codex/fork",
    "codex/archived-and-killed",
    "gemini/fork",
    "hermes/branch-undo",
    "pi/tree-branches",
)
EVERYTHING = Query(subagents=True)
Choice = tuple[Query, Callable[[SessionSummary], bool]]
"""A filter, and which sessions it should leave."""


@pytest.fixture(scope="module")
def home(corpus, tmp_path_factory) -> Path:
    """One home of several agents, with forks, sub-agents and archived sessions."""
    merged = tmp_path_factory.mktemp("filters") / "home"
    for scenario in corpus.scenarios():
        if f"{scenario.parent.name}/{scenario.name}" in HOMES:
            shutil.copytree(scenario / "home", merged, symlinks=True, dirs_exist_ok=True)
    return merged


@pytest.fixture
def manager(home) -> SessionManager:
    return SessionManager(Host(home, {}), cache=False)


def middle(manager: SessionManager) -> SessionSummary:
    """The session before and after which about as many were created."""
    found = sorted(manager.list(), key=lambda one: one.created_at)
    return found[len(found) // 2]


def inside(one: SessionSummary, directory: str) -> bool:
    return one.cwd is not None and (one.cwd == directory or one.cwd.startswith(f"{directory}/"))


def since(one: SessionSummary) -> Choice:
    return Query(since=one.created_at), lambda other: other.created_at >= one.created_at


def until(one: SessionSummary) -> Choice:
    return Query(until=one.created_at), lambda other: other.created_at < one.created_at


def agents(one: SessionSummary) -> Choice:
    return Query(agents=(one.agent,)), lambda other: other.agent == one.agent


def model(one: SessionSummary) -> Choice:
    part = (one.model or "")[:5]
    return Query(model=part), lambda other: any(part in name for name in other.models)


def directories(one: SessionSummary) -> Choice:
    return Query(directories=(str(one.cwd),)), lambda other: inside(other, str(one.cwd))


def ids(one: SessionSummary) -> Choice:
    return Query(ids=(one.session_id,)), lambda other: other.session_id == one.session_id


def archived(_: SessionSummary) -> Choice:
    return Query(archived=False), lambda other: not other.archived


def tagged(one: SessionSummary) -> Choice:
    return Query(tags=("keep",)), lambda other: other.session_id == one.session_id


@pytest.mark.parametrize("choose", [since, until, agents, model, directories, ids, archived, tagged])
def test_a_filter_means_the_same_everywhere(home, manager, choose):
    one = middle(manager)
    if choose is tagged:
        tags.note(tags.Target(agent=one.agent, session_id=one.session_id), ("keep",))
        manager = SessionManager(Host(home, {}), cache=False)
    query, fits = choose(one)
    everything = manager.list(EVERYTHING)
    wanted = {other.unified_id for other in everything if other.kind == "main" and fits(other)}
    assert wanted
    assert len(wanted) < sum(other.kind == "main" for other in everything)

    assert main_ids(manager.list(query)) == wanted
    assert manager.count(query) == len(wanted)
    for text, regex in (("the", False), (r"\w", True)):
        found = manager.search(text, Query(), regex=regex)
        assert main_ids(manager.search(text, query, regex=regex)) == main_ids(found) & wanted
    assert main_ids(found) & wanted


def main_ids(found: Iterable[SessionSummary]) -> set[str]:
    return {one.unified_id for one in found if one.kind == "main"}


def test_what_a_session_cost_is_its_place_also_for_subagents(manager):
    found = manager.list(Query(subagents=True, sort="cost"))
    costs = [one.cost.total_usd if one.cost and one.cost.total_usd is not None else 0 for one in found]

    assert any(one.kind == "subagent" for one in found)
    assert costs == sorted(costs, reverse=True)


def made(id: str, kind: str, parent: str | None) -> Session:
    said = [Message("user", f"Begin {id}", datetime(2026, 11, 18, tzinfo=UTC))]
    return session("claude", id, said, path=f"/{id}.jsonl", kind=kind, parent_id=parent)


def test_a_subagent_of_a_subagent_belongs_to_the_main_session():
    """Also where that has no session of its own left."""
    told = (
        made("main", "main", None),
        made("child", "subagent", "main"),
        made("grandchild", "subagent", "child"),
        made("orphan", "subagent", "gone"),
        made("of an orphan", "subagent", "orphan"),
    )

    class Family(Reader):
        def roots(self):
            return [Path("/nowhere")]

        def refs(self):
            return [SessionRef(one.session_id, one.path, "1") for one in told]

        def read(self, ref):
            return [one for one in told if one.session_id == ref.key]

    catalog = Catalog.in_memory(Prices(None))
    catalog.refresh([Family("claude", Host(Path("/nowhere"), {}))])
    lay_over(catalog.db, catalog.scopes, [], {})
    parents = {one.session_id: one.parent_id for one in catalog.sessions(EVERYTHING)}

    assert parents == {
        "main": None,
        "child": "main",
        "grandchild": "main",
        "orphan": "gone",
        "of an orphan": "gone",
    }
