"""The price of a call: against genai-prices, by hand, and as agents write the names of models."""

import random
import runpy
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import genai_prices
import orjson
import pytest
from genai_prices.data_snapshot import get_snapshot

from amux import pricing
from amux.errors import InvalidValue
from amux.model import Charge, Usage
from amux.money import Prices
from amux.pricing import PriceTable

TABLE = orjson.loads(pricing.PRICES.read_bytes())
JANUARY = datetime(2026, 1, 15, 12, tzinfo=UTC)
MILLIONTH = Decimal("0.000001")


@pytest.fixture(scope="module")
def prices() -> PriceTable:
    return PriceTable.load()


@pytest.fixture
def own(tmp_path):
    """A table with a prices.toml of this text."""
    path = tmp_path / "prices.toml"

    def load(text: str) -> PriceTable:
        path.write_text(text, encoding="utf-8")
        return PriceTable.load(path)

    return load


def call(
    model: str | None,
    fresh: int | None = 1_000_000,
    output: int | None = 0,
    cached: int | None = 0,
    written: int | None = 0,
    **more: Any,
) -> Charge:
    usage = Usage(input_tokens=fresh, output_tokens=output, cached_tokens=cached, cache_write_tokens=written)
    return Charge(key="k", usage=usage, model=model, **({"at": JANUARY} | more))


# By hand


def test_whole_input_decides_the_tier(prices):
    """300,000 tokens of input, five sixths of them cached, put every token of the request in the tier above 200,000."""
    by_hand = 50_000 * Decimal("6e-6") + 250_000 * Decimal("0.6e-6") + 1_000 * Decimal("22.5e-6")

    cost = prices.price(call("claude-sonnet-4-5", 50_000, 1_000, 250_000))

    assert cost == by_hand == Decimal("0.4725")


def test_tier_begins_above_its_limit(prices):
    assert prices.price(call("claude-sonnet-4-5", 200_000)) == Decimal("0.6")
    assert prices.price(call("claude-sonnet-4-5", 200_001)) == 200_001 * Decimal("6e-6")


def test_hour_writes_cost_twice_the_input(prices):
    """20,000 of 30,000 written tokens were written for an hour: 2 x 3 USD a million; the others 1.25 x 3."""
    by_hand = 100 * 3 + 500 * 15 + 7_000 * Decimal("0.3") + 10_000 * Decimal("3.75") + 20_000 * 6

    cost = prices.price(call("claude-sonnet-4-5", 100, 500, 7_000, 30_000, hour_write_tokens=20_000))

    assert cost == by_hand / 1_000_000 == Decimal("0.1674")


def test_recorded_by_hermes(prices):
    assert prices.price(call("claude-opus-4-20250514", 2003, 403, 603, 83)) == Decimal("0.06273075")


@pytest.mark.parametrize(
    ("model", "per_million"),
    [
        ("claude-3-7-sonnet-20250219", "3 15 0.3 3.75 6"),
        ("claude-opus-4-5-20251101", "5 25 0.5 6.25 10"),
        ("claude-opus-5-5", "4 20 0.2 5 8"),
    ],
)
def test_prices_worked_out_from_claude_codes_own_totals(prices, model, per_million):
    tier = prices.find(model).periods[-1].tiers[0]

    assert [price * 1_000_000 for price in tier[1:]] == [Decimal(price) for price in per_million.split()]


def test_price_is_that_of_the_day(prices):
    """claude-sonnet-4-6 lost its tier on 2026-03-13 (UTC)."""
    before = call("claude-sonnet-4-6", 300_000, at=datetime(2026, 3, 12, 23, 59, 59, tzinfo=UTC))
    after = call("claude-sonnet-4-6", 300_000, at=datetime(2026, 3, 13, tzinfo=UTC))

    assert prices.price(before) == Decimal("1.8")
    assert prices.price(after) == Decimal("0.9")


def test_call_without_a_time_is_priced_at_the_tables_date(prices):
    assert prices.price(call("claude-sonnet-4-6", 300_000, at=None)) == Decimal("0.9")


def test_aggregate_is_priced_at_the_base_tier(prices):
    assert prices.price(call("claude-sonnet-4-5", 1_000_000, aggregate=True, calls=20)) == 3


def test_money_is_exact(prices):
    cost = prices.price(call("gpt-5-nano", 1, 1, 1))

    assert cost == Decimal("0.000000455")


# Against genai-prices


def test_table_is_what_make_prices_makes():
    """After an update of genai-prices: make prices."""
    make = runpy.run_path(str(Path(__file__).parent / "tools" / "make_prices.py"))
    made = make["table"]() | {"date": TABLE["date"]}

    assert TABLE["version"] == genai_prices.__version__
    assert make["text"](made).encode() == pricing.PRICES.read_bytes()


def test_table_is_small():
    assert len(pricing.PRICES.read_bytes()) < 200_000


def test_table_says_where_it_comes_from(prices):
    assert (prices.source, prices.version) == ("genai-prices", genai_prices.__version__)
    assert datetime.fromisoformat(prices.date)


def seller_named(provider: str) -> Any:
    return next(one for one in get_snapshot().providers if one.id == provider)


def ids(model: list[Any], seller: Any) -> list[str]:
    """Ids that genai-prices takes for this model: the texts of its rule where they are ids."""
    name, rule, _ = model
    texts = [text for operator in "=^$*" for text in (rule or {}).get(operator, ())] or [name]
    return [one for one in texts if (found := seller.find_model(one)) and found.id.lower() == name]


def moments(periods: list[list[Any]]) -> list[datetime]:
    """Both sides of every change of price, and times far from any."""
    found = [
        datetime(2024, 5, 1, 3, tzinfo=UTC),
        datetime(2026, 2, 10, 14, 30, tzinfo=UTC),
        datetime(2028, 1, 1, tzinfo=UTC),
    ]
    for when in filter(None, (when for when, *_ in periods)):
        if ":" in when:
            edges = [datetime.combine(JANUARY, time.fromisoformat(edge), UTC) for edge in when.split("-")]
        else:
            edges = [datetime.fromisoformat(when).replace(tzinfo=UTC)]
        found += [edge + shift for edge in edges for shift in (-timedelta(seconds=1), timedelta(0))]
    return found


def calls(chance: random.Random, model: str, provider: str | None, periods: list[list[Any]]) -> Iterator[Charge]:
    sizes = {0, 1, 50_000} | {start + more for _, *tiers in periods for start, *_ in tiers for more in (0, 1)}
    for at in moments(periods):
        for size in sizes:
            cached = chance.randint(0, size)
            written = chance.randint(0, size - cached)
            hour = chance.choice((0, chance.randint(0, written)))
            fresh, output = size - cached - written, chance.randint(0, 100_000)
            yield call(model, fresh, output, cached, written, at=at, provider=provider, hour_write_tokens=hour)


def list_price(charge: Charge, provider: str | None) -> Decimal:
    usage = charge.usage
    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens + usage.cached_tokens + usage.cache_write_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=charge.hour_write_tokens,
        output_tokens=usage.output_tokens,
    )
    return genai_prices.calc_price(
        counted, charge.model, provider_id=provider, genai_request_timestamp=charge.at
    ).total_price


@pytest.mark.parametrize("provider", TABLE["providers"])
def test_every_model_costs_what_genai_prices_says(prices, provider):
    seller = seller_named(provider)
    chance = random.Random(provider)
    for model in TABLE["providers"][provider]["models"]:
        name, _, periods = model
        known = ids(model, seller)
        assert known, name
        for one in known if periods is not None else ():
            for charge in calls(chance, one, provider, periods):
                if f"{provider} {name}" in TABLE["derived"]:
                    charge = replace(charge, hour_write_tokens=0)  # noqa: PLW2901
                assert abs(prices.price(charge) - list_price(charge, provider)) < MILLIONTH, charge


@pytest.mark.parametrize("provider", TABLE["providers"])
def test_what_was_left_out_of_the_table_costs_the_same_at_its_maker(prices, provider):
    """A model that its reseller and its maker list alike is in the table once."""
    now = datetime.fromisoformat(TABLE["date"]).replace(tzinfo=UTC)
    kept = {name for name, _, _ in TABLE["providers"][provider]["models"]}
    for model in seller_named(provider).models:
        if model.id.lower() not in kept and not model.id.endswith(":free"):
            charge = call(model.id, 90_000, 1_000, at=now, provider=provider)
            assert abs(prices.price(charge) - list_price(charge, provider)) < MILLIONTH, model.id


@pytest.mark.parametrize(
    "provider", ["anthropic", "openai", "google", "x-ai", "deepseek", "mistral", "moonshotai", "minimax"]
)
def test_without_a_provider_the_maker_is_asked_as_genai_prices_does(prices, provider):
    checked = 0
    for name, _, periods in TABLE["providers"][provider]["models"]:
        charge = call(name, 300_000, 1_000, 10)
        try:
            expected = list_price(charge, None)
        except LookupError:
            continue
        if periods:
            checked += 1
            assert abs(prices.price(charge) - expected) < MILLIONTH, name
    assert checked > 5


def test_derived_hour_writes_are_twice_the_input_as_are_the_listed(prices):
    derived = [name.split(" ") for name in TABLE["derived"]]
    listed = [["anthropic", name] for name, _, _ in TABLE["providers"]["anthropic"]["models"] if name > "claude-3"]

    for provider, name in derived + listed:
        found = next(periods for model, _, periods in TABLE["providers"][provider]["models"] if model == name)
        for _, *tiers in found or ():
            for _, fresh, *_, hour in tiers:
                assert Decimal(hour) == 2 * Decimal(fresh) or name == "claude-v1", (provider, name)


def test_no_price_is_a_float():
    rows = [
        cell
        for listing in TABLE["providers"].values()
        for _, _, periods in listing["models"]
        for _, *tiers in periods or ()
        for _, *cells in tiers
        for cell in cells
    ]

    assert len(rows) > 2_000
    assert {type(cell) for cell in rows} <= {str, type(None)}


# The names of models


@pytest.mark.parametrize(
    ("written", "listed"),
    [
        ("claude-sonnet-4-5-20250929", "anthropic claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929[1m]", "anthropic claude-sonnet-4-5"),
        ("claude-opus-5-5[1m]", "anthropic claude-opus-5-5"),
        ("anthropic/claude-sonnet-4.6", "anthropic claude-sonnet-4-6"),
        ("openrouter/anthropic/claude-sonnet-4.5", "anthropic claude-sonnet-4-5"),
        ("anthropic/claude-3.7-sonnet:thinking", "anthropic claude-3-7-sonnet-latest"),
        ("anthropic/claude-fable-5.1:beta", "anthropic claude-fable-5-1"),
        ("claude-4.5-sonnet", "anthropic claude-sonnet-4-5"),
        ("claude-4.5-sonnet-thinking", "anthropic claude-sonnet-4-5"),
        ("CLAUDE-SONNET-4-5", "anthropic claude-sonnet-4-5"),
        ("my-gateway/claude-sonnet-4-5-20250929", "anthropic claude-sonnet-4-5"),
        ("us.anthropic.claude-opus-4-8", "aws regional.anthropic.claude-opus-4-8-v1:0"),
        ("us.anthropic.claude-mythos-5-2-v1:0", "aws regional.anthropic.claude-mythos-5-2"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "aws regional.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("global.anthropic.claude-sonnet-5-v1:0", "aws global.anthropic.claude-sonnet-5-v1:0"),
        (
            "bedrock/eu.anthropic.claude-haiku-4-5-20251001-v1:0",
            "aws regional.anthropic.claude-haiku-4-5-20251001-v1:0",
        ),
        ("claude-opus-4@20250514", "anthropic claude-opus-4-0"),
        ("claude-fable-5@default", "anthropic claude-fable-5"),
        ("publishers/anthropic/models/claude-opus-4-1@20250805", "anthropic claude-opus-4-1"),
        ("openai/gpt-5", "openai gpt-5"),
        ("gpt-5-codex", "openai gpt-5"),
        ("gpt-5.1-codex-max", "openai gpt-5.1"),
        ("gpt-5.1-codex-max-xhigh", "openai gpt-5.1"),
        ("gpt-5 (high)", "openai gpt-5"),
        ("gpt-5 minimal", "openai gpt-5"),
        ("gpt-5.2-20251211", "openai gpt-5.2"),
        ("o3-mini-high", "openai o3-mini"),
        ("azure/gpt-5.1", "openai gpt-5.1"),
        ("codex-mini-latest", "openai codex-mini"),
        ("glm-4.6", "zai glm-4.6"),
        ("z-ai/glm-4.6", "zai glm-4.6"),
        ("zai-org/GLM-4.6", "zai glm-4.6"),
        ("gemini-3-pro-preview", "google gemini-3-pro-preview"),
        ("models/gemini-2.5-pro", "google gemini-2.5-pro"),
        ("moonshotai/kimi-k2-thinking", "moonshotai kimi-k2-thinking"),
        ("xai/grok-code-fast-1", "x-ai grok-code-fast-1"),
        ("qwen/qwen3-coder", "openrouter qwen/qwen3-coder"),
        ("qwen3-coder-plus", "openrouter qwen/qwen3-coder-plus"),
        ("composer-2.5-fast", "cursor composer-2.5-fast"),
    ],
)
def test_model_is_found_as_agents_write_it(prices, written, listed):
    found = prices.find(written)

    assert found is not None
    assert f"{found.provider} {found.model}" == listed


@pytest.mark.parametrize(
    "written",
    [
        None,
        "",
        "auto",
        "default",
        "mock-model",
        "claude",
        "claude-opus-9",
        "claude-opus-5-6",
        "us.anthropic.claude-opus-9-v1:0",
        "gpt-5.1-codex-ultra",
        "openai/gpt-5.1-codex-ultra-high",
        "gpt-5-high-speed",
        "glm-5-v2",
        "composer-1",
        "openrouter/auto",
        "custom:Claude-Sonnet-4-5-0",
        "custom:claude-sonnet-4-5",
        "custom:gemini-1.5-pro-0",
        "gpt-live-1",
        "gpt-5\n",
        "gpt-5\x00",
        "\x1b[31mclaude-sonnet-4-5",
        "claude-sonnet-4-5-" + "9" * 10_000,
        "/" * 10_000,
        "us.",
        "anthropic/",
    ],
)
def test_what_is_not_listed_has_no_price(prices, written):
    assert prices.price(call(written)) is None
    assert not prices.is_free(written)


@pytest.mark.parametrize("provider", [None, "", "mock", "anthropic-messages", "\x00", "x" * 10_000])
def test_provider_nobody_knows_changes_nothing(prices, provider):
    assert prices.price(call("claude-opus-5-5", provider=provider)) == 4


@pytest.mark.parametrize(
    ("model", "provider", "per_million"),
    [
        ("glm-4.7", "zai-coding-plan", "0.6"),
        ("glm-4.7", "zhipuai", "0.276"),
        ("openai/gpt-oss-120b", "groq", "0.15"),
        ("openai/gpt-oss-120b", None, "0.039"),
        ("claude-opus-4.8-fast", "github-copilot", "10"),
        ("gpt-4.1", "github-copilot", "2"),
        ("global.anthropic.claude-opus-5", "amazon-bedrock", "5"),
        ("anthropic.claude-opus-5", "amazon-bedrock", "5.5"),
        ("claude-sonnet-4-5", "openai", "6"),
    ],
)
def test_provider_that_sells_the_model_sets_the_price(prices, model, provider, per_million):
    assert prices.price(call(model, provider=provider)) == Decimal(per_million)


@pytest.mark.parametrize("model", ["<synthetic>", "qwen/qwen3-coder:free", "openrouter/deepseek/deepseek-r1:free"])
def test_free_models_cost_nothing_and_say_so(prices, model):
    assert prices.price(call(model)) == 0
    assert prices.price(Charge(key="k", usage=Usage(), model=model)) == 0
    assert prices.is_free(model)


def test_known_model_without_tokens_on_record_is_not_free(prices):
    assert prices.price(Charge(key="k", usage=Usage(), model="gpt-5")) is None
    assert prices.price(call("gpt-5", None, 10, None, None)) == Decimal("0.0001")
    assert not prices.is_free("gpt-5")


def test_no_more_hour_writes_than_writes(prices):
    assert prices.price(call("claude-opus-5-5", 0, 0, 0, 100, hour_write_tokens=10**9)) == Decimal("0.0008")


# The user's prices


def test_own_model(own):
    prices = own(
        '[models."My-Model"]\ninput = 3\noutput = 15.5\ncache_read = 0.3\ncache_write = 3.75\ncache_write_1h = 6.0'
    )

    cost = prices.price(call("gateway/my-model", 10, 20, 30, 40, hour_write_tokens=15))

    assert cost == Decimal(30 + 310 + 9 + 25 * Decimal("3.75") + 90) / 1_000_000


def test_cache_prices_left_out_are_those_of_fresh_input(own):
    prices = own("[models.mine]\ninput = 2\noutput = 4")

    assert prices.price(call("mine", 100, 0, 100, 200, hour_write_tokens=100)) == Decimal("0.0008")


def test_own_prices_go_before_the_tables(own):
    prices = own('[models."claude-sonnet-4-5"]\ninput = 1\noutput = 1\n[models."gpt-5"]\ninput = 0\noutput = 0')

    assert prices.price(call("anthropic/claude-sonnet-4-5-20250929")) == 1
    assert prices.price(call("gpt-5")) == 0
    assert prices.is_free("gpt-5")
    assert prices.price(call("claude-opus-5-5")) == 4


def test_alias(own):
    prices = own(
        '[aliases]\n"custom:My-Model-0" = "claude-opus-5-5"\nhouse = "mine"\n[models.mine]\ninput = 7\noutput = 1'
    )

    assert prices.price(call("custom:My-Model-0")) == 4
    assert prices.price(call("House")) == 7


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[models."a"]\ninput = 3.0\noutput 5', "line 3"),
        ("[models.a]\ninput = 3\noutput = -1", "line 3: models.a.output must be a number of USD"),
        ("[models.a]\ninput = 3\noutput = nan", "line 3: models.a.output must be a number of USD"),
        ("[models.a]\ninput = true\noutput = 1", "line 2: models.a.input must be a number of USD"),
        ('[models.a]\ninput = 1\noutput = "15"', "line 3: models.a.output must be a number of USD"),
        ("\n[models.a]\ninput = 1\noutput = 2\ncache = 1", "line 5: models.a.cache is not known"),
        (
            "[models.a]\ninput = 1\noutput = 2\ncache_write_1h = 1\ncache_write = inf",
            "line 5: models.a.cache_write must be a number of USD",
        ),
        ('[models."b.c"]\noutput = 1', "line 1: models.b.c must be a table with an input and an output price"),
        ("[models]\na = 3", "line 2: models.a must be a table with an input and an output price"),
        ("models = 3", "line 1: models must be a table"),
        ("\n[prices.a]\ninput = 1", "line 2: prices is not known"),
        ("[aliases]\na = 3", "line 2: aliases.a must be the id of a model"),
        ('[aliases]\nb = "gpt-5"\nA = "claude-opus-9"', "line 3: 'a' stands for 'claude-opus-9', which has no price"),
    ],
)
def test_broken_file_is_an_error_that_names_the_line(own, tmp_path, text, complaint):
    with pytest.raises(InvalidValue) as raised:
        own(text)

    assert str(tmp_path / "prices.toml") in str(raised.value)
    assert complaint in str(raised.value)


def test_file_that_is_no_text_is_an_error(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_bytes(b"# prices\n[models.\xff]")

    with pytest.raises(InvalidValue, match="line 2: not UTF-8"):
        PriceTable.load(path)
    with pytest.raises(InvalidValue, match="cannot read"):
        PriceTable.load(tmp_path)


def test_file_that_is_not_there_sets_nothing(tmp_path, prices):
    path = tmp_path / "none" / "prices.toml"

    assert PriceTable.load(path).version == prices.version


def test_the_fingerprint_changes_with_the_users_prices(tmp_path):
    path = tmp_path / "prices.toml"
    before = Prices(path).fingerprint
    path.write_text("[models.mine]\ninput = 1\noutput = 2")
    first = Prices(path).fingerprint
    path.write_text("[models.mine]\ninput = 1\noutput = 33")

    assert len({before, first, Prices(path).fingerprint}) == 3
