"""The totals in `session.shutdown`, and what they go on from.

Up to 1.0.62 they are those of the process, since 1.0.68 those of the whole session, and nothing says which: the output
tokens of the answers since the last shutdown tell. Versions that do not record those (since 1.0.85) all count on. A
fork's totals go on from the last ones it copied. Calls that compacted the conversation are in none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from amux.readers._json import Record, at, dict_at, int_at


@dataclass(frozen=True, slots=True)
class Counts:
    """Totals of one model, in the program's meaning: the input includes the cache."""

    calls: int = 0
    input: int = 0
    output: int = 0
    read: int = 0
    written: int = 0
    thinking: int | None = None

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.calls + other.calls,
            self.input + other.input,
            self.output + other.output,
            self.read + other.read,
            self.written + other.written,
            None if self.thinking is None and other.thinking is None else (self.thinking or 0) + (other.thinking or 0),
        )

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(
            max(self.calls - other.calls, 0),
            max(self.input - other.input, 0),
            max(self.output - other.output, 0),
            max(self.read - other.read, 0),
            max(self.written - other.written, 0),
            None if self.thinking is None else max(self.thinking - (other.thinking or 0), 0),
        )

    def holds(self, other: "Counts") -> bool:
        return self.calls >= other.calls and self.output >= other.output


Totals = dict[tuple[str | None, str], Counts]
"""By sub-agent and model."""


def totals(data: Record, *, split: bool) -> Totals:
    found: Totals = {(None, model): counts(metric) for model, metric in dict_at(data, "modelMetrics").items()}
    if not split:
        return found
    for agent, metrics in dict_at(data, "agentMetrics").items():
        for model, metric in dict_at(metrics, "modelMetrics").items():
            if agent != "main" and (None, model) in found:
                found[agent, model] = counts(metric)
                found[None, model] -= counts(metric)
    return found


def counts(metric: Any) -> Counts:
    usage = at(metric, "usage")
    return Counts(
        int_at(metric, "requests", "count") or 0,
        int_at(usage, "inputTokens") or 0,
        int_at(usage, "outputTokens") or 0,
        int_at(usage, "cacheReadTokens") or 0,
        int_at(usage, "cacheWriteTokens") or 0,
        int_at(usage, "reasoningTokens"),
    )


def output(totals: Totals) -> int:
    return sum(counts.output for counts in totals.values())


def base(now: Totals, known: Sequence[Totals], since: Sequence[int | None]) -> tuple[Totals, bool]:
    """Which of the known totals these go on from, and whether they have what killed processes used.

    `since` is the output of the processes after the last shutdown; all but the last of them were killed.
    """
    own = since[-1]
    if own is None:
        return next((one for one in known if holds(now, one)), {}), False
    everything = sum(filter(None, since))
    fits = [(abs(output(now) - output(one) - gone), one, gone != own) for gone in (everything, own) for one in known]
    _, best, all_of_them = min(fits, key=lambda fit: fit[0])
    return best, all_of_them


def holds(now: Totals, before: Totals) -> bool:
    return all(now.get(key, Counts()).holds(counts) for key, counts in before.items())


def minus(now: Totals, before: Totals) -> Totals:
    return {key: counts - before.get(key, Counts()) for key, counts in now.items()}


def plus(one: Totals, other: Totals) -> Totals:
    return {**one, **{key: counts + one.get(key, Counts()) for key, counts in other.items()}}


def by_agent(ends: Iterable[Record]) -> bool:
    """Whether all shutdowns of a file say what each sub-agent used."""
    return all(isinstance(data.get("agentMetrics"), dict) for data in ends)
