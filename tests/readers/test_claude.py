"""What is odd about Claude Code and no recorded session shows."""

import json
import sqlite3
from decimal import Decimal

import pytest

from amux.cost import Report
from amux.manager import SessionManager
from amux.query import Query
from amux.readers._base import Host

SESSION = "11111111-2222-4333-8444-555555555555"
OTHER = "22222222-2222-4333-8444-555555555555"


@pytest.fixture
def project(tmp_path):
    where = tmp_path / ".claude" / "projects" / "-work-shop"
    where.mkdir(parents=True)
    return where


def line(kind: str, uuid: str, parent: str | None, **more) -> dict:
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "timestamp": "2026-11-18T06:00:00.000Z",
        "cwd": "/work/shop",
        **more,
    }


def asked(uuid: str, parent: str | None, text, **more) -> dict:
    return line("user", uuid, parent, message={"role": "user", "content": text}, **more)


def answered(uuid: str, parent: str, id: str, text: str, output: int = 5, **more) -> dict:
    usage = {"input_tokens": 10, "output_tokens": output}
    message = {
        "id": id,
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": text}],
        "usage": usage,
    }
    return line("assistant", uuid, parent, message=message, **more)


def write(path, *lines) -> None:
    path.write_text("".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in lines))


def read(tmp_path, id: str = SESSION):
    return SessionManager(Host.current(tmp_path), cache=False).get("claude", id)


def said(session) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in session.messages]


def test_a_torn_line_in_the_middle_does_not_cut_off_what_came_before(tmp_path, project):
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one"),
        answered("a1", "u1", "m1", "first"),
        '{"type":"user","uuid":"u2","parentUuid":"a1","mess\n',
        answered("a2", "u2", "m2", "second"),
    )

    assert said(read(tmp_path)) == [("user", "one"), ("assistant", "first"), ("assistant", "second")]


def test_a_loop_of_parents_ends(tmp_path, project):
    write(project / f"{SESSION}.jsonl", asked("u1", "a1", "one"), answered("a1", "u1", "m1", "first"))

    assert ("assistant", "first") in said(read(tmp_path))


def test_the_lines_of_one_answer_are_one_charge_with_the_highest_output(tmp_path, project):
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one"),
        answered("a1", "u1", "m1", "first", output=1),
        answered("a2", "a1", "m1", "second", output=200),
        answered("a3", "a2", "m1", "third", output=1),
    )
    session = read(tmp_path)

    assert said(session)[1] == ("assistant", "first\n\nsecond\n\nthird")
    assert (session.cost.output_tokens, session.cost.input_tokens) == (200, 10)


def test_summaries_of_other_sessions_are_no_title(tmp_path, project):
    write(
        project / f"{SESSION}.jsonl",
        {"type": "summary", "summary": "Of another", "leafUuid": "elsewhere"},
        asked("u1", None, "one"),
        {"type": "summary", "summary": "Its own", "leafUuid": "u1"},
    )

    assert read(tmp_path).title == "Its own"


def test_a_title_beside_the_transcript(tmp_path, project):
    write(project / f"{SESSION}.jsonl", asked("u1", None, "one"))
    (project / SESSION).mkdir()
    (project / SESSION / "custom-title.json").write_text('{"customTitle": "Beside"}')

    assert read(tmp_path).title == "Beside"


def test_files_of_nothing_but_state_are_no_sessions(tmp_path, project):
    (project / f"{SESSION}.jsonl").touch()
    write(project / f"{OTHER}.jsonl", {"type": "summary", "summary": "x", "leafUuid": "y"})
    (project / "sessions-index.json").write_text("{}")

    assert SessionManager(Host.current(tmp_path), cache=False).list() == []


def test_sub_agents_beside_the_sessions_belong_to_them_and_warm_ups_count(tmp_path, project):
    write(project / f"{SESSION}.jsonl", asked("u1", None, "one"), answered("a1", "u1", "m1", "first"))
    side = {"isSidechain": True, "agentId": "abcd1234", "sessionId": SESSION}
    write(
        project / "agent-abcd1234.jsonl",
        asked("s1", None, "Warmup", **side),
        answered("s2", "s1", "m2", "ready", **side),
    )
    manager = SessionManager(Host.current(tmp_path), cache=False)

    assert [one.session_id for one in manager.list()] == [SESSION]
    assert [one.parent_id for one in manager.list(Query(subagents=True)) if one.kind == "subagent"] == [SESSION]
    assert manager.list()[0].cost.output_tokens == 10


def test_a_spilled_output_never_leads_out_of_the_store(tmp_path, project):
    (tmp_path / "secret.txt").write_text("secret")
    call = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "<persisted-output> preview"}]
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one"),
        line("assistant", "a1", "u1", message={"id": "m1", "role": "assistant", "content": call}),
        asked(
            "u2",
            "a1",
            result,
            toolUseResult={"persistedOutputPath": f"/x/{SESSION}/tool-results/../../../../../secret.txt"},
        ),
    )

    assert not any("secret" in message.content for message in read(tmp_path).messages)


def test_the_one_file_of_0_2_96(tmp_path):
    """A continued conversation has a new id whose first row points into the old one."""
    (tmp_path / ".claude").mkdir()
    db = sqlite3.connect(tmp_path / ".claude" / "__store.db")
    db.executescript("""
        create table base_messages (uuid, parent_uuid, session_id, timestamp, message_type, cwd, user_type, version, isSidechain);
        create table user_messages (uuid, message, tool_use_result, timestamp);
        create table assistant_messages (uuid, cost_usd, duration_ms, message, is_api_error_message, timestamp, model);
    """)
    rows = [
        ("u1", None, "old", "user"),
        ("a1", "u1", "old", "assistant"),
        ("u2", "a1", "new", "user"),
        ("a2", "u2", "new", "assistant"),
    ]
    for number, (uuid, parent, session, kind) in enumerate(rows):
        db.execute(
            "insert into base_messages values (?, ?, ?, ?, ?, '/work', 'x', '0.2.96', 0)",
            (uuid, parent, session, 1740000000 + number, kind),
        )
        if kind == "user":
            db.execute(
                "insert into user_messages values (?, ?, null, 0)",
                (uuid, json.dumps({"role": "user", "content": uuid})),
            )
        else:
            message = answered(uuid, "", f"m{number}", f"answer {uuid}")["message"]
            db.execute("insert into assistant_messages values (?, 0.25, 1, ?, 0, 0, 'x')", (uuid, json.dumps(message)))
    db.commit()
    db.close()
    manager = SessionManager(Host.current(tmp_path), cache=False)
    new = manager.get("claude", "new")

    assert said(new) == [("user", "u1"), ("assistant", "answer a1"), ("user", "u2"), ("assistant", "answer a2")]
    assert [message.inherited for message in new.messages] == [True, True, False, False]
    assert new.forked_from == "old"
    report = manager.total_cost(report=Report(group_by=("session",)))
    assert {key: row.total_usd for key, row in report.breakdowns.items()} == {
        "claude:old": Decimal("0.25"),
        "claude:new": Decimal("0.25"),
    }
    assert manager.readers["claude"].resume_command(new, None) is None


def test_commands(tmp_path, project):
    write(project / f"{SESSION}.jsonl", asked("u1", None, "one"))
    manager = SessionManager(Host.current(tmp_path), cache=False)
    (session,) = manager.list()
    reader = manager.readers["claude"]

    assert reader.resume_command(session, None) == ["claude", "--resume", SESSION]
    assert reader.fork_command(session, "opus") == ["claude", "--model", "opus", "--resume", SESSION, "--fork-session"]
