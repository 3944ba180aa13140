"""Money: every call once, to the token and the cent."""

import json
import shutil
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from amux import readers
from amux.cost import Report
from amux.errors import InvalidValue
from amux.manager import SessionManager, user_prices
from amux.output import costs
from amux.output.chart import chart
from amux.output.jsonout import dumps
from amux.query import GROUPS, Query
from amux.readers._base import Host

TOKENS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cached_tokens",
    "cacheWrite": "cache_write_tokens",
}
INDEXES = ("history.jsonl", "projects.json", "session-discovery-index.json", "session_index.jsonl")
"""Files that many sessions share and that hold none of their calls."""


def manager(home: Path, **env: str) -> SessionManager:
    return SessionManager(Host(home, env), cache=False)


@pytest.fixture(scope="module")
def everything(corpus, tmp_path_factory):
    """A home made of every scenario that can stand beside the others, and what the truths say it comes to."""
    home = tmp_path_factory.mktemp("everything")
    total = dict.fromkeys(TOKENS, 0)
    seen: set[str] = set()
    agents: dict[str, int] = {}
    for path in corpus.scenarios():
        truth = json.loads((path / "truth.json").read_text())
        ids = {one["id"] for one in truth["sessions"] if one["id"]}
        taken = False
        for file in (file for file in (path / "home").rglob("*") if file.is_file()):
            there = home / file.relative_to(path / "home")
            taken |= there.exists() and file.name not in INDEXES and there.read_bytes() != file.read_bytes()
        if truth.get("env") or not truth.get("total") or ids & seen or taken:
            continue
        names_only = shutil.ignore_patterns("state_*.sqlite*") if path.parent.name == "codex" else None
        shutil.copytree(path / "home", home, dirs_exist_ok=True, symlinks=True, ignore=names_only)
        seen |= ids
        agents[path.parent.name] = agents.get(path.parent.name, 0) + 1
        for name in TOKENS:
            total[name] += truth["total"][name] or 0
    assert set(agents) == {
        path.parent.name for path in corpus.scenarios() if json.loads((path / "truth.json").read_text()).get("total")
    }
    return home, total


def test_a_home_of_every_agent_comes_to_the_sum_of_the_truths(everything):
    home, total = everything
    found = manager(home).total_cost()

    assert {name: getattr(found, field) for name, field in TOKENS.items()} == total


@pytest.mark.parametrize("group", [name for name in GROUPS if name != "tag"])
def test_every_grouping_adds_up_to_the_total(everything, group):
    sessions = manager(everything[0])
    report = sessions.total_cost(group_by=(group,))
    rows = report.breakdowns.values()

    for field in (*TOKENS.values(), "call_count"):
        assert sum(getattr(row, field) or 0 for row in rows) == getattr(report, field), field
    assert sum(row.total_usd or 0 for row in rows) == report.total_usd


def test_a_tag_counts_under_each_of_its_tags(corpus, tmp_path):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "sdk-agentloop"), tmp_path)
    report = case.manager.total_cost(Query(agents=("claude",)), group_by=("tag",))

    assert set(report.breakdowns) == {"citrus", "(untagged)"}
    assert case.manager.total_cost(Query(agents=("claude",), tags=("citrus",))).call_count == 1


def test_removing_a_forks_parent_loses_and_doubles_nothing(corpus, tmp_path):
    for path in corpus.scenarios():
        truth = json.loads((path / "truth.json").read_text())
        forks = [one for one in truth["sessions"] if one["forkedFrom"]]
        parents = {one["forkedFrom"] for one in forks}
        if not forks or not all(one["usage"] and one["id"] for one in truth["sessions"]):
            continue
        case = corpus.open_case(path, tmp_path / path.parent.name / path.name)
        gone = [file for file in case.home.rglob("*") if file.is_file() and any(id in file.name for id in parents)]
        case.listed()
        held = {one["id"]: {c.key: c.calls for c in session_charges(case, one["id"])} for one in truth["sessions"]}
        if not gone:
            continue  # a database: its rows cannot be taken away like a file
        for file in gone:
            file.unlink()
        left: dict[str, int] = {}
        for id in held.keys() - parents:
            left.update(held[id])
        after = manager(case.home, **case.env).total_cost(Query(agents=(case.agent,)))

        assert after.call_count == sum(left.values()), path.name


def session_charges(case, id: str):
    with readers.open_reader(case.agent, case.manager.host) as reader:
        found = case.manager.catalog.found(case.agent, id)
        return next(one for one in reader.read(found.ref) if one.session_id == id).charges


# Two homes calculated by hand


def claude_home(
    home: Path, *answers: dict, model: str = "claude-sonnet-4-5-20250929", at: str = "2026-01-15T10:00:00.000Z"
) -> Path:
    project = home / ".claude" / "projects" / "-work-shop"
    project.mkdir(parents=True)
    session = "11111111-2222-4333-8444-555555555555"
    lines = [
        {
            "type": "user",
            "uuid": "u0",
            "parentUuid": None,
            "timestamp": at,
            "sessionId": session,
            "cwd": "/work/shop",
            "message": {"role": "user", "content": "go"},
        }
    ]
    for number, usage in enumerate(answers):
        message = {
            "id": f"msg_{number}",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": "ok"}],
            "usage": usage,
        }
        lines.append(
            {
                "type": "assistant",
                "uuid": f"a{number}",
                "parentUuid": lines[-1]["uuid"],
                "timestamp": at,
                "sessionId": session,
                "message": message,
            }
        )
    (project / f"{session}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return home


def test_a_long_context_is_priced_at_its_tier(tmp_path):
    """50,000 fresh at 6, 250,000 cached at 0.60, 1,000 output at 22.50 dollars a million: over 200,000 all of it is dear."""
    home = claude_home(tmp_path, {"input_tokens": 50_000, "cache_read_input_tokens": 250_000, "output_tokens": 1000})

    assert manager(home).total_cost().total_usd == Decimal("0.4725")


def test_one_hour_writes_cost_twice_the_input(tmp_path):
    """1,000 fresh at 3, 20,000 written for an hour at 6, 100 output at 15 dollars a million."""
    hour = {"ephemeral_1h_input_tokens": 20_000, "ephemeral_5m_input_tokens": 0}
    usage = {"input_tokens": 1000, "cache_creation_input_tokens": 20_000, "cache_creation": hour, "output_tokens": 100}

    assert manager(claude_home(tmp_path, usage)).total_cost().total_usd == Decimal("0.003") + Decimal("0.12") + Decimal(
        "0.0015"
    )


# Sources


def opencode_like(tmp_path: Path, cost: float | None) -> Path:
    """A session whose agent recorded what the call cost."""
    home = claude_home(tmp_path, {"input_tokens": 1000, "output_tokens": 100})
    path = next(home.rglob("*.jsonl"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["costUSD"] = cost
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return home


@pytest.mark.parametrize(
    ("mode", "usd", "source"),
    [("auto", "0.5", "native"), ("native", "0.5", "native"), ("estimate", "0.0045", "estimated")],
)
def test_recorded_money_comes_first(tmp_path, mode, usd, source):
    found = manager(opencode_like(tmp_path, 0.5)).total_cost(report=Report(mode=mode))

    assert (found.total_usd, found.source) == (Decimal(usd), source)


@pytest.mark.parametrize(("mode", "usd", "source"), [("auto", "0.0045", "estimated"), ("native", None, None)])
def test_without_recorded_money_it_is_estimated(tmp_path, mode, usd, source):
    found = manager(opencode_like(tmp_path, None)).total_cost(report=Report(mode=mode))

    assert (found.total_usd, found.source) == (Decimal(usd) if usd else None, source)
    assert found.unpriced == ({} if usd else {"claude-sonnet-4-5-20250929": 1100})


def test_an_unknown_model_is_never_free(tmp_path):
    home = claude_home(tmp_path, {"input_tokens": 1000, "output_tokens": 100}, model="mock-model")
    found = manager(home).total_cost(group_by=("agent",))

    assert found.total_usd is None
    assert found.unpriced == {"mock-model": 1100}
    assert "no price known: mock-model (1,100 tokens)" in costs.table(found, ("agent",), "UTC").plain()


def test_a_free_model_costs_nothing_and_is_said_to(tmp_path):
    home = claude_home(tmp_path, {"input_tokens": 1000, "output_tokens": 100}, model="deepseek/deepseek-r1:free")
    found = manager(home).total_cost(group_by=("agent",))

    assert (found.total_usd, found.unpriced, found.free) == (0, {}, ("deepseek/deepseek-r1:free",))
    assert "free: deepseek/deepseek-r1:free" in costs.table(found, ("agent",), "UTC").plain()


@pytest.mark.parametrize("model", ["m" * 10_000, "claude\x1b[31m", "a\nb", "<b>", "=cmd()"])
def test_an_odd_model_id_is_an_unknown_one(tmp_path, model):
    home = claude_home(tmp_path, {"input_tokens": 1000, "output_tokens": 100}, model=model)
    found = manager(home).total_cost(group_by=("model",))

    assert found.unpriced == {model: 1100}
    assert "\x1b" not in costs.table(found, ("model",), "UTC").plain()
    assert "\n=cmd" not in costs.spreadsheet(found)


@pytest.mark.parametrize("count", [-5, 2**53 + 1, 10**30, 1.5, "many", None, True, [1]])
def test_an_absurd_count_is_ignored(tmp_path, count):
    home = claude_home(tmp_path, {"input_tokens": count, "output_tokens": 7}, {"input_tokens": 3, "output_tokens": 1})
    found = manager(home).total_cost()

    assert (found.input_tokens, found.output_tokens) == (3, 8)


def test_money_is_exact(tmp_path):
    home = claude_home(tmp_path, *[{"input_tokens": 1, "output_tokens": 1}] * 3)

    assert manager(home).total_cost().total_usd == Decimal("0.000054")
    assert json.loads(dumps(manager(home).total_cost()))["totalUsd"] == 0.000054


def test_prices_of_the_users_own(tmp_path):
    home = claude_home(tmp_path / "home", {"input_tokens": 1_000_000, "output_tokens": 0}, model="mock-model")
    user_prices().parent.mkdir(parents=True)
    user_prices().write_text("[models.mock-model]\ninput = 2\noutput = 3\n")

    assert SessionManager(Host.current(home)).total_cost().total_usd == 2
    user_prices().write_text("[models.mock-model]\ninput = 20\noutput = 3\n")
    assert SessionManager(Host.current(home)).total_cost().total_usd == 20
    user_prices().write_text("[models.mock-model]\ninput = \n")
    with pytest.raises(InvalidValue, match="line 2"):
        SessionManager(Host.current(home)).total_cost()


# Time


def test_days_are_those_of_the_zone(tmp_path):
    home = claude_home(tmp_path, {"input_tokens": 1, "output_tokens": 1}, at="2026-03-28T23:30:00.000Z")
    by_day = {
        zone: list(manager(home).total_cost(report=Report(group_by=("day",), zone=ZoneInfo(zone))).breakdowns)
        for zone in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")
    }

    assert by_day == {
        "UTC": ["2026-03-28"],
        "Europe/Berlin": ["2026-03-29"],
        "America/New_York": ["2026-03-28"],
        "Asia/Kathmandu": ["2026-03-29"],
    }


@pytest.mark.parametrize(
    ("at", "day"),
    [
        ("2026-03-29T00:59:59Z", "2026-03-29"),
        ("2026-03-29T22:00:00Z", "2026-03-30"),
        ("2026-10-25T22:59:00Z", "2026-10-25"),
        ("2026-10-25T23:00:00Z", "2026-10-26"),
    ],
)
def test_the_clock_may_change_over_night(tmp_path, at, day):
    home = claude_home(tmp_path / "home", {"input_tokens": 1, "output_tokens": 1}, at=at)
    early = claude_home(tmp_path / "early", {"input_tokens": 1, "output_tokens": 1}, at="2026-01-01T12:00:00Z")
    shutil.copy(
        next(early.rglob("*.jsonl")),
        next(home.rglob("*.jsonl")).with_name("21111111-2222-4333-8444-555555555555.jsonl"),
    )
    path = next(home.rglob("2111*.jsonl"))
    path.write_text(path.read_text().replace("msg_0", "msg_early"))
    report = manager(home).total_cost(report=Report(group_by=("day",), zone=ZoneInfo("Europe/Berlin")))

    assert list(report.breakdowns) == ["2026-01-01", day]


def test_dates_cut_between_two_calls(tmp_path):
    """Two calls a minute apart: a date between them, inside a quarter of an hour, parts them."""
    home = claude_home(
        tmp_path,
        {"input_tokens": 1, "output_tokens": 1},
        {"input_tokens": 2, "output_tokens": 1},
        at="2026-01-15T10:01:00.000Z",
    )
    path = next(home.rglob("*.jsonl"))
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace("10:01:00", "10:03:00")
    path.write_text("\n".join(lines) + "\n")
    cut = datetime(2026, 1, 15, 10, 2, tzinfo=UTC)

    assert manager(home).total_cost(Query(since=cut)).input_tokens == 2
    assert manager(home).total_cost(Query(until=cut)).input_tokens == 1
    assert manager(home).total_cost(Query(since=cut.replace(minute=0), until=cut)).input_tokens == 1
    assert manager(home).total_cost(Query(since=cut, until=cut)).input_tokens is None


# The run index


def note_runs(home: Path, *runs: dict) -> Path:
    index = home / ".agent-mux" / "run-index.jsonl"
    index.parent.mkdir(exist_ok=True)
    index.write_text("\n".join([*map(json.dumps, runs), "{broken", '{"v": 2, "runId": "later", "agent": "claude"}']))
    return home


def run(id: str, usd: float | None, **more) -> dict:
    cost = {"cost": {"totalUsd": usd, "inputTokens": 1000, "outputTokens": 100}} if usd is not None else {}
    session = "11111111-2222-4333-8444-555555555555"
    return {
        "v": 1,
        "runId": id,
        "agent": "claude",
        "sessionId": session,
        "timestamp": "2026-01-15T10:00:00Z",
        "tags": ["nightly"],
        **cost,
        **more,
    }


def test_runs_give_tags_and_costs(tmp_path):
    home = note_runs(
        claude_home(tmp_path, {"input_tokens": 1000, "output_tokens": 100}), run("r1", None), run("r1", 0.25)
    )
    sessions = manager(home)
    report = sessions.total_cost(group_by=("tag",))

    assert (report.total_usd, report.source, report.run_count, report.call_count) == (
        Decimal("0.25"),
        "run-index",
        1,
        1,
    )
    assert list(report.breakdowns) == ["nightly"]
    (listed,) = sessions.list(Query(tags=("nightly",)))
    assert (listed.tags, listed.cost.total_usd, listed.cost.source) == (("nightly",), Decimal("0.25"), "run-index")


def test_runs_that_do_not_cover_a_session_leave_its_estimate(tmp_path):
    home = note_runs(claude_home(tmp_path, *[{"input_tokens": 1000, "output_tokens": 100}] * 2), run("r1", 0.25))
    report = manager(home).total_cost()

    assert (report.total_usd, report.source) == (Decimal("0.009"), "estimated")


def test_recorded_money_beats_the_run_index(tmp_path):
    report = manager(note_runs(opencode_like(tmp_path, 0.5), run("r1", 0.25))).total_cost()

    assert (report.total_usd, report.source) == (Decimal("0.5"), "native")


def test_a_run_of_a_session_in_no_store_is_a_charge_of_its_own(tmp_path):
    home = note_runs(
        claude_home(tmp_path, {"input_tokens": 1000, "output_tokens": 100}),
        run("r1", 0.25, sessionId="gone"),
        run("r2", 0.5, sessionId=None),
        run("r3", None, sessionId="gone"),
    )
    report = manager(home).total_cost(group_by=("session",))

    assert report.total_usd == Decimal("0.7545")
    assert report.source == "mixed"
    assert {"claude:gone", "claude:run/r2"} < set(report.breakdowns)


def test_a_chart_stacks_what_was_spent(tmp_path):
    home = claude_home(tmp_path, {"input_tokens": 1000, "output_tokens": 100})
    report = manager(home).total_cost(report=Report(group_by=("day", "model")))

    assert chart(report).plain() == f"█ claude-sonnet-4-5-20250929\n2026-01-15    ~$0.0045  {'█' * 60}"
