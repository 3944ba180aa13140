"""What is said of wrong usage: what is wrong, then what was meant or where to look."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from amux.cli import EVERYWHERE
from amux.errors import InvalidValue, closest

NO_CHOICE = re.compile(r"'(?P<given>[^']*)' is not one of")
OPTIONAL = re.compile(r"'\[(\w+)\]'")
"""An argument that may be left out, as some versions of Typer name it."""
TOO_MANY = re.compile(r"got unexpected extra arguments?(?:\(s\))? \((?P<given>.*)\)")


def corrected(wrong: str, given: str, known: Iterable[str], otherwise: str) -> str:
    """What is wrong with the word that was given, and the one that was meant."""
    word = closest(given, known)
    return f"{wrong}; did you mean {word!r}?" if word else f"{wrong}; {otherwise}"


def no_choice(option: str, given: str, known: Sequence[str]) -> InvalidValue:
    """As Typer says it of options whose values it knows."""
    wrong = f"invalid value for '{option}': {given!r} is not one of {', '.join(map(repr, known))}"
    return InvalidValue(corrected(wrong, given, known, f"{option} takes one of them, or several with commas"))


def worded(error: Any, argv: Sequence[str], root: Any) -> str:
    """What Typer says of wrong usage, in one line of ours; `root` is the command amux itself."""
    said = " ".join(error.format_message().split()).rstrip(".")
    said = TOO_MANY.sub(r"unexpected argument: \g<given>", f"{said[:1].lower()}{said[1:]}")
    said = OPTIONAL.sub(r"'\1'", said)
    path, command = named(argv, root)
    where = f"see: {' '.join(path)} --help"
    if option := getattr(error, "option_name", None) if hasattr(error, "possibilities") else None:
        return corrected(f"no such option {option!r}", option, options_of(command), where)
    choices = getattr(getattr(getattr(error, "param", None), "type", None), "choices", ())
    if choices and (wrong := NO_CHOICE.search(said)):
        return corrected(said, wrong["given"], choices, where)
    return f"{said}; {where}"


def named(argv: Sequence[str], root: Any) -> tuple[list[str], Any]:
    """The command that arguments name, and its path. Typer does not tell it with every error."""
    path, command = ["amux"], root
    for word in argv:
        if word in getattr(command, "commands", {}):
            path.append(word)
            command = command.commands[word]
    return path, command


def options_of(command: Any) -> Iterator[str]:
    yield from (name for one in command.params for name in one.opts if name.startswith("--"))
    yield from ("--home", "--json", "--help")
    yield from EVERYWHERE


# Commands


def unknown_command(given: Sequence[str], path: Sequence[str], root: Any) -> InvalidValue:
    """Of the words given after a path, the first is no command there."""
    wrong = f"no such command {given[0]!r}"
    command = command_meant(given, path, {" ".join(one): one for one in paths(root)})
    otherwise = f"see: {' '.join(['amux', *path])} --help"
    return InvalidValue(f"{wrong}; did you mean 'amux {command}'?" if command else f"{wrong}; {otherwise}")


def command_meant(given: Sequence[str], path: Sequence[str], known: dict[str, tuple[str, ...]]) -> str | None:
    """The command somebody meant: `session lsit`, `sessions lsit`, or `list` without its group."""
    whole = closest(" ".join([*path, *given][:2]), known, 0.75)
    if whole or path:
        return whole
    by_name = {one[-1]: name for name, one in known.items()}
    word = closest(given[0], by_name)
    return by_name[word] if word else None


def paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, one in getattr(command, "commands", {}).items():
        yield (*path, name)
        yield from paths(one, (*path, name))
