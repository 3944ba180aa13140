"""What is odd about pi: old versions, moved directories, forks whose files changed since, what lies beside sessions."""

import json
from decimal import Decimal

import pytest

from amux.manager import SessionManager
from amux.query import Query
from amux.readers import open_reader
from amux.readers._base import Host

STORE = ".pi/agent/sessions/--home-dev-shop--"


def header(id, second=0, **more):
    return {"type": "session", "version": 3, "id": id, "timestamp": time(second), "cwd": "/home/dev/shop", **more}


def time(second):
    return f"2026-11-18T06:{second // 60:02}:{second % 60:02}.000Z"


def entry(id, parent, second, type, **more):
    return {"type": type, "id": id, "parentId": parent, "timestamp": time(second), **more}


def said(id, parent, second, role, text, **more):
    message = {"role": role, "content": [{"type": "text", "text": text}], **more}
    return entry(id, parent, second, "message", message=message)


def used(input, output=10, usd=0.5):
    return {"input": input, "output": output, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": usd}}


def answer(id, parent, second, text, input=100, **more):
    known = {"provider": "acme", "model": "acme-1", "usage": used(input), "stopReason": "stop"}
    return said(id, parent, second, "assistant", text, **{**known, **more})


def turn(second, prompt="Hello", id="a", input=100):
    return [said(f"{id}1", None, second, "user", prompt), answer(f"{id}2", f"{id}1", second + 1, "Hi", input)]


def without_ids(records):
    return [{name: value for name, value in one.items() if name not in ("id", "parentId")} for one in records]


@pytest.fixture
def write(tmp_path):
    def write(path, *records):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = (one if isinstance(one, str) else json.dumps(one) for one in records)
        file.write_text("\n".join(lines) + "\n")
        return file

    return write


@pytest.fixture
def sessions(tmp_path):
    """The sessions of a home by id, as the catalog links them."""

    def sessions(agent="pi", **env):
        manager = SessionManager(Host(tmp_path, env), cache=False)
        listed = manager.list(Query(agents=(agent,), subagents=True))
        assert manager.skipped == []
        return {one.session_id: manager.get(agent, one.session_id) for one in listed}

    return sessions


def texts(session, *roles):
    return [message.content for message in session.messages if message.role in (roles or ("user", "assistant"))]


# Versions


def test_version_1_is_a_plain_sequence_whose_header_came_late(write, sessions):
    old = {"type": "session", "id": "old", "timestamp": time(30), "cwd": "/home/dev/shop", "model": "acme/acme-1"}
    summary = {"type": "compaction", "timestamp": time(4), "summary": "So far", "firstKeptEntryIndex": 1}
    later = without_ids(turn(5, "More"))
    write(f"{STORE}/2026-11-18T06-00-30-000Z_other.jsonl", old, *without_ids(turn(1)), summary, *later)

    found = sessions()["old"]

    assert texts(found) == ["Hello", "Hi", "More", "Hi"]
    assert [m.content for m in found.messages if m.event == "compaction"] == ["So far"]
    assert found.created_at.second == 1
    assert found.cost.input_tokens == 200
    assert not any(message.inherited for message in found.messages)


def test_a_call_is_one_call_in_a_version_1_file_and_in_a_migrated_fork_of_it(write, sessions):
    """Migration gives old entries new ids; 0.27 had another id in the file's name than in the header."""
    old = {"type": "session", "id": "parent", "timestamp": time(0), "cwd": "/home/dev/shop"}
    write(f"{STORE}/2026-11-18T06-00-00-000Z_name.jsonl", old, *without_ids(turn(1)))
    link = "/home/someone/.pi/agent/sessions/--home-dev-shop--/2026-11-18T06-00-00-000Z_name.jsonl"
    own = [said("n1", "m2", 61, "user", "Else"), answer("n2", "n1", 62, "Done", 7)]
    fork = header("fork", 60, branchedFrom=link)
    write(".pi/agent/sessions/--elsewhere--/2026-11-18T06-01-00-000Z_fork.jsonl", fork, *turn(1, id="m"), *own)

    found = sessions()

    assert found["fork"].forked_from == "parent"
    assert found["parent"].cost.input_tokens == 100
    assert found["fork"].cost.input_tokens == 7
    assert [m.inherited for m in found["fork"].messages] == [True, True, False, False]
    assert found["fork"].created_at.minute == 1


def test_two_forks_of_a_parent_that_is_gone_count_its_calls_once(write, sessions):
    link = f"/home/dev/{STORE}/2026-11-18T06-00-00-000Z_gone.jsonl"
    for number, id in enumerate(("one", "two"), 1):
        own = [
            said(f"{id}1", "a2", 60 * number + 1, "user", id),
            answer(f"{id}2", f"{id}1", 60 * number + 2, "Ok", number),
        ]
        write(
            f"{STORE}/2026-11-18T06-0{number}-00-000Z_{id}.jsonl",
            header(id, 60 * number, parentSession=link),
            *turn(1),
            *own,
        )

    found = sessions()

    assert {one.forked_from for one in found.values()} == {"gone"}
    assert [message.inherited for message in found["one"].messages] == [True, True, False, False]
    assert [found[id].cost.input_tokens for id in ("one", "two")] == [101, 2]


# The tree


def test_a_damaged_line_costs_only_itself(write, sessions):
    torn = '{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-11-18T06:00'
    rest = [said("a4", "a3", 4, "user", "And then"), answer("a5", "a4", 5, "Well")]
    write(f"{STORE}/2026-11-18T06-00-00-000Z_torn.jsonl", header("torn"), *turn(1), torn, "\0\0", "[1]", *rest)

    assert texts(sessions()["torn"]) == ["Hello", "Hi", "And then", "Well"]


@pytest.mark.parametrize(
    ("link", "kept"),
    [({}, True), ({"parentId": None}, False), ({"parentId": [7]}, True), ({"parentId": "nobody"}, True)],
    ids=["lost", "null", "damaged", "unknown"],
)
def test_only_null_begins_a_conversation_anew(write, sessions, link, kept):
    later = {name: value for name, value in said("a3", "a2", 3, "user", "Later").items() if name != "parentId"}
    write(f"{STORE}/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *turn(1), {**later, **link})

    assert texts(sessions()["x"]) == (["Hello", "Hi", "Later"] if kept else ["Later"])


def test_a_loop_of_parents_ends(write, sessions):
    loop = [said("a1", "a2", 1, "user", "Hello"), answer("a2", "a1", 2, "Hi"), entry("a2", "a2", 3, "label")]
    write(f"{STORE}/2026-11-18T06-00-00-000Z_loop.jsonl", header("loop"), *loop)

    assert texts(sessions()["loop"]) == ["Hello", "Hi"]


def test_an_empty_name_takes_the_name_away(write, sessions):
    named = [entry("n1", "a2", 3, "session_info", name="Cart"), entry("n2", "n1", 4, "session_info", name="")]
    write(f"{STORE}/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *turn(1), *named)
    write(f"{STORE}/2026-11-18T06-00-00-000Z_y.jsonl", header("y"), *turn(1), named[0])

    assert {id: one.title for id, one in sessions().items()} == {"x": "Hello", "y": "Cart"}


def test_what_extensions_and_the_user_did_themselves_are_no_prompts(write, sessions):
    shell = entry("s", "a2", 3, "message", message={"role": "bashExecution", "command": "ls", "output": "cart.py\n"})
    hook = said("h", "s", 4, "hookMessage", "From a hook", display=True)
    hidden = entry("i", "h", 5, "custom_message", content="Secret context", display=False)
    rules = said("r", "i", 6, "system", "You are pi")
    write(f"{STORE}/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *turn(1), shell, hook, hidden, rules)

    found = sessions()["x"]

    assert [(m.role, m.content, m.event) for m in found.messages[2:]] == [
        ("system", "$ ls\ncart.py", "shell"),
        ("system", "From a hook", "notification"),
    ]


def test_a_skill_is_shown_as_it_was_called(write, sessions):
    text = '<skill name="review" location="/skills/review.md">\nRead everything.\n\nThen judge.\n</skill>\n\nthe cart'
    write(f"{STORE}/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *turn(1, text))

    assert texts(sessions()["x"], "user") == ["/skill:review the cart"]


# What calls cost


def test_every_record_of_a_call_counts_and_a_failed_one_without_usage_does_not(write, sessions):
    records = [
        *turn(1),
        answer("f", "a2", 3, "", 0, usage=used(0, 0, 0), stopReason="error", errorMessage="overloaded", content=[]),
        entry("e", "f", 4, "context_edit", targetId="f", replacement=None),
        said("t", "e", 5, "toolResult", "found", toolCallId="c", toolName="ask", usage=used(20)),
        entry("w", "t", 6, "usage", kind="cache_warm", provider="acme", model="acme-2", usage=used(3)),
        entry("c", "w", 7, "compaction", summary="So far", usage=used(4)),
        entry("m", "c", 8, "model_change", provider="acme", modelId="acme-3"),
        answer("b", "a2", 9, "Abandoned", 5),
        entry("s", "c", 10, "branch_summary", fromId="m", summary="Elsewhere", usage=used(6)),
    ]
    write(f"{STORE}/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *records)

    found = sessions()["x"]

    assert [(c.model, c.usage.input_tokens) for c in found.charges] == [
        ("acme-1", 100),
        (None, 20),
        ("acme-2", 3),
        ("acme-1", 4),
        ("acme-1", 5),
        ("acme-3", 6),
    ]
    assert found.cost.total_usd == Decimal("3.0")
    assert [(m.content, m.is_error) for m in found.messages if m.event == "error"] == [("overloaded", True)]
    assert texts(found, "assistant") == ["Hi"]


def test_alike_calls_of_one_file_are_two_and_a_line_written_twice_is_one(write, sessions):
    alike = [answer("a3", "a2", 2, "Hi"), answer("a3", "a2", 2, "Hi")]
    write(f"{STORE}/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *turn(1), *alike)

    assert [call.usage.input_tokens for call in sessions()["x"].charges] == [100, 100]


def test_cache_writes_for_an_hour_are_part_of_the_cache_writes(write, sessions):
    usage = {**used(1), "cacheWrite": 50, "cacheWrite1h": 30, "reasoning": 0}
    write(f"{STORE}/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), answer("a", None, 1, "Hi", usage=usage))

    (call,) = sessions()["x"].charges

    assert (call.usage.cache_write_tokens, call.hour_write_tokens, call.usage.thinking_tokens) == (50, 30, 0)


# Where files lie


@pytest.mark.parametrize(
    ("path", "env"),
    [
        (".pi/agent/2026-11-18T06-00-00-000Z_x.jsonl", {}),
        ("old/sessions/--home--/2026-11-18T06-00-00-000Z_x.jsonl", {"CODING_AGENT_DIR": "~/old"}),
        ("flat/2026-11-18T06-00-00-000Z_x.jsonl", {"PI_CODING_AGENT_SESSION_DIR": "~/flat"}),
        (".pi/agent/sessions/x/session.jsonl", {}),
    ],
)
def test_directories_of_all_versions(write, sessions, path, env):
    write(path, header("x"), *turn(1))

    assert list(sessions(**env)) == ["x"]


def test_the_session_directory_of_the_settings_may_be_of_another_home(write, sessions):
    write(".pi/agent/settings.json", {"sessionDir": "/home/someone/kept/sessions"})
    write("kept/sessions/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *turn(1))

    assert list(sessions()) == ["x"]


def test_a_file_without_a_header_is_called_by_its_name_or_directory(write, sessions):
    write(f"{STORE}/2026-11-18T06-00-00-000Z_headless.jsonl", '{"type":"session","id":"hea', *turn(1))
    write(".pi/agent/sessions/by-directory/messages.jsonl", *turn(5, "A tree", id="b"))
    write(f"{STORE}/notes.jsonl", *turn(9, "No session"))

    assert set(sessions()) == {"headless", "by-directory"}


def test_what_extensions_keep_below_is_no_session(write, sessions):
    write(f"{STORE}/subagent-artifacts/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *turn(1))

    assert sessions() == {}


def test_a_copy_in_another_directory_is_the_same_session(write, sessions, tmp_path):
    more = [said("a3", "a2", 3, "user", "More")]
    write(f"{STORE}/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *turn(1))
    write(".pi/agent/sessions/--elsewhere--/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *turn(1), *more)

    assert texts(sessions()["x"], "user") == ["Hello", "More"]
    with open_reader("pi", Host(tmp_path, {})) as reader:
        assert len(list(reader.refs())) == 1


def test_a_shared_directory_is_told_apart_by_its_records(write, sessions):
    pi = entry("m", None, 1, "model_change", provider="acme", modelId="acme-1")
    omp = entry("m", None, 1, "model_change", model="acme/acme-1")
    write("both/sessions/--a--/2026-11-18T06-00-00-000Z_p.jsonl", header("p"), pi, *turn(2))
    write("both/sessions/-a/2026-11-18T06-00-00-000Z_o.jsonl", header("o"), omp, *turn(2))
    env = {"PI_CODING_AGENT_DIR": "~/both"}

    assert list(sessions("pi", **env)) == ["p"]
    assert list(sessions("omp", **env)) == ["o"]


def test_a_shared_directory_that_is_one_agents_own_is_that_agents(write, sessions):
    write(".omp/agent/sessions/--a--/2026-11-18T06-00-00-000Z_x.jsonl", header("x"), *turn(2))
    env = {"PI_CODING_AGENT_DIR": "~/.omp/agent"}

    assert list(sessions("pi", **env)) == []
    assert list(sessions("omp", **env)) == ["x"]


# Commands


def test_an_id_becomes_neither_an_option_nor_a_path(write, sessions, tmp_path):
    file = write(f"{STORE}/2026-11-18T06-00-00-000Z_x.jsonl", header("--approve"), *turn(1))
    write(f"{STORE}/2026-11-18T06-00-01-000Z_y.jsonl", header("ticket-4711"), *turn(5))
    found = sessions()
    with open_reader("pi", Host(tmp_path, {})) as reader:
        assert reader.resume_command(found["--approve"], None) == ["pi", "--session", str(file)]
        assert reader.fork_command(found["ticket-4711"], "acme-2") == [
            "pi",
            "--model",
            "acme-2",
            "--fork",
            "ticket-4711",
        ]


# What is not told


def test_answers_without_any_count_leave_the_cost_unknown(write, sessions):
    unknown, known, failed = (f"{STORE}/2026-11-18T06-00-0{number}-000Z_x.jsonl" for number in range(3))
    write(unknown, header("unknown"), said("a", None, 1, "user", "Go"), answer("b", "a", 2, "Done", usage=None))
    write(known, header("known"), *turn(1), answer("c", "a2", 3, "More", usage=None))
    write(failed, header("failed"), answer("b", None, 2, "", usage=used(0), stopReason="error"))
    found = sessions()

    assert found["unknown"].cost is None
    assert found["known"].cost.input_tokens == 100
    assert found["failed"].cost.input_tokens == 0
