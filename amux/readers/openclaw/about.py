"""What a store says of a session besides its transcript."""

from dataclasses import dataclass

from amux.readers._json import Record, text_at
from amux.readers.openclaw import names

TITLES = ("label", "displayName", "autoLabel", "subject", "room")
CHANNELS = (
    ("channel",),
    ("lastChannel",),
    ("delivery", "context", "channel"),
    ("deliveryContext", "channel"),
    ("origin", "provider"),
)


@dataclass(frozen=True, slots=True)
class About:
    """`key` is None for a session that its store does not name; `earlier` is the one it says this one came after."""

    key: str | None = None
    title: str | None = None
    channel: str | None = None
    archived: bool = False
    subagent: bool = False
    parent_id: str | None = None
    earlier: str | None = None


def title(entry: Record) -> str | None:
    """The name the user gave, then the one openclaw made, then that of the group it talks to."""
    return next((text for name in TITLES if (text := text_at(entry, name))), None)


def channel(entry: Record, key: str | None) -> str | None:
    """Where the session is talked to; None for one at the command line."""
    recorded = next((text for path in CHANNELS if (text := text_at(entry, *path))), None)
    return recorded or (names.channel(key) if key else None)
