"""Damaged files: whatever became of one, nothing crashes or hangs, the others are there, and so is what stood before."""

import contextlib
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amux.errors import UnreadableSession
from amux.readers import _json, open_reader
from amux.readers._base import Host

from . import law, mutate
from .commands import place, unprivileged
from .law import SOAK, Telling, broken_law, told
from .mutate import Damage

ROUNDS, DATABASE_ROUNDS = (3, 20) if SOAK else (1, 1)
SAMPLE = 10_000 if SOAK else 4
"""How many damages of one file are tried."""


PARENT = re.compile(rb'"(?:parentUuid|parentId|parent_id|parentID)":')


def files(home: Path) -> list[Path]:
    return [path for path in sorted(home.rglob("*")) if path.is_file() and not path.is_symlink()]


def is_part_of_a_database(path: Path) -> bool:
    return path.name.endswith(("-wal", "-shm", "-journal")) or law.is_database(path.read_bytes()[:16])


def seeded(case, path: Path) -> Random:
    return Random(f"{case.agent} {path.relative_to(case.home)}")


def sample(damages: Iterator[Damage | None], dice: Random) -> list[Damage]:
    found = [damage for damage in damages if damage]
    return dice.sample(found, min(SAMPLE, len(found)))


@pytest.fixture(scope="module")
def clean(case) -> Telling:
    if not law.has_reader(case.agent):
        pytest.skip(f"no reader for {case.agent}")
    telling = told(case.agent, Host(case.home, case.env))
    assert telling.wrong == []
    return telling


class Patient:
    """A file that is damaged again and again, and healed."""

    def __init__(self, case, path: Path) -> None:
        self.agent = case.agent
        self.host = Host(case.home, case.env)
        self.path = path
        self.content = path.read_bytes()
        self.prefixes: dict[int, Telling] = {}

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.path.write_bytes(self.content)

    def told_with(self, content: bytes, *, shown: bool = True) -> Telling:
        self.path.write_bytes(content)
        return told(self.agent, self.host, shown=shown)

    def prefix(self, end: int) -> Telling:
        if end not in self.prefixes:
            self.prefixes[end] = self.told_with(self.content[:end], shown=False)
        return self.prefixes[end]


def failures(clean: Telling, patient: Patient, damages: list[Damage], stood: Callable[[Damage], dict]) -> list[str]:
    found = []
    for damage in damages:
        wanted = stood(damage)
        after = patient.told_with(damage.content)
        found += [
            f"{patient.path.name}: {damage.about}: {what}"
            for what in broken_law(clean, after, str(patient.path), wanted)
        ]
    return found


def texts_damaged(content: bytes, dice: Random, *, json: bool) -> Iterator[Damage | None]:
    for _ in range(ROUNDS):
        yield from (mutation(content, dice) for mutation in mutate.TEXT)
        yield from (mutate.value_changed(content, dice) for _ in range(6))
        if json:
            yield from mutate.cuts(content, dice)


def test_what_stood_before_the_damage_of_a_text_is_told(case, clean):
    wrong: list[str] = []
    for path in files(case.home):
        if is_part_of_a_database(path):
            continue
        with Patient(case, path) as patient:
            content, name = patient.content, str(path)

            def stood(damage: Damage, patient=patient, content=content, name=name) -> dict:
                if name.endswith(".jsonl"):
                    prefix = patient.prefix(law.line_of(content, damage.start))
                    return law.before_in_lines(clean, prefix, name, content, damage.start)
                return law.before_in_a_value(clean, name, content, damage.start) if name.endswith(".json") else {}

            dice = seeded(case, path)
            damages = sample(texts_damaged(content, dice, json=path.suffix in (".json", ".jsonl")), dice)
            wrong += failures(clean, patient, damages, stood)

    assert not wrong, "\n".join(wrong)


def lines_that_lost_their_parent(content: bytes) -> list[Damage]:
    """Each line of a transcript, after the first ones, whose link to the one before is not there any more."""
    links = [key for key in PARENT.finditer(content) if key.start() > content.find(b"\n")]
    return [
        mutate.spliced(f"no parent at {key.start()}", content, *key.span(), b'"nobody knows":') for key in links[1::3]
    ]


@pytest.mark.parametrize("agent", law.agents())
def test_a_record_that_lost_its_parent_follows_the_one_before(corpus, tmp_path, agent):
    wrong: list[str] = []
    for scenario in corpus.scenarios(agent)[:: 1 if SOAK else 3]:
        case = corpus.open_case(scenario, tmp_path / scenario.name)
        whole = told(agent, Host(case.home, case.env), shown=False)
        for path in [path for path in files(case.home) if path.suffix == ".jsonl"]:
            with Patient(case, path) as patient:

                def stood(damage: Damage, path=path, patient=patient, whole=whole) -> dict:
                    prefix = patient.prefix(law.line_of(patient.content, damage.start))
                    return law.before_in_lines(whole, prefix, str(path), patient.content, damage.start)

                damages = lines_that_lost_their_parent(patient.content)
                wrong += failures(whole, patient, damages if SOAK else damages[:3], stood)

    assert not wrong, "\n".join(wrong)


def databases_damaged(content: bytes, dice: Random) -> Iterator[Damage | None]:
    for _ in range(DATABASE_ROUNDS):
        yield from (mutation(content, dice) for mutation in mutate.DATABASE)


def test_what_is_whole_in_a_damaged_database_is_told(case, clean, tmp_path):
    wrong: list[str] = []
    for path in filter(is_part_of_a_database, files(case.home)):
        wal = path.with_name(path.name + "-wal")
        with Patient(case, path) as patient:

            def stood(damage: Damage, path=path, wal=wal, patient=patient) -> dict:
                if path.name.endswith("-wal"):
                    return law.before_in_lines(clean, patient.prefix(damage.start), str(path), patient.content, 0)
                if not law.is_database(patient.content) or wal.exists():
                    return {}
                (tmp_path / "whole").write_bytes(patient.content)
                (tmp_path / "damaged").write_bytes(damage.content)
                return law.untouched(clean, str(path), law.lost_rows(tmp_path / "whole", tmp_path / "damaged"))

            dice = seeded(case, path)
            damages = sample(databases_damaged(patient.content, dice), dice)
            wrong += failures(clean, patient, damages, stood)

    assert not wrong, "\n".join(wrong)


def indexes_damaged(path: Path) -> Iterator[Damage]:
    """A database with the first page of one of its indexes zeroed: no row is lost."""
    content = path.read_bytes()
    size = mutate.page_size(content)
    with contextlib.closing(law.opened(path)) as db:
        roots = db.execute("select name, rootpage from sqlite_master where type = 'index'").fetchall()
    for name, root in roots:
        yield mutate.spliced(f"index {name.decode()}", content, (root - 1) * size, root * size, bytes(size))


@pytest.mark.parametrize("agent", law.agents())
def test_a_damaged_index_costs_nothing(corpus, tmp_path, agent):
    wrong: list[str] = []
    scenarios = [one for one in corpus.scenarios(agent) if any(map(is_whole_database, files(one / "home")))]
    for scenario in scenarios if SOAK else scenarios[:1]:
        case = corpus.open_case(scenario, tmp_path / scenario.name)
        whole = told(agent, Host(case.home, case.env), shown=False)
        for path in filter(is_whole_database, files(case.home)):
            stood = {id: list(one.said) for id, one in law.sessions_in(whole, str(path)).items()}
            with Patient(case, path) as patient:
                damages = list(indexes_damaged(path))
                wrong += failures(whole, patient, damages, lambda _, stood=stood: stood)

    assert not wrong, "\n".join(wrong)


def is_whole_database(path: Path) -> bool:
    """Whether it is a database with nothing of it in a -wal."""
    return law.is_database(path.read_bytes()[:16]) and not path.with_name(path.name + "-wal").exists()


# What is no file


def directory(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listener(path: Path) -> None:
    """A socket: it is made by a short name, since a long one is refused."""
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    path.with_name("socket").rename(path)


def dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def circular_link(path: Path) -> None:
    path.symlink_to(path)


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_the_home(path: Path) -> None:
    path.symlink_to("..")


KINDS = (directory, pipe, listener, dangling_link, circular_link, link_to_a_device, link_to_the_home)


def plain_file(path: Path) -> None:
    path.write_bytes(b"no directory")


def instead(case, path: Path, kinds: Iterable[Callable[[Path], None]]) -> list[str]:
    """What is worse when something else lies in the place of a file or directory than when nothing does."""
    host, aside = Host(case.home, case.env), path.with_name(path.name + ".aside")
    wrong = []
    path.rename(aside)
    without = told(case.agent, host, shown=False)
    for kind in kinds:
        kind(path)
        after = told(case.agent, host)
        remove(path)
        wrong += [f"{path.name}: {kind.__name__}: {what}" for what in broken_law(without, after, str(path), {})]
    aside.rename(path)
    return wrong


def test_what_is_no_file_costs_itself_alone(case, clean):
    wrong: list[str] = []
    for path in files(case.home):
        wrong += instead(case, path, KINDS if SOAK else seeded(case, path).sample(KINDS, 1))

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("agent", law.agents())
def test_a_file_that_became_a_pipe_since_it_was_found_is_not_waited_for(corpus, tmp_path, agent):
    for scenario in corpus.scenarios(agent):
        case = corpus.open_case(scenario, tmp_path / scenario.name)
        with open_reader(agent, Host(case.home, case.env)) as reader:
            refs = list(reader.refs())
            for path in {path for ref in refs for path in (ref.path, *ref.files) if os.path.isfile(path)}:
                os.unlink(path)
                os.mkfifo(path)
            for ref in refs:
                with law.at_most(1, law.MEMORY), contextlib.suppress(UnreadableSession):
                    reader.read(ref)
                with law.at_most(1, law.MEMORY), contextlib.suppress(UnreadableSession):
                    reader.raw(ref, ref.key)


def test_what_is_no_directory_costs_itself_alone(case, clean):
    wrong: list[str] = []
    kinds = (plain_file, *KINDS)
    for path in [path for path in sorted(case.home.rglob("*")) if path.is_dir() and not path.is_symlink()]:
        wrong += instead(case, path, kinds if SOAK else seeded(case, path).sample(kinds, 1))

    assert not wrong, "\n".join(wrong)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()


@pytest.mark.parametrize("agent", law.agents())
def test_a_file_or_directory_that_cannot_be_read_costs_itself_alone(corpus, tmp_path, agent):
    case = corpus.open_case(corpus.scenarios(agent)[-1], tmp_path)
    where = place(case, tmp_path / "own")
    before = {one["sessionId"]: one["path"] for one in where.listed(agent, "--subagents")}
    paths = [path for path in sorted(case.home.rglob("*")) if not path.is_symlink()]
    for path in paths if SOAK else Random(agent).sample(paths, min(4, len(paths))):
        mode = path.stat().st_mode
        path.chmod(0)
        run = where.run(
            "sessions", "list", agent, "--subagents", "--json", "--no-cache", prefix=unprivileged(), check=False
        )
        path.chmod(mode)

        assert run.returncode == 0, (path, run.stderr)
        assert "Traceback" not in run.stderr
        others = {id for id, file in before.items() if not file.startswith(store_of(path))}
        assert others <= {one["sessionId"] for one in json.loads(run.stdout)}, path


def store_of(path: Path) -> str:
    return str(path).removesuffix("-wal").removesuffix("-shm")


# Sizes


def longest_lines(agent: str, case) -> Path | None:
    found = [path for path in files(case.home) if path.suffix == ".jsonl" and path.stat().st_size]
    sessions = {one.path for one in told(agent, Host(case.home, case.env), shown=False).sessions.values()}
    return max((path for path in found if str(path) in sessions), key=lambda path: path.stat().st_size, default=None)


HUGE = {"words": b"word ", "short words": b"a ", "one word": b"x", "Chinese": "字".encode(), "no JSON": b""}


@pytest.mark.parametrize("kind", HUGE if SOAK else ["words", "no JSON"])
@pytest.mark.parametrize("agent", law.agents())
def test_a_huge_line_is_read_within_a_gigabyte(corpus, tmp_path, agent, kind):
    """A line in which somebody typed a huge text, or a huge line that is no JSON at all."""
    size = 100_000_000 if SOAK else 2_000_000
    for scenario in reversed(corpus.scenarios(agent)):
        case = corpus.open_case(scenario, tmp_path / scenario.name)
        if path := longest_lines(agent, case):
            break
    else:
        pytest.skip(f"{agent} has no files of lines")
    before = told(agent, Host(case.home, case.env), shown=False)
    with Patient(case, path) as patient:
        place = place_of_prompt(patient, prompt_in(before, str(path)).encode())
    path.write_bytes(with_huge_line(patient.content, place, HUGE[kind], size))

    check_measure(case, before, kind)


def check_measure(case, before: Telling, kind: str) -> None:
    """Every session is still listed, the huge text in one of them, within the memory and the time there are."""
    peak, seconds, longest, ids = measured(case.agent, Host(case.home, case.env))

    assert set(before.sessions) <= set(ids)
    assert kind == "no JSON" or longest > 500_000
    assert peak < law.MEMORY
    assert seconds < law.SECONDS * (3 if kind == "Chinese" else 1)  # every character is a word of the index


def prompt_in(telling: Telling, path: str) -> str:
    """A part of what was typed first in a file's session that no program writes in escapes."""
    said = next(one.said for one in telling.sessions.values() if one.path == path)
    typed = next(text for role, text in said if role == "user")
    return max(re.findall("[A-Za-z0-9 ]+", typed), key=len)


def place_of_prompt(patient: Patient, prompt: bytes) -> int:
    """Where in a file something can be added to a prompt and is told: titles and lists may repeat it."""
    for found in re.finditer(re.escape(prompt), patient.content):
        telling = patient.told_with(with_huge_line(patient.content, found.end(), b"z", 50), shown=False)
        if any("z" * 50 in text for one in telling.sessions.values() for _, text in one.said):
            return found.end()
    raise AssertionError(prompt)


def with_huge_line(content: bytes, place: int, filling: bytes, size: int) -> bytes:
    """With a huge text at a place, or with a huge line of nothing."""
    if not filling:
        return content + b"\n" + b"x" * size + b"\n"
    return content[:place] + filling * (size // len(filling)) + content[place:]


TEXTS = {
    "agent": ("entries", "content"),
    "cursor": ("blobs", "data"),
    "hermes": ("messages", "content"),
    "openclaw": ("transcript_events", "event_json"),
    "opencode": ("part", "data"),
}
"""Where a database has what was said."""


@pytest.mark.parametrize("kind", HUGE if SOAK else ["words", "no JSON"])
@pytest.mark.parametrize("agent", TEXTS)
def test_a_huge_row_is_read_within_a_gigabyte(corpus, tmp_path, agent, kind):
    """As a huge line, in a database."""
    size = 100_000_000 if SOAK else 2_000_000
    for scenario in corpus.scenarios(agent):
        case = corpus.open_case(scenario, tmp_path / scenario.name)
        before = told(agent, Host(case.home, case.env), shown=False)
        stored = [one for one in before.sessions.values() if is_whole_database(Path(one.path)) and len(one.said) > 2]
        if stored:
            break
    enlarge_row(stored[0].path, *TEXTS[agent], prompt_in(before, stored[0].path), HUGE[kind].decode(), size)

    check_measure(case, before, kind)


def enlarge_row(path: str, table: str, column: str, text: str, filling: str, size: int) -> None:
    """Make what was said first huge, or put what is no JSON in its place."""
    huge = text + filling * (size // len(filling.encode())) if filling else "x" * size
    value = f"replace({column}, :text, :huge)" if filling else ":huge"
    json_first = f"order by substr(cast({column} as text), 1, 1) <> '{{', rowid"
    found = f"rowid = (select rowid from {table} where instr({column}, :text) {json_first} limit 1)"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for (trigger,) in db.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            db.execute(f"drop trigger {trigger}")
        db.execute("pragma ignore_check_constraints = on")
        done = db.execute(f"update {table} set {column} = {value} where {found}", {"text": text, "huge": huge})
        assert done.rowcount == 1


MEASURE = r"""
import json, re, resource, sys, time
from pathlib import Path
from amux.manager import SessionManager
from amux.query import Query
from amux.readers._base import Host
agent, home, env = json.load(sys.stdin)
began = time.monotonic()
manager = SessionManager(Host(Path(home), env), cache=False)
listed = manager.list(Query(agents=(agent,), subagents=True))
assert not [one for one in manager.skipped if one.reason.startswith("unexpected")], manager.skipped
seconds = time.monotonic() - began
# Not what getrusage() tells of itself: that includes what the parent had.
own = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
peak = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024
longest = max(len(part.content) for one in listed for part in manager.get(agent, one.session_id).messages)
print(json.dumps([peak, seconds, longest, [one.session_id for one in listed]]))
"""


def measured(agent: str, host: Host) -> tuple[int, float, int, list[str]]:
    """The memory a process took at most to list an agent's sessions, how long it took, the longest text, and their ids."""
    asked = json.dumps([agent, str(host.home), dict(host.env)])
    run = subprocess.run([sys.executable, "-c", MEASURE], input=asked, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return tuple(json.loads(run.stdout))


# Anything at all

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
quick = settings(
    max_examples=20_000 if SOAK else 150,
    deadline=None,
    derandomize=not SOAK,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@quick
@given(st.binary(max_size=200) | st.text(max_size=100) | values.map(json.dumps))
def test_decoding_anything_gives_what_can_be_printed(line):
    value = _json.decoded(line)

    json.dumps(value, ensure_ascii=False).encode()  # no half surrogate pair is left


@quick
@given(values, st.lists(st.text(max_size=5) | st.integers(-3, 3), max_size=4))
def test_fields_of_anything_are_what_they_are_asked_for_or_nothing(value, path):
    assert isinstance(_json.text_at(value, *path), str | None)
    assert isinstance(_json.int_at(value, *path), int | None)
    assert isinstance(_json.list_at(value, *path), list)
    assert isinstance(_json.dict_at(value, *path), dict)
    amount = _json.usd_at(value, *path)
    assert amount is None or amount >= 0
    time = _json.time_at(value, *path)
    assert time is None or time.utcoffset().total_seconds() == 0


@pytest.fixture(scope="module")
def transcripts(corpus, tmp_path_factory) -> dict[str, tuple[Host, Path, list[dict]]]:
    """For each agent with files of lines, a home, the file of a session in it, and its records."""
    found = {}
    for agent in law.agents():
        for scenario in corpus.scenarios(agent):
            case = corpus.open_case(scenario, tmp_path_factory.mktemp("transcript"))
            path = longest_lines(agent, case)
            if path and (agent not in found or path.stat().st_size < found[agent][1].stat().st_size):
                found[agent] = Host(case.home, case.env), path, list(_json.records(str(path)))
    return found


@settings(quick, max_examples=5_000 if SOAK else 250)
@given(st.data())
def test_records_with_anything_in_them_are_read(transcripts, data):
    agent = data.draw(st.sampled_from(sorted(transcripts)), label="agent")
    host, path, records = transcripts[agent]
    changed = json.loads(json.dumps(records))
    for _ in range(data.draw(st.integers(1, 4))):
        record = data.draw(st.sampled_from(changed))
        change(record, data)
    path.write_text("\n".join(json.dumps(record) for record in changed), errors="surrogatepass")

    assert told(agent, host).wrong == []


def change(value: object, data) -> None:
    """Put anything in the place of something below a value."""
    while True:
        places = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not places:
            return
        where = data.draw(st.sampled_from(places))
        if not isinstance(value[where], dict | list) or not value[where] or data.draw(st.booleans()):
            value[where] = data.draw(values)
            return
        value = value[where]
