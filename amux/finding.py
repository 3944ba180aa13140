"""Search from the words a person typed to hits with snippets."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from amux import snippets
from amux.catalog import Catalog
from amux.errors import InvalidValue, UnreadableSession
from amux.model import Session
from amux.query import Query
from amux.readers import Readers
from amux.readers._base import Reader
from amux.readers._json import bytes_of
from amux.results.hits import SearchHit, Snippet
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


def hits(catalog: Catalog, readers: Readers, asked: Question) -> Hits:
    typed = words(asked.text)
    if not catalog.searchable and typed.groups and not asked.regex:
        return scanned(catalog, readers, asked, [snippets.pattern(group) for group in typed.groups], typed)
    if not asked.regex and typed.groups and not mostly_signs(typed):
        matched, total = found_words(catalog, readers, typed, asked)
        if matched:
            found = Hits(with_snippets(readers, matched, typed))
            found.total = total
            return found
    return literally(catalog, readers, asked)


def mostly_signs(typed: Words) -> bool:
    """Whether the words would lose what they are without their signs: C++ is not every word with a c."""
    return all(sum(map(str.isalnum, term.text)) <= 2 < len(term.text) for term in typed.terms)


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
    wanted = snippets.pattern(typed.terms)
    for one in matched:
        snippet = snippet_of(readers[one.summary.agent], one, wanted) if wanted else None
        yield snippets.hit(one.summary, one.score, one.matches, snippet)


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


def literally(catalog: Catalog, readers: Readers, asked: Question) -> Hits:
    """The sessions whose text holds what was typed as it stands, or matches it as a regular expression."""
    wanted = expression(asked)
    found = scanned(catalog, readers, asked, [wanted] if asked.text.strip() else [], Words(()))
    found.literal = True
    return found


def scanned(
    catalog: Catalog, readers: Readers, asked: Question, groups: Sequence[snippets.Pattern | None], typed: Words
) -> Hits:
    """The sessions in whose own text every group matches and nothing that is excluded does."""
    needed = runs_of(asked) if not typed.groups else []
    excluded = snippets.pattern(typed.excluded)
    found: list[SearchHit] = []
    for one in catalog.searched(asked.query) if groups else ():
        if not may_hold([one.ref.path, *one.ref.files], needed):
            continue
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
    groups: Sequence[snippets.Pattern | None],
    excluded: snippets.Pattern | None,
    role: str | None,
) -> SearchHit | None:
    best: tuple[float, Snippet] | None = None
    seen: set[int] = set()
    matches, weight = 0, 0.0
    for place, part, text in snippets.parts(session):
        if role and part != role:
            continue
        plain = snippets.folded(text)
        if excluded and excluded.search(plain):
            return None
        here = {number for number, wanted in enumerate(groups) if wanted and wanted.search(plain)}
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
            content = bytes_of(path).lower()
        except UnreadableSession:
            continue
        if any(run in content for run in needed):
            return True
    return False
