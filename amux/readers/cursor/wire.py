"""Protocol Buffers without their schema: the fields of one message, as far as the bytes make sense."""

from collections.abc import Iterator

VARINT, EIGHT_BYTES, DELIMITED, FOUR_BYTES = 0, 1, 2, 5
FIXED = {EIGHT_BYTES: 8, FOUR_BYTES: 4}
LONGEST_VARINT = 10
ID_BYTES = 32
MOST_FIELDS = 1_000_000
"""No message has more: what seems to is something else, and may be huge."""


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The number and the bytes of each length-delimited field, in order; it ends where the bytes are no message."""
    place = 0
    for _ in range(MOST_FIELDS):
        if place >= len(data):
            return
        tag, place = varint(data, place)
        kind = tag & 7
        if kind == VARINT:
            _, place = varint(data, place)
        elif kind == DELIMITED:
            length, place = varint(data, place)
            if length > len(data) - place:
                return
            yield tag >> 3, data[place : place + length]
            place += length
        elif kind in FIXED:
            place += FIXED[kind]
        else:
            return


def varint(data: bytes, place: int) -> tuple[int, int]:
    """A number and the place after it; where there is none, a place after the end."""
    value = 0
    for number, byte in enumerate(data[place : place + LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value, place + number + 1
    return 0, len(data) + 1


def text(data: bytes, number: int) -> str:
    """The first field of that number as text; empty when there is none."""
    return next((value.decode("utf-8", "replace") for field, value in fields(data) if field == number), "")


def ids(data: bytes, number: int) -> list[str]:
    """The fields of that number that are ids of blobs, as the store spells them."""
    return [value.hex() for field, value in fields(data) if field == number and len(value) == ID_BYTES]
