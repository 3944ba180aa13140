"""What one call of a model cost on its day: the list prices of prices.json, made by `make prices`, and the user's own.

An id is looked up as it was written, then without what providers and agents wrap around it. A wrapper may be dropped,
but the model that is left must match a rule of the table: an id nobody listed has no price, never its neighbour's.

The user's file, in USD per million tokens. Cache prices left out are the input price, for an hour that of a write:

    [models."my-model"]
    input = 3.0
    output = 15.0
    cache_read = 0.3
    cache_write = 3.75
    cache_write_1h = 6.0

    [aliases]
    "custom:My-Model-0" = "claude-sonnet-4-5"
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import orjson

from amux.errors import InvalidValue, UnreadableSession
from amux.model import Charge
from amux.money import PRICES
from amux.readers._json import regular

HIGHEST_PRICE = 1_000_000
MOVE_AWAY = "correct it or move the file away"
LONGEST_ID = 200
"""Longer ids are no names of models; neither are those with control characters."""

EFFORTS = ("minimal", "low", "medium", "high", "xhigh")
ENDINGS = (
    "[1m]",
    *(f":{variant}" for variant in ("thinking", "beta", "nitro", "floor", "exacto", "online")),
    *(form.format(effort) for effort in EFFORTS for form in ("-{}", " {}", ":{}", "({})")),
)
"""What agents hang on the end of an id; the price is the one of the id without it. `:free` and `:batch` change it."""

BEDROCK_REGIONS = frozenset(("apac", "au", "ca", "eu", "global", "jp", "us", "us-gov"))
BEDROCK_MAKERS = frozenset(
    ("amazon", "anthropic", "cohere", "deepseek", "meta", "minimax", "mistral", "moonshotai", "openai", "qwen", "zai")
)
OWN_KEYS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")

Rule = Mapping[str, Any]
Amount = str | int | Decimal


class Tier(NamedTuple):
    """USD per token in a request with more than `above` tokens of input, cached and written ones included."""

    above: int
    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal
    cache_write_1h: Decimal


class Period(NamedTuple):
    """Prices from a day on, or between two hours (UTC) of every day, or always."""

    start: datetime | None
    hours: tuple[time, time] | None
    tiers: tuple[Tier, ...]

    def active(self, at: datetime) -> bool:
        if self.start is not None:
            return at >= self.start
        if self.hours is None:
            return True
        first, last = self.hours
        now = at.astimezone(UTC).time()
        return first <= now < last if first <= last else now >= first or now < last


class Listed(NamedTuple):
    """A model of the table (or of the user's) and its prices; none at all: it is free."""

    provider: str
    model: str
    periods: tuple[Period, ...] = ()

    @property
    def free(self) -> bool:
        return not any(any(tier[1:]) for period in self.periods for tier in period.tiers)

    def tier(self, at: datetime, whole_input: int) -> Tier:
        """The prices of a request: of several that are active the last listed counts, and its highest tier reached."""
        period = self.periods[0]
        if len(self.periods) > 1:
            period = next((one for one in reversed(self.periods) if one.active(at)), period)
        for tier in reversed(period.tiers):
            if whole_input > tier.above:
                return tier
        return period.tiers[0]


class Provider:
    """Who sells models, and at what prices. `claims` says of which ids this provider is the maker."""

    def __init__(self, name: str, listing: Mapping[str, Any]) -> None:
        self.name = name
        self.claims: Rule = listing.get("claims", {})
        self.models: Sequence[Any] = listing["models"]

    def find(self, name: str) -> Listed | None:
        """The first model whose rule matches; None also for one that is not sold by the token."""
        for model, rule, prices in self.models:
            if name == model if rule is None else matches(rule, name):
                return None if prices is None else Listed(self.name, model, tuple(map(period, prices)))
        return None


class PriceTable:
    """The prices of one version of prices.json with the user's own laid over them."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.source: str = table["source"]
        self.version: str = table["version"]
        self.date: str = table["date"]
        self._undated = datetime.fromisoformat(table["date"]).replace(tzinfo=UTC)
        self._providers = {name: Provider(name, listing) for name, listing in table["providers"].items()}
        self._named = {
            name: self._providers[provider]
            for provider, listing in table["providers"].items()
            for name in (provider, *listing.get("names", ()))
        }
        self._last_resorts: Mapping[str, Sequence[Sequence[str]]] = table.get("otherwise", {})
        self._own: dict[str, Listed] = {}
        self._aliases: dict[str, str] = {}
        self._found: dict[tuple[str | None, str | None], Listed | None] = {}

    @classmethod
    def load(cls, user_file: Path | None = None) -> Self:
        """Raises InvalidValue when the user's file is broken; a file that is not there sets nothing."""
        own = _content(user_file)
        table = cls(orjson.loads(PRICES.read_bytes()))
        if user_file is not None and own:
            table._lay_over(user_file, own)
        return table

    def price(self, charge: Charge) -> Decimal | None:
        """USD of the call; None where the model has no price or the call no tokens on record. Exact, not rounded."""
        listed = self.find(charge.model, charge.provider)
        if listed is None:
            return None
        if not listed.periods:
            return Decimal(0)
        usage = charge.usage
        fresh, cached, written, output = (
            usage.input_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
            usage.output_tokens,
        )
        if fresh is None and cached is None and written is None and output is None:
            return None
        fresh, cached, written, output = fresh or 0, cached or 0, written or 0, output or 0
        hour = min(charge.hour_write_tokens, written)
        # Several calls in one: how large each was is not known.
        whole_input = 0 if charge.aggregate else fresh + cached + written
        tier = listed.tier(charge.at or self._undated, whole_input)
        return (
            fresh * tier.input
            + cached * tier.cache_read
            + (written - hour) * tier.cache_write
            + hour * tier.cache_write_1h
            + output * tier.output
        )

    def is_free(self, model: str | None, provider: str | None = None) -> bool:
        """Whether the model is known to cost nothing; False for one that is not known."""
        listed = self.find(model, provider)
        return listed is not None and listed.free

    def find(self, model: str | None, provider: str | None = None) -> Listed | None:
        """The model an id means; `provider` is a hint, of no weight when the table does not know it."""
        key = (model, provider)
        try:
            return self._found[key]
        except KeyError:
            found = self._found[key] = self._look_up(model, provider)
            return found

    def _look_up(self, model: str | None, provider: str | None) -> Listed | None:
        if not model or len(model) > LONGEST_ID or not model.isprintable():
            return None
        written = model.strip().lower()
        hint = (provider or "").strip().lower()
        for name in undecorated(self._aliases.get(written, written)):
            ways = list(unwrapped(name))
            names = [spelling for _, rest in ways for spelling in spellings(rest)]
            found = next((self._own[one] for one in names if one in self._own), None)
            found = found or self._sold(names, [hint, *(prefix for prefix, _ in ways)])
            if found:
                return self._own.get(found.model.lower(), found)
        return None

    def _sold(self, names: Sequence[str], hints: Sequence[str]) -> Listed | None:
        """What a model is sold as: by the provider named, else by its maker, else by who sells what no maker lists."""
        if names[0] == "<synthetic>" or names[0].endswith(":free"):
            return Listed("", names[0])
        if names[0].startswith("custom:"):
            return None  # how droid calls a model the user set up: a title, however alike to a model's name
        offers = chain(self._hinted(names, hints), self._made(names), self._otherwise(names))
        return next((found for seller, name in offers if (found := seller.find(name))), None)

    def _hinted(self, names: Sequence[str], hints: Sequence[str]) -> Iterator[tuple[Provider, str]]:
        for hint in dict.fromkeys(hints):
            if seller := self._named.get(hint):
                yield from ((seller, name) for name in names)

    def _made(self, names: Sequence[str]) -> Iterator[tuple[Provider, str]]:
        for name in names:
            yield from ((maker, name) for maker in self._providers.values() if matches(maker.claims, name))

    def _otherwise(self, names: Sequence[str]) -> Iterator[tuple[Provider, str]]:
        for seller, families in self._last_resorts.items():
            for name in names:
                yield self._providers[seller], name
                for beginning, maker in families:
                    if name.startswith(beginning):
                        yield self._providers[seller], f"{maker}/{name}"

    def _lay_over(self, path: Path, content: bytes) -> None:
        self._own, aliases = own_prices(path, content)
        for alias, target in aliases.items():
            if self.find(target) is None:
                line = line_of(content.decode().lower(), ("aliases", alias))
                raise InvalidValue(
                    f"{path}, line {line}: {alias!r} stands for {target!r}, which has no price; {MOVE_AWAY}"
                )
        self._aliases = {alias: target.strip().lower() for alias, target in aliases.items()}
        self._found.clear()


def matches(rule: Rule, name: str) -> bool:
    """Whether any of the rule's tests holds: = equals, ^ starts, $ ends, * contains, ~ regular expression, & all of."""
    return (
        name in rule.get("=", ())
        or name.startswith(tuple(rule.get("^", ())))
        or name.endswith(tuple(rule.get("$", ())))
        or any(part in name for part in rule.get("*", ()))
        or any(re.search(pattern, name) for pattern in rule.get("~", ()))
        or ("&" in rule and all(matches(one, name) for one in rule["&"]))
    )


def period(listed: Sequence[Any]) -> Period:
    """From the table: when it holds (a day, "HH:MM-HH:MM" or null), then the tiers."""
    when, *tiers = listed
    start, hours = None, None
    if when and ":" in when:
        first, last = when.split("-")
        hours = (time.fromisoformat(first), time.fromisoformat(last))
    elif when:
        start = datetime.fromisoformat(when).replace(tzinfo=UTC)
    return Period(start, hours, tuple(tier(*row) for row in tiers))


def tier(
    above: int,
    fresh: Amount,
    output: Amount,
    read: Amount | None = None,
    write: Amount | None = None,
    hour: Amount | None = None,
) -> Tier:
    """From prices per million tokens; a cache price not listed is what the tokens cost without that cache."""
    read = fresh if read is None else read
    write = fresh if write is None else write
    hour = write if hour is None else hour
    return Tier(above, *(Decimal(price).scaleb(-6) for price in (fresh, output, read, write, hour)))


def undecorated(name: str) -> Iterator[str]:
    """The id, then the id with one ending after the other taken off; more than three is no agent's doing."""
    yield name
    for _ in range(3):
        ending = next((one for one in ENDINGS if name.endswith(one)), "")
        if not ending:
            break
        name = name.removesuffix(ending).rstrip()
        yield name


def unwrapped(name: str) -> Iterator[tuple[str, str]]:
    """The id, then what is left after each prefix, each time with the name of the provider that the prefix gives."""
    yield "", name
    while "/" in name:
        prefix, _, name = name.partition("/")
        yield prefix, name
    region, _, rest = name.partition(".")
    if rest and region in BEDROCK_REGIONS:
        yield "aws", rest
        name = rest
    maker, _, rest = name.partition(".")
    if rest and maker in BEDROCK_MAKERS:
        yield "aws", rest
        yield maker, rest


def spellings(name: str) -> Iterator[str]:
    """The ways in which lists write an id: without Bedrock's revision or Vertex's version, dates and versions dashed."""
    plain = re.sub(r"-v\d+:\d+$", "", name)
    forms = [name, plain, plain.replace("@", "-"), re.sub("@(default|latest)$", "", plain)]
    forms += [spelling for form in forms if form.startswith("claude-") for spelling in claude_spellings(form)]
    forms += [re.sub(r"-(20\d\d)([01]\d)([0-3]\d)(?=-|:|$)", r"-\1-\2-\3", form) for form in forms]
    return iter(dict.fromkeys(forms))


def claude_spellings(name: str) -> Iterator[str]:
    """claude-4.5-sonnet-thinking as claude-4-5-sonnet and claude-sonnet-4-5; Bedrock's revision may be a mere -v1."""
    dashed = re.sub(r"(-thinking|-v\d+)$", "", name.replace(".", "-"))
    yield dashed
    yield re.sub(r"^claude-(\d(?:-\d)?)-([a-z]+)", r"claude-\2-\1", dashed)


def own_prices(path: Path, content: bytes) -> tuple[dict[str, Listed], dict[str, str]]:
    """The user's models and aliases, by their ids in lower case. Raises InvalidValue that names the line."""
    import tomllib  # noqa: PLC0415 - only those who have such a file wait for it

    try:
        text = content.decode()
        document = tomllib.loads(text, parse_float=Decimal)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidValue(f"{path}, line {line}: not UTF-8 text; {MOVE_AWAY}") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(f"{path}: {error}; {MOVE_AWAY}") from error
    except (ValueError, ArithmeticError, RecursionError) as error:  # what tomllib lets Python itself say
        raise InvalidValue(f"{path}: a number has too many digits, or brackets nest too deep; {MOVE_AWAY}") from error
    for keys, reason in faults(document):
        raise InvalidValue(f"{path}, line {line_of(text, keys)}: {'.'.join(keys)} {reason}; {MOVE_AWAY}")
    models = {
        model.lower(): Listed("user", model, (Period(None, None, (tier(0, *map(prices.get, OWN_KEYS)),)),))
        for model, prices in document.get("models", {}).items()
    }
    return models, {alias.lower(): target for alias, target in document.get("aliases", {}).items()}


def faults(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Where the user's file is wrong, and why. The first one counts: what follows it takes for granted it is right."""
    for section, value in document.items():
        if section not in ("models", "aliases"):
            yield (section,), "is not known: there are [models] and [aliases]"
        if not isinstance(value, dict):
            yield (section,), "must be a table"
    for alias, target in document.get("aliases", {}).items():
        if not isinstance(target, str):
            yield ("aliases", alias), "must be the id of a model"
    for model, prices in document.get("models", {}).items():
        if not isinstance(prices, dict) or not prices.keys() >= {"input", "output"}:
            yield ("models", model), "must be a table with an input and an output price"
        yield from ((("models", model, key), reason) for key, reason in price_faults(prices))


def price_faults(prices: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, price in prices.items():
        if key not in OWN_KEYS:
            yield key, f"is not known: the prices are {', '.join(OWN_KEYS)}"
        if not is_price(price):
            yield key, "must be a number of USD per million tokens"


def is_price(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return False
    return Decimal(value).is_finite() and 0 <= value < HIGHEST_PRICE


def line_of(text: str, keys: Sequence[str]) -> int:
    """The line on which the last of nested keys stands; near it, where keys are written in an unusual way."""
    lines, number = text.split("\n"), 0
    for key in keys:
        word = re.compile(rf"(?<![\w-]){re.escape(key)}(?![\w-])")
        number = next((at for at in range(number, len(lines)) if word.search(lines[at])), number)
    return number + 1


def _content(user_file: Path | None) -> bytes:
    if user_file is None:
        return b""
    try:
        with regular(str(user_file)) as file:
            return file.read()
    except FileNotFoundError:
        return b""
    except UnreadableSession as error:
        raise InvalidValue(f"{error}; {MOVE_AWAY}") from error
    except OSError as error:
        raise InvalidValue(f"cannot read {user_file}: {error.strerror}; {MOVE_AWAY}") from error
