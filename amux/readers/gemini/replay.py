"""Gemini CLI's log replayed: which messages are on the branch, and everything that was ever written of each.

Four shapes of line, told apart in this order: `$rewindTo` drops a message and all after it; a record with an `id` is a
message, and the same id again replaces it in its place; `$set` patches the metadata, and `$set.messages` replaces the
whole list; anything else is a header, which may stand in the middle of a file.

The program loses things that way, and a session must not: a snapshot after a resume within the minute of the start
repeats messages without their tokens, tool calls and times; compression leaves out what it summed up and writes the
rest again under new ids; masking writes every message again, its tool output cut. So a snapshot never drops a message
here, and a message keeps what its later copies lack. Only a rewind takes messages off the branch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from amux.readers._json import Record, list_at, text_at, time_at
from amux.readers.gemini.files import listed
from amux.readers.gemini.record import is_import, likeness, paid, spoken


@dataclass(slots=True)
class Log:
    """Every message by id, in the order they came; the ids of those not rewound; of those the program itself still has."""

    records: dict[str, Record] = field(default_factory=dict)
    branch: dict[str, None] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    copies: dict[str, str] = field(default_factory=dict)
    """The ids under which messages were written again, and the ids they had first."""
    summaries: set[str] = field(default_factory=set)
    imported: str | None = None
    """The id of the record that says where an imported session came from."""
    title: str | None = None
    project_hash: str | None = None
    directories: list[str] = field(default_factory=list)
    started: list[datetime] = field(default_factory=list)
    updated: list[datetime] = field(default_factory=list)

    def add(self, record: Record) -> None:
        match record:
            case {"$rewindTo": str(id)}:
                self.rewind(id)
            case {"id": str()}:
                self.put(record)
            case {"$set": dict(patch)}:
                self.note(patch)
                if isinstance(patch.get("messages"), list):
                    self.replace([message for message in listed(record) if text_at(message, "id")])
            case _:
                self.note(record)
                for message in listed(record):
                    self.put(message)

    def note(self, facts: Record) -> None:
        """Metadata: of titles the last counts, of times the earliest start (a resume writes a later one)."""
        self.title = text_at(facts, "summary") or self.title
        self.project_hash = self.project_hash or text_at(facts, "projectHash")
        self.directories = [one for one in list_at(facts, "directories") if isinstance(one, str)] or self.directories
        self.started += [time] if (time := time_at(facts, "startTime")) else []
        self.updated += [time] if (time := time_at(facts, "lastUpdated")) else []

    def put(self, record: Record) -> None:
        id = self.keep(record)
        if id:
            self.branch.setdefault(id)
            self.live.add(id)

    def keep(self, record: Record) -> str | None:
        """Remember what a record says; the id under which its message is known."""
        id = text_at(record, "id")
        if id is None or id in self.copies:
            return self.copies[id] if id else None
        self.records[id] = merged(self.records[id], record) if id in self.records else record
        self.updated += [time] if (time := time_at(record, "timestamp")) else []
        if is_import(record):
            self.imported = id
        return id

    def copied(self, record: Record) -> bool:
        """Whether a message came with the import: it is older."""
        imported = time_at(self.records, self.imported, "timestamp") if self.imported else None
        said = time_at(record, "timestamp")
        return bool(imported and said and said <= imported and record.get("id") != self.imported)

    def rewind(self, id: str) -> None:
        """Back to before a message; an unknown one drops everything, as the program has it."""
        id = self.copies.get(id, id)
        kept = list(self.branch)
        kept = kept[: kept.index(id)] if id in self.branch else []
        self.branch = dict.fromkeys(kept)
        self.live.intersection_update(kept)

    def replace(self, snapshot: Sequence[Record]) -> None:
        """A snapshot: what it left out stays where it was, what is new in it comes after that."""
        given = [self.copies.get(id, id) for one in snapshot if (id := text_at(one, "id"))]
        unknown = {id for id in given if id not in self.branch}
        dropped = self.live.difference(given)
        left_out = [id for id in self.branch if id in dropped and spoken(self.records[id])]
        fresh = set(given) if self.rewritten(given) else unknown
        self.forget_copies(pairs([one for one in snapshot if one["id"] in fresh], left_out, self.records))
        wanted = dict.fromkeys(id for record in snapshot if (id := self.keep(record)))
        if not wanted.keys() >= set(left_out):
            self.mark_summary(id for id in wanted if id in unknown)
        self.branch = dict.fromkeys(woven(list(self.branch), list(wanted)))
        self.live = set(wanted)

    def rewritten(self, given: Sequence[str]) -> bool:
        """Whether a snapshot lists the lines written just before it: masking writes the whole history again as new lines.

        None of them has tokens: the calls were paid under the first ids.
        """
        return list(self.branch)[-len(given) :] == list(given) and not any(paid(self.records[id]) for id in given)

    def forget_copies(self, copies: dict[str, str]) -> None:
        self.copies = {id: copies.get(first, first) for id, first in self.copies.items()} | copies
        for id in copies:
            self.branch.pop(id, None)
            self.records.pop(id, None)

    def mark_summary(self, unknown: Iterable[str]) -> None:
        """Nothing tells a compression's summary but its place: the first text that a snapshot brings which drops others."""
        texts = (id for id in unknown if self.records[id].get("type") == "user" and spoken(self.records[id]))
        self.summaries.update(list(texts)[:1])


def merged(old: Record, new: Record) -> Record:
    """The newer record of a message with what it lacks of the older; its type stays, and when it was first written."""
    lost = {name: value for name, value in old.items() if says_nothing(new.get(name), value)}
    first = {name: old[name] for name in ("type", "timestamp") if text_at(old, name)}
    record = {**new, **lost, **first}
    if old.get("toolCalls") and new.get("toolCalls"):
        record["toolCalls"] = merged_calls(list_at(old, "toolCalls"), list_at(new, "toolCalls"))
    return record


def says_nothing(new: Any, old: Any) -> bool:
    """Whether a value leaves the older one as it is: nothing, or a number where a text or a list was, which is damage."""
    return new in (None, "", []) or (isinstance(new, int | float) and not isinstance(old, int | float))


def merged_calls(old: list[Any], new: list[Any]) -> list[Any]:
    """The newer calls with their first results: later ones are masked, or hold those of parallel calls as well."""
    results = {id: call["result"] for call in old if (id := text_at(call, "id")) and call.get("result")}
    return [
        {**call, "result": results[id]} if (id := text_at(call, "id")) in results else call
        for call in new
        if isinstance(call, dict)
    ]


def pairs(fresh: Sequence[Record], left_out: Sequence[str], records: dict[str, Record]) -> dict[str, str]:
    """Which of the new records of a snapshot repeat which of those it left out; the last ones first, in order."""
    places: dict[Any, list[int]] = {}
    for place, id in enumerate(left_out):
        places.setdefault(likeness(records[id]), []).append(place)
    found: dict[str, str] = {}
    end = len(left_out)
    for record in reversed(fresh):
        if paid(record) or not spoken(record):
            continue
        if before := [place for place in places.get(likeness(record), ()) if place < end]:
            end = before[-1]
            found[record["id"]] = left_out[end]
    return found


def woven(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Two orders in one: what only the old one has goes before what is new at the same place."""
    place = {id: number for number, id in enumerate(old)}
    wanted = set(new)
    result: list[str] = []
    waiting: list[str] = []
    done = 0
    for id in new:
        if id not in place:
            waiting.append(id)
            continue
        result += [one for one in old[done : place[id]] if one not in wanted]
        result += [*waiting, id]
        done, waiting = max(done, place[id]), []
    return [*result, *(one for one in old[done:] if one not in wanted), *waiting]
