"""Gemini CLI.

The root is $GEMINI_CLI_HOME/.gemini (since 0.25; the variable names the home), else ~/.gemini, on every system. A
session lies in `tmp/<project>/chats/session-<UTC minute>-<first 8 of its id>`: `.json` up to 0.38, `.jsonl` since 0.39,
with milliseconds for the minute where it was imported. `<project>` is the sha256 of the cwd up to 0.28, then a slug.

One session may be in several files. The first start of a slug version copies the hash directory; resuming a `.json`
writes a `.jsonl` beside it; resuming a `.jsonl` in a later minute leaves a stub of that minute; up to about 0.2x a
compression went on in a new file. The id is only inside, so files are put together by its first 8 characters, and two
ids that share these are told apart when they are read.

Sub-agents are `chats/<session>/<id>.jsonl` since 0.37. Before, their files lay among the others with the id of the
session that started them, from 0.31 with `kind: "subagent"`. No sessions: `logs.json`, `checkpoint-*.json`, `logs/`,
`checkpoints/`, `tool-outputs/`, `memory/`, `history/`, `chats/*.unreadable-*` and `*.tmp-*`, and whatever lies beside
`tmp/`. `~/.gemini/sessions/<id>.jsonl` is in documents, no release wrote it; it is read where it is found.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from amux.errors import UnreadableSession
from amux.model import Json, Session, SessionSummary
from amux.readers import _base
from amux.readers._base import Reader, SessionRef, entries, stamp
from amux.readers._json import text_at
from amux.readers.gemini.conversation import charges, conversation
from amux.readers.gemini.files import Transcript, contents, transcript
from amux.readers.gemini.places import Places, directory
from amux.readers.gemini.record import spoken
from amux.readers.gemini.replay import IMPORTED, Log

NAME = re.compile(r"session-(?:\d{4}-\d\d-\d\dT\d\d-\d\d|\d+)-(.+)\.jsonl?")
EXTENSION = re.compile(r"\.jsonl?$")
PLAIN = "sessions"
