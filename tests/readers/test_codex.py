"""What is odd about codex: four eras, forks by copy and by reference, running totals that lie."""

import json
import os
import sqlite3
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from amux.errors import UnreadableSession
from amux.manager import SessionManager
from amux.model import Session
from amux.query import Query
from amux.readers._base import Host
from amux.readers.codex import READER

GRANDPARENT, PARENT, CHILD, SIBLING = (f"01a1ed5{n}-0000-7000-8000-000000000000" for n in range(4))
OLD = "dd7deb12-7a78-4f01-976a-de8eac70e6cc"
ROLLOUT = "01a1ed5a-0000-7000-8000-000000000000"


def turn_of(thread: str, number: int) -> str:
    """The id of a turn, made after its thread and before the next one."""
    return f"{thread[:9]}{number:04d}{thread[13:]}"


def item(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": {"type": kind, **fields}}


def event(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, **fields}}


def meta(id: str, **fields: Any) -> dict[str, Any]:
    payload = {"id": id, "timestamp": "2026-01-02T03:00:00Z", "cwd": "/w", "cli_version": "0.98.0", **fields}
    return {"type": "session_meta", "payload": payload}


def said(role: str, *texts: str) -> dict[str, Any]:
    return item("message", role=role, content=[{"type": "input_text", "text": text} for text in texts])


def prompt(text: str) -> list[dict[str, Any]]:
    return [said("user", text), event("user_message", message=text, images=[])]


def context(model: str = "gpt-5", **fields: Any) -> dict[str, Any]:
    return {"type": "turn_context", "payload": {"cwd": "/w", "model": model, **fields}}


def tokens(input: int, output: int) -> dict[str, int]:
    return {"input_tokens": input, "output_tokens": output, "total_tokens": input + output}


def count(total: tuple[int, int], last: tuple[int, int]) -> dict[str, Any]:
    return event("token_count", info={"total_token_usage": tokens(*total), "last_token_usage": tokens(*last)})


def used(response: str, input: int, thread: str) -> dict[str, Any]:
    return {
        "type": "token_usage_record",
        "payload": {"thread_id": thread, "response_id": response, "usage": tokens(input, 1)},
    }


def call(id: str, **arguments: Any) -> dict[str, Any]:
    return item("function_call", name="shell", arguments=json.dumps(arguments), call_id=id)


def output(id: str, text: Any) -> dict[str, Any]:
    return item("function_call_output", call_id=id, output=text)


def numbered(first: int, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**line, "ordinal": first + place} for place, line in enumerate(lines)]


@dataclass
class Codex:
    """A home with rollouts of documented shapes, each line a second after the one before."""

    home: Path

    def write(self, name: str, *lines: Any, minute: int = 0, directory: str = "sessions/2026/01/02") -> Path:
        path = self.home / ".codex" / directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        stamped = ({"timestamp": f"2026-01-02T03:{minute:02d}:{n % 60:02d}Z", **line} for n, line in enumerate(lines))
        path.write_text("".join(json.dumps(line) + "\n" for line in stamped))
        return path

    def rollout(self, id: str, *lines: Any, minute: int = 0, directory: str = "sessions/2026/01/02") -> Path:
        return self.write(f"rollout-2026-01-02T03-00-00-{id}.jsonl", *lines, minute=minute, directory=directory)

    def state(self, *, file: str = ".codex/state_5.sqlite", **columns: Any) -> None:
        path = self.home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with sqlite3.connect(path) as db:
            db.execute(f"create table if not exists threads ({', '.join(columns)})")
            db.execute(f"insert into threads values ({', '.join('?' * len(columns))})", tuple(columns.values()))
        db.close()

    @property
    def host(self) -> Host:
        return Host(self.home, {})

    @property
    def manager(self) -> SessionManager:
        return SessionManager(self.host, cache=False)

    def fingerprints(self) -> dict[str, str]:
        with READER("codex", self.host) as reader:
            return {ref.key: ref.fingerprint for ref in reader.refs()}

    def sessions(self) -> dict[str, Session]:
        manager = self.manager
        listed = manager.list(Query(agents=("codex",), subagents=True))
        assert manager.skipped == []
        return {one.session_id: manager.get("codex", one.session_id) for one in listed}

    def only(self) -> Session:
        (session,) = self.sessions().values()
        return session

    def input(self) -> int | None:
        return self.manager.total_cost(Query(agents=("codex",))).input_tokens


@pytest.fixture
def codex(tmp_path):
    return Codex(tmp_path)


def roles(session: Session) -> list[str]:
    return [message.role for message in session.messages]


def prompts(session: Session) -> list[str]:
    return [message.content for message in session.messages if message.role == "user"]


def own_input(session: Session) -> int:
    return (session.cost and session.cost.input_tokens) or 0


# Eras


DOCUMENT = {
    "session": {"timestamp": "2025-05-17T10:00:00.000Z", "id": OLD, "instructions": ""},
    "items": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Sort the imports"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look first."}], "duration_ms": 900},
        {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"output":"a.py","metadata":{"exit_code":2}}'},
        {"type": "function_call", "name": "shell", "arguments": "not json", "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c2", "output": '{"output":"","metadata":{"exit_code":0}}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sorted."}]},
    ],
}


def write_document(codex: Codex, text: str) -> None:
    path = codex.home / ".codex/sessions" / f"rollout-2025-05-17-{OLD}.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_the_typescript_version_kept_one_document(codex):
    write_document(codex, json.dumps(DOCUMENT, indent=2))

    session = codex.only()

    assert (session.session_id, session.title) == (OLD, "Sort the imports")
    assert session.created_at.isoformat() == "2025-05-17T10:00:00+00:00"
    assert roles(session) == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    first, second = session.messages[1], session.messages[3]
    assert (first.thinking, first.tool_calls[0].output, first.tool_calls[0].is_error) == ("Look first.", "a.py", True)
    assert (second.tool_calls[0].input, second.tool_calls[0].is_error) == ("not json", False)
    assert session.cost is None


def test_a_document_cut_short_is_read_up_to_there(codex):
    text = json.dumps(DOCUMENT, indent=2)
    write_document(codex, text[: text.index("not json")])

    session = codex.only()

    assert (session.session_id, roles(session)) == (OLD, ["user", "assistant", "tool"])


@pytest.mark.parametrize(
    "injected",
    [
        "<environment_context>\nCurrent working directory: /home/dev/shop\nApproval policy: never\n</environment_context>",
        "<environment_context>\n  <cwd>/home/dev/shop</cwd>\n</environment_context>",
    ],
)
def test_bare_lines_have_their_cwd_in_an_injected_message(codex, injected):
    header = {"id": OLD, "instructions": None, "git": {"commit_hash": "9d78", "branch": "main"}}
    codex.rollout(
        OLD,
        header,
        {"record_type": "state"},
        said("user", injected)["payload"],
        said("user", "Go")["payload"],
        {"record_type": "state"},
        said("assistant", "Gone")["payload"],
    )

    session = codex.only()

    assert prompts(session) == ["Go"]
    assert (session.cwd, session.git_branch, session.git_commit) == ("/home/dev/shop", "main", "9d78")
    assert session.cost is None
    assert READER("codex", codex.host).resume_command(session, None) is None


def test_a_plain_list_of_messages_is_read_where_older_documents_put_it(codex):
    codex.write(
        "session-2025-01-15-001.jsonl",
        {"role": "user", "content": "Fix the bug"},
        {"type": "assistant", "message": {"role": "assistant", "content": "Fixed.", "model": "gpt-4"}},
        directory="sessions",
    )

    session = codex.only()

    assert (session.session_id, session.model) == ("session-2025-01-15-001", "gpt-4")
    assert [(m.role, m.content) for m in session.messages] == [("user", "Fix the bug"), ("assistant", "Fixed.")]
    assert session.cost is None


def test_neighbours_are_no_sessions(codex):
    root = codex.home / ".codex/sessions"
    codex.write(
        "saved.jsonl",
        {"type": "thread.started", "thread_id": PARENT},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "hi"}},
        directory="sessions",
    )
    codex.write("notes.jsonl", {"role": "user", "content": "no rollout"}, directory="sessions/2026")
    codex.rollout(CHILD, directory="sessions/2026")
    os.mkfifo(root / f"rollout-x-{PARENT}.jsonl")
    (root / f"rollout-y-{SIBLING}.jsonl").mkdir()
    (root / f"rollout-z-{GRANDPARENT}.jsonl").symlink_to("nowhere")
    (root / "loop").symlink_to(root)

    assert codex.sessions() == {}


def test_a_file_without_a_record_is_skipped_and_named(codex):
    path = codex.rollout(PARENT)
    path.write_bytes(b"\0\0\0 garbage")
    manager = codex.manager

    assert manager.list(Query(agents=("codex",))) == []
    assert [(one.path, one.reason) for one in manager.skipped] == [(str(path), "there is no record in it")]


# Responses


def test_outputs_between_parallel_calls_do_not_split_a_response(codex):
    codex.rollout(
        PARENT,
        meta(PARENT),
        *prompt("Both"),
        context(),
        call("a", command=["ls"]),
        output("a", "one"),
        call("b", command=["pwd"]),
        output("b", "two"),
        context(),
        call("c", command=["id"]),
        output("c", "three"),
        said("assistant", "Done"),
    )

    calls = [[one.tool_call_id for one in m.tool_calls] for m in codex.only().messages if m.role == "assistant"]

    assert calls == [["a", "b"], ["c"], []]


def test_outputs_of_every_shape(codex):
    outputs = {
        "json": '{"output":"boom","metadata":{"exit_code":1,"duration_seconds":1.5}}',
        "head": "Chunk ID: 1\nWall time: 0.2500 seconds\nProcess exited with code 7\nOutput:\nboom",
        "runs": "Wall time: 2 seconds\nProcess running with session ID 5\nOutput:\nProcess exited with code 7",
        "list": [
            {"type": "input_text", "text": "boom"},
            {"type": "input_image", "image_url": "data:image/png;base64,A"},
        ],
        "dict": {"content": "boom", "success": False},
    }
    lines = [line for id, text in outputs.items() for line in (call(id), output(id, text))]
    ends = [
        call("exec"),
        event("exec_command_end", call_id="exec", exit_code=3, duration={"secs": 1, "nanos": 2_000_000}),
        output("exec", "boom"),
        call("item"),
        output("item", "boom"),
        event("item_completed", item={"id": "item", "status": "failed"}, started_at_ms=10, completed_at_ms=40),
        call("open"),
    ]
    codex.rollout(PARENT, meta(PARENT), *prompt("All"), *lines, *ends)

    session = codex.only()
    calls = {one.tool_call_id: one for m in session.messages for one in m.tool_calls}

    assert {id: (one.is_error, one.duration_ms) for id, one in calls.items()} == {
        "json": (True, 1500),
        "head": (True, 250),
        "runs": (False, 2000),
        "list": (False, 1000),
        "dict": (True, 1000),
        "exec": (True, 1002),
        "item": (True, 30),
        "open": (False, None),
    }
    assert (calls["json"].output, calls["list"].output, calls["open"].output) == ("boom", "boom", None)
    pictures = [m.attachments[0].media_type for m in session.messages if m.attachments]
    assert pictures == ["image/png"]


def test_calls_that_are_no_functions(codex):
    codex.rollout(
        PARENT,
        meta(PARENT),
        *prompt("Patch"),
        item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="p"),
        item("custom_tool_call_output", call_id="p", output="Success"),
        item("local_shell_call", id="s", action={"command": ["ls"]}),
        item("web_search_call", id="w", action={"type": "search", "query": "vole"}),
        item("ghost_snapshot", ghost_commit={"id": "1"}),
        item("compaction", encrypted_content="x"),
    )

    calls = [(one.tool_name, one.input) for m in codex.only().messages for one in m.tool_calls]

    assert calls == [
        ("apply_patch", "*** Begin Patch"),
        ("local_shell", {"command": ["ls"]}),
        ("web_search", {"type": "search", "query": "vole"}),
    ]


# Prompts


def test_what_is_injected_is_no_prompt(codex):
    codex.rollout(
        PARENT,
        meta(PARENT),
        said("developer", "<permissions instructions>sandbox</permissions instructions>"),
        said("developer", "Answer in French."),
        said("user", "# AGENTS.md instructions for /w\n<INSTRUCTIONS>x</INSTRUCTIONS>", "<environment_context/>"),
        event("user_message", message="<user_instructions>y</user_instructions>", kind="user_instructions"),
        said("user", "<user_instructions>y</user_instructions>"),
        said("user", "<brand_new_block>z</brand_new_block>"),
        said("user", "Warning: too many processes"),
        said("user", "<user_shell_command>\n<command>ls</command>\n</user_shell_command>"),
        *prompt("<b>What is this tag?</b>"),
        said("user", "an answer to it whose event was lost"),
    )

    told = [(m.role, m.event, m.content) for m in codex.only().messages]

    assert told == [
        ("system", None, "Answer in French."),
        ("system", "shell", "ls"),
        ("user", None, "<b>What is this tag?</b>"),
        ("user", None, "an answer to it whose event was lost"),
    ]


def test_the_record_itself_says_who_wrote_a_part(codex):
    metadata = [{"provenance": {"type": kind}} for kind in ("harness", "user", "user")]
    mixed = said("user", "Today is Monday.", "<image name=[Image #1]>", "<skill> is a tag I typed")
    mixed["payload"]["internal_chat_message_metadata_passthrough"] = {"content_item_metadata": metadata}
    codex.rollout(PARENT, meta(PARENT), mixed)

    assert prompts(codex.only()) == ["<skill> is a tag I typed"]


def test_what_an_editor_and_pictures_add_is_not_typed(codex):
    typed = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nRename it"
    image = {"type": "input_image", "image_url": "data:image/jpeg;base64,AAAA"}
    tags = [{"type": "input_text", "text": text} for text in ("<image name=[Image #1]>", "</image>", "And this?")]
    codex.rollout(
        PARENT,
        meta(PARENT),
        *prompt(typed),
        item("message", role="user", content=[tags[0], image, *tags[1:]]),
        event("user_message", message="And this?", images=[]),
    )

    session = codex.only()

    assert prompts(session) == ["Rename it", "And this?"]
    assert [(one.kind, one.media_type) for one in session.messages[1].attachments] == [("image", "image/jpeg")]


def test_turns_rolled_back_are_gone_but_paid_for(codex):
    codex.rollout(
        PARENT,
        meta(PARENT),
        *prompt("One"),
        said("assistant", "First"),
        count((10, 1), (10, 1)),
        *prompt("Two"),
        said("assistant", "Second"),
        count((30, 2), (20, 1)),
        event("thread_rolled_back", num_turns=1),
        *prompt("Three"),
    )

    session = codex.only()

    assert [m.content for m in session.messages] == ["One", "First", "Three"]
    assert own_input(session) == 30


def test_interrupts_and_errors_are_told(codex):
    codex.rollout(
        PARENT,
        meta(PARENT),
        *prompt("Go"),
        event("turn_aborted", reason="interrupted"),
        said("user", "<turn_aborted>\nThe user interrupted.\n</turn_aborted>"),
        event("error", message="stream disconnected"),
    )

    told = [(m.event, m.content, m.is_error) for m in codex.only().messages if m.role == "system"]

    assert told == [("interrupt", "Turn aborted: interrupted", False), ("error", "stream disconnected", True)]


@pytest.mark.parametrize("left", [[], [said("assistant", "SUMMARY")]])
def test_a_summary_is_no_answer_whether_its_call_left_one_or_not(codex, left):
    codex.rollout(
        PARENT,
        meta(PARENT),
        *prompt("Go"),
        said("assistant", "Going"),
        count((10, 1), (10, 1)),
        *left,
        count((30, 2), (20, 1)),
        {"type": "compacted", "payload": {"message": "Here it is:\nSUMMARY", "replacement_history": []}},
        count((30, 2), (0, 0)),
        said("assistant", "On"),
        count((60, 3), (30, 1)),
    )

    session = codex.only()

    assert [(m.role, m.event) for m in session.messages] == [
        ("user", None),
        ("assistant", None),
        ("system", "compaction"),
        ("assistant", None),
    ]
    assert "SUMMARY" in session.messages[2].content
    assert [m.token_usage and m.token_usage.input_tokens for m in session.messages] == [None, 10, 20, 30]


# Running totals


@pytest.mark.parametrize(
    ("counted", "calls"),
    [
        ([((10, 1), (10, 1)), ((10, 1), (10, 1)), ((30, 2), (20, 1))], [10, 20]),
        ([((10, 1), (10, 1)), ((10, 1), (0, 0)), ((25, 2), (15, 1))], [10, 15]),
        ([((50, 9), (50, 9)), ((20, 1), (20, 1)), ((40, 2), (20, 1))], [50, 20, 20]),
        ([((10, 1), (10, 1)), ((20, 3), (20, 3))], [10, 20]),
        ([((50, 9), (50, 9)), ((0, 0), (0, 0)), ((7, 1), (7, 1)), ((9, 2), (2, 1))], [50, 7, 2]),
        ([((10, 1), (10, 1)), ((60, 3), (20, 1))], [10, 50]),
    ],
    ids=["repeated", "made up", "set back", "set back to more", "overflow", "one event lost"],
)
def test_a_call_is_a_change_of_the_total(codex, counted, calls):
    null = event("token_count", info=None)
    codex.rollout(PARENT, meta(PARENT), *prompt("Go"), context(), null, *(count(*one) for one in counted))
    with READER("codex", codex.host) as reader:
        (session,) = reader.read(*reader.refs())

    assert [charge.usage.input_tokens for charge in session.charges] == calls
    assert codex.input() == sum(calls)


def test_a_total_with_one_more_field_after_an_update_is_no_call(codex):
    repeated = count((10, 1), (10, 1))
    repeated["payload"]["info"]["total_token_usage"]["cache_write_input_tokens"] = 0
    codex.rollout(PARENT, meta(PARENT), *prompt("Go"), context(), count((10, 1), (10, 1)), repeated)

    assert codex.manager.total_cost(Query(agents=("codex",))).call_count == 1


def test_cached_input_is_not_fresh_and_what_is_not_recorded_is_unknown(codex):
    usage = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9, "reasoning_output_tokens": 4}
    info = {"total_token_usage": usage, "last_token_usage": usage}
    codex.rollout(PARENT, meta(PARENT), *prompt("Go"), context(), event("token_count", info=info))

    cost = codex.only().cost

    assert (cost.input_tokens, cost.cached_tokens, cost.output_tokens, cost.thinking_tokens) == (40, 60, 9, 4)
    assert cost.cache_write_tokens is None


def test_an_answer_that_was_never_counted_costs_nobody_knows_what(codex):
    codex.rollout(PARENT, meta(PARENT), *prompt("Go"), context(), said("assistant", "Killed he"))
    codex.rollout(CHILD, meta(CHILD), *prompt("Not even answered"), context())
    found = codex.sessions()

    assert found[PARENT].cost is None
    assert found[CHILD].cost.input_tokens == 0


def test_records_of_responses_go_before_totals_once_they_are_written(codex):
    codex.rollout(
        PARENT,
        meta(PARENT),
        *prompt("Before 0.155"),
        count((10, 1), (10, 1)),
        *prompt("After"),
        count((10, 1), (10, 1)),
        used("r1", 20, PARENT),
        used("r1", 20, PARENT),
        count((30, 2), (20, 1)),
        used("r2", 30, PARENT),
    )

    assert codex.input() == 60


# Forks that copy


def turn(text: str, total: tuple[int, int], last: tuple[int, int], id: str | None = None) -> list[dict[str, Any]]:
    """A prompt and its answer; a version before 0.117 has no id for it."""
    started = [event("task_started", turn_id=id)] if id else []
    return [
        *started,
        said("developer", "<permissions instructions/>"),
        context(**({"turn_id": id} if id else {})),
        *prompt(text),
        said("assistant", f"{text}: {total}"),
        count(total, last),
    ]


def family(codex: Codex, *, ids: bool, same: str | None = None) -> None:
    """A thread, its fork, and the fork's fork; each went on after it was forked. All in all 1+2+4+8+16+32+64."""

    def said_in(thread: str, number: int, text: str, total: int, last: int) -> list[dict[str, Any]]:
        return turn(same or text, (total, total), (last, last), turn_of(thread, number) if ids else None)

    first = said_in(GRANDPARENT, 1, "one", 1, 1)
    second = said_in(GRANDPARENT, 2, "two", 3, 2)
    forked = said_in(PARENT, 1, "three", 7, 4)
    older, old = meta(GRANDPARENT), meta(PARENT, forked_from_id=GRANDPARENT, timestamp="2026-01-02T03:10:00Z")
    new = meta(CHILD, forked_from_id=PARENT, timestamp="2026-01-02T03:20:00Z")
    brother = meta(SIBLING, forked_from_id=PARENT, timestamp="2026-01-02T03:30:00Z")
    history = [*first, *second]
    codex.rollout(GRANDPARENT, older, *history, *said_in(GRANDPARENT, 3, "three", 11, 8))
    codex.rollout(PARENT, old, older, *history, *forked, *said_in(PARENT, 2, "four", 23, 16), minute=10)
    codex.rollout(CHILD, new, old, older, *history, *forked, *said_in(CHILD, 1, "four", 39, 32), minute=20)
    codex.rollout(SIBLING, brother, old, older, *history, *forked, *said_in(SIBLING, 1, "four", 71, 64), minute=30)


@pytest.mark.parametrize("same", [None, "go on"])
@pytest.mark.parametrize("ids", [True, False])
def test_each_call_of_a_family_of_forks_counts_once(codex, ids, same):
    family(codex, ids=ids, same=same)
    found = codex.sessions()

    assert {id: own_input(one) for id, one in found.items()} == {GRANDPARENT: 11, PARENT: 20, CHILD: 32, SIBLING: 64}
    assert codex.input() == 127
    assert [found[id].forked_from for id in (GRANDPARENT, PARENT, CHILD)] == [None, GRANDPARENT, PARENT]
    assert [sum(m.inherited for m in found[id].messages) for id in (GRANDPARENT, PARENT, CHILD)] == [0, 4, 6]
    assert len(found[CHILD].messages) == 8


@pytest.mark.parametrize("gone", [{GRANDPARENT}, {PARENT}, {GRANDPARENT, PARENT}, {PARENT, CHILD}])
@pytest.mark.parametrize("ids", [True, False])
def test_a_fork_whose_parent_is_gone_keeps_what_it_holds(codex, ids, gone):
    family(codex, ids=ids)
    held = {GRANDPARENT: {1, 2, 8}, PARENT: {1, 2, 4, 16}, CHILD: {1, 2, 4, 32}, SIBLING: {1, 2, 4, 64}}
    for path in (codex.home / ".codex/sessions").rglob("*.jsonl"):
        if any(id in path.name for id in gone):
            path.unlink()

    assert codex.input() == sum(set().union(*(calls for id, calls in held.items() if id not in gone)))


def test_a_fork_begins_when_it_was_forked_and_does_not_know_older_times(codex):
    family(codex, ids=True)
    child = codex.sessions()[CHILD]

    assert child.created_at.isoformat() == "2026-01-02T03:20:00+00:00"
    assert [bool(m.timestamp) for m in child.messages] == [False] * 6 + [True] * 2


def test_equal_calls_of_strangers_are_two_calls(codex):
    for id in (PARENT, CHILD):
        codex.rollout(id, meta(id), *turn("hello", (10, 1), (10, 1)))

    assert codex.input() == 20


def test_the_same_prompt_at_the_same_price_in_two_forks_is_two_calls(codex):
    """Up to 0.58 the usage of a call stands before its answer, so that only what follows tells the two apart."""
    first, second = turn("one", (1, 1), (1, 1)), [context(), *prompt("go on"), count((3, 3), (2, 2))]
    codex.rollout(PARENT, meta(PARENT), *first, *second, said("assistant", "here"))
    fork = meta(CHILD, forked_from_id=PARENT)
    codex.rollout(CHILD, fork, meta(PARENT), *first, *second, said("assistant", "there"), minute=5)
    found = codex.sessions()

    assert (own_input(found[PARENT]), own_input(found[CHILD])) == (3, 2)
    assert [m.content for m in found[CHILD].messages if m.token_usage] == ["one: (1, 1)", "there"]


def test_a_fork_before_forks_were_marked_is_known_by_its_second_header(codex):
    codex.rollout(PARENT, meta(PARENT), *turn("one", (1, 1), (1, 1)))
    codex.rollout(
        CHILD, meta(CHILD), meta(PARENT), *turn("one", (1, 1), (1, 1)), *turn("two", (3, 3), (2, 2)), minute=9
    )

    assert codex.sessions()[CHILD].forked_from == PARENT
    assert codex.input() == 3


def test_a_subagent_given_its_parents_last_turn_pays_for_its_own(codex):
    """Of what is copied only messages and events are left, and the first total there repeats one of a turn left out."""
    earlier = [*turn("zero", (1, 1), (1, 1), turn_of(PARENT, 1)), *turn("one", (3, 3), (2, 2), turn_of(PARENT, 2))]
    started, *rest = turn("two", (7, 7), (4, 4), turn_of(PARENT, 3))
    last = [started, count((3, 3), (2, 2)), *rest]
    source = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    codex.rollout(PARENT, meta(PARENT), *earlier, *last)
    codex.rollout(
        CHILD,
        meta(CHILD, source=source, forked_from_id=PARENT),
        meta(PARENT),
        *(line for line in last if line["type"] != "turn_context"),
        *turn("audit", (15, 15), (8, 8), turn_of(CHILD, 1)),
        minute=5,
    )
    child = codex.sessions()[CHILD]

    assert (child.kind, child.parent_id, child.title) == ("subagent", PARENT, "audit")
    assert [(m.content, m.inherited) for m in child.messages if m.role == "user"] == [("two", True), ("audit", False)]
    assert own_input(child) == 8
    assert codex.input() == 15


# Forks and reverts by reference


def based(id: str, on: str, end: int, **fields: Any) -> dict[str, Any]:
    return meta(id, history_mode="paginated", history_base={"thread_id": on, "end_ordinal_exclusive": end}, **fields)


def reverted(codex: Codex) -> None:
    """A thread with two answers, the second taken back and given anew in a file of its own."""
    codex.rollout(
        PARENT,
        *numbered(
            0,
            meta(PARENT),
            *prompt("one"),
            said("assistant", "first"),
            used("r1", 1, PARENT),
            *prompt("two"),
            said("assistant", "second"),
            used("r2", 2, PARENT),
        ),
    )
    codex.write(
        f"rollout-2026-01-02T03-30-00-{PARENT}_{ROLLOUT}.jsonl",
        *numbered(
            5,
            based(PARENT, PARENT, 5, timestamp="2026-01-02T03:30:00Z"),
            *prompt("two, again"),
            said("assistant", "third"),
            used("r3", 4, PARENT),
        ),
        minute=30,
    )


def test_the_newest_file_of_a_thread_goes_on_unless_the_database_says_otherwise(codex):
    reverted(codex)
    assert prompts(codex.only()) == ["one", "two, again"]
    assert codex.only().created_at.minute == 0

    codex.state(id=PARENT, rollout_path=f"C:\\codex\\rollout-2026-01-02T03-00-00-{PARENT}.jsonl")

    assert prompts(codex.only()) == ["one", "two"]
    assert codex.input() == 7


def test_a_later_file_whose_header_is_torn_goes_on_from_the_first(codex):
    reverted(codex)
    (later,) = codex.home.rglob(f"*{ROLLOUT}.jsonl")
    later.write_bytes(later.read_bytes()[40:])

    assert prompts(codex.only()) == ["one", "two, again"]
    assert codex.input() == 7


def test_a_fork_of_a_reverted_thread_refers_to_one_of_its_files(codex):
    reverted(codex)
    codex.rollout(
        CHILD,
        *numbered(
            9,
            based(CHILD, ROLLOUT, 9, forked_from_id=PARENT),
            *prompt("forked"),
            said("assistant", "x"),
            used("r4", 8, CHILD),
        ),
        minute=40,
    )
    codex.rollout(
        SIBLING, *numbered(4, based(SIBLING, CHILD, 4, forked_from_id=CHILD), *prompt("of the first")), minute=50
    )
    found = codex.sessions()

    assert [(m.content, m.inherited) for m in found[CHILD].messages] == [
        ("one", True),
        ("first", True),
        ("two, again", True),
        ("third", True),
        ("forked", False),
        ("x", False),
    ]
    assert (own_input(found[CHILD]), found[CHILD].forked_from) == (8, PARENT)
    with READER("codex", codex.host) as reader:
        (read,) = (one for ref in reader.refs() if ref.key == CHILD for one in reader.read(ref))
    assert [charge.key for charge in read.charges] == ["r4"]
    # Cut before anything its base wrote itself: what is left is of the base's base.
    assert prompts(found[SIBLING]) == ["one", "of the first"]
    assert codex.input() == 15


def test_a_fork_is_read_again_when_its_base_comes_or_goes(codex):
    reverted(codex)
    codex.rollout(CHILD, *numbered(5, based(CHILD, PARENT, 5, forked_from_id=PARENT), *prompt("forked")))
    base = next((codex.home / ".codex/sessions").rglob(f"*-{PARENT}.jsonl"))
    manager = SessionManager(codex.host)

    def shown() -> list[str]:
        return prompts(SessionManager(codex.host).get("codex", CHILD))

    assert shown() == ["one", "forked"]
    away = base.rename(codex.home / "away")
    assert shown() == ["forked"]
    assert PARENT in codex.sessions()[CHILD].messages[0].content
    away.rename(base)
    assert shown() == ["one", "forked"]
    manager.catalog.close()


def test_bases_in_a_circle_are_read_as_far_as_they_go(codex):
    codex.rollout(PARENT, *numbered(3, based(PARENT, CHILD, 9), *prompt("one")))
    codex.rollout(CHILD, *numbered(6, based(CHILD, PARENT, 9), *prompt("two")))
    found = codex.sessions()

    assert (prompts(found[PARENT]), prompts(found[CHILD])) == (["two", "one"], ["one", "two"])


@pytest.mark.parametrize("missing", [False, True])
def test_totals_of_a_fork_by_reference_begin_with_its_bases(codex, missing):
    lines = numbered(0, meta(PARENT), *turn("one", (10, 1), (10, 1), turn_of(PARENT, 1)))
    base = codex.rollout(PARENT, *lines)
    own = [*turn("two", (15, 2), (5, 1), turn_of(CHILD, 1)), *turn("three", (19, 3), (4, 1), turn_of(CHILD, 2))]
    codex.rollout(CHILD, *numbered(len(lines), based(CHILD, PARENT, len(lines), forked_from_id=PARENT), *own))
    if missing:
        base.unlink()

    assert own_input(codex.sessions()[CHILD]) == 9


# Files


def packed(path: Path) -> Path:
    target = path.with_name(path.name + ".zst")
    target.write_bytes(zstd.compress(path.read_bytes()))
    return target


def test_compressed_rollouts_are_read_and_plain_ones_before_them(codex):
    plain = codex.rollout(PARENT, meta(PARENT), *prompt("packed"))
    zst = packed(plain)
    codex.rollout(PARENT, meta(PARENT), *prompt("plain"))
    assert prompts(codex.only()) == ["plain"]

    plain.unlink()
    assert prompts(codex.only()) == ["packed"]

    zst.write_bytes(zst.read_bytes()[:20])
    manager = codex.manager
    assert manager.list(Query(agents=("codex",))) == []
    assert [one.path for one in manager.skipped] == [str(zst)]


def test_without_a_library_a_compressed_rollout_says_what_is_missing(codex, monkeypatch):
    plain = codex.rollout(PARENT, meta(PARENT), *prompt("packed"))
    packed(plain)
    plain.unlink()
    for name in ("backports", "backports.zstd", "compression", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with READER("codex", codex.host) as reader, pytest.raises(UnreadableSession, match=r"backports\.zstd"):
        reader.read(*reader.refs())


def test_a_copy_in_the_archive_is_the_same_thread(codex):
    codex.rollout(PARENT, meta(PARENT), *prompt("here"))
    codex.rollout(PARENT, meta(PARENT), *prompt("there, and longer"), directory="archived_sessions")
    codex.rollout(CHILD, meta(CHILD), *prompt("gone"), directory="archived_sessions")
    found = codex.sessions()

    assert (prompts(found[PARENT]), found[PARENT].archived) == (["here"], False)
    assert found[CHILD].archived


def test_a_renamed_rollout_is_the_thread_its_header_names(codex):
    codex.rollout(CHILD, meta(PARENT), context(), *prompt("one"), said("assistant", "first"), count((5, 1), (2, 1)))
    session = codex.only()

    assert (session.session_id, session.forked_from, own_input(session)) == (PARENT, None, 5)


def test_a_torn_header_does_not_make_a_fork_its_parent(codex):
    path = codex.rollout(CHILD, meta(CHILD), meta(PARENT), *turn("one", (1, 1), (1, 1)))
    lines = path.read_bytes().split(b"\n", 1)
    path.write_bytes(lines[0][:40] + b"\n" + lines[1])

    session = codex.only()

    assert (session.session_id, session.forked_from) == (CHILD, PARENT)


# Names and modes


def index(codex: Codex, *names: tuple[str, str]) -> None:
    lines = (json.dumps({"id": id, "thread_name": name}) + "\n" for id, name in names)
    (codex.home / ".codex/session_index.jsonl").write_text("".join(lines) + '{"id": "torn')


def test_the_last_name_counts_and_touches_no_other_thread(codex):
    for id in (PARENT, CHILD):
        codex.rollout(id, meta(id), *prompt("untitled"))
    before = codex.fingerprints()
    codex.state(id=PARENT, name="from the database")
    codex.state(file=".codex/state_12.sqlite", id=PARENT, archived=1)
    index(codex, (PARENT, "first"), (PARENT, "last"))
    after = codex.fingerprints()
    found = codex.sessions()

    assert (found[PARENT].title, found[CHILD].title) == ("last", "untitled")
    assert found[PARENT].archived, "state_12 is newer than state_5"
    assert before[PARENT] != after[PARENT]
    assert before[CHILD] == after[CHILD]


@pytest.mark.parametrize("how", ["config", "env"])
def test_the_database_may_lie_elsewhere(codex, how):
    codex.rollout(PARENT, meta(PARENT), *prompt("untitled"))
    codex.state(file="elsewhere/state_5.sqlite", id=PARENT, name="named")
    env = {"CODEX_SQLITE_HOME": "~/elsewhere"} if how == "env" else {}
    if how == "config":
        (codex.home / ".codex/config.toml").write_text('sqlite_home = "~/elsewhere"\n')
    manager = SessionManager(replace(codex.host, env=env), cache=False)

    assert manager.get("codex", PARENT).title == "named"


def test_a_damaged_database_costs_only_the_names(codex):
    codex.rollout(PARENT, meta(PARENT), *prompt("still here"))
    (codex.home / ".codex/state_5.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)

    assert codex.only().title == "still here"


def test_a_subagent_without_a_parent_in_its_header_has_one_in_the_database(codex):
    codex.rollout(CHILD, meta(CHILD, source={"subagent": "review"}), *prompt("Review"))
    codex.state(id=CHILD, name=None)
    with sqlite3.connect(codex.home / ".codex/state_5.sqlite") as db:
        db.execute("create table thread_spawn_edges (parent_thread_id, child_thread_id, status)")
        db.execute("insert into thread_spawn_edges values (?, ?, 'open')", (PARENT, CHILD))
    db.close()

    assert (codex.only().kind, codex.only().parent_id) == ("subagent", PARENT)


@pytest.mark.parametrize(
    ("policies", "mode"),
    [
        ({"approval_policy": "never", "sandbox_policy": {"mode": "read-only"}}, "approval never, sandbox read-only"),
        ({"approval_policy": {"granular": {}}, "sandbox_policy": None}, "approval granular"),
        ({"permission_profile": {"type": "disabled"}}, "permissions disabled"),
        ({}, None),
    ],
)
def test_the_mode_is_that_of_the_last_turn(codex, policies, mode):
    earlier = context(approval_policy="on-request", sandbox_policy={"type": "workspace-write"})
    codex.rollout(PARENT, meta(PARENT), earlier, *prompt("Go"), context(**policies))

    assert codex.only().mode == mode


def test_commands(codex):
    codex.rollout(PARENT, meta(PARENT), *prompt("Go"))
    codex.write("rollout-odd.jsonl", meta("--yolo"), *prompt("Go"))
    reader, found = READER("codex", codex.host), codex.sessions()

    assert reader.resume_command(found[PARENT], None) == ["codex", "resume", PARENT]
    assert reader.fork_command(found[PARENT], "gpt-5") == ["codex", "fork", "-m", "gpt-5", PARENT]
    assert reader.resume_command(found["--yolo"], None) is None
