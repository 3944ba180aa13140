"""What is odd about copilot: versions, damage and forks that no scenario shows, in files of the documented shape."""

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from amux.manager import SessionManager
from amux.model import Session
from amux.query import Query
from amux.readers import open_reader
from amux.readers._base import Host, Reader
from amux.readers.copilot import workspace

ONE, TWO, THREE = (f"{digit * 8}-aaaa-4aaa-8aaa-{digit * 12}" for digit in "123")
MODEL = "gpt-5.1-codex"


class Clock:
    """Times and ids in order, so that a copied event is recognised."""

    def __init__(self) -> None:
        self.count = 0

    def event(self, kind: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
        self.count += 1
        stamp = f"2026-11-18T06:{self.count // 60:02}:{self.count % 60:02}.000Z"
        return {
            "type": kind,
            "data": data,
            "id": f"{self.count:08}-e",
            "timestamp": stamp,
            "parentId": None,
            **more,
        }

    def start(self, id: str, **more: Any) -> dict[str, Any]:
        event = self.event("session.start", {"sessionId": id, "copilotVersion": "1.0.62", **more})
        event["data"].setdefault("startTime", event["timestamp"])
        return event

    def said(self, text: str, **more: Any) -> dict[str, Any]:
        return self.event("user.message", {"content": text, "transformedContent": f"<x>{text}</x>", **more})

    def answered(self, text: str, output: int | None = None, agent: dict[str, Any] | None = None, **more: Any):
        data = {"messageId": "m", "content": text, "toolRequests": [], **more}
        if output is not None:
            data["outputTokens"] = output
        return self.event("assistant.message", data, **(agent or {}))

    def turn(self, text: str, *outputs: int | None) -> list[dict[str, Any]]:
        return [self.said(text), *(self.answered(f"{text} {number}", one) for number, one in enumerate(outputs))]

    def shutdown(self, calls: int, output: int, **more: Any) -> dict[str, Any]:
        """Totals with 10 tokens of input a call, 4 of them read from the cache."""
        usage = {
            "inputTokens": 10 * calls,
            "outputTokens": output,
            "cacheReadTokens": 4 * calls,
            "cacheWriteTokens": 0,
        }
        metrics = {MODEL: {"requests": {"count": calls, "cost": 0}, "usage": usage}}
        return self.event("session.shutdown", {"modelMetrics": metrics, "currentModel": MODEL, **more})

    def resume(self) -> dict[str, Any]:
        return self.event("session.resume", {"eventCount": 1})

    def forked(self, parent: str, child: str) -> dict[str, Any]:
        text = f'Forked from "A title" ({parent}) as "A name" ({child}).'
        return self.event("session.info", {"infoType": "fork", "message": text})


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for event in events)


def write(home: Path, id: str, *events: dict[str, Any], yaml: str | None = None) -> Path:
    path = home / ".copilot" / "session-state" / id / "events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(*events))
    if yaml is not None:
        (path.parent / "workspace.yaml").write_text(yaml)
    return path


def rows(home: Path, *rows: tuple[Any, ...]) -> None:
    """session-store.db with rows of session, sub-agent, input, output, read, initiator and time."""
    home.joinpath(".copilot").mkdir(exist_ok=True)
    db = sqlite3.connect(home / ".copilot" / "session-store.db")
    db.execute(
        "create table if not exists assistant_usage_events (id integer primary key, session_id text, agent_id text, model text,"
        " input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, initiator text, created_at text)"
    )
    db.executemany(f"insert into assistant_usage_events values (null, ?, ?, '{MODEL}', ?, ?, ?, 0, null, ?, ?)", rows)
    db.commit()
    db.close()


def reader(home: Path, **env: str) -> Reader:
    return open_reader("copilot", Host(home, env, "linux"))


def read(home: Path, **env: str) -> dict[str, Session]:
    with reader(home, **env) as opened:
        return {session.session_id: session for ref in opened.refs() for session in opened.read(ref)}


def said(session: Session, role: str = "user") -> list[str]:
    return [message.content for message in session.messages if message.role == role]


def spent(session: Session) -> tuple[int, int, int]:
    """Calls, fresh input and output of everything a session holds."""
    return (
        sum(charge.calls for charge in session.charges),
        sum(charge.usage.input_tokens or 0 for charge in session.charges),
        sum(charge.usage.output_tokens or 0 for charge in session.charges),
    )


def owned(home: Path) -> dict[str, tuple[int, int]]:
    """Fresh input and output of each session as a list shows it: what it did itself."""
    manager = SessionManager(Host(home, {}, "linux"), cache=False)
    return {
        one.session_id: (one.cost.input_tokens or 0, one.cost.output_tokens or 0) if one.cost else (0, 0)
        for one in manager.list(Query(agents=("copilot",)))
    }


# Totals at shutdown


def test_totals_of_a_process_are_added_up(tmp_path, clock):
    """1.0.20 to 1.0.62."""
    first = [clock.start(ONE), *clock.turn("One", 100, 20), clock.shutdown(2, 120)]
    write(tmp_path, ONE, *first, clock.resume(), *clock.turn("Two", 130), clock.shutdown(1, 130))

    assert spent(read(tmp_path)[ONE]) == (3, 18, 250)


def test_totals_of_the_session_count_once(tmp_path, clock):
    """Since 1.0.68; the answers still say how much output each gave."""
    first = [clock.start(ONE), *clock.turn("One", 100, 20), clock.shutdown(2, 120)]
    write(tmp_path, ONE, *first, clock.resume(), *clock.turn("Two", 130), clock.shutdown(3, 250))
    session = read(tmp_path)[ONE]

    assert spent(session) == (3, 18, 250)
    assert all(charge.aggregate for charge in session.charges)


def test_totals_without_the_output_of_answers_are_those_of_the_session(tmp_path, clock):
    """Since 1.0.85."""
    first = [clock.start(ONE), *clock.turn("One", None, None), clock.shutdown(2, 120)]
    write(tmp_path, ONE, *first, clock.resume(), *clock.turn("Two", None), clock.shutdown(3, 250))

    assert spent(read(tmp_path)[ONE]) == (3, 18, 250)


@pytest.mark.parametrize("last", [(4, 400), (3, 300)], ids=["all", "from the last shutdown"])
def test_a_session_resumed_by_a_newer_version_mixes_both(tmp_path, clock, last):
    first = [clock.start(ONE), *clock.turn("One", 100), clock.shutdown(1, 100)]
    second = [clock.resume(), *clock.turn("Two", 150), clock.shutdown(1, 150)]
    newer = [clock.resume(), *clock.turn("Three", 75, 75)]
    calls, output = last
    write(tmp_path, ONE, *first, *second, *newer, clock.shutdown(calls, output))

    assert spent(read(tmp_path)[ONE]) == (4, 24, 400)


def test_a_killed_process_has_the_output_of_its_answers(tmp_path, clock):
    killed = [clock.start(ONE), *clock.turn("One", 100)]
    write(tmp_path, ONE, *killed, clock.resume(), *clock.turn("Two", 40), clock.shutdown(1, 40))
    session = read(tmp_path)[ONE]

    assert spent(session) == (2, 6, 140)
    assert session.charges[0].usage.input_tokens is None
    assert session.messages[session.charges[0].message].content == "One 0"


def test_a_killed_process_that_is_in_later_totals_counts_once(tmp_path, clock):
    killed = [clock.start(ONE), *clock.turn("One", 100)]
    write(tmp_path, ONE, *killed, clock.resume(), *clock.turn("Two", 40), clock.shutdown(2, 140))

    assert spent(read(tmp_path)[ONE]) == (2, 12, 140)


def test_totals_are_split_by_sub_agent_where_they_say_so(tmp_path, clock):
    agent = {"agentId": "agent-one"}
    usage = {"inputTokens": 10, "outputTokens": 30, "cacheReadTokens": 4, "cacheWriteTokens": 0}
    metrics = {"agent-one": {"modelMetrics": {MODEL: {"requests": {"count": 1}, "usage": usage}}}}
    work = [*clock.turn("One", None), clock.answered("Done", None, agent)]
    write(tmp_path, ONE, clock.start(ONE), *work, clock.shutdown(3, 100, agentMetrics=metrics))
    found = read(tmp_path)

    assert spent(found[ONE]) == (2, 12, 70)
    assert spent(found["agent-one"]) == (1, 6, 30)


def test_only_unknown_is_unknown(tmp_path, clock):
    """0.0.420 records nothing; a session in which no model was asked cost nothing."""
    write(tmp_path, ONE, clock.start(ONE), *clock.turn("One", None))
    write(tmp_path, TWO, clock.start(TWO), clock.said("Never answered"))
    found = read(tmp_path)

    assert not found[ONE].usage_recorded
    assert found[TWO].usage_recorded


def test_compactions_count_beside_the_totals(tmp_path, clock):
    """With the names of 1.0.24."""
    used = {"input": 50, "output": 7, "cachedInput": 20}
    done = clock.event(
        "session.compaction_complete", {"success": True, "summaryContent": "Summary", "compactionTokensUsed": used}
    )
    write(tmp_path, ONE, clock.start(ONE), *clock.turn("One", 100), done, clock.shutdown(1, 100))
    session = read(tmp_path)[ONE]

    assert spent(session) == (2, 6 + 30, 107)
    assert [m.content for m in session.messages if m.event == "compaction"] == ["Summary"]


@pytest.mark.parametrize("named", [True, False], ids=["by answers", "when chosen"])
def test_a_compaction_that_names_no_model_used_that_of_the_conversation(tmp_path, clock, named):
    used = {"inputTokens": 50, "outputTokens": 7}
    chosen = {} if named else {"selectedModel": MODEL}
    answer = clock.answered("Answer", 100, **({"model": MODEL} if named else {}))
    done = [
        clock.event("session.compaction_complete", {**told, "compactionTokensUsed": used})
        for told in ({"summaryContent": "Summary"}, {"error": "Too long"})
    ]
    later = clock.event("session.model_change", {"newModel": "gpt-4.1"})
    silent = clock.event("session.compaction_complete", {"compactionTokensUsed": used})
    write(tmp_path, ONE, clock.start(ONE, **chosen), clock.said("Hello"), answer, *done, later, silent)
    charges = read(tmp_path)[ONE].charges

    assert [charge.model for charge in charges] == [MODEL, MODEL, MODEL, "gpt-4.1"]


# Forks


def family(clock: Clock, *children: str) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """A session with totals at its shutdown, and forks of it, each with one call more in totals that go on from those."""
    work = [*clock.turn("One", None, None), clock.shutdown(2, 120)]
    forks = []
    for child in children:
        own = [clock.forked(ONE, child), clock.resume(), *clock.turn(f"Fork {child[0]}", None)]
        forks.append([clock.start(child), *work, *own, clock.shutdown(3, 200)])
    return [clock.start(ONE, startTime="2026-11-18T05:00:00Z"), *work], forks


def test_totals_of_a_fork_go_on_from_those_it_copied(tmp_path, clock):
    parent, (fork,) = family(clock, TWO)
    write(tmp_path, ONE, *parent)
    write(tmp_path, TWO, *fork)

    assert owned(tmp_path) == {ONE: (12, 120), TWO: (6, 80)}
    assert read(tmp_path)[TWO].forked_from == ONE


def test_forks_of_a_deleted_session_count_its_calls_once(tmp_path, clock):
    _, (fork, other) = family(clock, TWO, THREE)
    write(tmp_path, TWO, *fork)
    write(tmp_path, THREE, *other)

    assert sorted(owned(tmp_path).values()) == [(6, 80), (18, 200)]


@pytest.mark.parametrize("parent_there", [True, False])
def test_a_fork_taken_in_the_middle_of_a_process_counts_its_calls_once(tmp_path, clock, parent_there):
    begun = clock.turn("One", 100)
    forks = [
        [clock.start(child), *begun, clock.forked(ONE, child), clock.resume(), *clock.turn("Fork", 40)]
        for child in (TWO, THREE)
    ]
    for child, fork in zip((TWO, THREE), forks, strict=True):
        write(tmp_path, child, *fork, clock.shutdown(1, 40))
    if parent_there:
        write(tmp_path, ONE, clock.start(ONE), *begun, *clock.turn("More", 1), clock.shutdown(2, 101))

    assert sum(output for _, output in owned(tmp_path).values()) == 100 + 40 + 40 + parent_there


def test_a_fork_of_a_fork_names_its_own_parent(tmp_path, clock):
    into = clock.event(
        "session.info", {"infoType": "fork", "message": f'Forked this session into "Other" ({ONE.replace("1", "4")}).'}
    )
    first = [*clock.turn("One", 1), clock.forked(ONE, TWO), clock.resume(), *clock.turn("Two", 1), into]
    write(
        tmp_path, THREE, clock.start(THREE), *first, clock.forked(TWO, THREE), clock.resume(), *clock.turn("Three", 1)
    )
    session = read(tmp_path)[THREE]

    assert session.forked_from == TWO
    assert [m.content for m in session.messages if m.role == "user" and not m.inherited] == ["Three"]
    assert set(session.based_on) == {ONE, TWO}
    assert [charge.claim for charge in session.charges] == ["copied", "copied", "own"]


def test_a_marker_that_names_only_the_parent_is_the_forks_own(tmp_path, clock):
    marker = clock.event("session.info", {"infoType": "fork", "message": f"Forked from {ONE}."})
    write(tmp_path, TWO, clock.start(TWO), *clock.turn("One", 1), marker, clock.resume(), *clock.turn("Two", 1))

    assert read(tmp_path)[TWO].forked_from == ONE


def test_the_parent_is_no_fork_of_its_forks(tmp_path, clock):
    note = clock.event("session.info", {"infoType": "fork", "message": f'Forked this session into "X" ({TWO}).'})
    write(tmp_path, ONE, clock.start(ONE), *clock.turn("One", 1), note)
    session = read(tmp_path)[ONE]

    assert session.forked_from is None
    assert not any(message.inherited for message in session.messages)


@pytest.mark.parametrize("parent_there", [True, False])
def test_a_sub_agent_that_a_fork_copied_is_listed_once(tmp_path, clock, parent_there):
    agent = {"agentId": "agent-one"}
    usage = {
        "model": MODEL,
        "inputTokens": 10,
        "outputTokens": 5,
        "apiCallId": "call",
        "accounting": {"usageId": "call"},
    }
    work = [
        *clock.turn("One", None),
        clock.event("session.usage_record", {"usage": usage}, **agent),
        clock.answered("Done", None, agent),
    ]
    write(tmp_path, TWO, clock.start(TWO), *work, clock.forked(ONE, TWO), clock.resume(), clock.said("Two"))
    if parent_there:
        write(tmp_path, ONE, clock.start(ONE), *work)
    manager = SessionManager(Host(tmp_path, {}, "linux"), cache=False)
    listed = [one for one in manager.list(Query(agents=("copilot",), subagents=True)) if one.kind == "subagent"]

    assert [one.parent_id for one in listed] == [ONE if parent_there else TWO]
    assert manager.total_cost(Query(agents=("copilot",))).output_tokens == 5


# session-store.db


def test_a_killed_session_has_the_calls_of_the_index(tmp_path, clock):
    """1.0.71 to 1.0.92: the file tells nothing. Compactions are rows too, and not counted again."""
    done = clock.event(
        "session.compaction_complete",
        {"summaryContent": "Summary", "compactionTokensUsed": {"inputTokens": 50, "outputTokens": 9}},
    )
    first = [clock.start(ONE), *clock.turn("One", None)]
    write(tmp_path, ONE, *first, done)
    rows(
        tmp_path,
        (ONE, None, 100, 30, 60, "user", first[-1]["timestamp"]),
        (ONE, None, 50, 9, 0, "compaction", done["timestamp"]),
        (TWO, None, 5, 5, 0, "user", done["timestamp"]),
    )
    session = read(tmp_path)[ONE]

    assert spent(session) == (2, 40 + 50, 39)
    assert session.messages[session.charges[0].message].content == "One 0"


@pytest.mark.parametrize("initiator", [None, ""])
def test_a_compaction_whose_row_does_not_say_so_is_not_counted_again(tmp_path, clock, initiator):
    """1.0.79: only its numbers tell the row. One row for each compaction: a call may have used just as much."""
    used = {"inputTokens": 50, "outputTokens": 9, "cacheReadTokens": 20, "cacheWriteTokens": 0}
    done = clock.event("session.compaction_complete", {"summaryContent": "Summary", "compactionTokensUsed": used})
    first, second = clock.turn("One", None), clock.turn("Two", None)
    write(tmp_path, ONE, clock.start(ONE), *first, done, *second)
    rows(
        tmp_path,
        (ONE, None, 100, 30, 60, initiator, first[-1]["timestamp"]),
        (ONE, None, 50, 9, 20, initiator, done["timestamp"]),
        (ONE, None, 50, 9, 20, initiator, second[-1]["timestamp"]),
    )

    assert spent(read(tmp_path)[ONE]) == (3, 40 + 30 + 30, 30 + 9 + 9)


def test_a_row_that_says_who_made_the_call_is_no_compactions(tmp_path, clock):
    used = {"inputTokens": 50, "outputTokens": 9}
    done = clock.event("session.compaction_complete", {"summaryContent": "Summary", "compactionTokensUsed": used})
    turn = clock.turn("One", None)
    write(tmp_path, ONE, clock.start(ONE), *turn, done)
    rows(
        tmp_path,
        (ONE, None, 50, 9, 0, "user", turn[-1]["timestamp"]),
        (ONE, None, 50, 9, 0, "compaction", done["timestamp"]),
    )

    assert spent(read(tmp_path)[ONE]) == (2, 100, 18)


def test_each_process_is_counted_from_its_best_source(tmp_path, clock):
    """Three versions in turn: totals only; rows in the index; records in the file, of which the index has rows too."""
    old = [clock.start(ONE), *clock.turn("Old", 100), clock.shutdown(1, 100)]
    middle = [clock.resume(), *clock.turn("Middle", 200)]
    usage = {"model": MODEL, "inputTokens": 10, "outputTokens": 300, "apiCallId": "c"}
    new = [clock.resume(), clock.said("New"), clock.event("session.usage_record", {"usage": usage})]
    write(tmp_path, ONE, *old, *middle, *new, clock.answered("New", None, apiCallId="c"), clock.shutdown(3, 600))
    rows(
        tmp_path,
        (ONE, None, 20, 200, 0, "user", middle[-1]["timestamp"]),
        (ONE, None, 10, 300, 0, "user", new[-1]["timestamp"]),
    )

    assert spent(read(tmp_path)[ONE]) == (3, 6 + 20 + 10, 600)


@pytest.mark.parametrize("parent_there", [True, False])
def test_a_fork_holds_the_rows_of_its_parent_up_to_the_fork(tmp_path, clock, parent_there):
    begun = clock.turn("One", None)
    fork = [clock.start(TWO), *begun, clock.forked(ONE, TWO), clock.resume(), *clock.turn("Two", None)]
    later = clock.turn("Later", None)
    write(tmp_path, TWO, *fork)
    if parent_there:
        write(tmp_path, ONE, clock.start(ONE, startTime="2026-11-18T05:00:00Z"), *begun, *later)
    rows(
        tmp_path,
        (ONE, None, 10, 100, 0, "user", begun[-1]["timestamp"]),
        (TWO, None, 10, 20, 0, "user", fork[-1]["timestamp"]),
        (ONE, None, 10, 3, 0, "user", later[-1]["timestamp"]),
    )

    assert owned(tmp_path) == ({ONE: (20, 103), TWO: (10, 20)} if parent_there else {TWO: (20, 120)})


def test_the_index_changes_only_the_sessions_it_names(tmp_path, clock):
    write(tmp_path, ONE, clock.start(ONE), *clock.turn("One", None))
    write(tmp_path, TWO, clock.start(TWO), *clock.turn("Two", None))

    def fingerprints() -> dict[str, str]:
        with reader(tmp_path) as opened:
            return {ref.key: ref.fingerprint for ref in opened.refs()}

    before = fingerprints()
    rows(tmp_path, (ONE, None, 10, 100, 0, "user", "2026-11-18T06:00:01Z"))
    after = fingerprints()

    assert before[ONE] != after[ONE]
    assert before[TWO] == after[TWO]


@pytest.mark.parametrize("content", [b"no database", b"", b"SQLite format 3\0" + b"x" * 5000])
def test_a_damaged_index_costs_nothing_but_itself(tmp_path, clock, content):
    write(tmp_path, ONE, clock.start(ONE), *clock.turn("One", 7))
    (tmp_path / ".copilot" / "session-store.db").write_bytes(content)

    assert spent(read(tmp_path)[ONE]) == (1, 0, 7)


# Damage


def test_what_stands_around_damage_is_read(tmp_path, clock):
    path = write(tmp_path, ONE)
    broken = lines(clock.answered('first line\nsecond "line"\nthird {line}')).replace(b"\\n", b"\n")
    torn = lines(clock.answered("never finished"))[:60]
    path.write_bytes(
        lines(clock.start(ONE), clock.said("a\u2028b\u2029c"))
        + broken
        + torn
        + lines(clock.said("appended to half a line"))
        + b"no json\n"
        + b"\0" * 40
        + lines(clock.said("after a hole"))
        + lines(clock.said("torn"))[:-20]
        + b"\0" * 4096
    )
    session = read(tmp_path)[ONE]

    assert said(session) == ["a\u2028b\u2029c", "appended to half a line", "after a hole"]
    assert said(session, "assistant") == ['first line\nsecond "line"\nthird {line}']


def test_an_event_broken_for_ever_is_given_up(tmp_path, clock):
    path = write(tmp_path, ONE)
    path.write_bytes(
        lines(clock.start(ONE)) + b'{"type":"x","data":"' + b'"}\n' * 5000 + lines(clock.said("Still here"))
    )

    assert said(read(tmp_path)[ONE]) == ["Still here"]


# Messages


def test_what_nobody_typed_is_no_prompt(tmp_path, clock):
    typed = [clock.said("Typed"), clock.said("From the phone", source="command-17"), clock.said("Mine", source="user")]
    injected = [
        clock.said("A skill", source="skill-pdf"),
        clock.said("A hook", source="system"),
        clock.said("Another agent", source="agent-7"),
        clock.said("Go on", isAutopilotContinuation=True),
    ]
    write(tmp_path, ONE, clock.start(ONE), *injected, *typed)
    session = read(tmp_path)[ONE]

    assert said(session) == ["Typed", "From the phone", "Mine"]
    assert session.title == "Typed"


def test_the_parts_of_one_response_are_one_message(tmp_path, clock):
    parts = [
        clock.answered(text, 50, apiCallId="c", turnId="0", interactionId="i", reasoningText=f"think {text}")
        for text in ("one", "two")
    ]
    other = clock.answered("three", 5, apiCallId="d", turnId="1", interactionId="i")
    write(tmp_path, ONE, clock.start(ONE), clock.said("Ask"), *parts, other)
    session = read(tmp_path)[ONE]

    assert said(session, "assistant") == ["one\n\ntwo", "three"]
    assert session.messages[1].thinking == "think one\n\nthink two"
    assert spent(session) == (2, 0, 55)


def test_tools(tmp_path, clock):
    """A result written twice, a failed call that never began, a command the user ran; names come from the requests."""
    requests = [
        {"toolCallId": "good", "name": "bash", "arguments": {"command": "true"}},
        {"toolCallId": "bad", "name": "bash", "arguments": '{"command": "false"}'},
    ]
    shell = {"toolCallId": "mine", "toolName": "bash", "arguments": {"command": "ls"}}

    def done(id: str, **result: Any) -> dict[str, Any]:
        return clock.event("tool.execution_complete", {"toolCallId": id, **result})

    write(
        tmp_path,
        ONE,
        clock.start(ONE),
        clock.said("Ask"),
        clock.answered("Looking", toolRequests=requests),
        clock.event("tool.execution_start", {"toolCallId": "good", "toolName": "bash"}),
        done("good", success=True, result={"content": "", "contents": [{"type": "text", "text": "fine"}]}),
        done("good", success=True, result={"content": "again"}),
        done("bad", success=False, error={"message": "denied"}),
        clock.event("tool.user_requested", shell),
        done("mine", success=True, result={"content": "app.py"}),
    )
    session = read(tmp_path)[ONE]

    good, bad = session.messages[1].tool_calls
    assert (good.output, good.duration_ms, good.is_error) == ("fine", 1000, False)
    assert (bad.input, bad.output, bad.duration_ms, bad.is_error) == ({"command": "false"}, "denied", None, True)
    assert said(session, "tool") == ["fine", "denied", "app.py"]
    assert [m.tool_result.tool_name for m in session.messages if m.tool_result] == ["bash"] * 3
    assert [m.content for m in session.messages if m.event == "shell"] == ["ls"]


def test_attachments_have_names_and_no_bytes(tmp_path, clock):
    given = [
        {"type": "file", "path": "/work/app.py", "displayName": "app.py"},
        {"type": "blob", "mimeType": "image/png", "data": "AAAA"},
        {"type": "github_reference", "title": "A bug", "url": "u"},
    ]
    write(tmp_path, ONE, clock.start(ONE), clock.said("See @app.py", attachments=given))
    message = read(tmp_path)[ONE].messages[0]

    assert message.content == "See @app.py"
    assert [(one.kind, one.media_type, one.name) for one in message.attachments] == [
        ("file", None, "app.py"),
        ("image", "image/png", None),
        ("github_reference", None, "A bug"),
    ]


def test_errors_are_shown(tmp_path, clock):
    error = clock.event("session.error", {"errorType": "quota", "message": "No more requests"})
    write(tmp_path, ONE, clock.start(ONE), clock.said("Ask"), error)
    message = read(tmp_path)[ONE].messages[-1]

    assert (message.role, message.event, message.is_error, message.content) == (
        "system",
        "error",
        True,
        "No more requests",
    )


def test_what_was_rewound_is_not_shown_but_was_paid(tmp_path, clock):
    taken_back = clock.turn("Wrong", 30)
    rewind = clock.event("session.snapshot_rewind", {"upToEventId": taken_back[0]["id"], "eventsRemoved": 2})
    write(tmp_path, ONE, clock.start(ONE), *clock.turn("One", 1), *taken_back, rewind, *clock.turn("Right", 2))
    session = read(tmp_path)[ONE]

    assert said(session) == ["One", "Right"]
    assert spent(session) == (3, 0, 33)


def test_sub_agents_of_versions_that_name_only_the_call(tmp_path, clock):
    """About 1.0.24: no agentId, and what it was asked stands only in the call."""
    request = {"toolCallId": "call_1", "name": "task", "arguments": {"prompt": "Audit it", "description": "Audit"}}
    inner = clock.answered("Looked at it", 20, parentToolCallId="call_1")
    done = clock.event(
        "tool.execution_complete", {"toolCallId": "call_1", "success": True, "result": {"content": "ok"}}
    )
    asked = [clock.said("Ask"), clock.answered("Delegating", 10, toolRequests=[request])]
    write(tmp_path, ONE, clock.start(ONE), *asked, inner, done, clock.answered("Done", 5))
    main, subagent = read(tmp_path).values()

    assert said(main, "assistant") == ["Delegating", "Done"]
    assert (subagent.kind, subagent.parent_id, subagent.title) == ("subagent", ONE, "Audit")
    assert [(m.role, m.content) for m in subagent.messages] == [("user", "Audit it"), ("assistant", "Looked at it")]
    assert subagent.messages[subagent.charges[0].message].content == "Looked at it"


# What a session says of itself


@pytest.mark.parametrize(
    ("yaml", "title"),
    [
        ("name: Fix it\nuser_named: true", "Fix it"),
        ("name: Write a parser for\nuser_named: true", "Write a parser for"),
        ("name: Write a parser for...\nuser_named: false", "Write a parser for the prices"),
        ("summary: And then reject negative ones", "Write a parser for the prices"),
        ("summary: Price parser", "Price parser"),
        ("", "Write a parser for the prices"),
    ],
)
def test_titles(tmp_path, clock, yaml, title):
    prompts = [clock.said("Write a parser for the prices"), clock.said("And then reject negative ones, please")]
    write(tmp_path, ONE, clock.start(ONE), *prompts, yaml=yaml)

    assert read(tmp_path)[ONE].title == title


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("name: plain: with colon # a comment", "plain: with colon"),
        ("name: 'it''s # quoted'", "it's # quoted"),
        (r'name: "tab\tquote\" \u00e9 \ud83d\ude00"', 'tab\tquote" é 😀'),
        ('name: "folded at \\\n  \\ eighty\n  columns"', "folded at  eighty columns"),
        ("name: plain text\n  goes on\nid: x", "plain text goes on"),
        ("name: |-\n  first\n  second\nid: x", "first\nsecond"),
        ("name: >-\n  first\n  second\n\n  third\nid: x", "first second\nthird"),
        ("name:\r\nid: x\r\n", None),
        ("name: ~", None),
        ('name: "never closed', ""),
    ],
)
def test_workspace_scalars(tmp_path, text, value):
    path = tmp_path / "workspace.yaml"
    path.write_bytes(text.encode())

    assert workspace.fields(str(path)).get("name") == value


def test_the_first_cwd_and_the_latest_branch(tmp_path, clock):
    resumed = clock.event("session.resume", {"context": {"cwd": "/other", "branch": "feature", "headCommit": "beef"}})
    write(tmp_path, ONE, clock.start(ONE, context={"cwd": "/work", "branch": "main"}), *clock.turn("One", 1), resumed)
    session = read(tmp_path)[ONE]

    assert (session.cwd, session.git_branch, session.git_commit) == ("/work", "feature", "beef")


# Where sessions lie


def test_flat_files_of_the_first_versions(tmp_path, clock):
    trusted = clock.event(
        "session.info",
        {"infoType": "folder_trust", "message": "Folder /work/my shop has been added to trusted folders."},
    )
    prompt = clock.event("user.message", {"content": "Do it\n\n<reminder>\nNo tables.\n</reminder>"})
    path = tmp_path / "state" / ".copilot" / "session-state" / f"{ONE}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(clock.start(ONE, selectedModel="gpt-5"), trusted, prompt, clock.answered("Done")))
    session = read(tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))[ONE]

    assert (said(session), session.cwd, session.model) == (["Do it"], "/work/my shop", "gpt-5")


def test_a_session_moved_into_its_directory_is_read_there(tmp_path, clock):
    write(tmp_path, ONE, clock.start(ONE), *clock.turn("In the directory", 1))
    (tmp_path / ".copilot" / "session-state" / f"{ONE}.jsonl").write_bytes(lines(clock.start(ONE), clock.said("Flat")))

    assert said(read(tmp_path)[ONE]) == ["In the directory"]


HISTORY = {
    "sessionId": ONE,
    "startTime": "2025-10-01T10:00:00Z",
    "selectedModel": "gpt-5",
    "chatMessages": [
        {"role": "system", "content": "You are"},
        {"role": "user", "content": [{"type": "text", "text": "Ask <reminder>x</reminder>"}, {"type": "image_url"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "app.py"},
        {"role": "assistant", "content": "Done"},
    ],
    "timeline": [
        {"type": "user", "text": "Ask", "timestamp": "2025-10-01T10:00:01Z"},
        {"type": "copilot", "text": "Looking", "timestamp": "2025-10-01T10:00:02Z"},
        {
            "type": "tool_call_completed",
            "callId": "c",
            "name": "bash",
            "arguments": {},
            "result": {"type": "rejected"},
            "timestamp": "2025-10-01T10:00:03Z",
        },
        {"type": "error", "text": "Oops", "timestamp": "2025-10-01T10:00:04Z"},
        {"type": "copilot", "text": "Done", "timestamp": "2025-10-01T10:00:05Z"},
    ],
}


def keep(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def test_documents_of_the_first_previews(tmp_path):
    directory = tmp_path / ".copilot" / "history-session-state"
    keep(directory / f"session_{ONE}_1700000000000.json", {**HISTORY, "timeline": [{"type": "user", "text": "Older"}]})
    keep(directory / f"session_{ONE}_1700000001000.json", HISTORY)
    session = read(tmp_path)[ONE]

    assert [(m.role, m.content) for m in session.messages] == [
        ("user", "Ask"),
        ("assistant", "Looking"),
        ("tool", "rejected"),
        ("system", "Oops"),
        ("assistant", "Done"),
    ]
    assert session.messages[1].tool_calls[0].is_error
    assert (session.model, session.created_at.isoformat()) == ("gpt-5", "2025-10-01T10:00:00+00:00")
    assert not session.usage_recorded


def test_a_document_says_its_id_whatever_it_is_called(tmp_path):
    keep(tmp_path / ".copilot" / "history-session-state" / "jam.json", HISTORY)

    assert set(read(tmp_path)) == {ONE}


def test_a_document_without_a_timeline_has_what_the_model_saw(tmp_path):
    keep(tmp_path / ".copilot" / "history-session-state" / f"session_{ONE}_1.json", {**HISTORY, "timeline": []})
    session = read(tmp_path)[ONE]

    assert [(m.role, m.content) for m in session.messages] == [
        ("user", "Ask"),
        ("assistant", ""),
        ("tool", "app.py"),
        ("assistant", "Done"),
    ]
    assert session.messages[1].tool_calls[0].output == "app.py"
    assert session.messages[0].attachments[0].kind == "image"


def test_a_document_that_was_taken_over_is_read_once(tmp_path, clock):
    keep(tmp_path / ".copilot" / "history-session-state" / f"session_{ONE}_1.json", HISTORY)
    taken_over = clock.event("session.import_legacy", {"legacySession": HISTORY, "sourceFile": "x"})
    write(tmp_path, ONE, clock.start(ONE), taken_over, *clock.turn("Go on", 1))

    assert said(read(tmp_path)[ONE]) == ["Ask", "Go on"]


def test_documents_where_older_descriptions_have_them(tmp_path):
    messages = [{"role": "user", "content": "Ask"}, {"role": "assistant", "content": "Done", "model": "gpt-4o"}]
    directory = tmp_path / ".config" / "github-copilot" / "sessions"
    keep(directory / "plain.json", messages)
    keep(directory / "wrapped.json", {"messages": messages, "cwd": "/work", "createdAt": "2025-01-01T00:00:00Z"})
    keep(directory / "other.json", {"token": "no session"})
    found = read(tmp_path)

    assert set(found) == {"plain", "wrapped"}
    assert (said(found["plain"]), found["plain"].model) == (["Ask"], "gpt-4o")
    assert found["wrapped"].cwd == "/work"
    assert reader(tmp_path).resume_command(found["plain"], None) is None


def test_what_is_no_session_is_passed_over(tmp_path, clock):
    state = tmp_path / "moved" / "session-state"
    for name in (".session-operation-locks", ONE, TWO, THREE):
        (state / name).mkdir(parents=True)
    (state / ONE / "workspace.yaml").write_text("id: x")
    os.mkfifo(state / TWO / "events.jsonl")
    (state / "loop").symlink_to("loop")
    no_text = Path(os.fsdecode(os.fsencode(state) + b"/\xff"))
    no_text.mkdir()
    (no_text / "events.jsonl").write_bytes(lines(clock.start("x"), clock.said("In a directory whose name is no text")))
    (state / THREE / "events.jsonl").write_bytes(lines(clock.start(THREE)))

    assert read(tmp_path, COPILOT_HOME=str(tmp_path / "moved")) == {}


def test_resuming(tmp_path, clock):
    work = [clock.said("Ask"), clock.answered("Done", 1, {"agentId": "agent-one"})]
    write(tmp_path, ONE, clock.start(ONE), *work)
    main, subagent = read(tmp_path).values()
    opened = reader(tmp_path)

    assert opened.resume_command(main, None) == ["copilot", f"--resume={ONE}"]
    assert opened.resume_command(main, "gpt-5") == ["copilot", "--model", "gpt-5", f"--resume={ONE}"]
    assert opened.resume_command(subagent, None) is None
    assert opened.fork_command(main, None) is None
