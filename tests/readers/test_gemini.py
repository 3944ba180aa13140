"""What is odd about Gemini CLI: a log that loses things, sessions over several files, ids shared by 8 characters."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from amux import readers
from amux.manager import SessionManager
from amux.model import Usage
from amux.query import Query
from amux.readers._base import Host

ID = "f0cf6f68-9f9c-4821-86ee-8bdb1148dafd"
OTHER_ID = "f0cf6f68-0000-4000-8000-000000000002"
FORK_ID = "2c3acedf-5043-4065-b0de-846002de5ba9"
CWD = "/home/dev/work/shop"
CONTEXT = {
    "id": "d04923d38bb0f6017037e74183378ef4",
    "type": "user",
    "content": [{"text": f"<session_context>\n- **Workspace Directories:**\n  - {CWD}\n- **Directory Structure:**\n"}],
}


def digest(path):
    return sha256(path.encode()).hexdigest()


def header(id=ID, at="10:00:00", cwd=CWD, **more):
    time = f"2026-11-18T{at}.000Z"
    return {"sessionId": id, "projectHash": digest(cwd), "startTime": time, "lastUpdated": time, "kind": "main", **more}


def uid(name):
    return f"{name:0>8}-0000-4000-8000-000000000000"


def prompt(id, text, at="10:00:01", **more):
    content = [{"text": text}] if isinstance(text, str) else text
    return {"id": uid(id), "timestamp": f"2026-11-18T{at}.000Z", "type": "user", "content": content, **more}


def answer(id, text, tokens=None, at="10:00:02", **more):
    said = {"id": uid(id), "timestamp": f"2026-11-18T{at}.000Z", "type": "gemini", "content": text, **more}
    if tokens:
        said |= {"model": "gemini-2.5-pro", "tokens": {"input": tokens, "output": 1, "cached": 0, "thoughts": 0}}
    return said


def call(id, output=None, **more):
    result = [response(id, output)] if output else None
    return {"id": id, "name": "run_shell_command", "args": {"command": id}, "result": result, **more}


def response(id, output):
    return {"functionResponse": {"id": id, "name": "run_shell_command", "response": {"output": output}}}


def snapshot(*messages):
    return {"$set": {"messages": list(messages)}}


def document(*messages, **more):
    return {**header(), **more, "messages": list(messages)}


class Home:
    """A home with what Gemini CLI would have left in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = path / ".gemini"

    def log(self, *records, project="shop", name=f"session-2026-11-18T10-00-{ID[:8]}.jsonl"):
        return self.write("".join(json.dumps(record) + "\n" for record in records), project, name)

    def document(self, document, project="shop", name=f"session-2026-11-18T10-00-{ID[:8]}.json"):
        return self.write(json.dumps(document, indent=2), project, name)

    def write(self, text, project, name):
        path = self.store / "tmp" / project / "chats" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def owned(self, project="shop", cwd=CWD):
        path = self.store / "tmp" / project / ".project_root"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(cwd)

    @property
    def reader(self):
        return readers.open_reader("gemini", Host(self.path, {}))

    def sessions(self):
        reader = self.reader
        return {session.session_id: session for ref in reader.refs() for session in reader.read(ref)}

    def session(self):
        (session,) = self.sessions().values()
        return session

    @property
    def manager(self):
        return SessionManager(Host(self.path, {}), cache=False)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def spoken(session):
    return [m.content for m in session.messages if m.role in ("user", "assistant")]


def paid(session):
    return sum(charge.usage.input_tokens for charge in session.charges)


# One session, several files


def test_a_migrated_and_resumed_session_is_one(home):
    turn = [prompt("a", "First"), answer("b", "One", 10)]
    home.owned()
    home.document(document(*turn), project=digest(CWD))
    home.document(document(*turn))
    path = home.log(header(), *turn, snapshot(CONTEXT, *turn), prompt("c", "Second"), answer("d", "Two", 20))
    home.log(header(at="11:00:00"), snapshot(CONTEXT), name=f"session-2026-11-18T11-00-{ID[:8]}.jsonl")

    session = home.session()

    assert spoken(session) == ["First", "One", "Second", "Two"]
    assert (session.session_id, session.cwd, session.path) == (ID, CWD, str(path))
    assert paid(session) == 30
    assert (session.created_at.hour, session.updated_at.hour) == (10, 11)


def test_a_rewind_in_the_log_also_takes_what_the_document_has(home):
    turns = [prompt("a", "First"), answer("b", "One", 10), prompt("c", "Second"), answer("d", "Two", 20)]
    home.document(document(*turns))
    home.log(header(), *turns, {"$rewindTo": uid("c")}, snapshot(*turns[:2]), prompt("e", "Third"))

    session = home.session()

    assert spoken(session) == ["First", "One", "Third"]
    assert paid(session) == 30


def test_ids_that_share_eight_characters_stay_apart(home):
    home.log(header(), prompt("a", "First"))
    home.log(header(OTHER_ID), prompt("b", "Second"), name=f"session-2026-11-18T10-01-{ID[:8]}.jsonl")

    found = home.sessions()

    assert {id: spoken(session) for id, session in found.items()} == {ID: ["First"], OTHER_ID: ["Second"]}
    (ref,) = home.reader.refs()
    assert [records[0]["sessionId"] for records in home.reader.raw(ref, OTHER_ID).values()] == [OTHER_ID]


def test_starts_without_a_prompt_are_no_sessions(home):
    home.log(header(), snapshot(CONTEXT))
    home.log(header(FORK_ID), name=f"session-2026-11-18T10-00-{FORK_ID[:8]}.jsonl")
    home.write("", "shop", "session-2026-11-18T10-00-aaaaaaaa.jsonl")
    home.log(header(OTHER_ID), prompt("a", "/help"), name="session-2026-11-18T10-00-bbbbbbbb.jsonl")

    assert home.sessions() == {}


def test_what_only_looks_like_a_session_is_left_alone(home):
    home.log(header(), prompt("a", "First"), name="session-2026-11-18T10-00-f0cf6f68.jsonl.unreadable-1794982356939")
    home.log(header(), prompt("a", "First"), name="../logs/session-f0cf6f68.jsonl")
    os.mkfifo(home.store / "tmp" / "shop" / "chats" / "session-2026-11-18T10-00-bbbbbbbb.jsonl")

    assert list(home.reader.refs()) == []


# What the log loses


def test_a_resume_within_the_minute_loses_nothing(home):
    ran = answer("b", "One", 10, toolCalls=[call("ls", "app.py", status="success")])
    parts = [{"text": "a thought", "thought": True}, {"text": "One"}, {"functionCall": {"id": "ls", "name": "x"}}]
    home.log(
        header(),
        snapshot(CONTEXT),
        prompt("a", "First"),
        answer("b", "One", 10),
        ran,
        header(at="10:00:30"),
        snapshot(CONTEXT),
        {"$set": {"sessionId": ID}},
        snapshot(CONTEXT, prompt("a", "First", "10:00:31"), answer("b", parts, at="10:00:31")),
        prompt("c", "Second", "10:00:32"),
    )

    session = home.session()

    assert spoken(session) == ["First", "One", "Second"]
    assert session.messages[1].tool_calls[0].output == "app.py"
    assert [m.timestamp.second for m in session.messages if m.role != "tool"] == [1, 2, 32]
    assert (session.created_at.second, paid(session)) == (0, 10)


def test_compression_keeps_what_it_summed_up_and_repeats_nothing(home):
    """The program writes the turns it kept again, under new ids and without their tokens."""
    home.log(
        header(),
        snapshot(CONTEXT),
        *(prompt("a", "First"), answer("b", "One", 10), prompt("c", "Again"), answer("d", "Two", 20)),
        *(prompt("e", "Again"), answer("f", "Three", 30)),
        snapshot(
            CONTEXT,
            prompt("51", "What was done so far"),
            answer("52", [{"text": "Got it. Thanks for the additional context!"}]),
            prompt("53", "Again"),
            answer("54", [{"text": "Three"}]),
        ),
        {"id": uid("55"), "type": "info", "content": ""},
        *(prompt("61", "Last"), answer("62", "Four", 40)),
    )

    session = home.session()

    told = [(m.event or m.role, m.content) for m in session.messages]
    assert told == [
        ("user", "First"),
        ("assistant", "One"),
        ("user", "Again"),
        ("assistant", "Two"),
        ("compaction", "What was done so far"),
        ("user", "Again"),
        ("assistant", "Three"),
        ("user", "Last"),
        ("assistant", "Four"),
    ]
    assert paid(session) == 100
    assert [charge.message for charge in session.charges] == [1, 3, 6, 8]


def test_masking_writes_the_history_again_and_cuts_the_output(home):
    turns = [prompt("a", "First"), answer("b", "One", 10, toolCalls=[call("ls", "app.py")]), answer("c", "Two", 20)]
    masked = response("ls", "<tool_output_masked>gone</tool_output_masked>")
    again = [
        prompt("51", [*CONTEXT["content"], {"text": "First"}]),
        answer("52", [{"text": "One"}, {"functionCall": {"id": "ls", "name": "run_shell_command"}}]),
        prompt("53", [masked]),
        answer("54", [{"text": "Two"}]),
    ]
    home.log(header(), snapshot(CONTEXT), *turns, *again, snapshot(*again), prompt("61", "Last"))

    session = home.session()

    assert [m.content for m in session.messages] == ["First", "One", "app.py", "Two", "Last"]
    assert paid(session) == 30

    home.log(header(), *turns, *again, snapshot(*again), {"$rewindTo": uid("54")})

    assert [m.content for m in home.session().messages] == ["First", "One", "app.py"]


def test_masking_in_place_keeps_the_first_output(home):
    turns = [prompt("a", "First"), answer("b", "One", 10, toolCalls=[call("ls", "app.py", status="success")])]
    masked = answer("b", "One", 10, toolCalls=[call("ls", "<tool_output_masked>", status="success")])
    home.log(header(), *turns, snapshot(turns[0], masked))

    assert home.session().messages[1].tool_calls[0].output == "app.py"


def test_a_summary_is_told_by_its_place(home):
    home.log(
        header(), prompt("a", "First"), answer("b", "One", 10), snapshot(prompt("51", "So far")), prompt("c", "On")
    )

    told = [(m.event or m.role, m.content) for m in home.session().messages]

    assert told == [("user", "First"), ("assistant", "One"), ("compaction", "So far"), ("user", "On")]


def test_rewinding_to_an_unknown_message_drops_all_but_what_was_paid(home):
    home.log(header(), prompt("a", "First"), answer("b", "One", 10), {"$rewindTo": "gone"}, prompt("c", "Second"))

    session = home.session()

    assert spoken(session) == ["Second"]
    assert [(charge.usage.input_tokens, charge.message) for charge in session.charges] == [(10, None)]


def test_a_session_rewound_to_its_beginning_keeps_what_was_paid(home):
    home.log(header(), prompt("a", "First"), answer("b", "One", 10), {"$rewindTo": uid("a")})

    session = home.session()

    assert (session.messages, paid(session)) == ((), 10)


@pytest.mark.parametrize("damage", [{"type": 0}, {"type": "gem\0ini"}, {"content": 1.5}])
def test_a_message_written_again_with_damage_stays_what_it_was(home, damage):
    home.log(header(), prompt("a", "First"), answer("b", "One", 10), {**answer("b", "One", 10), **damage})

    assert spoken(home.session()) == ["First", "One"]


def test_a_torn_document_is_read_as_far_as_it_goes(home):
    whole = document(prompt("a", "First"), answer("b", "One", 10), prompt("c", "Second"))
    path = home.document(whole)
    text = path.read_text()
    path.write_text(text[: text.index("Second")])

    assert spoken(home.session()) == ["First", "One"]

    path.write_text(text.replace('"First"', "\0\0\0"))

    session = home.session()
    assert (session.session_id, spoken(session)) == (ID, ["One", "Second"])


def test_lines_that_are_torn_or_foreign_are_passed_over(home):
    path = home.log(header(), prompt("a", "First"), ["foreign"], answer("b", "One", 10))
    path.write_text(path.read_text() + '{"id":"torn","type":"user","conte')

    assert spoken(home.session()) == ["First", "One"]


def test_a_session_whose_header_is_lost_has_the_id_its_name_carries(home):
    home.log(prompt("a", "First"))

    assert list(home.sessions()) == [ID[:8]]


# Whose words they are


@pytest.mark.parametrize(
    "injected",
    [
        prompt("b", "<hook_context>be kind</hook_context>"),
        prompt("b", "Here is the user's editor context as a JSON object."),
        prompt("b", "System: Potential loop detected. Details", displayContent=[{"text": "First"}]),
        prompt("b", "Please continue.", displayContent=[{"text": "First"}]),
        prompt("b", "System: Please continue.", displayContent=[response("ls", "app.py")]),
        prompt("b", [response("ls", "app.py")]),
    ],
)
def test_what_the_program_says_in_the_users_name_is_no_prompt(home, injected):
    home.log(header(), prompt("a", "First"), injected)

    assert [m.content for m in home.session().messages if m.role == "user"] == ["First"]


@pytest.mark.parametrize(
    ("text", "event"), [("/help", "command"), ("?", "command"), ("I ran the following shell command:\nls", "shell")]
)
def test_what_went_to_the_program_is_no_prompt(home, text, event):
    home.log(header(), prompt("a", text), prompt("b", "First"))

    session = home.session()

    assert [(m.role, m.event) for m in session.messages] == [("system", event), ("user", None)]
    assert session.title == "First"


def test_an_expanded_prompt_is_what_was_typed(home):
    expanded = [
        {"text": "Explain @app.py and @cat.png"},
        {"text": "\n--- Content from referenced files ---"},
        {"text": "\nContent from @app.py:\n"},
        {"text": "print('hello')"},
        {"text": "\nContent from @cat.png:\n"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"text": "\n--- End of content ---"},
        {"text": "<hook_context>be kind</hook_context>"},
    ]
    home.log(
        header(),
        prompt("a", expanded),
        prompt("b", "Plan: do it well", displayContent=[{"text": "/plan it"}]),
    )

    first, second = home.session().messages

    assert first.content == "Explain @app.py and @cat.png"
    assert [(a.kind, a.media_type, a.name) for a in first.attachments] == [
        ("file", None, "app.py"),
        ("image", "image/png", "cat.png"),
    ]
    assert (second.role, second.content) == ("user", "/plan it")


def test_notices_are_system_messages(home):
    notices = [{"id": kind, "type": kind, "content": f"a {kind}"} for kind in ("info", "warning", "error")]
    home.log(header(), prompt("a", "First"), *notices)

    told = home.session().messages[1:]

    assert [(m.role, m.event, m.is_error) for m in told] == [
        ("system", "info", False),
        ("system", "warning", False),
        ("system", "error", True),
    ]


# Tools


def test_each_parallel_call_has_its_own_output(home):
    """A result written back from the history holds those of the other calls as well."""
    both = [response("one", "1"), response("two", "2")]
    calls = [{**call("one"), "result": both}, {**call("two"), "result": both}]
    home.log(header(), prompt("a", "First"), answer("b", "", 10, toolCalls=calls), prompt("c", both))

    session = home.session()

    assert [c.output for c in session.messages[1].tool_calls] == ["1", "2"]
    assert [m.content for m in session.messages if m.role == "tool"] == ["1", "2"]


def test_a_call_that_never_ended_has_no_output(home):
    calls = [call("one", status="cancelled"), call("two", status="executing"), call("three", "no", status="error")]
    home.log(header(), prompt("a", "First"), answer("b", "", 10, toolCalls=calls))

    answered, *outputs = home.session().messages[1:]

    assert [(c.output, c.is_error) for c in answered.tool_calls] == [(None, True), (None, False), ("no", True)]
    assert [(m.content, m.is_error) for m in outputs] == [("no", True)]


def test_a_result_may_stand_only_in_what_went_back_to_the_model(home):
    parts = [{"functionCall": {"id": "ls", "name": "run_shell_command", "args": {"command": "ls"}}}]
    home.log(
        header(),
        prompt("a", "First"),
        answer("b", parts),
        prompt("c", [response("ls", "app.py")]),
        prompt("d", [response("ls", "app.py")]),
    )

    _, asked, told = home.session().messages

    assert (asked.tool_calls[0].input, asked.tool_calls[0].output) == ({"command": "ls"}, "app.py")
    assert (told.role, told.content) == ("tool", "app.py")


# Tokens


def test_tokens_are_fresh_input_and_output_with_thoughts(home):
    tokens = {"input": 100, "output": 20, "cached": 30, "thoughts": 5, "tool": 7, "total": 132}
    home.log(header(), prompt("a", "First"), answer("b", "One", tokens=1) | {"tokens": tokens})

    assert home.session().charges[0].usage == Usage(77, 25, 5, 30)


def test_answers_without_tokens_leave_the_cost_unknown(home):
    home.log(header(), prompt("a", "First"), answer("b", "One") | {"tokens": None})

    assert not home.session().usage_recorded


# Sub-agents


def test_sub_agents_among_the_sessions_have_the_id_of_their_session(home):
    """Up to 0.36; both files have the same id and the same 8 characters in their names."""
    home.document(document(prompt("a", "First"), answer("b", "One", 10)))
    helper = document(prompt("c", "Find it"), answer("d", "Found", 5), kind="subagent", summary="Found it all")
    home.document(helper, name=f"session-2026-11-18T10-01-{ID[:8]}.json")

    found = {session.kind: session for session in home.sessions().values()}

    assert spoken(found["main"]) == ["First", "One"]
    assert found["subagent"].session_id == f"{ID}-0000000c"
    assert (found["subagent"].parent_id, found["subagent"].title) == (ID, "Find it")
    assert home.reader.resume_command(found["subagent"], None) is None


# Imports


def imported(path, *messages, id=FORK_ID, at="12:00:00"):
    marker = {
        "id": "import-1794982356939",
        "type": "info",
        "content": f"Imported session from {path}",
        "timestamp": f"2026-11-18T{at}.000Z",
    }
    return [header(id, at), marker, *messages, snapshot(*messages)]


PARENT = [prompt("a", "First"), answer("b", "One", 10), prompt("0", "Unanswered")]


def test_an_import_is_a_fork_of_the_file_it_came_from(home):
    home.log(header(), *PARENT)
    fork = imported(f"../x/tmp/shop/chats/session-2026-11-18T10-00-{ID[:8]}.jsonl", *PARENT)
    own = [prompt("c", "Second", "12:00:01"), answer("d", "Two", 20, "12:00:02")]
    home.log(*fork, *own, project="other", name=f"session-1794982356939-{FORK_ID[:8]}.jsonl")
    manager = home.manager

    session = manager.get("gemini", FORK_ID)

    assert session.forked_from == ID
    assert session.created_at.hour == 12
    assert [m.content for m in session.messages if m.inherited] == ["First", "One", "Unanswered"]
    assert [m.event for m in session.messages] == [None, None, None, "branch", None, None]
    assert [charge.claim for charge in session.charges] == ["copied", "unknown"]
    assert (session.cost.input_tokens, manager.total_cost(Query(agents=("gemini",))).input_tokens) == (20, 30)


def test_calls_of_a_vanished_parent_belong_to_its_first_import(home):
    gone = f"/home/dev/.gemini/tmp/shop/chats/session-2026-11-18T10-00-{ID[:8]}.jsonl"
    home.log(*imported(gone, *PARENT), name=f"session-1-{FORK_ID[:8]}.jsonl")
    later = imported(gone, *PARENT, id="3" * 8 + FORK_ID[8:], at="13:00:00")
    home.log(*later, name="session-2-33333333.jsonl")
    listed = {one.session_id[:1]: one for one in home.manager.list(Query(agents=("gemini",)))}

    assert listed["2"].forked_from is None
    assert not any(m.inherited for m in home.sessions()[FORK_ID].messages)
    assert (listed["2"].cost.input_tokens, listed["3"].cost.input_tokens) == (10, 0)


def test_an_import_is_read_again_when_its_parent_comes_or_goes(home):
    home.log(*imported(f"x/session-2026-11-18T10-00-{ID[:8]}.jsonl", *PARENT), name=f"session-1-{FORK_ID[:8]}.jsonl")

    assert home.session().based_on == (ID[:8],)


def test_an_import_of_a_compressed_session_begins_with_the_summary(home):
    copied = [prompt("a", "So far"), answer("b", [{"text": "Got it. Thanks for the additional context!"}]), *PARENT]
    copied = [{**one, "id": uid(str(n))} for n, one in enumerate(copied)]
    home.log(*imported("gone.jsonl", *copied), name=f"session-1-{FORK_ID[:8]}.jsonl")

    session = home.session()

    assert [m.event or m.role for m in session.messages] == ["compaction", "user", "assistant", "user", "branch"]
    assert session.title == "First"


# Where it ran


def test_the_directory_is_what_the_hash_proves(home):
    hashed = digest(CWD)
    home.document(document(prompt("a", "First")), project=hashed)
    assert home.session().cwd is None

    reading = call("read", "x", status="success") | {"args": {"file_path": f"{CWD}/src/app.py"}}
    home.document(document(prompt("a", "First"), answer("b", "", 1, toolCalls=[reading])), project=hashed)
    assert home.session().cwd == CWD

    home.document(document(prompt("a", "First")), project=hashed)
    (home.store / "projects.json").write_text(json.dumps({"projects": {CWD: "shop"}}))
    assert home.session().cwd == CWD


def test_a_slug_may_look_like_a_hash(home):
    home.owned("a" * 64)
    home.log(header(), prompt("a", "First"), project="a" * 64)

    assert home.session().cwd == CWD


def test_the_context_of_an_import_names_another_directory(home):
    home.log(header(cwd="/home/dev/elsewhere"), snapshot(CONTEXT), prompt("a", "First"))
    assert home.session().cwd is None

    home.log(header(), snapshot(CONTEXT), prompt("a", "First"))
    assert home.session().cwd == CWD


def test_the_registry_touches_only_the_sessions_of_the_projects_it_names(home):
    home.log(header(), prompt("a", "First"))
    home.log(header(FORK_ID), prompt("b", "Second"), project="blog", name=f"session-1-{FORK_ID[:8]}.jsonl")
    before = {ref.key: ref.fingerprint for ref in home.reader.refs()}
    (home.store / "projects.json").write_text(json.dumps({"projects": {"/home/dev/blog": "blog"}}))
    after = {ref.key: ref.fingerprint for ref in home.reader.refs()}

    assert [key for key in before if before[key] != after[key]] == [FORK_ID[:8]]


def test_a_variable_moves_the_home(home):
    home.log(header(), prompt("a", "First"))
    moved = readers.open_reader("gemini", Host(Path("/nowhere"), {"GEMINI_CLI_HOME": str(home.path)}))

    assert [ref.key for ref in moved.refs()] == [ID[:8]]


# Plain messages


def test_plain_messages_with_roles_are_read_and_keep_their_safety_data(home):
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}]
    lines = [
        {"role": "user", "content": "First"},
        {
            "role": "model",
            "parts": [{"text": "One"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2},
            "safetyRatings": safety,
        },
    ]
    path = home.store / "sessions" / "jam.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(map(json.dumps, lines)))

    session = home.session()

    assert (session.session_id, spoken(session)) == ("jam", ["First", "One"])
    assert session.charges[0].usage == Usage(10, 2)
    (ref,) = home.reader.refs()
    assert home.reader.raw(ref, "jam") == {str(path): lines}
    assert home.reader.fork_command(session, None) is None


# Commands


def test_resume_goes_by_id_and_fork_by_file(home):
    path = home.log(header(), prompt("a", "First"))
    session, reader = home.session(), home.reader

    assert reader.resume_command(session, None) == ["gemini", "--resume", ID]
    assert reader.fork_command(session, "gemini-2.5-flash") == [
        "gemini",
        "--model",
        "gemini-2.5-flash",
        "--session-file",
        str(path),
    ]


def test_an_id_never_becomes_an_option(home):
    home.log(header("--yolo"), prompt("a", "First"))

    assert home.reader.resume_command(home.session(), None) is None
