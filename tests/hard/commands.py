"""Every command of amux there is, with arguments for a home."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

AMUX = str(Path(sys.executable).with_name("amux"))
MOVING = (
    "CLAUDE",
    "CODEX",
    "GEMINI",
    "COPILOT",
    "HERMES",
    "OPENCODE",
    "PI_",
    "OMP",
    "CURSOR",
    "OPENCLAW",
    "AMUX",
    "XDG",
)
"""How the variables begin that move an agent's store or amux's own directories."""


def unprivileged() -> list[str]:
    """What a program is run by so that a file's permissions hold for it: root's do not, unless it gives that up."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@cache
def offered() -> frozenset[str]:
    """What `amux sessions` can do."""
    told = subprocess.run([AMUX, "sessions", "--help"], capture_output=True, text=True, check=True).stdout
    listed = told.partition("Commands:")[2]
    return frozenset(line.split()[0] for line in listed.splitlines() if line.strip())


@dataclass(frozen=True, slots=True)
class Place:
    """A home to run amux on. Its own files are in `own`, outside; where the home's store is found by `env`, it is HOME too."""

    home: Path
    own: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(MOVING)}
        home = self.home if self.env else self.own
        return {**kept, "HOME": str(home), "TZ": "UTC", "AMUX_CACHE_DIR": str(self.own / "cache"), **self.env}

    def command(self, *arguments: str) -> list[str]:
        return [*arguments] if self.env else ["--home", str(self.home), *arguments]

    def run(self, *arguments: str, check: bool = True, prefix: Sequence[str] = (), **options):
        """Run amux; `prefix` is a program that runs it."""
        options = {"env": self.environment, "cwd": self.own, "capture_output": True, "text": True, **options}
        return subprocess.run([*prefix, AMUX, *self.command(*arguments)], check=check, **options)

    def listed(self, *arguments: str) -> list[dict]:
        return json.loads(self.run("sessions", "list", *arguments, "--json").stdout)


def place(case, own: Path) -> Place:
    own.mkdir(parents=True, exist_ok=True)
    return Place(case.home, own, case.env)


def questions(agent: str, ids: Sequence[str]) -> Iterator[list[str]]:
    """The commands that only answer, in every format."""
    sessions = ["sessions"]
    for options in ([], ["--json"], ["--tree"], ["--subagents", "--sort", "cost"], ["--here"]):
        yield [*sessions, "list", agent, *options]
    for words in (["marmalade"], ["zebra;"], ["--regex", "z.bra"]):
        yield [*sessions, "search", *words, "--agent", agent, "--json"]
    yield ["cost", "report", "--agent", agent, "--group-by", "session,model,day", "--json"]
    yield ["cost", "report", "--csv"]
    yield ["agents", "--json"]
    yield ["schema", "session"]
    for id in ids:
        for options in ([], ["--format", "json", "--raw"], ["--format", "jsonl"], ["--tools", "full", "--thinking"]):
            yield [*sessions, "show", agent, id, *options]
    if "diff" in offered() and len(ids) > 1:
        yield [*sessions, "diff", f"{agent}:{ids[0]}", f"{agent}:{ids[1]}", "--json"]
    for name in ("resume", "fork"):
        if name in offered() and ids:
            yield [*sessions, name, agent, ids[0], "--print"]


def exports(agent: str, ids: Sequence[str], directory: Path) -> Iterator[list[str]]:
    """The commands that write where they were told to."""
    if "export" not in offered():
        return
    directory.mkdir(exist_ok=True)
    for number, id in enumerate(ids):
        for format in ("json", "jsonl", "markdown", "html"):
            target = str(directory / f"{number}.{format}")
            yield ["sessions", "export", agent, "--format", format, "--output", target, "--force", "--", id]
    for format in ("markdown", "parquet"):
        target = str(directory / f"all {format}")
        yield ["sessions", "export", agent, "--all", "--format", format, "--output", target, "--force"]


def notes(agent: str, ids: Sequence[str]) -> Iterator[list[str]]:
    """The commands that write to the user's data directory."""
    for id in ids:
        yield ["sessions", "tag", agent, id, "mine"]
        yield ["sessions", "tag", agent, id, "mine", "--remove"]
        yield ["sessions", "resume", agent, id, "--in", "codex" if agent == "claude" else "claude", "--print"]


def every(agent: str, ids: Sequence[str], own: Sequence[str], where: Place) -> list[list[str]]:
    """All of them; `own` are the sessions that are no sub-agents', which alone can be tagged."""
    found = [*questions(agent, ids), *exports(agent, ids, where.own / "exports")]
    # Where the home is the user's own, the data directory is below it.
    return found if where.env else [*found, *notes(agent, own)]
