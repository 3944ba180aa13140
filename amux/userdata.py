"""What amux keeps for good, in the user's data directory: readable by nobody else."""

import contextlib
import os
from pathlib import Path


def data_directory() -> Path:
    from platformdirs import user_data_path  # noqa: PLC0415 - as for the cache: nobody else needs it

    return user_data_path("amux", appauthor=False)


def private(directory: Path) -> Path:
    """The directory, made where it was not there yet, open to the user alone."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # another's file system may know no modes
        os.chmod(directory, 0o700)
    return directory
