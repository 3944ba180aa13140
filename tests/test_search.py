"""Search: what a person types, what is found, in which order, and how it is shown."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from amux import search, snippets
from amux.catalog import Catalog
from amux.errors import InvalidValue
from amux.finding import Question, hits
from amux.manager import SessionManager
from amux.model import Message, Session, ToolCall, ToolResult
from amux.money import Prices
from amux.output import grids
from amux.query import Query
from amux.readers._base import Host, Reader, SessionRef
from amux.readers._base import session as made
from amux.runs import lay_over

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


def say(*texts: str, id: str = "s1", title: str | None = None, days_ago: int = 0, cwd: str | None = None) -> Session:
    """A session of prompts and answers in turn."""
    at = NOW - timedelta(days=days_ago)
    roles = ("user", "assistant")
    messages = [Message(roles[place % 2], text, at) for place, text in enumerate(texts)]
    return made("claude", id, messages, path="nowhere.jsonl", title=title, cwd=cwd)


class Shelf(Reader):
    """Sessions that lie in memory."""

    title = "Shelf"
    content: tuple[Session, ...] = ()

    def roots(self):
        return [Path("/nowhere")]

    def refs(self):
        return [SessionRef(one.session_id, "memory", "1") for one in self.content]

    def read(self, ref):
        return [one for one in self.content if one.session_id == ref.key]


@pytest.fixture
def find():
    """Which sessions a text finds, best first, on real index code."""

    def among(*content: Session):
        shelf = type("Shelf", (Shelf,), {"content": content})
        host = Host(Path("/nowhere"), {})
        catalog = Catalog.in_memory(Prices(None))
        catalog.refresh([shelf("claude", host)])
        lay_over(catalog.db, catalog.scopes, [], {})

        def ask(text: str, role: str | None = None, *, regex: bool = False, **query):
            return hits(
                catalog,
                {"claude": shelf("claude", host)},
                Question(text, Query(sort=query.pop("sort", "relevance"), **query), role, regex),
            )

        return ask

    return among


def ids(found) -> list[str]:
    return [one.session_id for one in found]


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("We moved to C++ last year", "C++"),
        ("call foo.bar() twice", "foo.bar()"),
        ("pass --dry-run to it", "--dry-run"),
        ("the user_name column", "user_name"),
        ("it doesn't work", "doesn't"),
        ("see src/app/main.py", "src/app/main.py"),
        ("see src/app/main.py", "/app/main.py"),
        (
            "TypeError: 'NoneType' object is not iterable (line 7)",
            "TypeError: 'NoneType' object is not iterable (line 7)",
        ),
        ('he said "so be it" and left', '"so be it"'),
        ('he said "so be it" and left', '"so be it'),
        ("array[0] {x: 1} (y) <z>", "array[0] {x: 1} (y) <z>"),
        ("dip the 🍊 in chocolate", "🍊"),
        ("大别山项目の検索", "山"),
        ("大别山项目の検索", "别山项目"),
        ("大别山项目の検索", "検索"),
        ("カタカナの語", "タカナ"),
        ("안녕하세요 세계", "하세요"),
        ("مرحبا بالعالم", "بالعالم"),
        ("สวัสดีชาวโลก", "ชาวโลก"),
        ("cafe\u0301 au lait", "café"),
        ("Café au lait", "cafe"),
        ("Straße und Ärger", "arger"),
        ("naïve", "NAIVE"),
        ("AND OR NOT NEAR", "NEAR"),
        ("column:value^2*", "column:value^2*"),
        ('a lone " quote', '"'),
        ("100% sure", "100%"),
        ("x" * 5000, "x" * 5000),
    ],
)
def test_whatever_is_typed_finds_what_was_written(find, text, typed):
    ask = find(say(text, "ok", id="wanted"), say("something else entirely", "ok", id="other"))

    assert ids(ask(typed)) == ["wanted"]


@pytest.mark.parametrize(
    "typed",
    [
        '"',
        "'",
        "(",
        ")",
        "*",
        "^",
        ":",
        "-",
        "--",
        '""',
        "OR",
        "OR OR",
        '"OR',
        "-OR",
        "NEAR(",
        "\0",
        "{a b}:",
        "a AND",
        "",
        "   ",
    ],
)
def test_nothing_typed_is_a_syntax_error(find, typed):
    find(say("hello", "world"))(typed)


def test_every_word_must_occur_somewhere_in_the_session(find):
    ask = find(say("the webhook", "it will retry", id="both"), say("the webhook", "no", id="one"))

    assert ids(ask("webhook retry")) == ["both"]


def test_words_match_from_their_beginning(find):
    ask = find(say("retrying the webhooks", "ok", id="begin"), say("no entry", "ok", id="inside"))

    assert ids(ask("retry web")) == ["begin"]


def test_a_phrase_matches_within_one_message(find):
    ask = find(say("alpha beta", "gamma", id="phrase"), say("alpha", "beta", id="scattered"))

    assert ids(ask('"alpha beta"')) == ["phrase"]
    assert ids(ask("alpha beta")) == ["phrase", "scattered"]


def test_minus_excludes_and_or_joins(find):
    ask = find(say("red apple", "x", id="a"), say("red pear", "x", id="b"), say("green pear", "x", id="c"))

    assert ids(ask("red -apple")) == ["b"]
    assert ids(ask('red -"red apple"')) == ["b"]
    assert set(ids(ask("apple OR green"))) == {"a", "c"}
    assert ids(ask("red apple OR kiwi")) == ["a"]


def with_tool(id: str = "tool") -> Session:
    call = ToolCall("t1", "Bash", {"command": "ls quince", "nested": [{"deep": "damson"}]}, "medlar")
    messages = [
        Message("user", "run it", NOW),
        Message("assistant", "done", NOW, tool_calls=(call,), thinking="sloe thoughts"),
        Message("tool", "medlar", NOW, tool_result=ToolResult("t1", "Bash", "medlar")),
    ]
    return made("claude", id, messages, path="nowhere", title="Greengage title")


@pytest.mark.parametrize(
    ("typed", "role"),
    [
        ("quince", "tool"),
        ("damson", "tool"),
        ("medlar", "tool"),
        ("sloe", "thinking"),
        ("greengage", "title"),
        ("run", "user"),
        ("done", "assistant"),
    ],
)
def test_everything_is_searched_and_a_role_narrows(find, typed, role):
    ask = find(with_tool())

    assert ids(ask(typed)) == ["tool"]
    for other in ("user", "assistant", "tool", "thinking", "title"):
        assert ids(ask(typed, other)) == (["tool"] if other == role else [])


def test_a_tools_output_counts_once(find):
    assert find(with_tool())("medlar")[0].match_count == 1


def test_text_inside_a_word_is_found_as_it_stands_and_said_so(find):
    ask = find(say("the antidisestablishment", "x", id="a"), say("nothing", "x", id="b"))
    found = ask("establish")

    assert ids(found) == ["a"]
    assert found.literal
    assert not ask("anti").literal


def test_regular_expressions(find):
    ask = find(say("error 4711 in shop", "x", id="a"), say("error in shop", "x", id="b"))

    assert ids(ask(r"error \d+", regex=True)) == ["a"]
    assert ids(ask("ERROR.*shop", regex=True)) == ["a", "b"]


def test_the_snippet_shows_the_match(find):
    (found,) = find(say("x " * 200 + "the webhook retried twice " + "y " * 200, "ok"))("webhook twice")
    snippet = found.snippet

    assert len(snippet.text) < 200
    assert [snippet.text[mark.start : mark.end] for mark in snippet.matches] == ["webhook", "twice"]
    assert snippet.role == "user"
    assert snippet.timestamp == NOW
    assert "«webhook» retried «twice»" in grids.marked(found)


def test_scores_are_between_nothing_and_one(find):
    found = find(
        say("plum plum", "plum", id="a", title="plum"), say("long " * 500 + "plum", "x", id="b", days_ago=400)
    )("plum")

    assert ids(found) == ["a", "b"]
    assert 1.0 >= found[0].relevance_score > found[1].relevance_score > 0.0


def test_of_two_alike_the_newer_comes_first(find):
    ask = find(say("plum", "x", id="old", days_ago=90), say("plum", "x", id="new"))

    assert ids(ask("plum")) == ["new", "old"]
    assert ids(ask("plum", sort="date")) == ["new", "old"]


WANTED = (
    ("webhook retry", "webhook"),
    ("idempotent webhook", "webhook"),
    ("postgres migration", "migration"),
    ("migration rollback", "migration"),
    ("alembic", "migration"),
    ("dark mode", "dark-mode"),
    ("toggle theme", "dark-mode"),
    ("css variables", "dark-mode"),
    ("memory leak", "leak"),
    ("heap snapshot", "leak"),
    ("flaky test", "flaky"),
    ("pytest timeout", "flaky"),
    ("docker image size", "docker"),
    ("multi-stage build", "docker"),
    ("ZeroDivisionError", "division"),
    ("average empty list", "division"),
    ("rename function", "rename"),
    ("refactor user_name", "rename"),
    ('"rate limit"', "rate"),
    ("429 too many requests", "rate"),
)
STORE = (
    say(
        "Make the webhook retry idempotent",
        "The webhook handler now ignores a retry it has seen.",
        id="webhook",
        title="Webhook retry idempotent",
    ),
    say(
        "Write the postgres migration for orders",
        "Alembic migration written, with a rollback.",
        id="migration",
        days_ago=3,
    ),
    say("Add a dark mode toggle", "The theme is switched with CSS variables.", id="dark-mode", days_ago=9),
    say(
        "Why does the worker leak memory?",
        "A heap snapshot shows the cache: a memory leak in the retry queue.",
        id="leak",
        days_ago=20,
    ),
    say(
        "This test is flaky", "pytest had a timeout of one second; the webhook test was flaky.", id="flaky", days_ago=2
    ),
    say(
        "Shrink the docker image", "A multi-stage build cut the docker image size to a third.", id="docker", days_ago=30
    ),
    say("ZeroDivisionError in average()", "The average of an empty list divided by zero.", id="division", days_ago=5),
    say(
        "Rename the function get_user",
        "Refactor done: user_name is now display_name, rename complete.",
        id="rename",
        days_ago=40,
    ),
    say(
        "We hit a rate limit",
        "429 Too Many Requests: the client now backs off. The limit is a rate of 10.",
        id="rate",
        days_ago=1,
    ),
    say("test " * 40, "docker postgres css memory webhook list rename limit", id="noise"),
    say("Tidy up", "Nothing of note.", id="tidy", days_ago=1),
)


@pytest.mark.parametrize(("typed", "wanted"), WANTED)
def test_the_session_a_person_would_want_comes_first(find, typed, wanted):
    assert ids(find(*STORE)(typed))[0] == wanted


def test_finds_what_a_plain_read_of_every_message_finds(corpus, tmp_path):
    """For words drawn from everything that was said, the sessions found are those that hold them."""
    drawn = 0
    for path in corpus.scenarios():
        case = corpus.open_case(path, tmp_path / path.parent.name / path.name)
        texts: dict[str, set[str]] = {}
        for id in case.listed(subagents=True):
            session = case.read(id)
            for message in session.messages:
                for text in (
                    message.content,
                    message.thinking or "",
                    session.title,
                    *(f"{c.tool_name} {search.flat(c.input)}" for c in message.tool_calls),
                ):
                    texts.setdefault(id, set()).update(words_in(text))
        vocabulary = sorted(set().union(*texts.values()))
        for word in vocabulary[:: max(len(vocabulary) // 12, 1)]:
            drawn += 1
            holding = {id for id, words in texts.items() if any(one.startswith(word) for one in words)}
            query = Query(agents=(case.agent,), sort="relevance")

            assert {one.session_id for one in case.manager.search(word, query) if one.kind != "memory"} == holding, (
                path.name,
                word,
            )
    assert drawn > 200


def words_in(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[^\W_]+", search.unaccented(search.spaced(text)))}


def test_every_snippet_is_a_line_of_what_was_said(corpus, tmp_path):
    """Of the part of the message it names, with the words where it says they are."""
    checked = 0
    for path in corpus.scenarios():
        case = corpus.open_case(path, tmp_path / path.parent.name / path.name)
        for word in ("marmalade", "quokka", "zebra", "answer", "the", "file"):
            for found in case.manager.search(word, Query(agents=(case.agent,), sort="relevance")):
                if found.kind == "memory":
                    continue
                session = case.read(found.session_id)
                parts = [text for _, part, text in snippets.parts(session) if part == found.snippet.role]
                said = [" ".join(text.split()) for text in parts]
                line = found.snippet.text.removeprefix("…").removesuffix("…")
                marked = [found.snippet.text[mark.start : mark.end] for mark in found.snippet.matches]

                assert any(line in text for text in said), (path, word, line)
                assert marked
                assert all(one.lower().startswith(word) for one in marked)
                checked += 1
    assert checked > 100


SPELLED = (
    ("καλημερα", "Καλημέρα κόσμε"),
    ("елка", "у нас ёлка"),
    ("が", "か\u3099きぐけご"),
    ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8 사람"),
    ("שלום", "שָׁלוֹם"),
    ("كتاب", "كِتَاب"),
    ("cafeteria", "the cafe\u0301teria"),
    ("ferris", "🦀ferris"),
    ("widget", "\u2068widget\u2069"),
    ("trunkline", "\ue0a0trunkline"),
    ("500", "₽500"),
    ('"fix tests"', "fix🤖 tests"),
    ("_ range", "for _ in range(3)"),
    ("I'm", "I’m here"),
)


@pytest.mark.parametrize(("typed", "text"), SPELLED)
def test_a_word_is_found_however_it_is_spelled(find, typed, text):
    (found,) = find(say(f"before {text} after", "x"), say("nothing", "x", id="other"))(typed)

    assert not_a_scan(found)
    assert found.snippet.matches


def not_a_scan(found) -> bool:
    return found.relevance_score != round(4 / 14, 4)  # what a scan gives one match in a prompt


def test_vowels_that_are_marks_are_parts_of_a_word(find):
    ask = find(
        say("ดี มาก", "x", id="good"), say("ดุร้าย", "x", id="fierce"), say("की", "x", id="ki"), say("का", "x", id="ka")
    )

    assert ids(ask("ดี")) == ["good"]
    assert ids(ask("की")) == ["ki"]


SIGNED = (
    ("C++", ["cpp"]),
    ('"C++"', ["cpp"]),
    ("C++ -java", ["cpp"]),
    ("C#", ["sharp"]),
    ("C++ cow", ["cpp"]),
    ("C++ OR C#", ["cpp", "sharp"]),
    ("words -C++", ["cow", "sharp"]),
    ('"a b"', ["cow"]),
)


@pytest.mark.parametrize(("typed", "wanted"), SIGNED)
def test_signs_that_make_a_word_count(find, typed, wanted):
    ask = find(
        say("words of C++ and a cow", "x", id="cpp"),
        say("words of C# here", "java", id="sharp"),
        say("words: the cat and cow, plan a b now, c", "java", id="cow"),
    )
    found = ask(typed)

    assert sorted(ids(found)) == sorted(wanted)
    assert not found.literal


ESCAPED = ("ørebr", "ривет", "üge", "ix “na", "한", "ガ")


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("typed", ESCAPED)
def test_text_is_found_however_a_file_spells_it(tmp_path, typed, ascii_only):
    id, text = "0c0de000-0000-4000-8000-000000000001", "Smørebrød Привет Füge fix “naïve” 한국어 ガイド"
    line = {"type": "user", "uuid": "u", "sessionId": id, "message": {"role": "user", "content": text}}
    file = tmp_path / ".claude" / "projects" / "-x" / f"{id}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(line, ensure_ascii=ascii_only) + "\n")

    for regex in (False, True):
        (found,) = SessionManager(Host(tmp_path, {}), cache=False).search(typed, Query(sort="relevance"), regex=regex)
        assert found.snippet.matches


def test_what_no_query_can_be_says_so(find):
    ask = find(say("hello", "x"))

    for wrong in ("a{99999999999}", "(", "(?<", "[z-a]"):
        with pytest.raises(InvalidValue, match="no regular expression"):
            ask(wrong, regex=True)
    assert ids(ask("hello\udcff")) == ["s1"]
    assert ids(ask("\udcff", regex=True)) == []


def test_dear_sessions_come_first_where_texts_are_looked_into(corpus, tmp_path):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "fork"), tmp_path)
    by_cost = [one.session_id for one in case.manager.list(Query(agents=("claude",), sort="cost"))]

    found = case.manager.search(".", Query(agents=("claude",), sort="cost"), regex=True)

    assert [one.session_id for one in found if one.kind == "main"] == by_cost


SNIPPETS = (
    ("foo", "xfoo " + "a" * 48 + " foo " + "b" * 200, ["foo"]),
    ("needleword exactphrase", "needleword " + "x " * 200 + "needleword exactphrase", ["needleword", "exactphrase"]),
    ("ne\nli", "one\nline", ["ne li"]),
    ("/" + "long/" * 40, "see /" + "long/" * 40 + "file", None),
    ("한국", "학교 한국", ["한국"]),
)


@pytest.mark.parametrize(("typed", "text", "marked"), SNIPPETS)
def test_the_words_are_marked_where_they_are(find, typed, text, marked):
    (found,) = find(say(f"Begin. {text}", "x"))(typed)
    marks = [found.snippet.text[mark.start : mark.end] for mark in found.snippet.matches]

    assert marks == marked if marked else len(marks[0]) > 100


def test_an_unknown_agent_has_nothing(tmp_path):
    assert SessionManager(Host.current(tmp_path), cache=False).search("x", Query(agents=("nope",))) == []


def test_without_fts5_the_sessions_themselves_are_read(find, monkeypatch):
    monkeypatch.setattr("amux.cachefile.WORDS", "create virtual table {name} using fts9 (text)")
    ask = find(
        say("the webhook", "it will retry", id="both"), say("the webhook", "no", id="one"), say("Café", "x", id="other")
    )

    assert ids(ask("webhook retr")) == ["both"]
    assert set(ids(ask("webhook"))) == {"both", "one"}
    assert ids(ask("webhook -retry")) == ["one"]
    assert ids(ask("cafe")) == ["other"]
    assert ids(ask("nothing")) == []
