"""The agents amux can read: the modules in this directory, one each."""

import os
from dataclasses import replace
from functools import cache
from importlib import import_module

from amux.errors import AgentNotFound
from amux.readers._base import Host, Reader, Watched


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


class Readers:
    """The readers of a host, each opened once: what one has listed or unpacked serves until it is closed."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.opened: dict[str, Reader] = {}

    def __getitem__(self, agent: str) -> Reader:
        if agent not in self.opened:
            self.opened[agent] = open_reader(agent, replace(self.host, env=Watched(self.host.env)))
        return self.opened[agent]

    def close(self) -> None:
        for reader in self.opened.values():
            reader.opened.close()
        self.opened.clear()
