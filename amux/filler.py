"""Filling the catalog on every core: processes that each read a share of the refs into a shard, a catalog of its own.

A process is `python -m amux.filler`; it is told its share as JSON on stdin and writes a line to stdout for every ref it
has read. Nothing is inherited from the program that uses the library: no fork of its threads, no second import of its
main module.
"""

import gc
import os
import selectors
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from amux import readers
from amux.catalog import Catalog
from amux.money import Prices
from amux.readers._base import Host, Reader, SessionRef

STRIDE = 10**9
"""How far apart the message numbers of two shards begin: no store has so many messages."""


def shares(refs: Sequence[SessionRef], count: int) -> list[list[SessionRef]]:
    """The refs dealt out so that every share has about as many bytes."""
    dealt: list[list[SessionRef]] = [[] for _ in range(count)]
    weight = [0] * count
    for ref in sorted(refs, key=lambda ref: -ref.size):
        lightest = weight.index(min(weight))
        dealt[lightest].append(ref)
        weight[lightest] += ref.size
    return dealt


def fill_shards(
    reader: Reader,
    refs: Sequence[SessionRef],
    fingerprints: dict[str, str],
    directory: Path,
    rows: int,
    prices: Prices,
    read: Callable[[int], None],
) -> list[Path]:
    """Read refs into shards below a directory; `read` is told the size of each ref as it is done.

    Raises subprocess.CalledProcessError when a process died: the caller then reads by itself.
    """
    host = reader.host
    shards: list[Path] = []
    running: list[subprocess.Popen[bytes]] = []
    for number, share in enumerate(shares(refs, os.cpu_count() or 1)):
        if not share:
            continue
        shard = directory / f"shard-{number}.db"
        job = {
            "agent": reader.agent,
            "home": str(host.home),
            "env": dict(host.env),
            "platform": host.platform,
            "shard": str(shard),
            "rows": rows + number * STRIDE,
            "refs": [tuple(ref) for ref in share],
            "fingerprints": fingerprints,
            "prices": str(prices.user_file) if prices.user_file else None,
        }
        shards.append(shard)
        running.append(started(job))
    follow(running, read)
    return shards


def started(job: dict[str, Any]) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-m", "amux.filler"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if process.stdin:
        process.stdin.write(orjson.dumps(job))
        process.stdin.close()
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
    with readers.open_reader(job["agent"], host) as reader:
        for ref in [SessionRef(*fields) for fields in job["refs"]]:
            catalog.add(0, reader, ref._replace(files=tuple(ref.files)), job["fingerprints"])
            sys.stdout.write(f"{ref.size}\n")
            sys.stdout.flush()
    catalog.finish()


if __name__ == "__main__":
    try:
        work(orjson.loads(sys.stdin.buffer.read()))
    except (
        sqlite3.Error,
        OSError,
        ValueError,
    ):  # no room, or nobody waits any more: whoever started it reads by itself
        sys.exit(1)
