"""Through $PAGER what is longer than the screen."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from shutil import which

from rich.console import Console

from amux.output.terminal.palette import console


def paged(draw: Callable[[Console], None], *, color: bool) -> None:
    screen = console()
    made = StringIO()
    draw(console(made, force_terminal=color and screen.is_terminal, no_color=not color, width=screen.width))
    text = made.getvalue()
    command = pager()
    if text.count("\n") < screen.height or not command:
        sys.stdout.write(text)
        return
    # -R lets colours through; -F and -X would leave the screen as it was, which a pager's user has set as they like it.
    environment = {"LESS": "-R", **os.environ}
    try:
        subprocess.run(command, input=text.encode("utf-8", "replace"), env=environment, check=False)
    except OSError:
        sys.stdout.write(text)


def pager() -> list[str]:
    """The user's pager as a command; nothing where there is none, where it is `cat`, or where it is no command."""
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return []
    return command if command and command[0] != "cat" and which(command[0]) else []
