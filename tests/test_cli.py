"""The installed command: stdout, stderr, exit status."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

AMUX = str(Path(sys.executable).with_name("amux"))
"""The command as installed beside this Python."""


class TextFile(SingleFileSnapshotExtension):
    """One text file a case, under snapshots/ at the top."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    @classmethod
    def dirname(cls, *, test_location) -> str:
        return str(Path(__file__).parents[1] / "snapshots" / Path(test_location.filepath).stem)


@pytest.fixture
def snapshot(snapshot):
    return snapshot.use_extension(TextFile)


@pytest.fixture
def home(corpus, tmp_path):
    """A home with a few sessions, a fork and a sub-agent, as Claude Code left them."""
    where = tmp_path / "home"
    for path in corpus.scenarios("claude"):
        if path.name in ("fork", "subagent", "named"):
            shutil.copytree(path / "home", where, dirs_exist_ok=True)
    return where


@pytest.fixture
def amux(script_runner, home):
    def run(*arguments: str, **options):
        return script_runner.run([AMUX, "--home", str(home), *arguments], **options)

    return run


def clean(text: str, home: Path) -> str:
    return text.replace(str(home), "~")


@pytest.mark.parametrize(
    "command",
    [
        "sessions list claude",
        "sessions list claude --json",
        "sessions list claude --tree",
        "sessions list claude --subagents --sort turns --asc",
        "sessions list claude --limit 1",
        "sessions show claude latest",
        "sessions show claude 7d0c --format json",
        "sessions show claude 7d0c --format jsonl",
        "sessions show claude:ee3f --tools full --thinking",
        "sessions search marmalade --agent claude",
        "sessions search marmalade --agent claude --json",
        "cost report --agent claude",
        "cost report --agent claude --json",
        "cost report --agent claude --group-by model,day --json",
        "cost report --agent claude --group-by session",
    ],
    ids=lambda command: command.replace(":", " "),
)
def test_answers(amux, home, snapshot, command):
    run = amux(*command.split())

    assert run.returncode == 0
    assert f"$ amux {command}\n{clean(run.stdout, home)}{clean(run.stderr, home)}" == snapshot


@pytest.mark.parametrize(
    ("command", "status", "code"),
    [
        ("sessions list nope", 3, "AGENT_NOT_FOUND"),
        ("sessions show nope 1234", 3, "AGENT_NOT_FOUND"),
        ("sessions show nope:1234", 3, "AGENT_NOT_FOUND"),
        ("cost report --agent nope", 3, "AGENT_NOT_FOUND"),
        ("sessions show claude zzzz", 8, "SESSION_NOT_FOUND"),
        ("sessions show claude:zzzz", 8, "SESSION_NOT_FOUND"),
        ("sessions show claude:", 2, "VALIDATION_ERROR"),
        ("sessions show claude", 2, "VALIDATION_ERROR"),
        ("sessions show claude 7", 2, "VALIDATION_ERROR"),
        ("sessions list --since neverland", 2, "VALIDATION_ERROR"),
        ("sessions list --sort colour", 2, "VALIDATION_ERROR"),
        ("sessions list --limit -1", 2, "VALIDATION_ERROR"),
        ("sessions list --nope", 2, "VALIDATION_ERROR"),
        ("cost report --group-by mood", 2, "VALIDATION_ERROR"),
        ("session list", 2, "VALIDATION_ERROR"),
    ],
)
def test_errors_name_the_thing_and_have_a_status(amux, home, command, status, code):
    run = amux(*command.split())
    as_json = amux(*command.split(), "--json")

    assert (run.returncode, run.stdout) == (status, "")
    assert run.stderr.startswith("amux: ")
    assert run.stderr.count("\n") == 1
    assert (as_json.returncode, as_json.stdout) == (status, "")
    assert json.loads(as_json.stderr)["error"]["code"] == code


def test_a_prefix_of_several_sessions_is_an_error_that_lists_them(amux, home):
    project = next(home.glob(".claude/projects/*"))
    for number in (1, 2):
        source = next(project.glob("7d0cfea6*.jsonl"))
        shutil.copy(source, project / f"7d0cfea6-16a5-4ba2-9b89-00000000000{number}.jsonl")
    run = amux("sessions", "show", "claude", "7d0cfea6-16a5-4ba2-9b89-0000")

    assert run.returncode == 2
    assert "claude:7d0cfea6-16a5-4ba2-9b89-000000000001, claude:7d0cfea6-16a5-4ba2-9b89-000000000002" in run.stderr


def test_one_unreadable_session_does_not_hide_the_others(amux, home):
    if os.geteuid() == 0:
        broken = home / ".claude" / "__store.db"
        broken.write_bytes(b"no database at all")
    else:
        broken = next(home.glob(".claude/projects/*/7d0c*.jsonl"))
        broken.chmod(0)
    listed = amux("sessions", "list", "claude", "--json")
    told = amux("sessions", "list", "claude", "-v")

    assert len(json.loads(listed.stdout)) >= 3
    assert listed.stderr == "amux: 1 session could not be read (-v shows which)\n"
    assert str(broken) in told.stderr
    assert listed.returncode == told.returncode == 0


@pytest.mark.parametrize("command", ["sessions list", "sessions search x", "cost report", "agents"])
def test_an_agent_that_was_never_used_has_no_sessions(script_runner, tmp_path, command):
    run = script_runner.run([AMUX, "--home", str(tmp_path), *command.split(), "--json"])

    assert (run.returncode, run.stderr) == (0, "")
    if command != "agents":
        assert json.loads(run.stdout) in ([], {"sessionCount": 0, "runCount": 0, "callCount": 0, "unpriced": {}})


def test_search_for_an_unknown_agent_finds_nothing(amux):
    run = amux("sessions", "search", "marmalade", "--agent", "nope", "--json")

    assert (run.returncode, run.stdout.strip()) == (0, "[]")


def test_options_of_amux_itself_may_follow_the_command(script_runner, home):
    before = script_runner.run([AMUX, "--json", "--no-cache", "--home", str(home), "sessions", "list"])
    after = script_runner.run([AMUX, "sessions", "list", "--home", str(home), "--no-cache", "--json"])

    assert before.stdout == after.stdout
    assert len(json.loads(after.stdout)) == 4


def test_ids_from_a_loop_programs_file(corpus, script_runner, tmp_path):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "sdk-agentloop"), tmp_path)
    loop = next(case.home.rglob("agentloop.json"))
    ids = json.loads(loop.read_text())["session_ids"]
    loop.write_text(json.dumps({"session_ids": [*reversed(ids), ids[0], "00000000-0000-4000-8000-000000000000"]}))
    run = script_runner.run(
        [AMUX, "--home", str(case.home), "sessions", "list", "claude", "--ids-from", str(loop), "--json"]
    )

    assert [one["sessionId"] for one in json.loads(run.stdout)] == list(dict.fromkeys(reversed(ids)))
    assert run.stderr == "amux: 00000000-0000-4000-8000-000000000000 has no transcript\n"


def test_here_is_the_repository_and_its_worktrees(corpus, script_runner, tmp_path, monkeypatch):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "one"), tmp_path)
    repository, worktree = tmp_path / "shop", tmp_path / "shop-wt"
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(repository)]
    repository.mkdir()
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-qm", "x", "--allow-empty"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(worktree)], check=True)
    transcript = next(case.home.rglob("*.jsonl"))
    transcript.write_bytes(transcript.read_bytes().replace(b"/home/dev/work/shop", str(worktree / "sub").encode()))
    (repository / "deep").mkdir()
    command = [AMUX, "--home", str(case.home), "sessions", "list", "--here", "--json"]

    assert len(json.loads(script_runner.run(command, cwd=repository / "deep").stdout)) == 1
    assert len(json.loads(script_runner.run(command, cwd=worktree).stdout)) == 1
    assert json.loads(script_runner.run(command, cwd=tmp_path / "home").stdout) == []


def test_a_closed_pipe_is_a_quiet_end(home):
    run = subprocess.run(
        f"'{AMUX}' --home '{home}' sessions show claude 7d0c --format json | head -c 10",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stderr == ""
    assert len(run.stdout) == 10


ANSWERED = [
    "sessions list",
    "sessions list --json",
    "sessions show claude 7d0c --format json",
    "sessions export claude 7d0c",
    "--version --verbose",
    "--help",
]


def ended(command: list[str], name: str) -> tuple[int, str]:
    """How amux itself ends, and what it says, when nobody reads what it writes to the one or the other stream."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, name: writer}
    run = subprocess.run([AMUX, *command], text=True, check=False, **streams)
    os.close(writer)
    return run.returncode, (run.stderr if name == "stdout" else run.stdout)


@pytest.mark.parametrize("command", ANSWERED)
def test_a_closed_pipe_is_no_failure(home, command):
    assert ended(["--home", str(home), *command.split()], "stdout") == (0, "")


AT_ONCE = [["--version"], ["--complete", "agents", ""]]


@pytest.mark.parametrize("command", AT_ONCE, ids=" ".join)
def test_what_shells_ask_ends_as_commands_do(command):
    def redirected(where: str) -> tuple[int, int]:
        script = ["sh", "-c", f'"$@" {where}', "sh", AMUX, *command]
        run = subprocess.run(script, capture_output=True, text=True, check=False)
        return run.returncode, len(run.stderr.splitlines())

    assert ended(command, "stdout") == (0, "")
    assert redirected(">&-") == (0, 0)
    assert redirected(">/dev/full") == (1, 1)


@pytest.mark.parametrize(
    ("command", "status"),
    [("sessions show claude ffff", 8), ("sessions show nobody 7d0c", 3), ("sessions list --since never", 2), ("x", 2)],
)
def test_where_nothing_can_be_said_the_status_still_tells(home, command, status):
    asked = ["--home", str(home), *command.split()]
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run([AMUX, *asked], stdout=subprocess.PIPE, stderr=full, check=False)

    assert (run.returncode, run.stdout) == (status, b"")
    assert ended(asked, "stderr") == (status, "")


def test_a_note_that_cannot_be_said_does_not_cost_the_answer(amux, home):
    (home / ".claude" / "__store.db").write_bytes(b"no database at all")
    usual = amux("sessions", "list", "--json")

    assert "could not be read" in usual.stderr
    assert ended(["--home", str(home), "sessions", "list", "--json"], "stderr") == (0, usual.stdout)


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
@pytest.mark.parametrize("verb", ["resume", "fork"])
def test_a_command_is_printed_whatever_is_closed(amux, home, verb, closed):
    asked = ["sessions", verb, "claude", "7d0c", "--print"]
    ours, its = pty.openpty()  # at a terminal, where there might be questions
    script = ["sh", "-c", f'"$@" {closed}', "sh", AMUX, "--home", str(home), *asked]
    run = subprocess.run(script, stdin=its, stdout=subprocess.PIPE, stderr=its, text=True, check=False)
    os.close(its)
    os.close(ours)

    assert (run.returncode, run.stdout) == (0, amux(*asked).stdout)


def test_an_interrupt_is_130(home):
    code = """
import os, signal, sys, time
from amux import manager
from amux.cli import main

def ask(*_):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)

manager.SessionManager.ask = ask
sys.argv = ["amux", "sessions", "list"]
main()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (run.returncode, run.stderr) == (130, "")


@pytest.mark.parametrize("command", ["sessions list", "sessions search x", "cost report", "agents"])
def test_a_home_without_sessions_is_told_what_was_looked_for_and_what_to_try(script_runner, tmp_path, command):
    run = script_runner.run([AMUX, *command.split()], env={**os.environ, "HOME": str(tmp_path)})
    said = run.stdout + run.stderr

    assert run.returncode == 0
    assert all(place in said for place in ("~/.claude", "~/.codex", "/opencode", "~/.hermes"))
    assert run.stderr.endswith("try it on sample sessions: amux --demo sessions list\n")


@pytest.mark.parametrize("command", ["sessions list --model nope", "sessions search xyzzy", "cost report --model nope"])
def test_a_home_with_sessions_is_not(amux, command):
    run = amux(*command.split())

    assert (run.returncode, run.stderr) == (0, "")


def test_a_home_may_be_named_by_a_variable(script_runner, home):
    run = script_runner.run([AMUX, "sessions", "list", "--json"], env={**os.environ, "AMUX_HOME": str(home)})

    assert len(json.loads(run.stdout)) == 4
