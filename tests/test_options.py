"""Every option of every command, as the program itself lists them, with every value it offers: none ends in an error."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from amux.cli.app import app

AMUX = str(Path(sys.executable).with_name("amux"))
GIVEN = {
    "agents": "",
    "schema": "session",
    "sessions list": "--limit 1",
    "sessions show": "claude:7d0c",
    "sessions search": "marmalade --limit 1",
    "sessions resume": "claude:7d0c --print",
    "sessions fork": "claude:7d0c --print",
    "sessions tag": "claude:7d0c keep",
    "sessions export": "--all --output {out}",
    "sessions diff": "claude:7d0c claude:ee3f",
    "cost report": "--limit 1",
}
"""What each command needs besides: a limit, where there is one, also asks how many there would be without."""
VALUES = {
    "--since": "2020-01-01",
    "--until": "now",
    "--model": "claude",
    "--tag": "keep",
    "--cwd": "/work",
    "--limit": "3",
    "--ids-from": "{ids}",
    "--head": "2",
    "--tail": "2",
    "--agent": "claude",
    "--in": "claude",
    "--output": "{out}",
    "--group-by": "agent,project,month",
    "--timezone": "Asia/Tokyo",
}


def commands(command: typer.core.TyperCommand | typer.core.TyperGroup, path: str = ""):
    below = getattr(command, "commands", None)
    if below is None:
        yield path, command
    for name, one in (below or {}).items():
        yield from commands(one, f"{path} {name}".strip())


def given_options() -> Iterator[str]:
    for path, command in commands(typer.main.get_command(app)):
        for option in command.params:
            if option.param_type_name != "option":
                continue
            name = option.opts[0]
            values = getattr(option.type, "choices", None) or ([""] if option.is_flag else [VALUES[name]])
            for value in values:
                given = "--print" if name == "--last" else GIVEN[path]  # instead of an id
                yield f"{path} {given} {name} {value}".strip()


@pytest.fixture(scope="module")
def home(corpus, tmp_path_factory) -> Path:
    where = tmp_path_factory.mktemp("options") / "home"
    for path in corpus.scenarios("claude"):
        if path.name in ("fork", "subagent"):
            shutil.copytree(path / "home", where, dirs_exist_ok=True)
    return where


@pytest.mark.parametrize("command", list(given_options()))
def test_an_option_is_taken(script_runner, home, tmp_path, command):
    ids = tmp_path / "ids"
    ids.write_text("7d0cfea6-16a5-4ba2-9b89-d387df82d8ea\n")
    words = command.format(ids=ids, out=tmp_path / "out").split()
    run = script_runner.run([AMUX, "--home", str(home), *words])

    assert (run.returncode, "Traceback" in run.stderr) == (0, False), run.stderr
    if "--json" in words and "--output" not in words:
        assert json.loads(run.stdout)
