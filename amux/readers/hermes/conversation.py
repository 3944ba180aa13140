"""One conversation of a database as a session: its rows' messages once, their charges, and what it is to others."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain as joined

from amux.model import Session
from amux.readers import _base
from amux.readers._json import Record, text_at, time_at
from amux.readers.hermes import usage
from amux.readers.hermes.store import Place, Store, number
from amux.readers.hermes.transcript import Line, lines, messages

COPYING = 1.0
"""Seconds after its start in which a branch certainly only copied."""


def read(agent: str, store: Store, newest: str) -> Sequence[Session]:
    """The conversation listed under an id; nothing where nobody said anything. Raises UnreadableSession."""
    chain = store.chain(newest)
    records = store.messages(chain)
    said = lines(records)
    place = settled(store, chain[0], said)
    rows = [store.sessions[id] for id in chain]
    charges = [charge for row in rows for charge in charged(store, row, records)]
    found = messages(said)
    if not found and not charges:
        return []
    parent = store.parent(chain[0])
    related = parent is not None and bool(place.forked_from or place.parent_id)
    cwd = store.recorded_cwd(chain) or store.prompt_cwd(chain) or (store.borrowed_cwd(chain[0]) if related else None)
    asks = parent is not None and (related and not cwd or place.unsure or place.forked_from is not None)
    return [
        _base.session(
            agent,
            newest,
            found,
            path=store.path,
            title=latest_text(rows, "title"),
            charges=charges,
            created_at=time_at(rows[0], "started_at"),
            updated_at=last_time(rows, records),
            model=latest_text(rows, "model"),
            kind=place.kind,
            parent_id=place.parent_id,
            forked_from=place.forked_from,
            cwd=cwd or (store.prompt_cwd(store.chains[parent]) if parent and related else None),
            git_branch=latest_text(rows, "git_branch"),
            archived=bool(rows[-1].get("archived") or rows[-1].get("hidden")),
            channel=latest_text(rows, "source"),
            began=time_at(rows[0], "started_at"),
            based_on=(store.prefix + parent,) if parent and asks else (),
        )
    ]
