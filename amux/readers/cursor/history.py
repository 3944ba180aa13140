"""The active branch of a CLI session, with what summaries took out of it.

A summary takes the place of what it sums up in field 1 of a root, while field 8 keeps every turn, though only its texts. The
messages themselves are still in the last root before the summary, unless that is gone.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from amux.model import Message
from amux.readers._json import Record
from amux.readers.cursor import conversation
from amux.readers.cursor.blobs import Root, Store, Turn, mark


def active(store: Store, root: Root) -> Iterator[Message]:
    """The messages of the latest root, and before them what summaries took out of it."""
    turns = store.turns(root)
    prompts = [mark(turn.prompt) for turn in turns]
    kept = [root]
    while (first := beginning(store, kept[0], prompts)) and (older := before(store, first, prompts)):
        kept.insert(0, older)
    recent = list(conversation.messages(stretches(store, kept)))
    yield from retold(turns[:first], recent)
    if len(kept) == 1 and not any(message.event for message in recent) and (text := store.summary(root)):
        yield Message("system", text, event="compaction")
    yield from recent


def beginning(store: Store, root: Root, prompts: Sequence[str]) -> int:
    """The turn with whose prompt the messages of a root begin; 0 also where they do not fit the turns."""
    own = store.prompts(root)
    if own and not store.is_summed_up(root) and starts(prompts, own):
        return 0
    return next((place for place in range(len(prompts), 0, -1) if starts(prompts[place:], own)), 0)


def starts(prompts: Sequence[str], own: Sequence[str]) -> bool:
    return list(prompts[: len(own)]) == list(own)


def before(store: Store, first: int, prompts: Sequence[str]) -> Root | None:
    """The last root that has the turn before that one, and none that was rewound."""
    for older in store.roots():
        own = store.prompts(older)
        begins = beginning(store, older, prompts) if own else first
        if begins < first and starts(prompts[begins:], own):
            return older
    return None


def stretches(store: Store, roots: Iterable[Root]) -> Iterator[Record]:
    """The messages of the roots one after the other, without those that an earlier one has."""
    seen: set[str] = set()
    for root in roots:
        yield from store.records(id for id in root.messages if id not in seen)
        seen.update(root.messages)


def retold(turns: Iterable[Turn], recent: Iterable[Message]) -> Iterator[Message]:
    """Turns by their own texts, but for the end of the last one, where that stands among the messages that follow."""
    shown = {message.content for message in takewhile(lambda message: message.role != "user", recent)}
    for turn in turns:
        yield Message("user", turn.prompt)
        yield from (step for step in turn.steps if not step.content or step.content not in shown)
