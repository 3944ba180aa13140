"""The cache law: whatever happened to the files or to the cache, a warm catalog answers as if there were none."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amux.manager import SessionManager, cache_file
from amux.output.jsonout import dumps
from amux.query import Query
from amux.readers._base import Host

WORDS = ("marmalade", "tool-output-zebra", "quokka plan", "question", "fork", "done")
SEEDS = range(12)
STEPS = 7


def answers(host: Host, *, cache: bool) -> list[bytes]:
    manager = SessionManager(host, cache=cache)
    listed = dumps(manager.list(Query(subagents=True)))
    found = [dumps(manager.search(words)) for words in WORDS]
    spent = dumps(manager.total_cost(group_by=("session", "model", "day")))
    manager.catalog.close()
    return [listed, *found, spent]


def transcripts(home: Path) -> list[Path]:
    return sorted(
        path for path in home.rglob("*") if path.suffix in (".jsonl", ".json", ".db", ".sqlite") and path.is_file()
    )


def append_a_line(home: Path, dice: random.Random) -> None:
    path = dice.choice([path for path in transcripts(home) if path.suffix == ".jsonl"] or transcripts(home))
    lines = path.read_bytes().split(b"\n")
    with path.open("ab") as file:
        file.write(dice.choice(lines) + b"\n")


def truncate(home: Path, dice: random.Random) -> None:
    path = dice.choice(transcripts(home))
    os.truncate(path, dice.randrange(path.stat().st_size + 1))


def touch(home: Path, dice: random.Random) -> None:
    os.utime(dice.choice(transcripts(home)))


def rename(home: Path, dice: random.Random) -> None:
    path = dice.choice(transcripts(home))
    path.rename(path.with_name(path.name.replace("-", "_", 1) + ".old"))


def remove(home: Path, dice: random.Random) -> None:
    dice.choice(transcripts(home)).unlink()


def add_again(home: Path, dice: random.Random) -> None:
    """What was removed comes back, a fork's parent say."""
    shutil.copytree(home.with_name("untouched"), home, dirs_exist_ok=True, symlinks=True)


def corrupt_the_cache(home: Path, dice: random.Random) -> None:
    path = cache_file()
    if path.exists():
        content = bytearray(path.read_bytes())
        for _ in range(len(content) // 4096 // 4 + 1):  # a quarter of its pages, as a torn disk leaves them
            start = dice.randrange(len(content) // 4096) * 4096
            content[start : start + 4096] = dice.randbytes(4096)
        path.write_bytes(content)


def cut_the_cache(home: Path, dice: random.Random) -> None:
    if cache_file().exists():
        os.truncate(cache_file(), dice.randrange(cache_file().stat().st_size))


def kill_the_filler(home: Path, dice: random.Random) -> None:
    cache_file().unlink(missing_ok=True)
    filler = subprocess.Popen(
        [sys.executable, "-m", "amux", "sessions", "list", "--home", str(home)], stdout=subprocess.DEVNULL
    )
    time.sleep(dice.uniform(0.05, 0.3))
    filler.send_signal(signal.SIGKILL)
    filler.wait()


CHANGES = (append_a_line, truncate, touch, rename, remove, add_again, corrupt_the_cache, cut_the_cache, kill_the_filler)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_warm_catalog_answers_as_none_would(corpus, tmp_path, seed):
    dice = random.Random(seed)
    homes = []
    for number, scenario in enumerate(dice.sample(corpus.scenarios(), 2)):
        home = tmp_path / str(number) / "home"
        shutil.copytree(scenario / "home", home, symlinks=True)
        shutil.copytree(scenario / "home", home.with_name("untouched"), symlinks=True)
        homes.append(Host.current(home))
    for _ in range(STEPS):
        host = dice.choice(homes)
        if transcripts(host.home):
            change = dice.choice(CHANGES)
            change(host.home, dice)

        assert answers(host, cache=True) == answers(host, cache=False), change.__name__


def test_a_second_run_reads_nothing(corpus, tmp_path, monkeypatch):
    case = corpus.open_case(corpus.scenarios("claude")[0], tmp_path)
    SessionManager(Host(case.home, case.env)).list()

    warm = SessionManager(Host(case.home, case.env))
    monkeypatch.setattr("amux.readers.claude.ClaudeReader.read", lambda *_: pytest.fail("a session was read again"))

    assert warm.list()


def test_the_cache_is_the_users_own(tmp_path):
    SessionManager(Host.current(tmp_path)).list()

    assert cache_file().stat().st_mode & 0o777 == 0o600
    assert cache_file().parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_directory_others_can_write_to_is_not_trusted(tmp_path, monkeypatch, mode):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    monkeypatch.setenv("AMUX_CACHE_DIR", str(shared))

    assert SessionManager(Host.current(tmp_path)).list() == []
    assert list(shared.iterdir()) == []


def test_an_index_that_is_mostly_dead_is_built_anew(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("amux.catalog.FEW", 10)
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "one"), tmp_path)
    host = Host.current(case.home)
    path = next(case.home.rglob("*.jsonl"))
    rows = []
    for number in range(12):
        with path.open("a") as file:
            file.write(json.dumps({"type": "ai-title", "aiTitle": f"title {number}"}) + "\n")
        manager = SessionManager(host)
        assert [one.title for one in manager.list()] == [f"title {number}"]
        assert len(manager.search("marmalade")) == 1
        rows.append(manager.catalog.meta("indexed", 0))
        manager.catalog.close()

    assert max(rows) < 12 * min(rows) / 2
    assert rows[-1] <= max(rows[:6])


@pytest.mark.parametrize("cores", [1, 3, 64])
def test_many_bytes_are_read_by_several_processes_to_the_same_answer(corpus, tmp_path, monkeypatch, cores):
    for path in corpus.scenarios():
        if path.parent.name in ("claude", "codex", "opencode") and path.name in (
            "fork",
            "fork-0.117",
            "subagent",
            "killed-wal",
            "one",
        ):
            shutil.copytree(path / "home", tmp_path, dirs_exist_ok=True, symlinks=True)
    (tmp_path / ".claude" / "__store.db").write_bytes(b"no database")
    alone = answers(Host.current(tmp_path), cache=False)
    monkeypatch.setattr("amux.catalog.WORTHWHILE", 1)
    monkeypatch.setattr("os.cpu_count", lambda: cores)

    assert answers(Host.current(tmp_path), cache=True) == alone
    assert answers(Host.current(tmp_path), cache=True) == alone
    assert answers(Host.current(tmp_path), cache=False) == alone
