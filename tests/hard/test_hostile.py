"""Hostile content: nothing a session holds acts on a terminal, a page, a shell, a path or another session's bill."""

import fcntl
import html.parser
import itertools
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from amux.manager import SessionManager
from amux.query import Query
from amux.readers._base import Host

from . import law
from .commands import AMUX, Place, offered, place

ESC, BEL, ST = "\x1b", "\x07", "\x1b\\"
TEXTS = {
    "clipboard": f"{ESC}]52;c;ZXZpbA=={BEL}",
    "link": f"{ESC}]8;;https://example.org{ST}click{ESC}]8;;{ST}",
    "window title": f"{ESC}]0;owned{BEL}",
    "cursor": f"{ESC}[2J{ESC}[1;1Hgone{ESC}[1A{ESC}[2K",
    "C1": "\x9b2J\x9d0;owned\x9c",
    "answer back": f"{ESC}[6n{ESC}[c{ESC}P+q544e{ST}",
    "overwritten": "harmless\rharmful\x08\x08\x08",
    "Rich markup": "[bold red]x[/bold red] [link=file:///etc/passwd]y[/link] [/] [@click=app.quit]z[/]",
    "Markdown": "x\n```\n~~~\n# not a heading\n</details>\n[a](javascript:alert(1)) ![b](http://example.org/b.png)",
    "HTML": "</title></style></pre><script>alert(1)</script><img src=x onerror=alert(1)><!--",
    "direction": "abc\u202e\u2066fdp.exe\u2069\u200f",
    "separators": "one\u2028two\u2029three\x85four\x0bfive\x0cvi",
    "NUL": "a\0b",
    "half a pair": "a\ud83db",
}
IDS = (
    "../../etc/passwd",
    "-rf",
    "--help",
    "a;touch owned",
    "$(touch owned)",
    "`touch owned`",
    "a\nb",
    "'; touch owned; '",
    f"{ESC}]0;x{BEL}",
    "%s%n",
    "..",
    "con",
    "x" * 300,
    "a:b",
)

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What a terminal acts upon, or what turns the reading direction round."""
TAGS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "link",
        "style",
        "body",
        "header",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "dl",
        "div",
        "dt",
        "dd",
        "aside",
        "input",
        "output",
        "button",
        "details",
        "summary",
        "ol",
        "ul",
        "li",
        "a",
        "main",
        "section",
        "p",
        "article",
        "time",
        "span",
        "pre",
        "code",
        "footer",
        "script",
        "hr",
        "em",
        "strong",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "br",
        "del",
        "s",
    ]
)


def string(text: str) -> str:
    """A text inside JSON."""
    return json.dumps(text)[1:-1]


# A directory in which amux is started


@pytest.fixture
def trap(tmp_path) -> Path:
    """A directory with modules of the names that amux imports; whoever runs one of them leaves a file."""
    where = tmp_path / "trap"
    for name in ("amux/__init__.py", "amux/__main__.py", "amux/filler.py", "orjson.py", "typer.py", "sqlite3.py"):
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(f"import pathlib\npathlib.Path({str(where / 'sprung')!r}).touch()\n")
    return where


def test_no_process_that_fills_the_catalog_runs_what_lies_here(corpus, tmp_path, trap, monkeypatch):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "fork"), tmp_path / "case")
    usual = case.listed()
    monkeypatch.setattr("amux.catalog.WORTHWHILE", 1)
    monkeypatch.chdir(trap)

    assert {one.session_id: one for one in SessionManager(Host(case.home, case.env)).list()} == usual
    assert not (trap / "sprung").exists()


def test_a_process_that_dies_at_once_costs_no_answer(corpus, tmp_path, monkeypatch):
    """However much it was to be told."""
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "fork"), tmp_path / "case")
    usual = case.listed()
    monkeypatch.setattr("amux.catalog.WORTHWHILE", 1)
    monkeypatch.setattr("sys.executable", shutil.which("false"))
    env = {**case.env, "LONG": "x" * 2**20}

    assert {one.session_id: one for one in SessionManager(Host(case.home, env), cache=False).list()} == usual


def test_no_locale_makes_amux_run_what_lies_here(hostile, trap):
    variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    asked = ["sessions", "list", "--json"]
    run = hostile.run(*asked, env={**hostile.environment, **variables}, cwd=trap)

    assert run.stdout == hostile.run(*asked).stdout
    assert not (trap / "sprung").exists()


# A home in which everything is hostile


def spoiled(content: str, text: str, id: str) -> str:
    """A transcript of Claude Code with a text in every place that is shown."""
    records = [json.loads(line) for line in content.splitlines()]
    for record in records:
        record.update({name: text for name in ("cwd", "gitBranch", "version", "permissionMode") if name in record})
        message = record.get("message")
        if not isinstance(message, dict):
            continue
        if message.get("model"):
            message["model"] = text
        if isinstance(message.get("content"), str):
            message["content"] += text
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            for name in ("text", "thinking", "name"):
                if name in block:
                    block[name] += text
            if block.get("type") == "tool_use":
                block["input"] = {"command": text, text: text, "file_path": text}
            if block.get("type") == "tool_result":
                block["content"] = text
    extra = [
        {"type": "custom-title", "customTitle": text, "sessionId": id},
        {"type": "tag", "tag": text, "sessionId": id},
    ]
    return "\n".join(json.dumps(record) for record in [*records, *extra]) + "\n"


@pytest.fixture(scope="module")
def hostile_home(corpus, tmp_path_factory) -> Path:
    """One session for each text, and one broken file whose name is hostile."""
    home = tmp_path_factory.mktemp("hostile") / "home"
    source = next(path for path in corpus.scenarios("claude") if path.name == "one")
    shutil.copytree(source / "home", home)
    transcript = next(home.glob(".claude/projects/*/*.jsonl"))
    content = transcript.read_text()
    for number, text in enumerate(TEXTS.values()):
        id = f"00000000-0000-4000-8000-{number:012}"
        spoilt = spoiled(content.replace(transcript.stem, id), text, id)
        (transcript.parent / f"{id}.jsonl").write_text(spoilt)
    evil = home / ".codex" / "sessions" / "2026" / "11" / f"18{ESC}]0;owned{BEL}"
    evil.mkdir(parents=True)
    (evil / "rollout-2026-11-18T06-00-00-01a1ed4a-a8a1-7db2-b187-7d901e2e3b14.jsonl").write_text("no record\n")
    return home


@pytest.fixture
def hostile(hostile_home, tmp_path) -> Place:
    own = tmp_path / "own"
    own.mkdir()
    return Place(hostile_home, own)


COMMANDS = [
    ["sessions", "list"],
    ["sessions", "list", "--tree"],
    ["sessions", "list", "--sort", "cost"],
    ["sessions", "search", "marmalade"],
    ["sessions", "search", "]0;owned"],
    ["cost", "report", "--group-by", "model"],
    ["cost", "report", "--group-by", "project,session"],
    ["cost", "report", "--group-by", "tag"],
    ["cost", "report", "--csv", "--group-by", "model"],
    ["cost", "report", "--chart", "--group-by", "day,model"],
    ["agents"],
]


def shows(place: Place) -> list[list[str]]:
    ids = [one["sessionId"] for one in place.listed()]
    options = ([], ["--tools", "full", "--thinking"])
    found = [["sessions", "show", "claude", id, *more] for id in ids for more in options]
    if "diff" in offered():
        found.append(["sessions", "diff", f"claude:{ids[0]}", f"claude:{ids[1]}"])
    return found if law.SOAK else found[::3]


def acting(text: str) -> list[str]:
    """The lines of an output in which something would act; line ends and colours aside."""
    return [line for line in COLOUR.sub("", text).replace("\r\n", "\n").split("\n") if ACTING.search(line)]


def test_nothing_acts_in_a_pipe(hostile):
    for argv in [*COMMANDS, *shows(hostile)]:
        run = hostile.run(*argv, "-v")

        assert (acting(run.stdout), acting(run.stderr)) == ([], []), argv


def at_terminal(place: Place, argv: list[str], columns: int = 100, **variables: str) -> str:
    """What a command prints at a terminal."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: value for name, value in place.environment.items() if name != "COLUMNS"}
    environment = {**kept, "TERM": "xterm-256color", "PAGER": "cat", **variables}
    options = {
        "stdin": subprocess.DEVNULL,
        "stdout": terminal,
        "stderr": terminal,
        "env": environment,
        "cwd": place.own,
    }
    process = subprocess.Popen([AMUX, *place.command(*argv)], **options)
    os.close(terminal)
    told = b""
    while True:
        try:
            piece = os.read(controller, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        told += piece
    os.close(controller)
    assert process.wait(timeout=60) == 0, told.decode("utf-8", "replace")
    return told.decode()


def test_nothing_acts_at_a_terminal(hostile):
    for argv in [*COMMANDS, ["sessions", "list", "--json"], *shows(hostile)]:
        assert acting(at_terminal(hostile, [*argv, "-v"])) == [], argv


@pytest.mark.parametrize("form", ["json", "jsonl", "markdown", "html"])
def test_no_export_acts_at_a_terminal(hostile, form):
    link = hostile.own / "link"
    link.symlink_to("/dev/stdout")
    for number, name in enumerate(TEXTS):
        argv = ["sessions", "export", "claude", f"00000000-0000-4000-8000-{number:012}", "--format", form]
        if law.SOAK or name in ("C1", "direction", "clipboard"):
            assert acting(at_terminal(hostile, argv)) == [], name
        if name == "C1":
            assert acting(at_terminal(hostile, [*argv, "--output", str(link)])) == []


def test_markup_of_a_session_is_text_at_a_terminal(hostile):
    told = at_terminal(hostile, ["sessions", "list"], columns=250)

    assert "[bold red]x[/bold red]" in COLOUR.sub("", told)


def test_json_gives_back_what_was_there(hostile):
    titles = {one["title"] for one in hostile.listed()}

    for name in ("clipboard", "C1", "Rich markup", "HTML", "direction", "NUL"):
        assert TEXTS[name].strip() in titles, name
    for one in hostile.listed():
        shown = json.loads(hostile.run("sessions", "show", "claude", one["sessionId"], "--json").stdout)
        assert shown["title"] == one["title"]


class Page(html.parser.HTMLParser):
    """What a browser would make of a page: its elements, their attributes, its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.mark.skipif("export" not in offered(), reason="there is no export")
def test_a_page_has_no_elements_of_the_session(hostile, tmp_path):
    out = tmp_path / "pages"
    hostile.run("sessions", "export", "--all", "--format", "html", "--output", str(out))
    pages = sorted(out.glob("*.html"))

    assert len(pages) == len(TEXTS) + 1
    for path in pages:
        page = Page(path.read_text())
        assert set(page.tags) <= TAGS
        assert page.tags.count("script") == page.tags.count("style") == page.tags.count("title") == 1
        assert not [name for name, _ in page.attributes if name.startswith("on")]
        links = [value or "" for name, value in page.attributes if name in ("href", "src", "action")]
        assert not [link for link in links if not link.startswith(("#", "data:image/svg+xml", "http://", "https://"))]
        assert "Content-Security-Policy" in path.read_text()
        assert acting(path.read_text()) == []


@pytest.mark.skipif("export" not in offered(), reason="there is no export")
def test_markdown_stays_inside_its_message(hostile, tmp_path):
    from markdown_it import MarkdownIt  # noqa: PLC0415 - what only this test needs

    out = tmp_path / "texts"
    hostile.run("sessions", "export", "--all", "--format", "markdown", "--output", str(out))
    for path in out.glob("*.md"):
        text = path.read_text()
        tokens = MarkdownIt("commonmark").enable("table").parse(text)
        headings = [after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open"]
        elements = "".join(token.content for token in tokens if token.type == "html_block")

        assert acting(text) == []
        assert headings[0]
        assert [one for one in headings if one.startswith(("User", "Assistant", "Tool"))]
        assert set(re.findall(r"<(/?\w+)", elements)) <= {"details", "/details", "summary", "/summary"}
        assert elements.count("<details>") == elements.count("</details>")


# Ids


def renamed(case, old: str, new: str) -> None:
    """Give a session of a corpus home another id, wherever it stands in files of text."""
    for path in sorted(case.home.rglob("*")):
        if path.is_file() and path.suffix in (".json", ".jsonl") and old.encode() in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(old.encode(), string(new).encode()))


SCENARIOS = {
    "pi": "named-custom-id",
    "gemini": "one-prompt",
    "omp": "one-tool",
    "droid": "one-tool",
    "agent": "one-tool",
}
FAKE = """#!/usr/bin/env python3
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd()}))
"""


@pytest.mark.parametrize("agent", [agent for agent in SCENARIOS if agent in law.agents()])
def test_an_id_is_no_path_no_option_and_no_command(corpus, tmp_path, agent):
    scenario = next(path for path in corpus.scenarios(agent) if path.name == SCENARIOS[agent])
    seen = 0
    first = sorted(SCENARIOS).index(agent)
    for number, id in enumerate(IDS if law.SOAK else IDS[first :: len(SCENARIOS)]):
        case = corpus.open_case(scenario, tmp_path / str(number))
        renamed(case, case.sessions[0]["id"], id)
        where = place(case, case.home.parent / "own")
        for one in where.listed(agent):
            seen += one["sessionId"] == id
            check_id(where, agent, one["sessionId"])
    assert seen or agent not in ("pi", "gemini")  # the others may take it from the name of the file


def check_id(where: Place, agent: str, id: str) -> None:
    shown = where.run("sessions", "show", "--json", "--", agent, id)
    assert json.loads(shown.stdout)["sessionId"] == id
    for argv in (
        ["sessions", "list"],
        ["sessions", "show", "--", agent, id],
        ["cost", "report", "--group-by", "session"],
    ):
        run = where.run(*argv)
        assert (acting(run.stdout), acting(run.stderr)) == ([], [])
    wrong = where.run("sessions", "show", "--", agent, id + "\x1b]0;x\x07", check=False)
    assert (wrong.returncode, acting(wrong.stderr)) == (8, [])
    if "export" in offered():
        check_names(where)
    if "resume" in offered():
        check_shell_line(where, agent, id)


def check_names(where: Place) -> None:
    """What an export of all writes is in the directory it was given, under names that are safe to type."""
    out = where.own / "out" / "deep"
    before = everything(where.own.parent)
    where.run("sessions", "export", "--all", "--format", "json", "--output", str(out), "--force")
    written = [path for path in everything(where.own.parent) - before if where.own / "cache" not in path.parents]

    assert [path for path in written if path not in (out, out.parent) and path.parent != out] == []
    assert all(re.fullmatch(r"[a-z][\w.-]*", path.name) and len(path.name) < 200 for path in out.iterdir())
    shutil.rmtree(out.parent)


def everything(directory: Path) -> set[Path]:
    return set(directory.rglob("*"))


def check_shell_line(where: Place, agent: str, id: str) -> None:
    """The line that resume prints starts the program with the very arguments it would be given, and does nothing else."""
    programs = where.own / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("pi", "gemini", "omp", "droid", "agent"):
        (programs / name).write_text(FAKE)
        (programs / name).chmod(0o755)
    environment = {**where.environment, "PATH": f"{programs}:{os.environ['PATH']}"}
    started = where.own / "started in; $(here)"
    started.mkdir(exist_ok=True)
    argv = ["sessions", "resume", "--cwd", str(started)]
    told = where.run(*argv, "--json", "--", agent, id, env=environment, check=False)
    line = where.run(*argv, "--print", "--", agent, id, env=environment, check=False)
    assert told.returncode == line.returncode
    if line.returncode:
        assert line.returncode in (2, 4, 6), line.stderr
        assert acting(line.stderr) == []
        return
    assert acting(line.stdout) == []
    ran = subprocess.run(
        ["bash", "-c", line.stdout], env=environment, cwd=where.own, capture_output=True, text=True, check=True
    )
    answer = json.loads(ran.stdout)

    assert answer["cwd"] == str(started)
    assert answer["argv"] == json.loads(told.stdout)["argv"][1:]
    assert not [one for one in answer["argv"] if one == id and one.startswith("-")]
    assert [path.name for path in [*where.own.rglob("owned"), *where.home.rglob("owned")]] == []


# Other sessions


def lines_of(agent: str, host: Host, home: Path) -> dict[Path, law.Told]:
    told = law.told(agent, host, shown=False).sessions.values()
    return {Path(one.path): one for one in told if one.path.endswith(".jsonl") and home in Path(one.path).parents}


def spent(agent: str, host: Host) -> tuple[object, ...]:
    manager = SessionManager(host, cache=False)
    total = manager.total_cost(Query(agents=(agent,)))
    return total.input_tokens, total.output_tokens, total.cached_tokens, total.call_count


@pytest.mark.parametrize("agent", law.agents())
def test_an_impostor_neither_hides_a_session_nor_doubles_its_bill(corpus, tmp_path, agent):
    """A copy of a transcript in another file, which says it is the very same session."""
    for scenario in corpus.scenarios(agent):
        case = corpus.open_case(scenario, tmp_path / scenario.name)
        host = Host(case.home, case.env)
        files = lines_of(agent, host, case.home)
        if files:
            break
    else:
        pytest.skip(f"{agent} has no files of lines")
    path, session = max(files.items(), key=lambda item: len(item[1].said))
    before, bill = law.told(agent, host, shown=False), spent(agent, host)
    content = path.read_bytes()
    copy = path.with_name(
        re.sub(r"[0-9a-f](?=[^0-9a-f]*\.jsonl$)", lambda found: "0" if found[0] != "0" else "1", path.name)
    )
    assert copy != path
    copy.write_bytes(content.replace(b"marmalade", b"impostor!"))
    after = law.told(agent, host, shown=False)

    assert after.wrong == []
    assert set(before.sessions) <= set(after.sessions)
    assert session.said in {one.said for one in after.sessions.values()}
    assert spent(agent, host) == bill


@pytest.mark.parametrize("agent", law.agents())
def test_links_into_other_directories_lead_nowhere_new(corpus, tmp_path, agent):
    """A link to the whole disk, to the home and to itself in every directory of a store: the same sessions, and soon."""
    for scenario in corpus.scenarios(agent) if law.SOAK else corpus.scenarios(agent)[:3]:
        case = corpus.open_case(scenario, tmp_path / scenario.name)
        host = Host(case.home, case.env)
        before = law.told(agent, host, shown=False)
        for directory in [path for path in case.home.rglob("*") if path.is_dir() and not path.is_symlink()]:
            (directory / "zz-disk").symlink_to("/")
            (directory / "zz-home").symlink_to(case.home)
            (directory / "zz-here").symlink_to(".")
        began = time.monotonic()
        after = law.told(agent, host, shown=False)

        assert after.wrong == []
        assert {id: one.said for id, one in after.sessions.items()} == {
            id: one.said for id, one in before.sessions.items()
        }
        assert time.monotonic() - began < law.SECONDS


SECRET = "the-secret-of-another-directory"


@pytest.mark.parametrize("agent", law.agents())
def test_no_path_in_a_session_leads_out_of_the_store(corpus, tmp_path, agent):
    """Whatever file a record names, what lies outside of the store does not become part of the session."""
    for scenario in corpus.scenarios(agent):
        case = corpus.open_case(scenario, tmp_path / scenario.name)
        secret = case.home.parent / "secret.txt"
        secret.write_text(SECRET)
        for path in [path for path in case.home.rglob("*") if path.suffix in (".json", ".jsonl") and path.is_file()]:
            path.write_bytes(leading_out(path, case.home, secret))
        manager = SessionManager(Host(case.home, case.env), cache=False)
        for one in manager.list(Query(agents=(agent,), subagents=True)):
            session = manager.get(agent, one.session_id, raw=True)
            assert SECRET not in repr(session)


PATHLIKE = re.compile(rb'(?<=")(?:[\w:.-]*/[^"\\ ]*|artifact:[^"\\]*|blob:[^"\\]*)(?=")|(?<=/)tool-results/[^"\\ <>]+')


def leading_out(path: Path, home: Path, secret: Path) -> bytes:
    """A file in which every path, of the store or not, is one that leads to the secret; those of the working directory stay."""
    upward = os.path.relpath(secret, path.parent)

    def other(found: re.Match[bytes]) -> bytes:
        text = found[0]
        if text.startswith((b"/home/dev", b"http", b"text/", b"image/", b"application/")):
            return text
        if b":" in text[:10]:
            return text.partition(b":")[0] + b"://" + upward.encode()
        return (str(secret) if text.startswith(b"/") else upward).encode()

    return PATHLIKE.sub(other, path.read_bytes())
