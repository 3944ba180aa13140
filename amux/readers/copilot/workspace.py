"""workspace.yaml: one flat mapping of scalars, written by a YAML library and so quoted and folded as that sees fit."""

import re
from collections.abc import Sequence
from textwrap import dedent

from amux.errors import UnreadableSession
from amux.readers._base import stamp
from amux.readers._json import text_of

FIELD = re.compile(r"([A-Za-z_][\w-]*):(?:[ \t]+(.*))?")
ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
COMMENT = re.compile(r"(^|\s)#.*")
NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
MAX_SIZE = 2**20


def fields(path: str) -> dict[str, str]:
    """The fields of a workspace.yaml that have a value; nothing when there is no such file or it cannot be read."""
    found = stamp(path)
    if not found or found[1] > MAX_SIZE:
        return {}
    try:
        return parsed(text_of(path).removeprefix("\ufeff"))
    except UnreadableSession:
        return {}


def parsed(text: str) -> dict[str, str]:
    scalars: list[tuple[str, list[str]]] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if field := FIELD.fullmatch(line):
            scalars.append((field[1], [field[2] or ""]))
        elif scalars and (not line.strip() or line[0] in " \t"):
            scalars[-1][1].append(line)
    return {key: value for key, lines in scalars if (value := scalar(lines)) is not None}


def scalar(lines: Sequence[str]) -> str | None:
    first, rest = lines[0].strip(), lines[1:]
    match first[:1]:
        case "|":
            return dedent("\n".join(rest)).strip("\n")
        case ">":
            return folded(dedent("\n".join(rest)).strip("\n").split("\n"))
        case '"':
            return double_quoted([first, *rest])
        case "'":
            return folded([first, *rest])[1:].rpartition("'")[0].replace("''", "'")
    plain = folded([COMMENT.sub("", line) for line in (first, *rest)])
    return None if plain in NOTHING else plain


def folded(lines: Sequence[str]) -> str:
    """Lines as one text: a break is a space, a blank line is a break."""
    text = ""
    for line in map(str.strip, lines):
        if not line:
            text += "\n"
        elif text and not text.endswith("\n"):
            text += f" {line}"
        else:
            text += line
    return text.strip()


def double_quoted(lines: Sequence[str]) -> str:
    # A backslash at the end of a line joins it to the next without a space.
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    inside = folded(text.split("\n"))[1:].rpartition('"')[0]
    plain = ESCAPE.sub(unescaped, inside)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unescaped(found: re.Match[str]) -> str:
    if letter := found[4]:
        return LETTERS.get(letter, letter)
    code = int(found[1] or found[2] or found[3], 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"
