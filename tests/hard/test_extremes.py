"""Extremes: numbers, times, paths and files of the user's own that nobody would write, but somebody can."""

import json
import os
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from amux import linking, money
from amux.cachefile import prepared
from amux.errors import InvalidValue
from amux.manager import SessionManager
from amux.model import Charge, Usage
from amux.places import real
from amux.preflight import of_agent
from amux.pricing import PriceTable
from amux.query import Query, here, moment
from amux.readers import open_reader
from amux.readers._base import Host, modified
from amux.readers._json import usd_at, when

from .commands import AMUX, Place

SECONDS = 10
ID = "5e551011-0000-4000-8000-000000000001"
OTHER = ID[:-1] + "2"
PROJECT = ".claude/projects/-work-zoo"
LAST = "9999-12-31T23:59:59.999999+00:00"


def answer(usage: dict, number: int = 0, **record) -> dict:
    return {
        "type": "assistant",
        "sessionId": ID,
        "uuid": f"a{number}",
        "requestId": f"r{number}",
        "timestamp": "2026-03-04T10:00:05.000Z",
        "cwd": "/work/zoo",
        **record,
        "message": {
            "id": f"m{number}",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "Here."}],
            "usage": {"output_tokens": 1, **usage},
        },
    }


def transcript(home: Path, *records: dict, id: str = ID, **prompt) -> Path:
    """A session of Claude Code that says so."""
    asked = {
        "type": "user",
        "sessionId": id,
        "uuid": "u",
        "timestamp": "2026-03-04T10:00:00.000Z",
        "cwd": "/work/zoo",
        "message": {"role": "user", "content": "Feed the zebra."},
        **prompt,
    }
    path = home / PROJECT / f"{id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in (asked, *records)))
    return path


@pytest.fixture
def where(tmp_path) -> Place:
    (tmp_path / "own").mkdir()
    (tmp_path / "home").mkdir()
    return Place(tmp_path / "home", tmp_path / "own")


@pytest.fixture
def sessions(tmp_path, monkeypatch):
    """The manager of a home, without a cache; nothing of the user's own is seen."""
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.chdir(tmp_path)

    def opened(home: Path = tmp_path) -> SessionManager:
        return SessionManager(Host(home, {}), cache=False)

    return opened


# Numbers


@pytest.mark.parametrize("tokens", [2**40, 10**12, 10**12 + 1, 2**53])
def test_a_call_with_more_tokens_than_money_can_count_costs_only_itself(tmp_path, sessions, tokens):
    transcript(tmp_path, answer({"input_tokens": tokens}))
    transcript(tmp_path, {**answer({"input_tokens": 1000}, 1), "sessionId": OTHER}, id=OTHER)
    manager = sessions()

    assert {one.session_id: one.cost.total_usd for one in manager.list()} == {ID: None, OTHER: Decimal("0.003015")}
    assert manager.total_cost().total_usd == Decimal("0.003015")
    assert manager.get("claude", ID).messages[-1].cost is None


@pytest.mark.parametrize("tokens", [10**11, 10**12])
def test_calls_beyond_what_a_sum_can_hold_are_unknown(tmp_path, sessions, tokens):
    transcript(tmp_path, *(answer({"input_tokens": tokens}, number) for number in range(300)))
    transcript(tmp_path, {**answer({"input_tokens": 1000}, 300), "sessionId": OTHER}, id=OTHER)
    manager = sessions()

    assert {one.session_id: one.cost.input_tokens for one in manager.list()} == {ID: 300 * tokens, OTHER: 1000}
    for by in ("session", "day", "model", "project"):
        assert manager.total_cost(group_by=(by,)).call_count == 301
    assert [one.session_id for one in manager.list(Query(sort="cost"))] == [OTHER, ID]


def test_a_price_beyond_plausible_is_unknown():
    assert usd_at({"total": 99_999_999}, "total") is None
    assert money.pico(Decimal(99_999_999)) is None
    assert money.pico(Decimal(1_000_000)) == 10**18


def test_an_estimate_does_not_depend_on_when_it_was_made(tmp_path):
    """The prices of a catalog are worked out again from what it keeps of a call."""
    absurd = Charge("k", Usage(input_tokens=10**12 + 1, output_tokens=7), model="claude-sonnet-4-5")
    kept = replace(absurd, usage=money.counted(absurd.usage))

    assert money.Prices(None).estimate(absurd) == money.Prices(None).estimate(kept) is None


@pytest.mark.parametrize(
    ("amounts", "total"),
    [
        ([], None),
        ([None], None),
        ([0], 0),
        ([1, None, 2**31, 2**31 - 1], 2**32),
        ([2**61, 2**61 - 1], 2**62 - 1),
        ([10**18, 123_456_789_012_345_678, 1], 1_123_456_789_012_345_679),
        ([2**61] * 3, None),
        ([2**63 - 1] * 9, None),
    ],
)
def test_a_sum_is_exact_or_unknown(amounts, total):
    db = sqlite3.connect(":memory:")
    db.execute("create table t (x integer)")
    db.executemany("insert into t values (?)", [(amount,) for amount in amounts])

    assert db.execute(f"select {money.added('x')} from t").fetchone() == (total,)


def test_every_sum_of_the_catalog_is_safe():
    """Each column a call has, at its most, in more rows than 64 bits can add up."""
    db = prepared(sqlite3.connect(":memory:", isolation_level=None))
    most, row = (
        money.MOST - 1,
        "insert into charge values (1, 1, 0, 0, 0, 'm', null, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 0, 0, 1)",
    )
    db.executemany(row, [(*[most] * 8, money.MOST_CALLS)] * 9)
    found = db.execute(f"select {linking.SUMS} from charge").fetchone()

    assert found == (9 * money.MOST_CALLS, *[None] * 11, 0)


@pytest.mark.parametrize("id", [ID, "of-no-store"])
@pytest.mark.parametrize("usd", [9_999_999, 999_999])
def test_a_run_index_cannot_cost_more_than_can_be_counted(tmp_path, sessions, id, usd):
    transcript(tmp_path, answer({"input_tokens": 1000}))
    index = tmp_path / ".agent-mux/run-index.jsonl"
    index.parent.mkdir()
    runs = [
        {
            "v": 1,
            "runId": str(number),
            "agent": "claude",
            "sessionId": id,
            "timestamp": LAST,
            "cost": {"totalUsd": usd, "inputTokens": 2**53},
        }
        for number in range(1500)
    ]
    index.write_text("".join(json.dumps(run) + "\n" for run in runs))
    manager = sessions()

    assert [one.cost.input_tokens for one in manager.list(Query(sort="cost"))] == [1000]
    for by in ("session", "day", "week", "month"):
        manager.total_cost(group_by=(by,))


# Times


@pytest.mark.parametrize(
    "time", [LAST, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", 2**53, -5, 0, float("nan"), 1e300]
)
def test_a_time_at_which_no_agent_ran_is_none(time):
    assert when(time) is None


def test_times_at_the_limits_are_kept():
    assert when("1971-01-01T00:00:00Z") == datetime(1971, 1, 1, tzinfo=UTC)
    assert when(4_000_000_000) == datetime(2096, 10, 2, 7, 6, 40, tzinfo=UTC)


@pytest.mark.parametrize("seconds", [-(10**10), 0, 10**10, 2**37])
def test_the_time_of_a_file_is_one_that_can_be_shown(tmp_path, seconds):
    path = tmp_path / "file"
    path.touch()
    try:
        os.utime(path, (seconds, seconds))
    except OSError:
        pytest.skip("no such time on this file system")

    assert 1970 <= modified(str(path)).year <= 2200


@pytest.mark.parametrize("time", [LAST, "0001-01-01T00:00:00Z"])
def test_a_session_at_the_end_of_time_is_shown(where, time):
    path = transcript(where.home, answer({"input_tokens": 5}, timestamp=time), timestamp=time)
    os.utime(path, (2**33, 2**33))
    environment = {**where.environment, "TZ": "America/New_York"}

    for arguments in (["sessions", "list"], ["cost", "report", "--group-by", "week"], ["cost", "report", "--chart"]):
        run = where.run(*arguments, env=environment, check=False)
        assert (run.returncode, run.stderr) == (0, "")


# The catalog's file


@pytest.fixture
def hermes(corpus, tmp_path):
    """A home of hermes, and its database."""
    cases = (corpus.open_case(path, tmp_path / path.name) for path in corpus.scenarios("hermes"))
    found = ((case, case.home / ".hermes/state.db") for case in cases)
    return next((case, file) for case, file in found if file.exists() and b"CREATE TABLE" in file.read_bytes())


def test_a_catalog_that_is_a_link_is_not_followed(hermes, where):
    case, database = hermes
    cache = where.own / "cache"
    cache.mkdir(mode=0o700)
    (cache / "catalog.db").symlink_to(database)
    before = database.read_bytes(), database.stat().st_mode, sorted(os.listdir(database.parent))
    listed = replace(where, home=case.home).listed("hermes")

    assert len(listed) > 0
    assert (database.read_bytes(), database.stat().st_mode, sorted(os.listdir(database.parent))) == before
    assert (cache / "catalog.db").is_symlink()


def test_a_link_to_a_text_keeps_its_permissions(where, tmp_path):
    text = tmp_path / "text"
    text.write_text("mine")
    text.chmod(0o644)
    cache = where.own / "cache"
    cache.mkdir(mode=0o700)
    (cache / "catalog.db").symlink_to(text)

    assert where.listed() == []
    assert (text.read_text(), text.stat().st_mode & 0o777) == ("mine", 0o644)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "directory"])
def test_a_catalog_that_is_no_file_costs_no_answer(where, make):
    transcript(where.home)
    (where.own / "cache").mkdir(mode=0o700)
    make(where.own / "cache/catalog.db")

    assert [one["sessionId"] for one in where.listed()] == [ID]


def test_another_programs_database_is_set_aside(hermes, where):
    """Hermes counts no versions: as in an empty file, the number is 0."""
    case, database = hermes
    (where.own / "cache").mkdir(mode=0o700)
    shutil.copy(database, where.own / "cache/catalog.db")
    listed = replace(where, home=case.home).listed("hermes")

    assert len(listed) > 0
    assert (where.own / "cache/catalog.db.broken").read_bytes() == database.read_bytes()


# A repository that is not the user's


@pytest.fixture
def repository(tmp_path) -> Path:
    (tmp_path / "repository/.git/worktrees/x").mkdir(parents=True)
    return tmp_path / "repository"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink(path, path)])
def test_what_is_no_file_in_a_repository_names_no_worktree(repository, make):
    make(repository / ".git/worktrees/x/gitdir")

    assert here(repository) == (str(repository),)


@pytest.mark.parametrize("named", ["/a\0b", "x" * 100_000, "/x" * 50_000, "../" * 9000, "loop", "", "\udcff"])
def test_a_git_file_may_name_anything(repository, where, named):
    shutil.rmtree(repository / ".git")
    (repository / "loop").symlink_to("loop")
    (repository / ".git").write_bytes(b"gitdir: " + os.fsencode(named))
    run = where.run("sessions", "list", "--here", "--json", cwd=repository, timeout=SECONDS)

    assert run.stdout == "[]\n"


def test_a_repository_with_a_crowd_of_worktrees_can_be_asked(repository, where):
    for number in range(1000):
        (repository / f".git/worktrees/{number}").mkdir()
        (repository / f".git/worktrees/{number}/gitdir").write_text("_" * 9000 + f"/{number}/.git")
    transcript(where.home, cwd=str(repository))

    run = where.run("sessions", "list", "--here", "--json", cwd=repository)
    assert [one["sessionId"] for one in json.loads(run.stdout)] == [ID]


# The user's own files


@pytest.mark.parametrize(
    "line",
    [
        {"at": "9999-12-31T23:59:59Z", "forkOf": "x"},
        {"at": "0001-01-01T00:00:00Z", "forkOf": "x"},
        {"at": "2026-03-04T10:00:00Z", "startedIn": "/\0x"},
        {"at": "2026-03-04T10:00:00Z", "startedIn": "/x" * 100_000},
    ],
)
def test_a_bad_line_among_the_tags_is_passed_over(tmp_path, sessions, line):
    transcript(tmp_path)
    file = tmp_path / "XDG_DATA_HOME/amux/tags.jsonl"
    file.parent.mkdir(parents=True)
    good = {"v": 1, "at": "2026-03-04T10:00:00Z", "agent": "claude", "sessionId": ID, "add": ["good"]}
    bad = {"v": 1, "agent": "claude", "add": ["bad"], **line}
    file.write_text("".join(json.dumps(one) + "\n" for one in (bad, good)))

    assert [one.tags for one in sessions().list()] == [("good",)]


def test_prices_in_a_pipe_are_not_waited_for(where):
    config = where.own / ".config/amux"
    config.mkdir(parents=True)
    os.mkfifo(config / "prices.toml")
    transcript(where.home, answer({"input_tokens": 1}))

    for arguments in (["cost", "report"], ["sessions", "show", "claude", ID], ["-v", "--version"]):
        run = where.run(*arguments, check=False, timeout=SECONDS)
        assert run.returncode == 2
        assert "it is no regular file; correct it or move the file away" in run.stderr


@pytest.mark.parametrize(
    "content",
    [
        "x = " + "[" * 100_000,
        'models."a".input = ' + "9" * 10_000,
        'models."a".input = 1e' + "9" * 30,
        "x = " + "{a=" * 100_000,
    ],
    ids=["brackets", "digits", "exponent", "braces"],
)
def test_prices_nobody_can_read_are_named(tmp_path, content):
    file = tmp_path / "prices.toml"
    file.write_text(content)
    with pytest.raises(InvalidValue, match=r"prices\.toml: .*; correct it or move the file away"):
        PriceTable.load(file)


# What a session and a person say of directories


def test_a_directory_that_cannot_be_is_shown_all_the_same(where):
    transcript(where.home, cwd="/work/zo\0o")

    for verb in ("resume", "fork"):
        for how in ("--print", "--json", "--yes"):
            run = where.run("sessions", verb, "claude", ID, how, check=False, timeout=SECONDS)
            assert "Traceback" not in run.stderr
            assert run.returncode in (0, 2, 4)


def test_warnings_of_a_directory_that_cannot_be(tmp_path, sessions):
    transcript(tmp_path, cwd="/a\0b")
    (session,) = sessions().list()
    reader = open_reader("gemini", Host(tmp_path, {}))
    warnings = list(of_agent(reader, session, str(tmp_path)))

    assert ["looks for sessions by directory" in one for one in warnings] == [True]


def test_a_path_of_a_million_parts_is_not_walked():
    path = "/x" * 1_000_000

    assert real(path) == path


@pytest.mark.parametrize("zone", [ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Pacific/Pago_Pago")], ids=str)
@pytest.mark.parametrize("end", [False, True])
def test_a_date_beyond_all_years_is_refused(zone, end):
    now = datetime(2026, 3, 4, tzinfo=UTC)
    for given in ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00+14:00", "2026y", "9" * 5000 + "d", "1" * 5000):
        with pytest.raises(InvalidValue, match="dates are"):
            moment(given, end=end, zone=zone, now=now)


def test_the_ends_of_the_first_and_the_last_year_are_refused():
    for given, end in (("9999-12-31", True), ("9999-12", True), ("9999", True), ("0001-01-01", False)):
        with pytest.raises(InvalidValue, match="dates are"):
            moment(given, end=end, zone=ZoneInfo("Asia/Tokyo"))


@pytest.mark.parametrize("option", [("--until", "9999-12-31"), ("--since", "9999-12-31T23:59:59-14:00")])
def test_a_date_that_cannot_be_is_wrong_usage(where, option):
    run = where.run("sessions", "list", *option, check=False)

    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"amux: {option[1]!r} is no date")


def test_a_limit_beyond_64_bits_is_no_limit(where):
    transcript(where.home)

    assert len(where.listed("--limit", str(2**63))) == 1


# Names that are no UTF-8


def amux(arguments: list, env: dict, **options) -> subprocess.CompletedProcess:
    return subprocess.run([AMUX, *arguments], env=env, capture_output=True, check=False, timeout=SECONDS, **options)


@pytest.mark.parametrize("variable", ["HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME"])
@pytest.mark.parametrize("command", [["sessions", "list"], ["agents", "--json"]], ids=" ".join)
def test_a_store_whose_name_is_no_utf8_is_refused(where, tmp_path, variable, command):
    odd = os.path.join(os.fsencode(tmp_path), b"h\xffme")
    os.mkdir(odd)
    env = {**where.environment, "HOME": str(where.home), variable: os.fsdecode(odd)}
    run = amux(command, env)

    assert (run.returncode, run.stdout) == (2, b"")
    assert "h\ufffdme" in run.stderr.decode()
    assert "is no UTF-8 text" in run.stderr.decode()


def test_a_home_whose_name_is_no_utf8_is_refused(where, tmp_path):
    odd = os.path.join(os.fsencode(tmp_path), b"h\xffme")
    os.mkdir(odd)
    run = amux(["--home", odd, "sessions", "list"], where.environment)

    assert run.returncode == 2
    assert "is no UTF-8 text" in run.stderr.decode()


def test_a_variable_nobody_asks_for_may_hold_anything(where):
    transcript(where.home)
    env = {**where.environment, "HOME": str(where.home), "PS1": "\udcff"}
    run = amux(["sessions", "list", "--json"], env)

    assert [one["sessionId"] for one in json.loads(run.stdout)] == [ID]


@pytest.mark.parametrize("options", [["--here"], ["--cwd", "."], ["--cwd", b"../h\xffme"]], ids=str)
def test_a_directory_whose_name_is_no_utf8_is_the_one_agents_write(where, tmp_path, options):
    odd = os.path.join(os.fsencode(tmp_path), b"h\xffme")
    os.mkdir(odd)
    transcript(where.home, cwd=os.fsencode(odd).decode("utf-8", "replace"))
    run = amux(["--home", str(where.home), "sessions", "list", "--json", *options], where.environment, cwd=odd)

    assert [one["sessionId"] for one in json.loads(run.stdout)] == [ID]
