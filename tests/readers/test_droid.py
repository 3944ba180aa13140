"""What is odd about droid: lines of the user's that nobody typed, usage kept per session, forks of three kinds."""

import json

import pytest

from amux.manager import SessionManager
from amux.query import Query
from amux.readers import open_reader
from amux.readers._base import Host

SHOP = ".factory/sessions/-home-dev-shop"
DAMAGED = ("gone", "", 7, ["x1"])
REMINDER = {
    "type": "text",
    "text": "<system-reminder>\nUser system info\n% pwd\n/home/dev/old\n% ls\n</system-reminder>",
}


def time(second):
    return f"2026-11-18T06:{second // 60:02}:{second % 60:02}.000Z"


def header(id, **more):
    return {"type": "session_start", "id": id, "title": "New Session", "version": 2, "cwd": "/home/dev/shop", **more}


def said(id, second, role, content, parent=None, **more):
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    link = {"parentId": parent} if parent else {}
    message = {"role": role, "content": blocks, **more}
    return {"type": "message", "id": id, **link, "timestamp": time(second), "message": message}


def turn(second, prompt="Hello", id="a", parent=None, **more):
    return [
        said(f"{id}1", second, "user", prompt, parent),
        said(f"{id}2", second + 1, "assistant", f"Re: {prompt}", f"{id}1", modelId="glm-4.6", **more),
    ]


def summary(second, text, **more):
    return {"type": "compaction_state", "id": f"c{second}", "timestamp": time(second), "summaryText": text, **more}


def used(input, output, read=0, **more):
    tokens = {"inputTokens": input, "outputTokens": output, "cacheReadTokens": read, "cacheCreationTokens": 0}
    return {"model": "glm-4.6", "tokenUsage": {**tokens, "thinkingTokens": 0, "factoryCredits": 5019}, **more}


@pytest.fixture
def write(tmp_path):
    def write(id, *records, settings=None, where=SHOP):
        file = tmp_path / where / f"{id}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records))
        if settings is not None:
            file.with_name(f"{id}.settings.json").write_text(json.dumps(settings))
        return file

    return write


@pytest.fixture
def sessions(tmp_path):
    """The sessions of a home by id, as the catalog links them."""

    def sessions(**env):
        manager = SessionManager(Host(tmp_path, env), cache=False)
        listed = manager.list(Query(agents=("droid",), subagents=True))
        assert manager.skipped == []
        return {one.session_id: manager.get("droid", one.session_id) for one in listed}

    return sessions


def texts(session, *roles):
    return [message.content for message in session.messages if message.role in (roles or ("user", "assistant"))]


# Where it lies


def test_files_are_found_at_any_depth_and_their_neighbours_are_not(write, sessions):
    write("flat", header("flat"), *turn(0), where=".factory/sessions")
    write("side", header("side"), *turn(0), where=".factory/sessions/btw")
    write("deep", header("deep"), *turn(0)).with_name("deep.settings.json.bak").write_text("{}")
    write("elsewhere", header("elsewhere"), *turn(0), where=".factory/logs")

    assert set(sessions()) == {"flat", "side", "deep"}


def test_a_variable_stands_for_the_home(tmp_path, write, sessions):
    write("moved", header("moved"), *turn(0), where="else/.factory/sessions/-x")

    assert set(sessions(FACTORY_HOME_OVERRIDE=str(tmp_path / "else"))) == {"moved"}


def test_a_file_with_nothing_but_a_header_is_no_session(write, sessions):
    write("refused", header("refused"), settings=used(0, 0))

    assert sessions() == {}


def test_the_header_says_the_id_unless_it_could_be_an_option(write, sessions):
    write("a-copy", header("real"), *turn(0))
    write("second", header("--auto=high"), *turn(0))

    assert set(sessions()) == {"real", "second"}


def test_before_the_header_had_it_the_directory_was_told_to_the_model(write, sessions):
    first = said("a", 0, "user", [REMINDER, {"type": "text", "text": "Hello"}])
    write("old", {"type": "session_start", "id": "old", "title": "Hello", "owner": "dev"}, first)
    write("moved", header("moved", lastCwd="/home/dev/else"), *turn(0))
    found = sessions()

    assert found["old"].cwd == "/home/dev/old"
    assert found["moved"].cwd == "/home/dev/else"


# Titles


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ({"title": "Fix the cart and"}, "Fix the cart"),
        ({"title": "Fix the cart and then..."}, "Fix the cart"),
        ({"title": "Cart repair"}, "Cart repair"),
        ({"title": "Fix the cart and", "sessionTitle": "Cart repair"}, "Cart repair"),
        ({"title": "Cart repair", "sessionTitle": "New Session"}, "Cart repair"),
        ({"title": "Fix the cart and", "isSessionTitleManuallySet": True}, "Fix the cart and"),
        ({"title": "<system-reminder>\nUser system info"}, "Fix the cart"),
        ({"title": "New Session"}, "Fix the cart"),
    ],
)
def test_a_title_that_repeats_the_prompt_is_none(write, sessions, names, wanted):
    write("one", header("one", **names), *turn(0, "Fix the cart\nand then the till"))

    assert sessions()["one"].title == wanted


# What was typed


def test_context_hooks_and_errors_are_no_prompts(write, sessions):
    write(
        "one",
        header("one"),
        said("context-1", 0, "user", "You are in a shop"),
        said("a", 1, "user", [REMINDER, {"type": "text", "text": "Hello"}], "context-1"),
        said("h", 2, "user", [], "a", visibility="user_only", hookEventName="PreToolUse", hookStatus="completed"),
        said("b", 3, "user", "Skills: none", "a", visibility="llm_only"),
        said("c", 4, "user", "Later", "b", hiddenFromUserViews=True),
        said("d", 5, "user", "Later still", "c", isUserVisible=False),
        said("e", 6, "user", "<system-notification>A task ended</system-notification>", "d"),
        said("f", 7, "user", "BYOK Error: 400", "e", visibility="user_only"),
    )
    one = sessions()["one"]

    assert texts(one) == ["Hello"]
    assert [(m.content, m.event, m.is_error) for m in one.messages if m.role == "system"] == [
        ("BYOK Error: 400", "error", True)
    ]


def test_content_comes_in_every_shape_others_write(write, sessions):
    plain = {"role": "user", "content": "<system-reminder>x</system-reminder>\nHello"}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    paper = {"type": "document", "source": {"media_type": "application/pdf", "name": "a.pdf", "data": ""}}
    write(
        "one",
        header("one"),
        {"type": "message", "id": "a", "timestamp": "not a time", "message": plain},
        {
            "type": "message",
            "id": "b",
            "timestamp": time(1),
            "role": "assistant",
            "content": ["Hi", {"type": "custom"}],
        },
        said("c", 2, "user", ["And this", image, paper]),
    )
    one = sessions()["one"]

    assert texts(one) == ["Hello", "Hi", "And this"]
    assert [(a.kind, a.media_type, a.name) for a in one.messages[2].attachments] == [
        ("image", "image/png", None),
        ("document", "application/pdf", "a.pdf"),
    ]


def test_a_tool_result_may_stand_beside_its_call(write, sessions):
    call = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "a"}}
    result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "is_error": True,
        "content": [{"type": "text", "text": "gone"}],
    }
    write("one", header("one"), said("a", 0, "user", "Read it"), said("b", 1, "assistant", [call, result], "a"))
    one = sessions()["one"]

    assert [message.role for message in one.messages] == ["user", "assistant", "tool"]
    assert (one.messages[1].tool_calls[0].output, one.messages[1].tool_calls[0].is_error) == ("gone", True)
    assert one.messages[2].tool_result.tool_name == "Read"


def test_thinking_kept_beside_the_blocks_is_told_once(write, sessions):
    block = {"type": "thinking", "thinking": "Plan", "signature": "reasoning_content"}
    write(
        "one",
        header("one"),
        said("a", 0, "assistant", "Hi", openaiReasoningSummary="Ponder"),
        said("b", 1, "assistant", [block], "a", chatCompletionReasoningContent="Plan"),
    )

    assert [message.thinking for message in sessions()["one"].messages] == ["Ponder", "Plan"]


# Order


def test_an_abandoned_branch_is_left_out_but_was_a_call(write, sessions):
    first, second = turn(0, "One"), turn(10, "Two", "b", "a2")
    write("one", header("one"), *first, *second, *turn(20, "Three", "d", "a2"), settings=used(30, 3))
    one = sessions()["one"]

    assert texts(one, "user") == ["One", "Three"]
    assert one.charges[0].calls == 3


@pytest.mark.parametrize(("link", "before"), [({"parentId": None}, []), ({}, ["One", "Re: One"])])
def test_a_rewind_to_the_first_prompt_begins_anew(write, sessions, link, before):
    """A prompt that says nothing of its parent may have lost it: what stands before came before."""
    again = turn(10, "Two", "b")
    write("one", header("one"), *turn(0, "One"), {**again[0], **link}, again[1], settings=used(30, 3))
    one = sessions()["one"]

    assert texts(one) == [*before, "Two", "Re: Two"]
    assert one.charges[0].calls == 2


def test_only_a_prompt_begins_anew(write, sessions):
    """Context comes without a parent, lines of the first versions may, and damage knows no bounds."""
    old = [said("x1", 0, "user", "Zero"), said("x2", 1, "assistant", "Re: Zero")]
    context = said("context-1", 10, "user", [REMINDER], visibility="llm_only")
    error = said("e", 20, "user", "No key", visibility="user_only")
    damaged = [
        {**said(f"d{number}", 30, "user", f"Damaged {number}"), "parentId": id} for number, id in enumerate(DAMAGED)
    ]
    write(
        "one",
        header("one"),
        *old,
        *turn(5, "One", "a", "x2"),
        context,
        *turn(15, "Two", "b", "context-1"),
        error,
        *damaged,
    )
    one = sessions()["one"]

    assert texts(one, "user", "system") == [
        "Zero",
        "One",
        "Two",
        "No key",
        *(f"Damaged {n}" for n in range(len(DAMAGED))),
    ]


def test_a_torn_line_does_not_cut_the_conversation(write, sessions):
    first, second, third = turn(0, "One"), turn(10, "Two", "b", "a2"), turn(20, "Three", "d", "b2")
    write("one", header("one"), *first, json.dumps(second[0])[:40], *second[1:], *third)

    assert texts(sessions()["one"], "user") == ["One", "Three"]
    assert texts(sessions()["one"], "assistant") == ["Re: One", "Re: Two", "Re: Three"]


def test_a_summary_is_told_where_it_was_made_unless_it_is_the_conversation_again(write, sessions):
    again = summary(6, "User: One", summaryKind="provider_switch_serialization", systemInfo={"env": ["SECRET"]})
    write("one", header("one"), *turn(0, "One"), summary(5, "So far: one"), again, *turn(10, "Two", "b", "a2"))
    one = sessions()["one"]

    assert texts(one, "user", "system") == ["One", "So far: one", "Two"]
    assert one.messages[2].event == "compaction"


def test_the_environment_a_summary_names_is_not_exported(tmp_path, write):
    write("one", header("one"), *turn(0), summary(5, "So far", systemInfo={"env": ["SECRET"]}, systemInfoText="SECRET"))
    manager = SessionManager(Host(tmp_path, {}), cache=False)

    assert "SECRET" not in json.dumps(manager.get("droid", "one", raw=True).raw)


# Usage


def test_usage_that_was_not_kept_is_unknown(write, sessions):
    write("without", header("without"), *turn(0))
    write("damaged", header("damaged"), *turn(0)).with_name("damaged.settings.json").write_text('{"tokenUsage": {"inp')
    write("fresh", header("fresh"), said("a", 0, "user", "Hello"), settings={"model": "glm-4.6"})
    found = sessions()

    assert found["without"].cost is None
    assert found["damaged"].cost is None
    assert found["fresh"].cost.input_tokens == 0


def test_a_session_of_several_models_names_them_all(write, sessions):
    first, second = turn(0), turn(10, "More", "b", "a2", reasoningEffort="high")
    third = said("c", 20, "assistant", "Hm", "b2", modelId="custom:Mock-0")
    write("one", header("one"), *first, *second, third, settings=used(30, 3, providerLock="factory"))
    one = sessions()["one"]

    assert (one.model, one.models) == ("glm-4.6", ("glm-4.6", "custom:Mock-0"))
    assert (one.charges[0].model, one.charges[0].calls, one.charges[0].provider) == ("glm-4.6", 3, "factory")


def test_what_settings_say_of_a_session(write, sessions):
    told = used(1, 1, tags=[{"name": "exec"}, "code-review"], archivedAt=time(9), autonomyMode="auto-high")
    write("one", header("one"), *turn(0), settings=told)
    one = sessions()["one"]

    assert (set(one.tags), one.archived, one.mode) == ({"exec", "code-review"}, True, "auto-high")


# Forks, successors and sub-agents


def test_a_subagent_is_told_by_header_or_tag(write, sessions):
    tag = {"name": "subagent", "metadata": {"callingSessionId": "main", "callingToolUseId": "t"}}
    inclusive = {"inclusiveTokenUsage": used(11, 2)["tokenUsage"]}
    write("main", header("main"), *turn(0), settings=used(10, 1, **inclusive))
    write("child", header("child", callingSessionId="main", callingToolUseId="t"), *turn(1), settings=used(1, 1))
    write("tagged", header("tagged"), *turn(2), settings=used(1, 1, tags=[tag]))
    found = sessions()

    assert [(found[id].kind, found[id].parent_id) for id in ("main", "child", "tagged")] == [
        ("main", None),
        ("subagent", "main"),
        ("subagent", "main"),
    ]
    assert found["main"].cost.input_tokens == 12


def test_a_fork_of_a_subagent_is_a_fork(write, sessions):
    tag = {"name": "subagent", "metadata": {"callingSessionId": "main"}}
    copied = header("fork", parent="child", forkedAtMessageId="a2", callingSessionId="main")
    write("fork", copied, *turn(0), *turn(60, "More", "b", "a2"), settings=used(10, 1, tags=[tag]))
    fork = sessions()["fork"]

    assert (fork.kind, fork.parent_id, fork.forked_from) == ("main", None, "child")
    assert [message.inherited for message in fork.messages] == [True, True, False, False]
    assert fork.charges[0].calls == 1
    assert fork.created_at.isoformat() == "2026-11-18T06:01:00+00:00"


def test_a_fork_whose_last_copied_line_is_torn(write, sessions):
    first, second = turn(0)
    mark = header("fork", parent="gone", forkedAtMessageId="a2")
    write("fork", mark, first, json.dumps(second)[:50], *turn(60, "More", "b", "a2"), settings=used(10, 1))
    fork = sessions()["fork"]

    assert [message.inherited for message in fork.messages] == [True, False, False]


def test_an_old_fork_names_only_its_parent(write, sessions):
    write("main", header("main"), *turn(0), *turn(30, "Also", "c", "a2"), settings=used(20, 2))
    more = turn(60, "More", "b", "a2")
    write("fork", header("fork", parent="main"), *turn(0), *more, settings=used(10, 1), where=f"{SHOP}-else")
    write("orphan", header("orphan", parent="gone"), *turn(0), *more, settings=used(10, 1))
    found = sessions()

    assert found["fork"].forked_from == "main"
    assert [message.inherited for message in found["fork"].messages] == [True, True, False, False]
    assert (found["fork"].charges[0].calls, found["fork"].cost.input_tokens) == (1, 10)
    assert (found["orphan"].forked_from, found["orphan"].charges[0].calls) == ("gone", 2)


def test_compacting_by_hand_goes_on_in_a_file_whose_usage_begins_at_the_parents(tmp_path, write, sessions):
    write("main", header("main"), *turn(0), settings=used(100, 20, 7))
    after = [summary(50, "So far", summaryKind="llm_summary"), *turn(60, "More", "b")]
    write("next", header("next", parent="main"), *after, settings=used(130, 26, 7))
    found = sessions()
    total = SessionManager(Host(tmp_path, {}), cache=False).total_cost(Query(agents=("droid",)))

    assert (found["next"].forked_from, texts(found["next"], "system")) == ("main", ["So far"])
    assert not any(message.inherited for message in found["next"].messages)
    assert (found["next"].cost.input_tokens, found["next"].cost.output_tokens, found["next"].cost.cached_tokens) == (
        30,
        6,
        0,
    )
    assert (total.input_tokens, total.output_tokens, total.call_count) == (130, 26, 2)


def test_a_compacted_session_is_read_again_when_its_parent_goes(tmp_path, write):
    parent = write("main", header("main"), *turn(0), settings=used(100, 20))
    write("next", header("next", parent="main"), summary(50, "So far"), *turn(60, "More", "b"), settings=used(130, 26))
    host, query = Host(tmp_path, {}), Query(agents=("droid",))
    assert SessionManager(host).total_cost(query).input_tokens == 130

    parent.unlink()
    parent.with_name("main.settings.json").unlink()

    assert SessionManager(host).total_cost(query).input_tokens == 130


def test_a_session_that_names_itself_as_parent(write, sessions):
    write("one", header("one", parent="one"), *turn(0), settings=used(10, 1))

    assert sessions()["one"].cost.input_tokens == 10


# Commands


def test_commands(write, tmp_path, sessions):
    write("332200a9-6311-47c4-ab98-00e2e6184afd", header("332200a9-6311-47c4-ab98-00e2e6184afd"), *turn(0))
    (one,) = sessions().values()
    reader = open_reader("droid", Host(tmp_path, {}))

    assert reader.resume_command(one, None) == ["droid", "--resume", one.session_id]
    assert reader.fork_command(one, "glm-4.6") == ["droid", "--fork", one.session_id]
