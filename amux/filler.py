"""Filling the catalog on every core: processes that each read a share of the refs into a shard, a catalog of its own.

A process is `python -m amux.filler`; it is told its share as JSON on stdin and writes a line to stdout for every ref it
has read. Nothing is inherited from the program that uses the library: no fork of its threads, no second import of its
main module.
"""

import gc
import json
import selectors
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from amux import readers
from amux.catalog import Catalog, Store, Unread
from amux.money import Prices
from amux.readers._base import Host, SessionRef

STRIDE = 10**9
"""How far apart the message numbers of two shards begin: no store has so many messages."""


def shares(unread: Sequence[Unread], count: int) -> list[list[Unread]]:
    """The refs dealt out so that every share has about as many bytes of each store."""
    dealt: list[list[Unread]] = [[] for _ in range(count)]
    weight = [0] * count
    for one in sorted(unread, key=lambda one: (one.store.scope, -one.ref.size)):
        lightest = weight.index(min(weight))
        dealt[lightest].append(one)
        weight[lightest] += one.ref.size
    return [share for share in dealt if share]


def fill_shards(
    unread: Sequence[Unread], count: int, directory: Path, rows: int, prices: Prices, read: Callable[[int], None]
) -> list[Path]:
    """Read refs into so many shards below a directory; `read` is told the size of each ref as it is done.

    Raises subprocess.CalledProcessError when a process died: the caller then reads by itself.
    """
    shards: list[Path] = []
    running: list[subprocess.Popen[bytes]] = []
    for number, share in enumerate(shares(unread, count)):
        shard = directory / f"shard_{number}.db"
        host = share[0].store.reader.host
        job = {
            "home": str(host.home),
            "env": dict(host.env),
            "platform": host.platform,
            "shard": str(shard),
            "rows": rows + number * STRIDE,
            "stores": [parcel(store, refs) for store, refs in groupby(share, attrgetter("store"))],
            "prices": str(prices.user_file) if prices.user_file else None,
        }
        shards.append(shard)
        running.append(started(job))
    follow(running, read)
    return shards


def parcel(store: Store, unread: Iterable[Unread]) -> dict[str, Any]:
    """What a process is told of a store: the refs it is to read, and all there are."""
    return {
        "agent": store.reader.agent,
        "scope": store.scope,
        "refs": [tuple(ref) for ref in store.refs.values()],
        "read": [ref.key for _, ref in unread],
    }


def started(job: dict[str, Any]) -> "subprocess.Popen[bytes]":
    # -P: not from the current directory, where somebody else's orjson.py may lie.
    command = [sys.executable, "-P", "-m", "amux.filler"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if process.stdin:
        with suppress(BrokenPipeError), process.stdin:  # it may have died already, as whoever follows it will see
            process.stdin.write(json.dumps(job).encode())
    return process


def follow(running: Sequence["subprocess.Popen[bytes]"], read: Callable[[int], None]) -> None:
    waiting = selectors.DefaultSelector()
    for process in running:
        if process.stdout:
            waiting.register(process.stdout, selectors.EVENT_READ, process)
    try:
        while waiting.get_map():
            for ready, _ in waiting.select():
                line = ready.fileobj.readline()  # type: ignore[union-attr]
                if line:
                    read(int(line))
                else:
                    waiting.unregister(ready.fileobj)
        for process in running:
            if process.wait():
                raise subprocess.CalledProcessError(process.returncode, "amux.filler")
    finally:
        for process in running:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


def work(job: dict[str, Any]) -> None:
    gc.disable()  # sessions are read and dropped one by one and hold no cycles
    host = Host(Path(job["home"]), job["env"], job["platform"])
    prices = Prices(Path(job["prices"]) if job["prices"] else None)
    catalog = Catalog.shard(Path(job["shard"]), job["rows"], prices)
    for given in job["stores"]:
        refs = [SessionRef(*fields)._replace(files=tuple(fields[4])) for fields in given["refs"]]
        with readers.open_reader(given["agent"], host) as reader:
            store = Store(given["scope"], reader, None, {ref.key: ref for ref in refs})
            for key in given["read"]:
                catalog.add(store, store.refs[key])
                sys.stdout.write(f"{store.refs[key].size}\n")
                sys.stdout.flush()
    catalog.finish()


if __name__ == "__main__":
    try:
        work(json.loads(sys.stdin.buffer.read()))
    except (
        sqlite3.Error,
        OSError,
        ValueError,
    ):  # no room, or nobody waits any more: whoever started it reads by itself
        sys.exit(1)
