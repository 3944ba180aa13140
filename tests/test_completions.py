"""Completion: the values amux answers with, and the scripts in the shells themselves."""

import importlib.util
import json
import os
import pty
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from amux import readers
from amux.completion import SCRIPTS
from amux.query import GROUPS

AMUX = str(Path(sys.executable).with_name("amux"))
TOP = Path(__file__).parents[1]
PATIENCE_SECONDS = 20
BUDGET_SECONDS = 0.15
KILL_LINE = "\x15"
WHOLE = "7d0cfea6-16a5-4ba2-9b89-d387df82d8ea"
OTHER = "claude:ee3fbb80-0b42-43de-ab82-e9f5222da0f9"
ARMED = "$(touch pwned)`touch pwned`'\";touch pwned\n\x1b]0;pwned\x07%F{red} \\"
"""A title nobody meant well."""
HOSTILE = (
    "evil1$(touch pwned)",
    "evil2`touch pwned`",
    "evil3'\"; touch pwned; '\"",
    "evil4|touch pwned&",
    "evil5*\\ {a,b}~ #!$HOME",
    "evil6:touch:pwned",
)


@pytest.fixture
def home(corpus, tmp_path, monkeypatch):
    """The user's own home, with sessions of Claude Code, one of them tagged in the run index."""
    where = tmp_path / "home"
    for path in corpus.scenarios("claude"):
        if path.name in ("fork", "subagent", "named"):
            shutil.copytree(path / "home", where, dirs_exist_ok=True)
    run = {"v": 1, "runId": "1", "agent": "claude", "sessionId": WHOLE, "timestamp": "2026-11-18T09:30:00Z"}
    index = where / ".agent-mux" / "run-index.jsonl"
    index.parent.mkdir()
    index.write_text(json.dumps({**run, "tags": ["nightly"]}) + "\n")
    monkeypatch.setenv("HOME", str(where))
    monkeypatch.delenv("AMUX_HOME", raising=False)
    return where


@pytest.fixture
def catalog(home):
    """The file of a catalog that knows the sessions of the home."""
    subprocess.run([AMUX, "sessions", "list", "--json"], check=True, capture_output=True)
    return Path(os.environ["AMUX_CACHE_DIR"]) / "catalog.db"


def add_sessions(catalog: Path, sessions: dict[str, str]) -> None:
    """Put sessions into the catalog as copies of one that is there, each with its id and its title."""
    with closing(sqlite3.connect(catalog)) as db:
        cursor = db.execute("select * from session where kind = 'main' limit 1")
        columns = [column[0] for column in cursor.description][1:]
        row = dict(zip(columns, cursor.fetchone()[1:], strict=True))
        db.executemany(
            f"insert into session ({', '.join(columns)}) values ({', '.join(f':{name}' for name in columns)})",
            [{**row, "id": id, "title": title} for id, title in sessions.items()],
        )
        db.commit()


def completed(*arguments: str) -> dict[str, str]:
    run = subprocess.run([AMUX, "--complete", *arguments], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return dict(line.split("\t") for line in run.stdout.splitlines())


# What amux answers


def test_agents_are_there_without_a_catalog(home):
    assert list(completed("agents", "")) == list(readers.names())
    assert list(completed("agents", "cla")) == ["claude"]


def test_agents_say_how_many_sessions_they_have(catalog):
    assert completed("agents", "cla") == {"claude": "4 sessions"}


def test_models_and_tags_say_how_many_sessions_have_them(catalog):
    assert completed("models", "claude") == {"claude-opus-5-5": "4 sessions"}
    assert completed("models", "gpt") == {}
    assert completed("tags", "") == {"nightly": "1 session"}


def test_a_session_says_its_age_and_its_title(catalog):
    said = completed("sessions", "claude", "7d0c")[WHOLE]

    assert said.endswith(" · Add a marmalade middleware")
    assert said.split(" · ")[0].endswith("ago") or said.split(" · ")[0].count("-") == 2


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("sessions", "cl"), ["claude"]),
        (("sessions", "7d0"), []),
        (("sessions", "7d0c"), [WHOLE]),
        (("sessions", "claude:7d"), [f"claude:{WHOLE}"]),
        (("sessions", "codex:7d"), []),
        (("sessions", "claude", "7"), [WHOLE]),
        (("sessions", "claude", "lat"), ["latest"]),
        (("sessions", "claude", WHOLE, ""), []),
        (("sessions,tags+", "claude", "7"), [WHOLE]),
        (("sessions,tags+", "claude", WHOLE, "n"), ["nightly"]),
        (("sessions,tags+", f"claude:{WHOLE}", "n"), ["nightly"]),
        (("sessions,tags+", f"claude:{WHOLE}", "urgent", "n"), ["nightly"]),
        (("ids,ids", "claude:7d"), [f"claude:{WHOLE}"]),
        (("ids,ids", f"claude:{WHOLE}", "7d0c"), [WHOLE]),
        (("ids,ids", "latest", "latest", "7d0c"), []),
    ],
    ids=" ".join,
)
def test_what_comes_before_tells_what_is_asked_for(catalog, asked, found):
    assert list(completed(*asked)) == found


def test_groups_are_completed_after_a_comma():
    assert list(completed("groups", "mo")) == ["model", "month"]
    assert list(completed("groups", "day,mo")) == ["day,model", "day,month"]
    assert list(completed("groups", "model,day,mo")) == ["model,day,month"]
    assert len(completed("groups", "day,")) == len(GROUPS) - 1


def test_time_zones_are_completed():
    assert list(completed("zones", "Europe/Ber")) == ["Europe/Berlin"]
    assert len(completed("zones", "")) > 400


def test_the_newest_session_comes_first(catalog):
    listed = json.loads(subprocess.run([AMUX, "sessions", "list", "--json"], capture_output=True, check=True).stdout)

    assert list(completed("ids", "claude:")) == [one["unifiedId"] for one in listed]


def test_other_homes_have_other_sessions(catalog, corpus, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(next(path for path in corpus.scenarios("claude") if path.name == "one") / "home", other)
    subprocess.run([AMUX, "--home", str(other), "sessions", "list"], check=True, capture_output=True)
    there = completed("--home", str(other), "ids", "claude:")

    assert len(there) == 1
    assert len(completed("ids", "claude:")) == 4
    assert not set(there) & set(completed("ids", "claude:"))


def test_the_sample_sessions_are_completed_when_they_are_asked_for(home):
    subprocess.run([AMUX, "--demo", "sessions", "list"], check=True, capture_output=True)

    assert len(completed("--demo", "ids", "claude:")) > 1
    assert completed("ids", "claude:") == {}


def test_a_store_that_was_moved_there_by_a_variable_is_the_same_store(catalog, home, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    subprocess.run([AMUX, "sessions", "list"], check=True, capture_output=True)
    monkeypatch.delenv("XDG_CONFIG_HOME")

    assert len(completed("ids", "claude:")) == 4


def test_nothing_is_refreshed(catalog, home):
    shutil.rmtree(home / ".claude")
    before = catalog.read_bytes()

    assert len(completed("ids", "claude:")) == 4
    assert catalog.read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [(), ("",), ("--home",), ("nope", ""), ("ids",), ("models", ""), ("ids", "\udcff"), ("--nope", "ids", "")],
)
def test_what_cannot_be_answered_is_passed_over_in_silence(home, arguments):
    assert set(completed(*arguments)) <= {"latest"}


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\0" + bytes(200)])
def test_a_damaged_catalog_is_no_answer(catalog, content):
    catalog.write_bytes(content)

    assert completed("models", "") == {}
    assert list(completed("sessions", "cl")) == ["claude"]
    assert catalog.read_bytes() == content


def test_no_line_holds_what_acts_on_a_terminal_or_cannot_be_typed(catalog):
    add_sessions(catalog, dict.fromkeys(["two\nlines", "with\ttab", "bell\x07", "-rf", "--home=/", "fine"], ARMED))
    found = completed("sessions", "claude", "")

    assert [id for id in found if id != "latest" and len(id) < len(WHOLE)] == ["fine"]
    assert found["fine"].isprintable()
    assert "touch pwned ␛]0;pwned␇" in found["fine"]


def test_five_thousand_sessions_are_answered_in_time(catalog):
    add_sessions(catalog, {f"0198{number:08x}-0000-7000-8000-{number:012x}": "A title " * 9 for number in range(5000)})

    def seconds(*question: str) -> float:
        start = time.perf_counter()
        completed(*question)
        return time.perf_counter() - start

    for question in (
        ("agents", ""),
        ("models", ""),
        ("tags", ""),
        ("groups", "day,"),
        ("zones", ""),
        ("ids", ""),
        ("sessions", "claude", "0198"),
    ):
        # The best of some: other work on the machine only ever adds.
        assert any(seconds(*question) < BUDGET_SECONDS for _ in range(20)), question


def test_an_answer_does_not_wait_for_the_command_line_to_be_built(catalog):
    code = "import sys; sys.argv = ['amux', '--complete', 'ids', '']; from amux.cli import main; main(); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert f"claude:{WHOLE}" in run.stdout
    assert {"typer", "rich", "zoneinfo", "amux.cli.app", "amux.readers.claude"} & set(run.stdout.split()) == set()


# The scripts


def test_the_scripts_are_current():
    """Not so? `make completions` writes them."""
    spec = importlib.util.spec_from_file_location("make_completions", TOP / "tests" / "tools" / "make_completions.py")
    generator = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = generator  # where its dataclasses look for their types
    spec.loader.exec_module(generator)

    for shell, text in generator.scripts().items():
        assert (TOP / "completions" / SCRIPTS[shell]).read_text() == text


BARE = {
    "bash": ["bash", "--noprofile", "--norc"],
    "zsh": ["zsh", "-f"],
    "fish": ["fish", "--no-config"],
}
"""The shells without what the machine's owner set up."""


class Terminal:
    """A shell in a terminal with the completion loaded, in which `amux` notes its arguments instead of running."""

    def __init__(self, shell: str, where: Path, *, installed: bool = False) -> None:
        if not shutil.which(shell):
            pytest.skip(f"{shell} is not installed: apt-get install {shell}")
        self.shell = shell
        self.where = where
        self.noted = where / "noted"
        programs = where / "programs"
        programs.mkdir()
        amux = programs / "amux"
        amux.write_text(f'#!/bin/sh\n[ "$1" = --complete ] && exec \'{AMUX}\' "$@"\n{self.noting()}')
        amux.chmod(0o755)
        self.start([shell] if installed else BARE[shell], {"PATH": f"{programs}:{os.environ['PATH']}", "TERM": "xterm"})
        load = f"source '{TOP / 'completions' / SCRIPTS[shell]}'; "
        if shell == "zsh":
            load = f"autoload -Uz compinit; compinit -u -D; {load}"
        self.type(f"{'' if installed else load}amux ready\n")
        self.arguments()

    def noting(self) -> str:
        return f"printf '%s\\0' \"$@\" >'{self.noted}.part'\nmv '{self.noted}.part' '{self.noted}'\n"

    def start(self, argv: list[str], environment: dict[str, str]) -> None:
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(self.where)
            os.execvpe(argv[0], argv, {**os.environ, **environment})

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def shown(self, *wanted: str) -> str:
        """What the terminal shows, until all of these are there."""
        seen = b""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end and not all(one in seen.decode(errors="replace") for one in wanted):
            if select.select([self.terminal], [], [], 0.1)[0]:
                seen += os.read(self.terminal, 65536)
        return seen.decode(errors="replace")

    def arguments(self) -> list[str]:
        """What amux was given by the line just entered."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.noted.exists():
            if time.monotonic() > end:
                raise AssertionError(f"nothing was run: {self.shown()}")
            if select.select([self.terminal], [], [], 0.05)[0]:
                os.read(self.terminal, 65536)
        given = self.noted.read_text().split("\0")[:-1]
        self.noted.unlink()
        return given

    def close(self) -> None:
        os.close(self.terminal)
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


@pytest.fixture(params=SCRIPTS)
def terminal(request, catalog, tmp_path):
    opened = Terminal(request.param, tmp_path)
    yield opened
    opened.close()


LINES = {
    "sess\t": "sessions",
    "sessions li\t": "sessions list",
    "sessions list --sub\t": "sessions list --subagents",
    "sessions list --sort tu\t": "sessions list --sort turns",
    "sessions list --sort=tu\t": "sessions list --sort=turns",
    "sessions list cl\t": "sessions list claude",
    "sessions list --tag ni\t": "sessions list --tag nightly",
    "--no-color cost rep\t": "--no-color cost report",
    "cost report --model cl\t": "cost report --model claude-opus-5-5",
    "cost report --agent=cl\t": "cost report --agent=claude",
    "cost report --json --no-ca\t": "cost report --json --no-cache",
    "sessions show claude 7d\t": f"sessions show claude {WHOLE}",
    "sessions show --tools short claude 7d\t": f"sessions show --tools short claude {WHOLE}",
    "sessions show claude:7d\t": f"sessions show claude:{WHOLE}",
    "sessions show 7d0c\t": f"sessions show {WHOLE}",
    "sessions diff claude:7d\tclaude:ee\t--st\t": f"sessions diff claude:{WHOLE} {OTHER} --stat",
    "sessions tag claude:7d\tni\t": f"sessions tag claude:{WHOLE} nightly",
    "sessions resume claude 7d\t": f"sessions resume claude {WHOLE}",
    "sessions fork claude:7d\t": f"sessions fork claude:{WHOLE}",
    "sessions export 7d0c\t": f"sessions export {WHOLE}",
    "sessions list --since yes\t": "sessions list --since yesterday",
    "cost report --group-by mod\t": "cost report --group-by model",
    "cost report --group-by day,mod\t": "cost report --group-by day,model",
    "cost report --group-by=day,mod\t": "cost report --group-by=day,model",
    "cost report --timezone Europe/Berl\t": "cost report --timezone Europe/Berlin",
    "schema summ\t": "schema summary",
    "--install-completion zs\t": "--install-completion zsh",
    "--home hom\t sessions show claude 7d\t": f"--home home sessions show claude {WHOLE}",
}
"""What is typed after `amux`, and what amux is given."""


def test_a_shell_completes(terminal, home):
    subprocess.run([AMUX, "--home", str(home), "sessions", "list"], check=True, capture_output=True)
    for typed, meant in LINES.items():
        terminal.type(f"amux {typed}\n")

        assert [one.rstrip("/") for one in terminal.arguments()] == meant.split(), typed


def test_a_shell_shows_what_is_said_of_a_session(terminal):
    terminal.type("amux sessions show claude \t" + ("\t" if terminal.shell == "bash" else ""))
    shown = terminal.shown(WHOLE, "Kumquat ledger", "Add a marmalade middleware")

    assert "Kumquat ledger" in shown
    assert "Add a marmalade middleware" in shown


def test_nothing_a_session_contains_is_run_by_a_shell(terminal, catalog, tmp_path):
    add_sessions(catalog, dict.fromkeys(HOSTILE, ARMED))
    for id in HOSTILE:
        terminal.type(f"amux sessions show claude {id[:5]}\t\n")

        assert terminal.arguments() == ["sessions", "show", "claude", id]
    for typed in ("claude evil\t\t", "claude:evil\t\t"):
        terminal.type(f"amux sessions show {typed}{KILL_LINE}amux on\n")

        assert terminal.arguments() == ["on"]

    assert not list(tmp_path.rglob("pwned"))


def test_a_listed_title_does_nothing_to_the_terminal(terminal, catalog):
    add_sessions(catalog, dict.fromkeys(["evil1", "evil2"], ARMED))
    terminal.type("amux sessions show claude evil\t" + ("\t" if terminal.shell == "bash" else ""))
    shown = terminal.shown("touch pwned ␛]0;")

    assert "touch pwned ␛]0;" in shown
    assert "\x1b]0;pwned" not in shown


# Installing


PLACES = {
    "bash": ".local/share/bash-completion/completions/amux",
    "zsh": ".local/share/zsh/site-functions/_amux",
    "fish": ".config/fish/completions/amux.fish",
}


@pytest.fixture
def bare_home(home, monkeypatch):
    """A home in which no variable says where things lie."""
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR"):
        monkeypatch.delenv(variable, raising=False)
    return home


@pytest.mark.parametrize("shell", SCRIPTS)
@pytest.mark.parametrize("named", [True, False], ids=["named", "from SHELL"])
def test_completion_is_installed_where_the_shell_looks(bare_home, monkeypatch, shell, named):
    monkeypatch.setenv("SHELL", "/bin/sh" if named else f"/usr/bin/{shell}")
    run = subprocess.run(
        [AMUX, "--install-completion", *([shell] if named else [])], capture_output=True, text=True, check=True
    )
    path = bare_home / PLACES[shell]

    assert path.read_text() == (TOP / "completions" / SCRIPTS[shell]).read_text()
    assert run.stdout.startswith(f"Wrote {path}.\n")


@pytest.mark.parametrize(("shell", "given"), [("/bin/tcsh", []), ("", []), ("/bin/bash", ["tcsh"])])
def test_a_shell_without_a_script_is_an_error_that_names_those_with_one(bare_home, monkeypatch, shell, given):
    monkeypatch.setenv("SHELL", shell)
    run = subprocess.run([AMUX, "--install-completion", *given], capture_output=True, text=True, check=False)

    assert run.returncode == 2
    assert "is not one of 'bash', 'zsh', 'fish'" in run.stderr


def test_a_place_that_cannot_be_written_is_an_error(bare_home):
    (bare_home / ".config").write_text("no directory")
    run = subprocess.run([AMUX, "--install-completion", "fish"], capture_output=True, text=True, check=False)

    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith(f"amux: cannot write {bare_home / PLACES['fish']}")


def test_zsh_is_told_of_its_directory_once(bare_home):
    def said() -> str:
        run = subprocess.run([AMUX, "--install-completion", "zsh"], capture_output=True, text=True, check=True)
        return run.stdout

    assert "fpath=(" in said()
    (bare_home / ".zshrc").write_text("\n".join(said().splitlines()[-2:]))
    assert "fpath=(" not in said()


@pytest.mark.parametrize("shell", SCRIPTS)
def test_what_was_installed_completes_in_a_new_shell(catalog, bare_home, tmp_path, shell):
    run = subprocess.run([AMUX, "--install-completion", shell], capture_output=True, text=True, check=True)
    advice = "\n".join(line.strip() for line in run.stdout.splitlines() if line.startswith("  "))
    (bare_home / {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".unread"}[shell]).write_text(advice)
    opened = Terminal(shell, tmp_path, installed=True)
    try:
        opened.type("amux sess\tlis\t\n")

        assert opened.arguments() == ["sessions", "list"]
    finally:
        opened.close()
