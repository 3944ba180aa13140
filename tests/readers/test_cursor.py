"""What is odd about Cursor: three stores that share ids, roots of blobs, summaries, bubbles, and usage that nobody keeps."""

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

import pytest

from amux.errors import UnreadableSession
from amux.manager import SessionManager
from amux.model import Attachment, Session, ToolCall
from amux.query import Query
from amux.readers import cursor
from amux.readers._base import Host, SessionRef
from amux.readers._sqlite import reading
from amux.readers.cursor import READER, prompts, wire, workspace

START = 1_794_947_400_000
"""2026-11-17 20:30 UTC."""
LINUX = ".config/Cursor/User"
ID = "c0de0001-0000-4000-8000-00000000000a"
OTHER = "c0de0001-0000-4000-8000-00000000000b"
KEY_VALUE = "(key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"


# What Cursor writes


def delimited(number: int, value: bytes) -> bytes:
    """A field of a Protocol Buffers message."""
    length, spelled = len(value), b""
    while length > 0x7F:
        spelled, length = spelled + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + spelled + bytes([length]) + value


def user(text: str, *, at: str = "") -> dict[str, Any]:
    stamp = f"<timestamp>{at}</timestamp>\n" if at else ""
    return {"role": "user", "content": [{"type": "text", "text": f"{stamp}<user_query>\n{text}\n</user_query>"}]}


def assistant(*blocks: Any, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
    return {"role": "assistant", "content": content, "id": "1", **more}


def call(id: str, name: str = "Shell", **args: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": id, "toolName": name, "args": args}


def result(id: str, output: Any, **more: Any) -> dict[str, Any]:
    block = {"type": "tool-result", "toolCallId": id, "toolName": "Shell", "result": output, **more}
    return {"role": "tool", "content": [block], "id": id}


SUMMARY = {
    "role": "user",
    "content": "What happened so far: marmalade.",
    "providerOptions": {"cursor": {"isSummary": True}},
}
INFO = {"role": "user", "content": "<user_info>\nOS Version: linux\nWorkspace Path: /work/told\n</user_info>"}


class Store:
    """One store.db, written as the CLI does."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True)
        self.path = path
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("create table blobs (id TEXT PRIMARY KEY, data BLOB)")
        self.db.execute("create table meta (key TEXT PRIMARY KEY, value TEXT)")

    def blob(self, data: Any) -> bytes:
        """Keep a blob; gives its id."""
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        id = sha256(raw).digest()
        self.db.execute("insert or ignore into blobs values (?, ?)", (id.hex(), raw))
        return id

    def turn(self, prompt: str, *steps: tuple[int, str]) -> bytes:
        """A turn: what was typed, and its steps, 1 for a text and 3 for a thought."""
        typed = self.blob(delimited(1, prompt.encode()) + delimited(2, b"aaaaaaaa-0000-4000-8000-000000000000"))
        kept = [self.blob(delimited(kind, delimited(1, text.encode()))) for kind, text in steps]
        return self.blob(delimited(1, delimited(1, typed) + b"".join(delimited(2, step) for step in kept)))

    def root(self, messages: Iterable[Any], turns: Iterable[bytes] = (), more: bytes = b"") -> str:
        """A root over messages, given by their content or their id."""
        ids = [self.blob(message) if isinstance(message, dict) else message for message in messages]
        context = delimited(5, b"\x08\xe0\x5d")
        listed = (*(delimited(1, id) for id in ids), context, *(delimited(8, id) for id in turns))
        return self.blob(b"".join((*listed, more))).hex()

    def meta(self, root: str | None, *, plain: bool = False, **more: Any) -> None:
        known = {"latestRootBlobId": root, "name": "New Agent", "mode": "default", "createdAt": START, **more}
        text = json.dumps(known)
        self.db.execute("insert or replace into meta values ('0', ?)", (text if plain else text.encode().hex(),))

    def close(self) -> None:
        self.db.close()


class Ide:
    """One installation of the IDE."""

    def __init__(self, user: Path) -> None:
        self.user = user
        self.path = self.database(user / "globalStorage/state.vscdb")

    def database(self, path: Path) -> Path:
        path.parent.mkdir(parents=True)
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"create table ItemTable {KEY_VALUE}")
            db.execute(f"create table cursorDiskKV {KEY_VALUE}")
            db.execute("insert into ItemTable values ('cursorAuth/accessToken', 'a secret')")
            db.commit()
        return path

    def put(self, key: str, value: Any, *, path: Path | None = None, table: str = "cursorDiskKV") -> None:
        kept = value if value is None or isinstance(value, bytes) else json.dumps(value)
        with closing(sqlite3.connect(path or self.path)) as db:
            db.execute(f"insert into {table} values (?, ?)", (key, kept))
            db.commit()

    def composer(self, id: str, *bubbles: dict[str, Any], listed: Iterable[int] | None = None, **more: Any) -> None:
        """A composer, and its bubbles each in a row of its own; `listed` are the places of those that it has."""
        names = [f"{id}-{number}" for number in range(len(bubbles))]
        headers = [{"bubbleId": names[place]} for place in (range(len(bubbles)) if listed is None else listed)]
        own = {
            "composerId": id,
            "createdAt": START,
            "lastUpdatedAt": START + 1000,
            "fullConversationHeadersOnly": headers,
        }
        self.put(f"composerData:{id}", {**own, **more})
        for name, bubble in zip(names, bubbles, strict=True):
            self.put(f"bubbleId:{id}:{name}", {"bubbleId": name, **bubble})

    def workspace(self, id: str, **described: Any) -> Path:
        path = self.database(self.user / f"workspaceStorage/{id}/state.vscdb")
        (path.parent / "workspace.json").write_text(json.dumps(described))
        return path

    def item(self, path: Path, key: str, value: Any) -> None:
        self.put(key, value, path=path, table="ItemTable")


def asked(text: str, **more: Any) -> dict[str, Any]:
    return {"type": 1, "text": text, **more}


def told(text: str, **more: Any) -> dict[str, Any]:
    return {"type": 2, "text": text, **more}


def used(name: str, id: str = "", **more: Any) -> dict[str, Any]:
    tool = {
        "name": name,
        "toolCallId": id or name,
        "status": "completed",
        "rawArgs": '{"a":1}',
        "result": '{"output":"out"}',
    }
    return {"type": 2, "text": "", "capabilityType": 15, "toolFormerData": {**tool, **more}}


class Home:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.stores: list[Store] = []

    def store(self, id: str = ID, cwd: str = "/work/shop", *, place: str = "") -> Store:
        folder = place or f".cursor/chats/{md5(cwd.encode()).hexdigest()}"
        self.stores.append(Store(self.path / folder / id / "store.db"))
        return self.stores[-1]

    def ide(self, user: str = LINUX) -> Ide:
        return Ide(self.path / user)

    def write(self, path: str, *lines: Any) -> Path:
        file = self.path / ".cursor" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
        return file

    def reader(self, platform: str = "linux", **env: str) -> cursor.CursorReader:
        for store in self.stores:
            store.close()
        return READER("cursor", Host(self.path, env, platform))

    def refs(self, platform: str = "linux", **env: str) -> dict[str, SessionRef]:
        with self.reader(platform, **env) as reader:
            return {ref.key: ref for ref in reader.refs()}

    def sessions(self, platform: str = "linux", **env: str) -> dict[str, Session]:
        with self.reader(platform, **env) as reader:
            return {one.session_id: one for ref in reader.refs() for one in reader.read(ref)}

    def session(self, id: str = ID) -> Session:
        return self.sessions()[id]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def line(role: str, *blocks: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
    return {"role": role, "message": {"content": content}}


def said(session: Session, role: str | None = None) -> list[str]:
    return [message.content for message in session.messages if role in (None, message.role)]


def outline(session: Session) -> list[tuple[str, str]]:
    return [(message.event or message.role, message.content) for message in session.messages]


# The CLI's databases


def test_what_a_summary_took_out_comes_from_the_last_root_before_it(home):
    store = home.store()
    first = [
        INFO,
        user("One"),
        assistant("Looking", call("a", command="ls")),
        result("a", "app.py"),
        assistant("Done one"),
    ]
    turns = [store.turn("One", (1, "Looking"), (1, "Done one")), store.turn("Two", (1, "Done two"))]
    second = [*first, user("Two"), assistant("Done two")]
    store.root(first, turns[:1])
    store.root(second, turns)
    store.root([*second[:-2], user("Pelicans"), assistant("Rewound")], turns[:1])
    turns.append(store.turn("Three", (1, "Done three")))
    store.meta(store.root([INFO, SUMMARY, assistant("Done two"), user("Three"), assistant("Done three")], turns))

    session = home.session()

    assert outline(session) == [
        ("user", "One"),
        ("assistant", "Looking"),
        ("tool", "app.py"),
        ("assistant", "Done one"),
        ("user", "Two"),
        ("assistant", "Done two"),
        ("compaction", "What happened so far: marmalade."),
        ("user", "Three"),
        ("assistant", "Done three"),
    ]
    assert session.messages[1].tool_calls == (ToolCall("a", "Shell", {"command": "ls"}, "app.py"),)


def test_two_summaries_leave_two_roots_to_go_back_to(home):
    store = home.store()
    turns = [store.turn(text, (1, f"Done {text}")) for text in ("One", "Two", "Three")]
    later = {**SUMMARY, "content": "More happened."}
    store.root([user("One"), assistant("Done One")], turns[:1])
    store.root([SUMMARY, user("Two"), assistant("Done Two")], turns[:2])
    store.meta(store.root([later, user("Three"), assistant("Done Three")], turns))

    assert said(home.session()) == [
        *("One", "Done One", "What happened so far: marmalade.", "Two", "Done Two"),
        *("More happened.", "Three", "Done Three"),
    ]


def test_without_that_root_the_turns_tell_their_texts(home):
    store = home.store()
    turns = [
        store.turn("One", (3, "Hm."), (1, "Done one")),
        store.turn("Two", (1, "Working"), (1, "Done two")),
        store.turn("Three", (1, "Done three")),
    ]
    shell = store.blob(delimited(2, delimited(1, b"x" * 32)))
    store.meta(store.root([SUMMARY, assistant("Done two"), user("Three"), assistant("Done three")], [shell, *turns]))

    session = home.session()

    assert outline(session) == [
        ("user", "One"),
        ("assistant", "Done one"),
        ("user", "Two"),
        ("assistant", "Working"),
        ("compaction", "What happened so far: marmalade."),
        ("assistant", "Done two"),
        ("user", "Three"),
        ("assistant", "Done three"),
    ]
    assert session.messages[1].thinking == "Hm."


@pytest.mark.parametrize("again", ["Two", "One"])
def test_a_summary_can_stand_in_a_blob_of_its_own(home, again):
    """Also where the prompts alone would not show that anything is missing."""
    store = home.store()
    turns = [store.turn("One", (1, "Done one")), store.turn(again, (1, "Done two"))]
    summary = delimited(6, store.blob(delimited(1, b"So far.")))
    store.meta(store.root([user(again), assistant("Done two")], turns, summary))

    assert outline(home.session()) == [
        ("user", "One"),
        ("assistant", "Done one"),
        ("compaction", "So far."),
        ("user", again),
        ("assistant", "Done two"),
    ]


def test_a_summary_of_a_turn_that_still_runs(home):
    store = home.store()
    store.meta(store.root([SUMMARY, assistant("Going on")], [store.turn("One", (1, "Begun"), (1, "Going on"))]))

    assert said(home.session()) == ["One", "Begun", "What happened so far: marmalade.", "Going on"]


def test_turns_that_do_not_fit_the_messages_are_left_alone(home):
    """A turn that Cursor made up is no reason to tell the others twice."""
    store = home.store()
    turns = [store.turn(text, (1, f"Done {text}")) for text in ("One", "A note on a sub-agent", "Two")]
    store.meta(store.root([user("One"), assistant("Done One"), user("Two"), assistant("Done Two")], turns))

    assert said(home.session()) == ["One", "Done One", "Two", "Done Two"]


@pytest.mark.parametrize("root", ["deadbeef", None, 7])
def test_without_a_root_every_message_counts(home, root):
    store = home.store()
    for message in (INFO, user("One"), assistant("Done")):
        store.blob(message)
    store.root([])
    store.meta(root)

    assert said(home.session()) == ["One", "Done"]


def test_messages_wrapped_in_other_bytes(home):
    """Some builds keep JSON inside a node, the first ones a prompt as its text and a UUID."""
    store = home.store()
    prompt = delimited(1, "Füge an".encode()) + delimited(2, b"aaaaaaaa-0000-4000-8000-000000000000")
    node = delimited(1, b"\x00\x01") + delimited(4, json.dumps(assistant("Wrapped")).encode()) + b"\x08\x01"
    ids = [store.blob(prompt), store.blob(node), store.blob(b"\xff\xfe"), b"\x00" * 32]
    store.meta(store.root(ids), plain=True)

    assert said(home.session()) == ["Füge an", "Wrapped"]


def test_without_a_root_wrapped_messages_count_too(home):
    """But what a turn is made of is no message, even where it quotes one."""
    store = home.store()
    quoted = json.dumps(user("Quoted"))
    store.blob(user("One"))
    store.blob(delimited(4, json.dumps(assistant("Wrapped")).encode()) + b"\x08\x01")
    store.turn(f"One {quoted}", (1, f"Said {quoted}"), (3, f"Thought {quoted}"))
    store.meta(None)

    assert said(home.session()) == ["One", "Wrapped"]


def test_calls_as_openai_has_them(home):
    store = home.store()
    function = {"name": "Grep", "arguments": '{"pattern":"cart"}'}
    calling = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]}
    messages = [user("Find it"), calling, {"role": "tool", "tool_call_id": "c1", "content": "cart.py"}]
    store.meta(store.root(messages))

    session = home.session()

    assert session.messages[1].tool_calls == (ToolCall("c1", "Grep", {"pattern": "cart"}, "cart.py"),)
    assert outline(session)[2] == ("tool", "cart.py")


def test_ids_of_calls_can_come_again(home):
    store = home.store()
    messages = [user("Go"), assistant(call("c")), result("c", "first"), assistant(call("c")), result("c", {"n": [2]})]
    store.meta(store.root([*messages, assistant(call("d")), result("d", "no", isError=True)]))

    calls = [one for message in home.session().messages for one in message.tool_calls]

    assert [(one.output, one.is_error) for one in calls] == [("first", False), ('{"n": [2]}', False), ("no", True)]


def test_thoughts_that_were_withheld_and_images(home):
    store = home.store()
    image = {"type": "image", "image": {"__type": "Uint8Array", "hex": "89504e47"}, "mediaType": "image/png"}
    thoughts = [{"type": "reasoning", "text": "", "signature": "x"}, {"type": "redacted-reasoning", "data": "x"}]
    messages = [{**user("Look"), "content": [*user("Look")["content"], image]}, assistant(*thoughts), assistant("Seen")]
    store.meta(store.root(messages))

    session = home.session()

    assert said(session) == ["Look", "Seen"]
    assert session.messages[0].attachments == (Attachment("image", "image/png"),)
    assert all(message.thinking is None for message in session.messages)


def test_a_session_that_is_only_in_the_wal(home):
    store = home.store()
    store.db.execute("pragma journal_mode = wal")
    store.meta(store.root([user("One"), assistant("Done")]))
    beside = sorted(path.name for path in store.path.parent.iterdir())
    with READER("cursor", Host(home.path, {}, "linux")) as reader:
        (ref,) = reader.refs()
        (session,) = reader.read(ref)

    assert beside == ["store.db", "store.db-shm", "store.db-wal"]
    assert sorted(path.name for path in store.path.parent.iterdir()) == beside
    assert said(session) == ["One", "Done"]
    store.close()


def test_what_the_database_says_of_a_session(home):
    store = home.store(cwd="/work/told")
    told_at = "Tuesday, Nov 17, 2026, 9:50 PM (UTC+1)"
    store.meta(
        store.root([INFO, user("One", at=told_at), assistant("Done")]), createdAt=str(START), lastUsedModel="default"
    )

    session = home.session()

    assert (session.title, session.model, session.cwd, session.mode) == ("One", None, "/work/told", "default")
    assert session.created_at == datetime(2026, 11, 17, 20, 30, tzinfo=UTC)
    assert session.updated_at == datetime(2026, 11, 17, 20, 50, tzinfo=UTC)


def test_a_session_without_any_time_ended_when_its_files_were_written(home):
    store = home.store()
    store.meta(store.root([user("One"), assistant("Done")]), createdAt=None)
    store.close()
    wal = store.path.with_name("store.db-wal")
    wal.touch()
    os.utime(store.path, (1_700_000_000, 1_700_000_000))
    os.utime(wal, (1_700_000_060, 1_700_000_060))

    assert home.session().updated_at.timestamp() == 1_700_000_060


def test_the_directory_a_place_is_named_for_goes_before_others(home):
    store = home.store(cwd="/work/shop")
    folders = delimited(9, b"file:///work/elsewhere") + delimited(9, b"file:///work/shop")
    store.meta(store.root([user("One"), assistant("Done")], more=folders))
    store = home.store(OTHER, cwd="/work/my shop")
    store.meta(store.root([user("One"), assistant("Done")]))
    home.ide().workspace("w1", folder="file:///work/my%20shop")

    assert home.session().cwd == "/work/shop"
    assert home.session(OTHER).cwd == "/work/my shop"


def test_what_lies_beside_the_database_says_more(home):
    store = home.store()
    store.meta(
        store.root([user("One"), assistant("Done")]), name="Named by the user", lastUsedModel={"model": "composer-1"}
    )
    sidecar = {
        "createdAtMs": START,
        "updatedAtMs": START + 5000,
        "cwd": "/work/beside",
        "title": "New Agent",
        "isSubagent": True,
    }
    (store.path.parent / "meta.json").write_text(json.dumps(sidecar))

    session = home.session()

    assert (session.title, session.model, session.cwd) == ("Named by the user", "composer-1", "/work/beside")
    assert session.updated_at.timestamp() == START / 1000 + 5
    assert session.kind == "subagent"


def test_subagents_of_the_cli(home):
    store = home.store()
    store.meta(store.root([user("Explore"), assistant("Done")]), subagentInfo={"parentAgentId": OTHER})

    assert (home.session().kind, home.session().parent_id) == ("subagent", OTHER)


def test_sessions_that_have_not_begun(home):
    home.write(f"chats/x/{ID}/meta.json", {"schemaVersion": 1, "hasConversation": False, "cwd": "/work"})
    home.write(f"chats/x/{OTHER}/store.db")
    store = home.store("empty")
    store.meta(None)

    assert home.sessions() == {}
    assert set(home.refs()) == {"empty"}


def test_raw_holds_every_blob_and_no_key(home):
    store = home.store()
    store.blob(user("Rewound"))
    store.meta(store.root([user("One"), assistant("Done")]), blobEncryptionKey="a secret")
    with home.reader() as reader:
        (ref,) = reader.refs()
        raw = reader.raw(ref, ID)

    assert "a secret" not in json.dumps(raw)
    assert user("Rewound") in [blob["data"] for blob in raw["blobs"]]


# One session in several places


def test_each_id_is_one_session_and_the_best_record_counts(home):
    store = home.store()
    store.meta(store.root([user("From the database"), assistant("Done")]))
    ide = home.ide()
    ide.composer(ID, asked("From the IDE"), told("Done"))
    ide.composer(OTHER, asked("Other from the IDE"), told("Done"))
    for id in (ID, OTHER, "third"):
        home.write(
            f"projects/p/agent-transcripts/{id}/{id}.jsonl",
            line("user", "From a transcript"),
            line("assistant", "Done"),
        )

    sessions = home.sessions()

    assert {id: said(one, "user") for id, one in sessions.items()} == {
        ID: ["From the database"],
        OTHER: ["Other from the IDE"],
        "third": ["From a transcript"],
    }
    manager = SessionManager(Host(home.path, {}, "linux"), cache=False)
    assert len(manager.list(Query(agents=("cursor",), subagents=True))) == 3


@pytest.mark.parametrize("damage", ["encrypted", "garbage"])
def test_a_transcript_stands_in_for_a_database_that_tells_nothing(home, damage):
    store = home.store()
    root = store.root([store.blob(b"\x93\x11encrypted")])
    store.meta(root)
    transcript = home.write(f"projects/p/agent-transcripts/{ID}.jsonl", line("user", "One"), line("assistant", "Done"))
    if damage == "garbage":
        store.close()
        store.path.write_bytes(b"no database at all")
    with home.reader() as reader:
        (ref,) = reader.refs()
        (session,) = reader.read(ref)

        assert said(session) == ["One", "Done"]
        assert reader.raw(ref, ID) == [json.loads(text) for text in transcript.read_text().split("\n")]
        assert reader.resume_command(session, None) == ["cursor-agent", f"--resume={ID}"]

    transcript.write_text(transcript.read_text() + "\n" + json.dumps(line("user", "Two")))
    assert home.refs()[ID].fingerprint != ref.fingerprint


def test_a_database_that_cannot_be_read_says_so(home):
    home.write(f"chats/x/{ID}/store.db", "no database at all")
    store = home.store(OTHER)
    store.meta(store.root([user("One"), assistant("Done")]))
    with home.reader() as reader:
        refs = {ref.key: ref for ref in reader.refs()}
        with pytest.raises(UnreadableSession, match="no SQLite database"):
            reader.read(refs[ID])

        assert len(reader.read(refs[OTHER])) == 1


def test_only_what_the_cli_began_can_be_resumed(home):
    for id, place in ((ID, ""), ("acp", ".cursor/acp-sessions"), ("-odd", ".cursor/chats/x")):
        store = home.store(id, place=place)
        store.meta(store.root([user("One"), assistant("Done")]))
    home.ide().composer(OTHER, asked("One"), told("Done"))
    home.write("projects/p/agent-transcripts/b/b.jsonl", line("user", "One"), line("assistant", "Done"))
    with home.reader() as reader:
        commands = {
            session.session_id: (reader.resume_command(session, None), reader.fork_command(session, None))
            for ref in reader.refs()
            for session in reader.read(ref)
        }
        with_model = reader.resume_command(home.session(), "gpt-5")

    assert commands == {
        ID: (["cursor-agent", f"--resume={ID}"], None),
        "-odd": (["cursor-agent", "--resume=-odd"], None),
        "acp": (None, None),
        OTHER: (None, None),
        "b": (None, None),
    }
    assert with_model == ["cursor-agent", "--model=gpt-5", f"--resume={ID}"]


# Prompts


@pytest.mark.parametrize(
    ("written", "at"),
    [
        ("Tuesday, Nov 17, 2026, 9:50 PM (UTC+1)", (17, 20, 50)),
        ("Tuesday, Nov 17, 2026, 12:05 AM (UTC+5:30)", (16, 18, 35)),
        ("Tuesday, Nov 17, 2026, 12:05\u202fPM (UTC)", (17, 12, 5)),
        ("Tuesday, November 17, 2026, 21:50 (UTC-8)", (18, 5, 50)),
    ],
)
def test_times_of_prompts(written, at):
    typed = prompts.typed(f"<timestamp>{written}</timestamp>\n<user_query>\nGo\n</user_query>")

    assert typed == prompts.Typed("Go", datetime(2026, 11, *at, tzinfo=UTC))


@pytest.mark.parametrize(
    "written", ["yesterday", "Tuesday, Foo 17, 2026, 9:50 PM (UTC+1)", "Nov 40, 2026, 9:50 PM (UTC+99)"]
)
def test_times_that_are_none(written):
    assert prompts.typed(f"<timestamp>{written}</timestamp><user_query>\nGo\n</user_query>") == prompts.Typed("Go")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Bare text", "Bare text"),
        ("<user_query>\n\tIndented \n</user_query>", "\tIndented "),
        (
            "<user_query>\nWith <user_query>nested</user_query> tags\n</user_query>",
            "With <user_query>nested</user_query> tags",
        ),
        ("<user_query>\nCut off", "Cut off"),
        ("<user_info>\nOS\n</user_info>\n<user_query>\nBoth\n</user_query>", "Both"),
        ("<module> is not found", "<module> is not found"),
        ("<open_and_recently_viewed_files>\na.py\n</open_and_recently_viewed_files>\nAfter it", "After it"),
        ("<user_query>\n\n</user_query>", None),
        ("<user_info>\nOS […]", None),
        ("<system_reminder>Mind this</system_reminder>\n<agent_skills>none</agent_skills>", None),
        ("", None),
    ],
)
def test_what_was_typed(text, typed):
    found = prompts.typed(text)

    assert (found.text if found else None) == typed


def test_files_and_images_are_attachments():
    text = (
        "[Image]\n<image_files>\nThe user sent:\n1. /work/a.png\n2. /work/b c.png\n</image_files>\n"
        '<attached_files>\n<code_selection path="/work/app.py" lines="1-2">\nx\n</code_selection>\n</attached_files>\n'
        "<user_query>\nMatch it\n</user_query>"
    )

    assert prompts.typed(text) == prompts.Typed(
        "Match it",
        None,
        (
            Attachment("image", name="/work/a.png"),
            Attachment("image", name="/work/b c.png"),
            Attachment("file", name="/work/app.py"),
        ),
    )


# Bytes that nobody vouches for


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\xff",
        b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        b"\x0b\x00",
        b"\x09\x00",
        b"\xff" * 40,
    ],
)
def test_a_message_ends_where_its_bytes_make_no_sense(data):
    sound = delimited(1, b"sound")

    assert list(wire.fields(data)) == []
    assert list(wire.fields(sound + data)) == [(1, b"sound")]


def test_fields_of_every_kind_are_stepped_over():
    data = b"\x08\x96\x01" + b"\x11" + b"8" * 8 + b"\x1d" + b"4" * 4 + delimited(1, b"x" * 300)

    assert list(wire.fields(data)) == [(1, b"x" * 300)]


# Transcripts


def test_transcripts_lie_in_many_places(home):
    lines = line("user", "<user_query>\nOne\n</user_query>"), line("assistant", "Done")
    home.write(f"projects/1794949800000/agent-transcripts/{ID}.jsonl", *lines)
    home.write(f"projects/empty-window/agent-transcripts/{ID}/{ID}.jsonl", *lines, line("user", "Two"))
    home.write(f"projects/p/agent-transcripts/{ID}.txt", "user:", "Old", "", "assistant:", "Older", "x" * 999)
    home.write(f"projects/agent-transcripts/{OTHER}.jsonl", *lines)
    home.write(
        f"projects/p/agent-transcripts/{OTHER}/subagents/sub.jsonl", line("user", "Sub"), line("assistant", "Done")
    )
    for other in ("agent-tools/a.txt", "terminals/1.txt", "repo.json", f"agent-transcripts/{'x' * 8}.json"):
        home.write(f"projects/p/{other}", "user:", "no session")

    sessions = home.sessions()

    assert {id: said(one, "user") for id, one in sessions.items()} == {
        ID: ["One", "Two"],
        OTHER: ["One"],
        "sub": ["Sub"],
    }
    assert (sessions["sub"].kind, sessions["sub"].parent_id) == ("subagent", OTHER)


def test_oddities_of_lines(home):
    twice = line("assistant", "Again", {"type": "tool_use", "name": "Call\nMcp", "input": "*** Begin Patch"})
    home.write(
        f"projects/p/agent-transcripts/{ID}.jsonl",
        line("user", "<user_query>\nOne\n</user_query>"),
        twice,
        twice,
        "not JSON",
        {
            "role": "user",
            "message": {"content": "<user_query>The above result is already visible. DO nothing.</user_query>"},
        },
        {"type": "turn_end", "status": "completed"},
        {"type": "error", "error": {"message": "upstream"}},
        line("assistant", "[REDACTED]"),
        line("assistant", "Said\n\n[REDACTED]"),
        '{"role": "user", "message": {"content": [{"type": "text", "te',
    )

    session = home.session()

    assert outline(session) == [
        ("user", "One"),
        ("assistant", "Again"),
        ("assistant", "Again"),
        ("error", '{"message": "upstream"}'),
        ("assistant", "Said"),
    ]
    assert [(one.tool_name, one.input) for one in session.messages[1].tool_calls] == [("Call Mcp", "*** Begin Patch")]
    assert session.messages[1].tool_calls[0].tool_call_id != session.messages[2].tool_calls[0].tool_call_id


def test_a_transcript_of_nothing_but_an_error_is_no_session(home):
    home.write(f"projects/p/agent-transcripts/{ID}.jsonl", {"type": "error", "error": "boom"})

    assert home.sessions() == {}


def test_text_transcripts(home):
    home.write(
        f"projects/p/agent-transcripts/{ID}.txt",
        *("user:", "<user_query>", "Explain this:", "", "assistant:", "roles: none", "</user_query>", "A: Short."),
        *("", "user:", "Write it", "", "assistant:", "[Thinking] Hm.", "The file says", "user:", "twice"),
        *(
            "[Tool call] Write",
            "  path: a.py",
            "  contents: one",
            "  two",
            "[Tool call] Shell",
            "  command: ls",
            "Going on",
        ),
        *(
            "[Tool result] Shell",
            "app.py",
            "",
            "b.py",
            "[Tool result] Write",
            "",
            "Written.",
            "[Tool result] Unknown",
            "lost",
        ),
    )

    session = home.session()

    assert outline(session) == [
        ("user", "Explain this:\n\nassistant:\nroles: none"),
        ("assistant", "Short."),
        ("user", "Write it"),
        ("assistant", "The file says\nuser:\ntwice\nGoing on\nWritten."),
        ("tool", "app.py\n\nb.py"),
    ]
    answer = session.messages[3]
    assert answer.thinking == "Hm."
    assert [(one.tool_name, one.input, one.output) for one in answer.tool_calls] == [
        ("Write", {"path": "a.py", "contents": "one\ntwo"}, None),
        ("Shell", {"command": "ls"}, "app.py\n\nb.py"),
    ]


# The IDE


@pytest.mark.parametrize(
    ("platform", "user", "env"),
    [
        ("linux", LINUX, {}),
        ("darwin", "Library/Application Support/Cursor/User", {}),
        ("win32", "AppData/Roaming/Cursor/User", {}),
        ("win32", "Moved/Cursor/User", {"APPDATA": "Moved"}),
        ("linux", "xdg/Cursor/User", {"XDG_CONFIG_HOME": "xdg"}),
        ("linux", ".cursor-server/data/User", {}),
    ],
)
def test_where_the_ide_is_on_each_system(home, platform, user, env):
    home.ide(user).composer(ID, asked("One"), told("Done"))

    assert list(home.sessions(platform, **env)) == [ID]
    assert home.path / user in home.reader(platform, **env).roots()


def test_where_the_cli_is(home):
    for id, place, env in ((ID, "moved", {"CURSOR_CONFIG_DIR": "moved"}), (OTHER, ".config/cursor", {})):
        store = home.store(id, place=f"{place}/chats/x")
        store.meta(store.root([user("One"), assistant("Done")]))

        assert id in home.sessions(**env)


def test_bubbles_become_messages(home):
    failing = {"status": "error", "result": "", "error": '{"clientVisibleErrorMessage":"denied"}'}
    home.ide().composer(
        ID,
        asked(
            "One",
            createdAt="2026-11-17T20:50:00.000Z",
            images=[{"mimeType": "image/png"}],
            modelInfo={"modelName": "m-1"},
        ),
        {"type": 2, "capabilityType": 30, "thinking": {"text": "Hm."}, "thinkingDurationMs": 12},
        told("Looking", createdAt="2026-11-17T20:51:00.000Z"),
        used("read_file", result='{"contents":"text"}'),
        used("run", **failing),
        used("wait", status="loading", result=None, rawArgs="torn {"),
        told("", thinking="Bare thought"),
        told("Done", errorDetails={"message": "lost connection"}),
        {"type": 2, "capabilityType": 22, "text": "So far."},
        told("Rewound"),
        {"type": 99, "text": "of no known kind"},
        listed=[0, 1, 2, 3, 4, 5, 6, 7, 8, 10],
    )

    session = home.session()

    assert outline(session) == [
        ("user", "One"),
        ("assistant", "Looking"),
        ("tool", "text"),
        ("tool", "denied"),
        ("assistant", "Done"),
        ("error", "lost connection"),
        ("compaction", "So far."),
    ]
    assert session.messages[0].attachments == (Attachment("image", "image/png"),)
    answer = session.messages[1]
    assert (answer.thinking, answer.model, session.messages[4].thinking) == ("Hm.", "m-1", "Bare thought")
    assert [(one.input, one.output, one.is_error) for one in answer.tool_calls] == [
        ({"a": 1}, "text", False),
        ({"a": 1}, "denied", True),
        ("torn {", None, False),
    ]


def test_where_the_text_of_a_prompt_may_be(home):
    paragraphs = [
        {"type": "paragraph", "children": [{"type": "text", "text": "Rich "}, {"type": "mention", "text": "@a.py"}]},
        {
            "type": "paragraph",
            "children": [{"type": "text", "text": "two"}, {"type": "linebreak"}, {"type": "text", "text": "lines"}],
        },
    ]
    ide = home.ide()
    ide.composer(
        ID,
        {"type": 1, "text": "", "rawText": "Raw"},
        {"type": 1, "richText": json.dumps({"root": {"type": "root", "children": paragraphs}})},
        told("Done"),
    )

    assert said(home.session(), "user") == ["Raw", "Rich @a.py\ntwo\nlines"]


def test_rows_of_every_kind(home):
    """Values are text, bytes or nothing; a header can tell what its bubble does not."""
    ide = home.ide()
    headers = [
        {"bubbleId": "a", "type": 1, "createdAt": "2026-11-17T20:50:00Z"},
        {"bubbleId": "b", "type": 2},
        {"bubbleId": "gone"},
    ]
    record = {"fullConversationHeadersOnly": headers, "conversationMap": {"b": {"text": "Mapped"}}, "createdAt": "torn"}
    ide.put(f"composerData:{ID}", json.dumps(record).encode())
    ide.put(f"bubbleId:{ID}:a", json.dumps({"text": "One", "createdAt": None}).encode())
    ide.put(f"bubbleId:{ID}:b", None)
    ide.put("composerData:null", None)
    ide.put("composerData:torn", b'{"fullConversationHeadersOnly": [')
    ide.put("composerData:draft", {"text": "half typed", "fullConversationHeadersOnly": []})

    sessions = home.sessions()

    assert {id: said(one) for id, one in sessions.items()} == {ID: ["One", "Mapped"]}
    assert sessions[ID].created_at == datetime(2026, 11, 17, 20, 50, tzinfo=UTC)


def test_what_a_composer_says_of_itself(home):
    ide = home.ide()
    known = {"name": "Named", "modelConfig": {"modelName": "default"}, "createdOnBranch": "main", "isArchived": True}
    ide.composer(ID, asked("One"), told("Done"), **known)

    session = home.session()

    assert (session.title, session.model, session.git_branch, session.archived) == ("Named", None, "main", True)
    assert session.created_at.timestamp() == START / 1000
    assert session.updated_at.timestamp() == START / 1000 + 1


def test_no_counter_of_the_ide_is_usage(home):
    counted = {"tokenCount": {"inputTokens": 41263, "outputTokens": 4901}}
    home.ide().composer(ID, asked("One"), told("Done", **counted), promptTokenBreakdown={"totalUsedTokens": 41263})
    manager = SessionManager(Host(home.path, {}, "linux"), cache=False)

    (summary,) = manager.list(Query(agents=("cursor",)))

    assert summary.cost is None
    assert home.session().usage_recorded is False


@pytest.mark.parametrize(
    ("described", "more", "cwd"),
    [
        ({"folder": "file:///work/my%20shop/"}, {}, "/work/my shop"),
        ({"folder": "vscode-remote://ssh-remote%2Bhost/srv/shop"}, {}, "/srv/shop"),
        ({"folder": "file:///c%3A/Users/dev/shop"}, {}, "c:\\Users\\dev\\shop"),
        ({"workspace": "file:///work/all.code-workspace"}, {}, "/work"),
        ({"folder": "untitled:shop"}, {}, "/work/told"),
        ({"folder": "file:///work/a"}, {"workspaceIdentifier": {"id": "w1", "uri": {"fsPath": "/work/b"}}}, "/work/b"),
        ({"folder": "file:///work/a"}, {"workspaceIdentifier": {"id": "x", "uri": "file:///work/c"}}, "/work/c"),
    ],
)
@pytest.mark.parametrize("names", ["allComposers", "selectedComposerIds", "workspaceIdentifier"])
def test_which_folder_a_composer_belongs_to(home, described, more, cwd, names):
    ide = home.ide()
    path = ide.workspace("w1", **described)
    if names == "workspaceIdentifier":
        more = {"workspaceIdentifier": {"id": "w1"}, **more}
    else:
        listed = [{"composerId": ID}] if names == "allComposers" else [ID]
        ide.item(path, "composer.composerData", {names: listed})
    ide.composer(ID, asked("One", workspaceUris=[7, "file:///work/told"]), told("Done"), **more)

    assert home.session().cwd == cwd


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ({"subComposerIds": [OTHER]}, {}),
        ({"subagentComposerIds": [OTHER]}, {}),
        ({}, {"subagentInfo": {"parentComposerId": ID}}),
    ],
)
def test_subagents_of_the_ide(home, parent, child):
    ide = home.ide()
    ide.composer(ID, asked("One"), told("Done"), **parent)
    ide.composer(OTHER, asked("Explore"), told("Explored"), **child)

    sessions = home.sessions()

    assert sessions[ID].kind == "main"
    assert (sessions[OTHER].kind, sessions[OTHER].parent_id) == ("subagent", ID)


def test_cursor_3_describes_composers_in_a_table_of_their_own(home):
    ide = home.ide()
    ide.workspace("w1", folder="file:///work/shop")
    ide.composer(ID, asked("One"), told("Done"))
    ide.composer(OTHER, asked("Explore"), told("Explored"))
    with closing(sqlite3.connect(ide.path)) as db:
        db.execute(
            "create table composerHeaders (composerId TEXT PRIMARY KEY, workspaceId, lastUpdatedAt, isArchived, isSubagent, value)"
        )
        heads = {ID: ("w1", 1, {"name": "From the head"}), OTHER: (None, 0, {"subagentInfo": {"parentComposerId": ID}})}
        for id, (place, archived, head) in heads.items():
            db.execute(
                "insert into composerHeaders values (?, ?, ?, ?, 0, ?)", (id, place, START, archived, json.dumps(head))
            )
        db.commit()
        before = home.refs()
        sessions = home.sessions()
        db.execute("update composerHeaders set isArchived = 0")
        db.commit()

    assert (sessions[ID].title, sessions[ID].cwd, sessions[ID].archived) == ("From the head", "/work/shop", True)
    assert (sessions[OTHER].parent_id, sessions[OTHER].archived) == (ID, False)
    assert [id for id, ref in home.refs().items() if ref.fingerprint != before[id].fingerprint] == [ID]


def test_chats_of_old_versions(home):
    ide = home.ide()
    path = ide.workspace("w1", folder="file:///work/shop")
    bubbles = [{"type": "user", "rawText": "Old question"}, {"type": "ai", "text": "Old answer", "modelType": "gpt-4"}]
    tabs = [
        {"tabId": "tab", "chatTitle": "Old chat", "lastSendTime": START, "bubbles": bubbles},
        {"tabId": "empty", "bubbles": []},
    ]
    requests = [{"message": {"text": "Asked"}, "response": [{"value": "Part "}, {"value": {"value": "two"}}]}, "torn"]
    ide.item(path, "workbench.panel.aichat.view.aichat.chatdata", {"tabs": [*tabs, "torn", {"tabId": 7}]})
    ide.item(path, "interactive.sessions", [{"sessionId": "vs", "creationDate": START, "requests": requests}])
    inline = {
        "composerId": "inline",
        "name": "Inline",
        "conversation": [asked("Inline question"), told("Inline answer")],
    }
    ide.item(path, "composer.composerData", {"allComposers": [inline, {"composerId": ID}]})
    ide.composer("tab", asked("Moved question"), told("Moved answer"))

    sessions = home.sessions()

    assert {id: said(one) for id, one in sessions.items()} == {
        "tab": ["Moved question", "Moved answer"],
        "vs": ["Asked", "Part two"],
        "inline": ["Inline question", "Inline answer"],
    }
    assert sessions["vs"].cwd == sessions["inline"].cwd == "/work/shop"

    ide.put("composerData:tab", None)
    ide.item(path, "interactive.sessions", b'[{"sessionId": "vs", "requests": [')

    assert set(home.sessions()) == {"tab", "inline"}
    tab = home.session("tab")
    assert (said(tab), tab.title, tab.model, tab.cwd) == (
        ["Old question", "Old answer"],
        "Old chat",
        "gpt-4",
        "/work/shop",
    )
    assert tab.created_at.timestamp() == tab.updated_at.timestamp() == START / 1000


@contextmanager
def traced():
    """Every question to the tables of a database, by the database's path."""
    statements: dict[str, list[str]] = {}

    @contextmanager
    def watched(path: str):
        asked = statements.setdefault(path, [])
        with reading(path) as db:
            db.set_trace_callback(lambda one: None if "sqlite_master" in one else asked.append(one))
            yield db

    with pytest.MonkeyPatch.context() as patch:
        for module in (cursor, workspace):
            patch.setattr(module, "reading", watched)
        yield statements


def fill(ide: Ide, count: int) -> None:
    with closing(sqlite3.connect(ide.path)) as db:
        for number in range(count):
            record = {
                "lastUpdatedAt": START,
                "fullConversationHeadersOnly": [{"bubbleId": "a", "type": 1}, {"bubbleId": "b", "type": 2}],
            }
            db.execute("insert into cursorDiskKV values (?, ?)", (f"composerData:c{number}", json.dumps(record)))
            for name in "ab":
                bubble = json.dumps({"text": f"{name} {number}"})
                db.execute("insert into cursorDiskKV values (?, ?)", (f"bubbleId:c{number}:{name}", bubble))
        db.commit()


@pytest.mark.parametrize("count", [3, 500])
def test_a_list_takes_a_query_for_each_kind_of_row(home, count):
    ide = home.ide()
    fill(ide, count)
    ide.item(ide.workspace("w1"), "composer.composerData", {"allComposers": [{"composerId": "c1"}]})
    with traced() as statements:
        refs = home.refs()

    assert len(refs) == count
    shared = [one for one in statements[str(ide.path)] if not one.lower().startswith("pragma")]
    assert len(shared) == 2
    assert "max(rowid)" in shared[1]
    assert not any("ItemTable" in one for one in statements[str(ide.path)])
    (own,) = (kept for path, kept in statements.items() if path != str(ide.path))
    assert len([one for one in own if "from ItemTable" in one]) == 4


def test_a_warm_list_reads_no_messages(home):
    """Nothing changed: no database is opened. One composer changed: only that one is read."""
    ide = home.ide()
    fill(ide, 20)
    host = Host(home.path, {}, "linux")
    cold = SessionManager(host).list(Query(agents=("cursor",)))
    with traced() as statements:
        warm = SessionManager(host).list(Query(agents=("cursor",)))

    assert len(cold) == 20
    assert warm == cold
    assert statements == {}

    ide.put("bubbleId:c7:b", {"text": "b changed"})
    with traced() as statements:
        SessionManager(host).list(Query(agents=("cursor",)))

    read = [one for one in statements[str(ide.path)] if "bubbleId:c" in one]
    assert len(read) == 1
    assert "bubbleId:c7:" in read[0]


@pytest.mark.parametrize(
    "change",
    [
        "update cursorDiskKV set value = replace(value, '{START}', '{LATER}') where key = 'composerData:c1'",
        "update cursorDiskKV set value = replace(value, '}}', ', \"name\": \"x\"}}') where key = 'composerData:c1'",
        "insert into cursorDiskKV select key, value from cursorDiskKV where key = 'bubbleId:c1:a'",
        "delete from cursorDiskKV where key = 'bubbleId:c1:b'",
    ],
)
def test_a_composer_that_changed_is_told_by_its_rows(home, change):
    ide = home.ide()
    fill(ide, 3)
    before = home.refs()
    with closing(sqlite3.connect(ide.path)) as db:
        db.execute(change.format(START=START, LATER=START + 1))
        db.commit()

    assert [id for id, ref in home.refs().items() if ref.fingerprint != before[id].fingerprint] == ["c1"]


def test_a_damaged_database_costs_only_itself(home):
    ide = home.ide()
    ide.composer(ID, asked("One"), told("Done"))
    path = ide.workspace("w1", folder="file:///work/shop")
    path.write_bytes(b"no database at all")
    home.write("sessions/sessions.db", "nor this")
    manager = SessionManager(Host(home.path, {}, "linux"), cache=False)

    assert [one.session_id for one in manager.list(Query(agents=("cursor",)))] == [ID]
    assert {one.path for one in manager.skipped} == {str(path), str(home.path / ".cursor/sessions/sessions.db")}


def test_what_stands_before_a_damaged_page_is_read(home):
    ide = home.ide()
    fill(ide, 400)
    with closing(sqlite3.connect(ide.path)) as db:
        page = db.execute("pragma page_size").fetchone()[0]
        (leaf,) = db.execute(
            "select max(pageno) from dbstat where name = 'cursorDiskKV' and pagetype = 'leaf'"
        ).fetchone()
    data = bytearray(ide.path.read_bytes())
    data[(leaf - 1) * page : leaf * page] = b"\xff" * page
    ide.path.write_bytes(data)
    manager = SessionManager(Host(home.path, {}, "linux"), cache=False)

    listed = manager.list(Query(agents=("cursor",), limit=0))

    assert 300 < len(listed) < 400
    assert str(ide.path) in {one.path for one in manager.skipped}


def test_the_state_of_the_store_changes_with_any_part_of_it(home):
    states = [home.reader().state()]
    ide = home.ide()
    states.append(home.reader().state())
    ide.workspace("w1", folder="file:///work/shop")
    states.append(home.reader().state())
    store = home.store()
    store.meta(store.root([user("One"), assistant("Done")]))
    states.append(home.reader().state())
    (store.path.parent / "meta.json").write_text("{}")
    states.append(home.reader().state())
    home.write(f"projects/p/agent-transcripts/{ID}.jsonl", line("user", "One"))
    states.append(home.reader().state())
    home.write("sessions/sessions.db", "x")
    states.append(home.reader().state())

    assert len(set(states)) == len(states)
    assert home.reader().state() == states[-1]


def test_raw_of_a_composer_holds_every_bubble_and_no_key(home):
    home.ide().composer(ID, asked("One"), told("Rewound"), told("Done"), listed=[0, 2], blobEncryptionKey="a secret")
    with home.reader() as reader:
        (ref,) = reader.refs()
        raw = reader.raw(ref, ID)

    assert "a secret" not in json.dumps(raw)
    assert [bubble["text"] for bubble in raw["bubbles"]] == ["One", "Rewound", "Done"]


# sessions.db


def plain_tables(home: Home, key: str = "INTEGER PRIMARY KEY", link: str = "INTEGER") -> sqlite3.Connection:
    path = home.path / ".cursor/sessions/sessions.db"
    path.parent.mkdir(parents=True)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"create table sessions (id {key}, title TEXT, model TEXT, created_at INTEGER, updated_at INTEGER)")
    db.execute(
        f"create table messages (id INTEGER PRIMARY KEY, session_id {link}, role TEXT, content TEXT, input_tokens INTEGER)"
    )
    return db


@pytest.mark.parametrize(
    ("key", "link", "ids"),
    [("INTEGER PRIMARY KEY", "INTEGER", (42, 43)), ("INTEGER PRIMARY KEY", "", (42, 43)), ("TEXT", "", (ID, OTHER))],
)
def test_a_database_of_plain_tables(home, key, link, ids):
    with closing(plain_tables(home, key, link)) as db:
        for id in ids:
            db.execute("insert into sessions values (?, 'Named', 'm-1', ?, ?)", (id, START, START + 1000))
        for role, content in (
            ("user", "One"),
            ("assistant", "Done"),
            ("assistant", '[{"type": "text", "text": "And more"}]'),
        ):
            db.execute(
                "insert into messages (session_id, role, content, input_tokens) values (?, ?, ?, 7)",
                (ids[0], role, content),
            )
    manager = SessionManager(Host(home.path, {}, "linux"), cache=False)

    (summary,) = manager.list(Query(agents=("cursor",)))

    session = manager.get("cursor", str(ids[0]), raw=True)
    assert (summary.session_id, summary.title, summary.model, summary.cost) == (str(ids[0]), "Named", "m-1", None)
    assert said(session) == ["One", "Done", "And more"]
    assert (session.created_at.timestamp(), session.updated_at.timestamp()) == (START / 1000, START / 1000 + 1)
    assert [row["content"] for row in session.raw["messages"]][:2] == ["One", "Done"]
    assert home.reader().resume_command(summary, None) is None


@pytest.mark.parametrize("count", [2, 300])
def test_plain_tables_are_listed_with_a_query_each(home, count):
    with closing(plain_tables(home)) as db:
        db.execute("begin")
        for number in range(count):
            db.execute("insert into sessions values (?, 'Named', 'm-1', ?, ?)", (number, START, START))
            db.execute("insert into messages (session_id, role, content) values (?, 'user', 'One')", (number,))
        db.execute("commit")
    with traced() as statements:
        refs = home.refs()

    assert len(refs) == count
    (own,) = statements.values()
    assert len([one for one in own if one.startswith("select")]) == 2


def test_a_foreign_sessions_db_is_no_store(home):
    path = home.path / ".cursor/sessions/sessions.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table hooks (name TEXT)")

    assert home.refs() == {}
