"""Filters: whatever narrows a list narrows a count and every kind of search alike."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from amux import tags
from amux.manager import SessionManager
from amux.model import SessionSummary
from amux.query import Query
from amux.readers._base import Host

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
