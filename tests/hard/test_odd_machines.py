"""Old and odd machines: other Pythons, locales, homes, terminals and systems give the same answers."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unicodedata import combining, east_asian_width

import pytest

from amux.readers._base import Host

from . import law
from .commands import AMUX, Place, place
from .test_hostile import COLOUR, at_terminal

ROOT = Path(__file__).parents[2]
ASKED = (
    ("sessions", "list", "--subagents", "--json"),
    ("sessions", "search", "marmalade", "--json"),
    ("sessions", "search", "日本語", "--json"),
    ("cost", "report", "--group-by", "session,model", "--json"),
    ("sessions", "list"),
    ("sessions", "show", "claude", "latest"),
)


def asked(where: Place, commands=ASKED, **options) -> list[tuple[str, str, int]]:
    """What amux answers, as bytes would be decoded: the locale must not matter."""
    runs = [where.run(*argv, text=False, check=False, **options) for argv in commands]
    return [(run.stdout.decode(), run.stderr.decode(), run.returncode) for run in runs]


@pytest.fixture
def where(corpus, tmp_path) -> Place:
    """A home with what people type that is not ASCII."""
    home = tmp_path / "home"
    for scenario in corpus.scenarios("claude"):
        if scenario.name in ("unicode", "fork", "subagent", "big-output"):
            shutil.copytree(scenario / "home", home, dirs_exist_ok=True, symlinks=True)
    (tmp_path / "own").mkdir()
    return Place(home, tmp_path / "own")


# Locales


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "nowhere.ISO-8859-1", "PYTHONUTF8": "0"},
        {"PYTHONOPTIMIZE": "2", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "7"},
        {"PYTHONWARNINGS": "error"},
        {"TZ": "Nowhere/Land"},
        {"COLUMNS": "no number", "LINES": "-1"},
    ],
    ids=lambda variables: " ".join(f"{name}={value}" for name, value in variables.items()),
)
def test_the_locale_does_not_change_an_answer(where, variables):
    usual = asked(where)

    assert [status for _, _, status in usual] == [0] * len(ASKED)
    assert json.loads(usual[2][0])  # what is not ASCII can be searched for
    assert asked(where, env={**where.environment, **variables}) == usual


def test_an_error_can_be_said_in_any_locale(where):
    variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = where.run("sessions", "show", "claude", "où", env={**where.environment, **variables}, check=False)

    assert (run.returncode, run.stdout) == (8, "")
    assert run.stderr.startswith("amux: ")
    assert "Traceback" not in run.stderr


# Homes


@pytest.mark.parametrize(
    "name", ["with blanks", "ünï-cödé 問題", "a'b\"c$d;e", "-x", "per%20cent?#", "new\nline"][:: 1 if law.SOAK else 2]
)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_a_home_may_have_any_name(where, tmp_path, name, locale):
    usual = asked(where, ASKED[:4])
    home = tmp_path / name
    where.home.rename(home)
    moved = replace(where, home=home)
    ascii_only = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    answers = asked(moved, ASKED[:4], env={**moved.environment, **ascii_only})

    assert [status for _, _, status in answers] == [0] * 4
    renamed = [
        (out.replace(json.dumps(str(home), ensure_ascii=False)[1:-1], str(where.home)), err) for out, err, _ in answers
    ]
    assert renamed == [(out, err) for out, err, _ in usual]
    as_home = {**moved.environment, "HOME": str(home), **ascii_only}
    run = subprocess.run(
        [AMUX, "sessions", "list", "--subagents", "--json"], env=as_home, capture_output=True, check=False
    )
    assert (run.returncode, run.stdout.decode()) == (0, answers[0][0])


def test_a_database_in_a_home_of_any_name_is_found(corpus, tmp_path):
    for agent in [agent for agent in ("hermes", "opencode", "cursor") if agent in law.agents()]:
        case = corpus.open_case(corpus.scenarios(agent)[-1], tmp_path / agent)
        usual = law.told(agent, Host(case.home, case.env), shown=False)
        moved = tmp_path / agent / "q?u#e%s tion 問題"
        case.home.rename(moved)
        env = {name: value.replace(str(case.home), str(moved)) for name, value in case.env.items()}
        told = law.told(agent, Host(moved, env), shown=False)

        assert told.wrong == []
        assert {id: one.said for id, one in told.sessions.items()} == {
            id: one.said for id, one in usual.sessions.items()
        }


@pytest.mark.parametrize("home", [None, "", "/nonexistent/home", "relative", "/dev/null", "/"])
@pytest.mark.parametrize(
    "argv", [("sessions", "list", "claude"), ("cost", "report", "--agent", "claude"), ("agents",)], ids=" ".join
)
def test_without_a_usable_home_there_is_an_answer(tmp_path, home, argv):
    environment = {name: value for name, value in Place(tmp_path, tmp_path).environment.items() if name != "HOME"}
    if home is not None:
        environment["HOME"] = home
    run = subprocess.run([AMUX, *argv], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr


def test_a_working_directory_that_is_gone_does_not_matter(where, tmp_path):
    usual = asked(where, ASKED[:4])
    command = f"mkdir '{tmp_path}/gone'; cd '{tmp_path}/gone'; rmdir '{tmp_path}/gone'; exec \"$@\""
    for argv, (out, err, status) in zip(ASKED, usual, strict=False):
        run = subprocess.run(
            ["sh", "-c", command, "sh", AMUX, *where.command(*argv)],
            env=where.environment,
            capture_output=True,
            check=False,
        )
        assert (run.stdout.decode(), run.stderr.decode(), run.returncode) == (out, err, status)


def test_few_open_files_are_enough(where):
    command = ["sh", "-c", 'ulimit -n 24; exec "$@"', "sh", AMUX, *where.command("sessions", "list", "--json")]
    run = subprocess.run(command, env=where.environment, capture_output=True, text=True, check=False)

    assert (json.loads(run.stdout), run.returncode) == (where.listed(), 0)


# Terminals


def cells(text: str) -> int:
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


@pytest.mark.parametrize("columns", [40, 7, 1])
@pytest.mark.parametrize(
    "argv",
    [
        ["sessions", "list"],
        ["sessions", "list", "--tree"],
        ["sessions", "search", "marmalade"],
        ["cost", "report"],
        ["agents"],
    ],
    ids=" ".join,
)
def test_no_line_is_wider_than_the_terminal(where, columns, argv):
    told = COLOUR.sub("", at_terminal(where, argv, columns=columns)).replace("\r\n", "\n")

    if columns >= 40:
        assert [line for line in told.split("\n") if cells(line) > columns] == []
    assert told.strip()


@pytest.mark.parametrize("value", ["0", "9" * 20, "9" * 5000, "²"], ids=lambda value: value[:20])
def test_a_size_that_is_none_does_not_matter(where, value):
    for argv in (["sessions", "list", "--tree"], ["sessions", "search", "marmalade"], ["sessions", "show", "latest"]):
        usual = at_terminal(where, argv)

        assert at_terminal(where, argv, COLUMNS=value, LINES=value) == usual


@pytest.mark.parametrize("pager", ["'", '"less', "\\", "", "  ", "/nonexistent"])
def test_a_pager_that_is_no_command_does_not_matter(where, pager):
    argv = ["sessions", "show", "claude", "latest"]

    assert at_terminal(where, argv, PAGER=pager) == at_terminal(where, argv)


def test_a_narrow_terminal_shows_a_session(where):
    told = COLOUR.sub("", at_terminal(where, ["sessions", "show", "claude", "latest"], columns=40)).replace(
        "\r\n", "\n"
    )

    assert [line for line in told.split("\n") if cells(line) > 40] == []


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_no_colour_where_none_is_wanted(where, variables):
    for argv in (
        ["sessions", "list"],
        ["sessions", "search", "marmalade"],
        ["sessions", "show", "claude", "latest"],
        ["cost", "report"],
    ):
        told = at_terminal(where, argv, **variables)

        assert re.findall(r"\x1b\[[0-9;]*[34][0-9;]*m", told) == []
        if "TERM" in variables:
            assert "\x1b" not in told


@pytest.mark.parametrize(
    "argv",
    [
        ["sessions", "list"],
        ["sessions", "list", "--json"],
        ["sessions", "show", "claude", "latest"],
        ["sessions", "export", "claude", "latest"],
        ["nope"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_are_a_quiet_end(where, argv, closed):
    command = ["sh", "-c", f'"$@" {closed}', "sh", AMUX, *where.command(*argv)]
    run = subprocess.run(command, env=where.environment, capture_output=True, text=True, check=False, cwd=where.own)

    assert "Traceback" not in run.stderr
    assert "Exception ignored" not in run.stderr
    assert run.returncode == (2 if argv == ["nope"] else 0) or (closed.startswith(">") and run.returncode in (0, 1))


@pytest.mark.parametrize(
    "argv",
    [["sessions", "list"], ["sessions", "list", "--json"], ["sessions", "show", "claude", "latest"]],
    ids=" ".join,
)
def test_a_full_disk_behind_stdout_is_an_error_in_a_line(where, argv):
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(
            [AMUX, *where.command(*argv)],
            env=where.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert run.returncode == 1
    assert run.stderr.startswith('{"error":' if "--json" in argv else "amux: ")
    assert run.stderr.count("\n") == 1


# SQLite without FTS5

WITHOUT_FTS5 = """
import functools, sqlite3

class Connection(sqlite3.Connection):
    def refuse(self, sql):
        if "fts5" in sql.lower():
            raise sqlite3.OperationalError("no such module: fts5")

    def execute(self, sql, *more):
        self.refuse(sql)
        return super().execute(sql, *more)

    def executescript(self, sql):
        self.refuse(sql)
        return super().executescript(sql)

sqlite3.connect = functools.partial(sqlite3.connect, factory=Connection)
"""


@pytest.mark.parametrize("words", ["marmalade", "marmalade -fork", '"quokka plan"', "日本語", "zebra;"])
def test_without_fts5_search_scans(where, tmp_path, words):
    usual = {
        one["sessionId"] for one in json.loads(where.run("sessions", "search", words, "--json", "--limit", "0").stdout)
    }
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(WITHOUT_FTS5)
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    environment = {**where.environment, "PYTHONPATH": path, "AMUX_CACHE_DIR": str(tmp_path / "cache without")}
    for _ in range(2):
        run = where.run("sessions", "search", words, "--json", "--limit", "0", env=environment, check=False)

        assert (run.returncode, "Traceback" in run.stderr) == (0, False), run.stderr
        assert {one["sessionId"] for one in json.loads(run.stdout)} == usual
    listed = where.run("sessions", "list", "--json", env=environment)
    assert json.loads(listed.stdout) == where.listed()


# Other systems

PLACES = {
    "cursor": {
        "darwin": [(".config/Cursor", "Library/Application Support/Cursor")],
        "win32": [(".config/Cursor", "AppData/Roaming/Cursor")],
    },
    "hermes": {"win32": [(".hermes", "AppData/Local/hermes")]},
}
"""What lies elsewhere on another system; everything else lies below the home everywhere."""


@pytest.mark.parametrize("system", ["darwin", "win32"])
@pytest.mark.parametrize("agent", law.agents())
def test_stores_are_found_where_other_systems_have_them(corpus, tmp_path, agent, system):
    for scenario in corpus.scenarios(agent):
        case = corpus.open_case(scenario, tmp_path / scenario.name)
        if "XDG_DATA_HOME" in case.env and system == "win32":
            continue  # no such thing there
        usual = law.told(agent, Host(case.home, case.env), shown=False)
        for here, there in PLACES.get(agent, {}).get(system, []):
            if (case.home / here).exists():
                (case.home / there).parent.mkdir(parents=True, exist_ok=True)
                (case.home / here).rename(case.home / there)
        told = law.told(agent, Host(case.home, case.env, system), shown=False)

        assert told.wrong == []
        assert {id: one.said for id, one in told.sessions.items()} == {
            id: one.said for id, one in usual.sessions.items()
        }, scenario.name


@pytest.mark.parametrize(("agent", "variable"), [("cursor", "APPDATA"), ("hermes", "LOCALAPPDATA")])
def test_variables_of_windows_move_a_store(corpus, tmp_path, agent, variable):
    if agent not in law.agents():
        pytest.skip(f"no reader for {agent}")
    case = next(
        case
        for scenario in corpus.scenarios(agent)
        if (case := corpus.open_case(scenario, tmp_path / scenario.name))
        .home.joinpath(PLACES[agent]["win32"][0][0])
        .exists()
    )
    usual = law.told(agent, Host(case.home, case.env), shown=False)
    here, there = PLACES[agent]["win32"][0]
    elsewhere = case.home / "elsewhere"
    elsewhere.mkdir()
    (case.home / here).rename(elsewhere / Path(there).name)
    told = law.told(agent, Host(case.home, {**case.env, variable: str(elsewhere)}, "win32"), shown=False)

    assert set(told.sessions) == set(usual.sessions)


# Other Pythons


def pythons() -> list[str]:
    """The Pythons of this machine that amux says it runs on, this one aside."""
    found = {}
    for minor in range(11, 15):
        there = [shutil.which(f"python3.{minor}"), *Path.home().glob(f".pyenv/versions/3.{minor}*/bin/python3.{minor}")]
        found.update((minor, str(path)) for path in there if path)
    return [path for minor, path in sorted(found.items()) if minor != sys.version_info.minor]


@pytest.mark.skipif(not law.SOAK, reason="installs amux anew for every Python there is: make soak")
@pytest.mark.parametrize("python", pythons())
def test_other_pythons_give_the_same_answers(corpus, tmp_path, python):
    installed = subprocess.run([python, "-m", "venv", str(tmp_path / "venv")], capture_output=True, check=False)
    if installed.returncode:
        pytest.skip(f"{python} cannot make an environment")
    pip = [str(tmp_path / "venv" / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", str(ROOT)]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"cannot install: {installed.stderr[-300:]}")
    theirs = str(tmp_path / "venv" / "bin" / "amux")
    for agent in law.agents():
        for scenario in corpus.scenarios(agent):
            case = corpus.open_case(scenario, tmp_path / agent / scenario.name)
            where = place(case, tmp_path / "own")
            environment = {name: value for name, value in where.environment.items() if name != "PYTHONPATH"}
            for argv in (
                ["sessions", "list", agent, "--subagents"],
                ["sessions", "search", "marmalade"],
                ["cost", "report"],
            ):
                command = where.command(*argv, "--json", "--no-cache")
                usual = where.run(*argv, "--json", "--no-cache")
                run = subprocess.run(
                    [theirs, *command], env=environment, cwd=where.own, capture_output=True, text=True, check=False
                )

                assert (run.stdout, run.stderr, run.returncode) == (usual.stdout, usual.stderr, 0)
