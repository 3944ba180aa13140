"""What people see at a terminal: it fits, says the same without colour, and can be read on a dark and on a light screen."""

import dataclasses
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from rich.color import Color
from rich.style import Style
from rich.text import Text

from amux import readers
from amux.model import CostRecord, SessionSummary
from amux.output import grids
from amux.output.chart import Bar, Chart
from amux.output.grids import width
from amux.output.terminal import palette, tables, transcript
from amux.results.agents import AgentStatus
from amux.results.hits import Match, SearchHit, Snippet

AMUX = str(Path(sys.executable).with_name("amux"))
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
WIDTHS = (60, 100, 160)
SCREENS = (
    "sessions list",
    "sessions list --tree",
    "sessions list --sort cost --subagents",
    "sessions search webhook retry",
    "sessions search Retry-After",
    "sessions show codex latest",
    "sessions show claude fbe2 --thinking",
    "sessions diff codex:01a1d46b codex:01a1d470",
    "cost report",
    "cost report --group-by day",
    "cost report --group-by day,model",
    "cost report --group-by session",
    "cost report --group-by project,tag,week",
    "cost report --chart",
    "cost report --chart --group-by week,model",
    "agents",
)


def at_terminal(*arguments: str, columns: int, **variables: str) -> str:
    """What a command draws on a terminal that is so wide."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment = {**kept, "TERM": "xterm-256color", "PAGER": "cat", **variables}
    with subprocess.Popen([AMUX, *arguments], stdin=its, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        drawn = b""
        while piece := read(ours):
            drawn += piece
    os.close(ours)
    assert process.returncode == 0, drawn
    return drawn.decode().replace("\r\n", "\n")


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # what Linux says of a terminal that nobody writes to any more
        return b""


def plain(text: str) -> str:
    return ESCAPE.sub("", text)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("screen", SCREENS)
def test_it_fits(screen, columns):
    drawn = plain(at_terminal("--demo", *screen.split(), columns=columns))

    assert [line for line in drawn.split("\n") if width(line) > columns] == []


@pytest.mark.parametrize("screen", SCREENS)
def test_it_reads_the_same_without_colour(screen):
    drawn = at_terminal("--demo", *screen.split(), columns=100)
    without = at_terminal("--demo", "--no-color", *screen.split(), columns=100)
    by_variable = at_terminal("--demo", *screen.split(), columns=100, NO_COLOR="1")

    assert plain(without) == plain(drawn) == plain(by_variable)
    assert {code for codes in ESCAPE.findall(without + by_variable) for code in codes.split(";")} <= set("012347") | {
        ""
    }


# Colours


def luminance(rgb: tuple[int, ...]) -> float:
    """As WCAG has it."""
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in (part / 255 for part in rgb)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(color: Color, background: tuple[int, int, int]) -> float:
    light, dark = sorted((luminance(color.get_truecolor()), luminance(background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def colors(text: str) -> set[int]:
    """The colours of 256 that are drawn with; any other way to name one is an error."""
    found = set()
    for codes in filter(None, ESCAPE.findall(text)):
        assert re.fullmatch(r"(38;5;\d+|[0123479]|22|23|24|39)(;(38;5;\d+|[0123479]|22|23|24|39))*", codes), codes
        found |= {int(number) for number in re.findall(r"38;5;(\d+)", codes)}
    return found


def test_every_colour_drawn_can_be_read_on_dark_and_on_light():
    drawn = set().union(*(colors(at_terminal("--demo", *screen.split(), columns=100)) for screen in SCREENS))
    known = {Style.parse(name).color for name in (*palette.HUES, palette.ACCENT, palette.MATCH, palette.ERROR)}
    known |= {palette.THEME.styles[name].color for name in palette.STYLES if name != "bar.back"}
    known |= {style.color for style in transcript.CODE.style_map.values() if style.color}

    assert drawn
    for color in known | {Color.from_ansi(number) for number in drawn}:
        if color is not None and not color.is_default:
            assert contrast(color, (0, 0, 0)) > 3.5, color
            assert contrast(color, (255, 255, 255)) > 3.5, color


def test_each_agent_has_a_colour_of_its_own():
    hues = [palette.hue(agent) for agent in readers.names()]

    assert len(set(hues)) == len(hues)
    assert palette.ERROR not in hues


# Room


def session(number: int, **fields) -> SessionSummary:
    time = datetime(2026, 11, number, 9, 30, tzinfo=UTC)
    known = {
        "agent": "opencode",
        "session_id": f"ses_e484abd7fffe3f14b80ae1b{number:03}",
        "title": "Why does 検索 find nothing in the index of last week, and what can be done about it?",
        "created_at": time,
        "updated_at": time,
        "turn_count": 12 * number,
        "message_count": 40,
        "cwd": "/home/dev/work/a-project-with-a-name-that-never-ends",
        "cost": CostRecord(total_usd=Decimal("1234.5"), source="estimated"),
    }
    return SessionSummary(**{**known, **fields})


FOUND = [
    session(17, session_id="parent"),
    session(16, forked_from="parent", session_id="fork"),
    session(15, parent_id="parent", kind="subagent"),
    session(14, forked_from="fork", archived=True),
    session(13, title="", cost=None, cwd=None),
]
SHORT = {one.unified_id: one.session_id[:8] for one in FOUND}
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


@pytest.mark.parametrize("columns", range(40, 201, 20))
@pytest.mark.parametrize("view", ["days", "ranked", "tree"])
def test_a_list_fits_any_terminal(columns, view):
    made = grids.days(FOUND, SHORT, NOW) if view == "days" else getattr(grids, view)(FOUND, SHORT)
    drawn = [line.plain for line in tables.lines(made, columns)]

    assert [line for line in drawn if width(line) > columns] == []
    assert sum("opencode" in line for line in drawn) == len(FOUND)


def rows(grid, columns: int) -> list[list[str]]:
    return [re.split(r"  +", line.plain.strip()) for line in tables.lines(grid, columns)]


def test_a_narrow_list_keeps_what_it_cost_and_what_it_is_called():
    drawn = rows(grids.days(FOUND[:1], SHORT, NOW), 60)

    assert drawn == [["Yesterday"], ["opencode", "parent", "09:30", "~$1,234.50", "Why does 検索 find n…"]]


def test_a_wide_list_has_all_of_it_and_says_what_is_special():
    drawn = rows(grids.days(FOUND, SHORT, NOW), 200)

    assert [line[0] for line in drawn if len(line) == 1] == [
        "Yesterday",
        "Monday, 16 November",
        "Sunday, 15 November",
        "Saturday, 14 November",
        "Friday, 13 November",
        grids.PART_OF_PARENT,
    ]
    assert drawn[1][1:6] == ["parent", "09:30", "204 turns", "~$1,234.50", "a-project-with-a-na…"]
    assert drawn[3][-1].startswith("fork: Why")
    assert drawn[5][4] == "(~$1,234.50)"
    assert drawn[5][-1].startswith("sub-agent: Why")
    assert drawn[7][-1].startswith("fork, archived: Why")
    assert drawn[9][-1] == "(no title)"


def test_a_tree_shows_who_comes_from_whom():
    titles = [row[-1][:14] for row in grids.tree(FOUND, SHORT).rows]

    assert titles == ["Why does 検索 fi", "├─ fork: Why d", "│  └─ fork, ar", "└─ sub-agent: ", "(no title)"]


def test_a_tree_leaves_out_none_whose_links_go_round():
    loop = [session(1, session_id="a", forked_from="b"), session(2, session_id="b", forked_from="a")]

    assert [row[1] for row in grids.tree([*FOUND, *loop]).rows][-2:] == ["a", "b"]


def test_a_chain_of_forks_may_be_long():
    chain = [session(1, session_id=str(number), forked_from=str(number - 1)) for number in range(3000)]

    assert len(grids.tree(chain).rows) == 3000


# Words that were found

FOX = "素早い茶色の狐がのろまな犬を飛び越える。"
OVERRIDE = "\u202e"
SEEN = "\\u202e"
"""What is seen of an override of the reading direction."""


def hit(text: str, word: str, role: str = "assistant", **fields) -> SearchHit:
    """A session in which a word was found; its title where that is its role."""
    marks = tuple(Match(start=one.start(), end=one.end()) for one in re.finditer(word, text))
    summary = session(17, **({"title": text} if role == "title" else {}), **fields)
    known = {field.name: getattr(summary, field.name) for field in dataclasses.fields(SessionSummary)}
    snippet = Snippet(text=text, matches=marks, role=role)
    return SearchHit(**known, relevance_score=1.0, match_count=len(marks), snippet=snippet)


def found_line(one: SearchHit, columns: int) -> Text:
    """The last line of a search result: that with the words in it."""
    return list(tables.card_lines(grids.cards([one], {one.unified_id: "5b1c"}).cards, columns))[-1]


def bold(line: Text) -> list[str]:
    return [line.plain[span.start : span.end] for span in line.spans if span.style == palette.MATCH]


@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize("role", ["assistant", "title"])
@pytest.mark.parametrize("before", range(6))
@pytest.mark.parametrize("after", range(4))
def test_what_was_found_is_seen_in_any_script(columns, role, before, after):
    line = found_line(hit(FOX * before + "検索の語" + FOX * after, "検索の語", role), columns)

    assert bold(line) == ["検索の語"]
    assert width(line.plain) == columns
    assert line.plain.endswith("  1 match")


@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize("role", ["assistant", "title"])
def test_the_end_of_a_long_line_is_shown_whole(columns, role):
    line = found_line(hit(FOX * 8 + "検索の語", "検索の語", role), columns)

    assert bold(line) == ["検索の語"]
    assert re.search("…[^…]+検索の語 *  1 match$", line.plain)
    assert columns - 1 <= width(line.plain.replace("  1 match", "").rstrip() + "  1 match") <= columns


@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize("role", ["assistant", "title"])
def test_what_was_found_is_bold_where_something_before_it_is_spelled_out(columns, role):
    text = f"{OVERRIDE} a word{OVERRIDE} a wo{OVERRIDE}rd"
    line = found_line(hit(text, f"wo{OVERRIDE}?rd", role), columns)

    assert bold(line) == ["word", f"wo{SEEN}rd"]
    assert f"{SEEN} a word{SEEN} a wo{SEEN}rd" in line.plain
    assert OVERRIDE not in line.plain


@pytest.mark.parametrize("columns", [60, 120])
def test_what_was_found_is_seen_after_much_that_is_spelled_out(columns):
    line = found_line(hit(OVERRIDE * 50 + "word" + " and more" * 20, "word"), columns)

    assert bold(line) == ["word"]
    assert width(line.plain) == columns


def test_no_accent_is_left_without_its_letter():
    line = found_line(hit("e\u0301" * 200 + "word" + " and more" * 20, "word"), 60)

    assert bold(line) == ["word"]
    assert "…e\u0301" in line.plain


def test_a_chart_is_as_wide_as_there_is_room():
    chart = Chart("agent", ["claude", "codex"], [Bar("2026-11-18", "~$1.00", [Decimal("0.75"), Decimal("0.25")])])
    narrow, wide = (list(tables.chart_lines(chart, columns))[-1].plain for columns in (40, 80))

    assert narrow == "  2026-11-18      ~$1.00  ██████████▓▓▓▓"
    assert len(wide) == 80
    assert chart.plain() == f"█ claude  ▓ codex\n2026-11-18      ~$1.00  {'█' * 45}{'▓' * 15}"


def status(agent: str, **fields) -> AgentStatus:
    known = {"title": agent, "session_count": 0, "unreadable": 0, "stores": (f"/home/dev/.{agent}",)}
    return AgentStatus(agent=agent, **{**known, **fields})


def test_the_doctor_counts_what_cannot_be_read_and_begins_with_what_is_used():
    unused = status("agent")
    used = status("vole", session_count=12, found=("/home/dev/.vole",), installed=True, program_version="1.2")
    broken = status("codex", unreadable=3, found=("/home/dev/.codex",))
    made = grids.agents([unused, used, broken])

    assert "UNREADABLE" not in grids.agents([unused, used]).columns
    assert [row[0] for row in made.rows] == ["vole", "codex", "agent"]
    assert dict(zip(made.columns, made.rows[1], strict=True))["UNREADABLE"] == "3"
    assert made.rows[2][-1] == "not there: /home/dev/.agent"


def test_a_long_path_is_cut_where_it_says_least():
    made = grids.agents([status("vole", session_count=1, found=("/backup/of/an/old/machine/home/dev/.vole",))])

    assert rows(made, 60)[1][-1] == "…ld/machine/home/dev/.vole"


def test_a_note_is_wrapped_not_cut():
    note = "approximate: some agents keep only totals, which are priced at the base tier"
    drawn = [line.plain for line in tables.faint(note, 40)]

    assert " ".join(" ".join(drawn).split()) == note
    assert max(map(len, drawn)) <= 40
