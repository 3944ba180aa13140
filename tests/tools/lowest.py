"""Runs tests with the lowest versions that pyproject.toml allows of what amux needs: `make lowest`.

The environment is a new one in a temporary directory, with the wheel in it as others install it.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).parents[2]
PROJECT = TOP / "pyproject.toml"
LOWER_BOUND = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\w.]+)(?P<rest>[^;]*)(?P<marker>;.*)?")
TOOLS = ("pytest", "pytest-console-scripts", "syrupy", "jsonschema")
TESTS = ("test_cli", "test_screens", "test_help", "test_wrong_usage", "test_schema", "test_markdown", "test_picker")
"""Those that go through Typer, Rich, orjson, dateutil and platformdirs, as a person would."""


def pins(dependencies: list[str]) -> Iterator[str]:
    """Each dependency at its lower bound. Raises ValueError for one that has none."""
    for one in dependencies:
        bound = LOWER_BOUND.fullmatch(one)
        if bound is None:
            raise ValueError(f"{one} has no lower bound")
        yield f"{bound['name']}=={bound['version']}{bound['marker'] or ''}"


def main() -> int:
    wanted = list(pins(tomllib.loads(PROJECT.read_text())["project"]["dependencies"]))
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = Path(place) / "bin" / "python"
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, str(TOP), *wanted, *TOOLS], check=True)
        tests = [str(TOP / "tests" / f"{name}.py") for name in TESTS]
        # The tests of this directory, the package of that environment: it must not be found in the source tree.
        command = [str(python), "-P", "-m", "pytest", "--rootdir", str(TOP), "-c", str(PROJECT), *tests]
        return subprocess.run(command, cwd=place, env={**os.environ, "VIRTUAL_ENV": place}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
