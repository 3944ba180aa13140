"""Colours that can be read on a dark and on a light screen alike."""

import os
import re
from typing import IO, Any

from rich.console import Console
from rich.theme import Theme

from amux import readers

# Numbers of the 256 colours: unlike the first 16 they look the same everywhere, and these have a contrast of at least
# 3.6 to black and to white.
ACCENT = "color(30)"
MATCH = "bold color(166)"
ERROR = "color(160)"
REMOVED, ADDED = "color(160)", "color(28)"
HUES = tuple(f"color({number})" for number in (67, 166, 29, 63, 133, 100, 32, 130, 162, 30, 98, 64, 131))

STYLES = {
    "bar.back": "color(246)",
    "bar.complete": ACCENT,
    "bar.finished": ACCENT,
    "bar.pulse": ACCENT,
    "progress.download": "none",
    "progress.remaining": "dim",
    "markdown.block_quote": "italic",
    "markdown.code": ACCENT,
    "markdown.code_block": "none",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold underline",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.h5": "italic",
    "markdown.h6": "italic",
    "markdown.hr": "dim",
    "markdown.item.bullet": "bold",
    "markdown.item.number": "bold",
    "markdown.kbd": "bold",
    "markdown.link": "color(32)",
    "markdown.link_url": "underline color(32)",
    "markdown.list": "none",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}
"""Our own for what Rich draws in colours of its own."""
THEME = Theme(STYLES)


SIZE = re.compile("[1-9][0-9]{0,4}")


def console(file: IO[str] | None = None, **options: Any) -> Console:
    for name in ("COLUMNS", "LINES"):
        # Rich takes them at their word; what is no size of a terminal says nothing about this one.
        if name in os.environ and not SIZE.fullmatch(os.environ[name]):
            del os.environ[name]
    return Console(file=file, theme=THEME, highlight=False, **options)


def hue(agent: str) -> str:
    """A colour of its own for each agent."""
    names = readers.names()
    return HUES[names.index(agent) % len(HUES)] if agent in names else ""
