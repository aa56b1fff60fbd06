"""Automatic learning rates: the rule written out, its range, and what options make of it."""

import tomllib
from dataclasses import replace
from importlib import resources

import pytest

from archfit.spec import RunSpec
from archfit.spec.rates import WIDEST, auto_rate, beyond_rates, starting_point
from archfit.spec.run_options import RunOptions, usual_rate

TABLE = tomllib.loads(
    resources.files("archfit.resources").joinpath("rates.toml").read_text(encoding="utf-8")
)
OPTIONS = RunOptions(precision="float32", batch=16, context=256, steps=500)


def spec_of(**options: object) -> RunSpec:
    wanted = replace(OPTIONS, **options)  # type: ignore[arg-type]  # it checks
    return wanted.spec(vocab=257, data_hash="0" * 64, seed=0)


@pytest.mark.parametrize("block", ["gpt2", "llama"])
def test_the_rate_is_a_product_of_powers(block: str) -> None:
    rate = auto_rate(block, width=128, batch_tokens=4096)
    product = TABLE["rate"][block] * 2 ** TABLE["width_power"] * 0.5 ** TABLE["batch_power"]
    assert rate == pytest.approx(product, rel=0.005)  # three digits
    assert len(f"{rate:.10g}".lstrip("0.")) <= 3


def test_a_search_begins_at_our_rule_for_networks_like_ours_and_at_gpt_3s_for_wide_ones() -> None:
    narrow, wide = (
        starting_point("gpt2", depth=6, width=width, context=128, tokens=10**8)
        for width in (WIDEST, WIDEST + 1)
    )
    assert narrow.learning_rate == auto_rate("gpt2", width=WIDEST, batch_tokens=32_768)
    assert wide.learning_rate == pytest.approx(6e-4 * 768 / (WIDEST + 1), rel=0.005)
    assert (narrow.batch_tokens, wide.batch_tokens) == (32_768, 32_768)
    assert "archfit" in narrow.source
    assert "Brown" in wide.source


def test_an_automatic_rate_is_a_number_before_it_is_hashed() -> None:
    automatic = spec_of(learning_rate="auto", block="llama")
    rate = auto_rate("llama", width=64, batch_tokens=4096)
    assert automatic.recipe.peak_learning_rate == rate
    by_hand = spec_of(learning_rate=rate, block="llama", learning_rate_rule="fan-in")
    assert automatic.hash == by_hand.hash


def test_automatic_rates_come_with_the_rule_that_they_were_fitted_for() -> None:
    recipe = spec_of(learning_rate="auto").recipe
    assert (recipe.learning_rate_rule, recipe.warmup_steps, recipe.beta2) == ("fan-in", 150, 0.95)
    plain = spec_of().recipe
    assert (plain.learning_rate_rule, plain.warmup_steps, plain.beta2) == ("standard", 50, 0.999)
    assert plain.peak_learning_rate == usual_rate(64, "standard")
    given = spec_of(learning_rate="auto", warmup=7, beta2=0.9).recipe
    assert (given.warmup_steps, given.beta2) == (7, 0.9)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"learning_rate": "fast"}, "learning_rate='fast' is neither a number nor auto; use 0.002"),
        (
            {"learning_rate": "auto", "learning_rate_rule": "completep"},
            "learning_rate='auto' is a rate of the rule fan-in, not of completep; leave out",
        ),
    ],
)
def test_what_is_no_rate_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        spec_of(**options)


def test_neighbours_are_half_the_rate_the_rate_and_twice_it_under_one_rule() -> None:
    middle = replace(OPTIONS, learning_rate="auto").recipe()
    recipes = [spec_of(learning_rate="auto").at_rate(factor).recipe for factor in (0.5, 1.0, 2.0)]
    rates = [recipe.peak_learning_rate / middle.peak_learning_rate for recipe in recipes]
    assert rates == [0.5, 1.0, 2.0]
    assert [replace(r, peak_learning_rate=1.0) for r in recipes] == [
        replace(middle, peak_learning_rate=1.0)
    ] * 3


def test_networks_beyond_the_fit_are_told_and_not_refused() -> None:
    assert beyond_rates(spec_of(learning_rate="auto")) is None
    assert beyond_rates(spec_of(width=1024)) is None  # the rule has no part in it
    wide = beyond_rates(spec_of(learning_rate="auto", width=1024, depth=40, steps=10))
    assert wide is not None
    for part in ("width 1,024 (16 to 256)", "depth 40 (1 to 32)", "steps 10 (200 to 10,000)"):
        assert part in wide
    assert "--tune" in wide
