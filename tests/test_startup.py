"""What a run may import: the start stays quick by what is not loaded, which a test can pin; milliseconds it cannot."""

import subprocess
import sys

import pytest

HEAVY = {
    "rich",
    "pygments",
    "markdown_it",
    "asyncio",
    "importlib.metadata",
    "pydantic",
    "dateutil",
    "click",
    "email",
    "http",
    "ssl",
}


def loaded(home: str, *arguments: str) -> set[str]:
    """The modules a run of amux loads, whole names and their first parts."""
    code = "import sys; from amux.cli import answered; answered(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", code, "--home", home, *arguments], capture_output=True, text=True, check=True
    )
    names = run.stderr.splitlines()[-1].split()
    return set(names) | {name.split(".")[0] for name in names}


@pytest.mark.parametrize(
    "arguments",
    [
        ("sessions", "list", "claude", "--json"),
        ("sessions", "list", "claude"),
        ("sessions", "search", "marmalade", "--agent", "claude", "--json"),
        ("sessions", "show", "claude", "latest", "--json"),
        ("cost", "report", "--agent", "claude", "--json"),
    ],
)
def test_json_and_pipes_load_nothing_heavy(corpus, tmp_path, arguments):
    case = corpus.open_case(next(path for path in corpus.scenarios("claude") if path.name == "one"), tmp_path)

    assert loaded(str(case.home), *arguments) & HEAVY == set()


def test_only_the_reader_asked_for_is_loaded(corpus, tmp_path):
    names = loaded(str(tmp_path), "sessions", "list", "claude", "--json")
    readers = {name for name in names if name.startswith("amux.readers.") and not name.startswith("amux.readers._")}

    assert {name.split(".")[2] for name in readers} == {"claude"}


def test_the_version_costs_next_to_nothing():
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from amux.cli import answered; answered(['--version']); print(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stdout.startswith("amux ")
    assert {"typer", "sqlite3", "orjson", "dataclasses"} & set(run.stdout.split()) == set()
