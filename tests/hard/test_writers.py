"""While agents write: every answer is what stood in the store at some moment, no writer waits, nothing fails."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from amux.manager import SessionManager
from amux.query import Query
from amux.readers._base import Host

from . import law

SECONDS = 60 if law.SOAK else 3
TURNS = 400 if law.SOAK else 60

APPENDER = """
import random, sys, time
dice, end = random.Random(7), time.monotonic() + float(sys.argv[1])
files = [(open(path, "ab", buffering=0), open(path + ".whole", "rb").read()) for path in sys.argv[2:]]
written = [0] * len(files)
total = sum(len(content) for _, content in files)
while time.monotonic() < end and sum(written) < total:
    number = dice.randrange(len(files))
    file, content = files[number]
    size = dice.choice([1, 7, 100, 4000, max(1, len(content) // 40)])
    written[number] += file.write(content[written[number] : written[number] + size])
    time.sleep(dice.uniform(0, 2 * float(sys.argv[1]) / 400))
for (file, content), done in zip(files, written):
    file.write(content[done:])
"""
"""Writes files to their end in chunks that know nothing of lines."""

INSERTER = """
import json, random, sqlite3, sys, time
path, seconds = sys.argv[1], float(sys.argv[2])
dice, slowest, truncated = random.Random(7), 0.0, 0
db = sqlite3.connect(path, timeout=0, isolation_level=None)
assert db.execute("pragma journal_mode = wal").fetchone() == ("wal",)
db.execute("pragma wal_autocheckpoint = 0")
db.create_function("octet_length", 1, lambda text: len(text.encode()))  # checks of newer stores; SQLite has it since 3.43
turns = json.load(sys.stdin)
for number, statements in enumerate(turns):
    began = time.monotonic()
    db.execute("begin immediate")
    for statement, values in statements:
        db.execute(statement, values)
    db.execute("commit")
    if dice.random() < 0.2 or number == len(turns) - 1:
        busy, _, _ = db.execute(f"pragma wal_checkpoint({dice.choice(['passive', 'restart', 'truncate'])})").fetchone()
        assert not busy, "a checkpoint had to wait"
        truncated += 1
    slowest = max(slowest, time.monotonic() - began)
    time.sleep(dice.uniform(0, 2 * seconds / len(turns)))
print(json.dumps({"slowest": slowest, "checkpoints": truncated}))
"""
"""Writes to a database that fails at once where it would have to wait."""


@contextmanager
def running(argv: list[str], **options) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def asked(host: Host, agent: str, *, cache: bool) -> dict[str, tuple[law.Said, ...]]:
    """What amux lists and shows of an agent at this moment; a search and a bill on the way."""
    manager = SessionManager(host, cache=cache)
    try:
        listed = manager.list(Query(agents=(agent,), subagents=True))
        manager.search("marmalade OR answer", Query(agents=(agent,), limit=10, sort="relevance"))
        manager.total_cost(Query(agents=(agent,)))
        # A file without a single whole line yet may be called unreadable: nobody can tell it from one that is damaged.
        assert [one for one in manager.skipped if not no_line_yet(one.path)] == []
        return {one.session_id: law.said(manager.get(agent, one.session_id)) for one in listed}
    finally:
        manager.catalog.close()


def no_line_yet(path: str) -> bool:
    return path.endswith(".jsonl") and Path(path).read_bytes().count(b"\n") <= 1


# Files of lines


@dataclass(frozen=True, slots=True)
class Growing:
    """A file of lines that is being written, its session, and all that can ever be said of it."""

    agent: str
    path: Path
    session_id: str
    moments: frozenset[tuple[law.Said, ...]]
    whole: tuple[law.Said, ...]


def growing(agent: str, scenarios: list[Path], home: Path) -> Growing | None:
    """The longest session of an agent that is one file of lines, in the home, where its file is empty yet."""
    best: tuple[int, Path, Path] | None = None
    for scenario in scenarios:
        if json.loads((scenario / "truth.json").read_text())["env"]:
            continue
        telling = law.told(agent, Host(scenario / "home", {}), shown=False)
        for session in telling.sessions.values():
            if session.path.endswith(".jsonl") and (best is None or len(session.said) > best[0]):
                best = len(session.said), scenario, Path(session.path).relative_to(scenario / "home")
    if best is None:
        return None
    _, scenario, relative = best
    shutil.copytree(scenario / "home", home, symlinks=True, dirs_exist_ok=True)
    return prepared(agent, home / relative, home)


def prepared(agent: str, path: Path, home: Path) -> Growing:
    content = path.read_bytes()
    path.with_name(path.name + ".whole").write_bytes(content)
    found = law.sessions_in(law.told(agent, Host(home, {}), shown=False), str(path))
    id = max(found, key=lambda one: len(found[one].said))
    moments = {()}
    whole = found[id].said
    for end in [0, *(place + 1 for place, byte in enumerate(content) if byte == 10), len(content)]:
        path.write_bytes(content[:end])
        telling = law.told(agent, Host(home, {}), shown=False)
        if id in telling.sessions:
            moments.add(telling.sessions[id].said)
    path.write_bytes(b"")
    return Growing(agent, path, id, frozenset(moments), whole)


def test_every_answer_about_growing_files_was_true_at_a_moment(corpus, tmp_path):
    home = tmp_path / "home"
    files = [one for agent in law.agents() if (one := growing(agent, corpus.scenarios(agent), home))]
    rounds, seen = 0, 0
    with running([sys.executable, "-c", APPENDER, str(SECONDS), *(str(one.path) for one in files)]) as writer:
        while writer.poll() is None:
            for one in files:
                said = asked(Host(home, {}), one.agent, cache=rounds % 3 > 0).get(one.session_id, ())
                assert said in one.moments, one.agent
                seen += 0 < len(said) < len(one.whole)
            rounds += 1
        assert writer.returncode == 0, writer.communicate()
    for one in files:
        assert asked(Host(home, {}), one.agent, cache=True)[one.session_id] == one.whole
    assert seen > len(files)  # in the middle of writing, and more than once


# Databases


@dataclass(frozen=True, slots=True)
class Store:
    """A database of an agent: where it lies, and what it writes when a prompt and its answer are said."""

    agent: str
    scenario: str
    path: str
    session: str
    turn: Callable[[sqlite3.Connection, str, int], list[tuple[str, list]]]


def copied(db: sqlite3.Connection, table: str, template: dict, **changes) -> tuple[str, list]:
    """A row like another, as the statement that inserts it."""
    row = {**template, **changes}
    return f"insert into {table} ({', '.join(row)}) values ({', '.join('?' * len(row))})", list(row.values())


def row_like(db: sqlite3.Connection, query: str, *values: object) -> dict:
    cursor = db.execute(query, values)
    return dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))


def hermes_turn(db: sqlite3.Connection, session: str, number: int) -> list[tuple[str, list]]:
    statements = []
    for place, role in enumerate(("user", "assistant")):
        like = row_like(
            db, "select * from messages where session_id = ? and role = ? and tool_calls is null", session, role
        )
        last = db.execute("select max(id), max(timestamp) from messages").fetchone()
        new = {
            "id": last[0] + 2 * number + place + 1,
            "content": f"{role} {number}",
            "timestamp": last[1] + number + place / 2,
        }
        statements.append(copied(db, "messages", like, **new))
    return statements


def agent_turn(db: sqlite3.Connection, session: str, number: int) -> list[tuple[str, list]]:
    (last,) = db.execute("select max(id) from entries").fetchone()
    statements = []
    for place, role in enumerate(("user", "assistant")):
        like = row_like(
            db, "select * from entries where session_id = ? and role = ? and kind = 'message'", session, role
        )
        new = {
            "id": last + 2 * number + place + 1,
            "content": f"{role} {number}",
            "metadata": "{}",
            "created_at": f"2027-01-01 {number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.{place} +0000 UTC",
        }
        statements.append(copied(db, "entries", like, **new))
    return statements


def opencode_turn(db: sqlite3.Connection, session: str, number: int) -> list[tuple[str, list]]:
    statements = []
    (last,) = db.execute("select max(time_created) from message").fetchone()
    for place, role in enumerate(("user", "assistant")):
        message = row_like(
            db, "select * from message where session_id = ? and json_extract(data, '$.role') = ?", session, role
        )
        id, time = f"msg_z{2 * number + place:06}", last + 10 * number + 5 * place + 1
        told = {
            **json.loads(message["data"]),
            "time": {"created": time, "completed": time},
            "parentID": f"msg_z{2 * number:06}",
        }
        statements.append(
            copied(db, "message", message, id=id, data=json.dumps(told), time_created=time, time_updated=time)
        )
        part = row_like(
            db, "select * from part where session_id = ? and json_extract(data, '$.type') = 'text'", session
        )
        text = json.dumps({"type": "text", "text": f"{role} {number}"})
        new = {"id": f"prt_z{2 * number + place:06}", "message_id": id, "time_created": time, "time_updated": time}
        statements.append(copied(db, "part", part, data=text, **new))
    return statements


def openclaw_turn(db: sqlite3.Connection, session: str, number: int) -> list[tuple[str, list]]:
    state = row_like(db, "select * from session_transcript_index_state where session_id = ?", session)
    event = row_like(db, "select * from transcript_events where session_id = ? and seq = 0", session)
    active = row_like(db, "select * from session_transcript_active_events where active_position = 0")
    leaf = state["leaf_event_id"] if number == 0 else f"z{number - 1}-assistant"
    statements = []
    for place, role in enumerate(("user", "assistant")):
        further = 2 * number + place
        seq, time = state["indexed_seq"] + further + 1, state["updated_at"] + 1000 * (further + 1)
        told = {
            "type": "message",
            "id": f"z{number}-{role}",
            "parentId": leaf,
            "message": {"role": role, "content": [{"type": "text", "text": f"{role} {number}"}], "timestamp": time},
        }
        leaf = f"z{number}-{role}"
        statements += [
            copied(db, "transcript_events", event, seq=seq, event_json=json.dumps(told), created_at=time),
            copied(
                db,
                "session_transcript_active_events",
                active,
                active_position=state["active_event_count"] + further,
                event_seq=seq,
            ),
            (
                "update session_transcript_index_state set indexed_seq = ?, leaf_event_id = ? where session_id = ?",
                [seq, leaf, session],
            ),
        ]
    return statements


def cursor_turn(db: sqlite3.Connection, session: str, number: int) -> list[tuple[str, list]]:
    """In the IDE's database: a bubble for each text, and the list of them."""
    statements = []
    for kind, role in enumerate(("user", "assistant"), 1):
        id = f"zz-{number}-{role}"
        bubble = json.dumps({"_v": 3, "type": kind, "bubbleId": id, "text": f"{role} {number}"})
        header = json.dumps({"bubbleId": id, "type": kind})
        listed = "json_insert(value, '$.fullConversationHeadersOnly[#]', json(?))"
        statements += [
            ("insert into cursorDiskKV values (?, ?)", [f"bubbleId:{session}:{id}", bubble]),
            (f"update cursorDiskKV set value = {listed} where key = ?", [header, f"composerData:{session}"]),
        ]
    return statements


def cursor_agent_turn(db: sqlite3.Connection, session: str, number: int) -> list[tuple[str, list]]:
    """In a database of the CLI: blobs, a new root that lists them all, and the name of that root."""
    (value,) = db.execute("select value from meta").fetchone()
    meta = json.loads(bytes.fromhex(value))
    (root,) = db.execute("select data from blobs where id = ?", (meta["latestRootBlobId"],)).fetchone()
    statements = []
    for turn in range(number + 1):
        for role in ("user", "assistant"):
            data = json.dumps({"role": role, "content": [{"type": "text", "text": f"{role} {turn}"}]}).encode()
            root += b"\x0a\x20" + sha256(data).digest()
            if turn == number:
                statements.append(blob(data))
    told = json.dumps({**meta, "latestRootBlobId": sha256(root).hexdigest()}).encode().hex()
    return [*statements, blob(root), ("update meta set value = ?", [told])]


def blob(data: bytes) -> tuple[str, list]:
    return f"insert into blobs values (?, x'{data.hex()}')", [sha256(data).hexdigest()]


CLI_CHAT = ".cursor/chats/ebe9ecaa4aa0111b9f13907443adb618/c0de0001-0000-4000-8000-000000000001/store.db"
STORES = [
    Store("hermes", "unicode-two-dirs", ".hermes/state.db", "select session_id from messages limit 1", hermes_turn),
    Store(
        "agent", "sqlite-resume", ".agent/sessions/sessions.db", "select session_id from entries limit 1", agent_turn
    ),
    Store(
        "opencode",
        "one-tool-1.17.0",
        ".local/share/opencode/opencode.db",
        "select session_id from message limit 1",
        opencode_turn,
    ),
    Store(
        "openclaw",
        "one-tool",
        ".openclaw/agents/main/agent/openclaw-agent.sqlite",
        "select session_id from transcript_events limit 1",
        openclaw_turn,
    ),
    Store(
        "cursor",
        "ide-composer",
        ".config/Cursor/User/globalStorage/state.vscdb",
        "select substr(key, 14) from cursorDiskKV where value like '%Marmalade in the IDE%'",
        cursor_turn,
    ),
    Store("cursor", "cli-store", CLI_CHAT, "select 'c0de0001-0000-4000-8000-000000000001'", cursor_agent_turn),
]


@pytest.mark.parametrize("kind", STORES, ids=lambda kind: f"{kind.agent}/{kind.scenario}")
def test_every_answer_about_a_busy_database_is_a_prefix_of_the_truth(corpus, tmp_path, kind):
    agent = kind.agent
    scenario = next(path for path in corpus.scenarios(agent) if path.name == kind.scenario)
    case = corpus.open_case(scenario, tmp_path)
    host, path = Host(case.home, case.env), case.home / kind.path
    db = sqlite3.connect(path)
    (session,) = db.execute(kind.session).fetchone()
    turns = [kind.turn(db, session, number) for number in range(TURNS)]
    db.close()
    before = asked(host, agent, cache=False)
    truth = [*before[session], *((role, f"{role} {n}") for n in range(TURNS) for role in ("user", "assistant"))]
    seen = set()
    with running([sys.executable, "-c", INSERTER, str(path), str(SECONDS / 2)], stdin=subprocess.PIPE) as writer:
        writer.stdin.write(json.dumps(turns))
        writer.stdin.close()
        writer.stdin = None
        while writer.poll() is None:
            answer = asked(host, agent, cache=len(seen) % 3 > 0)
            assert set(answer) == set(before)
            assert list(answer[session]) == truth[: len(answer[session])]
            seen.add(len(answer[session]))
        told, errors = writer.communicate()
    assert writer.returncode == 0, errors
    assert list(asked(host, agent, cache=True)[session]) == truth
    assert len(seen) > 3  # in the middle of writing, and more than once
    assert json.loads(told)["slowest"] < 5
