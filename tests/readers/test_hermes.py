"""What is odd about hermes: lineage, compactions, costs by their status, profiles, files, its own index."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from amux.manager import SessionManager
from amux.model import Session
from amux.query import Query
from amux.readers._base import Host
from amux.readers.hermes import READER
from amux.readers.hermes.database import Database
from amux.search import words

START = 1794982000.0
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n\nThey asked about invoices."
INLINE = """
    create virtual table messages_fts using fts5(content);
    create virtual table messages_fts_trigram using fts5(content, tokenize='trigram');
    insert into messages_fts (rowid, content)
        select id, coalesce(content, '') || ' ' || coalesce(tool_name, '') || ' ' || coalesce(tool_calls, '') from messages;
    insert into messages_fts_trigram (rowid, content) select rowid, content from messages_fts;
"""
EXTERNAL = """
    create view messages_fts_src as select id, case when role = 'tool' then substr(content, 1, 8192) else content end content,
        tool_name, tool_calls from messages;
    create virtual table messages_fts using fts5(content, tool_name, tool_calls, content='messages_fts_src', content_rowid='id');
    insert into messages_fts (messages_fts) values ('rebuild');
    create view messages_fts_trigram_src as select id, content, tool_name from messages where role <> 'tool';
    create virtual table messages_fts_trigram using fts5(
        content, tool_name, content='messages_fts_trigram_src', content_rowid='id', tokenize='trigram');
    insert into messages_fts_trigram (messages_fts_trigram) values ('rebuild');
"""
SESSIONS_11 = """
    id text primary key, source text not null, user_id text, model text, model_config text, system_prompt text,
    parent_session_id text, started_at real not null, ended_at real, end_reason text, message_count integer default 0,
    tool_call_count integer default 0, input_tokens integer default 0, output_tokens integer default 0,
    cache_read_tokens integer default 0, cache_write_tokens integer default 0, reasoning_tokens integer default 0,
    billing_provider text, billing_base_url text, billing_mode text, estimated_cost_usd real, actual_cost_usd real,
    cost_status text, cost_source text, pricing_version text, title text, api_call_count integer default 0
"""
SESSIONS_22 = (
    SESSIONS_11 + ", cwd text, git_branch text, rewind_count integer not null default 0, archived integer default 0"
)
MESSAGES_11 = """
    id integer primary key autoincrement, session_id text not null, role text not null, content text, tool_call_id text,
    tool_calls text, tool_name text, timestamp real not null, token_count integer, finish_reason text, reasoning text,
    reasoning_content text, reasoning_details text, codex_reasoning_items text, codex_message_items text
"""
MESSAGES_22 = (
    MESSAGES_11
    + ", observed integer default 0, active integer not null default 1, compacted integer not null default 0"
)
USAGE_22 = """
    session_id text not null, model text not null, billing_provider text not null default '', billing_base_url text not null
    default '', billing_mode text not null default '', task text not null default '', api_call_count integer default 0,
    input_tokens integer default 0, output_tokens integer default 0, cache_read_tokens integer default 0,
    cache_write_tokens integer default 0, reasoning_tokens integer default 0, estimated_cost_usd real not null default 0,
    actual_cost_usd real not null default 0, cost_status text, cost_source text, first_seen real, last_seen real
"""


class State:
    """A state.db in the making; rows get the times they are written at, unless they say otherwise."""

    def __init__(self, home: Path, schema: int = 22) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(home / "state.db", isolation_level=None)
        new = schema >= 22
        self.db.execute(f"create table sessions ({SESSIONS_22 if new else SESSIONS_11})")
        self.db.execute(f"create table messages ({MESSAGES_22 if new else MESSAGES_11})")
        self.db.execute("create index idx_messages_session on messages (session_id, timestamp)")
        self.db.execute("create table state_meta (key text primary key, value text)")
        if new:
            self.db.execute(f"create table session_model_usage ({USAGE_22})")
        self.clock = START

    def insert(self, table: str, row: dict[str, Any]) -> None:
        marks = ", ".join("?" * len(row))
        self.db.execute(f"insert into {table} ({', '.join(row)}) values ({marks})", list(row.values()))

    def session(self, id: str, *said: Any, config: Any = None, **columns: Any) -> str:
        self.clock += 60
        row = {"id": id, "source": "cli", "model": "mock-model", "started_at": self.clock, **columns}
        self.insert("sessions", row | ({"model_config": json.dumps(config)} if config else {}))
        self.say(id, *said)
        return id

    def say(self, id: str, *said: Any, **columns: Any) -> None:
        """Messages: texts by turns of the user and the assistant, or rows."""
        for number, one in enumerate(said):
            self.clock += 1
            role = "assistant" if number % 2 else "user"
            row = one if isinstance(one, dict) else {"role": role, "content": one}
            self.insert("messages", {"session_id": id, "timestamp": self.clock, **row, **columns})

    def use(self, id: str, model: str, **columns: Any) -> None:
        self.insert("session_model_usage", {"session_id": id, "model": model, **columns})


@pytest.fixture
def home(tmp_path) -> Path:
    return tmp_path / ".hermes"


@pytest.fixture
def make() -> Iterator[Callable[..., State]]:
    """What makes databases, each closed when the test is over."""
    made: list[State] = []

    def one(home: Path, schema: int = 22) -> State:
        made.append(State(home, schema))
        return made[-1]

    yield one
    for state in made:
        state.db.close()


@pytest.fixture
def state(make, home) -> State:
    return make(home)


def manager(home: Path, **env: str) -> SessionManager:
    return SessionManager(Host(home.parent, env), cache=False)


def read(home: Path, id: str) -> Session:
    return manager(home).get("hermes", id)


def listed(home: Path, *, subagents: bool = False) -> dict[str, Any]:
    found = manager(home).list(Query(agents=("hermes",), subagents=subagents))
    return {one.session_id: one for one in found}


def prompts(session: Session) -> list[str]:
    return [message.content for message in session.messages if message.role == "user"]


def spoken(session: Session) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in session.messages]


def archived(*said: str) -> list[dict[str, Any]]:
    """Turns that a compaction in place has put away."""
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text, "active": 0, "compacted": 1} for n, text in enumerate(said)]


# Versions


def test_schema_11_is_read_by_the_columns_it_has(make, home):
    state = make(home, schema=11)
    call = {"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    state.session(
        "20260101_000000_aaaaaa",
        "List the files",
        {"role": "assistant", "content": None, "tool_calls": json.dumps([call]), "reasoning": "look first"},
        {"role": "tool", "content": '{"output": "a\\nb", "exit_code": 2, "error": null}', "tool_call_id": "call_1"},
        system_prompt="You are Hermes.\nCurrent working directory: /home/dev/shop\nMore.",
    )

    session = read(home, "20260101_000000_aaaaaa")
    assert session.cwd == "/home/dev/shop"
    assert session.messages[1].thinking == "look first"
    assert session.messages[1].tool_calls[0].input == {"command": "ls"}
    assert session.messages[1].tool_calls[0].output == "a\nb"
    assert session.messages[2].tool_result.tool_name == "terminal"
    assert session.messages[2].is_error


def test_a_system_prompt_kept_by_its_hash_tells_the_directory(state, home):
    state.db.execute("alter table sessions add column system_prompt_hash text")
    state.db.execute("create table system_prompts (hash text primary key, prompt text)")
    state.insert("system_prompts", {"hash": "h", "prompt": "Current working directory: /srv/app"})
    state.session("a", "Hi", "Hello", system_prompt_hash="h")

    assert read(home, "a").cwd == "/srv/app"


def test_rows_of_later_versions_that_nobody_saw_are_left_out(state, home):
    state.db.execute("alter table messages add column display_kind text")
    state.db.execute("alter table messages add column _compressed_summary integer")
    state.session(
        "a",
        {"role": "session_meta", "content": "[tools]"},
        {"role": "user", "content": "scaffolding", "display_kind": "hidden"},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "What was before", "_compressed_summary": 1},
        {"role": "user", "content": "Said in the group", "observed": 1},
    )

    session = read(home, "a")
    assert prompts(session) == ["Hi"]
    assert [message.event for message in session.messages] == [None, "compaction", "observed"]


# Lineage


def test_a_branch_of_0_13_is_told_by_what_it_copied(make, home):
    state = make(home, schema=11)
    state.session("parent", "Explain", "Explained", ended_at=None)
    state.session("branch", "Explain", "Explained", "And now?", "This", parent_session_id="parent")
    state.session("agent", "Count the files", "Three", parent_session_id="parent")

    found = listed(home, subagents=True)
    assert (found["branch"].kind, found["branch"].forked_from) == ("main", "parent")
    assert (found["agent"].kind, found["agent"].parent_id) == ("subagent", "parent")
    assert [message.inherited for message in read(home, "branch").messages] == [True, True, False, False]


def test_a_branch_of_0_13_stays_one_after_the_upgrade_called_it_a_subagent(state, home):
    state.session("parent", "Explain", "Explained")
    marked = {"_delegate_from": "parent"}
    state.session("branch", "Explain", "Explained", "More", parent_session_id="parent", config=marked)

    assert listed(home)["branch"].forked_from == "parent"


def test_what_a_branch_typed_again_is_not_inherited(state, home):
    state.session("parent", "continue", "Going on")
    branched = {"_branched_from": "parent"}
    state.session("branch", "continue", "Going on", "continue", "On", parent_session_id="parent", config=branched)
    state.say("parent", "continue", "Elsewhere")

    assert [message.inherited for message in read(home, "branch").messages] == [True, True, False, False]


@pytest.mark.parametrize(("undone_before", "inherited"), [(True, [True, True, False, False]), (False, [True] * 4)])
def test_what_the_parent_undid_is_inherited_if_the_branch_copied_it(state, home, undone_before, inherited):
    """A copy has the time of the branch; the same words typed into it later are its own."""
    state.session("parent", "Explain", "Explained", "Undone", "Answer")
    state.db.execute("update messages set active = 0 where content in ('Undone', 'Answer')")
    state.session("branch", parent_session_id="parent", config={"_branched_from": "parent"})
    copied = {"timestamp": state.clock}
    state.say("branch", "Explain", "Explained", **copied)
    state.say("branch", "Undone", "Answer", **({} if undone_before else copied))

    assert [message.inherited for message in read(home, "branch").messages] == inherited


def test_a_branch_whose_parent_was_deleted_knows_whose_it_was(state, home):
    state.session("branch", config={"_branched_from": "gone"})
    state.say("branch", "Explain", "Explained", timestamp=state.clock)
    state.say("branch", "New", "Answer")

    session = read(home, "branch")
    assert session.forked_from == "gone"
    assert [message.inherited for message in session.messages] == [True, True, False, False]


def test_an_orphan_mark_on_a_root_means_nothing(state, home):
    state.session("root", "Hi", "Hello", config={"_delegate_from": "__orphaned__"})
    state.session("agent", "Count", "Three", source="subagent", config={"_delegate_from": "gone"})

    assert set(listed(home)) == {"root"}
    assert listed(home, subagents=True)["agent"].parent_id == "gone"


@pytest.mark.parametrize("config", [None, {"_reset_from": "before"}])
def test_what_follows_a_reset_is_a_session_of_its_own(state, home, config):
    state.session("before", "Hi", "Hello", end_reason="session_reset", ended_at=START + 70, source="telegram")
    state.session("after", "Again", "Yes", parent_session_id="before", source="telegram", config=config)

    after = listed(home)["after"]
    assert (after.kind, after.forked_from, after.parent_id) == ("main", None, None)


def test_a_rotated_conversation_is_one_session(state, home):
    state.session(
        "one", "Q1", "A1", "Q2", "A2", end_reason="compression", ended_at=START + 65, title="Invoices", cwd="/w"
    )
    copied = ("Q1", SUMMARY, "Q2", "A2")
    state.session("two", *copied, "Q3", "A3", parent_session_id="one", end_reason="compression", ended_at=START + 130)
    state.session("three", parent_session_id="two", title="Invoices #3")
    state.say("three", {"role": "assistant", "content": SUMMARY})
    state.say("three", "Q3", "A3", "Q4")
    state.session("branch", SUMMARY, "Q3", "A3", parent_session_id="three", config={"_branched_from": "three"})
    state.session("early", "Q1", "A1", "Side", parent_session_id="one", config={"_branched_from": "one"})
    state.session(
        "agent", "Count", "Three", parent_session_id="two", source="subagent", config={"_delegate_from": "two"}
    )

    found = listed(home, subagents=True)
    assert set(found) == {"three", "branch", "early", "agent"}
    assert found["three"].title == "Invoices #3"
    assert found["branch"].forked_from == found["early"].forked_from == found["agent"].parent_id == "three"
    assert {one.cwd for one in found.values()} == {"/w"}
    assert prompts(read(home, "three")) == ["Q1", "Q2", "Q3", "Q4"]
    assert [m.event for m in read(home, "three").messages if m.role == "system"] == ["compaction", "compaction"]


def test_a_subagent_that_was_compressed_stays_one_session(state, home):
    state.session("main", "Go", "Done")
    marked = {"source": "subagent", "config": {"_delegate_from": "main"}}
    state.session(
        "agent", "Count", "One", parent_session_id="main", end_reason="compression", ended_at=START + 130, **marked
    )
    state.session("agent2", "Count", SUMMARY, "More", parent_session_id="agent", **marked)

    found = listed(home, subagents=True)
    assert set(found) == {"main", "agent2"}
    assert found["agent2"].parent_id == "main"


def test_a_subagent_of_0_13_is_no_continuation_of_its_compressed_parent(make, home):
    state = make(home, schema=11)
    state.session("main", "Go", "Done", end_reason="compression", ended_at=START + 3000)
    state.session("agent", "Count", "Three", parent_session_id="main")

    assert listed(home, subagents=True)["agent"].parent_id == "main"


def test_parents_in_a_circle_end_somewhere(state, home):
    for id, parent in (("a", "b"), ("b", "a"), ("c", "c")):
        state.session(id, id, "Yes", parent_session_id=parent, end_reason="compression", ended_at=START)

    found = [message for id in listed(home, subagents=True) for message in prompts(read(home, id))]
    assert sorted(found) == ["a", "b", "c"]


def test_messages_whose_session_is_missing_are_listed(state, home):
    state.say("lost", "Where am I", "Nowhere")

    assert listed(home)["lost"].title == "Where am I"


# Compactions and undone turns


def test_a_second_compaction_in_place_repeats_nothing(state, home):
    state.session("a", *archived("Q1", "A1", "continue", "A2", "continue", "A3"))
    state.say("a", *archived("Q1", SUMMARY, "continue", "A3", "continue", "A4"))
    state.say("a", SUMMARY + " More.", "continue", "A4", "continue", "A5")
    state.db.execute("update messages set role = case role when 'user' then 'assistant' else 'user' end where id > 12")

    session = read(home, "a")
    assert prompts(session) == ["Q1", "continue", "continue", "continue", "continue"]
    assert [m.content for m in session.messages if m.role == "assistant"] == ["A1", "A2", "A3", "A4", "A5"]
    assert session.turn_count == 5


def test_copies_without_a_summary_are_shown_once(state, home):
    state.session("a", *archived("Q1", "A1", "Q2", "A2"))
    state.say("a", "Q1", "A1", "Q2", "A2", "Q3")

    assert prompts(read(home, "a")) == ["Q1", "Q2", "Q3"]


@pytest.mark.parametrize(
    "merged",
    [
        SUMMARY + "\n\n--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---\n\nQ2",
        "[PRIOR CONTEXT — for reference only; not a new message]\nQ2\n\n[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n\n"
        + SUMMARY
        + "\n\n--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---",
    ],
    ids=["0.13", "0.19"],
)
def test_a_summary_in_the_same_row_as_a_kept_prompt_is_taken_apart(state, home, merged):
    state.session("a", "Q1", "A1", "Q2", "A2", end_reason="compression", ended_at=START + 65)
    state.session("b", "Q1", "A1", merged, "A2", "Q3", "A3", parent_session_id="a")

    said = [(m.event or m.role, m.content) for m in read(home, "b").messages]
    assert said == [
        *(("user", "Q1"), ("assistant", "A1"), ("user", "Q2"), ("assistant", "A2")),
        *(("compaction", SUMMARY), ("user", "Q3"), ("assistant", "A3")),
    ]


def test_a_prompt_written_again_before_a_lone_summary_is_shown_once(state, home):
    state.session("a", "Q1", "A1", "Q2", "A2", end_reason="compression", ended_at=START + 65)
    rest = {"role": "assistant", "content": "A2"}
    state.session("b", "Q2", SUMMARY, rest, "Q3", parent_session_id="a")

    assert prompts(read(home, "b")) == ["Q1", "Q2"]


def test_what_was_undone_after_a_compaction_is_gone_before_it_too(state, home):
    state.session("a", *archived("Q1", "A1", "Q2", "A2"))
    state.say("a", "Q1", SUMMARY)
    state.say("a", "Q2", "A2", active=0)
    state.say("a", "Q2 better", "A2 better")

    assert prompts(read(home, "a")) == ["Q1", "Q2 better"]


def test_old_rows_without_a_flag_are_live(make, home):
    state = make(home, schema=11)
    state.db.execute("alter table messages add column active integer")
    state.session("a", "Hi", "Hello")

    assert prompts(read(home, "a")) == ["Hi"]


# What was typed

SEEN = """[The user sent an image~ Here's what I can see:
A [red] dot]
[If you need a closer look, use vision_analyze with image_url: /p/dot.png ~]"""
ONE_SKILL = """[IMPORTANT: The user has invoked the "Deep Dive" skill, indicating they want you to follow its instructions. The full \
skill content is loaded below.]

# Deep

The user has provided the following instruction alongside the skill invocation: the cart

[Runtime note: x]"""
TWO_SKILLS = """[IMPORTANT: The user has invoked the "/a /b" stacked skill bundle, loading 2 skills together.]

Skills loaded: a, b

User instruction: go

[Loaded as part of the x]"""
CRON = '[IMPORTANT: You are running as a scheduled cron job. Nothing new: respond with "[SILENT]" and nothing more.]'


@pytest.mark.parametrize(
    ("stored", "typed", "attached"),
    [
        ("Look\n\n[Image attached at: /p/dot.png]\n[screenshot]", "Look", [("image", "/p/dot.png")]),
        (SEEN + "\n\nLook", "Look", [("image", "/p/dot.png")]),
        ("[The user sent a voice message: /p/v.ogg (duration: 0:03)]\n\nWell", "Well", [("audio", "/p/v.ogg")]),
        ("[The user sent a document: 'a b.pdf'. It is saved at: /p.]\n\nRead it", "Read it", [("file", "a b.pdf")]),
        ("Fix\n\n--- Attached Context ---\n\n📄 @file:a.py (12 tokens)\n```python\nx\n```", "Fix", [("file", "a.py")]),
        ("[System note: The session was reset.]\n\nHello", "Hello", []),
        ("<memory-context>old</memory-context>\nHello", "Hello", []),
        (ONE_SKILL, "/deep-dive the cart", [("skill", "Deep Dive")]),
        (TWO_SKILLS, "/a /b go", [("skill", "/a /b")]),
        (CRON + "\n\nReport the news", "Report the news", []),
        ("[bracketed] text of my own", "[bracketed] text of my own", []),
    ],
)
def test_a_prompt_is_what_was_typed(state, home, stored, typed, attached):
    state.session("a", stored, "Done")

    message = read(home, "a").messages[0]
    assert (message.role, message.content) == ("user", typed)
    assert [(one.kind, one.name) for one in message.attachments] == attached


def test_content_of_several_parts_is_decoded(state, home):
    parts = [
        {"type": "text", "text": "Look\n\n[Image attached at: /p/dot.png]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    state.session("a", "\0json:" + json.dumps(parts), "\0json:[torn")

    first, second = read(home, "a").messages
    assert first.content == "Look"
    assert [(one.kind, one.media_type, one.name) for one in first.attachments] == [("image", "image/png", "/p/dot.png")]
    assert second.content == "[torn"


def test_what_hermes_says_in_the_users_name_is_no_prompt(state, home):
    state.session("a", "Hi", "Hello")
    state.say("a", "[ASYNC DELEGATION COMPLETE — deleg_1]\nThree files", "Good")
    state.say("a", "[IMPORTANT: Background process p1 completed normally (exit code 0).]", "Fine")
    state.say("a", "Review the conversation above and update the skill library now", "Curated")
    state.say("a", "[Your active task list was preserved across context compression]\n- [ ] 1. x")
    state.say("a", "Bye", {"role": "assistant", "content": "Operation interrupted."})

    session = read(home, "a")
    assert prompts(session) == ["Hi", "Bye"]
    assert "Curated" not in [message.content for message in session.messages]
    events = [message.event for message in session.messages if message.event]
    assert events == ["notification", "notification", "interrupt"]


# Usage


def tokens(count: int, **more: Any) -> dict[str, Any]:
    return {"input_tokens": count, "output_tokens": count // 10, "api_call_count": 1, **more}


@pytest.mark.parametrize(
    ("status", "estimated", "actual", "usd"),
    [
        ("unknown", 0.0, None, None),
        ("estimated", 0.25, None, Decimal("0.25")),
        ("included", 0.0, None, Decimal(0)),
        ("actual", 0.25, 0.5, Decimal("0.5")),
        (None, 0.0, None, None),
    ],
)
def test_money_is_what_the_status_says(state, home, status, estimated, actual, usd):
    paid = {"cost_status": status, "estimated_cost_usd": estimated, "actual_cost_usd": actual}
    state.session("a", "Hi", "Hello", **tokens(100), **paid)

    (charge,) = charges(home)
    assert charge.usd == usd
    assert charge.aggregate


def charges(home: Path) -> list[Any]:
    with READER("hermes", Host(home.parent, {})) as reader:
        return [charge for ref in reader.refs() for session in reader.read(ref) for charge in session.charges]


def test_each_model_and_each_task_is_charged_once(state, home):
    state.session("a", "Hi", "Hello", **tokens(300, api_call_count=3))
    state.use("a", "mock-model", **tokens(100), last_seen=START + 5)
    state.use("a", "other-model", **tokens(150))
    state.use("a", "unknown", task="vision", **tokens(7))

    found = {(charge.model, charge.usage.input_tokens): charge.calls for charge in charges(home)}
    # 50 tokens of one call are in no row by model: the messaging gateway sets the totals.
    assert found == {("mock-model", 100): 1, ("other-model", 150): 1, (None, 7): 1, ("mock-model", 50): 1}
    assert manager(home).total_cost().input_tokens == 307


def test_a_provider_that_told_no_tokens_is_not_free(state, home):
    state.session("a", "Hi", "Hello", api_call_count=2)

    (charge,) = charges(home)
    assert (charge.calls, charge.usage.input_tokens) == (2, None)
    assert listed(home)["a"].cost.total_usd is None


# Profiles and files


def test_profiles_are_homes_of_their_own(make, state, home):
    state.session("a", "Hi", "Hello")
    make(home / "profiles" / "coder").session("b", "Code", "Coded")
    make(home / "profiles" / "Not A Profile").session("c", "No", "No")

    assert set(listed(home)) == {"a", "b"}


def test_two_sessions_of_one_id_are_two(make, state, home):
    state.session("a", "Hi", "Hello")
    make(home / "profiles" / "coder").session("a", "Code", "Coded", started_at=START + 7)

    found = manager(home).list(Query(agents=("hermes",)))
    assert sorted(one.title for one in found) == ["Code", "Hi"]


def test_a_session_copied_with_its_profile_is_one(state, home):
    state.session("a", "Hi", "Hello", **tokens(100))
    state.db.close()
    copy = home / "profiles" / "coder"
    copy.mkdir(parents=True)
    (copy / "state.db").write_bytes((home / "state.db").read_bytes())
    with sqlite3.connect(copy / "state.db") as db:
        db.execute(
            "insert into messages (session_id, role, content, timestamp) values ('a', 'user', 'More', ?)", [START]
        )
    db.close()

    assert prompts(read(home, "a")) == ["Hi", "More"]
    assert manager(home).total_cost().input_tokens == 100


def test_files_count_where_the_database_does_not_know_them(state, home):
    state.session("known", "Hi", "Hello")
    folder = home / "sessions"
    folder.mkdir()
    said = [{"role": "user", "content": "Old"}, {"role": "assistant", "content": "Answer", "reasoning": "hm"}]
    snapshot = {"session_id": "old", "model": "m", "platform": "cli", "session_start": "2026-01-02T03:04:05", "messages": said,
                "system_prompt": "x\nCurrent working directory: /w"}  # fmt: skip
    (folder / "session_known.json").write_text(json.dumps(snapshot))
    (folder / "session_old.json").write_text(json.dumps(snapshot))
    chat = [{"role": "session_meta", "tools": [], "model": "g", "platform": "telegram"}, *said]
    (folder / "20260101_000000_abcdef01.jsonl").write_text("\n".join(map(json.dumps, chat)) + '\n{"role": "us')
    (folder / "sessions.json").write_text("{}")
    (folder / "request_dump_old_1.json").write_text(json.dumps(snapshot))

    found = listed(home)
    assert set(found) == {"known", "old", "20260101_000000_abcdef01"}
    assert (found["old"].cwd, found["old"].model, found["old"].cost) == ("/w", "m", None)
    assert found["old"].created_at.isoformat() == "2026-01-02T03:04:05+00:00"
    assert found["20260101_000000_abcdef01"].channel == "telegram"
    assert read(home, "old").messages[1].thinking == "hm"


def test_a_torn_file_is_read_up_to_the_tear(state, home):
    said = [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "Two"},
        {"role": "user", "content": "Three"},
    ]
    whole = json.dumps(
        {"session_id": "old", "model": "m", "system_prompt": '"messages": [{}]', "messages": said}, indent=2
    )
    (home / "sessions").mkdir()
    (home / "sessions" / "session_old.json").write_text(whole[: whole.index("Three")])
    (home / "sessions" / "session_nothing.json").write_text(whole[:30])
    asked = manager(home)

    assert spoken(asked.get("hermes", "old")) == [("user", "One"), ("assistant", "Two")]
    assert asked.list(Query(agents=("hermes",)))[0].model == "m"
    assert [Path(one.path).name for one in asked.skipped] == ["session_nothing.json"]


def test_a_time_without_a_zone_is_local(state, home, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        (home / "sessions").mkdir()
        said = [{"role": "user", "content": "Old"}]
        stored = {"session_id": "old", "session_start": "2026-01-02T03:04:05", "messages": said}
        (home / "sessions" / "session_old.json").write_text(json.dumps(stored))

        assert read(home, "old").created_at.isoformat() == "2026-01-01T18:04:05+00:00"
    finally:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()


def test_memory_is_found_and_shown_but_not_listed(state, home):
    state.session("a", "Hi", "Hello")
    (home / "memories").mkdir()
    (home / "memories" / "MEMORY.md").write_text("The shop uses marmalade.\n§\nTests run with make.\nAlways §1.\n")

    assert set(listed(home, subagents=True)) == {"a"}
    shown = read(home, "memory/MEMORY.md")
    assert (shown.kind, shown.title, shown.cost) == ("memory", "MEMORY.md", None)
    assert spoken(shown) == [("system", "The shop uses marmalade."), ("system", "Tests run with make.\nAlways §1.")]
    with READER("hermes", Host(home.parent, {})) as reader:
        assert reader.search(words("marmalade")) is None  # without an index the catalog answers
    state.db.executescript(INLINE)
    with READER("hermes", Host(home.parent, {})) as reader:
        assert set(reader.search(words("marmalade")) or ()) == {"memory/MEMORY.md"}


@pytest.mark.parametrize(
    ("env", "platform", "root"),
    [
        ({}, "linux", "/home/dev/.hermes"),
        ({"HERMES_HOME": "/opt/data"}, "linux", "/opt/data"),
        ({"HERMES_HOME": "/opt/data/profiles/coder"}, "linux", "/opt/data"),
        ({"HERMES_HOME": "~/.hermes/profiles/coder"}, "darwin", "/home/dev/.hermes"),
        ({"LOCALAPPDATA": "/home/dev/AppData/Local"}, "win32", "/home/dev/AppData/Local/hermes"),
        ({}, "win32", "/home/dev/AppData/Local/hermes"),
    ],
)
def test_the_root_is_where_profiles_lie(env, platform, root):
    assert [str(one) for one in READER("hermes", Host(Path("/home/dev"), env, platform)).roots()] == [root]


def test_resuming_names_the_profile_where_hermes_would_use_another(make, state, home):
    state.session("-a", "Hi", "Hello")
    make(home / "profiles" / "coder").session("b", "Code", "Coded")
    found = listed(home)

    reader = READER("hermes", Host(home.parent, {}))
    assert reader.resume_command(found["-a"], None) == ["hermes", "--resume=-a"]
    assert reader.resume_command(found["-a"], "m") == ["hermes", "chat", "--model=m", "--resume=-a"]
    assert reader.resume_command(found["b"], None) == ["hermes", "-p", "coder", "--resume=b"]
    (home / "active_profile").write_text("coder\n")
    assert reader.resume_command(found["-a"], None) == ["hermes", "-p", "default", "--resume=-a"]
    assert reader.fork_command(found["b"], None) is None


# Keeping up


def refs(home: Path) -> dict[str, str]:
    with READER("hermes", Host(home.parent, {})) as reader:
        return {ref.key: ref.fingerprint for ref in reader.refs()}


@pytest.mark.parametrize(
    "change",
    [
        "update sessions set title = 'New' where id = 'a'",
        "update sessions set rewind_count = 1 where id = 'a'",
        "insert into messages (session_id, role, content, timestamp) values ('a', 'user', 'More', 1)",
        "insert into session_model_usage (session_id, model, task) values ('a', 'm', 'vision')",
    ],
)
def test_a_change_touches_only_its_session(state, home, change):
    state.session("a", "Hi", "Hello")
    state.session("b", "Hi", "Hello")
    before = refs(home)
    state.db.execute(change)
    after = refs(home)

    assert after["a"] != before["a"]
    assert after["b"] == before["b"]


def test_listing_asks_each_table_once_however_many_sessions_there_are(state, home, monkeypatch):
    def asked() -> list[str]:
        seen: list[str] = []
        told = Database.__init__

        def listening(self: Database, path: str, db: sqlite3.Connection) -> None:
            db.set_trace_callback(seen.append)
            told(self, path, db)

        with monkeypatch.context() as patched:
            patched.setattr(Database, "__init__", listening)
            refs(home)
        return seen

    state.session("s0", "Hi", "Hello")
    few = asked()
    for number in range(1, 50):
        state.session(f"s{number}", "Hi", "Hello", parent_session_id=f"s{number - 1}", config={"_branched_from": "s0"})

    assert asked() == few
    assert not [query for query in few if "content" in query]


def test_what_a_session_takes_from_others_follows_them(state, home):
    """A fork is told by its parent's messages, has its parent's directory, and its parent may get another id."""
    host = Host(home.parent, {})

    def agrees() -> dict[str, Any]:
        kept, fresh = (SessionManager(host, cache=cache).list(Query(agents=("hermes",))) for cache in (True, False))
        assert kept == fresh
        return {one.session_id: one for one in kept}

    state.session("parent", "Explain", cwd="/w")
    state.session("child", "Explain", "Explained", "More", parent_session_id="parent")
    assert set(agrees()) == {"parent"}
    state.say("parent", {"role": "assistant", "content": "Explained", "timestamp": START})
    assert agrees()["child"].forked_from == "parent"
    state.db.execute("update sessions set cwd = '/elsewhere' where id = 'parent'")
    assert agrees()["child"].cwd == "/elsewhere"
    state.db.execute("update sessions set end_reason = 'compression', ended_at = ? where id = 'parent'", [state.clock])
    state.session("newest", "Explain", SUMMARY, parent_session_id="parent")
    assert agrees()["child"].forked_from == "newest"
    state.db.execute("delete from sessions where id in ('parent', 'newest')")
    state.db.execute("delete from messages where session_id in ('parent', 'newest')")
    assert agrees()["child"].forked_from is None


def test_a_database_is_opened_only_when_it_changed(state, home):
    reader = READER("hermes", Host(home.parent, {}))
    state.db.execute("pragma journal_mode = wal")
    state.session("a", "Hi", "Hello")
    before = reader.state()

    assert reader.state() == before
    state.say("a", "More")
    assert reader.state() != before
    assert not reader.stores


def test_a_damaged_database_does_not_hide_the_others(state, home):
    state.session("a", "Hi", "Hello")
    broken = home / "profiles" / "broken"
    broken.mkdir(parents=True)
    (broken / "state.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    asked = manager(home)

    assert [one.session_id for one in asked.list(Query(agents=("hermes",)))] == ["a"]
    assert [Path(one.path).parent.name for one in asked.skipped] == ["broken"]


def test_a_damaged_page_costs_what_stands_on_it(state, home):
    said = [f"number {number} {'x' * 2500}" for number in range(40)]
    state.session("a", *said)
    state.db.close()
    stored = (home / "state.db").read_bytes()
    page = stored.index(b"number 20 ") // 4096 * 4096
    (home / "state.db").write_bytes(stored[:page] + b"\xff" * 4096 + stored[page + 4096 :])

    with READER("hermes", Host(home.parent, {})) as reader:
        (session,) = [session for ref in reader.refs() if not ref.reason for session in reader.read(ref)]
    assert [message.content for message in session.messages] == said[:20] + said[21:]


STRANGE = (
    *("source", "model", "model_config", "parent_session_id", "ended_at", "end_reason", "title", "cwd", "input_tokens"),
    *("estimated_cost_usd", "cost_status", "archived"),
)
STRANGE_MESSAGE = ("content", "tool_calls", "tool_call_id", "reasoning", "active", "timestamp")


@pytest.mark.parametrize("value", ["x", b"\xff\x00", -1, 1e300, None, "[1, 2]", '{"a": []}'])
def test_values_of_any_kind_are_endured(state, home, value):
    state.db.executescript("drop table sessions; drop table messages")
    state.db.execute(f"create table sessions (id, {', '.join(STRANGE)})")
    state.db.execute(f"create table messages (id integer primary key, session_id, role, {', '.join(STRANGE_MESSAGE)})")
    state.insert("sessions", {"id": "a", **dict.fromkeys(STRANGE, value)})
    for role in ("assistant", "user", "tool", "system", value):
        state.insert("messages", {"session_id": "a", "role": role, **dict.fromkeys(STRANGE_MESSAGE, value)})
    state.insert("messages", {"session_id": "a", "role": "user", "content": "Still here"})

    with READER("hermes", Host(home.parent, {})) as reader:
        (ref,) = [ref for ref in reader.refs() if ref.key == "a"]
        (session,) = reader.read(ref)
        assert reader.raw(ref, "a")["messages"]
    assert "Still here" in prompts(session)


# Its own index


@pytest.fixture(params=[INLINE, EXTERNAL], ids=["inline", "external"])
def indexed(request, state, home) -> Path:
    call = {"id": "c", "function": {"name": "write_file", "arguments": json.dumps({"text": "Köln 大阪城公園"})}}
    state.session("words", 'Füge the "Anführungszeichen" hinzu', "rate-limiting is in place")
    state.session("title", "Nothing here", "Indeed", title="About marmalade")
    state.session(
        "tools",
        "Go",
        {"role": "assistant", "content": "", "tool_calls": json.dumps([call])},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps({"output": "first\nzebra 東京", "exit_code": 0})},
    )
    state.session("thinking", "Go", {"role": "assistant", "content": "Yes", "reasoning": "the quokka plan"})
    state.session("cjk", "大别山项目の検索", "好")
    state.session("undone", "Go", "Yes")
    state.say("undone", "forgotten", "Yes", active=0)
    state.session("one", "Q1 pelican", "A1", end_reason="compression", ended_at=state.clock)
    state.session("two", "Q1 pelican", SUMMARY, "Q2", "A2", parent_session_id="one")
    state.session("agent", "Count pelicans", "Two", source="subagent", config={"_delegate_from": "two"})
    state.db.executescript(request.param)
    return home


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("marmalade", {"title"}),
        ("anfuhrungs", {"words"}),
        ('"rate limiting"', {"words"}),
        ('"limiting rate"', set()),
        ("rate-lim", {"words"}),
        ("zebra", {"tools"}),
        ("köln", {"tools"}),
        ("quokka", {"thinking"}),
        ("大别山项目", {"cjk"}),
        ("项目", {"cjk"}),
        ("大阪城", {"tools"}),
        ("東京", {"tools"}),
        ("forgotten", set()),
        ("pelican", {"two", "agent"}),
        ("pelican -count", {"two"}),
        ("marmalade OR quokka", {"title", "thinking"}),
        ("quokka plan", {"thinking"}),
        ("quokka marmalade", set()),
        ("arguments", set()),
        ('NEAR( AND "', set()),
        ("content:quokka", set()),
        ("*", set()),
    ],
)
def test_its_index_finds_what_reading_finds(indexed, asked, found):
    with READER("hermes", Host(indexed.parent, {})) as reader:
        assert set(reader.search(words(asked)) or ()) == found
    hits = manager(indexed).search(asked, Query(agents=("hermes",), sort="relevance", limit=50))
    assert found <= {one.session_id for one in hits}


ASKED = ("marmalade", "quokka", "checkout", "final answer", "terminal", "zebra", "検索", "大别山项目", "invoice -redis")


def test_its_index_and_the_catalog_agree_on_recorded_sessions(corpus, tmp_path):
    query = Query(agents=("hermes",), sort="relevance")
    for path in corpus.scenarios("hermes"):
        case = corpus.open_case(path, tmp_path / path.name)
        case.listed()
        for asked in map(words, ASKED):
            matched = {one.summary.session_id for one in case.manager.catalog.matches(asked, query, None)[0]}
            with READER("hermes", Host(case.home, case.env)) as reader:
                assert set(reader.search(asked) or ()) == matched, asked


@pytest.mark.parametrize(
    "broken",
    [
        "drop table messages_fts",
        "insert into state_meta values ('fts_stale', '1')",
        "delete from messages_fts_data",
    ],
)
def test_where_its_index_cannot_answer_the_catalog_does(state, home, broken):
    state.session("a", "Hi marmalade", "Hello")
    state.db.executescript(INLINE)
    state.db.execute(broken)

    with READER("hermes", Host(home.parent, {})) as reader:
        assert reader.search(words("marmalade")) is None
    hits = manager(home).search("marmalade", Query(agents=("hermes",), sort="relevance", limit=50))
    assert [one.session_id for one in hits] == ["a"]


def test_nothing_is_left_beside_the_database(state, home):
    state.db.execute("pragma journal_mode = wal")
    state.session("a", "Hi", "Hello")
    before = {path.name: path.stat().st_mtime_ns for path in home.iterdir()}
    listed(home)
    read(home, "a")

    assert {path.name: path.stat().st_mtime_ns for path in home.iterdir()} == before
    assert "state.db-wal" in before


@pytest.mark.parametrize(
    ("columns", "config"),
    [({"end_reason": "session_reset", "ended_at": START + 70}, None), ({}, {"_reset_from": "before"})],
    ids=["ended by a reset", "marked"],
)
def test_a_greeting_said_again_after_a_reset_makes_no_fork(state, home, columns, config):
    state.session("before", "Hi", "Hello", source="telegram", **columns)
    state.session("after", "Hi", "Hello", "Next", parent_session_id="before", source="telegram", config=config)

    after = read(home, "after")
    assert (after.kind, after.forked_from, after.parent_id) == ("main", None, None)
    assert not any(message.inherited for message in after.messages)
