"""README is true: its commands print what it shows, and it names every command."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amux import readers
from amux.cli.app import app
from amux.errors import AmuxError
from amux.readers._base import Reader
from amux.schema import descendants, schemas

TOP = Path(__file__).parents[1]
README = (TOP / "README.md").read_text()


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_readme", TOP / "tests" / "tools" / "make_readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not shutil.which("jq") or not shutil.which("bash"), reason="the README's commands need bash and jq")
def test_its_commands_print_what_it_shows(tool):
    assert tool.refreshed(README) == README


def test_its_picture_shows_what_a_terminal_shows(tool, monkeypatch):
    """`make readme` draws it anew."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()

    assert words(tool.picture()) == words(tool.PICTURE.read_text())


def words(svg: str) -> list[str]:
    """What can be read in a picture: how it is drawn is another version of Rich's own affair."""
    return re.findall(r">([^<>]+)</text>", svg)


def test_it_names_every_command_and_agent():
    for group in app.registered_groups:
        for command in group.typer_instance.registered_commands:
            assert (command.name or command.callback.__name__.rstrip("_")) in README
    for agent in readers.names():
        assert f"`{agent}`" in README


def test_the_table_of_agents_says_what_can_be_done():
    rows = {cells[0].split("`")[1]: cells for cells in table("| agent |")}

    assert sorted(rows) == sorted(readers.names())
    for agent, (named, _, _, resume, fork, *_) in rows.items():
        reader = readers.reader_class(agent)
        assert reader.title in named
        assert (resume != "no") == (reader.resume_command is not Reader.resume_command)
        assert fork.startswith(("yes", "by")) == (reader.fork_command is not Reader.fork_command)


def table(beginning: str) -> list[list[str]]:
    """The cells of a table, row by row, without its head."""
    lines = README[README.index(beginning) :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_it_tells_every_field_and_which_are_always_there():
    told = {cells[0].strip("`"): cells[-1] for cells in table("| schema |")}
    summary, cost = (set(re.findall(r"`(\w+)`", told[name])) for name in ("summary", "a cost"))
    for name, schema in schemas().items():
        here = told[name]
        known = set(re.findall(r"`(\w+)`", here))
        known |= summary if "those of `summary`" in here else cost if "those of a cost" in here else set()
        whole = told["summary"] + here
        assert set(schema["properties"]) <= known, name
        assert [field for field in schema["required"] if f"`{field}`*" not in whole] == [], name
    message = schemas()["session"]["$defs"]["Message"]
    assert set(message["properties"]) <= set(re.findall(r"`(\w+)`", told["a message"]))


def test_it_tells_every_exit_status():
    rows = {int(cells[0]): cells[2] for cells in table("| status |") if cells[0].isdigit()}

    for error in descendants(AmuxError):
        assert f"`{error.code}`" in rows[error.exit_status]


def test_its_make_targets_are_there():
    targets = re.findall(r"^([a-z]+):.*## ", (TOP / "Makefile").read_text(), flags=re.MULTILINE)

    assert set(re.findall(r"^    make ([a-z]+)", README, flags=re.MULTILINE)) <= set(targets)


def python_block(beginning: str) -> str:
    return next(block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if block.startswith(beginning))


def test_the_library_is_used_as_it_says(tmp_path):
    shutil.copytree(TOP / "amux" / "demo", tmp_path / "home")
    environment = {**os.environ, "HOME": str(tmp_path / "home")}
    code = python_block("from amux import SessionManager")
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert "Make the webhook retry idempotent" in run.stdout


def test_an_agent_is_added_in_one_file(tmp_path):
    """The file on the page, put into a copy of the package: every command knows the agent."""
    shutil.copytree(TOP / "amux", tmp_path / "amux", ignore=shutil.ignore_patterns("demo", "__pycache__"))
    (tmp_path / "amux" / "readers" / "vole.py").write_text(python_block('"""Vole'))
    store = tmp_path / "home" / ".vole" / "sessions"
    store.mkdir(parents=True)
    answer = {"kind": "answer", "at": "2026-11-18T09:31:00Z", "text": "It is dug.", "response": "r1"}
    said = [
        {"kind": "prompt", "at": "2026-11-18T09:30:00Z", "text": "Dig a tunnel to the shed"},
        {"kind": "thought", "text": "roots ahead"},
        {**answer, "model": "claude-opus-4-5", "tokens": {"in": 1000, "out": 100}},
    ]
    (store / "dig-1.jsonl").write_text("".join(json.dumps(one) + "\n" for one in said))
    (store / "draft-2.jsonl").write_text(json.dumps(said[0]))

    def asked(*arguments: str):
        command = [sys.executable, "-m", "amux", "--home", str(tmp_path / "home"), *arguments, "--json"]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return json.loads(run.stdout)

    (listed,) = asked("sessions", "list", "vole")
    assert (listed["sessionId"], listed["title"], listed["turnCount"]) == ("dig-1", "Dig a tunnel to the shed", 1)
    assert [one["sessionId"] for one in asked("sessions", "search", "shed")] == ["dig-1"]
    assert [one["role"] for one in asked("sessions", "show", "vole:dig-1")["messages"]] == ["user", "assistant"]
    assert asked("cost", "report", "--agent", "vole")["totalUsd"] == 0.0075
    assert asked("sessions", "resume", "vole", "latest")["argv"] == ["vole", "open", "dig-1"]
    assert "vole" in [one["agent"] for one in asked("agents")]


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (TOP / target).exists(), target
    headings = re.findall(r"^#+ (.+)$", README, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= anchors


def test_the_first_screen_has_the_two_commands():
    first = README.split("\n")[:14]

    assert any(line.strip().startswith("make demo") for line in first)
    assert any(line.strip().startswith("make test") for line in first)
