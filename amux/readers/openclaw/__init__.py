"""openclaw, before 2026.1.29 clawdbot (and for some days moltbot).

The state directory is ~/.openclaw (~/.clawdbot, ~/.moltbot; a later one may be a link to it), ~/.openclaw-<name> with a profile
(`--dev` is the profile dev); OPENCLAW_STATE_DIR (CLAWDBOT_STATE_DIR) moves it, OPENCLAW_HOME replaces the home. An
installation has several agents: `agents/<agent>/sessions/<id>.jsonl` up to all stable versions of 2026.7, since 2026.8 rows
of `agents/<agent>/agent/openclaw-agent.sqlite`. Both can lie side by side until `openclaw doctor --fix` imports the files,
ids kept, and moves them to `session-sqlite-import-archive`.

A session key is where a conversation is reached; it leads to one session at a time, and each /new, rollover, rewind or fork
makes another session with an id of its own. openclaw resumes keys: older sessions of a key can be read and not resumed. The
cwd is the agent's workspace, not where the user stood.

No sessions: `openclaw-agent.sqlite.*.sqlite` (locks), state/openclaw.sqlite (the control plane), memory/, cron/, credentials/,
logs/, tasks/.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from amux.errors import UnreadableSession
from amux.model import Json, Session, SessionSummary
from amux.readers._base import Reader, SessionRef, broken_ref, entries, stamp
from amux.readers.openclaw.database import Database
from amux.readers.openclaw.places import CONFIGURATIONS, Installation, stores
from amux.readers.openclaw.store import Kin, Store

NAMES = (".openclaw", ".clawdbot", ".moltbot")
PROFILE = re.compile(r"\.openclaw-([A-Za-z0-9][A-Za-z0-9_-]{0,63})")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class OpenclawReader(Reader):
    title = "OpenClaw"
    program = "openclaw"
    install = "npm install -g openclaw"
    fork_hint = (
        "its gateway can: openclaw gateway call sessions.create --params"
        """ '{"parentSessionKey": "agent:main:main", "fork": true}'"""
    )

    # Where sessions lie

    def roots(self) -> Sequence[Path]:
        moved = [self.host.env.get(f"{name}_STATE_DIR", "").strip() for name in ("OPENCLAW", "CLAWDBOT")]
        if any(moved):
            return [self.host.expand(path) for path in moved if path]
        home = self.host.directory("OPENCLAW_HOME")
        profile = self.host.env.get("OPENCLAW_PROFILE", "").strip()
        named = [f".openclaw-{profile}"] if profile and PROFILE.fullmatch(f".openclaw-{profile}") else []
        found = [entry.name for entry in entries(home) if PROFILE.fullmatch(entry.name) and os.path.isdir(entry.path)]
        return [home / name for name in dict.fromkeys((*NAMES, *named, *found))]

    @cached_property
    def installations(self) -> list[Installation]:
        """The installations on this host, each store once: one root may be a link to another."""
        seen = set[tuple[type[Store], str]]()
        found = []
        for root in map(str, self.roots()):
            own = Installation(root, [])
            for store in stores(self.host, root, self.opened):
                place = type(store), os.path.realpath(store.path)
                if place not in seen:
                    seen.add(place)
                    own.stores.append(store)
            found.append(own)
        return found

    def state(self) -> str | None:
        settings = (stamp(root / name) for root in self.roots() for name in CONFIGURATIONS)
        states = (store.state() for installation in self.installations for store in installation.stores)
        found = "\n".join([*(one[0] for one in settings if one), *states])
        return blake2b(found.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    def kin(self, installation: Installation) -> Kin:
        def session_of(key: str, when: int | None) -> str | None:
            owner = key.split(":")[1] if key.startswith("agent:") else ""
            # Stable: among the stores of the key's own agent, and among the others, databases still come first.
            for store in sorted(installation.stores, key=lambda store: store.agent != owner):
                try:
                    if found := store.session_of(key, when):
                        return found
                except UnreadableSession:
                    continue
            return None

        return session_of

    # Sessions

    def refs(self) -> Iterator[SessionRef]:
        # A session can be in a database and in the file it was imported from, or in a copy of a root.
        found: dict[str, SessionRef] = {}
        for installation in self.installations:
            for ref in self.refs_in(installation):
                # An id that the user chose may be another session's elsewhere.
                id = ref.key.partition("/")[2]
                key = id if UUID.fullmatch(id) else f"{installation.root} {ref.key}"
                if key not in found or rank(found[key]) < rank(ref):
                    found[key] = ref._replace(key=key)
        yield from found.values()

    def refs_in(self, installation: Installation) -> Iterator[SessionRef]:
        for store in installation.stores:
            if isinstance(store, Database) and not os.path.lexists(store.path):
                continue
            try:
                yield from store.refs(self.kin(installation))
            except UnreadableSession as error:
                yield broken_ref(error)

    def read(self, ref: SessionRef) -> Sequence[Session]:
        installation, store = self.place(ref.path)
        return store.read(self.agent, ref, self.kin(installation))

    def raw(self, ref: SessionRef, session_id: str) -> Json:
        return self.place(ref.path)[1].raw(ref)

    def place(self, path: str) -> tuple[Installation, Store]:
        """Raises UnreadableSession."""
        for installation in self.installations:
            for store in installation.stores:
                if store.holds(path):
                    return installation, store
        raise UnreadableSession(path, "it lies in no store of openclaw's")

    # Going on

    def resume_command(self, session: SessionSummary, model: str | None) -> list[str] | None:
        """A model cannot be named: it belongs to the session, and /model changes it."""
        try:
            installation, store = self.place(session.path or "")
            key = store.key_of(session.session_id)
        except UnreadableSession:
            return None
        options = self.options(installation.root)
        return [self.program, *options, "tui", f"--session={key}"] if key and options is not None else None

    def options(self, root: str) -> list[str] | None:
        """What makes openclaw use a state directory; None where nothing does."""
        name = os.path.basename(root)
        if profile := PROFILE.fullmatch(name):
            return ["--profile", profile[1]]
        known, *older = (str(path) for path in self.roots())
        if root == known:
            return []
        return [] if name == NAMES[1] and root in older and not os.path.isdir(known) else None


def rank(ref: SessionRef) -> tuple[bool, int]:
    """Of copies of a session, the one in a database is worth more, then the longer one."""
    return bool(ref.files), ref.size


READER = OpenclawReader
