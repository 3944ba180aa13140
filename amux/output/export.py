"""Sessions as files: JSON, JSON lines, Markdown, HTML, and data sets in Parquet."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import count
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import orjson

from amux.errors import InvalidValue
from amux.model import Session, SessionSummary
from amux.output import tame
from amux.output.jsonout import lines, members, plain

ENDINGS = {"json": "json", "jsonl": "jsonl", "markdown": "md", "html": "html"}
SAFE = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST_NAME = 120


def chunks(session: Session, form: str) -> Iterator[bytes]:
    """A session in one of the forms, piece by piece: a large one is never held whole a second time."""
    match form:
        case "json":
            yield from json_chunks(session)
        case "jsonl":
            for line in lines(session):
                yield line + b"\n"
        case "markdown":
            from amux.output import markdown  # noqa: PLC0415 - each form loads its own

            yield from (text.encode("utf-8", "replace") for text in markdown.chunks(session))
        case "html":
            from amux.output.html import page  # noqa: PLC0415

            yield from (text.encode("utf-8", "replace") for text in page(session))


def json_chunks(session: Session) -> Iterator[bytes]:
    head = members(session, without="messages")
    raw = head.pop("raw", None)
    yield orjson.dumps(head)[:-1] + b',"messages":['
    for place, message in enumerate(session.messages):
        yield (b"," if place else b"") + orjson.dumps(plain(message))
    yield b"]" if raw is None else b'],"raw":' + orjson.dumps(raw)
    yield b"}\n"


def write_file(path: Path, content: Iterable[bytes], *, force: bool) -> None:
    """Write a file as a whole or not at all; an existing one is replaced only by force. Raises InvalidValue.

    What is no file (a pipe, a terminal, another device) is written to and never replaced; a link stays a link.
    """
    try:
        if path.exists() and not path.is_file():
            write_into(path, content)
        elif path.exists() and not force:
            raise InvalidValue(f"{path} exists; --force overwrites it")
        else:
            replace_file(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise InvalidValue(f"cannot write {path}: {error.strerror or error}") from error


def write_into(path: Path, content: Iterable[bytes]) -> None:
    with suppress(BrokenPipeError), path.open("wb") as device:  # who reads a pipe may have seen enough
        for chunk in content:
            device.write(tame(chunk) if device.isatty() else chunk)


def replace_file(path: Path, content: Iterable[bytes]) -> None:
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:40]}.", delete=False) as file:
            for chunk in content:
                file.write(chunk)
        Path(file.name).chmod(0o666 & ~umask())
        Path(file.name).replace(path)
    finally:
        if "file" in locals():
            Path(file.name).unlink(missing_ok=True)


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def file_names(sessions: Sequence[SessionSummary], form: str) -> list[str]:
    """A name for the file of each session, no two alike: not even on a disk to which `A` and `a` are the same."""
    spellings = Counter(name.lower() for name in {safe_name(one) for one in sessions})
    names = [safe_name(one, exact=spellings[safe_name(one).lower()] > 1) for one in sessions]
    taken = {name.lower() for name in names}
    given: set[str] = set()
    for place, name in enumerate(names):
        if name.lower() in given:  # agents may have one id in two projects
            numbered = (f"{name}-{number}" for number in count(2))
            names[place] = next(one for one in numbered if one.lower() not in taken)
            taken.add(names[place].lower())
        given.add(name.lower())
    return [f"{name}.{ENDINGS[form]}" for name in names]


def safe_name(session: SessionSummary, *, exact: bool = False) -> str:
    """An id as far as file names allow, and a few digits more where that is not all of it, or capitals are to tell."""
    safe = SAFE.sub("_", session.session_id).strip(".")[:LONGEST_NAME]
    if safe != session.session_id or (exact and safe != safe.lower()):
        safe += "-" + blake2b(session.session_id.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{session.agent}-{safe}"


def write_all(
    sessions: Sequence[SessionSummary],
    whole: Callable[[SessionSummary], Session],
    directory: Path,
    form: str,
    *,
    force: bool,
    done: Callable[[int], None],
) -> list[tuple[SessionSummary, str]]:
    """One file a session, and an index.json of what was written; what failed is given back with its reason."""
    directory.mkdir(parents=True, exist_ok=True)
    index = directory / "index.json"
    if index.exists() and not force:
        raise InvalidValue(f"{index} exists; --force overwrites it")
    listed: list[dict[str, Any]] = []
    failed: list[tuple[SessionSummary, str]] = []
    for number, (summary, name) in enumerate(zip(sessions, file_names(sessions, form), strict=True)):
        try:
            session = whole(summary)
            write_file(directory / name, chunks(session, form), force=force)
            listed.append({"file": name, **members(session, without="messages")})
        except InvalidValue:
            raise
        except Exception as error:  # noqa: BLE001 - one session that cannot be read does not cost the others their file
            failed.append((summary, str(error)))
        done(number + 1)
    write_file(index, [orjson.dumps(listed, option=orjson.OPT_INDENT_2)], force=True)
    return failed
