"""What is odd about omp: titles in three places, sub-agents told of twice, files kept beside a session or elsewhere."""

import json

import pytest

from amux.manager import SessionManager
from amux.query import Query
from amux.readers import open_reader
from amux.readers._base import Host

FOLDER = ".omp/agent/sessions/-shop"
MAIN = f"{FOLDER}/2026-11-18T06-00-00-000Z_main"


def time(second):
    return f"2026-11-18T06:{second // 60:02}:{second % 60:02}.000Z"


def slot(title, pad=100):
    return {"type": "title", "v": 1, "title": title, "updatedAt": time(0), "pad": " " * pad}


def header(id, second=0, **more):
    return {"type": "session", "version": 3, "id": id, "timestamp": time(second), "cwd": "/home/dev/shop", **more}


def entry(id, parent, second, type, **more):
    return {"type": type, "id": id, "parentId": parent, "timestamp": time(second), **more}


def said(id, parent, second, role, text, **more):
    message = {"role": role, "content": [{"type": "text", "text": text}], **more}
    return entry(id, parent, second, "message", message=message)


def used(input):
    return {"input": input, "output": 10, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0.5}}


def turn(second, prompt="Hello", input=100, attribution="user"):
    answer = {"provider": "acme", "model": "acme-1", "usage": used(input), "stopReason": "stop"}
    return [
        said("a1", None, second, "user", prompt, attribution=attribution),
        said("a2", "a1", second + 1, "assistant", "Hi", **answer),
    ]


def delegated(second, *tasks, folder="2026-11-18T06-00-00-000Z_main"):
    """The result of a task tool that waited for its sub-agents."""
    results = [
        {
            "id": name,
            "requests": 2,
            "usage": used(input),
            "resolvedModelIdentity": "acme/acme-2",
            "outputPath": f"/home/someone/{FOLDER}/{folder}/{name}.md",
        }
        for name, input in tasks
    ]
    details = {"results": results, "usage": used(sum(input for _, input in tasks))}
    return said("d", "a2", second, "toolResult", "report", toolName="task", toolCallId="c", details=details)


@pytest.fixture
def write(tmp_path):
    def write(path, *records):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(one) + "\n" for one in records))
        return file

    return write


@pytest.fixture
def sessions(tmp_path):
    """The sessions of a home by id, as the catalog links them."""

    def sessions(**env):
        manager = SessionManager(Host(tmp_path, env), cache=False)
        listed = manager.list(Query(agents=("omp",), subagents=True))
        assert manager.skipped == []
        return {one.session_id: manager.get("omp", one.session_id) for one in listed}

    return sessions


# Titles


@pytest.mark.parametrize(
    ("records", "title"),
    [
        ([slot("Now"), header("main", title="Once"), entry("t", None, 1, "title_change", title="Before")], "Now"),
        ([slot(""), header("main", title="Once"), entry("t", None, 1, "title_change", title="Changed")], "Changed"),
        ([header("main", title="In the header")], "In the header"),
        ([slot("A long ti", pad=0), header("main", title="A long title")], "A long title"),
        ([slot(""), header("main", title="")], "Hello"),
    ],
)
def test_titles_of_all_versions(write, sessions, records, title):
    write(f"{MAIN}.jsonl", *records, *turn(2))

    assert sessions()["main"].title == title


# Sub-agents


def test_a_sub_agent_that_left_its_transcript_is_counted_there_alone(write, sessions):
    write(f"{MAIN}.jsonl", header("main"), *turn(1), delegated(9, ("Scout", 30), ("Gone", 7)))
    write(f"{MAIN}/Scout.jsonl", header("scout", 3, parentSession="/x/main.jsonl"), *turn(4, "Look", 30))

    found = sessions()

    assert [(c.model, c.usage.input_tokens, c.calls) for c in found["main"].charges] == [
        ("acme-1", 100, 1),
        ("acme-2", 7, 2),
    ]
    assert (found["scout"].kind, found["scout"].parent_id, found["scout"].forked_from) == ("subagent", "main", None)
    assert found["scout"].title == "Scout"
    assert found["main"].cost.input_tokens == 137


@pytest.mark.parametrize(
    "change",
    [
        lambda details: details["results"][0].update(id="0-task"),
        lambda details: details["results"][0].pop("id"),
        lambda details: [details["results"][0].pop(name) for name in ("id", "outputPath")],
        lambda details: details.pop("results"),
    ],
)
def test_a_transcript_is_found_however_little_a_task_tells_of_it(write, sessions, change):
    result = delegated(9, ("Scout", 30))
    change(result["message"]["details"])
    write(f"{MAIN}.jsonl", header("main"), *turn(1), result)
    write(f"{MAIN}/Scout.jsonl", header("scout", 3), *turn(4, "Look", 30))

    found = sessions()["main"]

    assert [charge.usage.input_tokens for charge in found.charges] == [100]
    assert found.cost.input_tokens == 130


def test_a_fork_does_not_count_its_parents_sub_agents_again(write, sessions):
    write(f"{MAIN}.jsonl", header("main"), *turn(1), delegated(9, ("Scout", 30), ("Gone", 7)))
    write(f"{MAIN}/Scout.jsonl", header("scout", 3), *turn(4, "Look", 30))
    fork = header("fork", 60, parentSession="main")
    write(f"{FOLDER}/2026-11-18T06-01-00-000Z_fork.jsonl", fork, *turn(1), delegated(9, ("Scout", 30), ("Gone", 7)))

    found = sessions()

    assert found["fork"].forked_from == "main"
    assert found["fork"].cost.input_tokens in (None, 0)
    assert found["main"].cost.input_tokens == 137


def test_a_transcript_that_comes_later_takes_the_calls_over(write, tmp_path):
    """The answer of a kept catalog equals that of a fresh one."""
    write(f"{MAIN}.jsonl", header("main"), *turn(1), delegated(9, ("Scout", 30)))
    host, query = Host(tmp_path, {}), Query(agents=("omp",))
    assert [
        len(SessionManager(host).get("omp", one.session_id).charges) for one in SessionManager(host).list(query)
    ] == [2]
    write(f"{MAIN}/Scout.jsonl", header("scout", 3), *turn(4, "Look", 30))

    (main,) = SessionManager(host).list(query)

    assert len(SessionManager(host).get("omp", "main").charges) == 1
    assert main.cost.input_tokens == 130


def test_transcripts_that_a_task_does_not_name_take_the_calls_over_and_give_them_back(write, tmp_path):
    """The answer of a kept catalog equals that of a fresh one; an advisor's transcript is no sub-agent's."""
    result = delegated(9, ("Scout", 30))
    del result["message"]["details"]["results"]
    write(f"{MAIN}.jsonl", header("main"), *turn(1), result)
    write(f"{MAIN}/__advisor.jsonl", header("advisor", 3), *turn(4, "Advise", 5))
    host = Host(tmp_path, {})

    def charges():
        SessionManager(host).list(Query(agents=("omp",)))
        return len(SessionManager(host).get("omp", "main").charges)

    assert charges() == 2
    transcript = write(f"{MAIN}/Scout.jsonl", header("scout", 3), *turn(4, "Look", 30))
    assert charges() == 1
    transcript.unlink()
    assert charges() == 2


def test_sub_agents_of_sub_agents_and_advisors_belong_to_the_main_session(write, sessions):
    write(f"{MAIN}.jsonl", header("main"), *turn(1))
    write(f"{MAIN}/Scout.jsonl", header("scout", 3), *turn(4))
    write(f"{MAIN}/Scout/Deeper.jsonl", header("deeper", 6), *turn(7))
    write(f"{MAIN}/__advisor.jsonl", *turn(10))
    write(f"{MAIN}/data.jsonl", {"rows": 3})

    found = sessions()

    assert {id: one.parent_id for id, one in found.items()} == {
        "main": None,
        "scout": "main",
        "deeper": "main",
        "main-__advisor": "main",
    }


def test_sub_agents_outlive_their_parents_file(write, sessions):
    write(f"{MAIN}/Scout.jsonl", header("scout", 3), *turn(4))

    assert sessions()["scout"].parent_id == "main"


def test_what_an_agent_wrote_is_a_prompt_to_a_sub_agent_only(write, sessions):
    write(f"{MAIN}.jsonl", header("main"), *turn(1, "Go on", attribution="agent"))
    write(f"{MAIN}/Scout.jsonl", header("scout", 3), *turn(4, "Look", attribution="agent"))

    found = sessions()

    assert [message.role for message in found["main"].messages] == ["system", "assistant"]
    assert [message.role for message in found["scout"].messages] == ["user", "assistant"]


def test_a_report_from_the_background_is_told_of(write, sessions):
    report = entry("r", "a2", 3, "custom_message", customType="async-result", content="Scout is done", display=False)
    write(f"{MAIN}.jsonl", header("main"), *turn(1), report)

    last = sessions()["main"].messages[-1]

    assert (last.role, last.content, last.event) == ("system", "Scout is done", "notification")


# Tools


def test_long_output_comes_from_its_own_file_if_that_is_the_one(write, sessions, tmp_path):
    long = "line\n" * 1000
    for id, size in (("main", len(long)), ("other", 3)):
        cut = {"meta": {"truncation": {"artifactId": "0", "totalBytes": size}}}
        result = said("r", "a2", 3, "toolResult", "li[…]ne", toolName="mcp/run", toolCallId="c", details=cut)
        write(f"{FOLDER}/2026-11-18T06-00-00-000Z_{id}.jsonl", header(id), *turn(1), result)
        folder = tmp_path / FOLDER / f"2026-11-18T06-00-00-000Z_{id}"
        folder.mkdir()
        (folder / "0.mcp_run.log").write_text(long)

    found = sessions()

    assert found["main"].messages[-1].content == long
    assert found["other"].messages[-1].content == "li[…]ne"


def test_a_tool_took_as_long_as_from_its_start_to_its_result(write, sessions):
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}, "intent": "low"}
    asked = entry("a3", "a2", 3, "message", message={"role": "assistant", "content": [call], "usage": used(1)})
    data = {"toolCallId": "c", "startedAt": time(4)}
    start = entry("s", "a3", 4, "custom", customType="tool_execution_start", data=data)
    result = said("r", "s", 6, "toolResult", "text", toolName="read", toolCallId="c")
    write(f"{MAIN}.jsonl", header("main"), *turn(1), asked, start, result)

    (done,) = sessions()["main"].messages[-2].tool_calls

    assert (done.output, done.duration_ms) == ("text", 2000)


def test_calls_outside_the_conversation_count(write, sessions):
    call = entry("u", "a2", 3, "model_usage", purpose="title", role="tiny", provider="acme", model="s", usage=used(5))
    write(f"{MAIN}.jsonl", header("main"), *turn(1), call)

    found = sessions()["main"]

    assert [(one.model, one.usage.input_tokens) for one in found.charges] == [("acme-1", 100), ("s", 5)]
    assert len(found.messages) == 2


# Where files lie


@pytest.mark.parametrize(
    ("path", "env"),
    [
        (".omp/profiles/work/agent/sessions/-shop/2026-11-18T06-00-00-000Z_main.jsonl", {}),
        ("data/omp/profiles/work/sessions/-shop/2026-11-18T06-00-00-000Z_main.jsonl", {"XDG_DATA_HOME": "~/data"}),
        (".other/agent/sessions/-shop/2026-11-18T06-00-00-000Z_main.jsonl", {"PI_CONFIG_DIR": ".other"}),
        ("flat/2026-11-18T06-00-00-000Z_main.jsonl", {"PI_CODING_AGENT_SESSION_DIR": "~/flat"}),
        (".omp/agent/sessions/home-shop-0123abcd/15d2a2d13fbd3348.jsonl", {}),
        (".omp/agent/sessions/main/session.jsonl", {}),
    ],
)
def test_directories_of_all_versions(write, sessions, path, env):
    write(path, slot(""), header("main"), *turn(1))

    assert list(sessions(**env)) == ["main"]


def test_files_noted_as_lying_elsewhere_are_found_with_their_sub_agents(write, sessions, tmp_path):
    """In a home that was copied from elsewhere too."""
    note = tmp_path / ".omp/agent/custom-session-files/0123"
    note.parent.mkdir(parents=True)
    note.write_text("/home/someone/kept/work.jsonl\n")
    write("kept/work.jsonl", slot(""), header("main"), *turn(1))
    write("kept/work/Scout.jsonl", slot(""), header("scout"), *turn(1))
    write("kept/unrelated.jsonl", slot(""), header("unrelated"), *turn(1))

    assert {id: one.parent_id for id, one in sessions().items()} == {"main": None, "scout": "main"}


def test_left_over_rewrites_are_no_sessions(write, sessions):
    write(f"{MAIN}.jsonl.1794982853195.bak", slot(""), header("main"), *turn(1))

    assert sessions() == {}


def test_a_session_is_resumed_where_the_program_finds_it(write, sessions, tmp_path):
    (tmp_path / ".omp/agent/custom-session-files").mkdir(parents=True)
    file = write("kept/work.jsonl", slot(""), header("kept"), *turn(1))
    (tmp_path / ".omp/agent/custom-session-files/0123").write_text(str(file))
    write(".omp/profiles/work/agent/sessions/-/2026-11-18T06-00-00-000Z_p.jsonl", slot(""), header("p"), *turn(1))
    found = sessions()
    with open_reader("omp", Host(tmp_path, {})) as reader:
        assert reader.resume_command(found["kept"], None) == ["omp", "--resume", str(file)]
        assert reader.resume_command(found["p"], None) == ["omp", "--profile", "work", "--resume", "p"]


def test_sub_agents_cannot_be_resumed(write, sessions, tmp_path):
    write(f"{MAIN}.jsonl", header("main"), *turn(1))
    write(f"{MAIN}/Scout.jsonl", header("scout", 3), *turn(4))
    found = sessions()
    with open_reader("omp", Host(tmp_path, {})) as reader:
        assert reader.resume_command(found["main"], None) == ["omp", "--resume", "main"]
        assert reader.fork_command(found["main"], "acme-2") == ["omp", "--model", "acme-2", "--fork", "main"]
        assert reader.resume_command(found["scout"], None) is None


# Forks


def test_a_fork_that_copied_its_parents_sub_agents_does_not_own_them(write, sessions, tmp_path):
    copy = f"{FOLDER}/2026-11-18T06-01-00-000Z_fork"
    for folder, own in ((MAIN, header("main")), (copy, header("fork", 60, parentSession="main"))):
        write(f"{folder}.jsonl", own, *turn(1), delegated(9, ("Scout", 30)))
        write(f"{folder}/Scout.jsonl", header("scout", 3), *turn(4, "Look", 30))
    write(f"{FOLDER}/2026-11-18T06-02-00-000Z_other.jsonl", header("other", 120), *turn(121, input=7))
    write(f"{FOLDER}/2026-11-18T06-02-00-000Z_other/Scout.jsonl", header("spied", 3), *turn(4, "Seen", 31))
    found = sessions()
    listed = SessionManager(Host(tmp_path, {}), cache=False).list(Query(agents=("omp",), subagents=True))

    assert sorted(one.session_id for one in listed) == ["fork", "main", "other", "scout", "spied"]
    assert (found["scout"].parent_id, found["spied"].parent_id) == ("main", "other")
    assert (found["main"].cost.input_tokens, found["fork"].cost.input_tokens) == (130, 0)


def test_a_copy_takes_the_place_of_sub_agents_that_are_gone(write, tmp_path):
    """The answer of a kept catalog equals that of a fresh one."""
    copy = f"{FOLDER}/2026-11-18T06-01-00-000Z_fork"
    write(f"{copy}.jsonl", header("fork", 60, parentSession="main"), *turn(1))
    transcript = write(f"{MAIN}/Scout.jsonl", header("scout", 3), *turn(4, "Look", 30))
    write(f"{copy}/Scout.jsonl", header("scout", 3), *turn(4, "Look", 30))
    host, query = Host(tmp_path, {}), Query(agents=("omp",), subagents=True)

    def parents():
        return {one.session_id: one.parent_id for one in SessionManager(host).list(query)}

    assert parents() == {"fork": None, "scout": "main"}
    transcript.unlink()
    assert parents() == {"fork": None, "scout": "fork"}
