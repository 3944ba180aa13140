"""Several amux at once, killed ones, a full disk, and cache directories that cannot be trusted: the answer comes, and is right."""

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ..bench import store
from . import law
from .commands import AMUX, Place

PROCESSES = 8
SESSIONS, MEGABYTES = (3000, 400) if law.SOAK else (250, 45)
KILLS = 60 if law.SOAK else 4
NOBODY = 65534
ASKED = (
    ("sessions", "list", "--limit", "0", "--subagents", "--json"),
    ("sessions", "search", "quorum", "--limit", "0", "--json"),
    ("cost", "report", "--group-by", "agent,model,day", "--json"),
)


@pytest.fixture(scope="module")
def big_home(corpus, tmp_path_factory) -> Path:
    """A home of every agent, with so much of two of them that filling starts processes of its own."""
    directory = tmp_path_factory.mktemp("big")
    store.build(directory, SESSIONS, MEGABYTES)
    for scenario in corpus.scenarios():
        if law.has_reader(scenario.parent.name):
            shutil.copytree(scenario / "home", directory / "home", symlinks=True, dirs_exist_ok=True)
    return directory / "home"


def at_home(home: Path, own: Path) -> Place:
    own.mkdir(parents=True, exist_ok=True)
    return Place(home, own)


def answers(place: Place, *more: str, **options) -> list[object]:
    runs = [place.run(*asked, *more, **options) for asked in ASKED]
    assert [run.stderr for run in runs] == ["", "", ""]
    return [json.loads(run.stdout) for run in runs]


@pytest.fixture(scope="module")
def truth(big_home, tmp_path_factory) -> list[object]:
    return answers(at_home(big_home, tmp_path_factory.mktemp("truth")), "--no-cache")


def is_sound(place: Place) -> bool:
    db = sqlite3.connect(place.own / "cache" / "catalog.db")
    try:
        return db.execute("pragma integrity_check").fetchall() == [("ok",)]
    finally:
        db.close()


def leftovers(place: Place) -> list[str]:
    """What lies in the cache directory besides the catalog."""
    known = ("catalog.db", "catalog.db-wal", "catalog.db-shm")
    return [path.name for path in (place.own / "cache").iterdir() if path.name not in known]


def test_many_at_once_on_a_cold_catalog_all_answer_right(big_home, truth, tmp_path):
    place = at_home(big_home, tmp_path / "own")
    commands = [ASKED[number % len(ASKED)] for number in range(PROCESSES)]
    options = {"env": place.environment, "cwd": place.own, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [subprocess.Popen([AMUX, *place.command(*asked)], **options) for asked in commands]
    told = [process.communicate(timeout=600) for process in running]

    assert [(process.returncode, errors) for process, (_, errors) in zip(running, told, strict=True)] == [
        (0, b"")
    ] * PROCESSES
    for number, (answer, _) in enumerate(told):
        assert json.loads(answer) == truth[number % len(ASKED)]
    assert is_sound(place)
    assert leftovers(place) == []


def test_many_at_once_begin_one_catalog(corpus, tmp_path):
    """Nobody takes the catalog that another has just begun for a broken one."""
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "one"), tmp_path)
    for number in range(40 if law.SOAK else 4):
        place = at_home(case.home, tmp_path / str(number))
        command = [AMUX, *place.command("sessions", "list", "claude", "--json")]
        running = [subprocess.Popen(command, env=place.environment, stdout=subprocess.PIPE) for _ in range(PROCESSES)]
        told = {process.communicate(timeout=60)[0] for process in running}

        assert len(told) == 1
        assert not (place.own / "cache" / "catalog.db.broken").exists()


def test_killed_at_any_moment_of_a_fill_the_next_answers_right(big_home, truth, tmp_path):
    dice = Random(7)
    place = at_home(big_home, tmp_path / "own")
    began = time.monotonic()
    assert answers(place) == truth
    whole = (time.monotonic() - began) / 2
    for number in range(KILLS):
        if number % 3 == 0:
            shutil.rmtree(place.own / "cache")
        else:  # something changed, so that there is something to fill
            for path in list(big_home.glob(".claude/projects/*/*.jsonl"))[number::5]:
                os.utime(path)
        victim = subprocess.Popen(
            [AMUX, *place.command("sessions", "list")],
            env=place.environment,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
        )
        time.sleep(dice.uniform(0.05, whole))
        os.killpg(victim.pid, signal.SIGKILL) if dice.random() < 0.5 else victim.kill()
        victim.wait()

        assert json.loads(place.run(*ASKED[0]).stdout) == truth[0]
        assert is_sound(place)
    assert answers(place) == truth


def test_what_a_killed_fill_left_behind_is_taken_away(big_home, truth, tmp_path):
    place = at_home(big_home, tmp_path / "own")
    victim = subprocess.Popen(
        [AMUX, *place.command("sessions", "list")],
        env=place.environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (place.own / "cache").is_dir() or not leftovers(place):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(victim.pid, signal.SIGKILL)
    victim.wait()
    place.run(*ASKED[0])

    assert leftovers(place) == []


# A full disk


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 2 MB."""
    where = tmp_path / "small"
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(where)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root can make a small file system")
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


def test_on_a_full_disk_the_answer_still_comes(big_home, truth, tmp_path, small_disk):
    place = at_home(big_home, tmp_path / "own")
    environment = {**place.environment, "AMUX_CACHE_DIR": str(small_disk / "cache")}

    assert answers(place, env=environment) == truth
    (small_disk / "ballast").write_bytes(bytes(shutil.disk_usage(small_disk).free))
    assert answers(place, env=environment) == truth


def test_on_a_disk_full_of_temporary_files_the_answer_still_comes(big_home, truth, tmp_path, small_disk):
    place = at_home(big_home, tmp_path / "own")
    (small_disk / "ballast").write_bytes(bytes(shutil.disk_usage(small_disk).free))
    full = {"TMPDIR": str(small_disk), "AMUX_CACHE_DIR": str(small_disk / "cache")}

    assert answers(place, env={**place.environment, **full}) == truth


def test_where_no_file_may_grow_the_answer_still_comes(big_home, truth, tmp_path):
    """As a full disk, but for every user: a limit on the size of files. Databases that must be copied are left out."""
    place = at_home(big_home, tmp_path / "own")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    run = place.run("sessions", "list", "claude", *ASKED[0][2:], preexec_fn=limit, check=False)

    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout) == [one for one in truth[0] if one["agent"] == "claude"]


# A cache directory that others can reach


def link(cache: Path) -> None:
    cache.with_name("elsewhere").mkdir(mode=0o700)
    cache.symlink_to(cache.with_name("elsewhere"))


def open_to_all(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)


def open_to_the_group(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o770)


def anothers(cache: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    cache.mkdir(mode=0o700)
    os.chown(cache, NOBODY, NOBODY)


def file_instead(cache: Path) -> None:
    cache.write_bytes(b"no directory")


@pytest.mark.parametrize("prepare", [link, open_to_all, open_to_the_group, anothers, file_instead])
def test_a_cache_directory_that_is_not_the_users_own_is_not_used(corpus, tmp_path, prepare):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "one"), tmp_path)
    place = at_home(case.home, tmp_path / "own")
    prepare(place.own / "cache")
    forbidden = [path for path in (place.own / "cache", place.own / "elsewhere") if path.is_dir()]

    assert len(place.listed()) == 1
    assert [list(path.iterdir()) for path in forbidden] == [[] for _ in forbidden]


@pytest.mark.parametrize("kind", ["link", "another's", "directory", "fifo", "other words"])
def test_a_catalog_that_is_not_the_users_own_file_is_not_trusted(corpus, tmp_path, kind):
    """What somebody laid down in the place of the catalog is neither believed nor written through."""
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "one"), tmp_path)
    place = at_home(case.home, tmp_path / "own")
    truth = place.listed("--no-cache")
    catalog = place.own / "cache" / "catalog.db"
    catalog.parent.mkdir(mode=0o700)
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    if kind == "link":
        catalog.symlink_to(victim)
    elif kind == "another's":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        catalog.write_bytes(b"")
        os.chown(catalog, NOBODY, NOBODY)
    elif kind == "directory":
        catalog.mkdir()
    elif kind == "fifo":
        os.mkfifo(catalog)
    else:
        catalog.write_bytes(b"no database" * 1000)

    run = place.run("sessions", "list", "--json", timeout=60)
    assert (json.loads(run.stdout), run.stderr) == (truth, "")
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize(
    "spoil",
    [
        "drop table session",
        "drop table words",
        "delete from scope",
        "update session set models = 'no JSON'",
        "update session set times = x'00'",
        "update session set created_at = 9e18",
        "update ref set files = x'00'",
        "pragma user_version = 7",
    ],
)
def test_a_catalog_that_is_not_as_it_was_made_is_begun_anew(corpus, tmp_path, spoil):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "one"), tmp_path)
    place = at_home(case.home, tmp_path / "own")
    truth = place.listed()
    db = sqlite3.connect(place.own / "cache" / "catalog.db")
    db.execute(spoil)
    db.commit()
    db.close()
    for _ in range(2):  # without a catalog, then with a new one
        run = place.run("sessions", "list", "--json")
        found = place.run("sessions", "search", "marmalade", "--json")

        assert (json.loads(run.stdout), run.stderr, found.stderr) == (truth, "", "")
        assert [one["sessionId"] for one in json.loads(found.stdout)] == [one["sessionId"] for one in truth]
    assert is_sound(place)
