"""Tags of amux's own: the file they are kept in, and where they show."""

import fcntl
import json
import multiprocessing
import os
import shutil
import stat
import threading
from datetime import UTC, datetime, timedelta

import pytest

from amux import tags
from amux.cli import run
from amux.errors import InvalidValue
from amux.manager import SessionManager
from amux.query import Query
from amux.readers._base import Host
from amux.tags import Target, checked, tag_file

PARENT, FORK = "7d0cfea6-16a5-4ba2-9b89-d387df82d8ea", "ee3fbb80-0b42-43de-ab82-e9f5222da0f9"
OTHER = "11111111-2222-4333-8444-555555555555"
FORKED_AT = datetime(2026, 11, 18, 6, 8, 15, tzinfo=UTC)
"""When the fork of the corpus began, to the second."""


@pytest.fixture
def home(corpus, tmp_path):
    where = tmp_path / "home"
    for path in corpus.scenarios("claude"):
        if path.name in ("fork", "named", "subagent"):
            shutil.copytree(path / "home", where, dirs_exist_ok=True)
    return where


@pytest.fixture
def tagged(home):
    """The tags of each claude session, by the beginning of its id; the corpus gives it none."""

    def read() -> dict[str, list[str]]:
        manager = SessionManager(Host(home, {}), cache=False)
        found = manager.list(Query(agents=("claude",), subagents=True))
        return {one.session_id[:4]: list(one.tags) for one in found if one.tags}

    return read


@pytest.fixture
def amux(home, capfd):
    def call(*arguments: str) -> tuple[int, str, str]:
        status = run(["--home", str(home), *arguments])
        told = capfd.readouterr()
        return status, told.out, told.err

    return call


def test_tags_are_given_and_taken_away(amux, tagged):
    status, out, _ = amux("sessions", "tag", "claude", PARENT[:6], "release", "ünï-1", "release")
    assert (status, out) == (0, f"claude:{PARENT}: release, ünï-1\n")
    amux("sessions", "tag", f"claude:{OTHER}", "other")
    _, out, _ = amux("sessions", "tag", f"claude:{PARENT}", "release", "--remove", "--json")
    _, listed, _ = amux("sessions", "list", "claude", "--tag", "ünï-1", "--json")

    assert [json.loads(out)] == json.loads(listed)
    assert tagged() == {PARENT[:4]: ["ünï-1"], OTHER[:4]: ["other"]}


def test_tags_choose_sessions_everywhere(amux):
    amux("sessions", "tag", "claude", PARENT, "release")
    _, listed, _ = amux("sessions", "list", "claude", "--tag", "release", "--json")
    _, found, _ = amux("sessions", "search", "marmalade", "--agent", "claude", "--tag", "release", "--json")
    _, cost, _ = amux("cost", "report", "--agent", "claude", "--group-by", "tag", "--json")

    assert [one["sessionId"] for one in json.loads(listed)] == [PARENT]
    assert [one["sessionId"] for one in json.loads(found)] == [PARENT]
    assert set(json.loads(cost)["breakdowns"]) == {"release", "(untagged)"}


@pytest.mark.parametrize(
    "name", ["", " ", "two words", "tab\t", "esc\x1b", "bidi\u202e", "half\ud800", "x" * 65, "no\u00a0break"]
)
def test_what_is_no_tag(name):
    with pytest.raises(InvalidValue):
        checked([name])


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["claude", PARENT], 2),
        ([f"claude:{PARENT}"], 2),
        (["claude", "zzzz", "x"], 8),
        (["claude", "a34a2631", "x"], 2),
    ],
)
def test_what_cannot_be_tagged(amux, words, status):
    assert amux("sessions", "tag", *words)[0] == status
    assert not tag_file().exists()


def test_a_tag_of_the_agents_own_stays(corpus, tmp_path, capfd):
    case = corpus.open_case(next(path for path in corpus.scenarios("droid") if path.name == "one-tool"), tmp_path)
    (id,) = case.listed()
    command = ["--home", str(case.home), "sessions", "tag", "droid", id]
    assert run([*command, "mine"]) == 0
    assert run([*command, "mine", "exec", "--remove"]) == 2
    assert "exec" in capfd.readouterr().err
    assert run([*command, "mine", "--remove"]) == 0


# The file


def test_the_file_is_the_users_own():
    tags.note(Target(agent="claude", session_id="x"), ["a"])

    assert stat.S_IMODE(tag_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(tag_file().parent.stat().st_mode) == 0o700


def test_broken_lines_cost_only_themselves(amux, tagged):
    amux("sessions", "tag", "claude", PARENT, "first")
    with tag_file().open("ab") as file:
        file.write(
            b'[1]\nnull\n\xff\xfe{"v"\n{"v":2,"agent":"claude","sessionId":"'
            + PARENT.encode()
            + b'","add":["later"]}\n'
        )
        file.write(b'{"v":1,"agent":"claude","sessionId":"' + PARENT.encode() + b'","add":["ok",5,null,"two words"]}\n')
        file.write(b'{"v":1,"agent":7,"sessionId":[],"add":"x"}\n{"v":1,"agent":"claude","torn')
    amux("sessions", "tag", "claude", PARENT, "last")

    assert tagged() == {PARENT[:4]: ["first", "last", "ok"]}


def note_many(path: str, writer: int) -> None:
    os.environ["XDG_DATA_HOME"] = path
    for number in range(50):
        tags.note(Target(agent="claude", session_id=f"{writer}"), [f"{writer}-{number}-{'x' * 40}"])


def test_writers_do_not_tear_each_others_lines(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=note_many, args=(str(tmp_path), number)) for number in range(3)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    lines = tag_file().read_bytes().splitlines()

    assert len(lines) == 150
    assert all(json.loads(line)["v"] == 1 for line in lines)


def test_a_writer_waits_for_the_other():
    tags.note(Target(agent="claude", session_id="x"), ["a"])
    with tag_file().open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        other = threading.Thread(target=tags.note, args=(Target(agent="claude", session_id="x"), ["b"]))
        other.start()
        other.join(0.3)
        assert other.is_alive()
    other.join(10)

    assert len(tag_file().read_bytes().splitlines()) == 2


def test_a_directory_that_cannot_be_written_is_an_error(amux, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    status, _, error = amux("sessions", "tag", "claude", PARENT, "x")

    assert status == 1
    assert error.startswith("amux: cannot keep the tags: ")


# Sessions that are not there yet


def test_a_tagged_fork_is_the_next_one_that_begins(tagged):
    tags.note(Target(agent="claude", fork_of=PARENT), ["try"], now=FORKED_AT - timedelta(minutes=5))

    assert tagged() == {FORK[:4]: ["try"]}


@pytest.mark.parametrize(
    ("target", "now"),
    [
        (Target(agent="claude", fork_of=PARENT), FORKED_AT + timedelta(minutes=5)),
        (Target(agent="claude", fork_of=PARENT), FORKED_AT - timedelta(days=2)),
        (Target(agent="claude", fork_of=FORK), FORKED_AT - timedelta(minutes=5)),
        (Target(agent="codex", fork_of=PARENT), FORKED_AT - timedelta(minutes=5)),
        (Target(agent="claude", started_in="/home/dev/work/blog"), FORKED_AT - timedelta(minutes=5)),
    ],
)
def test_a_session_that_never_came_has_no_tags(tagged, target, now):
    tags.note(target, ["try"], now=now)

    assert tagged() == {}


def test_a_session_begun_in_a_directory_is_tagged(tagged, tmp_path, home):
    """Told by a link, recorded without it."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    transcript = next(path for path in home.rglob(f"{OTHER}.jsonl"))
    transcript.write_bytes(transcript.read_bytes().replace(b"/home/dev/work/shop", str(real).encode()))
    tags.note(Target(agent="claude", started_in=str(link)), ["new"], now=FORKED_AT - timedelta(hours=1))

    assert tagged() == {OTHER[:4]: ["new"]}


def test_resume_and_fork_take_tags(home, tmp_path, monkeypatch, capfd):
    """Only what is started is tagged: a line that is printed may never be run."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    started = []
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr("amux.launch.become", lambda launch: started.append(launch) or 0)
    for verb in ("resume", "fork"):
        for option in ("--print", "--json", "--yes"):
            run(["sessions", verb, "claude", PARENT, "--tag", f"{verb}{option}", "--cwd", str(tmp_path), option])
    lines = [json.loads(line) for line in tag_file().read_bytes().splitlines()]

    assert [list(line)[3:] for line in lines] == [["sessionId", "add"], ["forkOf", "add"]]
    assert [line["add"] for line in lines] == [["resume--yes"], ["fork--yes"]]
    assert [launch.argv[-1] for launch in started] == [PARENT, "--fork-session"]
