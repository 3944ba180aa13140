"""The package as others get it: a wheel with all it needs and nothing else, that runs where it is installed."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    where = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--wheel-dir",
        str(where),
        str(TOP),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return next(where.glob("*.whl"))


def test_the_wheel_holds_what_it_should(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    own = {
        str(path.relative_to(TOP))
        for path in (TOP / "amux").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    scripts = {f"amux/completions/{path.name}" for path in (TOP / "completions").iterdir()}

    assert {name for name in names if not name.startswith("amux-")} == own | scripts
    assert wheel.stat().st_size < MEGABYTE


def test_it_runs_where_it_is_installed(wheel, tmp_path):
    """In an environment of its own that borrows the dependencies of this one: what was installed is the wheel."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    packages = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True
    )
    site = Path(packages.stdout.strip())
    zipfile.ZipFile(wheel).extractall(site)
    borrowed = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "zz_borrowed.pth").write_text(borrowed)
    environment = {"HOME": str(tmp_path), "AMUX_CACHE_DIR": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    for arguments in (
        ["--version"],
        ["--demo", "sessions", "list"],
        ["--demo", "cost", "report", "--json"],
        ["--demo", "sessions", "search", "webhook"],
    ):
        run = subprocess.run(
            [python, "-m", "amux", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            check=True,
        )
        assert run.stdout
        assert run.stderr == ""
    where = subprocess.run(
        [python, "-c", "import amux; print(amux.__file__)"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=True,
    )
    assert where.stdout.startswith(str(site))
