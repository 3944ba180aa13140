"""Handing a session's work over to another agent: what the brief says, where it is kept, what is started."""

import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from amux.cli import run
from amux.handover import brief, brief_file, edited, keep, open_steps, prompt
from amux.model import Message, Session, ToolCall, ToolResult
from amux.output.redact import Redactor

SECRET = "sk-ant-api03-" + "Zx9Kq2Lm" * 11 + "AA"


def call(name: str, input: object, **known) -> ToolCall:
    return ToolCall("c1", name, input, **{"output": "ok", **known})


def session(*messages: Message, **known) -> Session:
    return Session(
        **{
            "agent": "vole",
            "session_id": "abcd1234",
            "title": "Dig a tunnel",
            "created_at": datetime(2026, 1, 1, 8, tzinfo=UTC),
            "updated_at": datetime(2026, 1, 1, 9, tzinfo=UTC),
            "turn_count": 1,
            "message_count": len(messages),
            "cwd": "/home/ada/field",
            "git_branch": "main",
            "messages": messages,
            **known,
        }
    )


def sections(text: str) -> dict[str, str]:
    parts = text.split("\n## ")
    return {part.split("\n")[0]: part.partition("\n")[2].strip() for part in parts[1:]}


DUG = session(
    Message("user", "Dig a tunnel from /home/ada/field/gate to the oak.\n\nMind the roots."),
    Message(
        "assistant", "I dig.", tool_calls=(call("Write", {"file_path": "/home/ada/field/tunnel.md", "content": "x"}),)
    ),
    Message("tool", "ok", tool_result=ToolResult("c1", "Write", "ok")),
    Message("assistant", "The first half is dug."),
    Message("user", "Make it wider"),
    Message("assistant", "", tool_calls=(call("Edit", {"path": "tunnel.md", "oldText": "1", "newText": "2"}),)),
    Message("assistant", "Wider now."),
    Message("system", "The tunnel is half dug; clay walls were decided.", event="compaction"),
    Message("user", "Now the second half"),
    Message(
        "assistant",
        "Half of it.",
        tool_calls=(
            call(
                "todo",
                {
                    "todos": [
                        {"content": "dig to the oak", "status": "in_progress"},
                        {"content": "prop the walls", "status": "pending"},
                        {"content": "open the gate", "status": "completed"},
                    ]
                },
            ),
        ),
    ),
    Message("user", "And a chamber"),
)


def test_a_brief_tells_goal_decisions_files_and_what_is_open():
    told = sections(brief(DUG, "/home/ada"))

    assert told["Goal"] == "> Dig a tunnel from ./gate to the oak.\n>\n> Mind the roots."
    assert "> The tunnel is half dug; clay walls were decided." in told["Decisions"]
    assert told["Decisions"].endswith("1. Make it wider\n2. Now the second half\n3. And a chamber")
    assert told["Files edited"] == "- `./tunnel.md`\n- `tunnel.md`"
    assert "> Wider now." in told["Last exchanges"]
    assert "> The first half is dug." not in told["Last exchanges"]
    assert told["Open points"] == (
        "- dig to the oak\n- prop the walls\n- the last prompt was not answered: And a chamber"
    )


def test_a_session_of_nothing_has_a_brief_too():
    told = sections(brief(session(title=""), "/home/ada"))

    assert told["Goal"] == "Nothing was asked."
    assert told["Open points"] == "None that the transcript shows."


def test_what_was_under_way_or_went_wrong_is_open():
    running = call("Bash", {"command": "make all"}, output=None)
    killed = session(Message("user", "Build"), Message("assistant", "", tool_calls=(running,)))
    failed = session(Message("user", "Build"), Message("system", "rate limited", event="error", is_error=True))

    assert sections(brief(killed, ""))["Open points"] == "- a tool call was under way: Bash make all"
    assert "- the session ended with an error: rate limited" in sections(brief(failed, ""))["Open points"]


def test_a_long_text_is_cut_and_says_so():
    text = brief(session(Message("user", "x" * 50_000)), "")

    assert len(text) < 20_000
    assert "(44,000 characters left out)" in text


def test_paths_are_told_from_the_directory_and_the_home():
    text = brief(
        session(Message("user", "see /home/ada/field/a.py, /home/ada/fields, /home/ada/.rc and /home/adam")),
        "/home/ada",
    )

    assert "> see ./a.py, ~/fields, ~/.rc and /home/adam" in text


def test_no_control_of_a_session_stands_in_the_brief():
    hostile = session(
        Message("user", "\x1b]0;owned\x07 \u202e"),
        Message("assistant", "\x9b31m", tool_calls=(call("Write", {"path": "a\x1b[2J\n## Goal", "content": ""}),)),
        title="\x1b[2J",
        git_branch="\x07",
    )
    text = brief(hostile, "")

    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert [line for line in text.split("\n") if line == "## Goal"] == ["## Goal"]


@pytest.mark.parametrize(
    ("input", "files"),
    [
        ({"file_path": "a.py", "content": "x"}, ["a.py"]),
        ({"filePath": "a.py", "oldString": "x", "newString": "y"}, ["a.py"]),
        ({"path": "a.py", "edits": [{"oldText": "x", "newText": "y"}]}, ["a.py"]),
        ({"path": "a.py", "file_text": ""}, ["a.py"]),
        ("*** Begin Patch\n*** Update File: a.py\n*** Add File: b.py\n*** End Patch", ["a.py", "b.py"]),
        ({"cmd": ["apply_patch", "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"]}, ["a.py"]),
        ({"path": "a.py"}, []),
        ({"command": "rm -r a.py"}, []),
        (None, []),
        ([1, {"path": 3, "content": "x"}], []),
    ],
)
def test_files_a_call_changed(input, files):
    assert edited(call("tool", input)) == files


@pytest.mark.parametrize(
    ("input", "left"),
    [
        ({"plan": [{"step": "a", "status": "pending"}, {"step": "b", "status": "COMPLETED"}]}, ["a"]),
        ({"todos": "- [x] a\n- [ ] b\n1. [in_progress] c"}, ["b", "c"]),
        ({"todos": [{"content": "a", "status": "completed"}]}, []),
        ({"todos": [1, None, {"status": None}]}, []),
        ({"plan": [1]}, None),
        ({"query": "x"}, None),
        ("text", None),
    ],
)
def test_steps_that_are_not_done(input, left):
    assert open_steps(input) == left


# Keeping it


def test_the_brief_is_the_users_own():
    path = keep(DUG, "old")
    assert keep(DUG, "new\ud800") == path

    assert path.read_text() == "new?"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [one.name for one in path.parent.iterdir()] == ["vole-abcd1234.md"]


def test_no_id_leads_out_of_the_directory():
    paths = [brief_file(session(session_id=id)) for id in ("../../x", "__-__-x", "/etc/passwd", "a\0b", "x" * 500, ".")]

    assert {path.parent for path in paths} == {brief_file(DUG).parent}
    assert len(set(paths)) == len(paths)
    assert max(len(path.name) for path in paths) < 120


def test_the_prompt_is_no_option_and_names_the_file():
    path = brief_file(DUG)

    assert str(path) in prompt(DUG, path)
    assert not prompt(DUG, path).startswith("-")


# From command to command


@pytest.fixture
def handed(corpus, tmp_path, monkeypatch, capfd):
    """Hands a session of Claude Code over, in a home of its own; codex takes a prompt behind its options."""
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "compact"), tmp_path)
    transcript = next(case.home.rglob("*.jsonl"))
    transcript.write_bytes(
        transcript.read_bytes().replace(b"Add a marmalade", f"With {SECRET} add a marmalade".encode())
    )
    started = []
    monkeypatch.setattr(
        "amux.readers.codex.CodexReader.start_command",
        lambda _, prompt, model: ["codex", *(("-m", model) if model else ()), prompt],
    )
    monkeypatch.setattr("amux.launch.become", lambda launch: started.append(launch) or 0)
    monkeypatch.setenv("HOME", str(case.home))
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    place = tmp_path / "place"
    place.mkdir()

    def hand(*options: str):
        status = run(["sessions", "resume", "claude", "latest", "--in", "codex", "--cwd", str(place), *options])
        return status, capfd.readouterr(), started

    return hand


def test_another_agent_is_started_with_a_pointer_to_the_brief(handed, tmp_path):
    status, told, (launch,) = handed("--model", "gpt-9")

    assert status == 0
    assert launch.argv[:3] == ("codex", "-m", "gpt-9")
    assert launch.cwd == str(tmp_path / "place")
    text = Path(launch.brief).read_text()
    assert launch.brief in launch.argv[3]
    assert "marmalade" in text
    assert SECRET not in text + told.err + told.out
    assert "The summary the agent wrote" in text


def test_print_shows_the_brief_and_the_command(handed):
    status, told, started = handed("--print")

    assert (status, started) == (0, [])
    assert told.out.startswith("cd ")
    assert "&& codex 'Go on with the work" in told.out
    assert "## Open points" in told.err


def test_json_names_the_brief(handed):
    _, told, started = handed("--json")
    value = json.loads(told.out)

    assert started == []
    assert (value["agent"], value["handedOverFrom"]) == ("codex", f"claude:{value['sessionId']}")
    assert value["brief"] in value["argv"][-1]
    assert "## Goal" in Path(value["brief"]).read_text()


def test_an_agent_that_takes_no_prompt_is_left_to_the_user(corpus, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("amux.readers.codex.CodexReader.start_command", lambda *_: None)
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "one"), tmp_path)
    command = ["--home", str(case.home), "sessions", "resume", "claude", "latest", "--in"]

    assert run([*command, "codex", "--cwd", str(tmp_path)]) == 6
    assert "point it to " in capfd.readouterr().err
    assert run([*command, "nope"]) == 3


def test_every_session_of_the_corpus_has_a_brief(case):
    for truth in case.sessions:
        redactor = Redactor(str(case.home))
        text = brief(redactor.session(case.read(case.id_of(truth))), redactor.text(str(case.home)))

        assert list(sections(text)) == ["Goal", "Decisions", "Files edited", "Last exchanges", "Open points"]
