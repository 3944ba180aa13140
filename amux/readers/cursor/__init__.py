"""Cursor: the CLI (`cursor-agent`, of late also `agent`) and the IDE.

Three stores that know nothing of each other, the same on every system unless said otherwise:
- the CLI's, a database for each session: `~/.cursor/chats/<md5 of the cwd>/<id>/store.db`, since 2026 with a `meta.json` that is
  there before the database is; editors that run the CLI have theirs in `~/.cursor/acp-sessions/<id>/`;
- transcripts of what the agent did, in the CLI and in the IDE: `~/.cursor/projects/<cwd with "-" for "/", "_" and ".">/agent-transcripts/`,
  as `<id>.txt` until January 2026, then `<id>.jsonl`, now `<id>/<id>.jsonl` with `<id>/subagents/<id>.jsonl`. That name cannot be
  turned back into a path; it can be a number or missing, where no folder was open. Cursor throws old ones away;
- the IDE's: `globalStorage/state.vscdb` and `workspaceStorage/<id>/state.vscdb` in `~/.config/Cursor/User`, on macOS in
  `~/Library/Application Support/Cursor/User`, on Windows in `%APPDATA%/Cursor/User`, on servers in `~/.cursor-server/data/User`.
And `~/.cursor/sessions/sessions.db`, of which little is known. $CURSOR_CONFIG_DIR and $XDG_CONFIG_HOME/cursor move the CLI's
configuration and, it was once seen, its chats. One session can be in several of them: the CLI's has the most, the IDE's comes next.

Nobody writes down what was used: every count of tokens in these stores is the size of a context, so that usage is unknown.

No sessions: `~/.cursor/ai-tracking`, `prompt_history.json`, `agent-cli-state.json`, `cli-config.json`; of `~/.cursor/projects/*`
`agent-tools`, `terminals`, `assets`, `mcps`, `repo.json`; `User/History`.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b, md5
from pathlib import Path, PurePath

from amux.errors import UnreadableSession
from amux.model import Json, Session, SessionSummary
from amux.readers import _base
from amux.readers._base import Host, Reader, SessionRef, broken_ref, stamp
from amux.readers._sqlite import database_stamp, reading
from amux.readers.cursor import places, store, transcript, workspace
from amux.readers.cursor.composer import Composers
from amux.readers.cursor.conversation import Conversation
from amux.readers.cursor.places import Found
from amux.readers.cursor.tables import FILE, Tables
from amux.readers.cursor.workspace import STATE, Pane, Workspace

