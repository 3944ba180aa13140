"""Nothing of an agent's changes: what the system was asked for while amux ran, and a home that cannot be written to."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import law
from .commands import AMUX, Place, every, place, questions, unprivileged

WRITING = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)")
LOCKING = re.compile(r"F_(OFD_)?SETLKW?")
NETWORK = ("socket", "connect", "bind", "sendto", "sendmsg")
CHANGING = (
    *(
        "creat",
        "rename",
        "renameat",
        "renameat2",
        "unlink",
        "unlinkat",
        "rmdir",
        "mkdir",
        "mkdirat",
        "mknod",
        "mknodat",
    ),
    *(
        "link",
        "linkat",
        "symlink",
        "symlinkat",
        "truncate",
        "ftruncate",
        "chmod",
        "fchmod",
        "fchmodat",
        "chown",
        "fchown",
    ),
    *("lchown", "fchownat", "utime", "utimes", "utimensat", "futimesat", "setxattr", "lsetxattr", "fsetxattr", "flock"),
)
TRACED = ",".join((*CHANGING, *NETWORK, "open", "openat", "openat2", "fcntl"))
CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
NAMED = re.compile(r'(?:<(?P<base>[^>]*)>, )?"(?P<name>(?:[^"\\]|\\.)*)"|\d<(?P<open>/[^>]*)>')
DRIVER = """
import json, os, sys
from amux.cli import arranged, run
for environment, argv in json.load(sys.stdin):
    os.environ.clear()
    os.environ.update(environment)
    try:
        status = run(arranged(argv))
    except SystemExit as end:
        status = end.code
    if status not in (0, 4, 6):
        sys.exit(f"{argv} ended with {status}")
"""
"""Many commands in one process: 4 and 6 are programs that are not installed or cannot."""
needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


def traced(argv: list[str], log: Path, **options) -> list[str]:
    """The calls a program and its children made of the system, of those that could matter."""
    command = ["strace", "-f", "-y", "-s", "4096", "--seccomp-bpf", "-o", str(log), "-e", f"trace={TRACED}", *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    return log.read_text(errors="replace").splitlines()


def offences(calls: list[str], home: Path) -> list[str]:
    """The calls that would change something below a home, lock it, or reach beyond the machine."""
    return [line for line in calls if (call := CALL.match(line)) and offends(call[1], call[2], str(home))]


def offends(name: str, arguments: str, home: str) -> bool:
    if name in NETWORK:
        return True
    if not any(path == home or path.startswith(home + "/") for path in paths(arguments)):
        return False
    if name.startswith("open"):
        return bool(WRITING.search(arguments))
    return bool(LOCKING.search(arguments)) if name == "fcntl" else True


def paths(arguments: str) -> Iterator[str]:
    for found in NAMED.finditer(arguments):
        yield found["open"] or os.path.join(found["base"] or "/", found["name"] or "")


@needs_strace
@pytest.mark.parametrize("agent", law.agents())
def test_every_command_leaves_every_home_alone(corpus, tmp_path, agent):
    homes = tmp_path / "homes"
    jobs = []
    for scenario in corpus.scenarios(agent)[:: 1 if law.SOAK else 4]:
        case = corpus.open_case(scenario, homes / scenario.name)
        where = place(case, tmp_path / "own" / scenario.name)
        most = None if law.SOAK else 1
        ids, own = list(case.listed(subagents=True)), list(case.listed())
        commands = every(agent, ids[:most], own[:most], where)
        jobs += [(where.environment, where.command(*argv)) for argv in commands]
    calls = traced([sys.executable, "-c", DRIVER], tmp_path / "log", input=json.dumps(jobs), cwd=tmp_path / "own")

    assert any(str(homes) in line for line in calls)
    assert offences(calls, homes) == []


@needs_strace
def test_the_command_as_installed_leaves_a_home_alone(corpus, tmp_path):
    """Once with a fill that starts processes of its own, once warm."""
    where = Place(tmp_path / "home", tmp_path / "own")
    where.own.mkdir()
    for scenario in corpus.scenarios():
        if law.has_reader(scenario.parent.name):
            shutil.copytree(scenario / "home", where.home, symlinks=True, dirs_exist_ok=True)
    grow(where.home, 30_000_000)
    for number in range(2):
        log = tmp_path / f"log{number}"
        calls = traced([AMUX, *where.command("sessions", "list")], log, env=where.environment, cwd=where.own)

        assert offences(calls, where.home) == []


def grow(home: Path, size: int) -> None:
    """Copies of a session, so many that reading them pays for more processes."""
    source = max(home.glob(".claude/projects/*/*.jsonl"), key=lambda path: path.stat().st_size)
    content = source.read_bytes()
    for number in range(size // len(content) + 1):
        (source.parent / f"00000000-0000-4000-8000-{number:012}.jsonl").write_bytes(content)


@needs_strace
@pytest.mark.parametrize(
    "deed",
    [
        "open(name, 'a')",
        "open(name + '.new', 'w')",
        "os.open(name, os.O_RDWR)",
        "os.unlink(name)",
        "os.rename(name, name + '.old')",
        "os.utime(name)",
        "os.chmod(name, 0o600)",
        "os.mkdir(name + '.d')",
        "os.truncate(name, 0)",
        "fcntl.lockf(os.open(name, os.O_RDONLY), fcntl.LOCK_SH)",
        "fcntl.flock(os.open(name, os.O_RDONLY), fcntl.LOCK_SH)",
        "os.unlink('file', dir_fd=os.open(os.path.dirname(name), os.O_RDONLY))",
        "socket.socket()",
        "sqlite3.connect(name).execute('select * from sqlite_master').fetchall()",
    ],
)
def test_the_watch_sees_what_it_watches_for(tmp_path, deed):
    home = tmp_path / "home"
    home.mkdir()
    (home / "file").write_bytes(b"")
    program = f"import fcntl, os, socket, sqlite3, sys; name = sys.argv[1]; {deed}"
    calls = traced([sys.executable, "-c", program, str(home / "file")], tmp_path / "log")

    assert offences(calls, home)


# A home that cannot be written to


def make_read_only(home: Path) -> None:
    for path in [*home.rglob("*"), home]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)


def make_writable(home: Path) -> None:
    for path in [home, *home.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o200)


@pytest.mark.parametrize("agent", law.agents())
def test_a_home_that_cannot_be_written_to_gives_the_same_answers(corpus, tmp_path, agent):
    scenarios = corpus.scenarios(agent)
    homes, own, jobs = tmp_path / "homes", tmp_path / "own", []
    own.mkdir()
    for scenario in scenarios if law.SOAK else scenarios[-1:]:
        case = corpus.open_case(scenario, homes / scenario.name)
        where = place(case, own)
        asked = questions(agent, list(case.listed())[:2])
        jobs += [(where.environment, where.command(*argv, "--no-cache")) for argv in asked]
    driver = [sys.executable, "-c", DRIVER]
    options = {"input": json.dumps(jobs), "cwd": own, "capture_output": True, "text": True}
    before = subprocess.run(driver, check=False, **options)
    make_read_only(homes)
    after = subprocess.run([*unprivileged(), *driver], check=False, **options)
    make_writable(homes)

    assert before.returncode == 0
    assert (after.stdout, after.stderr, after.returncode) == (before.stdout, before.stderr, before.returncode)
