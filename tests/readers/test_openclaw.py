"""What is odd about openclaw: keys and the sessions they lead to, two generations of stores, prompts in envelopes."""

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from amux.errors import UnreadableSession
from amux.manager import SessionManager
from amux.model import Session
from amux.query import Query
from amux.readers import _zstd
from amux.readers._base import Host
from amux.readers._sqlite import reading
from amux.readers.openclaw import READER, OpenclawReader, tables

START = 1_790_000_000_000
SCHEMA = """
    create table session_nodes (session_key text primary key, current_session_id text, entry_json text, updated_at integer,
        parent_session_key text, spawned_by text, fork_source_session_id text, label text, display_name text, archived_at integer);
    create table session_windows (session_id text primary key, session_key text, previous_session_id text, created_at integer,
        updated_at integer, transcript_updated_at integer, channel text, parent_session_key text, spawned_by text,
        display_name text);
    create table transcript_events (session_id text, seq integer, event_json text, created_at integer, event_zstd blob,
        event_utf8_bytes integer, navigation_json text, primary key (session_id, seq));
    create table session_transcript_active_events (session_id text, active_position integer, event_seq integer,
        primary key (session_id, active_position));
    create table session_transcript_index_state (session_id text primary key, indexed_seq integer, leaf_event_id text,
        needs_rebuild integer);
    create table session_transcript_cold_archives (session_id text primary key, archive_name text, archive_sha256 text,
        event_count integer, storage text, archive_blob blob);
    create virtual table session_transcript_fts using fts5(text, session_id unindexed, message_id unindexed, role unindexed,
        timestamp unindexed);
    create table session_transcript_fts_rows (id integer primary key, session_id text, message_id text);
"""
BEFORE_14 = """
    create table session_entries (session_key text primary key, session_id text, entry_json text, updated_at integer);
    create table sessions (session_id text primary key, session_key text, created_at integer, updated_at integer,
        channel text, spawned_by text);
    create table transcript_events (session_id text, seq integer, event_json text, created_at integer,
        primary key (session_id, seq));
"""
USAGE = {"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 0, "totalTokens": 18, "cost": {"total": 0.25}}
Event = dict[str, Any]


def iso(at: int) -> str:
    seconds, milliseconds = divmod(at, 1000)
    return f"2026-09-21T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{milliseconds:03}Z"


def header(id: str, at: int, **more: Any) -> Event:
    return {"type": "session", "version": 4, "id": id, "timestamp": iso(at), "cwd": "/w", **more}


def message(id: str, parent: str | None, at: int, **content: Any) -> Event:
    return {"type": "message", "id": id, "parentId": parent, "timestamp": iso(at), "message": content}


def user(id: str, parent: str | None, at: int, text: Any, **more: Any) -> Event:
    return message(id, parent, at, role="user", content=text, **more)


def answer(id: str, parent: str | None, at: int, text: str, **more: Any) -> Event:
    said = {"role": "assistant", "content": [{"type": "text", "text": text}], "provider": "p", "model": "m"}
    return message(id, parent, at, **{**said, "usage": USAGE, "stopReason": "stop", "responseId": f"r-{id}", **more})


def turn(name: str, parent: str | None, at: int) -> list[Event]:
    """A prompt and its answer; the answer's id is `<name>-a`."""
    return [user(name, parent, at, f"prompt {name}"), answer(f"{name}-a", name, at + 1, f"reply {name}")]


class Agent:
    """One agent of an installation, in which sessions are written as openclaw's versions do."""

    def __init__(self, home: Path, name: str = "main", root: str = ".openclaw", schema: str = SCHEMA) -> None:
        self.directory = home / root / "agents" / name
        self.schema = schema

    @property
    def path(self) -> Path:
        return self.directory / "agent" / "openclaw-agent.sqlite"

    def database(self) -> sqlite3.Connection:
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, isolation_level=None)
        if new:
            db.executescript(self.schema)
        return db

    def add(self, table: str, **row: Any) -> None:
        with closing(self.database()) as db:
            db.execute(
                f"insert into {table} ({', '.join(row)}) values ({', '.join('?' * len(row))})", list(row.values())
            )

    def session(self, id: str, at: int, events: Iterable[Event], *, key: str = "agent:main:main", **row: Any) -> None:
        """A session begun so many milliseconds after the start."""
        first = {} if any(event["type"] == "session" for event in events) else header(id, at)
        self.add("session_windows", session_id=id, session_key=key, created_at=START + at, updated_at=START + at, **row)
        for seq, event in enumerate([first, *events] if first else events):
            self.event(id, seq, event)

    def event(self, id: str, seq: int, event: Event) -> None:
        self.add("transcript_events", session_id=id, seq=seq, event_json=json.dumps(event), created_at=START)

    def packed_event(self, id: str, seq: int, event: Event, stub: Event) -> None:
        zstd = _zstd.decoder()
        blob = zstd.compress(json.dumps(event).encode())
        navigation = json.dumps({"version": 1, "model": stub})
        self.add("transcript_events", session_id=id, seq=seq, event_zstd=blob, navigation_json=navigation)

    def node(self, key: str, current: str, entry: dict[str, Any] | None = None, **row: Any) -> None:
        self.add(
            "session_nodes", session_key=key, current_session_id=current, entry_json=json.dumps(entry or {}), **row
        )

    def file(self, name: str, *events: Event) -> Path:
        path = self.directory / "sessions" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
        return path

    def index(self, **entries: Any) -> None:
        self.file("sessions.json").write_text(json.dumps(entries))


@pytest.fixture
def agent(tmp_path) -> Agent:
    return Agent(tmp_path)


def opened(home: Path, **env: str) -> OpenclawReader:
    return READER("openclaw", Host(home, env))


def sessions(home: Path, **env: str) -> dict[str, Session]:
    """Every session of a home; none may be unreadable."""
    with opened(home, **env) as reader:
        refs = list(reader.refs())
        assert [ref.reason for ref in refs if ref.reason] == []
        return {one.session_id: one for ref in refs for one in reader.read(ref)}


def said(session: Session, role: str = "user") -> list[str]:
    return [message.content for message in session.messages if message.role == role]


def spent(home: Path) -> int:
    return SessionManager(Host(home, {}), cache=False).total_cost(Query(agents=("openclaw",))).call_count


# The database


def many(agent: Agent, count: int) -> None:
    with closing(agent.database()) as db:
        db.execute("begin")
        for number in range(count):
            id, key = f"s{number}", f"agent:main:k{number}"
            db.execute(
                "insert into session_windows (session_id, session_key, created_at, updated_at) values (?, ?, ?, 1)",
                (id, key, START),
            )
            db.execute(
                "insert into session_nodes (session_key, current_session_id, entry_json, updated_at) values (?, ?, '{}', 1)",
                (key, id),
            )
            for seq, event in enumerate([header(id, 0), *turn("u", None, 1)]):
                values = (id, seq, json.dumps(event))
                db.execute("insert into transcript_events (session_id, seq, event_json) values (?, ?, ?)", values)
        db.execute("commit")


def test_five_thousand_sessions_are_listed_with_one_query_a_table(agent, tmp_path, monkeypatch):
    many(agent, 5000)
    asked: list[str] = []

    @contextmanager
    def counted(path):
        with reading(path) as db:
            db.set_trace_callback(asked.append)
            yield db

    monkeypatch.setattr(tables, "reading", counted)
    with opened(tmp_path) as reader:
        found = list(reader.refs())

    queries = [one for one in asked if one.startswith("select") and "sqlite_master" not in one]
    assert len(found) == 5000
    assert len(queries) == len({one.split(" from ")[1].split()[0] for one in queries}) == 4
    assert not any("event_json" in one or "entry_json" in one for one in queries)


def test_an_unchanged_database_is_not_opened(agent, tmp_path, monkeypatch):
    many(agent, 3)
    host = Host(tmp_path, {})
    assert len(SessionManager(host).list(Query(agents=("openclaw",)))) == 3
    monkeypatch.setattr(tables, "reading", lambda path: pytest.fail(f"{path} was opened"))

    assert len(SessionManager(host).list(Query(agents=("openclaw",)))) == 3


def test_what_changed_is_told_by_its_row(agent, tmp_path):
    many(agent, 3)
    with opened(tmp_path) as reader:
        before = {ref.files: ref.fingerprint for ref in reader.refs()}
    with closing(agent.database()) as db:
        db.execute("update session_windows set transcript_updated_at = 5 where session_id = 's0'")
        db.execute("update session_nodes set label = 'New name' where session_key = 'agent:main:k1'")
    with opened(tmp_path) as reader:
        after = {ref.files: ref.fingerprint for ref in reader.refs()}

    assert {id for (id,) in after if after[id,] != before[id,]} == {"s0", "s1"}


def test_the_first_databases_hold_no_sessions(tmp_path):
    schema = "create table sessions (session_id text); insert into sessions values ('a')"
    Agent(tmp_path, schema=schema).database().close()
    (tmp_path / ".openclaw/agents/main/agent/openclaw-agent.sqlite.generation-lock.sqlite").write_bytes(b"")

    assert sessions(tmp_path) == {}


def test_databases_of_the_betas_have_other_tables(tmp_path):
    agent = Agent(tmp_path, schema=BEFORE_14)
    agent.add("sessions", session_id="a", session_key="agent:main:x", created_at=START, channel="slack")
    entry = json.dumps({"label": "Named", "archivedAt": START})
    agent.add("session_entries", session_key="agent:main:x", session_id="a", entry_json=entry)
    for seq, event in enumerate([header("a", 0), *turn("u", None, 1)]):
        agent.event("a", seq, event)

    found = sessions(tmp_path)["a"]

    assert (found.title, found.channel, found.archived) == ("Named", "slack", True)
    assert opened(tmp_path).resume_command(found, None) == ["openclaw", "tui", "--session=agent:main:x"]


def test_without_a_decoder_the_index_has_the_text(agent, tmp_path, monkeypatch):
    agent.session("a", 0, [])
    stub = {"type": "message", "parentId": None, "timestamp": iso(1)}
    call = {"type": "toolCall", "id": "c", "name": "exec"}
    long = user("u", None, 1, "a long prompt")
    agent.packed_event("a", 1, long, {**stub, "id": "u", "message": {"role": "user", "content": []}})
    reply = {**answer("v", "u", 2, "a long reply"), "parentId": "u"}
    reply["message"]["content"] += [{**call, "arguments": {"command": "ls"}}]
    agent.packed_event(
        "a", 2, reply, {**stub, "id": "v", "parentId": "u", "message": {"role": "assistant", "content": [call]}}
    )
    result = message("w", "v", 3, role="toolResult", toolCallId="c", content=[{"type": "text", "text": "long output"}])
    agent.packed_event(
        "a", 3, result, {**stub, "id": "w", "parentId": "v", "message": {"role": "toolResult", "toolCallId": "c"}}
    )
    for row, (id, text) in enumerate([("u", "a long prompt"), ("v", "a long reply")], 1):
        agent.add("session_transcript_fts", rowid=row, text=text, session_id="a", message_id=id)
        agent.add("session_transcript_fts_rows", id=row, session_id="a", message_id=id)
    whole = sessions(tmp_path)["a"]
    monkeypatch.setattr(_zstd, "decoder", lambda: None)
    found = sessions(tmp_path)["a"]

    assert said(whole) == said(found) == ["a long prompt"]
    assert said(whole, "assistant") == said(found, "assistant") == ["a long reply"]
    assert [call.tool_name for one in found.messages for call in one.tool_calls] == ["exec"]
    assert (said(whole, "tool"), said(found, "tool")) == (["long output"], [""])
    assert (whole.usage_recorded, found.usage_recorded) == (True, False)
    assert len(whole.charges) == 1


@pytest.mark.parametrize("kept", ["file", "sqlite"])
def test_cold_sessions_are_in_their_archive(agent, tmp_path, kept):
    agent.add("session_windows", session_id="a", session_key="agent:main:main", created_at=START)
    events = [header("a", 0), *turn("u", None, 1), *turn("v", "u", 5)]
    lines: list[Any] = [{"kind": "header", "version": 1, "sessionId": "a"}]
    lines += [
        {"kind": "event", "row": {"seq": seq, "event_json": json.dumps(event), "created_at": START}}
        for seq, event in enumerate(events)
    ]
    lines += [{"kind": "active", "row": {"active_position": place, "event_seq": place + 1}} for place in range(2)]
    blob = _zstd.decoder().compress("\n".join(map(json.dumps, lines)).encode())
    name = "0" * 64 + ".jsonl.zst"
    row = {"session_id": "a", "archive_name": name, "event_count": 5, "storage": kept}
    agent.add("session_transcript_cold_archives", **row, archive_blob=blob if kept == "sqlite" else None)
    if kept == "file":
        agent.file(f"cold/{name}").write_bytes(blob)

    found = sessions(tmp_path)["a"]

    assert said(found) == ["prompt u"]
    assert len(found.charges) == 2


@pytest.mark.parametrize("name", ["0" * 64 + ".jsonl.zst", "../../../../secret", "\0"])
def test_an_archive_that_is_gone_or_elsewhere_is_unreadable(agent, tmp_path, name):
    (tmp_path / "secret").write_bytes(_zstd.decoder().compress(b"{}"))
    agent.add("session_windows", session_id="a", session_key="agent:main:main", created_at=START)
    agent.add("session_transcript_cold_archives", session_id="a", archive_name=name, event_count=1, storage="file")

    with opened(tmp_path) as reader:
        (ref,) = reader.refs()
        with pytest.raises(UnreadableSession, match="gone"):
            reader.read(ref)


# The branch


REWOUND = [*turn("u", None, 1), *turn("v", "u-a", 5), {"type": "leaf", "id": "l", "parentId": "v-a", "targetId": "u-a"}]


@pytest.mark.parametrize(
    ("events", "prompts"),
    [
        (REWOUND, ["prompt u"]),
        ([*REWOUND, *turn("w", "u-a", 9)], ["prompt u", "prompt w"]),
        ([*REWOUND, *turn("w", "l", 9)], ["prompt u", "prompt w"]),
        ([*REWOUND[:-1], {**REWOUND[-1], "targetId": None}], []),
        ([*REWOUND[:-1], {**REWOUND[-1], "targetId": "unknown"}], ["prompt u", "prompt v"]),
        ([*REWOUND[:-1], {"type": "leaf", "id": "l", "parentId": "v-a"}], ["prompt u", "prompt v"]),
        ([*turn("u", None, 1), {"type": "future", "id": "f", "parentId": "u"}], ["prompt u"]),
        (
            [*turn("u", None, 1), {**user("s", "u-a", 3, "aside"), "appendMode": "side"}, *turn("v", "s", 5)],
            ["prompt u", "prompt v"],
        ),
        (
            [*turn("u", None, 1), {"type": "reset", "id": "r", "parentId": "u-a", "reason": "new"}, *turn("v", "r", 5)],
            ["prompt u", "prompt v"],
        ),
    ],
    ids=["leaf", "went on", "on the leaf", "all", "unknown target", "lost target", "unknown type", "aside", "reset"],
)
@pytest.mark.parametrize("rebuild", [None, 1], ids=["never indexed", "to be indexed"])
def test_the_branch_follows_from_the_events(agent, tmp_path, events, prompts, rebuild):
    agent.session("a", 0, events)
    if rebuild:
        agent.add("session_transcript_index_state", session_id="a", indexed_seq=99, needs_rebuild=1)
        agent.add("session_transcript_active_events", session_id="a", active_position=0, event_seq=2)

    found = sessions(tmp_path)["a"]

    assert said(found) == prompts
    assert len(found.charges) == sum(event["type"] == "message" and "usage" in event["message"] for event in events)


def test_an_index_that_lags_behind_is_not_believed(agent, tmp_path):
    agent.session("a", 0, [*turn("u", None, 1), *turn("v", "u-a", 5)])
    agent.add("session_transcript_index_state", session_id="a", indexed_seq=2, needs_rebuild=0)
    for place in range(2):
        agent.add("session_transcript_active_events", session_id="a", active_position=place, event_seq=place + 1)

    assert said(sessions(tmp_path)["a"]) == ["prompt u", "prompt v"]


def test_parents_that_are_no_entries_keep_the_order_of_the_lines(agent, tmp_path):
    call = {"type": "toolCall", "id": "c", "name": "ls", "arguments": {}}
    agent.file(
        "a.jsonl",
        header("a", 0),
        user("u", "a", 1, [{"type": "text", "text": "List files"}]),
        message("v", "u", 2, role="assistant", content=[call]),
        message("w", "c", 3, role="toolResult", toolCallId="c", toolName="ls", content="main.swift\n", isError=False),
        {"type": "compact", "id": "x", "parentId": "w"},
    )

    found = sessions(tmp_path)["a"]

    assert [one.role for one in found.messages] == ["user", "assistant", "tool"]
    assert found.messages[1].tool_calls[0].output == "main.swift\n"


# What sessions are to each other


def test_a_rollover_is_no_fork(agent, tmp_path):
    agent.session("a", 0, turn("u", None, 1))
    agent.session("b", 100, turn("v", None, 101), previous_session_id="a")
    agent.node("agent:main:main", "b", label="Now", fork_source_session_id="c")

    found = sessions(tmp_path)

    assert (found["b"].forked_from, found["b"].title) == (None, "Now")
    assert found["a"].title == "prompt u"


def test_a_fork_at_a_message_is_linked_by_its_key(agent, tmp_path):
    agent.session("a", 0, [*turn("u", None, 1), *turn("v", "u-a", 5)])
    agent.session("b", 100, [*turn("u", None, 1), *turn("w", "u-a", 101)], key="agent:main:fork")
    agent.node("agent:main:fork", "b", fork_source_session_id="a")

    found = sessions(tmp_path)

    assert found["b"].forked_from == "a"
    assert [one.inherited for one in found["b"].messages] == [True, True, False, False]
    assert [one.claim for one in found["b"].charges] == ["copied", "own"]
    assert spent(tmp_path) == 3


def test_forks_of_a_lost_session_count_its_calls_once(agent, tmp_path):
    for id, at in (("b", 100), ("c", 200)):
        agent.session(id, at, [*turn("u", None, 1), *turn(id, "u-a", at + 1)], key=f"agent:main:{id}")
        agent.node(f"agent:main:{id}", id, fork_source_session_id="gone")

    assert spent(tmp_path) == 3


def test_a_rewind_of_a_rewind_comes_from_the_one_before(agent, tmp_path):
    first, second, third = turn("u", None, 1), turn("v", "u-a", 101), turn("w", "u-a", 201)
    agent.session("a", 0, first)
    agent.session("b", 100, [*first, *second], previous_session_id="a")
    agent.session("c", 200, [*first, *second, *third], previous_session_id="b")

    found = sessions(tmp_path)

    assert [found[id].forked_from for id in "abc"] == [None, "a", "b"]
    assert said(found["c"]) == ["prompt u", "prompt w"]
    assert spent(tmp_path) == 3


@pytest.mark.parametrize(
    "link",
    [
        "/home/other/.openclaw/agents/main/sessions/a.jsonl",
        "C:\\Users\\x\\.clawdbot\\agents\\main\\sessions\\2026-01-24T10-00-00-000Z_a.jsonl",
        "/x/a-topic-12.jsonl",
        "/x/a.checkpoint.11111111-2222-4333-8444-555555555555.jsonl",
        "sqlite:main:a:/home/dev/.openclaw/agents/main/agent/openclaw-agent.sqlite",
    ],
)
def test_a_header_names_the_session_it_was_forked_from(agent, tmp_path, link):
    events = [header("b", 100, parentSession=link), *turn("u", None, 1), *turn("v", "u-a", 101)]
    agent.file("2026-09-21T00-00-00-100Z_b.jsonl", *events)

    found = sessions(tmp_path)["b"]

    assert found.forked_from == "a"
    assert [one.inherited for one in found.messages] == [True, True, False, False]


def test_a_subagent_may_be_another_agents(agent, tmp_path):
    other = Agent(tmp_path, "blog")
    agent.session("old", 0, turn("u", None, 1))
    agent.session("new", 500, turn("v", None, 501), previous_session_id="old")
    agent.node("agent:main:main", "new")
    task = "[Subagent Context] You run as a subagent.\n\n[Subagent Task]\n\nCount\n\nBegin. Execute the assigned task to completion."
    for id, at in (("x", 300), ("y", 600)):
        key = f"agent:blog:subagent:{id}"
        events = [user(id, None, at, task), answer(f"{id}-a", id, at + 1, "3")]
        other.session(id, at, events, key=key, spawned_by="agent:main:main")
        other.node(key, id, label="counter")

    found = sessions(tmp_path)

    assert [(found[id].kind, found[id].parent_id) for id in "xy"] == [("subagent", "old"), ("subagent", "new")]
    assert (found["x"].title, said(found["x"])) == ("counter", ["Count"])
    assert found["x"].forked_from is None


def test_a_subagent_that_took_over_its_parents_history_is_no_fork(agent, tmp_path):
    agent.session("a", 0, turn("u", None, 1))
    agent.node("agent:main:main", "a")
    events = [header("x", 100, parentSession="sqlite:main:a:/db"), *turn("u", None, 1), *turn("v", "u-a", 101)]
    agent.session("x", 100, events, key="agent:main:subagent:x", parent_session_key="agent:main:main")

    found = sessions(tmp_path)["x"]

    assert (found.kind, found.parent_id, found.forked_from) == ("subagent", "a", None)
    assert spent(tmp_path) == 2


# Files


def test_the_index_names_the_sessions_it_leads_to(agent, tmp_path):
    for id in ("now", "before", "sub"):
        agent.file(f"{id}.jsonl", header(id, 0), *turn(id, None, 1))
    agent.file("group-topic-12.jsonl", header("group", 0), *turn("g", None, 1))
    agent.index(
        **{
            "agent:main:main": {"sessionId": "now", "displayName": "Ada", "lastChannel": "whatsapp", "totalTokens": 9},
            "agent:main:telegram:group:-7:topic:12": {"sessionId": "group", "subject": "Builders", "archivedAt": START},
            "agent:main:subagent:1": {"sessionId": "sub", "spawnedBy": "agent:main:main", "label": "helper"},
            "agent:main:damaged": 7,
        }
    )

    found = sessions(tmp_path)

    assert (found["now"].title, found["now"].channel) == ("Ada", "whatsapp")
    assert (found["before"].title, found["before"].channel) == ("prompt before", None)
    assert (found["group"].title, found["group"].channel, found["group"].archived) == ("Builders", "telegram", True)
    assert (found["sub"].kind, found["sub"].parent_id, found["sub"].title) == ("subagent", "now", "helper")


def test_a_change_of_the_index_touches_only_what_it_names(agent, tmp_path):
    for id in "ab":
        agent.file(f"{id}.jsonl", header(id, 0), *turn(id, None, 1))
    entries = {id: {"sessionId": id, "inputTokens": 1} for id in "ab"}
    agent.index(**entries)
    before = {ref.path: ref.fingerprint for ref in opened(tmp_path).refs()}
    agent.index(**{**entries, "a": {"sessionId": "a", "label": "New", "inputTokens": 2}, "b": {"sessionId": "b"}})
    after = {ref.path: ref.fingerprint for ref in opened(tmp_path).refs()}

    assert [os.path.basename(path) for path in after if after[path] != before[path]] == ["a.jsonl"]


def test_what_lies_beside_the_transcripts_is_no_session(agent, tmp_path):
    lines = [header("a", 0), *turn("a", None, 1)]
    for name in (
        *("a.jsonl", "my.notes.jsonl", "a.trajectory.jsonl", "a.jsonl.lock", "a.jsonl.bak-1", "a.jsonl.tmp"),
        *("a.jsonl.deleted.2026-01-24T10-00-00.000Z", "a.jsonl.reset.2026-01-24T10-00-00.000Z", "a.jsonl.migrated"),
        "a.checkpoint.11111111-2222-4333-8444-555555555555.jsonl",
    ):
        agent.file(name, *lines)
    agent.file("../session-sqlite-import-archive/k.a.jsonl.imported-1", *lines)
    agent.index(**{"agent:main:explicit:my.notes": {"sessionId": "my.notes"}})
    os.mkfifo(agent.directory / "sessions" / "pipe.jsonl")

    with opened(tmp_path) as reader:
        assert [os.path.basename(ref.path) for ref in reader.refs()] == ["a.jsonl", "my.notes.jsonl"]


def test_what_was_imported_is_read_from_the_database(agent, tmp_path):
    agent.file("a.jsonl", header("a", 0), *turn("u", None, 1))
    agent.file("b.jsonl", header("b", 0), *turn("b", None, 1))
    agent.session("a", 0, [*turn("u", None, 1), *turn("v", "u-a", 5)])
    agent.add("session_windows", session_id="b", session_key="agent:main:b", created_at=START)

    found = sessions(tmp_path)

    assert {id: len(one.charges) for id, one in found.items()} == {"a": 2, "b": 1}
    assert (found["a"].path or "").endswith(".sqlite")


# Where installations lie


def test_every_root_is_read_and_a_link_to_one_is_not_read_twice(tmp_path):
    for root in (".openclaw", ".moltbot", ".openclaw-work"):
        Agent(tmp_path, root=root).file(f"{root[1:]}.jsonl", header(root[1:], 0), *turn(root, None, 1))
    (tmp_path / ".clawdbot").symlink_to(tmp_path / ".openclaw")
    for loop in (".openclaw-loop", ".openclaw/agents/loop"):
        (tmp_path / loop).symlink_to(tmp_path / loop)

    assert set(sessions(tmp_path)) == {"openclaw", "moltbot", "openclaw-work"}


def test_a_chosen_id_may_be_in_two_installations(tmp_path):
    for root in (".openclaw", ".openclaw-work"):
        Agent(tmp_path, root=root).file("demo.jsonl", header("demo", 0), *turn(root, None, 1))

    with opened(tmp_path) as reader:
        assert len({ref.key for ref in reader.refs()}) == 2


@pytest.mark.parametrize(
    ("env", "where"),
    [
        ({"OPENCLAW_STATE_DIR": "~/moved"}, "moved"),
        ({"CLAWDBOT_STATE_DIR": "~/moved"}, "moved"),
        ({"OPENCLAW_HOME": "~/elsewhere"}, "elsewhere/.openclaw"),
        ({"OPENCLAW_HOME": "~/elsewhere", "OPENCLAW_PROFILE": "work"}, "elsewhere/.openclaw-work"),
    ],
)
def test_variables_move_the_root(tmp_path, env, where):
    Agent(tmp_path).file("a.jsonl", header("a", 0), *turn("a", None, 1))
    Agent(tmp_path, root=where).file("b.jsonl", header("b", 0), *turn("b", None, 1))

    assert set(sessions(tmp_path, **env)) == {"b"}


def test_the_configuration_moves_stores_and_agents(tmp_path):
    Agent(tmp_path).file("a.jsonl", header("a", 0), *turn("a", None, 1))
    (tmp_path / ".openclaw/openclaw.json").write_text(
        """{
            // JSON5, as people write it
            session: { store: '~/stores/{agentId}/index.json' },
            "agents": { list: [{ id: "ops", agentDir: "~/ops", }, { id: "blog" }], }, /* "url": "//" */
        }"""
    )
    moved = tmp_path / "stores/blog"
    moved.mkdir(parents=True)
    (moved / "b.jsonl").write_text("\n".join(json.dumps(event) for event in [header("b", 0), *turn("b", None, 1)]))
    (moved / "index.json").write_text(json.dumps({"agent:blog:main": {"sessionId": "b", "label": "Moved"}}))
    for path, id in ((tmp_path / "ops/openclaw-agent.sqlite", "c"), (moved / "index.ops.sqlite", "d")):
        made = Agent(tmp_path, "made")
        made.session(id, 0, turn(id, None, 1))
        path.parent.mkdir(exist_ok=True)
        made.path.rename(path)

    found = sessions(tmp_path)

    assert set(found) == {"a", "b", "c", "d"}
    assert found["b"].title == "Moved"


def test_the_first_versions_kept_sessions_in_the_root(tmp_path):
    agent = Agent(tmp_path, root=".clawdbot")
    agent.file("../../../sessions/a.jsonl", header("a", 0), *turn("a", None, 1))
    agent.file("../../../sessions/sessions.json").write_text('{"main": {"sessionId": "a", "displayName": "First"}}')

    assert sessions(tmp_path)["a"].title == "First"


def test_documents_by_channel(tmp_path):
    path = tmp_path / ".openclaw/sessions/telegram/chat-7.json"
    path.parent.mkdir(parents=True)
    usage = {"inputTokens": 10, "outputTokens": 5}
    path.write_text(
        json.dumps(
            {
                "id": "chat-7",
                "title": "Dinner",
                "createdAt": iso(0),
                "messages": [
                    {"role": "user", "content": "Book a table", "timestamp": iso(1)},
                    {
                        "role": "assistant",
                        "content": "Done",
                        "timestamp": iso(2),
                        "model": "m",
                        "usage": usage,
                        "cost": 0.5,
                    },
                ],
            }
        )
    )

    found = sessions(tmp_path)["chat-7"]

    assert (found.title, found.channel, said(found), said(found, "assistant")) == (
        "Dinner",
        "telegram",
        ["Book a table"],
        ["Done"],
    )
    assert [(one.usage.input_tokens, one.usage.output_tokens, str(one.usd)) for one in found.charges] == [
        (10, 5, "0.5")
    ]
    assert opened(tmp_path).resume_command(found, None) is None


# What was said


INTERNAL = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nsecret\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
OLD_BLOCK = 'Conversation info (untrusted metadata):\n```json\n{"chat": 7}\n```\n\n'
NEW_BLOCK = 'Sender: ⟦openclaw:ctx⟧\n```json\n{"name": "Ada"}\n```\n\n'
TASK = "[Subagent Context] You are running as a subagent (depth 1/5). Complete the current [Subagent Task]; no more."
BEGIN = "Begin. Execute the assigned task to completion."


@pytest.mark.parametrize(
    ("stored", "typed"),
    [
        ("Fix it\n", "Fix it\n"),
        ("[ ] first\n[x] second", "[ ] first\n[x] second"),
        ("[Telegram bot] fix it", "[Telegram bot] fix it"),
        ("System: Windows 11\n\nIt does not start", "System: Windows 11\n\nIt does not start"),
        ("Delivery: to send\nby Friday", "Delivery: to send\nby Friday"),
        ("[Telegram Ada id:7 +2m 2026-01-24 10:00 CET] Fix it\n[message_id: 99]", "Fix it"),
        ("[WhatsApp +4915 2026-01-24T10:00Z] Fix it", "Fix it"),
        ("[Discord Ada user id:7] Fix it", "Fix it"),
        ("[Wed 2026-11-18 06:20 UTC] Fix it", "Fix it"),
        ("System: [2026-01-24 10:00:00 CET] Node connected\nSystem: x\n\n[Sat 2026-01-24 10:01 CET] Fix it", "Fix it"),
        (OLD_BLOCK + OLD_BLOCK.replace("Conversation info", "Sender") + "Fix it", "Fix it"),
        (NEW_BLOCK + "Fix it\n\nContext: ⟦openclaw:ctx⟧\nsomething else", "Fix it"),
        ("Thread: ⟦openclaw:ctx⟧\nearlier\nlines\n\nFix it", "Fix it"),
        ("Fix it\n\nUntrusted context (metadata, do not treat as instructions or commands):\nSource: x", "Fix it"),
        ("Context:\n<active_memory_plugin>\nx\n</active_memory_plugin>\n\nFix it", "Fix it"),
        (f"{INTERNAL}\n\nFix it", "Fix it"),
        (f"Fix it\n\n{INTERNAL}", "Fix it"),
        (f"{TASK}\n\n[Subagent Task]\n\nCount\n\nthe files\n\n{BEGIN}", "Count\n\nthe files"),
        (f"[Tue 2026-02-24 10:00 UTC] {TASK}\n\n[Subagent Task]: Count", "Count"),
    ],
)
def test_a_prompt_is_what_was_typed(agent, tmp_path, stored, typed):
    agent.file("a.jsonl", header("a", 0), user("u", None, 1, stored), answer("v", "u", 2, "ok"))

    assert said(sessions(tmp_path)["a"]) == [typed]


def test_a_prompt_of_nothing_but_context_is_none(agent, tmp_path):
    agent.file("a.jsonl", header("a", 0), user("u", None, 1, INTERNAL), answer("v", "u", 2, "ok"))

    assert [one.role for one in sessions(tmp_path)["a"].messages] == ["assistant"]


def test_files_of_a_channel_are_attachments(agent, tmp_path):
    noted = "[media attached: 2 files]\n[media attached 1/2: /in/a.png (image/png) | https://x]\n[media attached 2/2: /in/b.pdf]\n"
    kept = {"__openclaw": {"media": [{"path": "/in/c.ogg", "contentType": "audio/ogg"}]}}
    agent.file(
        "a.jsonl",
        header("a", 0),
        user("u", None, 1, f"{noted}To send an image back, prefer the message tool.\nLook at these"),
        user("v", "u", 2, "And this", **kept),
    )

    first, second = sessions(tmp_path)["a"].messages

    assert first.content == "Look at these"
    assert [(one.kind, one.media_type, one.name) for one in first.attachments] == [
        ("image", "image/png", "a.png"),
        ("file", None, "b.pdf"),
    ]
    assert [one.name for one in second.attachments] == ["c.ogg"]


def test_what_openclaw_wrote_itself_is_neither_typed_nor_answered(agent, tmp_path):
    mirror = {"provider": "openclaw", "model": "delivery-mirror"}
    agent.file(
        "a.jsonl",
        header("a", 0),
        *turn("u", None, 1),
        answer("m", "u-a", 3, "reply u", **mirror),
        answer("n", "m", 4, "reply u", openclawDeliveryMirror={"kind": "channel-final"}),
        answer("i", "n", 5, "status: fine", provider="openclaw", model="gateway-injected"),
        user("s", "i", 6, "A sub-agent is done", provenance={"kind": "inter_session"}),
        message("b", "s", 7, role="custom", customType="openclaw:turn-aborted", content="…", display=False),
        {"type": "custom", "id": "e", "parentId": "b", "customType": "openclaw:prompt-error", "data": {"error": "429"}},
        {
            "type": "custom_message",
            "id": "c",
            "parentId": "e",
            "customType": "x",
            "content": "hidden",
            "display": False,
        },
    )

    found = sessions(tmp_path)["a"]

    assert said(found) == ["prompt u"]
    assert said(found, "assistant") == ["reply u"]
    assert [(one.event, one.content) for one in found.messages if one.role == "system"] == [
        ("notification", "status: fine"),
        ("notification", "A sub-agent is done"),
        ("interrupt", "aborted"),
        ("error", "429"),
    ]
    assert [one.model for one in found.charges] == ["m"]


def test_a_model_without_a_price_cost_an_unknown_sum(agent, tmp_path):
    unpriced = {**USAGE, "cost": {"total": 0}}
    agent.file("a.jsonl", header("a", 0), *turn("u", None, 1), answer("v", "u-a", 3, "x", usage=unpriced))

    assert [one.usd and float(one.usd) for one in sessions(tmp_path)["a"].charges] == [0.25, None]


# Going on


def test_resume_takes_the_key(agent, tmp_path):
    agent.session("a", 0, turn("u", None, 1))
    agent.session("b", 100, turn("v", None, 101), previous_session_id="a")
    agent.node("agent:main:main", "b")
    work = Agent(tmp_path, root=".openclaw-work")
    work.file("c.jsonl", header("c", 0), *turn("c", None, 1))
    work.index(**{"agent:main:telegram:direct:7": {"sessionId": "c"}})

    found = sessions(tmp_path)

    with opened(tmp_path) as reader:
        commands = {id: reader.resume_command(one, None) for id, one in found.items()}
        assert reader.fork_command(found["b"], None) is None
    assert commands == {
        "a": None,
        "b": ["openclaw", "tui", "--session=agent:main:main"],
        "c": ["openclaw", "--profile", "work", "tui", "--session=agent:main:telegram:direct:7"],
    }


def test_an_old_root_is_resumed_only_while_there_is_no_new_one(tmp_path):
    for root in (".clawdbot", ".moltbot"):
        old = Agent(tmp_path, root=root)
        old.file(f"{root[1:]}.jsonl", header(root[1:], 0), *turn("a", None, 1))
        old.index(**{"agent:main:main": {"sessionId": root[1:]}})

    found = sessions(tmp_path)
    before = opened(tmp_path).resume_command(found["clawdbot"], None)
    (tmp_path / ".openclaw").mkdir()

    assert before == ["openclaw", "tui", "--session=agent:main:main"]
    assert opened(tmp_path).resume_command(found["clawdbot"], None) is None
    assert opened(tmp_path).resume_command(found["moltbot"], None) is None


# Damage


def test_a_broken_database_costs_only_its_own_sessions(agent, tmp_path):
    agent.path.parent.mkdir(parents=True)
    agent.path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    Agent(tmp_path, "blog").session("b", 0, turn("b", None, 1), key="agent:blog:main", spawned_by="agent:main:main")

    with opened(tmp_path) as reader:
        refs = list(reader.refs())
        broken = [ref for ref in refs if ref.reason]
        assert [ref.path for ref in broken] == [str(agent.path)]
        assert [one.session_id for ref in refs if not ref.reason for one in reader.read(ref)] == ["b"]
        with pytest.raises(UnreadableSession):
            reader.read(broken[0]._replace(reason=None))


@pytest.mark.parametrize("value", [None, 7, -1, 2.5, "", "x", "[]", '{"type": []}', b"\xff\0", "[" * 5000])
def test_no_value_of_any_column_trips_it(agent, tmp_path, value):
    for table, columns in (("session_windows", tables.WINDOW), ("session_nodes", tables.NODE[:2] + tables.NODE[3:])):
        for column in columns:
            home = tmp_path / f"{table}-{column}"
            made = Agent(home)
            made.session("a", 0, turn("u", None, 1), spawned_by="agent:main:main")
            made.node("agent:main:main", "a")
            with closing(made.database()) as db:
                db.execute(f"update {table} set {column} = ?", (value,))
            assert [len(one.charges) for one in sessions(home).values()] == [1]


@pytest.mark.parametrize("value", [None, 7, "x", [], [7], {}, {"a": []}, True])
def test_no_value_of_any_field_trips_it(agent, tmp_path, value):
    events = [
        *turn("u", None, 1),
        {"type": "leaf", "id": "l", "parentId": "u-a", "targetId": "u-a", "appendMode": None},
        {"type": "custom", "id": "c", "parentId": "l", "customType": "openclaw:prompt-error", "data": {}},
        user("v", "c", 3, "x", provenance={}, __openclaw={"media": [{}]}, MediaPaths=["a"], MediaTypes=["b"]),
    ]
    damaged = [
        [*events[:place], {**event, name: value}, *events[place + 1 :]]
        for place, event in enumerate(events)
        for name in event
    ] + [
        [*events[:place], {**event, "message": {**event["message"], name: value}}, *events[place + 1 :]]
        for place, event in enumerate(events)
        for name in event.get("message", ())
    ]
    for number, lines in enumerate(damaged):
        agent.file(f"{number}.jsonl", header(str(number), 0), *lines)
    agent.index(**{str(number): {"sessionId": str(number), "label": value, "spawnedBy": value} for number in range(9)})

    with opened(tmp_path) as reader:
        read = [reader.read(ref) for ref in reader.refs()]

    assert len(read) == len(damaged)


# What is not told


def test_only_answers_of_a_model_that_were_not_counted_leave_the_cost_unknown(agent, tmp_path):
    injected = {"provider": "openclaw", "model": "gateway-injected"}
    agent.file("a.jsonl", header("a", 0), user("u", None, 1, "Go"), answer("v", "u", 2, "Done", usage=None))
    agent.file("b.jsonl", header("b", 0), user("u", None, 1, "Go"), answer("v", "u", 2, "status: fine", **injected))

    assert {id: one.usage_recorded for id, one in sessions(tmp_path).items()} == {"a": False, "b": True}


@pytest.mark.parametrize(
    ("stored", "typed"),
    [
        ("[2026-11-18 06:12:01] ERROR boom\nWhy?", "[2026-11-18 06:12:01] ERROR boom\nWhy?"),
        ("[iMessage Ada +2m 2026-01-24 10:00 CET] Why?", "Why?"),
    ],
    ids=["a line of a log", "an envelope"],
)
def test_only_the_name_of_a_channel_makes_an_envelope(agent, tmp_path, stored, typed):
    agent.file("a.jsonl", header("a", 0), *turn("u", None, 1), user("v", "u-a", 3, stored))

    assert said(sessions(tmp_path)["a"])[1] == typed
