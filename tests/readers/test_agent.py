"""What is odd about agent: two generations, torn lines that go on, usage that means two things, forks by file name."""

import json
import sqlite3

import pytest

from amux.manager import SessionManager
from amux.query import Query
from amux.readers import open_reader
from amux.readers._base import Host

JOURNALS = ".config/agent/sessions"
MAIN = "20260227-150000-aaaaaaaa.jsonl"
FORK = "20260227-160000-bbbbbbbb.jsonl"


def time(minute):
    return f"2026-02-27T15:{minute:02}:00Z"


def header(id, minute=0, **more):
    return {"type": "session", "id": f"{id * 8}-1111", "version": 1, "timestamp": time(minute), "cwd": "/shop", **more}


def entry(id, parent, minute, role, content=(), **more):
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    message = {"role": role, "content": blocks, **more, "timestamp": 1772204400123 + minute * 60000}
    return {
        "type": "message",
        "id": id,
        "parent_id": parent,
        "timestamp": time(minute),
        "role": role,
        "message": message,
    }


def used(input, output, read=0, write=0, total=None):
    cost = dict.fromkeys(("input", "output", "cache_read", "cache_write", "total"), 0)
    counts = {"input": input, "output": output, "cache_read": read, "cache_write": write}
    return {**counts, "total_tokens": sum(counts.values()) if total is None else total, "cost": cost}


def answer(id, parent, minute, content="Hi", usage=None, **more):
    known = {"model": "gpt-5", "provider": "openai", "usage": usage or used(10, 1), "stop_reason": "stop"}
    return entry(id, parent, minute, "assistant", content, **{**known, **more})


def turn(minute, prompt="Hello", id="a", parent=""):
    return [entry(f"{id}1", parent, minute, "user", prompt), answer(f"{id}2", f"{id}1", minute, f"Re: {prompt}")]


def branch(minute, parent, last, **more):
    named = {"parent_session_path": parent, "fork_entry_id": last}
    return {"type": "branch", "id": "b0", "timestamp": time(minute), **named, **more}


@pytest.fixture
def write(tmp_path):
    """Lines as the program writes them: compact, each field in its place."""

    def write(name, *records, where=JOURNALS):
        file = tmp_path / where / name
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = (one if isinstance(one, str) else json.dumps(one, separators=(",", ":")) + "\n" for one in records)
        file.write_text("".join(lines))
        return file

    return write


@pytest.fixture
def database(tmp_path):
    def database(*entries, sessions=(("one", "/shop"),), columns="metadata TEXT NOT NULL DEFAULT '',"):
        path = tmp_path / ".agent/sessions/sessions.db"
        path.parent.mkdir(parents=True)
        db = sqlite3.connect(path)
        db.execute(
            "create table sessions (id TEXT PRIMARY KEY, profile TEXT, cwd TEXT, created_at TIMESTAMP, updated_at TIMESTAMP)"
        )
        db.execute(
            "create table entries (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, kind TEXT, role TEXT, content TEXT, "
            f"event_type TEXT NOT NULL DEFAULT '', {columns} created_at TIMESTAMP)"
        )
        row = ("2026-03-22 09:15:00.5 +0000 UTC", "2026-03-22 10:00:00 +0000 UTC")
        db.executemany("insert into sessions values (?, 'coding', ?, ?, ?)", [(*one, *row) for one in sessions])
        for one in entries:
            names = ", ".join(one)
            db.execute(f"insert into entries ({names}) values ({', '.join('?' * len(one))})", tuple(one.values()))
        db.commit()
        db.close()
        return path

    return database


def row(role, content, second=0, **more):
    at = f"2026-03-22 09:15:{second:02} +0000 UTC"
    return {"session_id": "one", "kind": "message", "role": role, "content": content, "created_at": at, **more}


@pytest.fixture
def sessions(tmp_path):
    """The sessions of a home by id, as the catalog links them."""

    def sessions(**env):
        manager = SessionManager(Host(tmp_path, env), cache=False)
        listed = manager.list(Query(agents=("agent",)))
        assert manager.skipped == []
        return {one.session_id: manager.get("agent", one.session_id) for one in listed}

    return sessions


def texts(session, *roles):
    return [message.content for message in session.messages if message.role in (roles or ("user", "assistant"))]


# Files


def test_only_one_variable_moves_the_files(tmp_path, write, sessions):
    write(MAIN, header("a"), *turn(1))
    write(FORK, header("b"), *turn(1), where="else/agent/sessions")

    assert set(sessions()) == {"aaaaaaaa-1111"}
    assert set(sessions(XDG_CONFIG_HOME="")) == {"aaaaaaaa-1111"}
    assert set(sessions(XDG_CONFIG_HOME=str(tmp_path / "else"))) == {"bbbbbbbb-1111"}


def test_files_of_other_programs_called_agent_are_passed_over(write, sessions):
    write("other.jsonl", header("a", version=3), *turn(1))
    write("another.jsonl", *turn(1))
    write("yet-another.jsonl", {"id": "x", "messages": []})

    assert sessions() == {}


def test_without_its_header_a_file_is_called_by_its_name(write, sessions):
    write(MAIN, json.dumps(header("a"))[:30] + "\n", *turn(1))

    assert texts(sessions()["aaaaaaaa"]) == ["Hello", "Re: Hello"]


def test_what_a_resume_wrote_behind_a_torn_line_is_found(write, sessions):
    torn = json.dumps(answer("a2", "a1", 1, 'He said {"type":"message","id":"x"}'), separators=(",", ":"))[:120]
    first = entry("a1", "", 1, "user", "Hello")
    write(MAIN, header("a"), first, torn, *turn(2, "Again", "b", "a1"))

    assert texts(sessions()["aaaaaaaa-1111"]) == ["Hello", "Again", "Re: Again"]


def test_a_failed_call_is_an_error_and_no_call(write, sessions):
    nothing = {"usage": used(0, 0), "stop_reason": "error", "error_message": "429 slow down"}
    write(
        MAIN,
        header("a"),
        entry("a1", "", 1, "user", "Hello"),
        answer("a2", "a1", 1, (), **nothing),
        answer("a3", "a2", 2, "Half an ans", **nothing),
        answer("a4", "a3", 3, "Uncounted", usage=used(0, 0)),
        answer("a5", "a4", 4, (), usage=used(5, 1), stop_reason="aborted"),
    )
    one = sessions()["aaaaaaaa-1111"]

    assert texts(one, "assistant") == ["Half an ans", "Uncounted"]
    assert [(m.content, m.event) for m in one.messages if m.is_error] == [
        ("429 slow down", "error"),
        ("429 slow down", "error"),
        ("aborted", "error"),
    ]
    assert [(charge.usage.input_tokens, charge.message) for charge in one.charges] == [(None, 4), (5, None)]


@pytest.mark.parametrize(
    ("usage", "fresh"),
    [
        (used(100, 10, read=40), 100),
        (used(100, 10, read=40, total=110), 60),
        (used(100, 10, total=110), 100),
        (used(4, 10, read=40, write=7), 4),
    ],
)
def test_the_total_tells_whether_input_includes_what_was_cached(write, sessions, usage, fresh):
    write(MAIN, header("a"), entry("a1", "", 1, "user", "Hello"), answer("a2", "a1", 1, usage=usage))
    (charge,) = sessions()["aaaaaaaa-1111"].charges

    assert (charge.usage.input_tokens, charge.usage.cached_tokens, charge.usd) == (fresh, usage["cache_read"], None)


def test_empty_fields_are_left_out_of_blocks(write, sessions):
    call = {"type": "tool_call", "id": "c|fc", "name": "list"}
    image = {"type": "image", "data": "AAAA", "mime_type": "image/png"}
    done = entry("a3", "a2", 1, "tool_result", [image], tool_call_id="c|fc", tool_name="list", is_error=True)
    write(MAIN, header("a"), entry("a1", "", 1, "user", "Look"), answer("a2", "a1", 1, [{"type": "text"}, call]), done)
    one = sessions()["aaaaaaaa-1111"]

    assert (one.messages[1].content, one.messages[1].tool_calls[0].input) == ("", {})
    assert (one.messages[1].tool_calls[0].output, one.messages[1].tool_calls[0].is_error) == ("", True)
    assert one.messages[2].attachments[0].media_type == "image/png"


# Forks


def test_a_fork_finds_its_parent_by_name_wherever_that_was_written(write, sessions):
    write(MAIN, header("a"), *turn(1))
    fork = [header("b", 30), branch(30, f"C:\\Users\\dev\\sessions\\{MAIN}", "a2", branch_summary="Left a try behind")]
    write(FORK, *fork, *turn(1), *turn(40, "More", "b", "a2"))
    found = sessions()["bbbbbbbb-1111"]

    assert (found.forked_from, found.created_at.minute) == ("aaaaaaaa-1111", 30)
    assert [(m.role, m.event, m.inherited) for m in found.messages] == [
        ("user", None, True),
        ("assistant", None, True),
        ("system", "branch", False),
        ("user", None, False),
        ("assistant", None, False),
    ]
    assert found.cost.input_tokens == 10


def test_forks_of_a_missing_parent_count_what_they_copied_once(tmp_path, write, sessions):
    for letter, name in (("b", FORK), ("c", "20260227-170000-cccccccc.jsonl")):
        mark = branch(30, f"/home/dev/{MAIN}", "a2")
        write(name, header(letter, 30), mark, *turn(1), *turn(40, "More", letter, "a2"))
    total = SessionManager(Host(tmp_path, {}), cache=False).total_cost(Query(agents=("agent",)))

    assert {one.forked_from for one in sessions().values()} == {"aaaaaaaa"}
    assert (total.call_count, total.input_tokens) == (3, 30)


def test_a_fork_whose_last_copied_line_is_torn_is_told_by_time(write, sessions):
    write(MAIN, header("a"), *turn(1), *turn(2, "Two", "b", "a2"))
    copied = [*turn(1), entry("b1", "a2", 2, "user", "Two"), "{torn\n"]
    write(FORK, header("b", 30), branch(30, MAIN, "b2"), *copied, *turn(40, "More", "c", "b2"))

    assert [m.inherited for m in sessions()["bbbbbbbb-1111"].messages] == [True, True, True, False, False]


def test_a_fork_of_nothing_inherits_nothing(write, sessions):
    write(FORK, header("b", 30), branch(30, f"/home/dev/{FORK}", ""), *turn(40))
    found = sessions()["bbbbbbbb-1111"]

    assert (found.forked_from, [m.inherited for m in found.messages]) == (None, [False, False])


def test_a_fork_is_read_again_when_its_parent_comes(tmp_path, write):
    write(FORK, header("b", 30), branch(30, f"/home/dev/{MAIN}", "a2"), *turn(1), *turn(40, "More", "b", "a2"))
    host, query = Host(tmp_path, {}), Query(agents=("agent",))
    assert SessionManager(host).list(query)[0].forked_from == "aaaaaaaa"

    write(MAIN, header("a"), *turn(1))

    assert {one.forked_from for one in SessionManager(host).list(query)} == {None, "aaaaaaaa-1111"}


# The database


def test_compactions_and_broken_runs(database, sessions):
    summary = row("system", "So far: a port", 3)
    database(
        row("user", "Broken off"),
        row("user", "Again", 1),
        row("assistant", "Done", 2),
        {**summary, "kind": "compaction"},
        {**row("system", "ignored", 4), "kind": "event"},
    )
    one = sessions()["one"]

    assert texts(one, "user", "assistant", "system") == ["Broken off", "Again", "Done", "So far: a port"]
    assert (one.messages[3].event, one.turn_count, one.cost, one.model) == ("compaction", 1, None, None)
    assert one.created_at.isoformat() == "2026-03-22T09:15:00.500000+00:00"


def test_rows_are_in_the_order_of_their_times(database, sessions):
    late = {**row("assistant", "Second"), "created_at": "2026-03-22 09:15:00.12 +0000 UTC"}
    database(late, {**row("user", "First"), "created_at": "2026-03-22 09:15:00.119999999 +0000 UTC"})

    assert texts(sessions()["one"]) == ["First", "Second"]


def test_the_first_builds_had_no_metadata(database, sessions):
    database(row("user", "Hello"), row("assistant", "Hi", 1), columns="")

    assert texts(sessions()["one"]) == ["Hello", "Hi"]


def test_a_session_without_entries_is_none(database, sessions):
    database(row("user", "Hello"), sessions=(("one", "/shop"), ("empty", "/shop")))

    assert set(sessions()) == {"one"}


def test_a_database_of_another_program_is_passed_over(tmp_path, sessions):
    path = tmp_path / ".agent/sessions/sessions.db"
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as db:
        db.execute("create table sessions (id TEXT, title TEXT)")
    db.close()

    assert sessions() == {}


def test_a_damaged_database_does_not_hide_the_files(tmp_path, write, database):
    write(MAIN, header("a"), *turn(1))
    path = database(row("user", "Hello"))
    path.write_bytes(path.read_bytes()[:5000])
    manager = SessionManager(Host(tmp_path, {}), cache=False)

    assert [one.session_id for one in manager.list(Query(agents=("agent",)))] == ["aaaaaaaa-1111"]
    assert [one.path for one in manager.skipped] == [str(path)]


def test_an_unchanged_store_is_not_opened(tmp_path, write, database, monkeypatch):
    database(row("user", "Hello"))
    host, query = Host(tmp_path, {}), Query(agents=("agent",))
    assert len(SessionManager(host).list(query)) == 1

    monkeypatch.setattr("amux.readers.agent.reading", lambda _: pytest.fail("the database was opened"))
    assert len(SessionManager(host).list(query)) == 1

    monkeypatch.undo()
    write(MAIN, header("a"), *turn(1))
    assert len(SessionManager(host).list(query)) == 2


# Commands


def test_each_generation_is_resumed_in_its_own_way(tmp_path, write, database, sessions):
    write(MAIN, header("a"), *turn(1))
    write(FORK, header("-"), *turn(1))
    database(row("user", "Hello"))
    found = sessions()
    reader = open_reader("agent", Host(tmp_path, {}))

    assert reader.resume_command(found["aaaaaaaa-1111"], None) == ["agent", "-session", "aaaaaaaa"]
    assert reader.resume_command(found["one"], "gpt-5") == ["agent", "chat", "--session", "one"]
    assert reader.resume_command(found["---------1111"], None) is None
    assert reader.fork_command(found["one"], None) is None


def test_a_parent_that_lost_its_header_is_called_by_its_name(write, sessions):
    write(MAIN, "{torn\n", *turn(1))
    write(FORK, header("b", 30), branch(30, MAIN, "a2"), *turn(1), *turn(40, "More", "b", "a2"))

    assert sessions()["bbbbbbbb-1111"].forked_from == "aaaaaaaa"
    assert "aaaaaaaa" in sessions()
