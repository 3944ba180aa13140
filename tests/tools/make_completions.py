"""Writes completions/ from the commands there are: `make completions`.

The scripts know commands, options and fixed values. What only the catalog knows they ask amux for (`amux --complete`), and
take its answer as text: nothing a session contains is ever evaluated by a shell.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

from typer.main import get_command

from amux.cli import EVERYWHERE
from amux.cli.app import app
from amux.completion import SCRIPTS, Shell

OUT = Path(__file__).parents[2] / "completions"

ASKED = {
    "--agent": "agents",
    "--in": "agents",
    "--model": "models",
    "--tag": "tags",
    "--group-by": "groups",
    "--timezone": "zones",
}
"""Options whose values amux is asked for."""
DATES = ("today", "yesterday", "7d", "30d")
CHOICES = {"--since": DATES, "--until": DATES}
"""Values worth offering that the type of an option does not tell."""
ARGUMENTS = {
    "AGENT": "agents",
    "AGENT ID": "sessions",
    "AGENT ID TAG…": "sessions,tags+",
    "A B": "ids,ids",
}
"""What amux is asked for, by the names of a command's arguments in the help. What has a `+` may be repeated."""


@dataclass(frozen=True, slots=True)
class Value:
    """What may stand somewhere: one of these words, what amux answers, a file, a directory; or anything."""

    choices: tuple[str, ...] = ()
    ask: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """`value` is None for a flag."""

    names: tuple[str, ...]
    help: str
    value: Value | None
    repeated: bool


@dataclass(frozen=True, slots=True)
class Command:
    """`path` are the words that name it after `amux`; `options` are those that only it has."""

    path: tuple[str, ...]
    help: str
    options: tuple[Option, ...]
    argument: Value
    commands: tuple["Command", ...]

    @property
    def name(self) -> str:
        return " ".join(self.path)

    def all(self) -> Iterator["Command"]:
        yield self
        for command in self.commands:
            yield from command.all()


# The commands


def tree(found: Any, path: tuple[str, ...] = ()) -> Command:
    """A command as Typer has it."""
    options = (option(one) for one in found.params if one.param_type_name == "option" and not one.hidden)
    shown = sorted((name, one) for name, one in getattr(found, "commands", {}).items() if not one.hidden)
    return Command(
        path=path,
        help=first_line(found.help),
        options=tuple(one for one in options if not everywhere(one)),
        argument=argument([one for one in found.params if one.param_type_name == "argument"]),
        commands=tuple(tree(one, (*path, name)) for name, one in shown),
    )


def shared(root: Any) -> tuple[Option, ...]:
    """The options that may stand after every command."""
    found = [option(one) for one in root.params if one.param_type_name == "option"]
    help_option = Option(("-h", "--help"), "Say what there is and stop.", None, repeated=False)
    return (*filter(everywhere, found), help_option)


def everywhere(option: Option) -> bool:
    return bool(set(option.names) & {*EVERYWHERE, "--home"})


def option(found: Any) -> Option:
    value = None if found.is_flag else value_of(found)
    return Option(tuple(sorted(found.opts, key=len)), first_line(found.help), value, repeated=found.multiple)


def value_of(found: Any) -> Value:
    long = max(found.opts, key=len)
    choices = CHOICES.get(long) or tuple(getattr(found.type, "choices", ()))
    kind = type(found.type).__name__
    path = "" if not kind.endswith("Path") else "directory" if found.metavar == "DIR" else "file"
    return Value(choices, ASKED.get(long, ""), path)


def argument(found: list[Any]) -> Value:
    """What may stand at a command's arguments together: amux tells which of them is asked for."""
    choices = [tuple(one.type.choices) for one in found if hasattr(one.type, "choices")]
    if choices:
        return Value(choices=choices[0])
    return Value(ask=ARGUMENTS.get(" ".join(one.metavar for one in found), ""))


def first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def valued(options: Iterable[Option]) -> list[str]:
    """The options that take a value. Raises ValueError where one does in one command only: the scripts cannot tell."""
    names: dict[str, bool] = {}
    for one in options:
        for name in one.names:
            if names.setdefault(name, one.value is not None) != (one.value is not None):
                raise ValueError(f"{name} takes a value in one command and none in another")
    return sorted(name for name, takes in names.items() if takes)


# bash

BASH = r"""
# Completion of amux for bash. Made by `make completions`; do not edit.
#
# Options are written as --flag, --name= (any value), --name=this|that, --name=@what-amux-is-asked-for.

_amux_known() { # sets what may follow a command
    commands='' options='' argument=''
    local everywhere='@EVERYWHERE@'
    case $1 in
@COMMANDS@
    esac
}

_amux() {
    local IFS=$' \t\n' current word value command='' ended='' asking=''
    local commands options argument
    local -a words=() given=() where=()
    _amux_split
    _amux_known ''
    for word in "${words[@]:1}"; do
        if [[ $asking ]]; then
            [[ $asking == --home ]] && where=(--home "$word")
            asking=''
        elif [[ $ended || $word != -?* ]]; then
            if [[ ! $ended && " $commands " == *" $word "* ]]; then
                command+=${command:+ }$word
                _amux_known "$command"
            else
                given+=("$word")
            fi
        elif [[ $word == -- ]]; then
            ended=1
        elif [[ $word == --demo ]]; then
            where=(--demo)
        elif [[ $word == --home=* ]]; then
            where=(--home "${word#*=}")
        elif _amux_value "$word"; then
            asking=$word
        fi
    done

    local unseen=${current%"$2"} typed=$current before=''
    if [[ $asking ]]; then
        given=()
        _amux_value "$asking"
        _amux_offer "$value"
    elif [[ $ended ]]; then
        return
    elif [[ $current == --*=* ]]; then
        given=() before=${current%%=*}= typed=${current#*=}
        _amux_value "${current%%=*}" && _amux_offer "$value"
    elif [[ $current == -* ]]; then
        local names=''
        for word in $options; do names+="${names:+|}${word%%=*}"; done
        _amux_offer "$names"
    elif [[ $commands ]]; then
        [[ ${given[*]} ]] || _amux_offer "${commands// /|}"
    else
        _amux_offer "$argument"
    fi
}

# The words before the cursor. bash splits them at every : and =, which stand inside of ids and options.
_amux_split() {
    local rest=${COMP_LINE:0:COMP_POINT} trimmed i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        trimmed=${rest#"${rest%%[![:space:]]*}"}
        word=${COMP_WORDS[i]}
        ((i == COMP_CWORD)) && word=$trimmed
        if ((i > 0)) && [[ $trimmed && $trimmed == "$rest" ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        rest=${trimmed#"$word"}
    done
    current=${words[${#words[@]} - 1]}
    unset "words[${#words[@]} - 1]"
}

_amux_value() { # sets what the value of an option may be; fails where it takes none
    local option
    for option in $options; do
        if [[ $option == "$1="* ]]; then
            value=${option#*=}
            return 0
        fi
    done
    return 1
}

_amux_offer() { # puts what begins as typed into COMPREPLY
    local -a found=() said=()
    case $1 in
    '') return ;;
    @file) compopt -o default 2>/dev/null ;;
    @directory) compopt -o dirnames 2>/dev/null ;;
    @*) _amux_ask "${1#@}" ;;
    *)
        local IFS='|'
        for word in $1; do
            [[ $word == "$typed"* ]] && found+=("$word")
        done
        ;;
    esac
    found=("${found[@]/#/$before}")
    COMPREPLY=("${found[@]#"$unseen"}")
    _amux_describe
}

# What amux knows: lines of value, tab, description, which are split at their ends and otherwise taken as they are.
_amux_ask() {
    [[ $typed == *[\"\'\\\`\$]* ]] && return
    local IFS=$'\n' globbing='' i
    [[ $- == *f* ]] || globbing=1
    set -f
    found=($(command amux --complete "${where[@]}" "$1" "${given[@]}" "$typed" 2>/dev/null))
    [[ $globbing ]] && set +f
    compopt -o nosort 2>/dev/null
    said=("${found[@]#*$'\t'}")
    found=("${found[@]%%$'\t'*}")
    IFS=:
    if [[ ${found[*]} == *[!A-Za-z0-9_.:/@=+,-]* ]]; then
        for i in "${!found[@]}"; do
            printf -v value %q "${found[i]}"
            found[i]=$value
        done
    fi
}

# Descriptions are for reading only, so they are added where bash lists: 63 is the second Tab, 33 and 64 list at the first.
_amux_describe() {
    [[ ${#said[@]} -gt 1 && $COMP_TYPE =~ ^(63|33|64)$ ]] || return
    local i room
    for i in "${!said[@]}"; do
        room=$((${COLUMNS:-80} - ${#COMPREPLY[i]} - 3))
        [[ ${said[i]} && $room -gt 0 ]] && COMPREPLY[i]+="  ${said[i]:0:room}"
    done
}

complete -F _amux amux
"""


def bash(root: Command, everywhere: Sequence[Option]) -> str:
    return (
        BASH.lstrip()
        .replace("@EVERYWHERE@", " ".join(bash_options(everywhere)))
        .replace("@COMMANDS@", "\n".join(bash_case(one) for one in root.all()))
    )


def bash_case(command: Command) -> str:
    lines = [f"'{command.name}')"]
    if command.commands:
        lines.append(f"    commands='{' '.join(one.path[-1] for one in command.commands)}'")
    lines.append(f'    options="{" ".join(["$everywhere", *bash_options(command.options)])}"')
    if bash_value(command.argument):
        lines.append(f"    argument='{bash_value(command.argument)}'")
    return indent("\n".join([*lines, "    ;;"]), " " * 4)


def bash_options(options: Iterable[Option]) -> Iterator[str]:
    for one in options:
        for name in one.names:
            yield name if one.value is None else f"{name}={bash_value(one.value)}"


def bash_value(value: Value) -> str:
    return "|".join(value.choices) or (f"@{value.ask or value.path}" if value.ask or value.path else "")


# zsh

ZSH = r"""
#compdef amux
# Completion of amux for zsh. Made by `make completions`; do not edit.

_amux() {
  local curcontext=$curcontext
  local -a everywhere where
  local -i place
  everywhere=(
@EVERYWHERE@
  )
  for ((place = 2; place < CURRENT; place++)); do
    case $words[place] in
      --) break ;;
      --demo) where=(--demo) ;;
      --home) where=(--home "$words[place + 1]") ;;
      --home=*) where=(--home "${words[place]#*=}") ;;
    esac
  done
  _amux_
}

# What amux knows: lines of value, tab, description, which are taken as they are.
_amux_ask() {
  local -a lines match
  lines=(${(f)"$(command amux --complete $where "$@" "$PREFIX" 2>/dev/null)"})
  # _describe takes value:description, with a backslash before each colon and backslash of the value.
  lines=("${(@)lines/(#b)([^$'\t']#)$'\t'/${match[1]//(#m)[\\:]/\\$MATCH}:}")
  _describe -V -t values value lines
}

_amux_argument() {
  _amux_ask $1 "${(@)line[1,-2]}"
}

@COMMANDS@

# Two sessions of which the same is said stay two lines.
zstyle ':completion:*:*:amux:*:values' list-grouped false

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _amux "$@"
else
  compdef _amux amux
fi
"""
GROUP = r"""
_amux_@FUNCTION@() {
  local state state_descr
  local -a line commands
  local -A opt_args
  local -i found=1
  commands=(
@COMMANDS@
  )
  _arguments -C -S $everywhere \
@OPTIONS@    '1: :->command' '*:: :->rest' && found=0
  case $state in
    command) _describe -t commands command commands && found=0 ;;
    rest)
      case $words[1] in
@CASES@
      esac
      ;;
  esac
  return found
}
"""


def zsh(root: Command, everywhere: Sequence[Option]) -> str:
    functions = [zsh_group(one) if one.commands else zsh_leaf(one) for one in root.all()]
    return (
        ZSH.lstrip()
        .replace("@EVERYWHERE@", indent("\n".join(zsh_options(everywhere)), " " * 4))
        .replace("@COMMANDS@", "\n\n".join(functions))
    )


def zsh_function(command: Command) -> str:
    return "_".join(command.path)


def zsh_group(command: Command) -> str:
    named = [quoted(f"{one.path[-1]}:{one.help}") for one in command.commands]
    cases = [f"{one.path[-1]}) _amux_{zsh_function(one)} && found=0 ;;" for one in command.commands]
    own = [f"{spec} \\\n" for spec in zsh_options(command.options)]
    return (
        GROUP.strip()
        .replace("@FUNCTION@", zsh_function(command))
        .replace("@COMMANDS@", indent("\n".join(named), " " * 4))
        .replace("@OPTIONS@", indent("".join(own), " " * 4))
        .replace("@CASES@", indent("\n".join(cases), " " * 8))
    )


def zsh_leaf(command: Command) -> str:
    specs = zsh_options(command.options)
    if command.argument.ask:
        specs.append(quoted(f"*: : _amux_argument {command.argument.ask}"))
    elif command.argument.choices:
        specs.append(quoted(f"1: :{zsh_action(command.argument)}"))
    lines = " \\\n".join(indent(spec, " " * 4) for spec in specs)
    return f"_amux_{zsh_function(command)}() {{\n  _arguments -S $everywhere \\\n{lines}\n}}"


def zsh_options(options: Iterable[Option]) -> list[str]:
    return [spec for one in options for spec in zsh_option(one)]


def zsh_option(option: Option) -> Iterator[str]:
    exclusive = "*" if option.repeated else f"({' '.join(option.names)})" if len(option.names) > 1 else ""
    said = option.help.replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]")
    for name in option.names:
        if option.value is None:
            yield quoted(f"{exclusive}{name}[{said}]")
        else:
            joined = f"{name}=" if name.startswith("--") else f"{name}+"
            yield quoted(f"{exclusive}{joined}[{said}]:{option.names[-1].strip('-')}:{zsh_action(option.value)}")


def zsh_action(value: Value) -> str:
    if value.choices:
        return f"({' '.join(value.choices)})"
    if value.path:
        return "_files -/" if value.path == "directory" else "_files"
    # The blank before a function keeps _arguments from giving it options of its own.
    return f" _amux_ask {value.ask}" if value.ask else " "


def quoted(text: str) -> str:
    """A text in the single quotes of bash and zsh."""
    return "'" + text.replace("'", r"'\''") + "'"


# fish

FISH = r"""
# Completion of amux for fish. Made by `make completions`; do not edit.

set -g __amux_commands @COMMANDS@
set -g __amux_valued @VALUED@

# Sets what the words before the cursor say: the command, its arguments so far, and where amux reads.
function __amux_walk
    set -g __amux_command
    set -g __amux_given
    set -g __amux_where
    set -g __amux_ended
    set -l asking
    for word in (commandline -opc)[2..]
        if set -q asking[1]
            test $asking = --home; and set __amux_where --home $word
            set asking
        else if set -q __amux_ended[1]; or not string match -q -- '-?*' $word
            if not set -q __amux_ended[1]; and contains -- "$__amux_command $word" $__amux_commands
                set __amux_command "$__amux_command $word"
            else
                set -a __amux_given $word
            end
        else if test $word = --
            set __amux_ended yes
        else if test $word = --demo
            set __amux_where --demo
        else if string match -q -- '--home=*' $word
            set __amux_where --home (string replace -- --home= '' $word)
        else if contains -- $word $__amux_valued
            set asking $word
        end
    end
end

function __amux_at # whether a command's own options and arguments may follow
    __amux_walk
    test "$__amux_command" = "$argv[1]"; and not set -q __amux_ended[1]
end

function __amux_awaits # whether a command's commands may follow
    __amux_at $argv[1]; and not set -q __amux_given[1]
end

# What amux knows: lines of value, tab, description, which fish takes as they are.
function __amux_ask
    __amux_walk
    set -l typed (commandline -ct | string replace -r -- '^--[^=]*=' '')
    command amux --complete $__amux_where $argv "$typed" 2>/dev/null
end

function __amux_argument
    __amux_walk
    __amux_ask $argv $__amux_given
end

complete -c amux -f
@COMPLETE@
"""


def fish(root: Command, everywhere: Sequence[Option]) -> str:
    commands = [fish_quoted(f" {one.name}") for one in root.all() if one.path]
    options = [*everywhere, *(one for command in root.all() for one in command.options)]
    anywhere = [fish_option("", one) for one in everywhere]
    lines = [line for command in root.all() for line in fish_command(command)]
    return (
        FISH.lstrip()
        .replace("@COMMANDS@", " ".join(commands))
        .replace("@VALUED@", " ".join(valued(options)))
        .replace("@COMPLETE@", "\n".join([*anywhere, *lines]))
    )


def fish_command(command: Command) -> Iterator[str]:
    place = f"{' ' if command.path else ''}{command.name}"
    for one in command.commands:
        yield f"complete -c amux {fish_when('awaits', place)} -a {one.path[-1]} -d {fish_quoted(one.help)}"
    for option in command.options:
        yield fish_option(fish_when("at", place), option)
    if command.argument.ask:
        yield f"complete -c amux {fish_when('at', place)} -k -a '(__amux_argument {command.argument.ask})'"
    elif command.argument.choices:
        yield f"complete -c amux {fish_when('awaits', place)} -a '{' '.join(command.argument.choices)}'"


def fish_option(when: str, option: Option) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    value = [] if option.value is None else [fish_value(option.value)]
    return " ".join(filter(None, ["complete -c amux", when, *names, *value, "-d", fish_quoted(option.help)]))


def fish_value(value: Value) -> str:
    if value.path == "file":
        return "-r -F"
    if value.path:
        return "-x -a '(__fish_complete_directories)'"
    if value.ask:
        return f"-x -a '(__amux_ask {value.ask})'"
    return f"-x -a '{' '.join(value.choices)}'" if value.choices else "-x"


def fish_when(function: str, place: str) -> str:
    return f"-n '__amux_{function} \"{place}\"'"


def fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", r"\\").replace("'", r"\'") + "'"


RENDERERS: dict[Shell, Callable[[Command, Sequence[Option]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def scripts() -> dict[Shell, str]:
    found = get_command(app)
    return {shell: render(tree(found), shared(found)) for shell, render in RENDERERS.items()}


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for shell, text in scripts().items():
        (OUT / SCRIPTS[shell]).write_text(text)
