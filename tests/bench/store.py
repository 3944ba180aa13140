"""A store of claude and codex sessions to measure with: as big as asked, the same bytes for the same arguments.

`python tests/bench/store.py DIR --sessions 5000 --megabytes 1024` writes DIR/home/.claude in the shape of Claude Code
2.1.326 and DIR/home/.codex in that of Codex 0.117 and 0.169. Most sessions are small and a few are huge; some are forks
of the one before, some have sub-agents. DIR/planted.json comes last: which sessions hold which words, and what was used.
"""

import argparse
import os
import re
import sys
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import orjson

Record = dict[str, Any]

# Invented words have no "q": what is planted is nowhere else, nor does another word begin with it.
RARE, FEW, PHRASE, COMMON = "quicksilver", "quaternion", "rolling checksum window", "quorum"
FEW_SESSIONS, PHRASE_SESSIONS, COMMON_SHARE = 5, 12, 0.85

# The first ten of every forty sessions have a fixed agent, so that ten sessions already show every kind.
PERIOD = 40
FIXED_AGENTS = ("claude", "codex", "claude", "claude", "claude", "claude", "codex", "codex", "legacy", "legacy")
DELEGATING, FORKED, FORKS = frozenset({1, 3}), frozenset({4, 6, 8}), frozenset({5, 7, 9})
AGENT_SHARES = {"claude": 60, "codex": 20, "legacy": 20}

# With these, 5,000 sessions of 1 GB have a median of 40 kB, a largest of 24 MB, and no fork copies more than 1 MB.
SIZE_SPREAD, LARGEST, LARGEST_FORKED = 1.8, 600.0, 25.0

FIRST_DAY = int(datetime(2026, 5, 20, tzinfo=UTC).timestamp() * 1000)
LAST_DAY = int(datetime(2026, 11, 16, tzinfo=UTC).timestamp() * 1000)

FULL_CONTEXT = 180_000
CLAUDE_MODELS = ("claude-opus-5-5", "claude-opus-5-5", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001")
CODEX_MODELS = ("gpt-5.1-codex", "gpt-5.1-codex", "gpt-5")

ENGLISH = """the to of and a in is it that for on with as this be are not we from at by an or if can will has have but so
all was when then there one no which its after before only also into over both each other more than same still now here
what where why how should could would must may does did done been being very just like out up down off again first"""
TRADE = """function file test error value string list class object index path name type module import cache response
server client thread lock table row column key token parser reader writer loop branch commit merge build deploy config
option default rolling checksum window buffer stream socket timeout retry schema migration handler event callback state
session message record field cursor offset length header payload format version release package script shell command
output input argument result failure warning trace debug assert fixture mock snapshot coverage lint typing annotation"""
ONSETS = "b c d f g h j k l m n p r s t v w br ch cl cr dr fl gr pl pr sh sl sp st str th tr"
VOWELS = "a e i o u ai ea ee io ou"
CODAS = "n r s t l m ck nd ng nt rd rk rm rt"
CODE = (
    "    {} = {}({}, {})",
    "    if {} is not None and {}.{} > {}:",
    "        return {}({}, key={}.{})",
    "def {}(self, {}: {}) -> {}:",
    "    for {}, {} in {}.{}.items():",
    '        raise ValueError(f"{} {} {} {{{}}}")',
    "    # {} {} {} {}",
    "    with {}({}) as {}, {}:",
    "",
)
OUTPUT = (
    "{path}:{number}: {} {} {} {} {}",
    "PASSED {path}::test_{}_{}",
    "-rw-r--r-- 1 dev dev {number} Nov 12 09:41 {path}",
    "2026-11-12T09:41:{second:02}.{milli:03}Z INFO {} {} {} {} {}={number}",
    '  File "{path}", line {number}, in {}',
    "{path}",
    "    {} {} {} {} {} {}",
)


@dataclass(frozen=True)
class Planting:
    """A text and the unified ids of the sessions that hold it."""

    text: str
    sessions: tuple[str, ...]


@dataclass(frozen=True)
class Planted:
    """What is known of a store. Calls and output tokens are by agent and count once, however often forks copied them."""

    rare: Planting
    few: Planting
    phrase: Planting
    common: Planting
    sessions: int
    subagents: int
    calls: dict[str, int]
    output_tokens: dict[str, int]
    bytes: int


class Pool:
    """Sentences, lines of code and lines of output made of a vocabulary whose words are used by Zipf's law."""

    VOCABULARY, SENTENCES, LINES = 30_000, 50_000, 25_000

    def __init__(self, rng: Random) -> None:
        self.plain = invented_words(rng, self.VOCABULARY * 7 // 10)
        self.names = [identifier(rng, self.plain) for _ in range(self.VOCABULARY // 5)]
        self.paths = [source_path(rng, self.plain) for _ in range(self.VOCABULARY // 10)]
        rest = [*self.plain, *self.names, *self.paths]
        rng.shuffle(rest)
        self.words = [*ENGLISH.split(), *TRADE.split(), *rest]
        self.weights = zipf(len(self.words))
        self.name_weights = zipf(len(self.names))
        self.sentences = [self.sentence(rng) for _ in range(self.SENTENCES)]
        self.common = [self.sentence(rng, COMMON) for _ in range(500)]
        self.code = [self.code_line(rng) for _ in range(self.LINES)]
        self.output = [self.output_line(rng) for _ in range(self.LINES)]
        self.harness = " ".join(rng.choices(self.sentences, k=300))

    def sentence(self, rng: Random, *planted: str) -> str:
        words = [*rng.choices(self.words, cum_weights=self.weights, k=rng.randint(5, 20)), *planted]
        text = " ".join([*words, *rng.choices(self.words, cum_weights=self.weights, k=2)])
        return f"{text[0].upper()}{text[1:]}."

    def code_line(self, rng: Random) -> str:
        return rng.choice(CODE).format(*rng.choices(self.names, cum_weights=self.name_weights, k=4))

    def output_line(self, rng: Random) -> str:
        numbers = {"number": rng.randrange(10_000), "second": rng.randrange(60), "milli": rng.randrange(1000)}
        words = rng.choices(self.words, cum_weights=self.weights, k=6)
        return rng.choice(OUTPUT).format(*words, path=rng.choice(self.paths), **numbers)


def invented_words(rng: Random, count: int) -> list[str]:
    onsets, vowels, codas = ONSETS.split(), VOWELS.split(), [*CODAS.split(), "", "", "", ""]
    words: dict[str, None] = {}
    while len(words) < count:
        syllables = rng.choices((1, 2, 3, 4), (1, 5, 4, 2))[0]
        word = "".join(rng.choice(onsets) + rng.choice(vowels) for _ in range(syllables)) + rng.choice(codas)
        words[word] = None
    return list(words)


def identifier(rng: Random, words: Sequence[str]) -> str:
    one, two = rng.choice(words), rng.choice(words)
    return rng.choice((f"{one}_{two}", f"{one}{two.capitalize()}", f"{one}.{two}()", f"{one}_{two}[0]"))


def source_path(rng: Random, words: Sequence[str]) -> str:
    folder, ending = rng.choice(("src", "tests", "lib", "docs")), rng.choice(("py", "ts", "rs", "md", "json"))
    return f"{folder}/{rng.choice(words)}/{rng.choice(words)}.{ending}"


def zipf(count: int) -> list[float]:
    return list(accumulate(1 / (rank + 2.7) for rank in range(count)))


class Author:
    """What is said in one session: texts from the pool, what is planted in them, and identifiers."""

    def __init__(self, rng: Random, pool: Pool, *, common: bool, planted: Iterable[str] = ()) -> None:
        self.rng, self.pool, self.common = rng, pool, common
        self.owed = [f"Look at the {text} again." for text in planted]
        if common:
            self.owed.append(rng.choice(pool.common))

    def prompt(self) -> str:
        pasted = f"\n\n```\n{self.output()}\n```" if self.rng.random() < 0.1 else ""
        return self.prose(1, 4) + pasted

    def thinking(self) -> str:
        return self.prose(6, 30) if self.rng.random() < 0.5 else ""

    def answer(self) -> str:
        """What ends a turn; the first one says all that is planted in the session."""
        owed, self.owed = self.owed, []
        code = f"\n\n```python\n{self.code(3, 20)}\n```" if self.rng.random() < 0.3 else ""
        return " ".join([self.prose(4, 30), *owed]) + code

    def prose(self, least: int, most: int) -> str:
        sentences = self.rng.choices(self.pool.sentences, k=self.rng.randint(least, most))
        if self.common and self.rng.random() < 0.2:
            sentences.append(self.rng.choice(self.pool.common))
        return " ".join(sentences[:4]) + "".join(f"\n\n{sentence}" for sentence in sentences[4:])

    def code(self, least: int, most: int) -> str:
        return "\n".join(self.rng.choices(self.pool.code, k=self.rng.randint(least, most)))

    def file(self) -> list[str]:
        return self.rng.choices(self.pool.code, k=self.length())

    def output(self) -> str:
        lines = self.rng.choices(self.pool.output, k=self.length())
        # Hashes and the like are in no vocabulary: real outputs never stop bringing words that were not seen before.
        lines += [f"{self.hex(12)} {self.rng.choice(self.pool.sentences)}" for _ in range(1 + len(lines) // 25)]
        return "\n".join(lines)

    def length(self) -> int:
        return min(400, int(25 * self.rng.paretovariate(1.1)))

    def command(self) -> str:
        program = self.rng.choice(
            ("pytest -q", "git log --stat --", "cat", f"rg -n '{self.rng.choice(self.pool.names)}'")
        )
        return f"{program} {self.path()}"

    def path(self) -> str:
        return self.rng.choice(self.pool.paths)

    def noise(self, characters: int) -> str:
        """Signatures and encrypted thoughts: bytes that no search should look at."""
        return b64encode(self.rng.randbytes(characters * 3 // 4)).decode()

    def hex(self, digits: int) -> str:
        return f"{self.rng.getrandbits(4 * digits):0{digits}x}"

    def uuid4(self) -> str:
        h = self.hex(30)
        return f"{h[:8]}-{h[8:12]}-4{h[12:15]}-a{h[15:18]}-{h[18:]}"

    def uuid7(self, milliseconds: int) -> str:
        t, h = f"{milliseconds:012x}", self.hex(18)
        return f"{t[:8]}-{t[8:]}-7{h[:3]}-b{h[3:6]}-{h[6:]}"


@dataclass(frozen=True)
class Place:
    """The repository a session works in."""

    cwd: str
    branch: str
    commit: str


@dataclass(frozen=True)
class TurnEnd:
    """How far a file had come when a turn ended: where a fork may begin."""

    lines: int
    size: int
    totals: Record


class Log:
    """The file of one session while it is written, and what the model used for it."""

    agent: ClassVar[str]

    def __init__(self, session_id: str, author: Author, place: Place, clock: int, model: str) -> None:
        self.session_id, self.author, self.place, self.clock, self.model = session_id, author, place, clock, model
        self.lines: list[bytes] = []
        self.size = self.calls = self.output_tokens = 0
        self.turn_ends: list[TurnEnd] = []
        self.totals: Record = {}
        self.context = author.rng.randint(9_000, 15_000)

    @property
    def unified_id(self) -> str:
        return f"{self.agent}:{self.session_id}"

    def write(self, record: Record) -> None:
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self.lines.append(line)
        self.size += len(line)

    def tick(self, most: int = 4_000) -> str:
        """The time of the next record."""
        self.clock += self.author.rng.randrange(most)
        return iso(self.clock)

    def converse(self, size: int) -> None:
        """Turns until the file has that size; at least one."""
        while not self.turn_ends or self.size < size:
            self.ask(self.author.prompt())
            for _ in range(self.author.rng.randint(1, 12)):
                if self.size < size:
                    self.use_tools()
            self.answer(self.author.answer())
            self.turn_ends.append(TurnEnd(len(self.lines), self.size, self.totals))

    def halfway(self) -> TurnEnd:
        return self.turn_ends[len(self.turn_ends) // 2]

    def spend(self, said: str) -> tuple[int, int]:
        """The tokens of one more call: what it read again, and what it said."""
        read, output = self.context, len(said) // 4 + self.author.rng.randint(20, 200)
        self.remember(output)
        self.calls += 1
        self.output_tokens += output
        return read, output

    def remember(self, tokens: int) -> None:
        self.context = min(self.context + tokens, FULL_CONTEXT)

    def add(self, usage: Record) -> None:
        self.totals = {name: self.totals.get(name, 0) + count for name, count in usage.items()}

    def save(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"".join(self.lines))
        os.utime(file, (self.clock / 1000, self.clock / 1000))

    def ask(self, prompt: str) -> None:
        raise NotImplementedError

    def use_tools(self) -> None:
        raise NotImplementedError

    def answer(self, text: str) -> None:
        raise NotImplementedError

    def continue_from(self, parent: "Log") -> None:
        """Begin as a fork of another session, at the end of one of its turns."""
        raise NotImplementedError


def iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Tool:
    """One call of a claude tool: what it was given, the text it gave, and the record's structured twin of that text."""

    name: str
    given: Record
    text: str
    twin: Any
    failed: bool = False


class ClaudeLog(Log):
    """2.1.326: records chained by uuid, and between them the state that Claude Code keeps for itself."""

    agent = "claude"

    def __init__(self, session_id: str, author: Author, place: Place, clock: int, model: str) -> None:
        super().__init__(session_id, author, place, clock, model)
        self.agent_id = self.called_by = self.prompt = self.prompt_id = ""
        self.leaf: str | None = None
        self.title = author.prose(1, 1)[:50]
        self.envelope = {
            "userType": "external",
            "entrypoint": "cli",
            "cwd": place.cwd,
            "sessionId": session_id,
            "version": "2.1.326",
            "gitBranch": place.branch,
        }

    @property
    def unified_id(self) -> str:
        return f"claude:{self.agent_id or self.session_id}"

    @property
    def marks(self) -> Record:
        return {"agentId": self.agent_id} if self.agent_id else {}

    def state(self, kind: str, **fields: Any) -> None:
        self.write({"type": kind, "sessionId": self.session_id, **self.marks, **fields})

    def chain(self, fields: Record, after: Record, parent: str | None = None) -> str:
        uuid = self.author.uuid4()
        link = {"parentUuid": parent or self.leaf, "isSidechain": bool(self.agent_id), **self.marks}
        self.write({**link, **fields, "uuid": uuid, "timestamp": self.tick(), **after, **self.envelope})
        self.leaf = uuid
        return uuid

    def ask(self, prompt: str) -> None:
        self.tick(600_000)
        first = self.leaf is None
        self.prompt, self.prompt_id = prompt, self.author.uuid4()
        typed = {"permissionMode": "default", "origin": {"kind": "human"}, "promptSource": "typed"}
        user = {"promptId": self.prompt_id, "type": "user", "message": {"role": "user", "content": prompt}}
        self.chain(user, {} if self.agent_id else typed)
        if first:
            self.introduce()
        self.request()

    def introduce(self) -> None:
        """The context that Claude Code injects at the start of every session."""
        harness, day = self.author.pool.harness, iso(self.clock)[:10]
        snapshot = {"workingDirectory": self.place.cwd, "isWorktree": False, "isGitRepo": True, "platform": "linux"}
        self.attach("environment", {"snapshot": snapshot}, harness[:400])
        self.attach("skill_listing", {"content": harness[400:1400], "skillCount": 13}, harness[400:1400])
        self.attach("date", {"date": day}, f"Today's date is {day}.")
        self.attach("prompt_snapshot", {"systemPrompt": [harness[:2000], harness[2000:4000]]}, "")
        names = ("Agent", "Bash", "Edit", "Grep", "Read", "Write")
        tools = [{"name": name, "description": harness[:200], "input_schema": {"type": "object"}} for name in names]
        shape = {"system": [{"type": "text", "text": harness[:2000]}], "tools": tools}
        self.state("api-request-shape", shapeHash=self.author.hex(64), timestamp=iso(self.clock), shape=shape)

    def attach(self, kind: str, fields: Record, reminder: str) -> None:
        rendered = [{"content": f"<system-reminder>\n{reminder}\n</system-reminder>"}]
        attachment = {"attachment": {"type": kind, **fields}, "type": "attachment"}
        self.chain(attachment, {"rendered": rendered} if reminder else {})

    def request(self) -> None:
        """Claude Code's own copy of what it sends: who searches the raw file finds the prompt here again."""
        digest, content = self.author.hex(64), [{"type": "text", "text": self.prompt}]
        self.state("api-request-blob", hash=digest, message={"role": "user", "content": content})
        params = {"model": self.model, "max_tokens": 128000, "thinking": {"type": "adaptive", "display": "omitted"}}
        self.state("api-request", id=self.author.uuid4(), timestamp=iso(self.clock), params=params, tail=[digest])

    def respond(self, blocks: Sequence[Record], stop_reason: str) -> list[str]:
        """One response, streamed: a line for each of its blocks, the usage on all of them. The uuids of the lines."""
        said = "".join(block.get("text") or block.get("thinking") or str(block.get("input")) for block in blocks)
        answer = {"id": f"msg_{self.author.hex(20)}", "type": "message", "role": "assistant", "model": self.model}
        ending = {"stop_reason": stop_reason, "stop_sequence": None, "usage": self.usage(said)}
        request = {"requestId": f"req_{self.author.hex(20)}", "requestedModel": self.model, "type": "assistant"}
        after = {"effort": "medium", "perTurnEffort": "medium", "madeBy": "model"}
        messages = [{**answer, "content": [block], **ending} for block in blocks]
        return [
            self.chain({"message": message, "apiBlockIndex": index, **request}, after)
            for index, message in enumerate(messages)
        ]

    def usage(self, said: str) -> Record:
        read, output = self.spend(said)
        fresh, written = self.author.rng.randint(2, 900), self.author.rng.randint(100, 3_000)
        used = {
            "input_tokens": fresh,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "output_tokens": output,
        }
        self.add(used)
        return {
            **used,
            "output_tokens_details": {"thinking_tokens": output // 5},
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": written},
            "inference_geo": "",
            "iterations": [],
            "speed": "standard",
        }

    def use_tools(self) -> None:
        kinds = self.author.rng.choices((self.bash, self.read, self.edit), (5, 3, 2), k=2)
        in_parallel = self.author.rng.random() < 0.15
        self.run([kind() for kind in kinds[: 1 + in_parallel]])

    def run(self, tools: Sequence[Tool]) -> list[str]:
        """One response that calls tools, and what they gave; the ids of the calls."""
        ids = [f"toolu_{self.author.hex(20)}" for _ in tools]
        named = list(zip(ids, tools, strict=True))
        calls = [{"type": "tool_use", "id": call_id, "name": tool.name, "input": tool.given} for call_id, tool in named]
        lines = self.respond([*self.preamble(), *calls], "tool_use")[-len(tools) :]
        for line, (call_id, tool) in zip(lines, named, strict=True):
            self.result(call_id, tool, line)
        return ids

    def preamble(self) -> list[Record]:
        blocks: list[Record] = []
        if thought := self.author.thinking():
            blocks.append({"type": "thinking", "thinking": thought, "signature": self.author.noise(300)})
        if self.author.rng.random() < 0.5:
            blocks.append({"type": "text", "text": self.author.prose(2, 8)})
        return blocks

    def result(self, call_id: str, tool: Tool, line: str) -> None:
        block = {"tool_use_id": call_id, "type": "tool_result", "content": tool.text, "is_error": tool.failed}
        user = {"promptId": self.prompt_id, "type": "user", "message": {"role": "user", "content": [block]}}
        twin = {} if self.agent_id else {"toolUseResult": tool.twin}
        self.chain(user, {**twin, "sourceToolAssistantUUID": line}, parent=line)
        self.remember(len(tool.text) // 4)

    def bash(self) -> Tool:
        given = {"command": self.author.command(), "description": self.author.prose(1, 1)[:60]}
        text = self.author.output()
        if self.author.rng.random() < 0.08:
            return Tool("Bash", given, f"Exit code 1\n{text}", f"Error: Exit code 1\n{text}", failed=True)
        return Tool("Bash", given, text, {"stdout": text, "stderr": "", "interrupted": False, "isImage": False})

    def read(self) -> Tool:
        lines, file_path = self.author.file(), f"{self.place.cwd}/{self.author.path()}"
        numbered = "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, 1))
        file = {"filePath": file_path, "content": "\n".join(lines), "numLines": len(lines), "startLine": 1}
        return Tool("Read", {"file_path": file_path}, numbered, {"type": "text", "file": file})

    def edit(self) -> Tool:
        file_path, old, new = f"{self.place.cwd}/{self.author.path()}", self.author.code(1, 12), self.author.code(1, 25)
        given = {"file_path": file_path, "old_string": old, "new_string": new}
        patch = {"oldStart": 12, "newStart": 12, "lines": [f"-{old}", f"+{new}"]}
        twin = {"filePath": file_path, "structuredPatch": [patch], "userModified": False, "replaceAll": False}
        return Tool("Edit", given, f"The file {file_path} has been updated successfully.", twin)

    def delegate(self, size: int) -> "ClaudeLog":
        """A turn that calls a sub-agent; the sub-agent has a file of its own."""
        self.ask(self.author.prompt())
        author = Author(self.author.rng, self.author.pool, common=self.author.common)
        agent = ClaudeLog(self.session_id, author, self.place, self.clock, self.model)
        agent.agent_id = f"a{author.hex(16)}"
        agent.converse(size)
        self.clock = agent.clock
        given = {"description": agent.prompt[:40], "prompt": agent.prompt, "subagent_type": "general-purpose"}
        twin = {"status": "completed", "agentId": agent.agent_id, "totalTokens": agent.output_tokens, **given}
        agent.called_by = self.run([Tool("Agent", given, self.author.prose(2, 6), twin)])[0]
        self.answer(self.author.answer())
        return agent

    def answer(self, text: str) -> None:
        self.respond([*self.preamble()[:1], {"type": "text", "text": text}], "end_turn")
        if not self.agent_id:
            self.chain({"type": "system", "subtype": "turn_duration", "durationMs": 90_000, "isMeta": False}, {})
            self.state("last-prompt", lastPrompt=self.prompt[:200], leafUuid=self.leaf)
            self.state("ai-title", aiTitle=self.title)
            self.state("mode", mode="normal")

    def close(self) -> None:
        names = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")
        counts = dict(zip(names, self.totals.values(), strict=True))
        usd = round(sum(count * price for count, price in zip(counts.values(), (4, 5, 0.2, 20), strict=True)) / 1e6, 6)
        self.state("cost-state", totalCostUSD=usd, modelUsage={self.model: {**counts, "costUSD": usd}})

    def continue_from(self, parent: Log) -> None:
        """As `--fork-session` does: copies under the fork's id, those of responses with the id of who asked for them."""
        self.state("mode", mode="normal")
        self.state("queue-operation", operation="enqueue", timestamp=self.tick())
        end = parent.halfway()
        for line in parent.lines[: end.lines]:
            record = orjson.loads(line)
            if "uuid" in record:
                self.leaf = record["uuid"]
                marker = {"requestSessionId": parent.session_id} if record["type"] == "assistant" else {}
                self.write({**marker, **record, "sessionId": self.session_id})
        self.totals = end.totals


class CodexLog(Log):
    """0.117: an event as twin of every text, the token count repeated before each call, forks that copy their parent."""

    agent = "codex"
    version: ClassVar = "0.117.0"

    def __init__(self, session_id: str, author: Author, place: Place, clock: int, model: str) -> None:
        super().__init__(session_id, author, place, clock, model)
        self.started = clock
        self.introduced = False
        self.turn_id = ""
        self.last = self.totals = self.counts(0, 0, 0)

    @property
    def file_name(self) -> str:
        at = datetime.fromtimestamp(self.started / 1000, UTC)
        return f"{at:%Y/%m/%d}/rollout-{at:%Y-%m-%dT%H-%M-%S}-{self.session_id}.jsonl"

    def put(self, kind: str, payload: Record, **more: Any) -> None:
        self.write({**self.stamp(), "type": kind, "payload": payload, **more})

    def stamp(self) -> Record:
        return {"timestamp": self.tick()}

    def item(self, payload: Record) -> None:
        self.put("response_item", payload)

    def event(self, kind: str, **fields: Any) -> None:
        self.put("event_msg", {"type": kind, **fields})

    def begin(self, **more: Any) -> None:
        known = {
            "id": self.session_id,
            "timestamp": iso(self.started),
            "cwd": self.place.cwd,
            "originator": "codex_cli_rs",
            "cli_version": self.version,
            "source": "cli",
            "model_provider": "openai",
            "base_instructions": {"text": self.author.pool.harness[:20_000]},
            "git": {"commit_hash": self.place.commit, "branch": self.place.branch},
        }
        self.put("session_meta", {**known, **more})

    def ask(self, prompt: str) -> None:
        self.tick(600_000)
        self.turn_id = self.author.uuid7(self.clock)
        self.event("task_started", turn_id=self.turn_id, model_context_window=258400, collaboration_mode_kind="default")
        if not self.introduced:
            self.introduce()
        mode = {"mode": "default", "settings": {"model": self.model, "reasoning_effort": None}}
        policies = {"approval_policy": "on-request", "sandbox_policy": {"type": "workspace-write"}, "summary": "auto"}
        where = {"turn_id": self.turn_id, "cwd": self.place.cwd, "model": self.model}
        self.put("turn_context", {**where, **policies, "collaboration_mode": mode})
        self.message("user", prompt, "user")
        self.show_prompt(prompt)

    def introduce(self) -> None:
        """The context that Codex injects before the first prompt."""
        self.introduced = True
        self.message("developer", f"<skills_instructions>\n{self.author.pool.harness[:1200]}\n</skills_instructions>")
        context = f"<cwd>{self.place.cwd}</cwd>\n  <current_date>{iso(self.clock)[:10]}</current_date>"
        self.message("user", f"<environment_context>\n  {context}\n</environment_context>")

    def message(self, role: str, text: str, source: str = "harness") -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self.item({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})

    def use_tools(self) -> None:
        command, output = self.command_and_output()
        ran = {"type": "CommandExecution", "command": ["/bin/bash", "-lc", command], "status": "completed"}
        gave = {"aggregated_output": output, "exit_code": 0, "duration": {"secs": 0, "nanos": 6_700_000}}
        head = f"Chunk ID: {self.author.hex(6)}\nWall time: 0.0067 seconds\nProcess exited with code 0\nOutput:\n"
        self.call("exec_command", {"cmd": command}, head + output, {**ran, **gave})

    def command_and_output(self) -> tuple[str, str]:
        kind = self.author.rng.random()
        if kind < 0.25:
            file = self.author.path()
            patch = f"*** Begin Patch\n*** Update File: {file}\n@@\n{self.author.code(3, 40)}\n*** End Patch"
            return f"apply_patch <<'PATCH'\n{patch}\nPATCH", f"Success. Updated the following files:\nM {file}\n"
        return self.author.command(), "\n".join(self.author.file()) if kind < 0.5 else self.author.output()

    def call(self, name: str, given: Record, output: str, shown: Record) -> None:
        """One response that calls a tool, and what the tool gave; `shown` is how the screen tells of it."""
        arguments, call_id = orjson.dumps(given).decode(), f"call_{self.author.hex(24)}"
        said = self.think() + (self.say(self.author.prose(2, 8)) if self.author.rng.random() < 0.5 else "")
        self.item({"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id})
        self.charge(said + arguments)
        self.show_tool({"id": call_id, **shown})
        self.item({"type": "function_call_output", "call_id": call_id, "output": output})
        self.count_tokens()
        self.remember(len(output) // 4)

    def think(self) -> str:
        thought = self.author.thinking()
        self.show_thought(thought)
        summary = [{"type": "summary_text", "text": thought}] if thought else []
        secret = {"content": None, "encrypted_content": self.author.noise(600)}
        self.item({"type": "reasoning", "summary": summary, **secret})
        return thought

    def say(self, text: str) -> str:
        self.show_message(text)
        self.message("assistant", text)
        return text

    def answer(self, text: str) -> None:
        self.charge(self.think() + self.say(text))
        self.count_tokens()
        self.event("task_complete", turn_id=self.turn_id, last_agent_message=text)

    def charge(self, said: str) -> None:
        read, output = self.spend(said)
        self.last = self.counts(read + self.author.rng.randint(50, 2_000), read, output)
        self.add(self.last)

    def counts(self, read: int, cached: int, output: int) -> Record:
        return {
            "input_tokens": read,
            "cached_input_tokens": cached,
            "output_tokens": output,
            "reasoning_output_tokens": output // 5,
            "total_tokens": read + output,
        }

    def count_tokens(self) -> None:
        info = {"total_token_usage": self.totals, "last_token_usage": self.last, "model_context_window": 258400}
        limits = {"limit_id": "codex", "limit_name": None, "primary": None, "secondary": None, "credits": None}
        self.event("token_count", info=info, rate_limits=limits)

    def show_prompt(self, text: str) -> None:
        self.event("user_message", message=text, images=[], local_images=[], text_elements=[])

    def show_thought(self, text: str) -> None:
        if self.calls:
            self.count_tokens()
        if text:
            self.event("agent_reasoning", text=text)

    def show_message(self, text: str) -> None:
        self.event("agent_message", message=text, phase=None, memory_citation=None)

    def show_tool(self, shown: Record) -> None:
        """Nothing: this version kept no event of a tool."""

    def continue_from(self, parent: Log) -> None:
        """The parent's records, its header included, all with the time of the fork."""
        self.begin(forked_from_id=parent.session_id)
        end, now = parent.halfway(), iso(self.clock)
        for line in parent.lines[: end.lines]:
            self.write({**orjson.loads(line), "timestamp": now})
        self.totals = end.totals
        self.introduced = True


class PaginatedLog(CodexLog):
    """0.169: numbered lines, items instead of twin events, a record of each call's usage, forks by reference."""

    version = "0.169.0"

    def __init__(self, session_id: str, author: Author, place: Place, clock: int, model: str) -> None:
        super().__init__(session_id, author, place, clock, model)
        self.root_id = session_id
        self.ordinal = 0
        self.before_turn = self.totals

    def stamp(self) -> Record:
        ordinal, self.ordinal = self.ordinal, self.ordinal + 1
        return {**super().stamp(), "ordinal": ordinal}

    def begin(self, **more: Any) -> None:
        known = {"session_id": self.root_id, "thread_source": "user", "history_mode": "paginated"}
        super().begin(**{**known, **more})

    def introduce(self) -> None:
        super().introduce()
        state = {"model": self.model, "host_skills": {"body": self.author.pool.harness[:800]}}
        self.put("world_state", {"full": True, "state": state})

    def ask(self, prompt: str) -> None:
        self.before_turn = self.totals
        super().ask(prompt)

    def item(self, payload: Record, **noted: Any) -> None:
        sequence = {"history_sequence": self.ordinal, "sampled_through_sequence": 0, "client_authored": False}
        passed = {"internal_chat_message_metadata_passthrough": {"turn_id": self.turn_id, **noted}}
        self.put("response_item", {**payload, **passed}, metadata=sequence)

    def message(self, role: str, text: str, source: str = "harness") -> None:
        content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
        message = {"type": "message", "id": f"msg_{self.author.hex(24)}", "role": role, "content": content}
        if role == "assistant":
            self.item({**message, "status": "completed"}, content_item_kinds=["unknown"])
        else:
            self.item(message, content_item_metadata=[{"provenance": {"type": source}}])

    def show(self, kind: str, name: str, **fields: Any) -> None:
        self.show_tool({"type": kind, "id": name, **fields})

    def show_tool(self, shown: Record) -> None:
        times = {"started_at_ms": self.clock, "completed_at_ms": self.clock}
        self.event("item_completed", thread_id=self.session_id, turn_id=self.turn_id, item=shown, **times)

    def show_prompt(self, text: str) -> None:
        self.show("UserMessage", self.author.uuid7(self.clock), content=[{"type": "text", "text": text}])

    def show_thought(self, text: str) -> None:
        self.show("Reasoning", f"rs_{self.author.hex(12)}", summary_text=[text] if text else [], raw_content=[])

    def show_message(self, text: str) -> None:
        self.show("AgentMessage", f"msg_{self.author.hex(12)}", content=[{"type": "Text", "text": text}])

    def counts(self, read: int, cached: int, output: int) -> Record:
        return {**super().counts(read, cached, output), "cache_write_input_tokens": 0}

    def charge(self, said: str) -> None:
        super().charge(said)
        whose = {"thread_id": self.session_id, "turn_id": self.turn_id, "session_id": self.root_id}
        turn = {name: count - self.before_turn[name] for name, count in self.totals.items()}
        sums = {"usage": self.last, "turn_token_usage": turn, "thread_token_usage": self.totals}
        self.put("token_usage_record", {**whose, "response_id": f"resp_{self.author.hex(32)}", **sums})

    def delegate(self, size: int) -> "PaginatedLog":
        """A turn that calls a sub-agent; the sub-agent is a thread of its own."""
        self.ask(self.author.prompt())
        author = Author(self.author.rng, self.author.pool, common=self.author.common)
        thread = PaginatedLog(author.uuid7(self.clock), author, self.place, self.clock, self.model)
        thread.root_id = self.root_id
        spawn = {"parent_thread_id": self.session_id, "depth": 1, "agent_nickname": "Carson", "agent_role": "default"}
        source = {"subagent": {"thread_spawn": spawn}}
        thread.begin(parent_thread_id=self.session_id, source=source, thread_source="subagent")
        thread.converse(size)
        self.clock = thread.clock
        ids = {"sender_thread_id": self.session_id, "receiver_thread_ids": [thread.session_id]}
        shown = {"type": "CollabAgentToolCall", "tool": "spawn_agent", "status": "completed", **ids}
        output = orjson.dumps({"agent_id": thread.session_id, "nickname": "Carson"}).decode()
        self.call("spawn_agent", {"message": self.author.prose(1, 2), "agent_type": "default"}, output, shown)
        self.answer(self.author.answer())
        return thread

    def continue_from(self, parent: Log) -> None:
        """Only a pointer to the end of a turn in the parent's file."""
        end = parent.halfway()
        self.ordinal = orjson.loads(parent.lines[end.lines - 1])["ordinal"] + 1
        base = {"thread_id": parent.session_id, "end_ordinal_exclusive": self.ordinal, "end_byte_offset": end.size}
        lineage = {"forked_from_id": parent.session_id, "forked_from_ordinal_exclusive": self.ordinal}
        self.begin(**lineage, history_base=base)
        self.totals = end.totals
        self.introduced = True


@dataclass
class Plan:
    """What one session will be, before anything is written."""

    agent: str
    weight: float
    start: int
    place: Place
    common: bool
    forks: bool
    delegates: bool
    words: list[str] = field(default_factory=list)


def planned(rng: Random, pool: Pool, sessions: int) -> list[Plan]:
    places = [Place(f"/home/dev/work/{word}", "main", f"{rng.getrandbits(160):040x}") for word in pool.plain[:40]]
    plans: list[Plan] = []
    for index in range(sessions):
        spot = index % PERIOD
        drawn = rng.choices(list(AGENT_SHARES), list(AGENT_SHARES.values()))[0]
        plan = Plan(
            agent=FIXED_AGENTS[spot] if spot < len(FIXED_AGENTS) else drawn,
            weight=min(rng.lognormvariate(0, SIZE_SPREAD), LARGEST_FORKED if spot in FORKED else LARGEST),
            start=FIRST_DAY + (LAST_DAY - FIRST_DAY) * index // sessions,
            place=rng.choice(places),
            common=rng.random() < COMMON_SHARE,
            forks=spot in FORKS,
            delegates=spot in DELEGATING,
        )
        if plan.forks:
            plan.common, plan.place = plans[-1].common, plans[-1].place
        plans.append(plan)
    return plans


def plant(rng: Random, plans: Sequence[Plan]) -> None:
    """Choose who says the rare words: no one who is forked, for the fork would say them too."""
    alone = [plan for index, plan in enumerate(plans) if index % PERIOD not in FORKED]
    for text, count in ((RARE, 1), (FEW, FEW_SESSIONS), (PHRASE, PHRASE_SESSIONS)):
        for plan in rng.sample(alone, min(count, len(alone))):
            plan.words.append(text)


class Store:
    """The home directory that is written, and what is known of it."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.home.mkdir(parents=True)
        self.holders: dict[str, list[str]] = {RARE: [], FEW: [], PHRASE: [], COMMON: []}
        self.names: list[Record] = []
        self.calls = {"claude": 0, "codex": 0}
        self.output_tokens = {"claude": 0, "codex": 0}
        self.sessions = self.files = self.bytes = 0

    def add(self, plan: Plan, author: Author, size: int, parent: Log | None) -> Log:
        """One session more; a fork when it has a parent."""
        start = max(plan.start, parent.clock + 60_000) if parent else plan.start
        write = self.claude if plan.agent == "claude" else self.codex
        log = write(plan, author, start, size, parent)
        for text in plan.words:
            self.holders[text].append(log.unified_id)
        self.sessions += 1
        return log

    def claude(self, plan: Plan, author: Author, start: int, size: int, parent: Log | None) -> Log:
        log = ClaudeLog(author.uuid4(), author, plan.place, start, author.rng.choice(CLAUDE_MODELS))
        folder = self.home / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", plan.place.cwd)
        if parent:
            log.continue_from(parent)
        log.converse(size * 3 // 4 if plan.delegates else size)
        if plan.delegates:
            agent = log.delegate(size // 4)
            file = folder / log.session_id / "subagents" / f"agent-{agent.agent_id}.jsonl"
            self.keep(agent, file)
            meta = {"agentType": "general-purpose", "toolUseId": agent.called_by, "spawnDepth": 1}
            file.with_suffix(".meta.json").write_bytes(orjson.dumps(meta))
        log.close()
        self.keep(log, folder / f"{log.session_id}.jsonl")
        return log

    def codex(self, plan: Plan, author: Author, start: int, size: int, parent: Log | None) -> Log:
        era = PaginatedLog if plan.agent == "codex" else CodexLog
        log = era(author.uuid7(start), author, plan.place, start, author.rng.choice(CODEX_MODELS))
        folder = self.home / ".codex/sessions"
        if parent:
            log.continue_from(parent)
        else:
            log.begin()
        log.converse(size * 3 // 4 if plan.delegates else size)
        if plan.delegates and isinstance(log, PaginatedLog):
            thread = log.delegate(size // 4)
            self.keep(thread, folder / thread.file_name)
        if author.rng.random() < 0.02:
            named = {"id": log.session_id, "thread_name": author.prose(1, 1)[:40], "updated_at": iso(log.clock)}
            self.names.append(named)
        self.keep(log, folder / log.file_name)
        return log

    def keep(self, log: Log, file: Path) -> None:
        log.save(file)
        self.files += 1
        self.bytes += log.size
        self.calls[log.agent] += log.calls
        self.output_tokens[log.agent] += log.output_tokens
        if log.author.common:
            self.holders[COMMON].append(log.unified_id)

    def close(self) -> Planted:
        if self.names:
            lines = b"".join(orjson.dumps(named, option=orjson.OPT_APPEND_NEWLINE) for named in self.names)
            (self.home / ".codex/session_index.jsonl").write_bytes(lines)
        rare, few, phrase, common = (Planting(text, tuple(ids)) for text, ids in self.holders.items())
        return Planted(
            rare=rare,
            few=few,
            phrase=phrase,
            common=common,
            sessions=self.sessions,
            subagents=self.files - self.sessions,
            calls=self.calls,
            output_tokens=self.output_tokens,
            bytes=self.bytes,
        )


def build(directory: Path, sessions: int, megabytes: int, seed: int = 1) -> Planted:
    """Write a store into a directory that has none yet. Raises FileExistsError when it has."""
    store = Store(directory)
    rng = Random(seed)
    pool = Pool(rng)
    plans = planned(rng, pool, sessions)
    plant(rng, plans)
    weight, budget = sum(plan.weight for plan in plans), megabytes * 2**20
    log: Log | None = None
    for index, plan in enumerate(plans):
        author = Author(Random(f"{seed}/{index}"), pool, common=plan.common, planted=plan.words)
        # A share of what is left: sessions that had to be larger than their share are made up for by the later ones.
        size = int((budget - store.bytes) * plan.weight / weight)
        log = store.add(plan, author, size, log if plan.forks else None)
        weight -= plan.weight
    planted = store.close()
    (directory / "planted.json").write_bytes(orjson.dumps(planted, option=orjson.OPT_INDENT_2))
    return planted


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a store of claude and codex sessions to measure with.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    planted = build(given.directory, given.sessions, given.megabytes, given.seed)
    sys.stdout.write(
        f"{planted.sessions} sessions, {sum(planted.calls.values())} calls, {planted.bytes / 2**20:.0f} MB\n"
    )


if __name__ == "__main__":
    main()
