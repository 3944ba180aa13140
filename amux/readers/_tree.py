"""The active branch of records linked by parent ids."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

Id = TypeVar("Id", bound=Hashable)


def branch(parents: Mapping[Id, Id | None], leaf: Id | None) -> list[Id]:
    """The ids from the root down to the leaf; a missing parent ends the walk, and so does a loop."""
    path: dict[Id, None] = {}
    while leaf is not None and leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(reversed(path))
