"""Completion: the values amux answers with, and the scripts in the shells themselves."""

import importlib.util
import json
import os
import pty
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from amux import readers
from amux.completion import SCRIPTS, Shell

AMUX = str(Path(sys.executable).with_name("amux"))
TOP = Path(__file__).parents[1]
PATIENCE_SECONDS = 20
BUDGET_SECONDS = 0.15
WHOLE = "7d0cfea6-16a5-4ba2-9b89-d387df82d8ea"
ARMED = "$(touch pwned)`touch pwned`'\";touch pwned\n\x1b]0;pwned\x07%F{red} \\"
"""A title nobody meant well."""
HOSTILE = (
    "evil1$(touch pwned)",
    "evil2`touch pwned`",
    "evil3'\"; touch pwned; '\"",
    "evil4|touch pwned&",
    "evil5*\\ {a,b}~ #!$HOME",
    "evil6:touch:pwned",
)


@pytest.fixture
def home(corpus, tmp_path, monkeypatch):
    """The user's own home, with sessions of Claude Code, one of them tagged in the run index."""
    where = tmp_path / "home"
    for path in corpus.scenarios("claude"):
        if path.name in ("fork", "subagent", "named"):
            shutil.copytree(path / "home", where, dirs_exist_ok=True)
    run = {"v": 1, "runId": "1", "agent": "claude", "sessionId": WHOLE, "timestamp": "2026-11-18T09:30:00Z"}
    index = where / ".agent-mux" / "run-index.jsonl"
    index.parent.mkdir()
    index.write_text(json.dumps({**run, "tags": ["nightly"]}) + "\n")
    monkeypatch.setenv("HOME", str(where))
    monkeypatch.delenv("AMUX_HOME", raising=False)
    return where


@pytest.fixture
def catalog(home):
    """The file of a catalog that knows the sessions of the home."""
    subprocess.run([AMUX, "sessions", "list", "--json"], check=True, capture_output=True)
    return Path(os.environ["AMUX_CACHE_DIR"]) / "catalog.db"


def add_sessions(catalog: Path, sessions: dict[str, str]) -> None:
    """Put sessions into the catalog as copies of one that is there, each with its id and its title."""
    with closing(sqlite3.connect(catalog)) as db:
        cursor = db.execute("select * from session where kind = 'main' limit 1")
        columns = [column[0] for column in cursor.description][1:]
        row = dict(zip(columns, cursor.fetchone()[1:], strict=True))
        db.executemany(
            f"insert into session ({', '.join(columns)}) values ({', '.join(f':{name}' for name in columns)})",
            [{**row, "id": id, "title": title} for id, title in sessions.items()],
        )
        db.commit()


def completed(*arguments: str) -> dict[str, str]:
    run = subprocess.run([AMUX, "--complete", *arguments], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return dict(line.split("\t") for line in run.stdout.splitlines())


# What amux answers


def test_agents_are_there_without_a_catalog(home):
    assert list(completed("agents", "")) == list(readers.names())
    assert list(completed("agents", "cla")) == ["claude"]


def test_agents_say_how_many_sessions_they_have(catalog):
    assert completed("agents", "cla") == {"claude": "4 sessions"}


def test_models_and_tags_say_how_many_sessions_have_them(catalog):
    assert completed("models", "claude") == {"claude-opus-5-5": "4 sessions"}
    assert completed("models", "gpt") == {}
    assert completed("tags", "") == {"nightly": "1 session"}


def test_a_session_says_its_age_and_its_title(catalog):
    said = completed("sessions", "claude", "7d0c")[WHOLE]

    assert said.endswith(" · Add a marmalade middleware")
    assert said.split(" · ")[0].endswith("ago") or said.split(" · ")[0].count("-") == 2


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("sessions", "cl"), ["claude"]),
        (("sessions", "7d0"), []),
        (("sessions", "7d0c"), [WHOLE]),
        (("sessions", "claude:7d"), [f"claude:{WHOLE}"]),
        (("sessions", "codex:7d"), []),
        (("sessions", "claude", "7"), [WHOLE]),
        (("sessions", "claude", "lat"), ["latest"]),
        (("sessions", "claude", WHOLE, ""), []),
        (("sessions,tags+", "claude", "7"), [WHOLE]),
        (("sessions,tags+", "claude", WHOLE, "n"), ["nightly"]),
        (("sessions,tags+", f"claude:{WHOLE}", "n"), ["nightly"]),
        (("sessions,tags+", f"claude:{WHOLE}", "urgent", "n"), ["nightly"]),
        (("ids,ids", "claude:7d"), [f"claude:{WHOLE}"]),
        (("ids,ids", f"claude:{WHOLE}", "7d0c"), [WHOLE]),
        (("ids,ids", "latest", "latest", "7d0c"), []),
    ],
    ids=" ".join,
)
def test_what_comes_before_tells_what_is_asked_for(catalog, asked, found):
    assert list(completed(*asked)) == found


def test_the_newest_session_comes_first(catalog):
    listed = json.loads(subprocess.run([AMUX, "sessions", "list", "--json"], capture_output=True, check=True).stdout)

    assert list(completed("ids", "claude:")) == [one["unifiedId"] for one in listed]


def test_other_homes_have_other_sessions(catalog, corpus, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(next(path for path in corpus.scenarios("claude") if path.name == "one") / "home", other)
    subprocess.run([AMUX, "--home", str(other), "sessions", "list"], check=True, capture_output=True)
    there = completed("--home", str(other), "ids", "claude:")

    assert len(there) == 1
    assert len(completed("ids", "claude:")) == 4
    assert not set(there) & set(completed("ids", "claude:"))


def test_a_store_that_was_moved_there_by_a_variable_is_the_same_store(catalog, home, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    subprocess.run([AMUX, "sessions", "list"], check=True, capture_output=True)
    monkeypatch.delenv("XDG_CONFIG_HOME")

    assert len(completed("ids", "claude:")) == 4


def test_nothing_is_refreshed(catalog, home):
    shutil.rmtree(home / ".claude")
    before = catalog.read_bytes()

    assert len(completed("ids", "claude:")) == 4
    assert catalog.read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [(), ("",), ("--home",), ("nope", ""), ("ids",), ("models", ""), ("ids", "\udcff"), ("--nope", "ids", "")],
)
def test_what_cannot_be_answered_is_passed_over_in_silence(home, arguments):
    assert set(completed(*arguments)) <= {"latest"}


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\0" + bytes(200)])
def test_a_damaged_catalog_is_no_answer(catalog, content):
    catalog.write_bytes(content)

    assert completed("models", "") == {}
    assert list(completed("sessions", "cl")) == ["claude"]
    assert catalog.read_bytes() == content


def test_no_line_holds_what_acts_on_a_terminal_or_cannot_be_typed(catalog):
    add_sessions(catalog, dict.fromkeys(["two\nlines", "with\ttab", "bell\x07", "-rf", "--home=/", "fine"], ARMED))
    found = completed("sessions", "claude", "")

    assert [id for id in found if id != "latest" and len(id) < len(WHOLE)] == ["fine"]
    assert found["fine"].isprintable()
    assert "touch pwned ␛]0;pwned␇" in found["fine"]


def test_five_thousand_sessions_are_answered_in_time(catalog):
    add_sessions(catalog, {f"0198{number:08x}-0000-7000-8000-{number:012x}": "A title " * 9 for number in range(5000)})

    def seconds(*question: str) -> float:
        start = time.perf_counter()
        completed(*question)
        return time.perf_counter() - start

    for question in (("agents", ""), ("models", ""), ("tags", ""), ("ids", ""), ("sessions", "claude", "0198")):
        # The best of some: other work on the machine only ever adds.
        assert min(seconds(*question) for _ in range(5)) < BUDGET_SECONDS, question


# The scripts


def test_the_scripts_are_current():
    """Not so? `make completions` writes them."""
    spec = importlib.util.spec_from_file_location("make_completions", TOP / "tests" / "tools" / "make_completions.py")
    generator = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = generator  # where its dataclasses look for their types
    spec.loader.exec_module(generator)

    for shell, text in generator.scripts().items():
        assert (TOP / "completions" / SCRIPTS[shell]).read_text() == text
