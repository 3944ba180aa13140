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
from amux.readers import _sqlite
from amux.readers._sqlite import Salvaged, columns, database_stamp, reading

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


# Damaged tables


def talkative(path: Path, numbers: Iterator[int] | range = range(1, 601)) -> None:
    """A database of which every page kind has several: rows of 40 sessions, some too long for a page, and two indexes."""
    with sqlite3.connect(path) as db:
        db.execute("create table said (id text primary key, session text, text)")
        db.execute("create index by_session on said (session)")
        for number in numbers:
            text = f"{number} " + "x" * (9000 if number % 10 == 0 else 400)
            db.execute("insert into said (rowid, id, session, text) values (?, ?, ?, ?)", row_of(number, text))
    db.close()


def row_of(number: int, text: str) -> tuple[int, str, str, str]:
    return number, f"{number:040}", f"{number % 40:040}", text


def pages(path: Path, name: str, kind: str) -> list[int]:
    """The pages of one kind that a table or index has."""
    with sqlite3.connect(path) as db:
        asked = "select pageno from dbstat where name = ? and pagetype = ? order by pageno"
        found = [page for (page,) in db.execute(asked, (name, kind))]
    db.close()
    return found


def overwrite(path: Path, page: int, content: bytes | int) -> None:
    """Give a page other bytes, or those of another page."""
    stored = bytearray(path.read_bytes())
    start = (content - 1) * 4096 if isinstance(content, int) else 0
    new = stored[start : start + 4096] if isinstance(content, int) else content
    stored[(page - 1) * 4096 : page * 4096] = new
    path.write_bytes(stored)


def reachable(path: Path, numbers: Iterator[int] | range = range(1, 601)) -> set[int]:
    """The rows to which their numbers lead, each asked for alone."""
    found = set()
    with sqlite3.connect(path) as db:
        db.text_factory = bytes
        for number in numbers:
            try:
                row = db.execute("select * from said not indexed where rowid = ?", (number,)).fetchone()
            except sqlite3.DatabaseError:
                continue
            if row and row[0] == b"%040d" % number:
                found.add(number)
    db.close()
    return found


def salvaged(path: Path) -> tuple[set[int], bool]:
    """The rows that are found session by session, and whether something was noted as lost."""
    found: set[int] = set()
    with reading(path) as db:
        tables = Salvaged(str(path), db, {"said": "session"})
        for number in range(40):
            rows = tables.select("said", ("text", "missing"), "where session = ? order by rowid", f"{number:040}")
            numbers = [int(row["text"].split()[0]) for row in rows]
            assert numbers == sorted(numbers)
            found.update(numbers)
    return found, tables.damage is not None


NOISE, ZEROS = b"\xff" * 4096, bytes(4096)


@pytest.mark.parametrize("small", [True, False], ids=["small", "big"])
@pytest.mark.parametrize("content", [NOISE, ZEROS], ids=["noise", "zeros"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("said", "leaf"), ("said", "overflow"), ("by_session", "leaf"), ("by_session", "internal"), ("said", "internal")],
)
def test_a_damaged_page_costs_the_rows_that_it_alone_leads_to(tmp_path, monkeypatch, name, kind, content, small):
    path = tmp_path / "a.db"
    talkative(path)
    if not small:
        monkeypatch.setattr(_sqlite, "SMALL", 0)
    for page in pages(path, name, kind)[::3] or pages(path, name, "leaf")[:1]:
        overwrite(path, page, content)

    found, noted = salvaged(path)

    assert found == reachable(path)
    assert noted == (name == "said")
    assert [one.name for one in tmp_path.iterdir()] == ["a.db"]


def test_an_index_that_fails_to_find_without_failing_hides_nothing(tmp_path):
    path = tmp_path / "a.db"
    talkative(path)
    first, *_, last = pages(path, "by_session", "leaf")
    overwrite(path, first, last)
    with reading(path) as db:
        told = db.execute("select rowid from said indexed by by_session where session >= ''").fetchall()
        assert {number for (number,) in told} < set(range(1, 601))

    assert salvaged(path) == (set(range(1, 601)), False)


def test_a_page_in_the_place_of_another_costs_the_rows_of_that_one(tmp_path):
    path = tmp_path / "a.db"
    talkative(path)
    leaves = pages(path, "said", "leaf")
    overwrite(path, leaves[3], leaves[-2])
    overwrite(path, leaves[-5], leaves[1])

    found, _ = salvaged(path)

    assert found == reachable(path)
    assert 560 < len(found) < 600


@pytest.mark.parametrize("begin", range(0, 4096, 512))
def test_a_damaged_stretch_of_pages_costs_the_rows_in_it(tmp_path, begin):
    """The number of a row may be what is damaged: rows are then out of order, or have the same one."""
    path = tmp_path / "a.db"
    talkative(path)
    for page in pages(path, "said", "leaf")[::3]:
        stored = path.read_bytes()[(page - 1) * 4096 :][:4096]
        overwrite(path, page, stored[:begin] + bytes(512) + stored[begin + 512 :])

    found, _ = salvaged(path)

    assert found >= reachable(path)


def test_rows_far_behind_a_damaged_page_are_found(tmp_path):
    """Row numbers have gaps of any size where rows were deleted."""
    path = tmp_path / "a.db"
    numbers = [number**3 * 1000 + 7 for number in range(600)]
    talkative(path, numbers)
    for page in pages(path, "said", "leaf")[1::4]:
        overwrite(path, page, ZEROS)

    found, noted = salvaged(path)

    assert noted
    assert found == reachable(path, numbers)
    assert len(found) > 300


def test_pages_that_lead_to_each_other_end(tmp_path):
    path = tmp_path / "a.db"
    talkative(path)
    (root,) = pages(path, "said", "internal")
    stored = bytearray(path.read_bytes())
    start = (root - 1) * 4096
    cells = int.from_bytes(stored[start + 3 : start + 5], "big")
    for number in range(cells):  # every child of the root is the root
        place = start + int.from_bytes(stored[start + 12 + 2 * number : start + 14 + 2 * number], "big")
        stored[place : place + 4] = root.to_bytes(4, "big")
    path.write_bytes(stored)
    began = time.monotonic()

    assert salvaged(path)[1]
    assert time.monotonic() - began < 5


def test_a_view_in_the_place_of_a_table_is_not_asked(tmp_path):
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as db:
        endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select x text, x session from n"
        db.execute(f"create view said as {endless}")
    db.close()

    assert salvaged(path) == (set(), False)


def test_the_case_of_a_name_does_not_matter(tmp_path):
    path = tmp_path / "a.db"
    filled(path)

    with reading(path) as db:
        assert columns(db, "T") == columns(db, "t") == {"x"}


def test_what_is_no_damage_is_told_as_it_is(tmp_path):
    path = tmp_path / "a.db"
    talkative(path)
    with reading(path) as db:
        tables = Salvaged(str(path), db, {"said": "session"})
        with pytest.raises(UnreadableSession, match="no such column"):
            tables.rows("select unknown from said")
        assert not tables.copied


def test_without_room_for_copies_the_reason_is_told_and_the_table_stays(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    talkative(path)
    overwrite(path, pages(path, "by_session", "leaf")[0], ZEROS)
    monkeypatch.setattr(_sqlite, "SMALL", 0)
    with reading(path) as db:
        tables = Salvaged(str(path), db, {"said": "session"})
        db.execute("pragma temp_store = file")
        db.execute("pragma temp.max_page_count = 9")
        with pytest.raises(UnreadableSession, match="full"):
            tables.rows("select text from said where session = ?", f"{0:040}")
        assert db.execute("select count(*) from said not indexed").fetchone() == (600,)
