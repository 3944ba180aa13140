"""Case: one corpus scenario, a home as a real agent left it and the truth about it."""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from amux import readers
from amux.cost import Report
from amux.manager import SessionManager
from amux.model import Session, SessionSummary
from amux.query import Query
from amux.readers._base import Host
from amux.results.costs import CostSummary

CORPUS = Path(__file__).parent / "corpus"


def scenarios(agent: str = "*") -> list[Path]:
    """The scenarios of every agent that has a reader."""
    found = sorted(path.parent for path in CORPUS.glob(f"{agent}/*/truth.json"))
    return [path for path in found if path.parent.name in readers.names()]


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@dataclass
class Case:
    """A scenario's own copy of its home, so that a read that left a trace would be seen and do no harm."""

    agent: str
    home: Path
    truth: dict[str, Any]
    env: dict[str, str]
    manager: SessionManager = field(init=False)

    def __post_init__(self) -> None:
        self.manager = SessionManager(Host(self.home, self.env), cache=False)

    @property
    def sessions(self) -> list[dict[str, Any]]:
        return self.truth["sessions"]

    def listed(self, *, subagents: bool = False) -> dict[str, SessionSummary]:
        query = Query(agents=(self.agent,), subagents=subagents)
        return {one.session_id: one for one in self.manager.list(query)}

    def id_of(self, truth: dict[str, Any]) -> str:
        """The session's id; a sub-agent that has none in the store is found by its parent and its prompt."""
        if truth["id"] is not None:
            return truth["id"]
        family = [
            one.session_id
            for one in self.listed(subagents=True).values()
            if one.kind == "subagent" and one.parent_id == truth["parent"]
        ]
        return next(
            id
            for id in family
            if not truth["prompts"]
            or [m.content for m in self.read(id).messages if m.role == "user"] == truth["prompts"]
        )

    def read(self, session_id: str) -> Session:
        return self.manager.get(self.agent, session_id)

    def spent(self, report: Report | None = None) -> CostSummary:
        return self.manager.total_cost(Query(agents=(self.agent,)), report=report)

    def files(self) -> dict[str, str]:
        """Every file of the home with its content and time, every directory with its entries."""
        found = {}
        for path in sorted(self.home.rglob("*")):
            stat = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
            found[str(path.relative_to(self.home))] = (
                f"{content} {stat.st_mtime_ns if path.is_file() else ''} {stat.st_mode}"
            )
        return found


def open_case(path: Path, where: Path) -> Case:
    truth = json.loads((path / "truth.json").read_text())
    home = where / "home"
    shutil.copytree(path / "home", home, symlinks=True)
    env = {name: value.replace("$HOME", str(home)) for name, value in (truth.get("env") or {}).items()}
    return Case(path.parent.name, home, truth, env)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        found = scenarios()
        metafunc.parametrize("case", found, ids=map(name, found), indirect=True, scope="module")


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return open_case(request.param, tmp_path_factory.mktemp("case"))


class Corpus:
    """The whole corpus, for tests that want more than one scenario at a time."""

    scenarios = staticmethod(scenarios)
    open_case = staticmethod(open_case)


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return Corpus()


@pytest.fixture(autouse=True)
def own_directories(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's own cache, configuration or data."""
    where = tmp_path_factory.mktemp("own")
    monkeypatch.setenv("AMUX_CACHE_DIR", str(where / "cache"))
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(where / variable.lower()))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "100")
    for variable in [
        variable for variable in os.environ if variable.startswith(("CLAUDE", "CODEX", "GEMINI", "COPILOT"))
    ]:
        monkeypatch.delenv(variable)
