"""Where an installation of openclaw keeps its agents' sessions.

The configuration, `openclaw.json` (`clawdbot.json`, `moltbot.json`), is JSON5. `session.store` in it moves the index, and with
it files and database; an agent's `agentDir` moves its database.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from amux.errors import UnreadableSession
from amux.model import Json
from amux.readers._base import Host, entries, stamp
from amux.readers._json import decoded, dict_at, list_at, text_at, text_of
from amux.readers.openclaw.database import Database
from amux.readers.openclaw.documents import Documents
from amux.readers.openclaw.folder import Folder
from amux.readers.openclaw.store import Store

DATABASE = "openclaw-agent.sqlite"
INDEX = "sessions.json"
CONFIGURATIONS = ("openclaw.json", "clawdbot.json", "moltbot.json")
AGENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE)
PLACEHOLDER = "{agentId}"
LARGEST_CONFIGURATION = 4 * 2**20
STRING = r'"(?:[^"\\]|\\.)*"'
RELAXED = re.compile(rf"{STRING}|'(?:[^'\\]|\\.)*'|//[^\n]*|/\*.*?\*/|[A-Za-z_$][\w$]*(?=\s*:)", re.DOTALL)
COMMA = re.compile(rf"{STRING}|,(?=\s*[}}\]])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Installation:
    root: str
    stores: list[Store]


def stores(host: Host, root: str, opened: ExitStack) -> Iterator[Store]:
    """Every place of an installation that can hold sessions, databases first: what was imported into one has it all."""
    settings = configuration(root)
    found = set(agents(root, settings))
    moved = moved_stores(host, settings, found)
    for agent in sorted(found):
        yield Database(agent, os.path.join(root, "agents", agent, "agent", DATABASE), opened)
    for agent, directory in moved_agents(settings):
        yield Database(agent, os.path.join(host.expand(directory), DATABASE), opened)
    for agent, index in moved:
        yield from (Database(owner or agent, path, opened) for owner, path in databases_beside(index))
    for agent in sorted(found):
        directory = os.path.join(root, "agents", agent, "sessions")
        yield Folder(agent, directory, os.path.join(directory, INDEX))
    for agent, index in moved:
        yield Folder(agent, os.path.dirname(index), index)
    # The first versions had one agent, with its sessions in the root.
    first = os.path.join(root, "sessions")
    yield Folder("main", first, os.path.join(first, INDEX))
    yield Documents("main", first)


def agents(root: str, settings: Json) -> Iterator[str]:
    yield from (entry.name for entry in entries(os.path.join(root, "agents")) if os.path.isdir(entry.path))
    yield from (agent for agent, _ in configured(settings) if AGENT.fullmatch(agent))


def configured(settings: Json) -> Iterator[tuple[str, Json]]:
    """The agents the configuration lists: as a list, or by their ids."""
    yield from dict_at(settings, "agents", "entries").items()
    yield from ((text_at(one, "id") or "", one) for one in list_at(settings, "agents", "list"))


def moved_agents(settings: Json) -> Iterator[tuple[str, str]]:
    """The agents whose directory was moved."""
    for agent, one in configured(settings):
        directory = text_at(one, "agentDir")
        if directory and "\0" not in directory:
            yield agent, directory


def moved_stores(host: Host, settings: Json, found: set[str]) -> list[tuple[str, str]]:
    """Agent and index of each store that was moved; one for all agents counts as the main agent's."""
    named = text_at(settings, "session", "store")
    if not named or "\0" in named:
        return []
    if PLACEHOLDER not in named:
        return [("main", str(host.expand(named)))]
    return [(agent, str(host.expand(named.replace(PLACEHOLDER, agent)))) for agent in sorted({*found, "main"})]


def databases_beside(index: str) -> Iterator[tuple[str | None, str]]:
    """The databases that take the place of an index, each with its agent where its name tells: a second agent's does."""
    directory, name = os.path.split(index)
    base = "openclaw-agent" if name == INDEX else os.path.splitext(name)[0]
    pattern = re.compile(rf"{re.escape(base)}(?:\.([a-z0-9][a-z0-9_-]*))?(?:\.\d+)?\.sqlite")
    for entry in entries(directory):
        if database := pattern.fullmatch(entry.name):
            yield database[1], entry.path


def configuration(root: str) -> Json:
    """The settings of an installation; None where there are none or they cannot be made sense of."""
    for name in CONFIGURATIONS:
        path = os.path.join(root, name)
        found = stamp(path)
        if found and found[1] <= LARGEST_CONFIGURATION:
            try:
                text = text_of(path)
            except UnreadableSession:
                continue
            return decoded(text) or decoded(COMMA.sub(kept_string, RELAXED.sub(strict, text)))
    return None


def strict(token: re.Match[str]) -> str:
    """A token of JSON5 as JSON has it: no comments, names in double quotes."""
    text = token[0]
    match text[0]:
        case '"':
            return text
        case "/":
            return ""
        case "'":
            return json.dumps(text[1:-1])
        case _:
            return json.dumps(text)


def kept_string(token: re.Match[str]) -> str:
    return token[0] if token[0] != "," else ""
