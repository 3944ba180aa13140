"""What amux says to those who mistype: what is wrong, and what was meant."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from amux.query import GROUPS
from amux.schema import schemas

AMUX = str(Path(sys.executable).with_name("amux"))


def quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


@pytest.fixture
def amux(script_runner, tmp_path):
    def run(command: str, **options):
        return script_runner.run([AMUX, "--home", str(tmp_path), *command.split()], **options)

    return run


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("session lsit", "no such command 'session'; did you mean 'amux sessions list'?"),
        ("session lsit claude --json", "no such command 'session'; did you mean 'amux sessions list'?"),
        ("sessions lsit", "no such command 'lsit'; did you mean 'amux sessions list'?"),
        ("sesions", "no such command 'sesions'; did you mean 'amux sessions'?"),
        ("list claude", "no such command 'list'; did you mean 'amux sessions list'?"),
        ("ls", "no such command 'ls'; did you mean 'amux sessions list'?"),
        ("cost reprot", "no such command 'reprot'; did you mean 'amux cost report'?"),
        ("report", "no such command 'report'; did you mean 'amux cost report'?"),
        ("agent", "no such command 'agent'; did you mean 'amux agents'?"),
        ("xyzzy", "no such command 'xyzzy'; see: amux --help"),
        ("sessions xyzzy", "no such command 'xyzzy'; see: amux sessions --help"),
        ("sessions list --sicne 1d", "no such option '--sicne'; did you mean '--since'?"),
        ("sessions list --dmeo", "no such option '--dmeo'; did you mean '--demo'?"),
        ("--dmeo sessions list", "no such option '--dmeo'; did you mean '--demo'?"),
        ("sessions show claude latest --jsno", "no such option '--jsno'; did you mean '--json'?"),
        ("agents --xyzzy", "no such option '--xyzzy'; see: amux agents --help"),
        ("sessions list cluade", "no agent is called 'cluade'; did you mean 'claude'?"),
        ("sessions show cluade:latest", "no agent is called 'cluade'; did you mean 'claude'?"),
        ("sessions resume claude latest --in cdoex", "no agent is called 'cdoex'; did you mean 'codex'?"),
        ("cost report --agent gmini", "no agent is called 'gmini'; did you mean 'gemini'?"),
        (
            "sessions list --sort tunrs",
            "invalid value for '--sort': 'tunrs' is not one of 'date', 'cost', 'turns'; did you mean 'turns'?",
        ),
        (
            "sessions list --sort xyzzy",
            "invalid value for '--sort': 'xyzzy' is not one of 'date', 'cost', 'turns'; see: amux sessions list --help",
        ),
        (
            "sessions show claude latest --format mardkown",
            "invalid value for '--format': 'mardkown' is not one of 'markdown', 'json', 'jsonl'; did you mean 'markdown'?",
        ),
        (
            "cost report --group-by agent,mdoel",
            f"invalid value for '--group-by': 'mdoel' is not one of {quoted(GROUPS)}; did you mean 'model'?",
        ),
        (
            "schema sumary",
            f"invalid value for 'NAME': 'sumary' is not one of {quoted(schemas())}; did you mean 'summary'?",
        ),
        (
            "cost report --timezone Europe/Brelin",
            "no time zone is called 'Europe/Brelin'; did you mean 'Europe/Berlin'?",
        ),
        ("cost report --timezone xyzzy", "no time zone is called 'xyzzy'; they are named like Europe/Berlin or UTC"),
        (
            "sessions list --limit x",
            "invalid value for '--limit': 'x' is no whole number from 0 on; see: amux sessions list --help",
        ),
        (
            "sessions show claude latest --head=-1",
            "invalid value for '--head': '-1' is no whole number from 0 on; see: amux sessions show --help",
        ),
        ("sessions list --sort", "option '--sort' requires an argument; see: amux sessions list --help"),
        ("sessions list claude codex", "unexpected argument: codex; see: amux sessions list --help"),
        ("sessions show", "missing argument 'AGENT'; see: amux sessions show --help"),
        ("sessions search", "missing argument 'QUERY'; see: amux sessions search --help"),
        ("sessions show 12345678", "no agent has a session that begins with '12345678'; amux sessions list shows them"),
        ("sessions show latest", "there are no sessions; amux agents shows where they were looked for"),
    ],
)
def test_a_mistake_is_named_and_put_right(amux, command, said):
    run = amux(command)

    assert run.stdout == ""
    assert run.returncode in (2, 3, 8)
    assert said in run.stderr
    assert run.stderr.count("\n") == 1
    if "--json" not in command:
        assert run.stderr == f"amux: {said}\n"


def test_a_word_that_may_be_meant_as_an_option_is_searched_for_and_said(amux):
    run = amux("sessions search retry --agnet claude")

    assert run.returncode == 0
    assert "amux: looked for '--agnet' as a word; did you mean --agent?\n" in run.stderr


def test_a_flag_somebody_searches_for_is_no_mistake(amux):
    assert "did you mean" not in amux("sessions search --no-verify --amend").stderr


@pytest.mark.parametrize("command", ["", "sessions", "cost"])
def test_half_a_command_shows_what_there_is(amux, command):
    run = amux(command)

    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == amux(f"{command} --help").stdout


@pytest.mark.parametrize("value", ["1", "0", "no", "whatever"])
def test_any_value_of_no_color_is_a_value(amux, value):
    assert amux("agents", env={"NO_COLOR": value}).returncode == 0


@pytest.mark.parametrize("words", ["marmalade -push", "marmalade -hindi", "-why marmalade"])
def test_a_word_to_leave_out_is_no_cluster_of_options(amux, words):
    run = amux(f"sessions search {words} --json")

    assert json.loads(run.stdout) == []  # an empty home
    assert run.returncode == 0


def test_help_for_search_is_there_by_either_name(amux):
    assert amux("sessions search -h").stdout == amux("sessions search --help").stdout
