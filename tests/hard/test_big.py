"""Big: one huge session, and very many small ones: every command ends, within the memory it may have.

`AMUX_SOAK=1` takes a session of 200 MB with 100,000 messages and 50,000 sessions; `-s` then prints what each command took.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from ..bench import store
from . import law
from .commands import AMUX, Place, offered

MESSAGES, BYTES = (100_000, 200_000_000) if law.SOAK else (2_000, 4_000_000)
SESSIONS, MEGABYTES = (50_000, 500) if law.SOAK else (800, 8)
MOST = 1_200_000_000
MEASURE = """
import json, os, resource, subprocess, sys, time
began = time.monotonic()
status = subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], "wb"), check=False).returncode
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(json.dumps([status, time.monotonic() - began, most]))
"""
"""A process of its own: what a child took at most includes what its parent had when it was started."""


def measured(place: Place, *arguments: str) -> tuple[bytes, float, int]:
    """What a command printed, how long it took, and the most memory one of its processes had."""
    out = place.own / "out"
    command = [sys.executable, "-c", MEASURE, str(out), AMUX, *place.command(*arguments)]
    run = subprocess.run(command, env=place.environment, cwd=place.own, capture_output=True, text=True, check=False)
    status, seconds, most = json.loads(run.stdout)
    assert status == 0, run.stderr
    sys.stderr.write(f"\n{' '.join(arguments):70.70} {seconds:7.2f} s {most / 2**20:6.0f} MB")
    return out.read_bytes(), seconds, most


# One huge session


def records(count: int, size: int, id: str) -> Iterator[bytes]:
    """The lines of a conversation in the shape of Claude Code: a prompt, a call, its result, an answer, and again."""
    parent = None
    for step, (kind, message) in enumerate(spoken(count, size // count)):
        uuid = str(UUID(int=step + 1))
        record = {
            "parentUuid": parent,
            "isSidechain": False,
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_790_000_000 + step)),
            "cwd": "/home/dev/work/shop",
            "sessionId": id,
            "version": "2.1.326",
        }
        yield json.dumps(record).encode() + b"\n"
        parent = uuid


def spoken(count: int, size: int) -> Iterator[tuple[str, dict]]:
    for number in range(count // 4):
        text = f"marmalade word number {number} of a long text " * (size // 40)
        call = f"call{number}"
        yield "user", {"role": "user", "content": f"prompt {number} {text[:200]}"}
        yield (
            "assistant",
            answer(2 * number, {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}}),
        )
        yield "user", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text * 2}]}
        yield "assistant", answer(2 * number + 1, {"type": "text", "text": text})


def answer(number: int, block: dict) -> dict:
    usage = {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 0}
    return {"id": f"msg_{number}", "role": "assistant", "model": "claude-opus-5-5", "content": [block], "usage": usage}


@pytest.fixture(scope="module")
def huge(tmp_path_factory) -> Place:
    where = tmp_path_factory.mktemp("huge")
    id = "00000000-0000-4000-8000-000000000001"
    path = where / "home" / ".claude" / "projects" / "-home-dev-work-shop" / f"{id}.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.writelines(records(MESSAGES, BYTES, id))
    assert path.stat().st_size > BYTES * 0.9
    (where / "own").mkdir()
    return Place(where / "home", where / "own")


def test_a_huge_session_is_listed_searched_costed_shown_and_exported(huge):
    found: list[tuple[str, ...]] = [
        ("sessions", "list", "--json"),
        ("sessions", "list", "--json", "--no-cache"),
        ("sessions", "search", "marmalade 17", "--json"),
        ("sessions", "search", "--regex", "number 17 of a l.ng", "--json"),
        ("cost", "report", "--json"),
        ("sessions", "show", "claude", "latest"),
        ("sessions", "show", "claude", "latest", "--tools", "full"),
        ("sessions", "show", "claude", "latest", "--tail", "2"),
        ("sessions", "show", "claude", "latest", "--format", "json"),
        ("sessions", "show", "claude", "latest", "--format", "jsonl"),
    ]
    if "export" in offered():
        forms = ("json", "jsonl", "markdown", "html")
        found += [("sessions", "export", "claude", "latest", "--format", one, "--output", f"x.{one}") for one in forms]
        found.append(("sessions", "export", "claude", "latest", "--format", "json", "--raw", "--output", "raw.json"))
        found.append(
            ("sessions", "export", "claude", "latest", "--format", "markdown", "--redact", "--output", "redacted.md")
        )
    answers = {}
    for arguments in found:
        told, _, most = measured(huge, *arguments)
        answers[arguments] = told

        assert most < MOST, arguments
    listed = json.loads(answers[found[0]])
    assert [one["messageCount"] for one in listed] == [MESSAGES]
    assert answers[found[0]] == answers[found[1]]
    assert json.loads(answers[found[4]])["callCount"] == MESSAGES // 2
    for arguments in found[2:4]:
        assert len(json.loads(answers[arguments])) == 1, arguments
    assert answers[found[9]].count(b"\n") == MESSAGES + 1


def test_a_huge_session_can_be_compared_with_itself(huge):
    if "diff" not in offered():
        pytest.skip("there is no diff")
    told, _, most = measured(huge, "sessions", "diff", "claude:00000000", "claude:00000000", "--json")

    assert most < 2 * MOST  # two of them
    assert json.loads(told)["stats"]["unchanged"] == MESSAGES


# Very many sessions


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> tuple[Place, store.Planted]:
    where = tmp_path_factory.mktemp("many")
    planted = store.build(where, SESSIONS, MEGABYTES)
    (where / "own").mkdir()
    return Place(where / "home", where / "own"), planted


def test_very_many_sessions_are_listed_searched_and_costed(many):
    place, planted = many
    ids = {
        (one["agent"], one["sessionId"])
        for one in json.loads(measured(place, "sessions", "list", "--limit", "0", "--json")[0])
    }

    assert len(ids) == planted.sessions
    commands = [
        ("sessions", "list"),
        ("sessions", "list", "--limit", "0"),
        ("sessions", "list", "--limit", "0", "--tree"),
        ("sessions", "list", "--limit", "0", "--sort", "cost", "--subagents", "--json"),
        ("sessions", "search", planted.rare.text, "--json"),
        ("sessions", "search", planted.common.text, "--limit", "0", "--json"),
        ("sessions", "search", "nowhere-at-all;", "--json"),
        ("cost", "report", "--json"),
        ("cost", "report", "--group-by", "session", "--json"),
        ("cost", "report", "--group-by", "day,model", "--json"),
        ("sessions", "show", "claude", "latest"),
        ("agents", "--json"),
    ]
    told = {}
    for arguments in commands:
        told[arguments], _, most = measured(place, *arguments)

        assert most < MOST, arguments
    assert {one["unifiedId"] for one in json.loads(told[commands[4]])} == set(planted.rare.sessions)
    assert {one["unifiedId"] for one in json.loads(told[commands[5]])} == set(planted.common.sessions)
    assert json.loads(told[commands[7]])["callCount"] == sum(planted.calls.values())
    assert len(told[commands[1]].splitlines()) == planted.sessions + 1


def test_very_many_sessions_are_exported(many):
    if "export" not in offered():
        pytest.skip("there is no export")
    place, planted = many
    measured(place, "sessions", "export", "--all", "--format", "jsonl", "--output", str(place.own / "all"), "--force")

    assert len(list((place.own / "all").glob("*.jsonl"))) == planted.sessions


def test_one_directory_may_hold_very_many_entries(tmp_path):
    """Empty files and files of other kinds beside the sessions."""
    project = tmp_path / "home" / ".claude" / "projects" / "-x"
    project.mkdir(parents=True)
    for number in range(200_000 if law.SOAK else 5_000):
        with closing(os.fdopen(os.open(project / f"{UUID(int=number)}.jsonl", os.O_CREAT | os.O_WRONLY), "wb")):
            pass
    (tmp_path / "own").mkdir()
    place = Place(Path(tmp_path / "home"), tmp_path / "own")

    assert json.loads(measured(place, "sessions", "list", "--json")[0]) == []
