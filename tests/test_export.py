"""Sessions as files, and read back."""

import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import amux
from amux.cost import Report
from amux.errors import InvalidValue, UnreadableSession
from amux.manager import SessionManager
from amux.model import Message, Session
from amux.output import export, parquet
from amux.output.jsonout import dumps
from amux.query import Query
from amux.readers._base import Host
from amux.readers._base import session as made


def whole(manager: SessionManager):
    return lambda summary: manager.get(summary.agent, summary.session_id)


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_json_reads_back_into_the_same_session(case, tmp_path, form):
    """For every session of every agent: what was exported, read and exported again is the same to the byte."""
    for id in case.listed(subagents=True):
        session = case.manager.get(case.agent, id, raw=True)
        written = b"".join(export.chunks(session, form))
        path = tmp_path / f"session.{form}"
        path.write_bytes(written)
        again = amux.load(path)

        assert b"".join(export.chunks(again, form)) == written
        assert [m.content for m in again.messages] == [m.content for m in session.messages]
        assert again.messages == tuple(
            replace(m, timestamp=other.timestamp, cost=other.cost, offset=None)
            for m, other in zip(session.messages, again.messages, strict=True)
        )


def test_json_is_what_the_model_says(case):
    for id in case.listed():
        session = case.read(id)

        assert json.loads(b"".join(export.chunks(session, "json"))) == json.loads(dumps(session))


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", "not json", '{"sessionId": 3}', '{"sessionId": "x", "createdAt": "never"}']
)
def test_what_is_no_export_is_said_so(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)

    with pytest.raises(UnreadableSession):
        amux.load(path)


def test_a_file_is_never_overwritten_by_accident(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("mine")
    with pytest.raises(InvalidValue, match="--force"):
        export.write_file(path, [b"theirs"], force=False)
    assert path.read_text() == "mine"
    export.write_file(path, [b"theirs"], force=True)

    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("force", [False, True])
def test_a_pipe_is_written_to_and_stays_one(tmp_path, force):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    export.write_file(pipe, [b"one ", b"two"], force=force)
    came = os.read(reader, 100)
    os.close(reader)

    assert came == b"one two"
    assert pipe.is_fifo()


def test_who_reads_a_pipe_may_have_seen_enough(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    made = []

    def chunks():
        os.close(reader)
        for number in range(100):
            made.append(number)
            yield b"x" * 2**16

    export.write_file(pipe, chunks(), force=True)

    assert 0 < len(made) < 100
    assert pipe.is_fifo()


def test_a_link_stays_a_link(tmp_path):
    link, file = tmp_path / "link", tmp_path / "deep" / "file"
    file.parent.mkdir()
    file.write_text("old")
    link.symlink_to(file)
    export.write_file(link, [b"new"], force=True)

    assert link.is_symlink()
    assert file.read_text() == "new"


def test_a_link_to_stdout_is_stdout(script_runner, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/dev/stdout")
    asked = [str(Path(sys.executable).with_name("amux")), "--demo", "sessions", "export", "codex", "latest"]
    run = script_runner.run([*asked, "--output", str(link), "--force"])

    assert run.stdout == script_runner.run(asked).stdout
    assert link.is_symlink()


def test_a_failed_export_leaves_nothing_behind(tmp_path):
    def chunks():
        yield b"half"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        export.write_file(tmp_path / "x.json", chunks(), force=False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidValue, match="cannot write"):
        export.write_file(tmp_path / "no" / "x.json", [b""], force=False)


def named(id: str) -> Session:
    return made("claude", id, [Message("user", "hi")], path="nowhere")


@pytest.mark.parametrize(
    "id", ["../../etc/passwd", "-rf", "a;b", "a\nb", ".", "..", "x" * 5000, "con/nul", "\x1b[31m", "$(touch x)", "ünï"]
)
def test_no_id_becomes_a_path(id):
    (name,) = export.file_names([named(id)], "json")

    assert "/" not in name
    assert name.startswith("claude-")
    assert len(name) < 200
    assert name.isascii()
    assert name.isprintable()


def test_different_ids_have_different_files():
    first, second = export.file_names([named("a/b"), named("a_b")], "json")

    assert first != second


def test_no_two_files_of_a_run_are_the_same_on_any_disk():
    ids = ["a", "A", "Solo", "Ab", "aB", "twice", "twice", "twice-2", "Twice", "twice"]
    names = export.file_names([named(id) for id in ids], "json")

    assert len({name.lower() for name in names}) == len(ids)
    assert [name for name in names if len(name) < 20] == [
        *["claude-a.json", "claude-Solo.json", "claude-twice.json", "claude-twice-3.json"],
        *["claude-twice-2.json", "claude-twice-4.json"],
    ]
    assert export.file_names([named("A")], "json") == ["claude-A.json"]


def test_many_at_once(corpus, tmp_path):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "fork"), tmp_path / "case")
    sessions = case.manager.list(Query(agents=("claude",)))
    failed = export.write_all(sessions, whole(case.manager), tmp_path / "out", "json", force=False, done=lambda _: None)
    index = json.loads((tmp_path / "out" / "index.json").read_text())

    assert failed == []
    assert [entry["sessionId"] for entry in index] == [one.session_id for one in sessions]
    for entry in index:
        assert amux.load(tmp_path / "out" / entry["file"]).session_id == entry["sessionId"]
    assert stat.S_IMODE((tmp_path / "out" / "index.json").stat().st_mode) & 0o400


def one_id_in_two_projects(corpus, home: Path) -> SessionManager:
    """As pi has it when it is told an id of one's own."""
    for name in ("one-tool", "unicode"):
        source = next(path for path in corpus.scenarios("pi") if path.name == name)
        (transcript,) = source.glob("home/.pi/agent/sessions/*/*.jsonl")
        started, _, id = transcript.stem.partition("_")
        text = transcript.read_text().replace(id, "ticket-4711").replace("/home/dev/work/shop", f"/home/dev/{name}")
        file = home / ".pi" / "agent" / "sessions" / f"--home-dev-{name}--" / f"{started}_ticket-4711.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return SessionManager(Host(home, {}), cache=False)


def test_one_id_in_two_projects_is_two_sessions(corpus, script_runner, tmp_path):
    manager = one_id_in_two_projects(corpus, tmp_path / "home")
    listed = manager.list(Query(agents=("pi",)))
    out = tmp_path / "out"
    command = ["--home", str(tmp_path / "home"), "sessions", "export", "--all", "--output", str(out)]
    run = script_runner.run([str(Path(sys.executable).with_name("amux")), *command])
    index = json.loads((out / "index.json").read_text())
    written = [amux.load(out / entry["file"]) for entry in index]

    assert (run.returncode, len(listed)) == (0, 2)
    assert [entry["file"] for entry in index] == ["pi-ticket-4711.json", "pi-ticket-4711-2.json"]
    assert [one["cwd"] for one in index] == [one.cwd for one in written] == [one.cwd for one in listed]
    assert len({one.messages[0].content for one in written}) == 2
    calls = [call for one in listed for call in manager.charges(one)]
    assert sum(call["calls"] for call in calls) == manager.total_cost(Query(agents=("pi",))).call_count


def test_the_parquet_archive_opens_in_duckdb(corpus, tmp_path):
    """Its charges add up to the report: every call once, sub-agents under their main session."""
    duckdb = pytest.importorskip("duckdb")
    manager = None
    for path in corpus.scenarios("claude"):
        if path.name in ("fork", "subagent"):
            case = corpus.open_case(path, tmp_path / path.name)
            manager = case.manager
            sessions = manager.list(Query(agents=("claude",), subagents=True))
            out = tmp_path / f"{path.name}-archive"
            parquet.write(sessions, whole(manager), manager.charges, out, lambda _: None)
            found = duckdb.sql(query(out)).fetchall()
            report = manager.total_cost(Query(agents=("claude",)), report=Report(group_by=("session",)))

            assert {f"claude:{id}": (calls, tokens) for id, calls, tokens, _ in found} == {
                key: (row.call_count, row.output_tokens) for key, row in report.breakdowns.items()
            }
            assert sum(usd for *_, usd in found) == pytest.approx(float(report.total_usd))
            prompts = duckdb.sql(f"select count(*) from '{out}/messages/*/*.parquet' where role = 'user'").fetchall()
            assert prompts[0][0] == sum(m.role == "user" for one in sessions for m in whole(manager)(one).messages)


def query(out: Path) -> str:
    return f"""
        select main_session_id, sum(calls), sum(output_tokens), sum(coalesce(usd_recorded, usd_estimated))
        from read_parquet('{out}/charges/*/*.parquet', hive_partitioning = true) group by main_session_id
    """


def test_a_data_set_has_a_directory_of_its_own(tmp_path):
    (tmp_path / "x").touch()

    with pytest.raises(InvalidValue, match="not empty"):
        parquet.write([], named, lambda _: [], tmp_path, lambda _: None)


def test_an_archive_holds_every_call(script_runner, tmp_path):
    """Those of sub-agents too: a report counts them, so the archive must."""
    duckdb = pytest.importorskip("duckdb")
    amux = str(Path(sys.executable).with_name("amux"))
    out = tmp_path / "archive"
    script_runner.run([amux, "--demo", "sessions", "export", "--all", "--format", "parquet", "--output", str(out)])
    report = json.loads(script_runner.run([amux, "--demo", "cost", "report", "--json"]).stdout)
    kept = duckdb.sql(f"select sum(calls), sum(output_tokens) from '{out}/charges/*/*.parquet'").fetchall()

    assert kept == [(report["callCount"], report["outputTokens"])]
