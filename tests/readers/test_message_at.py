"""One message from its place in the file alone: as reading the whole session has it, or not at all."""

import json
from pathlib import Path

import pytest

from amux.errors import UnreadableSession
from amux.model import Message
from amux.readers import _json, open_reader
from amux.readers._base import Host, Reader, SessionRef, file_ref

SESSION = "11111111-2222-4333-8444-555555555555"
TAIL = 10_000
"""Lines after a message that have nothing to do with it."""


def told(message: Message) -> tuple:
    return message.role, message.content, message.thinking, [call.input for call in message.tool_calls]


def placed(reader: Reader) -> list[tuple[SessionRef, Message]]:
    """Every message of a store that knows its place."""
    sessions = ((ref, one) for ref in reader.refs() if not ref.reason for one in reader.read(ref))
    return [(ref, message) for ref, one in sessions for message in one.messages if message.offset is not None]


def again(reader: Reader, ref: SessionRef, message: Message) -> Message | None:
    found = reader.message_at(ref, message.offset)
    assert found is None or told(found) == told(message)
    return found


def test_it_is_as_the_whole_session_has_it(case):
    with open_reader(case.agent, Host(case.home, case.env)) as reader:
        for ref, message in placed(reader):
            again(reader, ref, message)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_nearly_every_message_is_found_at_its_place(corpus, tmp_path, agent):
    found = []
    for path in corpus.scenarios(agent):
        case = corpus.open_case(path, tmp_path / path.name)
        with open_reader(agent, Host(case.home, case.env)) as reader:
            found += [again(reader, ref, message) is not None for ref, message in placed(reader)]

    assert len(found) > 50
    assert sum(found) >= 0.95 * len(found)


# Made by hand


def line(number: int, kind: str, *blocks: dict, id: str | None = None, parent: int | None = None, **more) -> dict:
    """A line of Claude Code's."""
    message = {"role": kind, "content": list(blocks), **({"id": id, "model": "claude-opus-4-6"} if id else {})}
    before = None if number == 0 else f"u{number - 1 if parent is None else parent}"
    return {"type": kind, "uuid": f"u{number}", "parentUuid": before, "message": message, **more}


def text(said: str) -> dict:
    return {"type": "text", "text": said}


def use(id: str) -> dict:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": f"make {id}"}}


def result(id: str) -> dict:
    return {"type": "tool_result", "tool_use_id": id, "content": f"{id} done"}


PARALLEL = [
    line(0, "user", text("Build both")),
    line(1, "assistant", {"type": "thinking", "thinking": "At once"}, id="m1"),
    line(2, "assistant", use("one"), id="m1"),
    line(3, "user", result("one")),
    line(4, "assistant", use("two"), id="m1", parent=2),
    line(5, "user", result("two")),
    line(6, "assistant", text("Both are built"), id="m2"),
]


def item(role: str, *texts: str) -> dict:
    """A line of codex's."""
    content = [{"type": "input_text", "text": one} for one in texts]
    return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}


def event(kind: str, **fields) -> dict:
    return {"type": "event_msg", "payload": {"type": kind, **fields}}


def call(id: str) -> dict:
    payload = {"type": "function_call", "name": "shell", "call_id": id, "arguments": f'{{"command":"make {id}"}}'}
    return {"type": "response_item", "payload": payload}


def output(id: str) -> dict:
    return {"type": "response_item", "payload": {"type": "function_call_output", "call_id": id, "output": "done"}}


def meta(timestamp: str) -> dict:
    return {"type": "session_meta", "payload": {"id": SESSION, "timestamp": timestamp, "cwd": "/w"}}


TURN = [
    item("user", "Build both"),
    event("user_message", message="Build both"),
    item("assistant", "At once"),
    call("one"),
    output("one"),
    call("two"),
    output("two"),
    event("token_count"),
    item("assistant", "Both are built"),
]


@pytest.fixture
def stored(tmp_path):
    """A session of an agent made of the lines given; what it is read with and its ref."""

    def store(agent: str, *lines: dict) -> tuple[Reader, SessionRef]:
        places = {"claude": f".claude/projects/-w/{SESSION}.jsonl", "codex": f".codex/sessions/rollout-{SESSION}.jsonl"}
        path = tmp_path / places[agent]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in lines))
        return open_reader(agent, Host(tmp_path, {})), file_ref(SESSION, str(path))

    return store


@pytest.mark.parametrize(("agent", "lines"), [("claude", PARALLEL), ("codex", TURN)])
def test_an_answer_has_all_its_lines(stored, agent, lines):
    reader, ref = stored(agent, *lines)
    found = [again(reader, ref, message) for _, message in placed(reader)]

    assert [message.role for message in found] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [call.input for call in found[1].tool_calls] == [{"command": "make one"}, {"command": "make two"}]


@pytest.mark.parametrize(("agent", "lines"), [("claude", PARALLEL), ("codex", TURN)])
def test_what_comes_after_it_is_not_read(stored, agent, lines, monkeypatch):
    after = line(7, "user", text("Thanks")) if agent == "claude" else item("user", "Thanks")
    reader, ref = stored(agent, *lines, *[after] * TAIL)
    messages = [message for _, message in placed(reader)]
    decoded: list[bytes] = []
    monkeypatch.setattr(_json, "decoded", lambda raw: decoded.append(raw) or json.loads(raw))

    assert again(reader, ref, messages[0]) is not None
    assert again(reader, ref, messages[1]) is not None
    assert len(decoded) < 20


def test_side_chains_do_not_end_an_answer(stored):
    """Up to 2.0.0 the lines of sub-agents stand among those of the answer that started them."""
    side = [
        line(number, "assistant", text("Looking"), id=f"s{number}", parent=number - 2, isSidechain=True)
        for number in range(10, 30)
    ]
    reader, ref = stored("claude", *PARALLEL[:3], *side, *PARALLEL[3:])
    found = [again(reader, ref, message) for _, message in placed(reader)]

    assert None not in found
    assert len(found[1].tool_calls) == 2


def test_results_that_share_a_line_cannot_be_told_apart(stored):
    reader, ref = stored(
        "claude",
        *PARALLEL[:2],
        line(2, "assistant", use("one"), use("two")),
        line(3, "user", result("one"), result("two")),
    )
    found = [(message.role, again(reader, ref, message) is None) for _, message in placed(reader)]

    assert found == [("user", False), ("assistant", False), ("assistant", False), ("tool", True), ("tool", True)]


def test_an_answer_that_a_compaction_took_as_its_summary_is_none(stored):
    compacted = {"type": "compacted", "payload": {"message": "Summary: Both are built"}}
    reader, ref = stored("codex", *TURN, event("token_count"), compacted, item("user", "Go on"))
    found = [again(reader, ref, message) for _, message in placed(reader)]

    assert (found[-2].role, found[-2].event, found[-2].content) == ("system", "compaction", "Both are built")


def test_a_prompt_that_looks_injected_is_left_to_those_who_know_the_whole_session(stored):
    typed = "<b>bold</b> is not shown"
    before = [event("user_message", message=typed), item("user", typed)]
    after = [item("user", "<hr> neither"), event("user_message", message="<hr> neither")]
    reader, ref = stored("codex", *before, *[event("token_count")] * 9, *after)
    found = [(message.content, again(reader, ref, message) is None) for _, message in placed(reader)]

    assert found == [(typed, True), ("<hr> neither", False)]


def test_a_message_in_another_file_than_the_refs_has_no_place(stored):
    """The later of a thread's files counts, whatever their ids say."""
    other = "01111111-2222-4333-8444-555555555555"
    reader, ref = stored("codex", meta("2026-01-02T03:00:00Z"), *TURN)
    later = ref.path.replace(SESSION, f"{SESSION}_{other}")
    Path(ref.path).rename(later)
    stored("codex", meta("2026-01-01T03:00:00Z"), *TURN)
    (only,) = reader.refs()

    assert (only.path, only.files) == (ref.path, (later,))
    assert reader.read(only)[0].path == later
    assert placed(reader) == []


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_file_that_was_written_anew_gives_nothing_or_is_unreadable(stored, agent):
    reader, ref = stored(agent, *(PARALLEL if agent == "claude" else TURN))
    last = placed(reader)[-1][1].offset

    assert reader.message_at(ref, last + 1) is None
    assert reader.message_at(ref, 10**9) is None
    stored(agent, {"type": "mode"})
    assert reader.message_at(ref, 0) is None
    with pytest.raises(UnreadableSession):
        reader.message_at(ref._replace(path=f"{ref.path}.gone"), 0)
