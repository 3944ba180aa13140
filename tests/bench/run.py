"""How long amux takes: medians of whole processes as multiples of `python -c pass`, each beside its budget.

`python tests/bench/run.py` measures the start-up on ten sessions (`--quick`: nothing else), then a store of 5,000 sessions
and 1 GB, which is made once and kept in the temporary directory, then with `--scale` one of four times the size.
The exit status is 1 when an answer was wrong; a budget that was missed is only shown, for it depends on the machine.
"""

import argparse
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import orjson

RUNS, FILLS, SCALE = 11, 3, 4
STORE_SCRIPT = Path(__file__).with_name("store.py")
AMUX = Path(sys.executable).with_name("amux")

# Nothing else of the environment: variables that move a store or change the interpreter would change what is measured.
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ")

PARSE_EVERYTHING = """
import sys, time
from pathlib import Path
import orjson
started = time.perf_counter()
for path in Path(sys.argv[1]).rglob("*.jsonl"):
    with path.open("rb") as lines:
        for line in lines:
            orjson.loads(line)
print(time.perf_counter() - started)
"""


@dataclass(frozen=True)
class Command:
    """A process to be measured; `before` is done first and not measured."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    before: Callable[[], None] | None = None

    def run(self) -> bytes:
        done = subprocess.run(self.argv, env=self.env, capture_output=True, check=False)
        self.check(done.returncode, done.stderr)
        return done.stdout

    def check(self, status: int, errors: bytes) -> None:
        if status:
            sys.exit(f"{' '.join(self.argv)} ended with {status}: {errors.decode().strip()}")

    def seconds(self) -> float:
        if self.before:
            self.before()
        started = time.perf_counter()
        self.run()
        return time.perf_counter() - started


@dataclass(frozen=True)
class Bench:
    """A store with a catalog of its own."""

    directory: Path

    @property
    def home(self) -> Path:
        return self.directory / "home"

    @property
    def cache(self) -> Path:
        return self.directory / "cache"

    @property
    def planted(self) -> dict[str, Any]:
        planted: dict[str, Any] = orjson.loads((self.directory / "planted.json").read_bytes())
        return planted

    def command(self, *argv: str, before: Callable[[], None] | None = None) -> Command:
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        return Command(argv, {**kept, "HOME": str(self.home), "AMUX_CACHE_DIR": str(self.cache)}, before)

    def python(self, *arguments: str) -> Command:
        return self.command(sys.executable, *arguments)

    def amux(self, *arguments: str, before: Callable[[], None] | None = None) -> Command:
        return self.command(str(AMUX), *arguments, before=before)

    def search(self, text: str, before: Callable[[], None] | None = None) -> Command:
        return self.amux("sessions", "search", quoted(text), "--json", before=before)

    def rg(self, text: str) -> Command:
        return self.command("rg", "-il", text, str(self.home / ".claude"), str(self.home / ".codex"))


def quoted(text: str) -> str:
    return f'"{text}"' if " " in text else text


@dataclass(frozen=True)
class Row:
    """One line of a table: what was measured, and a figure that should not exceed its budget."""

    what: str
    measured: str
    figure: float | None = None
    unit: str = ""
    budget: float | None = None
    goal: float | None = None

    def cells(self) -> tuple[str, ...]:
        if self.figure is None or self.budget is None:
            return self.what, self.measured, "", "", ""
        goal = f" (goal {self.goal:g})" if self.goal else ""
        return self.what, self.measured, f"{self.figure:.2f} {self.unit}", f"{self.budget:g}{goal}", self.verdict()

    def verdict(self) -> str:
        if self.figure is None or self.budget is None:
            return ""
        if self.goal and self.figure <= self.goal:
            return "goal met"
        return "ok" if self.figure <= self.budget else "OVER"


def print_table(title: str, rows: list[Row]) -> None:
    lines = [("", "MEASURED", "FIGURE", "BUDGET", ""), *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    sys.stdout.write(f"\n{title}\n")
    for what, measured, figure, budget, verdict in lines:
        left, numbers = what.ljust(widths[0]), f"{measured.rjust(widths[1])}  {figure.rjust(widths[2])}"
        sys.stdout.write(f"  {left}  {numbers}  {budget.ljust(widths[3])}  {verdict}".rstrip() + "\n")
    sys.stdout.flush()


def medians(commands: Mapping[str, Command]) -> dict[str, float]:
    """Median seconds of each, run in turn so that a slow spell of the machine hits all alike; a first round is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(1 + RUNS):
        for name, command in commands.items():
            taken[name].append(command.seconds())
    return {name: median(seconds[1:]) for name, seconds in taken.items()}


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def startup_rows(bench: Bench) -> list[Row]:
    listing = ("sessions", "list", "claude", "--json")
    commands = {
        "python -c pass": bench.python("-c", "pass"),
        "amux --version": bench.amux("--version"),
        "amux sessions list claude --json": bench.amux(*listing),
        "amux sessions list claude --json --no-cache": bench.amux(*listing, "--no-cache"),
    }
    python, *others = medians(commands).items()
    budgeted = zip(others, (3, 10, 14), strict=True)
    return [
        Row(python[0], milliseconds(python[1])),
        *(Row(what, milliseconds(took), took / python[1], "× python", budget) for (what, took), budget in budgeted),
    ]


def fill_rows(bench: Bench) -> list[Row]:
    """The first fill of an empty catalog, beside one process that only parses every line."""
    parses, fills, peaks = [], [], []
    for _ in range(FILLS):
        parses.append(float(bench.python("-c", PARSE_EVERYTHING, str(bench.home)).run()))
        shutil.rmtree(bench.cache, ignore_errors=True)
        seconds, peak = watched(bench.amux("sessions", "list", "--json", "--limit", "1"))
        fills.append(seconds)
        peaks.append(peak)
    parse, fill, most, size = median(parses), median(fills), max(peaks) / 2**20, tree_size(bench.cache)
    share = 100 * size / bench.planted["bytes"]
    return [
        Row("orjson.loads of every line", f"{parse:.2f} s"),
        Row("first fill of the catalog", f"{fill:.2f} s", fill / parse, "× orjson", 3, goal=2),
        Row("peak memory of the first fill", f"{most:.0f} MB", most, "MB", 250),
        Row("size of the catalog", f"{size / 2**20:.0f} MB", share, "% of store", 20),
    ]


def watched(command: Command) -> tuple[float, int]:
    """Seconds a process took and the most memory, in bytes, that it and its children had at one time."""
    started, peak, ended = time.perf_counter(), 0, 0
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command.argv, env=command.env, stdout=subprocess.DEVNULL, stderr=errors)
        while not ended:
            peak = max(peak, sum(proportional_size(pid) for pid in with_descendants(process.pid)))
            time.sleep(0.05)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        command.check(process.returncode, errors.read())
    # The kernel knows the peak of the largest process (in kilobytes; macOS in bytes), /proc the sum at a moment.
    return seconds, max(peak, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def with_descendants(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                yield from with_descendants(int(child))


def proportional_size(pid: int) -> int:
    """A process's memory in bytes, pages shared by several counted in part; 0 when it is gone or there is no /proc."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def tree_size(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def warm_rows(bench: Bench) -> list[Row]:
    texts = searched(bench)
    with growing(median_session(bench)) as grow:
        taken = medians(
            {
                "python -c pass": bench.python("-c", "pass"),
                **{f"search, {kind}": bench.search(text) for kind, text in texts.items()},
                "list": bench.amux("sessions", "list", "--json"),
                "cost report": bench.amux("cost", "report", "--json"),
                "after a change": bench.search(texts["rare word"], before=grow),
                **({kind: bench.rg(text) for kind, text in texts.items()} if shutil.which("rg") else {}),
            }
        )
    python, changed = taken.pop("python -c pass"), taken.pop("after a change")
    yardsticks = {kind: taken.pop(kind) for kind in texts if kind in taken}
    return [
        Row("python -c pass", milliseconds(python)),
        *(Row(what, milliseconds(warm), warm / python, "× python", 16, goal=10) for what, warm in taken.items()),
        *(
            Row(f"rg -il, {kind}", milliseconds(rg), taken[f"search, {kind}"] / rg, "amux / rg", 1)
            for kind, rg in yardsticks.items()
        ),
        Row(
            "search after one session changed",
            milliseconds(changed),
            changed / taken["search, rare word"],
            "× unchanged",
            1.3,
        ),
    ]


def searched(bench: Bench) -> dict[str, str]:
    planted = bench.planted
    kinds = {"rare word": "rare", "common word": "common", "phrase": "phrase"}
    return {kind: planted[name]["text"] for kind, name in kinds.items()}


def median_session(bench: Bench) -> Path:
    files = sorted(bench.home.glob(".claude/projects/*/*.jsonl"), key=lambda file: (file.stat().st_size, file))
    return files[len(files) // 2]


@contextlib.contextmanager
def growing(file: Path) -> Iterator[Callable[[], None]]:
    """A function that adds one prompt to a claude session; afterwards the file is as it was."""
    before = file.stat()
    records = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    prompt = next(record for record in records if record["type"] == "user")
    leaf = [record["uuid"] for record in records if "uuid" in record][-1]

    def grow() -> None:
        nonlocal leaf
        parent, leaf = leaf, str(uuid.uuid4())
        with file.open("ab") as end:
            end.write(orjson.dumps({**prompt, "parentUuid": parent, "uuid": leaf}, option=orjson.OPT_APPEND_NEWLINE))

    try:
        yield grow
    finally:
        os.truncate(file, before.st_size)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def scale_rows(bench: Bench, larger: Bench) -> list[Row]:
    texts = searched(bench)
    commands = {kind: bench.search(text) for kind, text in texts.items()}
    taken = medians(commands | {f"larger, {kind}": larger.search(text) for kind, text in texts.items()})
    return [
        Row(f"search, {kind}", milliseconds(slow := taken[f"larger, {kind}"]), slow / taken[kind], "× smaller", 2.5)
        for kind in texts
    ]


def wrong_answers(bench: Bench) -> Iterator[str]:
    """Speed counts for nothing when the answer is not the one that was planted."""
    planted = bench.planted
    for kind in ("rare", "few", "phrase"):
        text, expected = planted[kind]["text"], set(planted[kind]["sessions"])
        found = {hit["unifiedId"] for hit in orjson.loads(bench.search(text).run())}
        if found != expected:
            yield f"search for {text!r} found {len(found & expected)} of {len(expected)} and {len(found - expected)} others"
    report, calls = orjson.loads(bench.amux("cost", "report", "--json").run()), sum(planted["calls"].values())
    if report["callCount"] != calls:
        yield f"cost report counts {report['callCount']} calls of {calls}"


def made(directory: Path, sessions: int, megabytes: int) -> Bench:
    """The store in that directory, made there unless it was before."""
    if not (directory / "planted.json").exists():
        # Another process makes it: what this one ever held in memory would count as the peak of those it starts.
        with tempfile.TemporaryDirectory(dir=directory.parent) as unfinished:
            target, size = Path(unfinished) / "store", ("--sessions", str(sessions), "--megabytes", str(megabytes))
            subprocess.run([sys.executable, STORE_SCRIPT, target, *size], check=True, stdout=subprocess.DEVNULL)
            target.rename(directory)
    return Bench(directory)


def store_directory(chosen: Path | None, sessions: int, megabytes: int) -> Path:
    """Where a store of that size lies; another version of the script that makes it gets another place."""
    if chosen:
        return chosen.absolute()
    version = hashlib.sha256(STORE_SCRIPT.read_bytes()).hexdigest()[:8]
    return Path(tempfile.gettempdir()) / f"amux-bench-{version}-{sessions}-{megabytes}"


def title(bench: Bench) -> str:
    planted = bench.planted
    calls = sum(planted["calls"].values())
    return f"{planted['sessions']:,} sessions, {planted['bytes'] / 2**20:,.0f} MB, {calls:,} calls ({bench.directory})"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how long amux takes.")
    parser.add_argument("--quick", action="store_true", help="only the start-up")
    parser.add_argument("--scale", action="store_true", help=f"also a store of {SCALE} times the size")
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--store", type=Path, help="where the store is or shall be made")
    return parser.parse_args()


def main() -> int:
    given = options()
    with tempfile.TemporaryDirectory() as small:
        print_table("Start-up, ten sessions", startup_rows(made(Path(small) / "store", 10, 1)))
    if given.quick:
        return 0
    size = given.sessions, given.megabytes
    bench = made(store_directory(given.store, *size), *size)
    print_table(f"First fill, {title(bench)}", fill_rows(bench))
    print_table("Warm", warm_rows(bench))
    wrong = list(wrong_answers(bench))
    if given.scale:
        size = SCALE * given.sessions, SCALE * given.megabytes
        larger = made(store_directory(given.store and given.store / "larger", *size), *size)
        print_table(f"Warm, {title(larger)}", scale_rows(bench, larger))
        wrong += wrong_answers(larger)
    sys.stdout.writelines(f"WRONG: {complaint}\n" for complaint in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
