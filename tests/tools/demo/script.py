"""A story is what was said and done in a session. Played, it has times, ids and tokens too, the same every time."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from inspect import cleandoc
from typing import Any, NamedTuple


class Model(NamedTuple):
    """A model and its list prices in USD per million tokens, for the agents that write down what a call cost."""

    id: str
    provider: str
    input: float
    output: float
    cache_read: float
    cache_write: float | None = None


OPUS = Model("claude-opus-4-5-20251101", "anthropic", 5, 25, 0.5, 6.25)
SONNET = Model("claude-sonnet-4-5-20250929", "anthropic", 3, 15, 0.3, 3.75)
HAIKU = Model("claude-haiku-4-5-20251001", "anthropic", 1, 5, 0.1, 1.25)
CODEX = Model("gpt-5.1-codex", "openai", 1.25, 10, 0.125)
PRO = Model("gemini-2.5-pro", "google", 1.25, 10, 0.125)

INSTRUCTIONS = {
    "claude": 21_400,
    "codex": 9_800,
    "copilot": 16_800,
    "droid": 17_600,
    "gemini": 11_200,
    "omp": 15_100,
    "opencode": 12_300,
    "pi": 3_900,
}
"""Tokens that each agent sends before the first prompt: its instructions and its tools."""

CACHE_LIFE = timedelta(minutes=5)
TOKENS_PER_SECOND = 70
EXTRACT = 12
"""The stories show what matters of a tool's output; what the model had to read was so many times as long."""

CONTINUED = re.compile(r"(?<=[^\n])\n *+(?![-|\n]|\d\. )")
"""Where prose goes on in the next line: not at a paragraph's end, nor before an item of a list or a row of a table."""


class Code:
    """Texts are indented as the stories around them are, and cleaned of that."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, str):
                setattr(self, name, self.cleaned(value))

    def cleaned(self, text: str) -> str:
        return cleandoc(text)


class Prose(Code):
    """Lines are broken to fit the stories, and joined again."""

    def cleaned(self, text: str) -> str:
        return CONTINUED.sub(" ", cleandoc(text))


@dataclass
class Shell(Code):
    command: str
    output: str
    about: str = ""
    exit: int = 0
    seconds: float = 0.4
    interrupted: bool = False


@dataclass
class Read(Code):
    path: str
    output: str
    seconds: float = 0.02


@dataclass
class Search(Code):
    pattern: str
    output: str
    seconds: float = 0.05


@dataclass
class Edit(Code):
    path: str
    old: str
    new: str
    seconds: float = 0.03
    output: str = ""


@dataclass
class Write(Code):
    path: str
    text: str
    seconds: float = 0.03
    output: str = ""


@dataclass
class Delegate(Code):
    """A sub-agent is started; it works on its own while the session goes on, and its last reply is its report."""

    about: str
    prompt: str
    replies: "list[Reply]"
    model: Model
    seconds: float = 0.1
    output: str = ""


Call = Shell | Read | Search | Edit | Write | Delegate


@dataclass
class Reply(Prose):
    text: str
    calls: list[Call] = field(default_factory=list)
    thinks: str = ""


@dataclass
class Turn(Prose):
    """A prompt and its replies. `left`: the turn was taken back, and this is what is remembered of it."""

    prompt: str
    replies: list[Reply]
    wait: float = 2
    left: str = ""


@dataclass
class Compaction(Prose):
    """The person had the conversation so far replaced by a summary."""

    summary: str
    wait: float = 1


@dataclass
class Story(Prose):
    """A session; `title` where the agent or the person gave it one.

    A fork begins with the first `after` turns of another story.
    """

    agent: str
    project: str
    start: str
    model: Model
    turns: list[Turn | Compaction]
    title: str = ""
    branch: str = "main"
    tags: tuple[str, ...] = ()
    forked_from: "Story | None" = None
    after: int = 0

    @property
    def cwd(self) -> str:
        return f"/home/dev/work/{self.project}"

    @property
    def commit(self) -> str:
        """Where the branch stood."""
        return sha256(f"{self.project} {self.branch}".encode()).hexdigest()[:40]

    @property
    def began(self) -> datetime:
        return datetime.fromisoformat(self.start).replace(tzinfo=UTC)

    def chance(self, purpose: str) -> "Chance":
        return Chance(f"{self.agent} {self.start} {purpose}")


@dataclass
class Usage:
    """Tokens of one call; `fresh` were neither read from a cache nor written to one, `output` includes `thinking`."""

    fresh: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    thinking: int = 0

    @property
    def prompt(self) -> int:
        return self.fresh + self.cached + self.written

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass
class Made:
    """A call as it was made; `acts` are those of the sub-agent it started."""

    id: str
    call: Call
    began: datetime
    at: datetime
    acts: "list[Act]" = field(default_factory=list)


@dataclass
class Answer:
    """One response of the model, from request to last token, and the calls that were made upon it."""

    began: datetime
    at: datetime
    reply: Reply
    usage: Usage
    calls: list[Made]

    @property
    def ended(self) -> datetime:
        return self.calls[-1].at if self.calls else self.at


@dataclass
class Act:
    """A turn as it was played, or a compaction: that has a summary and no answers."""

    at: datetime
    prompt: str
    answers: list[Answer] = field(default_factory=list)
    left: str = ""
    summary: str = ""

    @property
    def ended(self) -> datetime:
        return max([self.at, *(answer.ended for answer in self.answers)])


class Chance:
    """Numbers and ids that look random and depend on nothing but a seed."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.drawn = 0

    def hex(self, digits: int) -> str:
        self.drawn += 1
        return sha256(f"{self.seed} {self.drawn}".encode()).hexdigest()[:digits]

    def between(self, low: int, high: int) -> int:
        return low + int(self.hex(8), 16) % (high - low + 1)

    def uuid(self) -> str:
        return uuid_of(f"{self.hex(12)}4{self.hex(3)}8{self.hex(15)}")

    def timed_uuid(self, at: datetime) -> str:
        """UUID version 7: the time in milliseconds comes first."""
        return uuid_of(f"{milliseconds(at):012x}7{self.hex(3)}8{self.hex(15)}")


def uuid_of(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Stage:
    """Where a story is played: a clock, the tokens sent so far and how many of them are still in the cache."""

    def __init__(self, story: Story, *, clock: datetime | None = None, model: Model | None = None) -> None:
        self.model = model or story.model
        self.chance = story.chance(self.model.id)
        self.clock = clock or story.began
        self.context = INSTRUCTIONS[story.agent]
        self.cached = 0
        self.asked = self.clock
        self.story = story

    def play(self, turns: list[Turn | Compaction]) -> list[Act]:
        return [self.compact(turn) if isinstance(turn, Compaction) else self.turn(turn) for turn in turns]

    def turn(self, turn: Turn) -> Act:
        """The turn as it goes; one that was taken back leaves the context as it was."""
        before = self.context
        act = Act(self.clock, turn.prompt, left=turn.left)
        self.context += tokens(turn.prompt)
        for reply in turn.replies:
            act.answers.append(self.answer(reply))
            if not reply.calls:
                self.await_reports(act)
        self.clock += timedelta(minutes=turn.wait, milliseconds=self.chance.between(0, 59_000))
        if turn.left:
            self.context = before + tokens(turn.left)
        return act

    def compact(self, turn: Compaction) -> Act:
        act = Act(self.clock, "", summary=turn.summary)
        self.context = INSTRUCTIONS[self.story.agent] + tokens(turn.summary)
        self.cached = 0
        self.clock += timedelta(minutes=turn.wait)
        return act

    def answer(self, reply: Reply) -> Answer:
        asked = json.dumps([parameters(call) for call in reply.calls])
        thinking = self.chance.between(120, 900) + tokens(reply.thinks)
        usage = self.usage(tokens(reply.text) + tokens(asked) + thinking, thinking)
        began = self.clock + timedelta(milliseconds=self.chance.between(4, 60))
        self.clock = began + timedelta(
            milliseconds=self.chance.between(900, 2600) + usage.output * 1000 // TOKENS_PER_SECOND
        )
        answer = Answer(began, self.clock, reply, usage, [])
        answer.calls.extend(self.made(call) for call in reply.calls)
        return answer

    def usage(self, output: int, thinking: int) -> Usage:
        """The whole context is sent; what the last call sent is in the cache for some minutes."""
        cached = self.cached if self.clock - self.asked < CACHE_LIFE else 0
        new = self.context - cached
        if self.model.cache_write is not None:
            fresh = self.chance.between(3, 12)
            usage = Usage(fresh, cached, new - fresh, output, thinking)
        else:
            cached -= cached % 128  # caches that need not be paid for hold whole blocks
            usage = Usage(self.context - cached, cached, 0, output, thinking)
        self.cached, self.asked = self.context, self.clock
        self.context += output
        return usage

    def made(self, call: Call) -> Made:
        id = self.chance.hex(24)
        began = self.clock + timedelta(milliseconds=self.chance.between(2, 30))
        self.clock = began + timedelta(seconds=call.seconds, milliseconds=self.chance.between(1, 40))
        self.context += EXTRACT * tokens(call.output)
        made = Made(id, call, began, self.clock)
        if isinstance(call, Delegate):
            stage = Stage(self.story, clock=self.clock, model=call.model)
            made.acts.extend(stage.play([Turn(call.prompt, call.replies)]))
        return made

    def await_reports(self, act: Act) -> None:
        """Nothing is said before the sub-agents are done that the answer before the last one started."""
        for made in act.answers[-2].calls if len(act.answers) > 1 else ():
            if made.acts:
                self.clock = max(self.clock, made.acts[-1].ended) + timedelta(milliseconds=80)
                self.context += tokens(report(made))


def acts(story: Story) -> list[Act]:
    """The story's own turns, played."""
    stage = Stage(story)
    if story.forked_from:
        inherited = [one for act in acts(story.forked_from)[: story.after] for one in act.answers]
        stage.context = inherited[-1].usage.prompt + inherited[-1].usage.output
    return stage.play(story.turns)


def report(made: Made) -> str:
    """What a sub-agent had to say at its end."""
    return made.acts[-1].answers[-1].reply.text


def parameters(call: Call) -> dict[str, Any]:
    return {name: value for name, value in vars(call).items() if isinstance(value, str) and name != "output"}


def tokens(text: str) -> int:
    return len(text) // 3


def spent(played: list[Act]) -> Usage:
    return sum((answer.usage for act in played for answer in act.answers), Usage())


def usd(model: Model, usage: Usage) -> dict[str, float]:
    """What a call cost, by kind of token."""
    counts = {
        "input": usage.fresh * model.input,
        "output": usage.output * model.output,
        "cacheRead": usage.cached * model.cache_read,
        "cacheWrite": usage.written * (model.cache_write or 0),
    }
    amounts = {kind: round(amount / 1_000_000, 9) for kind, amount in counts.items()}
    return amounts | {"total": round(sum(counts.values()) / 1_000_000, 9)}


def milliseconds(at: datetime) -> int:
    return (at - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_lines(records: Iterable[dict[str, Any]]) -> str:
    return "".join(f"{json_line(record)}\n" for record in records)


def json_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
