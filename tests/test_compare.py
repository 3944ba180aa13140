"""diff, on sessions that real agents wrote."""

import json
import sys
from itertools import combinations
from pathlib import Path

import pytest

from amux.diff import departure, difference
from amux.output.differences import plain, summary_line


def test_a_session_against_itself_is_all_the_same(case):
    for id in case.listed():
        session = case.read(id)
        found = difference(session, session)

        assert (found.stats.unchanged, len(found.operations)) == (len(session.messages), len(session.messages))
        assert found.stats.additions == found.stats.removals == found.stats.modifications == 0


def test_a_fork_shares_what_it_inherited_with_its_parent(case):
    for truth in case.sessions:
        if not truth["forkedFrom"]:
            continue
        parent, fork = case.read(truth["forkedFrom"]), case.read(truth["id"])
        found = difference(parent, fork)
        copied = sum(m.inherited and m.role != "system" for m in fork.messages)

        assert found.stats.unchanged >= copied
        assert departure(parent, fork).messages >= copied
        if copied:
            assert "fork of a, left" in plain(found, parent, fork)


def test_the_counts_are_those_of_the_operations(case):
    sessions = [case.read(id) for id in case.listed(subagents=True)]
    for a, b in list(combinations(sessions, 2))[:4]:
        found = difference(a, b)
        kinds = [one.type for one in found.operations]

        assert kinds.count("unchanged") + kinds.count("modify") + kinds.count("remove") == len(a.messages)
        assert kinds.count("unchanged") + kinds.count("modify") + kinds.count("add") == len(b.messages)
        assert str(found.stats.unchanged) in summary_line(found, a, b)


def test_two_agents_on_one_prompt(corpus, tmp_path):
    """The same prompt and the same answer are the same message, whoever wrote them."""
    cases = {}
    for path in corpus.scenarios():
        if (path.parent.name, path.name) in (
            ("claude", "other-cwd"),
            ("codex", "basic"),
            ("pi", "one-tool"),
            ("gemini", "one-prompt"),
        ):
            case = corpus.open_case(path, tmp_path / path.parent.name)
            cases[case.agent] = case.read(next(iter(case.listed())))
    for a, b in combinations(cases.values(), 2):
        found = difference(a, b)

        assert found.a.agent != found.b.agent
        assert len(found.operations) >= max(len(a.messages), len(b.messages))


@pytest.mark.parametrize("stat", [False, True])
def test_the_command(corpus, script_runner, tmp_path, stat):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "fork"), tmp_path)
    parent, fork = (one["id"] for one in case.sessions)
    amux = str(Path(sys.executable).with_name("amux"))
    command = [
        amux,
        "--home",
        str(case.home),
        "sessions",
        "diff",
        f"claude:{parent}",
        fork[:8],
        "--json",
        *(["--stat"] if stat else []),
    ]
    run = script_runner.run(command)
    answer = json.loads(run.stdout)

    assert run.returncode == 0
    assert (answer if stat else answer["stats"]) == {"removals": 0, "additions": 0, "modifications": 2, "unchanged": 4}
