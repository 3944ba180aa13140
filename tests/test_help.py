"""--help: every command has it, with one example that works on the sample sessions."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from amux.cli.app import app

AMUX = str(Path(sys.executable).with_name("amux"))


def commands(found, path: tuple[str, ...] = ()) -> Iterator[str]:
    yield " ".join(path)
    for name, one in getattr(found, "commands", {}).items():
        yield from commands(one, (*path, name))


COMMANDS = tuple(commands(get_command(app)))


@pytest.mark.parametrize("command", COMMANDS)
def test_it_has_an_example_that_works(script_runner, tmp_path, command):
    said = script_runner.run([AMUX, *command.split(), "--help"]).stdout
    examples = re.findall(r"Example: amux (.+)", said)
    assert len(examples) == 1
    arguments = [one for one in shlex.split(examples[0]) if one != "--demo"]
    run = script_runner.run([AMUX, "--demo", *arguments], cwd=tmp_path)

    assert " ".join(arguments).startswith(command)
    assert run.returncode == 0, run.stderr
    assert run.stdout or list(tmp_path.iterdir())
    assert "No sessions" not in run.stdout


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("columns", ["60", "80", "160"])
def test_it_fits_the_terminal(script_runner, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", columns)
    said = script_runner.run([AMUX, *command.split(), "--help"]).stdout

    assert max(map(len, said.splitlines())) <= int(columns)
    assert "..." not in said.partition("Commands:")[2]
    assert not re.search(r"<str>|<path>|range|\{|\[\]", said)
