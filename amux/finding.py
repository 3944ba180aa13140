"""Search from the words a person typed to hits with snippets."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from amux import readers, snippets
from amux.catalog import Catalog
from amux.errors import InvalidValue
from amux.query import Query
from amux.readers._base import Host, Reader
from amux.results import SearchHit, Snippet
from amux.search import WEIGHTS, Words, words
from amux.tables import Matched

LITERAL_HALF = 10.0
"""How much weight of matches makes a score of one half where there are no words to rank by."""
TEXT_FILES = (".jsonl", ".json", ".md", ".txt")


class Hits(list[SearchHit]):
    """What search found; `literal` says that no word matched and the text was looked for as it is."""

    literal = False
    total = 0
    """How many sessions there are without the limit."""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    query: Query
    role: str | None = None
    regex: bool = False


def hits(catalog: Catalog, host: Host, asked: Question) -> Hits:
    typed = words(asked.text)
    if not asked.regex and typed.groups and not mostly_signs(typed):
        matched = own_index(catalog, host, typed, asked)
        if matched:
            found = Hits(with_snippets(host, shown(matched, asked.query), typed))
            found.total = len(matched)
            return found
    return literally(catalog, host, asked)


def mostly_signs(typed: Words) -> bool:
    """Whether the words would lose what they are without their signs: C++ is not every word with a c."""
    return all(sum(map(str.isalnum, term.text)) <= 2 < len(term.text) for term in typed.terms)


def shown(matched: Sequence[Matched], query: Query) -> Sequence[Matched]:
    return matched[: query.limit] if query.limit else matched


def own_index(catalog: Catalog, host: Host, typed: Words, asked: Question) -> list[Matched]:
    """What the catalog finds; an agent asked for alone that has an index of its own decides which of it."""
    matched = catalog.matches(typed, asked.query, asked.role)
    if len(asked.query.agents) != 1 or asked.role:
        return matched
    with readers.open_reader(asked.query.agents[0], host) as reader:
        ids = reader.search(typed)
    if ids is None:
        return matched
    known = {one.summary.session_id: one for one in matched}
    also = [
        one
        for one in catalog.searched(asked.query)
        if one.summary.session_id in ids and one.summary.session_id not in known
    ]
    return [one for one in matched if one.summary.session_id in ids or one.summary.kind == "memory"] + also


def with_snippets(host: Host, matched: Sequence[Matched], typed: Words) -> Iterator[SearchHit]:
    wanted = snippets.pattern(typed.terms)
    opened: dict[str, Reader] = {}
    try:
        for one in matched:
            agent = one.summary.agent
            if agent not in opened:
                opened[agent] = readers.open_reader(agent, host)
            snippet = snippet_of(opened[agent], one, wanted) if wanted else None
            yield snippets.hit(one.summary, one.score, one.matches, snippet)
    finally:
        for reader in opened.values():
            reader.opened.close()


def snippet_of(reader: Reader, one: Matched, wanted: snippets.Pattern) -> Snippet | None:
    """The line around the best match; from the message's own records where the index says where they are."""
    text: str | None
    if one.part == "title":
        text = one.summary.title
    else:
        text = snippets.in_lines(one.ref.path, one.offset, wanted) if one.offset is not None else None
        text = text or snippets.in_session(reader, one.ref, one.summary.session_id, one.message, one.part)
    return snippets.around(text, wanted, one.part, one.timestamp) if text else None


# Without words


def literally(catalog: Catalog, host: Host, asked: Question) -> Hits:
    """The sessions whose text holds what was typed as it stands, or matches it as a regular expression."""
    wanted = expression(asked)
    needed = runs_of(asked)
    found: list[SearchHit] = []
    opened: dict[str, Reader] = {}
    for one in catalog.searched(asked.query) if asked.text.strip() else ():
        if not may_hold([one.ref.path, *one.ref.files], needed):
            continue
        agent = one.summary.agent
        if agent not in opened:
            opened[agent] = readers.open_reader(agent, host)
        if hit := literal_hit(opened[agent], one, wanted, asked.role):
            found.append(hit)
    for reader in opened.values():
        reader.opened.close()
    if asked.query.sort == "relevance":
        found.sort(key=lambda hit: -hit.relevance_score)
    result = Hits(found[: asked.query.limit] if asked.query.limit else found)
    result.literal = True
    result.total = len(found)
    return result


def literal_hit(reader: Reader, one: Matched, wanted: snippets.Pattern, role: str | None) -> SearchHit | None:
    session = snippets.read(reader, one.ref, one.summary.session_id)
    best: tuple[float, Snippet] | None = None
    matches, weight = 0, 0.0
    for place, part, text in snippets.parts(session) if session else ():
        if (role and part != role) or not wanted.search(text):
            continue
        matches += 1
        weight += WEIGHTS[part]
        if best is None or WEIGHTS[part] > best[0]:
            time = session.messages[place].timestamp if session and place >= 0 else None
            if snippet := snippets.around(text, wanted, part, time):
                best = WEIGHTS[part], snippet
    if not matches:
        return None
    return snippets.hit(one.summary, round(weight / (weight + LITERAL_HALF), 4), matches, best[1] if best else None)


def expression(asked: Question) -> snippets.Pattern:
    try:
        return re.compile(asked.text if asked.regex else re.escape(asked.text.strip()), re.IGNORECASE)
    except re.error as error:
        raise InvalidValue(f"{asked.text!r} is no regular expression: {error}") from error


def runs_of(asked: Question) -> list[bytes]:
    """Bytes of which a file that can hold a match must hold one, lower case; none: any file may.

    The longest run of letters and digits stands in JSON as it is, or in escapes when it is not ASCII.
    """
    if asked.regex:
        plain = not re.search(r"[|()\[\]{}\\?*]", asked.text)
        run = max(re.findall(r"[A-Za-z0-9]+", asked.text) or [""], key=len) if plain else ""
        return [run.lower().encode()] if run else []
    run = max(re.findall(r"[^\W_]+", asked.text) or [asked.text.strip()], key=len)
    if run.isascii():
        return [run.lower().encode()] if run.isalnum() else []
    units = run.lower().encode("utf-16-be", "surrogatepass").hex()
    escapes = "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
    # Lower case of what is not ASCII differs from writer to writer: bytes.lower() leaves it alone, so both are tried.
    return [run.encode(), run.lower().encode(), run.upper().encode(), escapes.encode()]


def may_hold(paths: Sequence[str], needed: Sequence[bytes]) -> bool:
    """Whether one of the files may hold one of the byte runs, whatever its case; a database may hold anything."""
    if not needed:
        return True
    for path in paths:
        if not path.endswith(TEXT_FILES):
            return True
        try:
            with open(path, "rb") as file:
                content = file.read().lower()
        except OSError:
            continue
        if any(run in content for run in needed):
            return True
    return False
