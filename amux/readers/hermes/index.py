"""Asking hermes' own full-text index.

`messages_fts` holds each message's content, its tool's name and its tool calls, as they are stored; it has existed in two
layouts, and in neither does it hold the reasoning. A word after an escaped line break in stored JSON is glued to the `n` of
that escape, and since schema 23 only the first 8192 characters of a tool's output are in it. `messages_fts_trigram` finds
parts of words, and so scripts without blanks; since schema 23 without tool output, cron jobs and sub-agents. So the index
gives candidates, `like` those in what it cannot know, and each is looked at as amux reads it. Never asked is `messages_fts_cjk`,
whose tokenizer no other program has.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from amux.model import Session
from amux.readers import _base
from amux.readers._sqlite import columns
from amux.readers.hermes.conversation import last_text
from amux.readers.hermes.database import MESSAGE
from amux.readers.hermes.store import Store
from amux.readers.hermes.transcript import lines, messages
from amux.search import ALONE, TOKENIZER, Term, Words, index_rows, spaced

RUN = re.compile(f"[{ALONE}]+")
TOKEN = re.compile(r"[^\W_]+")
ASCII = re.compile(r"[A-Za-z0-9]+")
TRIGRAM = 3
GAPS = "select 1 from state_meta where key in ('fts_rebuild_high_water', 'fts_rebuild_progress', 'fts_stale')"
STORED = ("content", "tool_name", "tool_calls")
UNSEEN = ("reasoning", "reasoning_content")
"""The columns that the index holds, and those that it does not."""


class Probe:
    """Whether a text holds what was asked for, by the very rules of amux' own index."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.db.execute(f'create virtual table probe using fts5 (text, tokenize="{TOKENIZER}")')

    def close(self) -> None:
        self.db.close()

    def places(self, texts: Iterable[str | bytes], term: Term) -> list[int]:
        """The positions of the texts that hold a term."""
        self.db.execute("delete from probe")
        self.db.executemany("insert into probe (rowid, text) values (?, ?)", enumerate(texts))
        return [place for (place,) in self.db.execute("select rowid from probe where probe match ?", (term.question,))]

    def holds(self, session: Session, term: Term) -> bool:
        return bool(self.places((text for _, text in index_rows(0, session)), term))


def chosen(words: Words, holders: Callable[[Term], set[str]]) -> set[str]:
    """The ids in which every group occurs by one of its terms and no excluded term does."""
    groups = [set[str]().union(*map(holders, group)) for group in words.groups]
    return set.intersection(*groups).difference(*map(holders, words.excluded)) if groups else set()


class Index:
    """The index of one database. Its methods raise sqlite3.Error where it cannot be asked."""

    def __init__(self, store: Store, probe: Probe) -> None:
        self.store = store
        self.probe = probe

    @property
    def usable(self) -> bool:
        """Whether there is an index, and no gap in it that hermes has noted."""
        gaps = columns(self.store.db, "state_meta") and self.store.db.execute(GAPS).fetchone()
        return bool(columns(self.store.db, "messages_fts")) and not gaps

    @cached_property
    def titles(self) -> dict[str, str]:
        """What conversations were named, by the ids they are listed under."""
        rows = self.store.sessions
        named = {newest: last_text([rows[id] for id in chain], "title") for newest, chain in self.store.chains.items()}
        return {newest: spaced(_base.title_from(title)) for newest, title in named.items() if title}

    def holders(self, term: Term) -> set[str]:
        """The conversations, by the ids they are listed under, that hold a term."""
        named = list(self.titles)
        found = {named[place] for place in self.probe.places(self.titles.values(), term)}
        for row, numbers in self.candidates(term).items():
            listed = self.store.listed.get(row)
            if listed and listed not in found and any(self.holds(number, term) for number in numbers):
                found.add(listed)
        return found

    def holds(self, number: int, term: Term) -> bool:
        """Whether a message holds a term in what is shown of it."""
        said = messages(lines(self.store.select("messages", MESSAGE, "where id = ?", number)))
        return self.probe.holds(_base.session("", "", said, path=""), term)

    def candidates(self, term: Term) -> dict[str, set[int]]:
        """Messages that may hold a term, by session; undone ones are none."""
        seen = "(active = 1 or active is null or compacted = 1)"
        if not self.store.columns["messages"] >= {"active", "compacted"}:
            seen = "(active = 1 or active is null)" if "active" in self.store.columns["messages"] else "1"
        found: dict[str, set[int]] = {}
        for condition, values in self.conditions(term):
            asked = f"select session_id, id from messages where ({condition}) and {seen}"
            for session, number in self.store.db.execute(asked, values):
                found.setdefault(str(session), set()).add(number)
        return found

    def conditions(self, term: Term) -> Iterator[tuple[str, list[str]]]:
        if run := max(RUN.findall(term.text), key=len, default=""):
            yield from self.run_conditions(run)
        elif TOKEN.search(term.text):
            yield f"id in ({matching('messages_fts')})", [quoted(term.text) + ("" if term.phrase else "*")]
            yield self.like((*UNSEEN, "tool_calls"), forms(term.text))
            condition, values = self.like(("content",), forms(term.text))
            yield f"role = 'tool' and ({condition})", values

    def run_conditions(self, run: str) -> Iterator[tuple[str, list[str]]]:
        """For characters of a script without blanks: those that follow each other are one long word of `messages_fts`."""
        layout = columns(self.store.db, "messages_fts_trigram") if len(run) >= TRIGRAM else frozenset()
        if layout:
            yield f"id in ({matching('messages_fts_trigram')})", [quoted(run)]
        yield self.like(UNSEEN if layout == {"content"} else (*UNSEEN, *STORED), [run])
        yield self.like(("content", "tool_calls"), [escaped(run)])

    def like(self, names: Iterable[str], parts: Sequence[str]) -> tuple[str, list[str]]:
        """The condition that one of the parts stands in one of the columns; `like` sees nothing after a NUL byte."""
        known = [name for name in names if name in self.store.columns["messages"]]
        conditions = [f"{name} like ?" for name in known for _ in parts]
        conditions += ["(content <> '' and length(content) = 0)"] if "content" in known else []
        return " or ".join(conditions) or "0", [f"%{part}%" for _ in known for part in parts]


def matching(table: str) -> str:
    return f"select rowid from {table} where {table} match ?"


def quoted(text: str) -> str:
    """As one phrase, so that nothing a person types is an operator."""
    return '"' + text.replace('"', " ").replace("\0", " ") + '"'


def forms(text: str) -> list[str]:
    """What a text that holds the words surely has in it: of a word, the letters that are neither folded nor escaped."""
    plain = max(ASCII.findall(text), key=len, default="")
    if len(plain) > 1:
        return [plain]
    word = max(TOKEN.findall(text), key=len)
    spelled = dict.fromkeys((word, word.lower(), word.upper(), word.capitalize()))
    return list(dict.fromkeys((*spelled, *map(escaped, spelled))))


def escaped(text: str) -> str:
    """The text as JSON that holds only ASCII has it; JSON within JSON has more backslashes."""
    return json.dumps(text)[1:-1].replace("\\", "%")
