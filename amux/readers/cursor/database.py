"""A database of Cursor's, read as far as damage lets it be."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amux.errors import UnreadableSession
from amux.readers._json import Record
from amux.readers._sqlite import rows

ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises: the message of an error may quote bytes that are no text."""
DECRYPTING = "encryptionkey"
"""How the names of keys end that decrypt what Cursor keeps elsewhere."""


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Whatever is wrong with a database inside the block becomes UnreadableSession."""
    try:
        yield
    except ERRORS as error:
        raise UnreadableSession(path, str(error)) from error


class Database:
    """`damage` is what kept some rows from being read."""

    def __init__(self, path: str, db: sqlite3.Connection) -> None:
        self.path = path
        self.db = db
        self.damage: Exception | None = None

    def select(self, query: str, *values: str | int) -> Iterator[tuple[Any, ...]]:
        """The rows that stand before any damage."""
        try:
            yield from self.db.execute(query, values)
        except ERRORS as error:
            self.damage = error

    def rows(self, query: str, *values: str | int) -> Iterator[Record]:
        """As select(), each row by the names of its columns."""
        try:
            yield from rows(self.db, query, values)
        except ERRORS as error:
            self.damage = error

    def check(self) -> None:
        """Raises UnreadableSession when something could not be read."""
        if self.damage:
            raise UnreadableSession(self.path, str(self.damage)) from self.damage


def as_bytes(value: Any) -> bytes:
    """A column, which may be text where bytes are meant."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return value if isinstance(value, bytes) else b""


def plain(row: Record) -> Record:
    """A row as JSON can hold it."""
    return {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value for name, value in row.items()
    }


def without_secrets(record: Record) -> Record:
    """A record that may be shown."""
    return {name: value for name, value in record.items() if not name.lower().endswith(DECRYPTING)}
