"""Paths that sessions, repositories and people name: they may lead nowhere, to no file, or be no paths at all."""

import os
from pathlib import Path

from amux.readers._base import stamp

LONGEST_PATH = 8192
LARGEST = 64 * 2**20
"""Bytes: no file that git keeps for itself in a repository is larger."""


def real(path: str | os.PathLike[str]) -> str:
    """The path without symbolic links; one that no system has, too long or with a NUL in it, stays as it is."""
    name = os.fspath(path)
    try:
        return os.path.realpath(name) if len(name) <= LONGEST_PATH else name
    except (OSError, ValueError):
        return name


def told(path: str | os.PathLike[str]) -> str:
    """The path as agents write it into a session: bytes that are no UTF-8 are U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def text_of(path: Path, limit: int = LARGEST) -> str:
    """A small file's text, so many bytes of it; nothing for one that is not there, or no file at all."""
    if not stamp(path):
        return ""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
