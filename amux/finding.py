"""Search from the words a person typed to hits with snippets."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from amux import snippets
from amux.catalog import Catalog
from amux.errors import InvalidValue, UnreadableSession
from amux.model import Session
from amux.query import Query
from amux.readers import Readers
from amux.readers._base import Reader
from amux.readers._json import bytes_of
from amux.results.hits import SearchHit, Snippet
from amux.search import WEIGHTS, Words, unaccented, words
from amux.snippets import Wanted
from amux.tables import Matched

LITERAL_HALF = 10.0
"""How much weight of matches makes a score of one half where there are no words to rank by."""
FIRST_LETTERS = 3
"""How many letters of a word that is not ASCII are looked for in the bytes of a file."""
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


def hits(catalog: Catalog, readers: Readers, asked: Question) -> Hits:
    # Bytes of another encoding may have been typed.
    asked = replace(asked, text=asked.text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
    typed = words(asked.text)
    if not typed.groups or asked.regex:
        return literally(catalog, readers, asked)
    if catalog.searchable and not any(term.signed for term in (*typed.terms, *typed.excluded)):
        found = by_words(catalog, readers, asked, typed)
    else:
        groups = [snippets.wanted(group) for group in typed.groups]
        among = by_signs(catalog, asked, typed)
        found = scanned(readers, asked, among, groups, snippets.wanted(typed.excluded))
    return found or literally(catalog, readers, asked)


def by_words(catalog: Catalog, readers: Readers, asked: Question, typed: Words) -> Hits:
    matched, total = found_words(catalog, readers, typed, asked)
    found = Hits(with_snippets(readers, matched, typed))
    found.total = total
    return found


def by_signs(catalog: Catalog, asked: Question, typed: Words) -> list[Matched]:
    """Where something may be found that the index alone cannot tell; an excluded word with signs excludes nothing yet."""
    if not catalog.searchable:
        return catalog.searched(asked.query)
    plain = tuple(term for term in typed.excluded if not term.signed)
    return catalog.matches(typed._replace(excluded=plain), replace(asked.query, limit=0), asked.role)[0]


def found_words(catalog: Catalog, readers: Readers, typed: Words, asked: Question) -> tuple[list[Matched], int]:
    """What the catalog finds; an agent asked for alone that has an index of its own decides which of it."""
    agents, query = asked.query.agents, asked.query
    ids = readers[agents[0]].search(typed) if len(agents) == 1 and not asked.role else None
    if ids is None:
        return catalog.matches(typed, query, asked.role)
    matched, _ = catalog.matches(typed, replace(query, limit=0), None)
    known = {one.summary.session_id for one in matched}
    also = [
        one for one in catalog.searched(query) if one.summary.session_id in ids and one.summary.session_id not in known
    ]
    found = [one for one in matched if one.summary.session_id in ids or one.summary.kind == "memory"] + also
    return found[: query.limit or None], len(found)


def with_snippets(readers: Readers, matched: Sequence[Matched], typed: Words) -> Iterator[SearchHit]:
    wanted = snippets.wanted(typed.terms)
    exact = snippets.wanted([typed.phrase]) if typed.phrase else None
    for one in matched:
        text = text_of(readers[one.summary.agent], one, wanted) if wanted else None
        snippet = snippets.around(text, wanted, one.part, one.timestamp, exact) if text and wanted else None
        yield snippets.hit(one.summary, one.score, one.matches, snippet)


def text_of(reader: Reader, one: Matched, wanted: Wanted) -> str | None:
    """The text of the best match; from the message's own records where the index says where they are."""
    if one.part == "title":
        return one.summary.title
    text = snippets.in_lines(reader, one.ref, one.offset, one.part) if one.offset is not None else None
    if text and wanted.within(text):
        return text
    return snippets.in_session(reader, one.ref, one.summary.session_id, one.message, one.part)


# Without words


def literally(catalog: Catalog, readers: Readers, asked: Question) -> Hits:
    """The sessions whose text holds what was typed as it stands, or matches it as a regular expression."""
    wanted, needed = expression(asked), runs_of(asked)
    among = (
        one
        for one in (catalog.searched(asked.query) if asked.text.strip() else ())
        if one.elsewhere or wanted.within(one.summary.title) or may_hold([one.ref.path, *one.ref.files], needed)
    )
    found = scanned(readers, asked, among, [wanted])
    found.literal = True
    return found


def scanned(
    readers: Readers,
    asked: Question,
    among: Iterable[Matched],
    groups: Sequence[Wanted | None],
    excluded: Wanted | None = None,
) -> Hits:
    """The sessions in whose own text every group matches and nothing that is excluded does."""
    found: list[SearchHit] = []
    for one in among:
        session = snippets.read(readers[one.summary.agent], one.ref, one.summary.session_id)
        if session and (hit := scanned_hit(session, one, groups, excluded, asked.role)):
            found.append(hit)
    if asked.query.sort == "relevance":
        found.sort(key=lambda hit: -hit.relevance_score)
    result = Hits(found[: asked.query.limit] if asked.query.limit else found)
    result.total = len(found)
    return result


def scanned_hit(
    session: Session,
    one: Matched,
    groups: Sequence[Wanted | None],
    excluded: Wanted | None,
    role: str | None,
) -> SearchHit | None:
    best: tuple[float, Snippet] | None = None
    seen: set[int] = set()
    matches, weight = 0, 0.0
    for place, part, text in snippets.parts(session):
        if role and part != role:
            continue
        if excluded and excluded.within(text):
            return None
        here = {number for number, wanted in enumerate(groups) if wanted and wanted.within(text)}
        if not here:
            continue
        seen |= here
        matches += 1
        weight += WEIGHTS[part]
        first = groups[min(here)]
        if first and (best is None or WEIGHTS[part] > best[0]):
            time = session.messages[place].timestamp if place >= 0 else None
            if snippet := snippets.around(text, first, part, time):
                best = WEIGHTS[part], snippet
    if len(seen) < len(groups):
        return None
    return snippets.hit(one.summary, round(weight / (weight + LITERAL_HALF), 4), matches, best[1] if best else None)


def expression(asked: Question) -> Wanted:
    """What is looked for: a text accents aside, or an expression in the text as it stands."""
    if not asked.regex:
        return Wanted(re.compile(re.escape(unaccented(asked.text.strip())), re.IGNORECASE))
    try:
        return Wanted(re.compile(asked.text, re.IGNORECASE), raw=True)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidValue(f"{asked.text!r} is no regular expression: {error}") from error


def runs_of(asked: Question) -> list[bytes]:
    """Bytes of which a file that can hold a match must hold one, lower case; none: any file may.

    A run of ASCII letters and digits stands in JSON as it is; others stand there as they are or in escapes.
    """
    if asked.regex and re.search(r"[|()\[\]{}\\?*]", asked.text):
        return []
    plain = max(re.findall(r"[A-Za-z0-9]+", asked.text), key=len, default="")
    other = max(re.findall(r"[^\W\x00-\x7f]+", "" if asked.regex else asked.text), key=len, default="")
    if len(plain) > len(other):
        return [plain.lower().encode()]
    # The case of what is not ASCII can be any: each of the first letters in both.
    cases = product(*(dict.fromkeys((one.lower(), one.upper())) for one in other[:FIRST_LETTERS]))
    spelled = list(map("".join, cases)) if other else []
    return [run.encode() for run in spelled] + [escaped(run).encode() for run in spelled]


def escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def may_hold(paths: Sequence[str], needed: Sequence[bytes]) -> bool:
    """Whether one of the files may hold one of the byte runs, whatever its case; a database may hold anything."""
    if not needed:
        return True
    for path in paths:
        if not path.endswith(TEXT_FILES):
            return True
        try:
            content = bytes_of(path).lower()
        except UnreadableSession:
            continue
        if any(run in content for run in needed):
            return True
    return False
