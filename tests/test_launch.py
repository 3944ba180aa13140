"""Resume and fork: what is started, where, with what; what is said before; what is refused."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from amux import readers
from amux.errors import AgentNotInstalled, CapabilityError, InvalidValue
from amux.launch import Launch, Wish, carried_on, ended, shell_line, version_of
from amux.model import SessionSummary
from amux.preflight import GitPlace, around, git_place, of_session
from amux.readers._base import Host, Reader

AMUX = [sys.executable, "-m", "amux"]
RECORDED = "/home/dev/work/shop"
"""Where the sessions of the corpus ran."""
ANSWER = 7
"""The exit status of the recording programs."""


# Programs that record how they were started


@pytest.fixture
def programs(tmp_path):
    """Puts programs on a PATH of their own; each writes down how it was started."""
    folder = tmp_path / "bin"
    folder.mkdir()
    source = f"""\
        #!{sys.executable}
        import json, os, sys
        told = {{"argv": [os.path.basename(sys.argv[0]), *sys.argv[1:]], "cwd": os.getcwd(), "env": dict(os.environ)}}
        with open({str(tmp_path / "started.json")!r}, "w") as file:
            json.dump(told, file)
        sys.exit({ANSWER})
        """

    def add(*names: str) -> Path:
        for name in names:
            (folder / name).write_text(textwrap.dedent(source))
            (folder / name).chmod(0o755)
        return folder

    return add


@pytest.fixture
def started(tmp_path):
    def read() -> dict | None:
        path = tmp_path / "started.json"
        return json.loads(path.read_text()) if path.exists() else None

    return read


@pytest.fixture
def place():
    """A directory whose path is as long as the recorded one: it can stand for it in any file, databases included."""
    prefix = "/tmp/amux-"
    path = tempfile.mkdtemp(prefix="amux-".ljust(len(RECORDED) - len(prefix) - 8 + 5, "w"), dir="/tmp")
    assert len(path) == len(RECORDED)
    yield path
    shutil.rmtree(path)


def moved_to(home: Path, directory: str) -> None:
    """Make the sessions of a home ones that ran in another directory, long ago."""
    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    for path in [path for path in files if path.read_bytes().startswith(b"SQLite format 3\0")]:
        db = sqlite3.connect(path)
        db.execute("pragma journal_mode = delete")
        db.close()
    for path in filter(Path.exists, files):
        path.write_bytes(path.read_bytes().replace(RECORDED.encode(), directory.encode()))
        os.utime(path, (0, 0))


def environment(home: Path, programs: Path, env: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    system = os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"])
    return {**kept, "HOME": str(home), "PATH": f"{programs}{os.pathsep}{system}", "AMUX_TEST": "passed on", **env}


@pytest.fixture
def amux(tmp_path):
    """Runs the command in a home of its own, below no terminal."""

    def run(home: Path, programs: Path, *arguments: str, env: dict[str, str] | None = None, cwd: Path | None = None):
        return subprocess.run(
            [*AMUX, "sessions", *arguments],
            env=environment(home, programs, env or {}),
            cwd=cwd or tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def claude(corpus, tmp_path, place):
    """A home with a session, its fork and a sub-agent, in a directory that is there."""
    home = tmp_path / "home"
    for path in corpus.scenarios("claude"):
        if path.name in ("fork", "subagent"):
            shutil.copytree(path / "home", home, dirs_exist_ok=True)
    moved_to(home, place)
    return home


PARENT, FORK, SUBAGENT = "7d0cfea6-16a5-4ba2-9b89-d387df82d8ea", "ee3fbb80-0b42-43de-ab82-e9f5222da0f9", "a34a2631"


# Every agent: current and old sessions

ID, FILE = "<id>", "<file>"
COMMANDS = {
    ("agent", "one-tool"): ("agent -session <id 8>", None),
    ("agent", "sqlite-resume"): ("agent chat --session <id>", None),
    ("claude", "one"): ("claude --resume <id>", "claude --resume <id> --fork-session"),
    ("claude", "resume-subagent-1.0.72"): ("claude --resume <id>", "claude --resume <id> --fork-session"),
    ("claude", "config-dir"): ("claude --resume <id>", "claude --resume <id> --fork-session"),
    ("codex", "basic"): ("codex resume <id>", "codex fork <id>"),
    ("codex", "resume-0.58"): ("codex resume <id>", "codex fork <id>"),
    ("codex", "bare-0.20"): (None, None),
    ("copilot", "basic"): ("copilot --resume=<id>", None),
    ("copilot", "resume-0.0.420"): ("copilot --resume=<id>", None),
    ("cursor", "cli-store"): ("cursor-agent --resume=<id>", None),
    ("cursor", "ide-composer"): (None, None),
    ("droid", "one-tool"): ("droid --resume <id>", "droid --fork <id>"),
    ("gemini", "one-prompt"): ("gemini --resume <id>", "gemini --session-file <file>"),
    ("gemini", "slug-json-0.36.0"): ("gemini --resume <id>", "gemini --session-file <file>"),
    ("hermes", "one-tool-wal"): ("hermes --resume=<id>", None),
    ("omp", "one-tool"): ("omp --resume <id>", "omp --fork <id>"),
    ("omp", "profile"): ("omp --profile work --resume <id>", "omp --profile work --fork <id>"),
    ("openclaw", "one-tool"): ("openclaw tui --session=agent:main:main", None),
    ("openclaw", "jsonl-2026.5.28"): ("openclaw tui --session=agent:main:main", None),
    ("opencode", "one-tool-wal"): ("opencode --session <id>", "opencode --session <id> --fork"),
    ("opencode", "one-tool-1.1.65"): ("opencode --session <id>", "opencode --session <id> --fork"),
    ("pi", "one-tool"): ("pi --session <id>", "pi --fork <id>"),
    ("pi", "fork-0.73.1"): ("pi --session <id>", "pi --fork <id>"),
    ("pi", "agent-dir-env"): ("pi --session <id>", "pi --fork <id>"),
}
"""What each agent's own help says resumes and forks a session; None: it cannot."""


def expected(command: str, session: SessionSummary) -> list[str]:
    spelled = command.replace("<id 8>", session.session_id[:8]).replace(ID, session.session_id)
    return [session.path if word == FILE else word for word in spelled.split(" ")]


@pytest.mark.parametrize(("agent", "scenario"), COMMANDS, ids=[f"{agent}-{scenario}" for agent, scenario in COMMANDS])
@pytest.mark.parametrize("verb", ["resume", "fork"])
def test_every_agent_is_started_with_its_own_arguments(
    amux, corpus, programs, started, place, tmp_path, agent, scenario, verb
):
    """Resumed where it ran, forked in a directory it was moved to; the environment is the user's."""
    case = corpus.open_case(next(path for path in corpus.scenarios(agent) if path.name == scenario), tmp_path)
    moved_to(case.home, place)
    session = next(one for one in case.listed().values() if one.cwd in (place, None))
    command = COMMANDS[agent, scenario][verb == "fork"]
    elsewhere = tmp_path / "mö ved 'x'"
    elsewhere.mkdir()
    chosen = ["--cwd", str(elsewhere)] if verb == "fork" or not session.cwd else []
    run = amux(
        case.home, programs(readers.reader_class(agent).program), verb, agent, session.session_id, *chosen, env=case.env
    )

    if command is None:
        assert (run.returncode, started()) == (6, None)
        return
    assert run.returncode == ANSWER, run.stderr
    told = started()
    assert told["argv"] == expected(command, session)
    assert os.path.realpath(told["cwd"]) == os.path.realpath(chosen[1] if chosen else place)
    assert told["env"]["PWD"] == (chosen[1] if chosen else place)
    assert told["env"]["AMUX_TEST"] == "passed on"
    assert {name: told["env"][name] for name in case.env} == case.env


def test_every_agent_is_tried():
    """No reader is added without saying here how its sessions are carried on."""
    assert {agent for agent, _ in COMMANDS} == set(readers.names())


# Which session, and what goes with it


@pytest.mark.parametrize(
    ("arguments", "id"),
    [
        (("claude", PARENT[:6]), PARENT),
        ((f"claude:{FORK[:8]}",), FORK),
        (("claude", "latest"), "b4df1bb9-a512-432f-a116-edec9bb69dbe"),
        (("--last", "claude"), "b4df1bb9-a512-432f-a116-edec9bb69dbe"),
    ],
)
def test_a_session_is_named_in_several_ways(amux, claude, programs, arguments, id):
    run = amux(claude, programs("claude"), "resume", *arguments, "--json")

    assert json.loads(run.stdout)["sessionId"] == id


def test_what_follows_the_dashes_goes_to_the_agent(amux, claude, programs, started):
    folder = programs("claude")
    amux(claude, folder, "resume", f"claude:{PARENT}", "--", "--verbose", "--json", "a b", "--", "-x")

    assert started()["argv"] == ["claude", "--resume", PARENT, "--verbose", "--json", "a b", "--", "-x"]


def test_a_model_is_passed_on_or_refused(amux, claude, corpus, programs, started, place, tmp_path):
    amux(claude, programs("claude"), "fork", "claude", PARENT, "--model", "opus")
    droid = corpus.open_case(corpus.scenarios("droid")[0], tmp_path / "other")
    moved_to(droid.home, place)
    run = amux(droid.home, programs("droid"), "resume", "droid", "latest", "--model", "opus")
    option = amux(claude, programs("claude"), "resume", "claude", PARENT, "--model=--dangerous")

    assert started()["argv"] == ["claude", "--model", "opus", "--resume", PARENT, "--fork-session"]
    assert (run.returncode, "leave --model out" in run.stderr) == (6, True)
    assert option.returncode == 2


def test_json_says_what_would_be_started(amux, claude, programs, started, place):
    run = amux(claude, programs("claude"), "resume", "claude", PARENT, "--json", "--", "-x")

    assert json.loads(run.stdout) == {
        "agent": "claude",
        "sessionId": PARENT,
        "argv": ["claude", "--resume", PARENT, "-x"],
        "cwd": place,
        "env": {"PWD": place},
        "warnings": [
            f"the session was forked: claude:{FORK} went on from it",
            f"the session ran on main, and {place} is in no git repository that can be read",
        ],
    }
    assert (run.stderr, started()) == ("", None)


def test_the_printed_line_is_what_would_be_done(amux, claude, programs, started, place):
    folder = programs("claude")
    run = amux(claude, folder, "fork", "claude", PARENT, "--print", "--", "it's $HOME `x`")
    assert started() is None
    subprocess.run(["/bin/sh", "-c", run.stdout], env=environment(claude, folder, {}), check=False)

    assert started()["argv"] == ["claude", "--resume", PARENT, "--fork-session", "it's $HOME `x`"]
    assert started()["env"]["PWD"] == place


ODD = [
    "plain",
    "with blank",
    'it\'s "quoted"',
    "$(touch owned) `touch owned` ; touch owned & |",
    "-n",
    "*?[a]{b,c}~",
    "new\nline\n",
    "\x1b[31mred\x07",
    "carriage\r\nreturn",
    "right\u202eleft",
    "ünï ✨",
    os.fsdecode(b"no utf-8 \xff\xfe"),
    "!bang \\back\\slash %s %d",
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_a_shell_reads_back_any_name(programs, started, tmp_path, shell, odd):
    """The directory and each argument arrive as they are; nothing in them is run, nothing acts upon the terminal."""
    if not (found := shutil.which(shell)):
        pytest.skip(f"no {shell}")
    directory = tmp_path / odd
    directory.mkdir()
    launch = Launch(
        agent="x", session_id="x", argv=("vole", odd, f"--a={odd}", ""), cwd=str(directory), env={}, warnings=()
    )
    line = shell_line(launch)
    folder = programs("vole")
    subprocess.run([found, "-c", line], env={"PATH": f"{folder}:/usr/bin:/bin"}, cwd=tmp_path, check=False)

    assert started()["argv"] == ["vole", odd, f"--a={odd}", ""]
    assert started()["cwd"] == os.path.realpath(directory)
    assert not list(tmp_path.rglob("owned"))
    assert not set(line) & {"\x1b", "\x07", "\r", "\u202e", "\udcff"}


# What is said


def test_what_is_worth_saying_stands_on_stderr_before(amux, corpus, programs, place, tmp_path):
    case = corpus.open_case(next(path for path in corpus.scenarios("codex") if path.name == "basic"), tmp_path)
    moved_to(case.home, place)
    id = next(iter(case.listed()))
    git(place, "init", "-qb", "other")
    run = amux(case.home, programs("codex"), "resume", "codex", id)

    assert run.stderr.splitlines() == [
        "amux: the session ran on main at 9d78d03, you are on other",
        "amux: it ran with approval never, sandbox danger-full-access; codex starts with your own settings",
        f"(cd {place} && codex resume {id})",
    ]
    assert run.stdout == ""


def test_the_mode_of_a_session_is_never_applied(amux, corpus, programs, started, place, tmp_path):
    case = corpus.open_case(next(path for path in corpus.scenarios("codex") if path.name == "basic"), tmp_path)
    moved_to(case.home, place)
    amux(case.home, programs("codex"), "resume", "codex", "latest")

    assert not [word for word in started()["argv"] if word.startswith("-")]


def summary(**known) -> SessionSummary:
    made = SessionSummary(
        agent="vole",
        session_id="abcd1234",
        title="Dig",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        updated_at=datetime(2026, 1, 2, tzinfo=UTC),
        turn_count=1,
        message_count=2,
        cwd="/",
    )
    return replace(made, **known)


def test_says_when_a_session_is_archived_forked_or_lively(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("{}")
    forks = [
        summary(session_id=id, updated_at=datetime(2026, 1, day, tzinfo=UTC)) for id, day in (("f1", 3), ("f2", 4))
    ]
    said = list(of_session(summary(archived=True, forked_from="root1234", path=str(path)), forks))

    assert said[:3] == [
        "the session is archived",
        "the session is a fork of root1234",
        "the session was forked: vole:f2 and 1 more went on from it",
    ]
    assert said[3].endswith("s ago: vole may still be running in it")
    os.utime(path, (0, 0))
    assert list(of_session(summary(path=str(path)), [])) == []


def test_a_database_that_many_share_says_nothing_of_one_session(tmp_path):
    path = tmp_path / "store.db"
    db = sqlite3.connect(path)
    db.execute("create table t (x)")
    db.close()

    assert list(of_session(summary(path=str(path)), [])) == []
    lately = datetime.now(UTC) - timedelta(seconds=3)
    assert len(list(of_session(summary(path=str(path), updated_at=lately), []))) == 1


# Git


def git(directory: str | Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(directory), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    path = tmp_path / "repository"
    (path / "deep" / "er").mkdir(parents=True)
    git(path, "init", "-qb", "main")
    git(path, "commit", "-qm", "x", "--allow-empty")
    return path


def test_git_is_read_without_git(repository, tmp_path):
    commit = git(repository, "rev-parse", "HEAD")
    assert git_place(repository / "deep" / "er") == GitPlace("main", commit)

    git(repository, "worktree", "add", "-qb", "feature/x", str(tmp_path / "tree"))
    assert git_place(tmp_path / "tree") == GitPlace("feature/x", commit)

    git(repository, "pack-refs", "--all")
    assert not (repository / ".git" / "refs" / "heads" / "main").exists()
    assert git_place(repository) == GitPlace("main", commit)
    assert git_place(tmp_path / "tree") == GitPlace("feature/x", commit)

    git(repository, "checkout", "-q", "--detach")
    assert git_place(repository) == GitPlace(None, commit)

    git(repository, "checkout", "-q", "--orphan", "fresh")
    assert git_place(repository) == GitPlace("fresh", None)
    assert git_place(tmp_path) is None


@pytest.mark.parametrize(
    "head", ["", "ref: ../../etc/passwd", "ref: refs/heads/../../x", "ref: refs/heads/.invalid", "\0"]
)
def test_a_strange_head_is_no_place(repository, head):
    (repository / ".git" / "HEAD").write_text(head)

    assert git_place(repository) is None


def test_says_where_git_stands_only_when_it_differs(repository):
    commit = git(repository, "rev-parse", "HEAD")
    cwd = str(repository)

    def said(**known) -> list[str]:
        return list(around(summary(cwd=cwd, **known), cwd))

    assert said() == said(git_branch="main") == said(git_branch="main", git_commit=commit[:8]) == []
    assert said(git_branch="HEAD") == []
    assert said(git_branch="old", git_commit="f" * 40) == ["the session ran on old at fffffff, you are on main"]
    assert said(git_branch="main", git_commit="f" * 40) == [f"the session ran at fffffff, main is at {commit[:7]} now"]
    git(repository, "checkout", "-q", "--detach")
    assert said(git_branch="main") == [f"the session ran on main, you are on {commit[:7]}"]


def test_a_branch_with_controls_in_its_name_does_no_harm(repository):
    (said,) = around(summary(cwd=str(repository), git_branch="\x1b]0;owned\x07"), str(repository))

    assert "\x1b" not in said
    assert "\x07" not in said


# What is refused


def test_a_directory_that_is_gone(amux, corpus, programs, started, tmp_path):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "one"), tmp_path)
    folder = programs("claude")
    run = amux(case.home, folder, "resume", "claude", "latest")
    shown = amux(case.home, folder, "resume", "claude", "latest", "--print")
    wrong = amux(case.home, folder, "resume", "claude", "latest", "--cwd", "nowhere")

    assert (run.returncode, wrong.returncode, started()) == (2, 2, None)
    assert run.stderr.splitlines()[-1] == f"amux: {RECORDED} is gone; say where the session goes on: --cwd DIR"
    assert shown.stdout.startswith(f"cd {RECORDED} && claude --resume ")
    assert "is gone" in shown.stderr


def test_a_program_that_is_not_installed(amux, claude, programs):
    run = amux(claude, programs(), "resume", "claude", PARENT)
    as_json = amux(claude, programs(), "resume", "claude", PARENT, "--json")

    assert run.returncode == 4
    assert run.stderr.splitlines()[-1].endswith("install it: npm install -g @anthropic-ai/claude-code")
    assert "claude is not on your PATH" in json.loads(as_json.stdout)["warnings"][-1]


def test_a_program_in_the_directory_of_the_session_is_not_started(amux, claude, programs, started, place):
    """A relative entry of PATH, "." above all, would find what lies there."""
    shutil.copy(programs("claude") / "claude", place)
    (programs() / "claude").unlink()
    near = f".:{place[1:]}:"
    run = amux(claude, programs(), "resume", "claude", PARENT, env={"PATH": f"{near}:/usr/bin:/bin"}, cwd="/")
    assert (run.returncode, started()) == (4, None)
    (programs() / "claude").write_text("#!/bin/sh\necho the right one\n")
    (programs() / "claude").chmod(0o755)
    run = amux(claude, programs(), "resume", "claude", PARENT, env={"PATH": f"{near}:{programs()}"}, cwd="/")

    assert (run.stdout, started()) == ("the right one\n", None)


def test_a_sub_agent_points_to_its_parent(amux, claude, programs, started):
    run = amux(claude, programs("claude"), "resume", "claude", SUBAGENT)

    assert (run.returncode, started()) == (6, None)
    assert "resume its parent: amux sessions resume claude:b4df1bb9-a512-432f-a116-edec9bb69dbe" in run.stderr


def test_an_agent_that_cannot_fork_says_what_to_do(amux, corpus, programs, place, tmp_path):
    case = corpus.open_case(next(path for path in corpus.scenarios("copilot") if path.name == "basic"), tmp_path)
    moved_to(case.home, place)
    run = amux(case.home, programs("copilot"), "fork", "copilot", "latest", "--json")

    assert (run.returncode, run.stdout) == (6, "")
    error = json.loads(run.stderr)["error"]
    assert error["code"] == "CAPABILITY_ERROR"
    assert "/fork" in error["message"]


def test_sessions_of_another_home_are_only_shown(amux, claude, programs, started, tmp_path):
    (tmp_path / "own").mkdir()
    run = amux(tmp_path / "own", programs("claude"), "resume", "claude", PARENT, "--home", str(claude))
    shown = amux(tmp_path / "own", programs("claude"), "resume", "claude", PARENT, "--home", str(claude), "--print")

    assert (run.returncode, shown.returncode, started()) == (2, 0, None)
    assert "--print" in run.stderr
    assert shown.stdout.endswith(f"claude --resume {PARENT}\n")


@pytest.mark.parametrize("arguments", [(), ("claude",), ("--last", "claude", PARENT), ("--last", f"claude:{PARENT}")])
def test_without_a_terminal_a_session_must_be_named(amux, claude, programs, arguments):
    run = amux(claude, programs("claude"), "resume", *arguments)

    assert (run.returncode, run.stdout) == (2, "")
    assert "--last" in run.stderr


class VoleReader(Reader):
    title = "Vole"
    program = "vole"
    install = "npm install -g vole"
    fork_since = "1.2"

    def resume_command(self, session, model):
        return ["vole", "--resume", session.session_id]

    def fork_command(self, session, model):
        return ["vole", "--fork", session.session_id] if session.session_id != "old" else None


@pytest.fixture
def vole(tmp_path):
    return VoleReader("vole", Host(tmp_path, {}))


@pytest.mark.parametrize("id", ["--yolo", "-x", "nul\0"])
def test_an_id_cannot_become_an_option(vole, id):
    with pytest.raises(InvalidValue):
        carried_on(vole, summary(session_id=id), Wish(), "/")


def test_a_session_that_cannot_be_forked_can_be_handed_over(vole):
    with pytest.raises(CapabilityError, match="amux sessions resume vole:old --in vole"):
        carried_on(vole, summary(session_id="old"), Wish(verb="fork"), "/")


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Installs a program as npm does: a link into a package."""

    def install(version: str, commands: object) -> str:
        package = tmp_path / "node_modules" / "@den" / "vole"
        (package / "dist").mkdir(parents=True, exist_ok=True)
        (package / "dist" / "cli.js").write_text("#!/bin/sh\n")
        (package / "dist" / "cli.js").chmod(0o755)
        (package / "package.json").write_text(json.dumps({"name": "@den/vole", "version": version, "bin": commands}))
        link = tmp_path / "linked" / "vole"
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(package / "dist" / "cli.js")
        monkeypatch.setenv("PATH", str(link.parent))
        return str(link)

    return install


@pytest.mark.parametrize(
    ("version", "commands", "told"),
    [
        ("1.1.9", {"vole": "dist/cli.js"}, "1.1.9"),
        ("1.1.9", "dist/cli.js", "1.1.9"),
        ("1.1.9", {"mole": "dist/cli.js"}, None),
        ("1.1.9", ["dist/cli.js"], None),
    ],
)
def test_the_version_is_told_by_the_package(npm, version, commands, told):
    assert version_of(npm(version, commands)) == told


@pytest.mark.parametrize(
    ("version", "old"), [("1.1.9", True), ("0.99.0", True), ("1.2.0", False), ("1.10.0-beta", False)]
)
def test_a_program_too_old_to_fork_is_not_started(vole, npm, version, old):
    npm(version, {"vole": "dist/cli.js"})
    resumed = carried_on(vole, summary(), Wish(), "/")
    forked = carried_on(vole, summary(), Wish(verb="fork"), "/")

    assert resumed.obstacles == ()
    assert [type(one) for one in forked.obstacles] == ([AgentNotInstalled] if old else [])
    assert not old or "1.2 can; update it: npm install -g vole" in str(forked.obstacles[0])


# Becoming the program


def test_the_program_can_be_ended_by_a_closed_pipe(amux, claude, programs):
    """Python ignores SIGPIPE; what it becomes must not."""
    folder = programs()
    (folder / "claude").write_text("#!/bin/sh\nyes | head -n 1\n")
    (folder / "claude").chmod(0o755)
    run = amux(claude, folder, "resume", "claude", PARENT)

    assert (run.returncode, run.stdout) == (0, "y\n")
    assert "ipe" not in run.stderr


def test_a_program_that_cannot_be_run_is_an_error(amux, claude, programs):
    folder = programs()
    (folder / "claude").write_bytes(b"\0not a program")
    (folder / "claude").chmod(0o755)
    run = amux(claude, folder, "resume", "claude", PARENT)

    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith(f"amux: cannot start {folder / 'claude'} in ")


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 15)", 143)])
def test_where_there_is_no_exec_the_status_is_passed_on(code, status):
    assert ended(subprocess.Popen([sys.executable, "-c", code])) == status
