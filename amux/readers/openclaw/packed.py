"""What openclaw compressed with zstd."""

import sys
from functools import cache
from types import ModuleType

LARGEST_EVENT = 4 * 2**20
LARGEST_ARCHIVE = 64 * 2**20
"""What openclaw itself never exceeds: a blob that claims to hold more is damaged or a bomb."""
MISSING = "it is compressed, and the package backports.zstd is not installed"


@cache
def decoder() -> ModuleType | None:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415 - only newer stores hold compressed events
        else:
            from backports import zstd  # noqa: PLC0415
    except ImportError:
        return None
    return zstd


def unpacked(packed: bytes, limit: int = LARGEST_EVENT) -> bytes | None:
    """What a zstd frame holds, at most so many bytes; None where it is damaged or there is no decoder."""
    zstd = decoder()
    if zstd is None:
        return None
    try:
        found: bytes = zstd.ZstdDecompressor().decompress(packed, max_length=limit)
    except zstd.ZstdError:
        return None
    return found
