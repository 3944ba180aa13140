"""main(): runs the command line; errors become exit statuses here."""

import atexit
import os
import sys
from contextlib import suppress
from typing import NoReturn

from amux import __version__

EVERYWHERE = frozenset({"--demo", "--no-cache", "--no-color", "-v", "--verbose"})
"""Options of amux itself that are taken after the command as well."""


def main() -> None:
    argv = sys.argv[1:]
    foreign = sys.getfilesystemencoding() != "utf-8"  # a C locale that Python was told not to mend
    if foreign and sys.executable and not asked_often(argv):
        # -P: not from the current directory, where somebody else's amux may lie.
        os.execv(sys.executable, [sys.executable, "-P", "-X", "utf8", "-m", "amux", *argv])  # noqa: S606
    leave(answered(argv))


def asked_often(argv: list[str]) -> bool:
    """Whether it is a shell that asks: for the version at every prompt, for completions at every Tab."""
    return argv == ["--version"] or argv[:1] == ["--complete"]


def answered(argv: list[str]) -> int:
    """Run a command; its exit status."""
    try:
        status = run(argv)
    except BrokenPipeError:
        status = 0  # the reader of the pipe has seen enough
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError as error:
        # Nothing more can be written, not even by Python's own farewell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = status if isinstance(error, BrokenPipeError) else status or 1
    return status


def leave(status: int) -> NoReturn:
    """End the process at once when all is written and closed: taking it apart object by object costs a tenth of a run."""
    atexit._run_exitfuncs()  # noqa: SLF001 - what Python would do first: temporary directories and connections are closed
    if sys.stderr:
        with suppress(OSError):  # what cannot be said does not change what was done
            sys.stderr.flush()
    os._exit(status)


def run(argv: list[str]) -> int:
    from amux.errors import AmuxError  # noqa: PLC0415
    from amux.output import note_error  # noqa: PLC0415

    as_json = "--json" in argv
    try:
        return told_at_once(argv) if asked_often(argv) else commanded(arranged(argv))
    except AmuxError as error:
        note_error(error.code, str(error), recoverable=error.recoverable, as_json=as_json)
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        raise
    except OSError as error:  # no room behind stdout, say
        note_error(AmuxError.code, error.strerror or str(error), recoverable=False, as_json=as_json)
        return 1


def told_at_once(argv: list[str]) -> int:
    """What is answered before a command could be imported."""
    if argv == ["--version"]:
        from amux.output import write  # noqa: PLC0415

        write(f"amux {__version__}".encode())
    else:
        from amux.completion import answer  # noqa: PLC0415

        answer(argv[1:])
    return 0


def commanded(argv: list[str]) -> int:
    import gc  # noqa: PLC0415

    import typer  # noqa: PLC0415

    from amux.cli.app import app  # noqa: PLC0415
    from amux.errors import InvalidValue  # noqa: PLC0415

    gc.set_threshold(100_000)  # a run is short and makes few cycles: looking for them would cost a tenth of it
    try:
        return app(args=argv, prog_name="amux", standalone_mode=False) or 0
    except typer.Abort:
        return 130
    except SystemExit as end:  # what Typer makes of a closed pipe, and of nothing else
        raise BrokenPipeError from end
    except Exception as error:
        # What Typer says of wrong usage; any other exception is a bug and keeps its traceback.
        if not hasattr(error, "format_message"):
            raise
        from amux.cli.wording import worded  # noqa: PLC0415 - only mistakes need it

        raise InvalidValue(worded(error, argv, typer.main.get_command(app))) from error


def arranged(argv: list[str]) -> list[str]:
    """The arguments with amux's own options first, wherever they stood, and --json behind its command.

    What follows `--` is the agent's, or a search for a word that looks like an option, and stays as it is.
    """
    end = argv.index("--") if "--" in argv else len(argv)
    ours: list[str] = []
    rest: list[str] = []
    given = iter(argv[:end])
    for one in given:
        if one in EVERYWHERE or one.startswith("--home="):
            ours.append(one)
        elif one == "--home":
            ours += [one, *[value for value in [next(given, None)] if value is not None]]
        elif one != "--json":
            rest.append(one)
    if "--json" in argv[:end]:
        rest.append("--json")
    if rest[-1:] == ["--install-completion"]:  # no shell named: the user's own
        rest.append(os.path.basename(os.environ.get("SHELL", "")))
    return [*ours, *rest, *argv[end:]]
