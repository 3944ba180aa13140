"""The sample home that comes with the package: made by tests/tools/make_demo.py, read without a fault."""

import json
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

import amux
from amux.manager import SessionManager
from amux.pricing import PriceTable
from amux.query import Query
from amux.readers._base import Host

DEMO = Path(amux.__file__).parent / "demo"
MAKER = Path(__file__).parent / "tools" / "make_demo.py"
AMUX = str(Path(sys.executable).with_name("amux"))
"""The command as installed beside this Python."""


@pytest.fixture
def demo() -> SessionManager:
    return SessionManager(Host.current(DEMO), cache=False)


def contents(home: Path) -> dict[str, bytes]:
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def by_title(demo: SessionManager) -> dict[str, amux.model.SessionSummary]:
    return {one.title: one for one in demo.list(Query(subagents=True))}


def test_it_is_what_the_script_makes(tmp_path):
    """Into a directory with an old file in it, too: what no story tells any more goes."""
    home = tmp_path / "demo"
    home.mkdir()
    (home / "old.jsonl").touch()

    subprocess.run([sys.executable, str(MAKER), str(home)], check=True)

    assert contents(home) == contents(DEMO)


def test_it_is_small_text_that_names_nobody():
    files = contents(DEMO)
    texts = [content.decode() for content in files.values()]

    assert sum(map(len, files.values())) < 250_000
    assert not any("\0" in text for text in texts)
    assert not any(re.search(r"\w@[\w.-]+\.(com|de|io|net|org)\b", text) for text in texts)


def test_every_session_is_read(demo):
    found = demo.list()

    assert not demo.skipped
    assert Counter(one.agent for one in found) == {
        "claude": 6,
        "codex": 3,
        "copilot": 1,
        "droid": 1,
        "gemini": 2,
        "omp": 1,
        "opencode": 1,
        "pi": 2,
    }
    assert {one.cwd for one in found} == {f"/home/dev/work/{name}" for name in ("shop", "blog", "ops")}


def test_every_prompt_got_an_answer_and_every_call_too(demo):
    for one in demo.list(Query(subagents=True)):
        messages = demo.get(one.agent, one.session_id).messages
        calls = [call for message in messages for call in message.tool_calls]

        assert messages[0].role == "user"
        assert calls
        assert all(call.output is not None for call in calls)
        assert one.turn_count == sum(message.role == "user" for message in messages)


def test_times_are_those_of_the_stories(demo):
    """Of the files they would be those of the installation."""
    found = demo.list()

    assert found[0].updated_at < datetime(2026, 11, 18, tzinfo=UTC)
    assert found[-1].created_at > datetime(2026, 11, 4, tzinfo=UTC)
    assert all(one.created_at < one.updated_at for one in found)


def test_forks_and_sub_agents_know_where_they_come_from(demo):
    sessions = by_title(demo)
    agent = sessions["Find iteration over sets"]

    assert (
        sessions["Work through a queue instead"].forked_from == sessions["Make the webhook retry idempotent"].session_id
    )
    assert sessions["Trigram index instead"].forked_from == sessions["Order search: 1.9 s to 38 ms"].session_id
    assert (agent.kind, agent.parent_id) == ("subagent", sessions["Flaky test_cart_total"].session_id)
    assert sum(one.forked_from is not None for one in sessions.values()) == 2
    assert sum(one.kind == "subagent" for one in sessions.values()) == 1


def test_a_fork_shows_what_it_inherited(demo):
    fork = by_title(demo)["Trigram index instead"]
    prompts = [one for one in demo.get("codex", fork.session_id).messages if one.role == "user"]

    assert [(one.content.partition(" ")[0], one.inherited) for one in prompts] == [("The", True), ("Try", False)]


def test_what_can_happen_in_a_session_is_there(demo):
    sessions = by_title(demo)
    events = {
        title: {message.event for message in demo.get(one.agent, one.session_id).messages}
        for title, one in sessions.items()
    }
    leak = demo.get("pi", sessions["Memory leak in the image worker"].session_id)

    assert "compaction" in events["Postgres 14 to 17 with a minute of downtime"]
    assert "branch" in events["Memory leak in the image worker"]
    assert not any(message.content == "Use a cache with a limit then" for message in leak.messages)
    assert sessions["Shrink the shop's Docker image"].turn_count == 3


def test_a_search_finds_the_session_about_it(demo):
    best, *others = demo.search("webhook retry")

    assert best.title == "Make the webhook retry idempotent"
    assert {one.agent for one in others} == {"claude", "droid"}


def test_every_call_has_a_price(demo):
    prices = PriceTable.load()
    report = demo.total_cost()

    assert all(prices.find(model) for one in demo.list(Query(subagents=True)) for model in one.models)
    assert not report.unpriced
    assert 2 < report.total_usd < 5
    assert 0 < report.recorded_usd < report.estimated_usd
    assert report.session_count == len(demo.list())


def test_the_command_shows_it(demo, script_runner):
    run = script_runner.run([AMUX, "--demo", "sessions", "list", "--json"])

    assert run.stderr == ""
    assert [one["sessionId"] for one in json.loads(run.stdout)] == [one.session_id for one in demo.list()]
