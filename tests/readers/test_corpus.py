"""What every reader owes, over every scenario: the truth, which came from the model's side and not from the files."""

import gc
from typing import Any

import pytest

from amux import readers
from amux.cost import Report
from amux.model import CostRecord
from amux.query import Query
from amux.readers._base import Host

TOKENS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cached_tokens",
    "cacheWrite": "cache_write_tokens",
    "reasoning": "thinking_tokens",
}


def mains(case) -> list[dict[str, Any]]:
    return [truth for truth in case.sessions if truth["kind"] == "main"]


def in_order(wanted: list[str], texts: list[str]) -> bool:
    """Whether each wanted text is in one of the texts, each in a later one than the one before."""
    remaining = iter(texts)
    return all(any(one in text for text in remaining) for one in wanted)


def same_tokens(cost: CostRecord | None, usage: dict[str, int | None]) -> None:
    for name, field in TOKENS.items():
        if usage[name] is not None:
            assert (getattr(cost, field) or 0) == usage[name], name


def test_every_agent_has_a_scenario(corpus):
    assert {path.parent.name for path in corpus.scenarios()} == set(readers.names())


def test_lists_exactly_the_sessions(case):
    listed = case.listed()

    assert {truth["id"] for truth in mains(case)} <= set(listed)
    extra = [one for id, one in listed.items() if id not in {truth["id"] for truth in mains(case)}]
    assert [one for one in extra if one.message_count] == []


def test_lists_subagents_when_asked(case):
    listed = case.listed(subagents=True)

    assert {case.id_of(truth) for truth in case.sessions} <= set(listed)
    for truth in case.sessions:
        assert listed[case.id_of(truth)].kind == truth["kind"]


def test_says_what_a_session_is(case):
    listed = case.listed(subagents=True)
    for truth in case.sessions:
        found = listed[case.id_of(truth)]
        for name, field in (("title", "title"), ("cwd", "cwd"), ("model", "model")):
            if truth[name] is not None:
                wanted = truth[name]
                assert getattr(found, field) == (
                    wanted if name != "title" or len(wanted) <= 100 else wanted[:99].rstrip() + "…"
                )
        assert found.archived is bool(truth["archived"])
        assert set(truth["tags"] or ()) <= set(found.tags)
        assert found.forked_from == truth["forkedFrom"]
        assert found.parent_id == truth["parent"]


def test_prompts_come_back_in_order(case):
    """Whatever the agent, each prompt typed is a user message, once, in order."""
    for truth in case.sessions:
        typed = [m.content for m in case.read(case.id_of(truth)).messages if m.role == "user"]

        assert typed == truth["prompts"]
        assert not set(truth["absentPrompts"]) & set(typed)


def test_untitled_sessions_are_called_by_their_first_prompt(case):
    for truth in case.sessions:
        session = case.read(case.id_of(truth))
        if truth["title"] is None and truth["prompts"]:
            first = next(line.strip() for line in truth["prompts"][0].split("\n") if line.strip())

            assert session.kind == "subagent" or (session.title and first.startswith(session.title.rstrip("…")))


def test_replies_come_back_once_and_in_order(case):
    for truth in case.sessions:
        replies = [m.content for m in case.read(case.id_of(truth)).messages if m.role == "assistant"]

        assert in_order(truth["replies"], replies)
        for reply in set(truth["replies"]):
            assert sum(reply in text for text in replies) == sum(reply in one for one in truth["replies"])


def test_thinking_comes_back(case):
    for truth in case.sessions:
        thoughts = [m.thinking for m in case.read(case.id_of(truth)).messages if m.thinking]

        assert in_order(truth["thinking"], thoughts)


def test_tool_calls_and_outputs_come_back(case):
    for truth in case.sessions:
        session = case.read(case.id_of(truth))
        calls = [call for m in session.messages for call in m.tool_calls]
        outputs = [m.content for m in session.messages if m.role == "tool"]

        assert [call.tool_name for call in calls] == [call["name"] for call in truth["toolCalls"]]
        for call, wanted in zip(calls, truth["toolCalls"], strict=True):
            given = wanted["input"]
            if isinstance(given, dict):
                assert {name: call.input.get(name) for name in given} == given
            else:
                assert call.input == given
        for output in truth["toolOutputs"]:
            assert any(output in text for text in outputs)
            assert any(output in (call.output or "") for call in calls)


def test_usage_and_money_are_its_own(case):
    report = case.spent(Report(group_by=("session",), mode="native")).breakdowns or {}
    families: dict[str, list[dict[str, Any]]] = {}
    for truth in case.sessions:
        families.setdefault(truth["parent"] or truth["id"], []).append(truth)
    for main, members in families.items():
        spent = report.get(f"{case.agent}:{main}") or next((row for key, row in report.items() if main in key), None)
        known = [truth["usage"] for truth in members if truth["usage"]]
        if not known:
            assert spent is None
            continue
        for name, field in TOKENS.items():
            if all(usage[name] is not None for usage in known):
                assert (getattr(spent, field, None) or 0) == sum(usage[name] for usage in known), (main, name)
        if all(truth["calls"] is not None for truth in members):
            assert (spent.call_count if spent else 0) == sum(truth["calls"] for truth in members)
        paid = [truth["usd"] for truth in members if truth["usd"] is not None]
        if paid:
            assert float((spent.total_usd if spent else None) or 0) == pytest.approx(sum(paid), abs=1e-9)


def test_a_subagent_has_its_own_usage(case):
    listed = case.listed(subagents=True)
    for truth in case.sessions:
        if truth["kind"] == "subagent" and truth["usage"]:
            same_tokens(listed[case.id_of(truth)].cost, truth["usage"])


def test_what_cannot_be_told_is_unknown(case):
    listed = case.listed(subagents=True)
    for truth in case.sessions:
        if truth["usage"] is None:
            assert listed[case.id_of(truth)].cost is None


def test_each_call_counts_once_over_the_home(case):
    total = case.truth.get("total")
    if total:
        same_tokens(case.spent(), total)


def test_times_are_there_and_in_order(case):
    for summary in case.listed(subagents=True).values():
        assert summary.created_at <= summary.updated_at
        assert summary.created_at.year > 2000
        session = case.read(summary.session_id)
        assert (session.created_at, session.updated_at) == (summary.created_at, summary.updated_at)


def test_list_and_show_agree(case):
    for summary in case.listed(subagents=True).values():
        session = case.read(summary.session_id)
        for field in (
            "title",
            "turn_count",
            "message_count",
            "model",
            "cwd",
            "forked_from",
            "parent_id",
            "cost",
            "kind",
            "tags",
        ):
            assert getattr(session, field) == getattr(summary, field), field
        assert len(session.messages) == summary.message_count


def test_nothing_was_unreadable(case):
    case.listed()

    assert case.manager.skipped == []


def test_what_a_fork_inherited_is_marked(case):
    for truth in case.sessions:
        messages = case.read(case.id_of(truth)).messages
        if not truth["forkedFrom"]:
            assert not any(m.inherited for m in messages)
            continue
        parent = [m.content for m in case.read(truth["forkedFrom"]).messages if m.role == "user"]
        copied = [m.content for m in messages if m.role == "user" and m.inherited]
        assert copied == [prompt for prompt in truth["prompts"] if prompt in parent][: len(copied)]
        assert copied or not set(parent) & set(truth["prompts"])


def test_the_home_stays_as_it_was(corpus, tmp_path):
    for path in corpus.scenarios():
        case = corpus.open_case(path, tmp_path / path.parent.name / path.name)
        before = case.files()
        for summary in case.listed(subagents=True).values():
            case.manager.get(case.agent, summary.session_id, raw=True)
        case.manager.search("marmalade", Query(agents=(case.agent,)))
        case.spent()

        assert case.files() == before


def test_what_was_read_is_let_go_without_the_garbage_collector(case):
    """Filling the catalog does without it: what holds itself would stay until the end."""
    with readers.open_reader(case.agent, Host(case.home, case.env)) as reader:
        refs = [ref for ref in reader.refs() if not ref.reason]
        for ref in refs:
            reader.read(ref)  # what is loaded at first may leave something
        gc.collect()
        gc.disable()
        try:
            for ref in refs:
                reader.read(ref)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            assert gc.garbage == []
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
