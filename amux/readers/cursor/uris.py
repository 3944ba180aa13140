"""Paths out of the URIs that Cursor writes."""

import re
from typing import Any
from urllib.parse import unquote

from amux.readers._json import text_at

URI = re.compile(r"(file|vscode-remote)://[^/]*(/.*)", re.DOTALL)
DRIVE = re.compile(r"/([A-Za-z]:)(?=/|$)")


def local_path(uri: str) -> str | None:
    """The path in a URI of a file, here or on the machine that was worked on; None for any other."""
    if not (found := URI.fullmatch(uri)):
        return None
    path = unquote(found[2])
    if drive := DRIVE.match(path):
        return drive[1] + (path[drive.end() :].replace("/", "\\") or "\\")
    return path.rstrip("/") or "/"


def folder_of(uri: Any) -> str | None:
    """A directory, as records of the IDE name it: a URI as text, or taken apart."""
    if isinstance(uri, str):
        return local_path(uri)
    return text_at(uri, "fsPath") or local_path(text_at(uri, "external") or "") or text_at(uri, "path")
