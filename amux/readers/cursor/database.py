"""Values in Cursor's databases."""

from typing import Any

from amux.readers._json import Record

DECRYPTING = "encryptionkey"
"""How the names of keys end that decrypt what Cursor keeps elsewhere."""


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
