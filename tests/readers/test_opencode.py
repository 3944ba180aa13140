"""What is odd about OpenCode: three layouts of JSON files, two generations of tables, and forks that carry no link."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from amux.manager import SessionManager
from amux.model import Session
from amux.query import Query
from amux.readers import opencode
from amux.readers._base import Host
from amux.readers._sqlite import reading
from amux.readers.opencode import READER, files

START = 1_790_000_000_000
SCHEMA = """
    create table session (id text primary key, project_id text, parent_id text, directory text, title text, version text,
        revert text, model text, time_created integer, time_updated integer, time_archived integer);
    create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
    create table part (id text primary key, message_id text, session_id text, time_created integer, time_updated integer, data text);
    create index message_session_time_created_id_idx on message (session_id, time_created, id);
    create index part_session_idx on part (session_id);
"""
SECOND = """
    create table session_v2 (id text primary key, project_id text, parent_id text, fork_session_id text, directory text, title text,
        version text, revert text, model text, time_created integer, time_updated integer, time_archived integer);
    create table session_message (id text primary key, session_id text, type text, seq integer, time_created integer,
        time_updated integer, data text);
"""


class Store:
    """A data directory in which sessions are written as the agent's versions do."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / ".local/share/opencode"
        self.root.mkdir(parents=True)
        self.ids = 0

    def database(self, name: str = "opencode.db", schema: str = SCHEMA) -> sqlite3.Connection:
        path = self.root / name
        new = not path.exists()
        db = sqlite3.connect(path, isolation_level=None)
        if new:
            db.executescript(schema)
        return db

    def add(self, table: str, *, name: str = "opencode.db", **row: Any) -> None:
        values = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in row.items()}
        with closing(self.database(name)) as db:
            marks = ", ".join("?" * len(values))
            db.execute(f"insert into {table} ({', '.join(values)}) values ({marks})", list(values.values()))

    def session(self, id: str, at: int = 0, *, table: str = "session", **row: Any) -> None:
        """A session begun so many milliseconds after the start."""
        own = {"project_id": "p", "directory": "/w", "title": f"Title of {id}", "version": "1.18.33"}
        self.add(table, id=id, time_created=START + at, time_updated=START + at, **{**own, **row})

    def message(self, session_id: str, info: dict[str, Any], *parts: dict[str, Any], name: str = "opencode.db") -> str:
        self.ids += 1
        id, at = f"msg_{self.ids:04}", info["time"]["created"]
        row = {"session_id": session_id, "time_created": at, "time_updated": at, "name": name}
        self.add("message", id=id, data=info, **row)
        for number, part in enumerate(parts):
            self.add("part", id=f"prt_{self.ids:04}_{number}", message_id=id, data=part, **row)
        return id

    def turn(self, session_id: str, at: int, prompt: str, *, name: str = "opencode.db", n: int = 1) -> None:
        """A prompt and its answer."""
        self.message(session_id, user(at), text(prompt), name=name)
        self.message(session_id, assistant(at + 1, n), text(f"Answer to {prompt}"), name=name)

    def projected(self, session_id: str, kind: str, seq: int, data: dict[str, Any]) -> None:
        at = data["time"]["created"]
        self.ids += 1
        row = {"session_id": session_id, "type": kind, "seq": seq, "time_created": at, "time_updated": at}
        self.add("session_message", id=f"msg_{self.ids:04}", data=data, **row)

    def fork(self, parent: str, id: str, at: int) -> None:
        """A copy of a session as versions 1.x make it: new ids, the old times, no link."""
        self.session(id, at, title=f"Title of {parent} (fork #1)")
        with closing(self.database()) as db:
            for old, created, data in db.execute(
                "select id, time_created, data from message where session_id = ? order by time_created", (parent,)
            ).fetchall():
                values = (f"{id}_{old}", id, created, START + at, data)
                db.execute("insert into message values (?, ?, ?, ?, ?)", values)
                db.execute(
                    "insert into part select ? || id, ?, ?, ?, ?, data from part where message_id = ?",
                    (id, f"{id}_{old}", id, START + at, START + at, old),
                )

    def write(self, path: str, value: Any) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))

    def files(
        self,
        id: str,
        at: int = 0,
        *,
        where: str = "storage",
        prompt: str = "Typed",
        said: Sequence[tuple[dict[str, Any], str]] = (),
    ) -> None:
        """A session, of one turn unless told, as JSON files: in `storage` of 1.1, or in a project of 0.5."""
        old = where != "storage"
        info = {
            "id": id,
            "title": f"Title of {id}",
            "version": "1.1.65",
            "time": {"created": START + at, "updated": START + at},
        }
        self.write(f"{where}/session/info/{id}.json" if old else f"{where}/session/p/{id}.json", info)
        turn = [(user(at), prompt), (assistant(at + 1), f"Answer to {prompt}")]
        for number, (record, content) in enumerate(said or turn):
            message = f"msg_{id}_{number}"
            self.write(f"{where}/{'session/' if old else ''}message/{id}/{message}.json", record)
            self.write(f"{where}/{f'session/part/{id}' if old else 'part'}/{message}/prt_0.json", text(content))

    def manager(self, **env: str) -> SessionManager:
        return SessionManager(Host(self.home, env), cache=False)

    def read(self, **env: str) -> dict[str, Session]:
        with READER("opencode", Host(self.home, env)) as reader:
            return {one.session_id: one for ref in reader.refs() for one in reader.read(ref)}


def user(at: int) -> dict[str, Any]:
    return {"role": "user", "time": {"created": START + at}, "model": {"providerID": "mock", "modelID": "m"}}


def assistant(at: int, n: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "time": {"created": START + at, "completed": START + at + 1},
        "modelID": "m",
        "providerID": "mock",
        "cost": 0.01 * n,
        "tokens": tokens(100 + n, 20, 5, 30, total=150 + n),
        **more,
    }


def tokens(fresh: int, output: int, reasoning: int = 0, read: int = 0, **more: Any) -> dict[str, Any]:
    return {"input": fresh, "output": output, "reasoning": reasoning, "cache": {"read": read, "write": 0}, **more}


NOTHING = {"cost": 0, "tokens": tokens(0, 0)}


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": content, **more}


def tool(call: str, **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": "bash", "callID": call, "state": {"status": "completed", "input": {}, **state}}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def prompts(session: Session) -> list[str]:
    return [message.content for message in session.messages if message.role == "user"]


def spoken(session: Session) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in session.messages]


def listed(manager: SessionManager, **query: Any) -> dict[str, Any]:
    return {one.session_id: one for one in manager.list(Query(agents=("opencode",), **query))}


def total(manager: SessionManager) -> Any:
    return manager.total_cost(Query(agents=("opencode",)))


# JSON files


def test_the_first_versions_kept_parts_inside_their_message(store):
    """0.1: one message for a whole turn, usage of its last step only, everything else under `metadata`."""
    session = "project/w/storage/session"
    store.write(
        f"{session}/info/ses_1.json",
        {
            "id": "ses_1",
            "version": "0.1.174",
            "title": "New Session - 2026-01-01T00:00:00.000Z",
            "time": {"created": START},
        },
    )
    store.write(
        f"{session}/message/ses_1/msg_1.json",
        {"role": "user", "parts": [text("Count")], "metadata": {"time": {"created": START + 1}, "tool": {}}},
    )
    calls = [
        {
            "type": "tool-invocation",
            "toolInvocation": {"state": state, "toolCallId": id, "toolName": "bash", "args": {"n": id}, "result": out},
        }
        for id, state, out in (("c1", "result", "one"), ("c2", "result", "no such file"), ("c3", "call", None))
    ]
    metadata = {
        "time": {"created": START + 2, "completed": START + 90},
        "tool": {
            "c1": {"time": {"start": START + 3, "end": START + 8}},
            "c2": {"error": True, "message": "no such file"},
        },
        "assistant": {
            "cost": 0,
            "tokens": tokens(50, 7),
            "modelID": "m",
            "providerID": "mock",
            "path": {"cwd": "/w/pkg"},
        },
    }
    parts = [{"type": "step-start"}, text("Counting"), *calls, {"type": "step-start"}, text("Counted")]
    store.write(f"{session}/message/ses_1/msg_2.json", {"role": "assistant", "parts": parts, "metadata": metadata})

    found = store.read()["ses_1"]

    assert (found.title, found.cwd, found.model) == ("Count", "/w/pkg", "m")
    assert spoken(found) == [
        ("user", "Count"),
        ("assistant", "Counting"),
        ("tool", "one"),
        ("tool", "no such file"),
        ("assistant", "Counted"),
    ]
    assert [(c.output, c.duration_ms, c.is_error) for c in found.messages[1].tool_calls] == [
        ("one", 5, False),
        ("no such file", None, True),
        (None, None, False),
    ]
    (charge,) = found.charges
    assert (charge.usage.input_tokens, charge.usage.output_tokens, charge.usage.thinking_tokens) == (50, 7, None)
    assert charge.message == 4


def test_parts_stayed_inside_for_a_while_after_metadata_was_gone(store):
    session = "project/w/storage/session"
    store.write(f"{session}/info/ses_1.json", {"version": "0.3.0", "title": "T", "time": {"created": START}})
    store.write(f"{session}/message/ses_1/msg_1.json", {**user(1), "parts": [text("Look")]})
    inside = {**tool("", output="seen"), "id": "c1", "callID": None}
    store.write(f"{session}/message/ses_1/msg_2.json", {**assistant(2), "parts": [inside, text("Looked")]})

    found = store.read()["ses_1"]

    assert spoken(found) == [("user", "Look"), ("assistant", "Looked"), ("tool", "seen")]
    assert found.messages[1].tool_calls[0].tool_call_id == "c1"


def test_a_turn_of_several_steps_is_one_answer_and_one_charge_each(store):
    """0.5: the message's tokens are the last step's, its cost that of all; cached input counts as input too."""
    store.session("ses_1", version="0.5.29")
    store.message("ses_1", user(1), text("Go"))
    steps = []
    for number in (1, 2):
        steps += [
            {"type": "step-start"},
            text(f"Step {number}", time={"start": START + 10 * number}),
            {"type": "step-finish", "tokens": tokens(100 + number, 10 + number, 3, 40), "cost": 0.1 * number},
            {"type": "patch", "hash": "x", "files": []},
        ]
    store.message("ses_1", assistant(2, tokens=tokens(102, 12, 3, 40), cost=0.3), *steps)

    found = store.read()["ses_1"]

    assert spoken(found) == [("user", "Go"), ("assistant", "Step 1"), ("assistant", "Step 2")]
    assert [
        (c.usage.input_tokens, c.usage.output_tokens, c.usage.cached_tokens, c.usd, c.message) for c in found.charges
    ] == [
        (61, 11, 40, Decimal("0.1"), 1),
        (62, 12, 40, Decimal("0.2"), 2),
    ]
    assert found.messages[2].timestamp.timestamp() * 1000 == START + 20


@pytest.mark.parametrize(
    ("version", "provider", "counted", "fresh"),
    [
        ("1.0.61", "mock", tokens(100, 10, 0, 40), 60),
        ("1.0.61", "anthropic", tokens(100, 10, 0, 40), 100),
        ("1.0.61", "mock", tokens(30, 10, 0, 40), 30),
        ("1.0.98", "mock", tokens(100, 10, 0, 40), 100),
        ("1.0.61", "mock", tokens(100, 10, 0, 40, total=150), 100),
    ],
    ids=["old", "a provider that counts apart", "more cached than input", "new", "has a total: newer than its session"],
)
def test_cached_input_is_no_fresh_input(store, version, provider, counted, fresh):
    store.session("ses_1", version=version)
    store.message("ses_1", assistant(1, tokens=counted, providerID=provider), text("Done"))

    assert store.read()["ses_1"].charges[0].usage.input_tokens == fresh


@pytest.mark.parametrize(
    ("counted", "output"),
    [
        (tokens(100, 50, 20, 30, total=180), 50),
        (tokens(100, 50, 20, 30, total=200), 70),
        (tokens(100, 50, 20, 30), 50),
        (tokens(100, 10, 20, 30), 30),
    ],
    ids=["included", "apart", "no total", "more reasoning than output"],
)
def test_output_includes_reasoning_once(store, counted, output):
    store.session("ses_1")
    store.message("ses_1", assistant(1, tokens=counted), text("Done"))

    assert store.read()["ses_1"].charges[0].usage.output_tokens == output


def test_files_half_written_or_damaged_cost_only_themselves(store):
    store.files("ses_1")
    messages = store.root / "storage/message/ses_1"
    (messages / "msg_x.json").write_text('{"role": "user", "ti')
    (messages / "msg_y.json.123.tmp").write_text("{}")
    (messages / "msg_z.json").symlink_to("nowhere")
    os.mkfifo(messages / "msg_p.json")
    (store.root / "storage/session/p/ses_2.json").write_text("not JSON")
    (store.root / "storage/migration").write_text("2")
    store.write("storage/session_diff/ses_1.json", [])

    assert spoken(store.read()["ses_1"]) == [("user", "Typed"), ("assistant", "Answer to Typed")]


# The same session in several places


def test_each_session_is_read_from_its_latest_generation(store):
    store.files("ses_1", where="project/w/storage", prompt="From a project")
    assert prompts(store.read()["ses_1"]) == ["From a project"]

    store.files("ses_1", prompt="From storage")
    assert prompts(store.read()["ses_1"]) == ["From storage"]

    store.session("ses_1")
    store.turn("ses_1", 1, "From version 1")
    assert prompts(store.read()["ses_1"]) == ["From version 1"]

    with closing(store.database()) as db:
        db.executescript(SECOND)
    store.session("ses_1", table="session_v2")
    assert prompts(store.read()["ses_1"]) == ["From version 1"], "a row without content hides nothing"

    store.projected("ses_1", "user", 1, {"time": {"created": START + 5}, "text": "From version 2"})
    assert prompts(store.read()["ses_1"]) == ["From version 2"]
    assert total(store.manager()).call_count == 0


def test_sessions_that_were_never_imported_are_listed_with_the_others(store):
    store.files("ses_old", 0)
    store.files("ses_older", 5, where="project/w/storage")
    store.session("ses_new", 10)
    store.turn("ses_new", 11, "New")

    assert set(listed(store.manager())) == {"ses_old", "ses_older", "ses_new"}
    assert total(store.manager()).call_count == 3


def test_an_empty_session_in_the_database_does_not_hide_its_files(store):
    store.files("ses_1")
    store.session("ses_1")
    store.session("ses_empty")

    assert set(store.read()) == {"ses_1"}


def test_databases_of_other_channels_are_read_too_and_the_latest_copy_counts(store):
    for name, updated in (("opencode.db", 0), ("opencode-dev.db", 9), ("opencode-backup.db", 3)):
        store.session("ses_1", name=name, title=name)
        store.turn("ses_1", 1, f"In {name}", name=name)
        with closing(store.database(name)) as db:
            db.execute("update session set time_updated = time_updated + ?", (updated,))
    store.session("ses_2", name="opencode-dev.db")
    store.turn("ses_2", 1, "Only here", name="opencode-dev.db")

    found = store.read()

    assert {id: prompts(one) for id, one in found.items()} == {"ses_1": ["In opencode-dev.db"], "ses_2": ["Only here"]}


def test_the_environment_names_another_database_or_another_root(store, tmp_path):
    store.session("ses_alt", name="alt.db")
    store.turn("ses_alt", 1, "Alt", name="alt.db")
    elsewhere = Store(tmp_path / "elsewhere")
    elsewhere.session("ses_far")
    elsewhere.turn("ses_far", 1, "Far")

    assert set(store.read()) == set()
    assert set(store.read(OPENCODE_DB="alt.db")) == {"ses_alt"}
    assert set(store.read(OPENCODE_DB=str(elsewhere.root / "opencode.db"))) == {"ses_far"}
    assert set(store.read(OPENCODE_DB=":memory:")) == set()
    assert set(store.read(OPENCODE_DB="missing.db")) == set()
    assert set(store.read(XDG_DATA_HOME=str(elsewhere.root.parent))) == {"ses_far"}


# Version 2


@pytest.fixture
def second(store: Store) -> Store:
    with closing(store.database(schema=SECOND)):
        return store


def at(milliseconds: int, **more: Any) -> dict[str, Any]:
    return {"time": {"created": START + milliseconds, "completed": START + milliseconds + 1}, **more}


MODEL = {"id": "m", "providerID": "mock"}


def test_rows_of_version_2_are_a_conversation(second):
    second.session("ses_1", table="session_v2", title=None)
    files = [{"uri": "data:image/png;base64,AA==", "mime": "image/png", "name": "dot.png"}]
    second.projected("ses_1", "user", 2, at(1, text="Look", files=files))
    second.projected("ses_1", "synthetic", 3, at(2, text="injected"))
    second.projected("ses_1", "system", 4, at(2, text="injected"))
    second.projected("ses_1", "model-switched", 5, at(2, model=MODEL))
    content = [
        {"type": "reasoning", "text": "Hm"},
        {"type": "text", "text": "Looking"},
        {"type": "tool", "id": "c1", "name": "bash", "time": {"created": 1, "ran": 10, "completed": 15},
         "state": {"status": "completed", "input": {"a": 1}, "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}},
        {"type": "tool", "id": "c2", "name": "read", "time": {"created": 1},
         "state": {"status": "error", "input": {}, "content": [], "error": {"type": "unknown", "message": "gone"}}},
        {"type": "tool", "id": "c3", "name": "bash", "time": {"created": 1}, "state": {"status": "pending", "input": '{"comm'}},
    ]  # fmt: skip
    second.projected("ses_1", "assistant", 9, at(3, model=MODEL, content=content, cost=0.5, tokens=tokens(10, 4, 3, 2)))
    second.projected("ses_1", "shell", 7, at(4, command="ls", output="a b", callID="c4"))
    second.projected(
        "ses_1", "shell", 12, at(5, command="pwd", shellID="sh_1", status="exited", output={"output": "/w"})
    )
    failed = {"type": "provider", "message": "refused"}
    second.projected("ses_1", "assistant", 13, at(6, model=MODEL, content=[], error=failed))
    second.projected(
        "ses_1", "compaction", 14, at(7, reason="auto", summary="In short", recent="", model=MODEL, tokens=tokens(5, 1))
    )

    found = second.read()["ses_1"]

    assert [(m.role, m.event, m.content) for m in found.messages] == [
        ("user", None, "Look"),
        ("assistant", None, ""),
        ("tool", None, "a b"),
        ("assistant", None, "Looking"),
        ("tool", None, "one\ntwo"),
        ("tool", None, "gone"),
        ("assistant", None, ""),
        ("tool", None, "/w"),
        ("system", "error", "refused"),
        ("system", "compaction", "In short"),
    ], "in the order of seq"
    assert found.title == "Look"
    assert found.messages[0].attachments[0].name == "dot.png"
    assert found.messages[3].thinking == "Hm"
    assert [(c.input, c.output, c.duration_ms, c.is_error) for c in found.messages[3].tool_calls] == [
        ({"a": 1}, "one\ntwo", 5, False),
        ({}, "gone", None, True),
        ('{"comm', None, None, False),
    ]
    assert [(c.usage.input_tokens, c.usage.output_tokens, c.usd, c.message) for c in found.charges] == [
        (10, 7, Decimal("0.5"), 3),
        (5, 1, None, 9),
    ]


def test_a_fork_of_version_2_names_its_parent(second):
    for id, begun, parent in (("ses_1", 0, None), ("ses_2", 100, "ses_1")):
        second.session(id, begun, table="session_v2", fork_session_id=parent)
        second.projected(id, "user", 1, at(1, text="First"))
        second.projected(id, "assistant", 2, at(2, model=MODEL, content=[text("One")], tokens=tokens(10, 4)))
    second.projected("ses_2", "user", 3, at(101, text="Second"))

    manager = second.manager()

    assert listed(manager)["ses_2"].forked_from == "ses_1"
    assert [m.inherited for m in manager.get("opencode", "ses_2").messages] == [True, True, False]
    assert (total(manager).call_count, total(manager).input_tokens) == (1, 10)


def test_notes_in_the_table_of_version_2_do_not_make_a_session_one(store):
    """1.14 has that table without `seq`, 1.17 writes there which agent was chosen."""
    with closing(store.database()) as db:
        db.executescript(SECOND.replace("seq integer,", ""))
    store.session("ses_1")
    store.turn("ses_1", 1, "Typed")
    row = {"time_created": START, "time_updated": START, "data": {"time": {"created": START}, "agent": "build"}}
    store.add("session_message", id="msg_0", session_id="ses_1", type="agent-switched", **row)

    assert prompts(store.read()["ses_1"]) == ["Typed"]


def test_a_session_that_both_generations_wrote_in_turns_is_whole(store):
    """The preview of version 2 goes on with sessions of version 1, under the same row."""
    with closing(store.database()) as db:
        db.executescript(SECOND)
    store.session("ses_1")
    store.turn("ses_1", 1, "First")
    store.projected("ses_1", "user", 1, at(10, text="Second"))
    store.projected("ses_1", "assistant", 2, at(11, model=MODEL, content=[text("Two")], tokens=tokens(10, 4)))
    store.turn("ses_1", 20, "Third", n=2)
    store.projected("ses_1", "user", 3, at(20, text="Third"))

    found = store.read()["ses_1"]

    assert prompts(found) == ["First", "Second", "Third"]
    assert len(found.charges) == 3


def test_a_prompt_queued_while_an_answer_ran_stands_after_it(store):
    """The preview of version 2 keeps its content under a row of version 1; `seq` is its order, not the time."""
    with closing(store.database()) as db:
        db.executescript(SECOND)
    store.session("ses_1")
    store.projected("ses_1", "user", 2, at(1, text="First"))
    store.projected("ses_1", "assistant", 5, at(20, model=MODEL, content=[text("One")], tokens=tokens(10, 4)))
    store.projected("ses_1", "user", 9, at(10, text="Queued"))
    store.projected("ses_1", "assistant", 10, at(30, model=MODEL, content=[text("Two")], tokens=tokens(10, 4)))

    assert [content for _, content in spoken(store.read()["ses_1"])] == ["First", "One", "Queued", "Two"]


# Forks


def test_a_fork_of_a_fork_is_linked_to_the_session_that_made_its_newest_copy(store):
    store.session("ses_1", 0)
    store.turn("ses_1", 1, "First", n=1)
    store.fork("ses_1", "ses_2", 100)
    store.turn("ses_2", 101, "Second", n=2)
    store.fork("ses_2", "ses_3", 200)
    store.turn("ses_3", 201, "Third", n=3)
    store.fork("ses_1", "ses_4", 300)

    manager = store.manager()
    found = listed(manager)

    assert {id: one.forked_from for id, one in found.items()} == {
        "ses_1": None,
        "ses_2": "ses_1",
        "ses_3": "ses_2",
        "ses_4": "ses_1",
    }
    assert {id: one.cost.input_tokens for id, one in found.items()} == {
        "ses_1": 101,
        "ses_2": 102,
        "ses_3": 103,
        "ses_4": 0,
    }
    assert [m.inherited for m in manager.get("opencode", "ses_3").messages] == [True] * 4 + [False] * 2
    assert found["ses_3"].created_at.timestamp() * 1000 == START + 200


def test_a_fork_without_a_paid_call_is_linked_too(store):
    store.session("ses_1", 0)
    store.turn("ses_1", 1, "First")
    store.session("ses_2", 50)
    refused = {"name": "APIError", "data": {"message": "refused"}}
    store.message("ses_2", user(51), text("Refused"))
    store.message("ses_2", assistant(52, error=refused, **NOTHING))
    store.fork("ses_2", "ses_3", 100)

    assert listed(store.manager())["ses_3"].forked_from == "ses_2"


def test_a_fork_in_files_without_a_paid_call_is_linked_too(store):
    refused = assistant(52, error={"name": "APIError", "data": {"message": "refused"}}, **NOTHING)
    copied = [(user(51), "Refused"), (refused, "")]
    store.files("ses_0", 0)
    store.files("ses_1", 50, said=copied)
    store.files("ses_2", 100, said=copied)
    store.files("ses_3", 200, said=[*copied, (user(201), "Once more"), (assistant(202), "Answered")])
    store.write("storage/session/p/ses_torn.json", [])

    found = listed(store.manager())

    assert {id: one.forked_from for id, one in found.items()} == {
        "ses_0": None,
        "ses_1": None,
        "ses_2": "ses_1",
        "ses_3": "ses_1",
    }


def test_a_fork_in_files_with_a_paid_call_needs_no_look_at_others(store, monkeypatch):
    store.files("ses_1")
    store.files("ses_2", 100, said=[(user(0), "Typed"), (assistant(1), "Answer to Typed"), (user(101), "More")])
    opened: list[str] = []
    document = files.document
    monkeypatch.setattr(files, "document", lambda path: [document(path), opened.append(path)][0])

    with READER("opencode", Host(store.home, {})) as reader:
        (ref,) = (ref for ref in reader.refs() if ref.key == "ses_2")
        assert reader.read(ref)

    assert [path for path in opened if "ses_1" in path] == []
    assert listed(store.manager())["ses_2"].forked_from == "ses_1"


def test_forks_of_a_session_that_is_gone_count_each_call_once(store):
    store.session("ses_1", 0)
    store.turn("ses_1", 1, "First")
    for id, begun in (("ses_2", 100), ("ses_3", 200)):
        store.fork("ses_1", id, begun)
        store.turn(id, begun + 1, id, n=begun)
    with closing(store.database()) as db:
        db.executescript("delete from session where id = 'ses_1'; delete from message where session_id = 'ses_1'")

    assert (total(store.manager()).call_count, total(store.manager()).input_tokens) == (3, 101 + 200 + 300)


def test_a_subagent_stays_with_the_session_that_started_it(store):
    store.session("ses_1", 0)
    store.message("ses_1", user(1), text("Delegate"))
    task = {**tool("c1", output="done", metadata={"sessionId": "ses_sub", "parentSessionId": "ses_1"}), "tool": "task"}
    store.message("ses_1", assistant(2), task)
    store.session("ses_sub", 3, parent_id="ses_1", title="Count (@general subagent)")
    store.turn("ses_sub", 4, "Count", n=5)
    store.fork("ses_1", "ses_2", 100)

    found = listed(store.manager(), subagents=True)

    assert (found["ses_sub"].kind, found["ses_sub"].parent_id) == ("subagent", "ses_1")
    assert (found["ses_1"].cost.input_tokens, found["ses_2"].cost.input_tokens) == (101 + 105, 0)


# What is shown


def test_a_revert_hides_what_it_undid_but_not_what_it_cost(store):
    store.session("ses_1")
    store.turn("ses_1", 1, "Kept")
    store.message("ses_1", user(10), text("Half"))
    undone = store.message("ses_1", assistant(11, 2), text("Before"), tool("c1", output="undone"), text("After"))
    store.turn("ses_1", 20, "Undone", n=3)
    with closing(store.database()) as db:
        revert = json.dumps({"messageID": undone, "partID": f"prt_{undone[4:]}_1"})
        db.execute("update session set revert = ?", (revert,))

    found = store.read()["ses_1"]
    assert [content for _, content in spoken(found)] == ["Kept", "Answer to Kept", "Half", "Before"]
    assert [charge.message for charge in found.charges] == [1, 3, None]

    with closing(store.database()) as db:
        db.execute("update session set revert = ?", (json.dumps({"messageID": undone}),))
    found = store.read()["ses_1"]
    assert [content for _, content in spoken(found)] == ["Kept", "Answer to Kept", "Half"]
    assert [charge.message for charge in found.charges] == [1, None, None]


def test_what_the_program_wrote_in_the_users_name_is_no_prompt(store):
    store.session("ses_1", title="New session - 2026-01-01T00:00:00.000Z")
    store.message("ses_1", user(1), text("The following tool was executed by the user", synthetic=True))
    store.message("ses_1", assistant(2, **NOTHING), tool("c1", output="shell"))
    store.message("ses_1", user(3), text("Note", ignored=True), {"type": "compaction", "auto": True})
    store.message("ses_1", user(4), {"type": "subtask", "prompt": "Review it", "agent": "review", "description": "d"})
    store.message("ses_1", user(5), {"type": "file", "mime": "text/plain", "url": "file:///w/app.py"})

    found = store.read()["ses_1"]

    assert prompts(found) == ["Review it", ""]
    assert found.messages[-1].attachments[0].name == "app.py"
    assert found.title == "Review it"
    assert found.charges == ()


def test_an_interrupted_answer_is_no_error(store):
    store.session("ses_1")
    store.message("ses_1", user(1), text("Go"))
    aborted = {"name": "MessageAbortedError", "data": {"message": "The operation was aborted."}}
    store.message("ses_1", assistant(2, error=aborted, **NOTHING), text("Partly"), tool("c1", status="running"))

    found = store.read()["ses_1"]

    assert [(m.role, m.event, m.is_error) for m in found.messages[1:]] == [
        ("assistant", None, False),
        ("system", "interrupt", False),
    ]
    assert found.messages[1].tool_calls[0].output is None


def test_a_call_that_ended_before_the_program_died_counts(store):
    """The step's own record is written before the message's."""
    store.session("ses_1")
    store.message("ses_1", assistant(1, **NOTHING), {"type": "step-finish", "tokens": tokens(7, 3), "cost": 0.5})

    (charge,) = store.read()["ses_1"].charges

    assert (charge.usage.input_tokens, charge.usd) == (7, Decimal("0.5"))


def test_answers_without_any_count_leave_the_cost_unknown(store):
    store.session("ses_1")
    store.message("ses_1", user(1), text("Go"))
    store.message("ses_1", {"role": "assistant", "time": {"created": START + 2}, "modelID": "m"}, text("Done"))

    assert listed(store.manager())["ses_1"].cost is None


# Damage


def test_rows_whose_data_is_damaged_cost_only_themselves(store):
    store.session("ses_1", revert="[", model="5")
    store.turn("ses_1", 1, "Typed")
    row = {"session_id": "ses_1", "time_created": START, "time_updated": START}
    for number, data in enumerate(['{"role": "us', "[]", "null", "", 5, b"\xff\xfe"]):
        store.add("message", id=f"bad_{number}", data=data, **row)
        store.add("part", id=f"bad_{number}", message_id="msg_0001", data=data, **row)

    assert spoken(store.read()["ses_1"]) == [("user", "Typed"), ("assistant", "Answer to Typed")]


def test_a_database_that_cannot_be_read_is_told_of_once_and_stops_nothing(store):
    store.files("ses_old")
    (store.root / "opencode.db").write_bytes(b"no database" * 100)
    manager = store.manager()

    assert set(listed(manager)) == {"ses_old"}
    assert [(one.path, one.reason) for one in manager.skipped] == [
        (str(store.root / "opencode.db"), "it is no SQLite database")
    ]


def test_damaged_pages_cost_the_parts_on_them(store):
    for number in range(60):
        store.session(f"ses_{number:02}", number * 10)
        store.turn(f"ses_{number:02}", number * 10 + 1, f"Prompt {number} " + "x" * 400)
    with closing(store.database()) as db:
        pages = [page for (page,) in db.execute("select pageno from dbstat where name = 'part' and pagetype = 'leaf'")]
    path = store.root / "opencode.db"
    content = bytearray(path.read_bytes())
    start = (pages[len(pages) // 2] - 1) * 4096
    content[start : start + 4096] = b"\xff" * 4096
    path.write_bytes(content)

    manager = store.manager()
    found = listed(manager, limit=0)

    assert len(found) == 60
    assert 40 < sum(one.title.startswith("Title") and one.turn_count == 1 for one in found.values()) < 60
    assert total(manager).call_count == 60


# Listing


@contextmanager
def traced(statements: list[str]):
    """Every statement that is run on a database of the agent."""

    @contextmanager
    def watched(path: str):
        with reading(path) as db:
            db.set_trace_callback(statements.append)
            yield db

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opencode, "reading", watched)
        yield


def fill(store: Store, sessions: int) -> None:
    """Many sessions at once."""
    with closing(store.database()) as db:
        db.execute("begin")
        for number in range(sessions):
            own = (f"ses_{number:04}", "p", None, "/w", f"Title {number}", "1.18.33", None, None, START, START, None)
            db.execute(f"insert into session values ({', '.join('?' * len(own))})", own)
            id = f"msg_f{number:04}"
            db.execute(
                "insert into message values (?, ?, ?, ?, ?)",
                (id, own[0], START, START, json.dumps(assistant(0, number))),
            )
            part = json.dumps(text(f"Answer {number}"))
            db.execute(
                "insert into part values (?, ?, ?, ?, ?, ?)", (f"prt_f{number:04}", id, own[0], START, START, part)
            )
        db.execute("commit")


def queries(statements: list[str]) -> list[str]:
    return [one for one in statements if one.startswith("select") and "sqlite_master" not in one]


@pytest.mark.parametrize("sessions", [3, 400])
def test_a_list_takes_one_query_for_each_table(store, sessions):
    fill(store, sessions)
    statements: list[str] = []
    with traced(statements), READER("opencode", Host(store.home, {})) as reader:
        refs = list(reader.refs())

    assert len(refs) == sessions
    assert [one.partition(" from ")[2].split()[0] for one in queries(statements)] == ["message", "part", "session"]


def test_a_warm_list_reads_no_messages(store):
    """Nothing changed: the database is not even opened. One session changed: only that one is read."""
    fill(store, 400)
    host = Host(store.home, {})
    assert len(listed(SessionManager(host), limit=0)) == 400

    statements: list[str] = []
    with traced(statements):
        assert len(listed(SessionManager(host), limit=0)) == 400
    assert statements == []

    store.turn("ses_0007", 50, "One more")
    with traced(statements):
        assert listed(SessionManager(host), limit=0)["ses_0007"].turn_count == 1
    read = [one for one in queries(statements) if "where session_id" in one]
    assert {one.split()[3] for one in read} == {"message", "part"}
    assert all("'ses_0007'" in one for one in read)
    assert len(queries(statements)) < 10


@pytest.mark.parametrize(
    "change",
    [
        'update part set data = \'{"type":"text","text":"Answer in full"}\', time_updated = time_updated + 1 where id = \'prt_f0001\'',
        "update message set time_updated = time_updated + 1 where id = 'msg_f0001'",
        "update session set title = 'Renamed' where id = 'ses_0001'",
        "update session set time_archived = 5 where id = 'ses_0001'",
        "update session set revert = '{\"messageID\":\"msg_f0001\"}' where id = 'ses_0001'",
        "delete from part where id = 'prt_f0001'",
    ],
    ids=["a part was completed", "a message was completed", "renamed", "archived", "reverted", "a part was removed"],
)
def test_a_change_in_any_table_is_told_by_the_rows(store, change):
    fill(store, 3)
    with READER("opencode", Host(store.home, {})) as reader:
        before = {ref.key: ref.fingerprint for ref in reader.refs()}
    with closing(store.database()) as db:
        db.execute(change)
    with READER("opencode", Host(store.home, {})) as reader:
        after = {ref.key: ref.fingerprint for ref in reader.refs()}

    assert {key for key in after if after[key] != before[key]} == {"ses_0001"}


def test_a_file_changed_in_place_is_noticed(store):
    store.files("ses_1")
    store.files("ses_2")
    with READER("opencode", Host(store.home, {})) as reader:
        before = {ref.key: ref.fingerprint for ref in reader.refs()}
        assert reader.state() is None
        store.write("storage/part/msg_ses_1_1/prt_0.json", text("Answer in full"))
        after = {ref.key: ref.fingerprint for ref in reader.refs()}

    assert {key for key in after if after[key] != before[key]} == {"ses_1"}


WRITER = """
import itertools, json, sqlite3, sys, time
path, start = sys.argv[1], int(sys.argv[2])
db = sqlite3.connect(path, isolation_level=None)
db.execute("pragma journal_mode = wal")
print("ready", flush=True)
for number in itertools.count():
    at = start + number
    info = {"role": "user", "time": {"created": at}}
    db.execute("begin")
    db.execute("insert into message values (?, 'ses_0001', ?, ?, ?)", (f"msg_w{number:06}", at, at, json.dumps(info)))
    part = json.dumps({"type": "text", "text": f"Prompt {number} " + "x" * 2000})
    db.execute("insert into part values (?, ?, 'ses_0001', ?, ?, ?)", (f"prt_w{number:06}", f"msg_w{number:06}", at, at, part))
    db.execute("update session set time_updated = ? where id = 'ses_0001'", (at,))
    db.execute("commit")
    db.execute("pragma wal_checkpoint(%s)" % ("truncate" if number % 5 == 0 else "passive"))
    time.sleep(0.005)
"""


def test_lists_and_reads_while_the_agent_writes(store):
    fill(store, 20)
    (store.root / "auth.json").write_text("{}")
    before = {path.name for path in store.root.iterdir()}
    command = [sys.executable, "-c", WRITER, store.root / "opencode.db", str(START + 10)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout.readline() == b"ready\n"
            grown = []
            until = time.monotonic() + 2
            while time.monotonic() < until:
                found = store.read()
                assert len(found) == 20
                typed = prompts(found["ses_0001"])
                assert [one.split()[1] for one in typed] == [str(number) for number in range(len(typed))]
                grown.append(len(typed))
        finally:
            writer.kill()
    contents = {path.name: path.read_bytes() for path in store.root.iterdir()}
    store.read()

    assert grown == sorted(grown)
    assert grown[-1] > grown[0]
    assert set(contents) == {*before, "opencode.db-wal", "opencode.db-shm"}
    assert {path.name: path.read_bytes() for path in store.root.iterdir()} == contents


# Commands


def test_commands(store):
    store.session("ses_1")
    store.turn("ses_1", 1, "Typed")
    store.session("--help", 5)
    store.turn("--help", 6, "Odd")
    with READER("opencode", Host(store.home, {})) as reader:
        found = store.read()

        assert reader.resume_command(found["ses_1"], None) == ["opencode", "--session", "ses_1"]
        assert reader.resume_command(found["ses_1"], "a/b") == ["opencode", "--model", "a/b", "--session", "ses_1"]
        assert reader.fork_command(found["ses_1"], None) == ["opencode", "--session", "ses_1", "--fork"]
        assert reader.resume_command(found["--help"], None) == ["opencode", "--session=--help"]


def test_a_version_with_a_database_cannot_go_on_with_files(store):
    store.files("ses_new")
    store.files("ses_old", where="project/w/storage")
    found = store.read()
    with READER("opencode", Host(store.home, {})) as reader:
        assert reader.resume_command(found["ses_new"], None) == ["opencode", "--session", "ses_new"]
        assert reader.fork_command(found["ses_new"], None) == ["opencode", "--session", "ses_new", "--fork"]
        assert reader.resume_command(found["ses_old"], None) == ["opencode", "--session", "ses_old"]
        assert reader.fork_command(found["ses_old"], None) is None

        store.database().close()
        assert reader.resume_command(found["ses_new"], None) is None
        assert reader.fork_command(found["ses_new"], None) is None


def test_raw_gives_the_agents_own_records(store):
    store.session("ses_1")
    store.turn("ses_1", 1, "Typed")
    store.files("ses_2")
    with READER("opencode", Host(store.home, {})) as reader:
        found = {ref.key: reader.raw(ref, ref.key) for ref in reader.refs()}

    assert found["ses_1"]["session"]["title"] == "Title of ses_1"
    assert [row["data"]["role"] for row in found["ses_1"]["message"]] == ["user", "assistant"]
    assert [row["data"]["text"] for row in found["ses_1"]["part"]] == ["Typed", "Answer to Typed"]
    assert [part["text"] for part in found["ses_2"]["parts"]] == ["Typed", "Answer to Typed"]
