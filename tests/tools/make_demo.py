"""Writes amux/demo, the home that `amux --demo` shows: `python tests/tools/make_demo.py [DIRECTORY]`.

The stories are invented; they are written down as the newest versions of the agents would have done it. Everything is
fixed, ids and times included: the same files come out each time, byte for byte.
"""

import shutil
import sys
from pathlib import Path

from demo import blog, claude, codex, copilot, droid, gemini, opencode, ops, pi, shop

OUT = Path(__file__).parents[2] / "amux" / "demo"
STORIES = (*shop.STORIES, *blog.STORIES, *ops.STORIES)
WRITERS = {
    "claude": claude,
    "codex": codex,
    "copilot": copilot,
    "droid": droid,
    "gemini": gemini,
    "omp": pi,
    "opencode": opencode,
    "pi": pi,
}


def files() -> dict[str, str]:
    """What is in the home, by path."""
    found: dict[str, str] = {}
    for agent, writer in WRITERS.items():
        found |= writer.files([story for story in STORIES if story.agent == agent])
    return found


def main(out: Path = OUT) -> None:
    if out.exists():
        shutil.rmtree(out)
    for name, text in files().items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
