"""Completion: the values amux answers with, and the scripts in the shells themselves."""

import importlib.util
import json
import os
import pty
import select
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from amux import readers
from amux.completion import SCRIPTS, Shell

AMUX = str(Path(sys.executable).with_name("amux"))
TOP = Path(__file__).parents[1]
PATIENCE_SECONDS = 20
LONG_PRESS = 0.3
ID = "7d0cfea6"
"""How the id of one of the sessions begins."""
HOSTILE = {
    "evil-$(touch pwned)": "command",
    "evil`touch pwned`": "backticks",
    "evil'\"; touch pwned; '\"": "quotes",
    "evil|touch pwned&": "pipe",
    "evil*\\ {a,b}~ #!$HOME": "expansion",
    "evil:touch:pwned": "colons",
}
"""Ids nobody meant well, and how their titles begin."""
ARMED = "$(touch pwned)`touch pwned`'\";touch pwned\n\x1b]0;pwned\x07%F{red}"


@pytest.fixture
def home(corpus, tmp_path):
    where = tmp_path / "home"
    for path in corpus.scenarios("claude"):
        if path.name in ("fork", "subagent", "named"):
            shutil.copytree(path / "home", where, dirs_exist_ok=True)
    index = where / ".agent-mux" / "run-index.jsonl"
    index.parent.mkdir(exist_ok=True)
    run = {"v": 1, "runId": "1", "agent": "claude", "sessionId": whole_id(where), "tags": ["nightly"]}
    index.write_text(json.dumps({**run, "timestamp": "2026-11-18T09:30:00Z"}) + "\n")
    return where


def whole_id(home: Path) -> str:
    return next(home.glob(f".claude/projects/*/{ID}*.jsonl")).stem


@pytest.fixture
def environment(home, monkeypatch):
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SHELL", "/bin/bash")
    return home


@pytest.fixture
def filled(environment):
    """A home whose sessions the catalog knows; where the catalog is."""
    subprocess.run([AMUX, "sessions", "list", "--json"], check=True, capture_output=True)
    return Path(os.environ["AMUX_CACHE_DIR"]) / "catalog.db"


def add_sessions(catalog: Path, sessions: dict[str, str]) -> None:
    """Put sessions into the catalog as copies of one that is there, each with its id and its title."""
    with closing(sqlite3.connect(catalog)) as db:
        cursor = db.execute("select * from session where kind = 'main' limit 1")
        columns = [column[0] for column in cursor.description][1:]
        row = dict(zip(columns, cursor.fetchone()[1:], strict=True))
        db.executemany(
            f"insert into session ({', '.join(columns)}) values ({', '.join(f':{name}' for name in columns)})",
            [{**row, "id": id, "title": title} for id, title in sessions.items()],
        )
        db.commit()


def completed(*arguments: str) -> dict[str, str]:
    run = subprocess.run([AMUX, "--complete", *arguments], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return dict(line.split("\t") for line in run.stdout.splitlines())
