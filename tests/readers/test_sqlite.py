"""Another program's database: what is committed is read, whatever state its files are in, and nothing is left beside it."""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.errors import UnreadableSession
from amux.readers._sqlite import columns, database_stamp, reading

WRITER = """
import itertools, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("pragma journal_mode = wal")
for table in ("one", "two", "filling"):
    db.execute(f"create table {table} (x)")
print("ready", flush=True)
for number in itertools.count():
    db.execute("begin")
    db.execute("insert into one values (?)", (number,))
    db.execute("insert into filling values (?)", ("x" * 3000,))
    db.execute("insert into two values (?)", (number,))
    db.execute("commit")
    if number % int(sys.argv[3]) == 0:
        db.execute(f"pragma wal_checkpoint({sys.argv[2]})")
    if number % 200 == 0:
        db.execute("delete from filling")
    time.sleep(0.005)
"""
"""Adds a row to two tables at a time, so that a reader who sees a different number of them saw half a change."""


def filled(path: Path, *, wal: bool = False, close: bool = True) -> sqlite3.Connection:
    db = sqlite3.connect(path)
    if wal:
        db.execute("pragma journal_mode = wal")
    db.execute("create table t (x)")
    db.executemany("insert into t values (?)", [(f"row {number} " + "x" * 500,) for number in range(100)])
    db.commit()
    if close:
        db.close()
    return db


def left_in_wal(path: Path) -> Path:
    """A database whose rows are all in its -wal, as a killed program leaves it."""
    db = filled(path.with_name("alive.db"), wal=True, close=False)
    for suffix in ("", "-wal", "-shm"):
        shutil.copyfile(path.with_name(f"alive.db{suffix}"), f"{path}{suffix}")
    db.close()
    path.with_name("alive.db").unlink()
    return path


def files(directory: Path) -> dict[str, tuple[str, int]]:
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in directory.iterdir()
        if path.is_file()
    }


def count(path: Path) -> int:
    with reading(path) as db:
        return db.execute("select count(*) from t").fetchone()[0]


def reason(path: Path) -> str:
    with pytest.raises(UnreadableSession) as raised:
        count(path)
    assert raised.value.path == str(path)
    return raised.value.reason


@pytest.mark.parametrize(("checkpoint", "every"), [("passive", 3), ("truncate", 1)])
def test_reads_while_another_program_writes_and_checkpoints(tmp_path, checkpoint, every):
    busy = tmp_path / "busy.db"
    filled(tmp_path / "idle.db", wal=True)
    left_in_wal(tmp_path / "killed.db")
    others = files(tmp_path)
    command = [sys.executable, "-c", WRITER, busy, checkpoint, str(every)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout.readline() == b"ready\n"
            seen = [*snapshots(busy, seconds=2)]
            assert (count(tmp_path / "idle.db"), count(tmp_path / "killed.db")) == (100, 100)
        finally:
            writer.kill()
    stopped = files(tmp_path)
    seen += snapshots(busy, seconds=0.1)

    assert seen == sorted(seen)
    assert seen[-1] > seen[0]
    assert files(tmp_path) == stopped
    assert set(stopped) == {*others, "busy.db", "busy.db-wal", "busy.db-shm"}
    assert {name: stopped[name] for name in others} == others


def snapshots(path: Path, seconds: float) -> Iterator[int]:
    """How many changes each of many reads saw, every one of them whole."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with reading(path) as db:
            first = db.execute("select count(*) from one").fetchone()
            time.sleep(0.002)
            db.execute("select sum(length(x)) from filling").fetchone()
            assert db.execute("select count(*) from two").fetchone() == first
        yield first[0]


@pytest.mark.parametrize("shm", [True, False], ids=["with -shm", "without -shm"])
def test_rows_that_are_only_in_the_wal_are_read(tmp_path, shm):
    path = left_in_wal(tmp_path / "killed.db")
    if not shm:
        (tmp_path / "killed.db-shm").unlink()
    before = files(tmp_path)

    assert count(path) == 100
    assert files(tmp_path) == before


@pytest.mark.parametrize("wal", [True, False], ids=["with -wal", "without -wal"])
def test_a_directory_that_cannot_be_written_is_enough(tmp_path, wal):
    path = left_in_wal(tmp_path / "a.db") if wal else tmp_path / "a.db"
    if not wal:
        filled(path, wal=True)
    (tmp_path / "a.db-shm").unlink(missing_ok=True)
    before = files(tmp_path)
    tmp_path.chmod(0o555)
    try:
        assert count(path) == 100
        assert files(tmp_path) == before
    finally:
        tmp_path.chmod(0o755)


def test_a_transaction_that_was_never_finished_is_rolled_back_in_the_copy_only(tmp_path):
    """In rollback mode a killed writer leaves the old pages in a -journal and the new ones in the database."""
    filled(tmp_path / "a.db")
    script = (
        "import os, sqlite3; db = sqlite3.connect('a.db'); db.execute('pragma cache_size = 1');"
        "db.execute('delete from t'); db.execute('pragma cache_spill = on');"
        "db.executemany('insert into t values (?)', [('y' * 2000,)] * 500); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    before = files(tmp_path)
    assert "a.db-journal" in before

    assert count(tmp_path / "a.db") == 100
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["what?.db", "a#b.db", "with a blank.db", "50%41.db", "ü&=;.db", "'quoted\".db"])
@pytest.mark.parametrize("wal", [True, False], ids=["with -wal", "without -wal"])
def test_any_name_will_do(tmp_path, name, wal):
    path = tmp_path / name
    if wal:
        left_in_wal(path)
    else:
        filled(path)
    before = files(tmp_path)

    assert count(path) == 100
    assert files(tmp_path) == before


def test_what_is_no_database_is_called_so(tmp_path):
    path = tmp_path / "a.db"
    for content in (b"hello, world\n" * 100, b"SQLite", b"\0" * 4096, os.urandom(8192)):
        path.write_bytes(content)

        assert reason(path) == "it is no SQLite database"


def test_an_encrypted_database_is_called_no_database(tmp_path):
    """The whole file of an encrypted one is noise, its first bytes included."""
    path = tmp_path / "a.db"
    filled(path)
    path.write_bytes(bytes(byte ^ 0x5A for byte in path.read_bytes()))

    assert reason(path) == "it is no SQLite database"


def test_an_empty_file_is_an_empty_database(tmp_path):
    path = tmp_path / "a.db"
    path.touch()

    with reading(path) as db:
        assert columns(db, "t") == frozenset()


@pytest.mark.parametrize("kept", [100, 4096, 20000], ids=["in the header", "after a page", "in the middle"])
def test_a_truncated_database_ends_in_one_reason(tmp_path, kept):
    path = tmp_path / "a.db"
    filled(path)
    path.write_bytes(path.read_bytes()[:kept])

    assert reason(path) in ("database disk image is malformed", "file is not a database")


def test_a_damaged_page_ends_in_one_reason_and_leaves_the_other_tables_readable(tmp_path):
    path = tmp_path / "a.db"
    filled(path)
    with sqlite3.connect(path) as db:
        db.execute("create table sound (x)")
        db.execute("insert into sound values (1)")
        page = db.execute("select rootpage from sqlite_master where name = 't'").fetchone()[0]
    db.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(content)

    assert reason(path) == "database disk image is malformed"
    with reading(path) as db:
        assert db.execute("select x from sound").fetchall() == [(1,)]


def test_a_schema_that_is_no_text_ends_in_one_reason(tmp_path):
    """The error quotes the schema, and Python cannot decode the quotation."""
    path = tmp_path / "a.db"
    filled(path)
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE t", b"CREATE \xa7\xff\xfeBLE t"))

    assert reason(path)


def test_what_is_no_regular_file_is_never_opened(tmp_path):
    pipe = tmp_path / "pipe.db"
    os.mkfifo(pipe)

    assert reason(pipe) == "it is no regular file"
    assert reason(tmp_path) == "it is no regular file"
    assert reason(tmp_path / "missing.db") == "No such file or directory"


def test_text_that_is_no_utf8_is_read_all_the_same(tmp_path):
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as db:
        db.execute("create table t (x)")
        db.execute("insert into t values (cast(? as text))", (b"caf\xe9",))
    db.close()

    with reading(path) as db:
        assert db.execute("select x from t").fetchone() == ("caf�",)


def test_the_fingerprint_changes_with_the_wal_alone(tmp_path):
    path = tmp_path / "a.db"
    db = filled(path, wal=True, close=False)
    before = database_stamp(path)
    db.execute("insert into t values ('one more')")
    db.commit()

    assert database_stamp(path) != before
    db.close()
