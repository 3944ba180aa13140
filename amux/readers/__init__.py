"""The agents amux can read: the modules in this directory, one each."""

import os
from functools import cache
from importlib import import_module

from amux.errors import AgentNotFound
from amux.readers._base import Host, Reader


@cache
def names() -> tuple[str, ...]:
    """The agents, as they are typed on the command line."""
    found = {name.split(".")[0] for name in os.listdir(os.path.dirname(__file__))}
    return tuple(sorted(name.replace("_", "-") for name in found if not name.startswith("_")))


def reader_class(agent: str) -> type[Reader]:
    if agent not in names():
        raise AgentNotFound(agent, names())
    reader: type[Reader] = import_module(f"amux.readers.{agent.replace('-', '_')}").READER
    return reader


def open_reader(agent: str, host: Host) -> Reader:
    """The reader of one agent; only its module is imported. Raises AgentNotFound."""
    return reader_class(agent)(agent, host)
