"""README is true: its commands print what it shows, and it names every command."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

from amux import readers
from amux.cli.app import app

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


def test_it_names_every_command_and_agent():
    for group in app.registered_groups:
        for command in group.typer_instance.registered_commands:
            assert (command.name or command.callback.__name__.rstrip("_")) in README
    for agent in readers.names():
        assert f"`{agent}`" in README


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (TOP / target).exists(), target


def test_the_first_screen_has_the_two_commands():
    first = README.split("\n")[:14]

    assert any(line.strip().startswith("make demo") for line in first)
    assert any(line.strip().startswith("make test") for line in first)
