"""zstd, which few stores hold: loaded when one does."""

import sys
from types import ModuleType

MISSING = "it is compressed, and the package backports.zstd is not installed"


def decoder() -> ModuleType | None:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415
        else:
            from backports import zstd  # noqa: PLC0415
    except ImportError:
        return None
    return zstd
