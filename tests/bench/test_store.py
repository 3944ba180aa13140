"""The store that benchmarks measure with: always the same, truthful about itself, and readable by amux."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from amux.readers import open_reader
from amux.readers._base import Host

SCRIPT = Path(__file__).with_name("store.py")
SESSIONS, MEGABYTES = 10, 1


def load_script():
    spec = importlib.util.spec_from_file_location("bench_store", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Where the store is, and what was planted in it."""
    directory = tmp_path_factory.mktemp("store")
    return directory, load_script().build(directory, SESSIONS, MEGABYTES)


def plantings(planted):
    return [planted.rare, planted.few, planted.phrase, planted.common]


def transcripts(directory):
    home = directory / "home"
    return [*home.glob(".claude/projects/**/*.jsonl"), *home.glob(".codex/sessions/**/*.jsonl")]


def unified_id(file):
    return f"codex:{file.stem[-36:]}" if ".codex" in file.parts else f"claude:{file.stem.removeprefix('agent-')}"


def test_the_same_arguments_give_the_same_bytes(store, tmp_path):
    directory, _ = store
    size = ["--sessions", str(SESSIONS), "--megabytes", str(MEGABYTES)]
    subprocess.run([sys.executable, SCRIPT, tmp_path / "again", *size], check=True, capture_output=True)

    assert contents(tmp_path / "again") == contents(directory)


def contents(directory):
    return {file.relative_to(directory): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def test_another_seed_gives_other_sessions(store, tmp_path):
    _, planted = store

    assert load_script().build(tmp_path, SESSIONS, MEGABYTES, seed=2).common != planted.common


def test_a_store_is_never_written_over(store):
    directory, _ = store

    with pytest.raises(FileExistsError):
        load_script().build(directory, SESSIONS, MEGABYTES)


def test_every_line_is_an_object(store):
    directory, _ = store
    lines = [line for file in transcripts(directory) for line in file.read_bytes().splitlines()]

    assert lines
    assert all(isinstance(orjson.loads(line), dict) for line in lines)


def test_the_store_has_about_the_size_asked_for(store):
    directory, planted = store
    size = sum(file.stat().st_size for file in transcripts(directory))

    assert size == planted.bytes
    assert 0.8 < size / (MEGABYTES * 2**20) < 1.5


def test_planted_texts_are_where_they_are_said_to_be(store):
    directory, planted = store
    texts = {unified_id(file): file.read_text("utf-8").lower() for file in transcripts(directory)}

    assert len(texts) == planted.sessions + planted.subagents == SESSIONS + 2
    assert [len(planting.sessions) for planting in plantings(planted)[:3]] == [1, 5, 7]
    for planting in plantings(planted):
        assert sorted(planting.sessions) == sorted(name for name, text in texts.items() if planting.text in text)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_amux_reads_every_session_and_counts_every_call_once(store, agent):
    pytest.importorskip(f"amux.readers.{agent}")
    directory, planted = store
    with open_reader(agent, Host(directory / "home", {})) as reader:
        sessions = [session for ref in reader.refs() for session in reader.read(ref)]
    outputs = {charge.key: charge.usage.output_tokens for session in sessions for charge in session.charges}

    mine = sorted(unified_id(file) for file in transcripts(directory) if unified_id(file).startswith(agent))
    assert sorted(session.unified_id for session in sessions) == mine
    assert len(outputs) == planted.calls[agent]
    assert sum(outputs.values()) == planted.output_tokens[agent]
    for planting in plantings(planted):
        said = [session.unified_id for session in sessions if says(session, planting.text)]
        assert sorted(said) == sorted(name for name in planting.sessions if name.startswith(agent))


def says(session, text):
    return any(text in message.content.lower() for message in session.messages)
