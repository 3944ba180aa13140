"""Choosing a session at a terminal: the keys, the screen, and the whole at a pseudo-terminal."""

import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import textwrap
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fcntl import ioctl
from pathlib import Path

import pytest

from amux.model import CostRecord, SessionSummary
from amux.output.grids import width
from amux.output.terminal.keys import names
from amux.output.terminal.picker import Choice, Picker, Source

NOW = datetime.now(UTC)


def session(number: int, **known) -> SessionSummary:
    return SessionSummary(
        **{
            "agent": "claude",
            "session_id": f"id{number:06}",
            "title": f"Title {number}",
            "created_at": NOW - timedelta(hours=number + 1),
            "updated_at": NOW - timedelta(hours=number + 1),
            "turn_count": 3,
            "message_count": 9,
            "cwd": "/home/dev/work/shop",
            "cost": CostRecord(Decimal("0.25"), source="estimated"),
            **known,
        }
    )


class Searched(list):
    """What was searched for; finds the sessions whose title holds the text."""

    def __init__(self, sessions):
        super().__init__()
        self.sessions = sessions

    def __call__(self, text):
        self.append(text)
        return [one for one in self.sessions if text in one.title]


def picker(here=3, elsewhere=2, verb="resume", **known):
    sessions = [session(number, **known) for number in range(here + elsewhere)]
    source = Source(
        sessions[:here], sessions[here:], Searched(sessions), lambda one: lambda: f"last of {one.session_id}"
    )
    return Picker(source, verb)


def screen(one: Picker, columns: int = 80, height: int = 20) -> list[str]:
    return [line.plain for line in one.lines(columns, height)]


def cursor(lines: list[str]) -> str:
    return next(line for line in lines[1:] if line.startswith("❯ "))


# Keys


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("a\x1b[Ab", ["a", "up", "b"]),
        ("\x1bOB\x1b[B", ["down", "down"]),
        ("\x1b[5~\x1b[6~\x1b[1~\x1b[F", ["page up", "page down", "home", "end"]),
        ("\x1b", ["escape"]),
        ("\x1b[1;5C\x1b[200~\x1bx", []),
        ("\x7f\b\x15\x17\x06\x10\r\n", ["backspace", "backspace", "^U", "^W", "^F", "^P", "enter", "enter"]),
        ("ü✨\x00\x07\x9b", ["ü", "✨"]),
    ],
)
def test_keys_have_names(sent, keys):
    assert names(sent) == keys


# The screen


def test_this_directory_comes_first():
    lines = screen(picker())

    assert lines[1] == "This directory"
    assert cursor(lines).endswith("Title 0")
    assert lines.index("Elsewhere") == 5
    assert lines[6].endswith("Title 3")
    assert lines[0].endswith("1 of 5")
    assert len(lines) == 20


def test_without_sessions_here_there_are_no_headings():
    lines = screen(picker(here=0))

    assert "This directory" not in lines
    assert "Elsewhere" not in lines


def test_a_row_tells_agent_age_cost_project_and_title():
    assert cursor(screen(picker(), 100)).split() == ["❯", "claude", "1h", "ago", "~$0.25", "shop", "Title", "0"]
    assert cursor(screen(picker(), 60)).split() == ["❯", "claude", "1h", "ago", "~$0.25", "Title", "0"]


@pytest.mark.parametrize("columns", [1, 2, 20, 40, 60, 80, 120, 300])
@pytest.mark.parametrize("height", [5, 8, 20, 60])
def test_nothing_is_wider_or_longer_than_the_window(columns, height):
    one = picker(title="長い題名 " * 40, cwd="/x" * 200, git_branch="b" * 100)
    one.press(list("x" * 200))
    one.press(["^U"])
    one.previews.known[one.session.unified_id] = "word " * 300
    lines = screen(one, columns, height)

    assert len(lines) == height
    assert max(map(width, lines)) <= columns


def test_no_control_of_a_session_reaches_the_screen():
    one = picker(title="\x1b]0;owned\x07", cwd="/\x1b[2J", git_branch="\x9b", model="\u202e", tags=("\x07",))
    one.previews.known[one.session.unified_id] = "\x1b[31m\nred\r"

    assert not set("".join(screen(one))) & {"\x1b", "\x07", "\x9b", "\u202e", "\r", "\n"}


def test_the_list_follows_the_cursor_through_thousands():
    one = picker(here=2, elsewhere=4998)
    screen(one, height=16)
    one.press(["end"])
    assert cursor(screen(one, height=16)).endswith("Title 4999")
    one.press(["page up"])
    assert cursor(screen(one, height=16)).endswith("Title 4989")
    one.press(["home"])
    lines = screen(one, height=16)

    assert (lines[1], cursor(lines).split()[-1]) == ("This directory", "0")
    one.press(["up"])
    assert cursor(screen(one, height=16)).endswith("Title 0")


def test_the_last_prompt_is_shown_when_it_is_read():
    one = picker()
    assert not any("last of" in line for line in screen(one))
    deadline = time.monotonic() + 10
    while not one.previews.known and time.monotonic() < deadline:
        one.wait(lambda _: [], lambda: (80, 20))

    assert "❯ last of id000000" in screen(one)


def test_a_session_that_cannot_be_read_has_no_preview():
    one = picker()

    def fail() -> str:
        raise OSError

    one.previews.finish("x", fail)

    assert one.previews.known == {"x": ""}


# What keys do


def test_what_is_typed_at_once_is_searched_for_once():
    one = picker()
    one.press(list("Title 3"))

    assert one.source.search == ["Title 3"]
    assert cursor(screen(one)).endswith("Title 3")
    one.press(["backspace", "4"])
    assert one.source.search == ["Title 3", "Title 4"]
    one.press(["^W"])
    assert one.typed == "Title"
    one.press(["^U"])
    assert len(one.found) == 5


def test_one_letter_is_not_searched_for():
    one = picker()
    one.press(["t"])

    assert len(one.found) == 5
    one.press(["backspace", "3"])
    assert [found.title for found in one.found] == ["Title 3"]
    assert one.source.search == []


def test_nothing_found_says_so_and_chooses_nothing():
    one = picker()
    one.press([*"nope", "enter", "down", "^F"])

    assert "  no session has these words" in screen(one)
    assert (one.choice, one.left) == (None, False)


@pytest.mark.parametrize(
    ("verb", "key", "does"),
    [("resume", "enter", "resume"), ("resume", "^F", "fork"), ("resume", "^P", "print"), ("fork", "enter", "fork")],
)
def test_a_key_chooses_what_is_done(verb, key, does):
    one = picker(verb=verb)
    one.press(["down", "down", key, "down"])

    assert one.choice == Choice(does, one.found[2])


def test_enter_means_what_was_typed_just_before():
    one = picker()
    one.press([*"Title 4", "enter"])

    assert one.choice.session.title == "Title 4"


def test_escape_leaves():
    one = picker()
    one.press(["escape", "enter"])

    assert (one.left, one.choice) == (True, None)


# At a terminal

MARMALADE, KUMQUAT = "ee3fbb80-0b42-43de-ab82-e9f5222da0f9", "11111111-2222-4333-8444-555555555555"


class Terminal:
    """A command at a pseudo-terminal; its standard output may go elsewhere."""

    def __init__(self, command, env, cwd, stdout=None, columns=100):
        self.end, inner = pty.openpty()
        ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.modes = termios.tcgetattr(inner)
        self.inner = inner
        self.seen = ""
        self.process = subprocess.Popen(
            command,
            stdin=inner,
            stdout=stdout or inner,
            stderr=inner,
            env=env,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - its own terminal, for ^C to reach it
        )

    def until(self, text: str) -> str:
        """What came up to a text; fails when it does not come."""
        deadline = time.monotonic() + 20
        while text not in self.plain():
            assert time.monotonic() < deadline, f"no {text!r} in {self.plain()[-2000:]}"
            if select.select([self.end], [], [], 0.1)[0]:
                self.seen += os.read(self.end, 65536).decode(errors="replace")
        before = self.plain()
        self.seen = ""
        return before

    def plain(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen)

    def press(self, keys: str) -> None:
        os.write(self.end, keys.encode())

    def status(self) -> int:
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.end], [], [], 0.05)[0]:
                self.seen += os.read(self.end, 65536).decode(errors="replace")
        return self.process.wait(timeout=1)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.end)
        os.close(self.inner)


@pytest.fixture
def place(corpus, tmp_path):
    """A home with sessions of Claude Code, one of them in a directory that is there, and a program that records."""
    home, shop = tmp_path / "home", tmp_path / "shop"
    shop.mkdir()
    for path in corpus.scenarios("claude"):
        if path.name in ("fork", "named", "subagent"):
            shutil.copytree(path / "home", home, dirs_exist_ok=True)
    transcript = next(home.rglob(f"{MARMALADE}.jsonl"))
    transcript.write_bytes(transcript.read_bytes().replace(b"/home/dev/work/shop", str(shop).encode()))
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    source = f"""\
        #!{sys.executable}
        import json, os, sys
        print(json.dumps([sys.argv[1:], os.getcwd()]), file=open({str(tmp_path / "started.json")!r}, "w"))
        """
    program.write_text(textwrap.dedent(source))
    program.chmod(0o755)
    return tmp_path


@pytest.fixture
def terminal(place):
    opened = []

    def start(*arguments: str, **options) -> Terminal:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "COLUMNS", "LINES"))}
        env = {**kept, "HOME": str(place / "home"), "PATH": f"{place / 'bin'}:/usr/bin:/bin", "TERM": "xterm-256color"}
        command = [sys.executable, "-m", "amux", "sessions", *arguments]
        opened.append(Terminal(command, env, place / "shop", **options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def started(place: Path):
    path = place / "started.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_enter_resumes_the_newest_of_this_directory(terminal, place):
    one = terminal("resume", "claude")
    shown = one.until("This directory")
    shown += one.until("esc leave")
    one.press("\r")

    assert "resume ❯" in shown
    assert one.status() == 0
    assert started(place) == [["--resume", MARMALADE], str(place / "shop")]


def test_typing_searches_and_a_key_forks(terminal, place):
    one = terminal("resume", "claude", "--cwd", ".")
    one.until("1 of 4")
    one.press("kumq")
    one.until("1 of 1")
    one.press("\x06")

    assert one.status() == 0
    assert started(place) == [["--resume", KUMQUAT, "--fork-session"], str(place / "shop")]


def test_arrows_move_and_a_key_prints_to_standard_output(terminal, place):
    """So that a shell can take the line while the picker is on the screen."""
    reading, writing = os.pipe()
    one = terminal("fork", "claude", stdout=writing)
    one.until("1 of 4")
    one.press("\x1b[B\x1b[A")
    one.press("\x10")
    assert one.status() == 0
    os.close(writing)
    with open(reading) as told:
        line = told.read()

    assert line == f"cd {place / 'shop'} && claude --resume {MARMALADE} --fork-session\n"
    assert started(place) is None


def test_the_preview_is_the_last_prompt(terminal):
    one = terminal("resume", "claude")
    one.until("❯ Try the other design [[text]]")


def test_escape_leaves_the_terminal_as_it_was(terminal, place):
    one = terminal("resume", "claude")
    one.until("esc leave")
    assert termios.tcgetattr(one.inner) != one.modes
    one.press("\x1b")

    assert one.status() == 130
    assert termios.tcgetattr(one.inner) == one.modes
    assert "\x1b[?1049l" in one.seen
    assert started(place) is None


def test_an_interrupt_leaves_the_terminal_as_it_was(terminal):
    one = terminal("resume", "claude")
    one.until("esc leave")
    one.press("\x03")

    assert one.status() == 130
    assert termios.tcgetattr(one.inner) == one.modes
    assert "Traceback" not in one.plain()


def test_a_window_may_change_its_size(terminal):
    one = terminal("resume", "claude", columns=100)
    one.until("esc leave")
    ioctl(one.inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    one.until("─" * 60)


def test_a_question_gives_a_directory_that_is_gone_another(terminal, place):
    one = terminal("resume", "claude", KUMQUAT)
    one.until("is gone; go on in which directory?")
    one.press(f"{place / 'shop'}\n")

    assert one.status() == 0
    assert started(place)[1] == str(place / "shop")


def test_a_sub_agents_parent_is_resumed_when_one_agrees(terminal, place):
    one = terminal("resume", "claude", "a34a2631", "--cwd", ".")
    one.until("resume its parent claude:b4df1bb9-a512-432f-a116-edec9bb69dbe? [Y/n]")
    one.press("\n")

    assert one.status() == 0
    assert started(place)[0] == ["--resume", "b4df1bb9-a512-432f-a116-edec9bb69dbe"]


def test_yes_asks_nothing(terminal, place):
    one = terminal("resume", "claude", KUMQUAT, "--yes")

    assert one.status() == 2
    assert "--cwd DIR" in one.plain()
    assert started(place) is None
