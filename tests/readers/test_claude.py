"""What is odd about Claude Code and no recorded session shows."""

import json
import sqlite3
from decimal import Decimal

import pytest

from amux.cost import Report
from amux.manager import SessionManager
from amux.query import Query
from amux.readers import open_reader
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


def keep(tmp_path, *rows: tuple, summaries: str = "") -> None:
    """`__store.db` with rows of uuid, parent, session and whether it is a side chain's; uuids of answers begin with a."""
    (tmp_path / ".claude").mkdir(exist_ok=True)
    db = sqlite3.connect(tmp_path / ".claude" / "__store.db")
    db.executescript(f"""
        create table if not exists base_messages
            (uuid, parent_uuid, session_id, timestamp, message_type, cwd, user_type, version, isSidechain);
        create table if not exists user_messages (uuid, message, tool_use_result, timestamp);
        create table if not exists assistant_messages
            (uuid, cost_usd, duration_ms, message, is_api_error_message, timestamp, model);
        {summaries}
    """)
    for number, (uuid, parent, session, side) in enumerate(rows):
        answer = uuid.startswith("a")
        db.execute(
            "insert into base_messages values (?, ?, ?, ?, ?, '/work', 'x', '0.2.96', ?)",
            (uuid, parent, session, 1740000000 + number, "assistant" if answer else "user", side),
        )
        if answer:
            message = answered(uuid, "", f"m-{uuid}", f"answer {uuid}")["message"]
            db.execute("insert into assistant_messages values (?, 0.25, 1, ?, 0, 0, 'x')", (uuid, json.dumps(message)))
        else:
            message = {"role": "user", "content": uuid}
            db.execute("insert into user_messages values (?, ?, null, 0)", (uuid, json.dumps(message)))
    db.commit()
    db.close()


def test_the_one_file_of_0_2_96(tmp_path):
    """A continued conversation has a new id whose first row points into the old one."""
    keep(tmp_path, ("u1", None, "old", 0), ("a1", "u1", "old", 0), ("u2", "a1", "new", 0), ("a2", "u2", "new", 0))
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


def test_side_chains_of_0_2_96_are_sub_agents(tmp_path):
    asked_twice = [("s1-count", None, "main", 1), ("a-s1", "s1-count", "main", 1), ("s2-check", "a1", "main", 1)]
    keep(tmp_path, ("u1", None, "main", 0), ("a1", "u1", "main", 0), *asked_twice, ("a-s2", "s2-check", "main", 1))
    keep(tmp_path, ("a2", "a1", "main", 0))
    manager = SessionManager(Host.current(tmp_path), cache=False)
    found = {one.session_id: one for one in manager.list(Query(subagents=True))}

    assert set(found) == {"main", "main-s1-count", "main-s2-check"}
    assert said(manager.get("claude", "main-s1-count")) == [("user", "s1-count"), ("assistant", "answer a-s1")]
    assert [text for _, text in said(manager.get("claude", "main"))] == ["u1", "answer a1", "answer a2"]
    assert (found["main-s2-check"].kind, found["main-s2-check"].parent_id) == ("subagent", "main")
    assert {id: len(manager.get("claude", id).charges) for id in found} == {
        "main": 2,
        "main-s1-count": 1,
        "main-s2-check": 1,
    }
    assert manager.total_cost().call_count == 4


@pytest.mark.parametrize(
    ("columns", "values", "title"),
    [
        ("leaf_uuid, summary, updated_at", "('u1', 'Newer', 3), ('a1', 'Older', 2), ('s1', 'Aside', 9)", "Newer"),
        ("leaf_uuid, summary", "('u1', 'Older'), ('a1', 'Newer'), ('u2', 'Foreign'), ('gone', 'Lost')", "Newer"),
        ("leaf_uuid, summary, updated_at", "('a1', 7, 3), ('a1', '', 2), (null, 'Lost', 1)", "u1"),
        ("leaf_uuid, text", "('a1', 'Unknown')", "u1"),
    ],
)
def test_the_newest_summary_in_0_2_96_is_the_title(tmp_path, columns, values, title):
    rows = [("u1", None, "one", 0), ("a1", "u1", "one", 0), ("s1", None, "one", 1), ("u2", "a1", "two", 0)]
    summaries = f"create table conversation_summaries ({columns}); insert into conversation_summaries values {values};"
    keep(tmp_path, *rows, summaries=summaries)

    assert read(tmp_path, "one").title == title


def test_a_session_of_0_2_96_is_read_again_when_its_summary_changes(tmp_path):
    table = "create table conversation_summaries (leaf_uuid primary key, summary, updated_at);"
    keep(tmp_path, ("u1", None, "one", 0), ("u2", None, "two", 0), summaries=table)
    home = Host.current(tmp_path)
    before = {ref.key: ref.fingerprint for ref in open_reader("claude", home).refs()}
    keep(tmp_path, summaries="insert into conversation_summaries values ('u1', 'First', 1);")
    first = {ref.key: ref.fingerprint for ref in open_reader("claude", home).refs()}
    keep(tmp_path, summaries="update conversation_summaries set summary = 'Again', updated_at = 2;")
    again = {ref.key: ref.fingerprint for ref in open_reader("claude", home).refs()}

    assert len({before["one"], first["one"], again["one"]}) == 3
    assert before["two"] == first["two"] == again["two"]


@pytest.mark.parametrize("lost", ["base_messages", "assistant_messages"])
def test_a_store_of_0_2_96_that_lacks_a_table_costs_nothing_but_itself(tmp_path, project, lost):
    keep(tmp_path, ("u1", None, "one", 0), summaries="create table conversation_summaries (leaf_uuid, summary);")
    with sqlite3.connect(tmp_path / ".claude" / "__store.db") as db:
        db.execute(f"drop table {lost}")
    db.close()
    write(project / f"{SESSION}.jsonl", asked("u1", None, "one"))
    manager = SessionManager(Host.current(tmp_path), cache=False)

    assert [found.session_id for found in manager.list()] == [SESSION]
    assert len(manager.skipped) == 1


def test_damaged_summaries_in_0_2_96_cost_only_titles(tmp_path):
    keep(tmp_path, ("u1", None, "one", 0), summaries="create table conversation_summaries (leaf_uuid, summary);")
    keep(tmp_path, summaries="insert into conversation_summaries values ('u1', 'Summary');")
    file = tmp_path / ".claude" / "__store.db"
    with sqlite3.connect(file) as db:
        root, size = db.execute(
            "select rootpage, page_size from sqlite_master, pragma_page_size where name = 'conversation_summaries'"
        ).fetchone()
    db.close()
    assert read(tmp_path, "one").title == "Summary"
    with file.open("r+b") as pages:
        pages.seek((root - 1) * size)
        pages.write(b"x" * size)

    assert read(tmp_path, "one").title == "u1"


def test_lines_that_are_not_linked_are_read_in_their_order(tmp_path, project):
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one"),
        answered("a1", None, "m1", "first"),
        asked("u2", None, "two"),
    )

    assert said(read(tmp_path)) == [("user", "one"), ("assistant", "first"), ("user", "two")]


def test_answers_without_any_id_are_charges_of_their_own(tmp_path, project):
    usage = {"input_tokens": 10, "output_tokens": 5}
    write(project / f"{SESSION}.jsonl", *[{"type": "assistant", "message": {"usage": usage}}] * 2)
    write(project / f"{OTHER}.jsonl", {"type": "assistant", "message": {"usage": usage}})
    total = SessionManager(Host.current(tmp_path), cache=False).total_cost()

    assert (total.call_count, total.input_tokens) == (3, 30)


# Compaction


def test_history_before_a_summary_without_a_boundary_is_kept(tmp_path, project):
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one"),
        answered("a1", "u1", "m1", "first"),
        asked("s1", None, "what was said", isCompactSummary=True),
        asked("u2", "s1", "two"),
    )

    assert said(read(tmp_path)) == [
        ("user", "one"),
        ("assistant", "first"),
        ("system", "what was said"),
        ("user", "two"),
    ]


@pytest.mark.parametrize("link", [{}, {"logicalParentUuid": None}, {"logicalParentUuid": "gone"}])
def test_history_before_a_boundary_that_does_not_name_it_is_kept(tmp_path, project, link):
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one"),
        answered("a1", "u1", "m1", "first"),
        line("system", "b1", None, subtype="compact_boundary", **link),
        asked("s1", "b1", "what was said", isCompactSummary=True),
        asked("u2", "s1", "two"),
    )

    assert [text for _, text in said(read(tmp_path))] == ["one", "first", "what was said", "two"]


@pytest.mark.parametrize("again", [1, 2])
def test_lines_a_compaction_kept_and_wrote_again_are_read_once(tmp_path, project, again):
    """The first of them is linked to the summary, and the boundary to the last of them: a loop."""
    kept = [asked("u2", "a1", "two"), answered("a2", "u2", "m2", "second")]
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one"),
        answered("a1", "u1", "m1", "first"),
        *kept,
        line("system", "b1", None, subtype="compact_boundary", logicalParentUuid="a2"),
        asked("s1", "b1", "what was said", isCompactSummary=True),
        *[{**kept[0], "parentUuid": "s1"}, kept[1]][:again],
        asked("u3", "a2", "three"),
    )

    assert [text for _, text in said(read(tmp_path))] == ["one", "first", "two", "second", "what was said", "three"]


# Prompts


def test_newer_versions_say_who_wrote_a_prompt(tmp_path, project):
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "typed", promptSource="typed", origin={"kind": "human"}),
        asked("u2", "u1", "a timer rang", promptSource="system"),
        asked("u3", "u2", "another agent says hello", origin={"kind": "peer"}),
        asked("u4", "u3", "sent by a program", promptSource="sdk"),
    )

    assert [text for role, text in said(read(tmp_path)) if role == "user"] == ["typed", "sent by a program"]


def test_a_queued_prompt_may_hold_a_picture_and_need_not_be_a_persons(tmp_path, project):
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    queue = {"type": "queued_command", "commandMode": "prompt"}
    typed = {**queue, "prompt": [{"type": "text", "text": "and this"}, picture], "origin": {"kind": "human"}}
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one"),
        line("attachment", "q1", "u1", attachment=typed),
        line("attachment", "q2", "q1", attachment={**queue, "prompt": "go on by yourself", "isMeta": True}),
        line("attachment", "q3", "q2", attachment={**queue, "prompt": "done", "origin": {"kind": "task-notification"}}),
        answered("a1", "q3", "m1", "first"),
    )
    session = read(tmp_path)

    assert said(session) == [("user", "one"), ("user", "and this"), ("assistant", "first")]
    assert [one.media_type for one in session.messages[1].attachments] == ["image/png"]


# Forks and sub-agents


def test_copies_of_0_2_109_keep_the_id_of_their_session(tmp_path, project):
    """All that tells them from its own lines: times and uuids are the same, and the summary names one of them."""

    def turn(id: str, number: int, parent: str | None) -> list[dict]:
        time = {"sessionId": id, "timestamp": f"2026-11-18T06:0{number}:00.000Z"}
        prompt = asked(f"u{number}", parent, f"prompt {number}", **time)
        return [prompt, answered(f"a{number}", f"u{number}", f"m{number}", f"answer {number}", **time)]

    ids = [SESSION, "f2222222-2222-4333-8444-555555555555", OTHER]
    turns = [turn(id, number, f"a{number - 1}" if number else None) for number, id in enumerate(ids)]
    for number, id in enumerate(ids):
        summary = {"type": "summary", "summary": "Invalid API key", "leafUuid": f"a{number - 1}"}
        write(project / f"{id}.jsonl", summary, *(one for made in turns[: number + 1] for one in made))
    manager = SessionManager(Host.current(tmp_path), cache=False)
    listed = {one.session_id: one for one in manager.list()}

    assert [listed[id].forked_from for id in ids] == [None, ids[0], ids[1]]
    assert [listed[id].cost.input_tokens for id in ids] == [10, 10, 10]
    assert [listed[id].created_at.minute for id in ids] == [0, 1, 2]
    assert {one.title for one in listed.values()} == {"prompt 0"}
    assert [message.inherited for message in manager.get("claude", ids[2]).messages] == [True] * 4 + [False] * 2


def test_a_fork_by_the_sdk_begins_when_it_was_made_though_its_parent_is_gone(tmp_path, project):
    copied = {"forkedFrom": {"sessionId": OTHER, "messageUuid": "x"}, "sessionId": SESSION}
    made = "2026-11-18T07:00:00.000Z"
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one", **copied),
        answered(
            "a1",
            "u1",
            "m1",
            "first",
            **copied,
        )
        | {"timestamp": made},
        {"type": "custom-title", "customTitle": "one (fork)", "sessionId": SESSION, "timestamp": made, "uuid": "t1"},
    )
    fork = read(tmp_path)

    assert (fork.forked_from, fork.created_at.isoformat()) == (OTHER, "2026-11-18T07:00:00+00:00")
    assert [message.inherited for message in fork.messages] == [True, True]


def test_a_renamed_file_is_no_fork(tmp_path, project):
    own = {"sessionId": OTHER}
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one", **own),
        answered("a1", "u1", "m1", "first", **own) | {"timestamp": "2026-11-18T07:00:00.000Z"},
    )
    session = read(tmp_path)

    assert session.forked_from is None
    assert (session.created_at.hour, session.cost.input_tokens) == (6, 10)
    assert not any(message.inherited for message in session.messages)


def test_a_side_question_repeats_the_conversation_and_owns_only_its_answer(tmp_path, project):
    main, agent = "f2222222-2222-4333-8444-555555555555", "aside1234"
    turn = asked("u1", None, "one", sessionId=main), answered("a1", "u1", "m1", "first", sessionId=main)
    write(project / f"{main}.jsonl", *turn)
    side = {"isSidechain": True, "agentId": agent, "sessionId": main}
    (project / main / "subagents").mkdir(parents=True)
    write(
        project / main / "subagents" / f"agent-{agent}.jsonl",
        *({**one, **side, "requestId": "req_2"} for one in turn),
        asked("u2", "a1", "by the way", **side),
        answered("a2", "u2", "m2", "yes", **side),
    )
    manager = SessionManager(Host.current(tmp_path), cache=False)
    found = {one.session_id: one for one in manager.list(Query(subagents=True))}

    assert (found[main].cost.input_tokens, found[agent].cost.input_tokens) == (20, 10)
    assert not any(message.inherited for message in manager.get("claude", main).messages)


def test_a_file_of_side_chains_alone_still_has_its_sub_agents(tmp_path, project):
    write(
        project / f"{SESSION}.jsonl",
        asked("s1", None, "count", isSidechain=True),
        answered("s2", "s1", "m1", "three", isSidechain=True),
    )
    (found,) = SessionManager(Host.current(tmp_path), cache=False).list(Query(subagents=True))

    assert (found.kind, found.parent_id, found.cost.output_tokens) == ("subagent", SESSION, 5)


def test_a_sub_agents_output_too_big_for_its_line_is_read_from_beside_its_parent(tmp_path, project):
    kept = project / SESSION / "tool-results"
    (project / SESSION / "subagents").mkdir(parents=True)
    kept.mkdir()
    (kept / "b1.txt").write_text("all of it")
    side = {"isSidechain": True, "agentId": "abcd1234", "sessionId": SESSION}
    shown = (
        f"<persisted-output>\nOutput too large. Full output saved to: /home/x/{SESSION}/tool-results/b1.txt\n\nPreview"
    )
    write(
        project / SESSION / "subagents" / "agent-abcd1234.jsonl",
        asked("s1", None, "count", **side),
        asked("s2", "s1", [{"type": "tool_result", "tool_use_id": "t1", "content": shown}], **side),
    )

    assert said(read(tmp_path, "abcd1234"))[1] == ("tool", "all of it")


def test_a_sub_agent_cannot_be_resumed(tmp_path, project):
    side = {"isSidechain": True, "agentId": "abcd1234", "sessionId": SESSION}
    write(project / "agent-abcd1234.jsonl", asked("s1", None, "count", **side))
    manager = SessionManager(Host.current(tmp_path), cache=False)
    (session,) = manager.list(Query(subagents=True))

    assert manager.readers["claude"].resume_command(session, None) is None
    assert manager.readers["claude"].fork_command(session, None) is None


def test_commands(tmp_path, project):
    write(project / f"{SESSION}.jsonl", asked("u1", None, "one"))
    manager = SessionManager(Host.current(tmp_path), cache=False)
    (session,) = manager.list()
    reader = manager.readers["claude"]

    assert reader.resume_command(session, None) == ["claude", "--resume", SESSION]
    assert reader.fork_command(session, "opus") == ["claude", "--model", "opus", "--resume", SESSION, "--fork-session"]


def test_of_a_fork_without_any_mark_the_one_gone_on_with_is_the_fork(tmp_path, project):
    history = [asked("u1", None, "one"), answered("a1", "u1", "m1", "first")]
    later = "2026-11-18T07:00:00.000Z"
    write(project / f"{OTHER}.jsonl", *history)
    write(project / f"{SESSION}.jsonl", *history, asked("u2", "a1", "two", timestamp=later))

    assert (read(tmp_path, SESSION).forked_from, read(tmp_path, OTHER).forked_from) == (OTHER, None)


@pytest.mark.parametrize("link", [7, "", {}, ["a1"], True])
def test_a_link_that_is_damaged_leads_to_the_line_before(tmp_path, project, link):
    write(
        project / f"{SESSION}.jsonl",
        asked("u1", None, "one"),
        answered("a1", "u1", "m1", "first"),
        asked("u2", link, "two"),
        answered("a2", "u2", "m2", "second"),
    )

    assert [text for _, text in said(read(tmp_path))] == ["one", "first", "two", "second"]
