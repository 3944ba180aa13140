"""Sessions compared: the alignment is a longest one, and what is shown of it adds up."""

import random
import time
import tracemalloc
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise

import pytest

from amux.diff import Balance, Departure, balance, common, departure, difference, files, longest, words
from amux.model import CostRecord, Message, Session, ToolCall, ToolResult, Usage

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def session(*messages, agent="claude", session_id="a", turn_count=0, **known):
    return Session(
        agent=agent,
        session_id=session_id,
        title="",
        created_at=NOON,
        updated_at=NOON,
        turn_count=turn_count,
        message_count=len(messages),
        messages=messages,
        **known,
    )


def user(text):
    return Message("user", text)


def assistant(text, *tool_calls, **known):
    return Message("assistant", text, tool_calls=tool_calls, **known)


def call(name, given, call_id="1"):
    return ToolCall(call_id, name, given)


def answer(output, call_id="1"):
    return Message("tool", output, tool_result=ToolResult(call_id, "Bash", output))


def said(*texts):
    return session(*(user(text) for text in texts))


def shape(diff):
    return [(operation.type, operation.index_a, operation.index_b) for operation in diff.operations]


def counts(diff):
    stats = diff.stats
    return stats.unchanged, stats.modifications, stats.removals, stats.additions


def quadratic_length(a, b):
    lengths = [0] * (len(b) + 1)
    for x in a:
        diagonal = 0
        for j, y in enumerate(b, start=1):
            diagonal, lengths[j] = lengths[j], diagonal + 1 if x == y else max(lengths[j], lengths[j - 1])
    return lengths[-1]


def shuffled(seed, size, kinds):
    chance = random.Random(seed)
    return [chance.randrange(kinds) for _ in range(size)], [chance.randrange(kinds) for _ in range(size)]


def assert_is_common_subsequence(pairs, a, b):
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < next_i and j < next_j for (i, j), (next_i, next_j) in pairwise(pairs))


@pytest.mark.parametrize("align", [common, longest])
@pytest.mark.parametrize("kinds", [1, 2, 4, 30])
def test_alignment_is_as_long_as_the_plain_method_finds(align, kinds):
    chance = random.Random(kinds)
    for _ in range(200):
        a, b = ([chance.randrange(kinds) for _ in range(chance.randrange(30))] for _ in "ab")

        pairs = align(a, b)

        assert_is_common_subsequence(pairs, a, b)
        assert len(pairs) == quadratic_length(a, b)


@pytest.mark.parametrize("kinds", [3, 300])
def test_alignment_over_several_blocks_of_rows(kinds):
    a, b = shuffled(kinds, 700, kinds)

    pairs = common(a, b)

    assert_is_common_subsequence(pairs, a, b)
    assert len(pairs) == quadratic_length(a, b)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("ABCBDAB", "BDCABA", 4),
        ("XMJYAUZ", "MZJAWXU", 4),
        ("", "ABC", 0),
        ("ABC", "", 0),
        ("ABC", "ABC", 3),
        ("ABC", "XYZ", 0),
        ("ABXC", "ABC", 3),
        ("AAAA", "AA", 2),
    ],
)
def test_known_pairs(a, b, expected):
    assert len(common(a, b)) == expected


def test_more_items_than_masks_are_kept_still_align(monkeypatch):
    monkeypatch.setattr("amux.diff.MASKS_KEPT", 2)
    a, b = shuffled(7, 60, 9)

    assert len(longest(a, b)) == quadratic_length(a, b)


def test_memory_stays_far_below_that_of_all_rows():
    """20,000 rows of 20,000 bits would be 53 MB."""
    items = list(range(20_000))
    other = random.Random(2).sample(items, len(items))
    tracemalloc.start()
    try:
        longest(items, other)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 25_000_000


def test_two_sessions_of_five_thousand_messages_in_seconds():
    chance = random.Random(5)
    texts = [str(chance.randrange(3000)) * 50 for _ in range(10_000)]
    roles = [chance.choice((user, assistant)) for _ in texts]
    messages = [role(text) for role, text in zip(roles, texts, strict=True)]
    a, b = session(*messages[:5000]), session(*messages[5000:])

    started = time.perf_counter()
    diff = difference(a, b)

    assert time.perf_counter() - started < 10
    assert diff.stats.unchanged + diff.stats.modifications + diff.stats.removals == 5000
    assert diff.stats.unchanged + diff.stats.modifications + diff.stats.additions == 5000
    assert diff.stats.unchanged > 0


def test_session_against_itself_is_all_unchanged():
    a = session(user("hi"), assistant("", call("Bash", {"command": "ls"})), answer("x.py"), assistant("done"))

    diff = difference(a, a)

    assert shape(diff) == [("unchanged", i, i) for i in range(4)]
    assert counts(diff) == (4, 0, 0, 0)
    assert all(operation.message_a is operation.message_b is None for operation in diff.operations)
    assert balance(a, a) == Balance(0, {}, {}, (), (), None, None)
    assert departure(a, a) == Departure(messages=4, turns=1, midway=False)


def test_empty_sessions():
    empty, spoken = session(), said("one", "two")

    assert difference(empty, empty).operations == ()
    assert shape(difference(empty, spoken)) == [("add", None, 0), ("add", None, 1)]
    assert shape(difference(spoken, empty)) == [("remove", 0, None), ("remove", 1, None)]
    assert departure(empty, spoken) == Departure(messages=0, turns=0, midway=False)


def test_sides_say_which_sessions_they_are():
    diff = difference(session(session_id="one"), session(agent="codex", session_id="two"))

    assert (diff.a.agent, diff.a.session_id, diff.a.unified_id) == ("claude", "one", "claude:one")
    assert (diff.b.agent, diff.b.session_id, diff.b.unified_id) == ("codex", "two", "codex:two")


def test_what_differs_carries_its_messages():
    a = session(user("start"), user("old"), assistant("end"), assistant("more"))
    b = session(user("start"), user("new"), assistant("end"), user("thanks"))

    diff = difference(a, b)

    assert shape(diff) == [
        ("unchanged", 0, 0),
        ("modify", 1, 1),
        ("unchanged", 2, 2),
        ("remove", 3, None),
        ("add", None, 3),
    ]
    _, changed, _, removed, added = diff.operations
    assert (changed.message_a, changed.message_b) == (user("old"), user("new"))
    assert (removed.message_a, removed.message_b) == (assistant("more"), None)
    assert (added.message_a, added.message_b) == (None, user("thanks"))


def test_as_many_messages_of_one_role_meet_as_can_in_order():
    a = session(assistant("1"), user("2"), assistant("3"))
    b = session(user("4"), assistant("5"), assistant("6"))

    diff = difference(a, b)

    assert shape(diff) == [("remove", 0, None), ("modify", 1, 0), ("modify", 2, 1), ("add", None, 2)]


def test_of_several_counterparts_the_similar_one_is_taken():
    a = said("please add a metric to the cache")
    b = said("something else", "please add a counter to the cache", "and no more")

    assert shape(difference(a, b)) == [("add", None, 0), ("modify", 0, 1), ("add", None, 2)]


def test_calls_of_a_tool_are_similar_when_their_input_is():
    a = session(assistant("", call("Read", {"file_path": "a.py", "limit": 10})))
    b = session(assistant("", call("Bash", {"command": "ls"})), assistant("", call("Read", {"file_path": "a.py"})))

    assert shape(difference(a, b)) == [("add", None, 0), ("modify", 0, 1)]


def test_similar_counterparts_do_not_cost_a_pair():
    a = said("add one metric", "add two metrics", "add three metrics", "stop")
    b = said("start", "add one metric now", "add two metrics now", "add three metrics now")

    assert counts(difference(a, b)) == (0, 4, 0, 0)


def test_large_gaps_pair_roles_too():
    a = session(*(role(f"a{i}") for i in range(100) for role in (user, assistant)))
    b = session(*(role(f"b{i}") for i in range(90) for role in (user, assistant)))

    assert counts(difference(a, b)) == (0, 180, 20, 0)


def test_operations_replay_both_sessions():
    """Whatever the alignment, each message of either side occurs once and in order."""
    chance = random.Random(11)
    for _ in range(100):
        a, b = (
            session(*(chance.choice((user, assistant))(chance.choice("xyzuvw")) for _ in range(chance.randrange(15))))
            for _ in "ab"
        )

        diff = difference(a, b)

        assert [o.index_a for o in diff.operations if o.index_a is not None] == list(range(len(a.messages)))
        assert [o.index_b for o in diff.operations if o.index_b is not None] == list(range(len(b.messages)))
        for operation in diff.operations:
            if operation.type == "modify":
                assert operation.message_a.role == operation.message_b.role
                assert operation.message_a != operation.message_b


def test_two_agents_that_did_the_same_did_the_same():
    a = session(
        user("list\nthe files"),
        assistant("Looking.", call("Bash", {"command": "ls", "timeout": 5}, "toolu_1"), model="m1", thinking="hm"),
        answer("x.py\n", "toolu_1"),
        assistant("One file.", token_usage=Usage(1, 2), timestamp=NOON),
    )
    b = session(
        user("list\r\nthe files\r\n"),
        assistant("Looking.", call("Bash", {"timeout": 5, "command": "ls"}, "call_9"), model="m2"),
        Message("tool", "x.py", tool_result=ToolResult("call_9")),
        assistant("One file, x.py."),
        agent="codex",
    )

    assert shape(difference(a, b)) == [("unchanged", 0, 0), ("unchanged", 1, 1), ("unchanged", 2, 2), ("modify", 3, 3)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (user("x"), assistant("x")),
        (user("x"), user("X")),
        (user("a\nb"), user("a \nb")),
        (user(" x"), user("x")),
        (assistant("", call("Read", {})), assistant("", call("Write", {}))),
        (assistant("", call("Read", {"limit": 1})), assistant("", call("Read", {"limit": True}))),
        (assistant("", call("Read", {"limit": 1})), assistant("", call("Read", {"limit": "1"}))),
        (assistant("", call("Read", {"a": {"b": []}})), assistant("", call("Read", {"a": {}, "b": []}))),
        (assistant("", call("Read", ["a", "b"])), assistant("", call("Read", ["b", "a"]))),
        (assistant("", call("Read", None)), assistant("")),
        (answer("1 passed"), answer("1 failed")),
        (
            Message("tool", "", tool_result=ToolResult(output="x")),
            Message("tool", "", tool_result=ToolResult(output="y")),
        ),
    ],
)
def test_what_makes_messages_differ(one, other):
    assert difference(session(one), session(other)).stats.unchanged == 0


def test_input_nested_beyond_any_stack_is_compared():
    def nested(innermost):
        value = innermost
        for _ in range(50_000):
            value = {"in": [value]}
        return session(assistant("", call("Odd", value)))

    a, same, other = nested(1), nested(1), nested(2)

    assert difference(a, same).stats.unchanged == 1
    assert difference(a, other).stats.modifications == 1
    assert files(a) == frozenset()


def test_fork_against_its_parent_says_where_it_left():
    shared = (user("cache it"), assistant("", call("Bash", {"command": "ls"})), answer("x.py"), assistant("done"))
    parent = session(*shared, user("and add a metric"), assistant("added"))
    note = Message("system", "forked", event="branch")
    fork = session(note, *shared, user("try an LRU cache"), assistant("tried"), session_id="b", forked_from="a")

    assert departure(parent, fork) == departure(fork, parent) == Departure(messages=4, turns=1, midway=False)


def test_sessions_with_nothing_shared_part_at_the_start():
    assert departure(session(user("x")), session(assistant("y"))) == Departure(messages=0, turns=0, midway=False)


def test_fork_that_left_within_a_turn_says_so():
    parent = session(
        user("cache it"), assistant("", call("Bash", {"command": "ls"})), answer("x.py"), assistant("done")
    )
    fork = session(*parent.messages[:3], user("stop"), session_id="b")

    assert departure(parent, fork) == Departure(messages=3, turns=1, midway=True)


def test_balance_is_what_b_has_more_than_a():
    a = session(
        assistant("", call("Bash", {}), call("Bash", {}), call("Edit", {"file_path": "metrics.py"})),
        turn_count=2,
        cost=CostRecord(total_usd=Decimal("0.31"), output_tokens=900),
    )
    b = session(
        assistant("", call("Bash", {}), call("Read", {"file_path": "cache.py"})),
        turn_count=3,
        cost=CostRecord(total_usd=Decimal("0.12"), output_tokens=493),
    )

    assert balance(a, b) == Balance(
        turns=1,
        tools_added={"Read": 1},
        tools_removed={"Bash": 1, "Edit": 1},
        files_added=("cache.py",),
        files_removed=("metrics.py",),
        output_tokens=-407,
        usd=Decimal("-0.19"),
    )


def test_what_one_side_did_not_record_has_no_difference():
    found = balance(session(cost=CostRecord(output_tokens=5)), session(cost=CostRecord(total_usd=Decimal(1))))

    assert (found.output_tokens, found.usd) == (None, None)


PATCH = """*** Begin Patch
*** Add File: new.py
+x
*** Update File: /work/shop/src/old.py
*** Move to: src/moved.py
@@
-*** Delete File: quoted.py
*** Delete File: gone.py\r
*** End Patch"""


@pytest.mark.parametrize(
    ("name", "given", "touched"),
    [
        ("Read", {"file_path": "/work/shop/a.py"}, {"a.py"}),
        ("read", {"filePath": "./src/../a.py"}, {"a.py"}),
        ("NotebookEdit", {"notebook_path": "/other/n.ipynb"}, {"/other/n.ipynb"}),
        ("read_file", {"absolute_path": "/work/shop/a.py"}, {"a.py"}),
        ("edit_file", {"target_file": "a.py"}, {"a.py"}),
        ("search_replace", {"file_path": "a.py"}, {"a.py"}),
        ("read_many_files", {"paths": ["a.py", "b.py"]}, {"a.py", "b.py"}),
        ("tool_call", {"id": "write", "args": {"path": "a.py", "content": "path"}}, {"a.py"}),
        ("apply_patch", PATCH, {"new.py", "src/old.py", "src/moved.py", "gone.py"}),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}, {"new.py", "src/old.py", "src/moved.py", "gone.py"}),
        ("Grep", {"path": "src", "pattern": "x"}, set()),
        ("grep_search", {"path": "src"}, set()),
        ("list_directory", {"path": "src"}, set()),
        ("Bash", {"command": "cat a.py"}, set()),
        ("Write", {"file_path": ""}, set()),
        ("Write", {"file_path": None, "path": 3, "file": {"path": "x" * 10_000}}, set()),
        ("Fetch", {"path": "https://example.org/a"}, set()),
        ("Odd", "a.py", set()),
        ("Odd", None, set()),
    ],
)  # fmt: skip
def test_files_that_tools_touched(name, given, touched):
    assert files(session(assistant("", call(name, given)), cwd="/work/shop")) == touched


def test_files_of_a_windows_session():
    given = [call("Read", {"file_path": r"C:\work\shop\src\a.py"}), call("Read", {"file_path": "src/b.py"})]

    assert files(session(assistant("", *given), cwd=r"C:\work\shop")) == {"src/a.py", "src/b.py"}


def test_files_without_a_known_directory_stay_as_they_were_named():
    given = [call("Read", {"file_path": "/work/shop/a.py"}), call("Read", {"file_path": "b.py"})]

    assert files(session(assistant("", *given))) == {"/work/shop/a.py", "b.py"}


def test_words_that_changed_are_marked():
    left, right = words("the quick brown fox jumps", "the slow red fox jumped over")

    assert left == [("unchanged", "the "), ("remove", "quick brown"), ("unchanged", " fox "), ("remove", "jumps")]
    assert right == [("unchanged", "the "), ("add", "slow red"), ("unchanged", " fox "), ("add", "jumped over")]


def test_han_characters_are_words():
    left, right = words("今日は晴れです", "今日は雨です")

    assert left == [("unchanged", "今日は"), ("remove", "晴れ"), ("unchanged", "です")]
    assert right == [("unchanged", "今日は"), ("add", "雨"), ("unchanged", "です")]


@pytest.mark.parametrize(
    ("a", "b", "left", "right"),
    [
        ("", "", [], []),
        ("same\r\n", "same", [("unchanged", "same")], [("unchanged", "same")]),
        ("", "new", [], [("add", "new")]),
        ("a b", "a\nb", [("unchanged", "a"), ("remove", " "), ("unchanged", "b")], [("unchanged", "a"), ("add", "\n"), ("unchanged", "b")]),
        ("f(x)", "f(y)", [("unchanged", "f("), ("remove", "x"), ("unchanged", ")")], [("unchanged", "f("), ("add", "y"), ("unchanged", ")")]),
    ],
)  # fmt: skip
def test_pieces_of_small_texts(a, b, left, right):
    assert words(a, b) == (left, right)


def test_pieces_make_up_the_texts_and_share_what_is_unchanged():
    chance = random.Random(3)
    for _ in range(300):
        a, b = (" ".join(chance.choices(["cat", "dog", "x\ny", "", "a,b", "猫"], k=chance.randrange(20))) for _ in "ab")

        left, right = words(a, b)

        assert "".join(text for _, text in left) == a.rstrip()
        assert "".join(text for _, text in right) == b.rstrip()
        assert {kind for kind, _ in left} <= {"unchanged", "remove"}
        assert {kind for kind, _ in right} <= {"unchanged", "add"}
        unchanged = ["".join(text for kind, text in side if kind == "unchanged") for side in (left, right)]
        assert unchanged[0] == unchanged[1]


def test_long_texts_are_marked_by_lines():
    lines = [f"line {i}\n" for i in range(5000)]
    changed = [*lines[:2500], "another line\n", *lines[2501:]]

    left, right = words("".join(lines), "".join(changed))

    assert [kind for kind, _ in left] == ["unchanged", "remove", "unchanged"]
    assert left[1] == ("remove", "line 2500\n")
    assert right[1] == ("add", "another line\n")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("a" * 5_000_000, "b" * 5_000_000),
        ("x" + "a" * 19_000, "y" + "a" * 19_000),
        ("!" * 20_000, "!?" * 10_000),
        ("x\n" * 2_000_000, "y\n" * 2_000_000),
        ("x\n" * 20_000, "x\ny\n" * 10_000),
        ("\n" * 2_000_000 + "x", "\r\n" * 1_000_000 + "y"),
    ],
    ids=["one-long-word", "long-word", "punctuation", "very-many-lines", "lines", "blank-lines"],
)
def test_hostile_texts_are_marked_in_time(a, b):
    started = time.perf_counter()
    left, right = words(a, b)

    assert time.perf_counter() - started < 10
    assert "remove" in {kind for kind, _ in left} or "add" in {kind for kind, _ in right}
