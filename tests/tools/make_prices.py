"""Writes amux/prices.json from the genai-prices package: `make prices`.

The table holds what genai-prices says of the providers that coding agents are used with, one model a line, in its order,
which decides where two rules match. What is left out, added or worked out is said in the constants below.
"""

import json
from datetime import UTC, datetime, time
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices import types
from genai_prices.data import providers

from amux.pricing import PriceTable

OUT = Path(__file__).parents[2] / "amux" / "prices.json"

NAMES = {
    "anthropic": (),
    "aws": ("amazon", "amazon-bedrock", "bedrock"),
    "cerebras": (),
    "cohere": (),
    "cursor": (),
    "deepseek": ("deepseek-ai",),
    "fireworks": ("fireworks-ai", "fireworks_ai"),
    "github-copilot": ("copilot", "github_copilot"),
    "google": ("gemini", "google-vertex", "google-vertex-anthropic", "vertex", "vertex_ai"),
    "groq": (),
    "meta": (),
    "minimax": ("minimaxai",),
    "mistral": ("mistralai",),
    "moonshotai": ("moonshot",),
    "openai": (),
    "openrouter": (),
    "together": ("together-ai", "together_ai", "togetherai"),
    "x-ai": ("xai",),
    "zai": ("z-ai", "z.ai", "zai-coding-plan", "zai-org"),
    "zhipuai": ("bigmodel", "zhipu", "zhipuai-coding-plan"),
}
"""The providers in the table and what else agents call them."""

MORE_CLAIMS = {
    "openai": {"^": ["chatgpt-", "codex-"]},
    "zai": {"^": ["glm-"]},  # before zhipuai, whose list is in CNY and of which genai-prices has the cheapest tier only
}
"""Ids that genai-prices prices only when it is told the provider."""

OTHERWISE = {"openrouter": [["qwen", "qwen"], ["qwq", "qwen"]]}
"""Who sells what no maker lists: an id that begins with the first is `second/id` there."""

SUBSCRIPTION = "github-copilot"
"""No price there means that the subscription includes the model, not that it is free."""

WHOLE = "aws"
"""Its list is taken whole: what its regions have in common with the maker stands between entries that differ."""

UNKNOWN = {
    ("cerebras", "qwen-3-coder-480b"),  # withdrawn, its price no longer known
    ("google", "gemma-3"),  # free at Google alone, and `google/gemma-…` is what all others call it
    ("google", "gemma-3n"),
    ("google", "gemma-4-26b-a4b-it"),
    ("google", "gemma-4-31b-it"),
    ("openrouter", "google/lyria-3-clip-preview"),  # music, by the piece
    ("openrouter", "google/lyria-3-pro-preview"),
}
"""Models without a price in genai-prices that do cost something."""

COLUMNS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")
HOUR = COLUMNS.index("cache_write_1h_mtok")
OTHER_UNITS = ("requests_kcount", "output_reasoning_mtok", "output_citation_mtok")
"""Prices that cannot be worked out from the tokens of a charge."""

ABOUT = (
    "Made by `make prices`; do not edit. From genai-prices, MIT License, Copyright (c) Pydantic Services Inc.",
    "A model is [id, rule, periods]. Without a rule the id must be equal; a rule holds when one of its tests does:",
    "= equals, ^ starts with, $ ends with, * contains, ~ regular expression, & all of these rules.",
    "A period is [when, tier, tier...]: from a day on, HH:MM-HH:MM (UTC) of every day, or null for always;",
    "of those active the last one holds. No periods: free. null instead: not sold by the token.",
    "A tier is [above, input, output, cache read, cache write, 1-hour cache write] in USD per million tokens,",
    "for the whole of a request with more input than `above`.",
    "`derived` are models whose 1-hour cache write the source does not list: twice the input, as Anthropic has it.",
)

OPERATORS = {"equals": "=", "starts_with": "^", "ends_with": "$", "contains": "*", "regex": "~"}


def rule(match: Any) -> dict[str, Any]:
    """A clause of genai-prices in the table's form, in lower case as genai-prices compares; an expression stays."""
    if isinstance(match, types.ClauseAnd):
        return {"&": [rule(clause) for clause in match.and_]}
    if isinstance(match, types.ClauseOr):
        merged: dict[str, Any] = {}
        for clause in match.or_:
            for operator, tests in rule(clause).items():
                if operator == "&" and "&" in merged:
                    raise SystemExit(f"two alternatives of several tests each have no form in the table: {match}")
                known = merged.setdefault(operator, [])
                known.extend(test for test in tests if test not in known)
        return merged
    ((name, text),) = vars(match).items()
    return {OPERATORS[name]: [text if name == "regex" else text.lower()]}


def tiers(prices: Any) -> list[list[Any]] | None:
    """The token prices, one row for each size of a request at which one of them changes; None without a price."""
    listed = vars(prices)
    if not listed.keys() >= {"input_mtok", "output_mtok"} or listed.keys() & set(OTHER_UNITS):
        return None
    starts = {tier.start for price in listed.values() if isinstance(price, types.TieredPrices) for tier in price.tiers}
    return [row(listed, start) for start in sorted({0} | starts)]


def row(listed: dict[str, Any], start: int) -> list[Any]:
    cells = [cell(listed.get(column), start) for column in COLUMNS]
    while cells[-1] is None:
        cells.pop()
    return [start, *cells]


def cell(price: Any, start: int) -> str | None:
    if isinstance(price, types.TieredPrices):
        reached = [tier.price for tier in price.tiers if tier.start <= start]
        price = reached[-1] if reached and start else price.base
    return None if price is None else written(price)


def written(price: Decimal) -> str:
    return format(price.normalize(), "f")


def when(constraint: Any) -> str | None:
    if isinstance(constraint, types.StartDateConstraint):
        return constraint.start_date.isoformat()
    if isinstance(constraint, types.TimeOfDateConstraint):
        return f"{hour(constraint.start_time)}-{hour(constraint.end_time)}"
    return None


def hour(moment: time) -> str:
    if moment.tzinfo not in (None, UTC) or moment.second:
        raise SystemExit(f"{moment} has no form in the table: hours and minutes in UTC")
    return moment.strftime("%H:%M")


def periods(model: Any) -> list[list[Any]] | None:
    """The prices by their time, without changes that are of other prices than those of tokens."""
    listed = model.prices if isinstance(model.prices, list) else [types.ConditionalPrice(prices=model.prices)]
    kept: list[list[Any]] = []
    for one in listed:
        rows = tiers(one.prices)
        if rows is None:
            return None
        starts = when(one.constraint)
        unchanged = kept and rows == kept[-1][1:] and ":" not in f"{starts}{kept[-1][0]}"
        if not unchanged:
            kept.append([starts, *rows])
    return kept


def entry(provider: Any, model: Any) -> list[Any]:
    test = rule(model.match)
    name = model.id.lower()
    return [name, None if test == {"=": [name]} else test, prices(provider, model)]


def prices(provider: Any, model: Any) -> list[list[Any]] | None:
    nothing = isinstance(model.prices, types.ModelPrice) and not vars(model.prices)
    if nothing and provider.id != SUBSCRIPTION and (provider.id, model.id) not in UNKNOWN:
        return []
    return periods(model)


def claims(provider: Any) -> dict[str, Any]:
    found = rule(provider.model_match) if provider.model_match else {}
    for operator, tests in MORE_CLAIMS.get(provider.id, {}).items():
        found[operator] = [*found.get(operator, ()), *tests]
    return found


def with_hour_writes(model: list[Any]) -> bool:
    """Puts twice the input where a Claude has a price of cache writes but none of those kept for an hour."""
    name, _, listed = model
    changed = False
    for _, *rows in listed or () if "claude" in name else ():
        for cells in rows:
            if len(cells) == 1 + HOUR and cells[HOUR] is not None:
                cells.append(written(2 * Decimal(cells[1])))
                changed = True
    return changed


def names(model: list[Any]) -> set[str]:
    """The texts in a model's rule, each of which is an id it matches or the characteristic part of one."""
    name, test, _ = model
    return {text for operator in "=^$*" for text in (test or {}).get(operator, ())} or {name}


def repeated(provider: str, model: list[Any], makers: PriceTable, listings: dict[str, Any]) -> bool:
    """Whether the model's maker lists it, under every name, at prices that are the same or more complete.

    Resellers often leave out the prices of caches and of the past; their entries would charge cached input as fresh.
    """
    found = {makers.find(name) for name in names(model)}
    listed = found.pop()
    if found or not listed or not listed.periods or provider in (listed.provider, WHOLE):
        return False
    ours = model[2] or []
    theirs = next(theirs for name, _, theirs in listings[listed.provider]["models"] if name == listed.model)
    when, *now = next(one for one in reversed(theirs) if one[0] is None or one[0] <= today())
    if len(ours) != 1 or len(ours[0][1:]) != len(now) or (when and ":" in when):
        return False
    return all(covered(our, their) for our, their in zip(ours[0][1:], now, strict=True))


def covered(ours: list[Any], theirs: list[Any]) -> bool:
    same = all(our in (None, their) for our, their in zip(ours, theirs, strict=False))
    return same and len(ours) <= len(theirs)


def table() -> dict[str, Any]:
    listings: dict[str, Any] = {}
    for provider in providers:
        if provider.id in NAMES:
            models = [entry(provider, model) for model in provider.models if not model.id.endswith(":free")]
            listings[provider.id] = {"names": NAMES[provider.id], "claims": claims(provider), "models": models}
    whole = {"source": "genai-prices", "version": version("genai-prices"), "date": today(), "providers": listings}
    makers = PriceTable(whole | {"providers": {name: one for name, one in listings.items() if one["claims"]}})
    kept = {
        name: [one for one in listing["models"] if not repeated(name, one, makers, listings)]
        for name, listing in listings.items()
    }
    derived = [f"{name} {one[0]}" for name, models in kept.items() for one in models if with_hour_writes(one)]
    listings = {
        name: {key: value for key, value in (listing | {"models": kept[name]}).items() if value}
        for name, listing in listings.items()
    }
    return whole | {"about": ABOUT, "derived": derived, "otherwise": OTHERWISE, "providers": listings}


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def text(whole: dict[str, Any]) -> str:
    """JSON with one model a line, so that a change of prices is a change of lines."""
    head = {key: value for key, value in whole.items() if key != "providers"}
    lines = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}") + ',\n "providers": {\n'
    return (
        lines + ",\n".join(f'  "{name}": {listing_text(one)}' for name, one in whole["providers"].items()) + "\n }\n}\n"
    )


def listing_text(listing: dict[str, Any]) -> str:
    head = json.dumps({key: value for key, value in listing.items() if key != "models"}, ensure_ascii=False)
    models = ",\n".join(
        f"   {json.dumps(model, ensure_ascii=False, separators=(',', ':'))}" for model in listing["models"]
    )
    comma = ", " if head != "{}" else ""
    return f'{head.removesuffix("}")}{comma}"models": [\n{models}\n  ]}}'


def main() -> None:
    made = table()
    if OUT.exists():
        old = json.loads(OUT.read_text(encoding="utf-8"))
        if old | {"date": ""} == json.loads(text(made)) | {"date": ""}:
            made["date"] = old["date"]  # the day from which these prices are in use
    OUT.write_text(text(made), encoding="utf-8")


if __name__ == "__main__":
    main()
