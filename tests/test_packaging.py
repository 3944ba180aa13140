"""The package as others get it: it holds all it needs and nothing else, and runs wherever it is installed."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import amux

TOP = Path(__file__).parents[1]
MEGABYTE = 2**20
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
DEMO_SESSIONS = 17


def ran(*command: str | Path, where: Path, status: int = 0, **variables: str) -> str:
    """What a command prints, run with a home of its own and none of this environment's Python in sight."""
    hidden = ("PYTHON", "VIRTUAL_ENV", "AMUX", "XDG", "PIPX", "UV_TOOL")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    run = subprocess.run(
        [str(one) for one in command],
        capture_output=True,
        text=True,
        env={**kept, "HOME": str(where), "AMUX_CACHE_DIR": str(where / "cache"), **variables},
        cwd=where,
        check=False,
    )
    assert run.returncode == status, run.stderr[-2000:]
    return run.stdout


def environment(python: str | Path, where: Path, *packages: str | Path) -> Path:
    """The programs of a new environment with these packages in it."""
    ran(python, "-m", "venv", where / "venv", where=where)
    programs = where / "venv" / "bin"
    ran(programs / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *packages, where=where)
    return programs


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The directory with the source distribution and the wheel made from it."""
    where = tmp_path_factory.mktemp("built")
    ran(sys.executable, "-m", "build", "--outdir", where, TOP, where=where)
    return where


@pytest.fixture(scope="module")
def wheel(built):
    return next(built.glob("*.whl"))


def files(directory: str) -> set[str]:
    found = (path.relative_to(TOP) for path in (TOP / directory).rglob("*") if path.is_file())
    return {str(path) for path in found if "__pycache__" not in path.parts}


def test_the_wheel_holds_what_it_should(wheel):
    names = zipfile.ZipFile(wheel).namelist()

    assert {name for name in names if not name.startswith("amux-")} == files("amux") | {
        f"amux/{name}" for name in files("completions")
    }
    assert {name.partition("/")[2] for name in names if name.startswith("amux-")} == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
    }
    assert wheel.stat().st_size < MEGABYTE


def test_the_source_distribution_holds_what_the_wheel_is_made_of(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}

    beside = {"README.md", "LICENSE", "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert names == files("amux") | files("completions") | beside


def found_python(version: str) -> Path | None:
    """A Python of this version: this one, one on the PATH, one that pyenv keeps."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return Path(sys.executable)
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [shutil.which(f"python{version}"), *sorted(kept.glob(f"{version}*/bin/python{version}"))]
    works = (one for one in candidates if one and not subprocess.run([one, "-c", ""], check=False).returncode)
    return next((Path(one) for one in works), None)


@pytest.mark.parametrize("version", PYTHONS)
def test_it_runs_in_an_empty_environment(wheel, tmp_path, version):
    python = found_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    programs = environment(python, tmp_path, wheel)

    assert ran(programs / "python", "-c", "import sys; print(*sys.version_info[:2], sep='.')", where=tmp_path) == (
        f"{version}\n"
    )
    for command in ([programs / "amux"], [programs / "python", "-m", "amux"]):
        assert ran(*command, "--version", where=tmp_path) == f"amux {amux.__version__}\n"
        assert ran(*command, "sessions", "list", where=tmp_path) == "No sessions.\n"
        assert len(json.loads(ran(*command, "--demo", "sessions", "list", "--json", where=tmp_path))) == DEMO_SESSIONS
    for arguments in (
        ["-v", "--version"],
        ["agents"],
        ["schema"],
        ["--demo", "sessions", "list", "--tree"],
        ["--demo", "sessions", "search", "webhook", "retry"],
        ["--demo", "sessions", "show", "codex", "latest"],
        ["--demo", "sessions", "export", "claude", "latest", "--format", "html", "--redact"],
        ["--demo", "sessions", "diff", "codex:01a1d46b", "codex:01a1d470"],
        ["--demo", "sessions", "resume", "codex", "latest", "--print"],
        ["--demo", "cost", "report", "--group-by", "day", "--since", "2026-11-11", "--timezone", "UTC"],
        ["--complete", "--demo", "ids", ""],
        ["--install-completion", "zsh"],
    ):
        assert ran(programs / "amux", *arguments, where=tmp_path), arguments


def test_every_dependency_has_a_lower_bound_to_be_tried():
    """`make lowest` tries them."""
    spec = importlib.util.spec_from_file_location("lowest", TOP / "tests" / "tools" / "lowest.py")
    lowest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lowest)
    wanted = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["dependencies"]
    pins = list(lowest.pins(wanted))

    assert [pin.partition("==")[0] for pin in pins] == [one.partition(">=")[0] for one in wanted]
    with pytest.raises(ValueError, match="click has no lower bound"):
        list(lowest.pins(["click"]))


@pytest.fixture(scope="module")
def runners(tmp_path_factory):
    """The programs of an environment with pipx and uv."""
    return environment(sys.executable, tmp_path_factory.mktemp("runners"), "pipx", "uv")


@pytest.fixture(scope="module")
def packages(wheel, tmp_path_factory):
    """A directory with all that the wheel needs, as pip gets it: how uv reaches an index is no concern of these tests."""
    where = tmp_path_factory.mktemp("packages")
    ran(sys.executable, "-m", "pip", "--quiet", "download", "--dest", where, wheel, where=where)
    return where


@pytest.mark.parametrize("runner", [["pipx", "run", "--spec"], ["uvx", "--from"]], ids=["pipx", "uvx"])
def test_it_starts_without_being_installed(wheel, runners, packages, tmp_path, runner):
    program, *options = runner
    command = [runners / program, *options, wheel, "amux"]
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages), "UV_OFFLINE": "1", "UV_FIND_LINKS": str(packages)}

    assert ran(*command, "--version", where=tmp_path, **offline) == f"amux {amux.__version__}\n"
    listed = ran(*command, "--demo", "sessions", "list", "--json", where=tmp_path, **offline)
    assert len(json.loads(listed)) == DEMO_SESSIONS
