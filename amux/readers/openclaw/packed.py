"""What openclaw compressed with zstd."""

from amux.readers import _zstd

LARGEST_EVENT = 4 * 2**20
LARGEST_ARCHIVE = 64 * 2**20
"""What openclaw itself never exceeds: a blob that claims to hold more is damaged or a bomb."""


def unpacked(packed: bytes, limit: int = LARGEST_EVENT) -> bytes | None:
    """What a zstd frame holds, at most so many bytes; None where it is damaged or there is no decoder."""
    zstd = _zstd.decoder()
    if zstd is None:
        return None
    try:
        found: bytes = zstd.ZstdDecompressor().decompress(packed, max_length=limit)
    except zstd.ZstdError:
        return None
    return found
