"""Keys as a person presses them: the terminal gives them one by one, without echo."""

import codecs
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Pressed = Callable[[float], list[str]]
"""The keys that came within so many seconds, oldest first: a name for those that act, the character for the others."""

SEQUENCE_DELAY = 0.05
"""Seconds after which an Esc that nothing follows is the key itself."""
NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x15": "^U",
    "\x17": "^W",
    "\x06": "^F",
    "\x10": "^P",
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1bOH": "home",
    "\x1b[1~": "home",
    "\x1b[F": "end",
    "\x1bOF": "end",
    "\x1b[4~": "end",
}
ONE_KEY = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1bO.|\x1b[^\x1b\[O]|.", re.DOTALL)
UNFINISHED = re.compile(r"\x1b(\[[0-9;?]*|O)?$")


def names(text: str) -> list[str]:
    """The keys in what a terminal sent; sequences and controls that mean nothing here are passed over."""
    found = (NAMES.get(key, key) for key in ONE_KEY.findall(text))
    return [key for key in found if key in NAMES.values() or (len(key) == 1 and key.isprintable())]


if sys.platform == "win32":
    import msvcrt
    import time

    EXTENDED = {"H": "up", "P": "down", "I": "page up", "Q": "page down", "G": "home", "O": "end"}
    POLL = 0.02

    @contextmanager
    def listening() -> Iterator[Pressed]:
        def pressed(seconds: float) -> list[str]:
            until = time.monotonic() + seconds
            while not msvcrt.kbhit():
                if time.monotonic() >= until:
                    return []
                time.sleep(POLL)
            key = msvcrt.getwch()
            if key == "\x03":
                raise KeyboardInterrupt
            if key in "\x00\xe0":
                return [name for name in [EXTENDED.get(msvcrt.getwch())] if name]
            return names(key)

        yield pressed

else:
    import select
    import termios

    @contextmanager
    def listening() -> Iterator[Pressed]:
        """The keys of the terminal on standard input, which is as it was before when it is left."""
        file = sys.stdin.fileno()
        before = termios.tcgetattr(file)
        mode = termios.tcgetattr(file)
        mode[0] &= ~(termios.ICRNL | termios.IXON)
        mode[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
        mode[6][termios.VSUSP] = b"\0"  # to be stopped with the screen taken would leave the shell without one
        termios.tcsetattr(file, termios.TCSADRAIN, mode)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def pressed(seconds: float) -> list[str]:
            text = ""
            while select.select([file], [], [], SEQUENCE_DELAY if text else seconds)[0]:
                sent = os.read(file, 4096)
                if not sent:
                    return ["escape"]  # the terminal is gone
                text += decoder.decode(sent)
                if text and not UNFINISHED.search(text):
                    break
            return names(text)

        try:
            yield pressed
        finally:
            termios.tcsetattr(file, termios.TCSADRAIN, before)
