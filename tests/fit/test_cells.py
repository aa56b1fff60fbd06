"""Which runs are repeats, which a curve, and which stand aside."""

import math
from dataclasses import replace

import pytest

from archfit.fit.cells import CellResult, cells_of, families_of, multiple_of, tuned
from archfit.fit.comparisons import rankings
from archfit.fit.noise import noise_of
from archfit.spec import Architecture, Factorised, Rotary
from archfit.spec.architecture import gated_units
from tests_curves import DATA, RECIPE, record, shape

HOT = replace(RECIPE, peak_learning_rate=1e-2)


def test_seeds_make_a_cell_and_its_loss_is_the_last_one() -> None:
    (cell,) = cells_of(record(shape(2, 64), loss, seed) for seed, loss in enumerate((3.0, 3.2)))
    assert cell.losses == (3.0, 3.2)  # half-way they were higher by 0.5
    assert cell.mean == pytest.approx(3.1)
    assert cell.squares == pytest.approx(0.02)
    assert cell.bits_per_byte == pytest.approx(3.1 / math.log(2) / 3)
    assert cell.size == 12 * 2 * 64**2


def test_diverged_runs_stand_aside() -> None:
    records = [record(shape(2, 64), 3.0, 0), record(shape(2, 64), 9.0, 1, diverged=True)]
    (cell,) = cells_of(records)
    assert cell.losses == (3.0,)


def test_the_best_learning_rate_stands_for_a_shape() -> None:
    records = [record(shape(2, 64), 3.0, 0), record(shape(2, 64), 2.9, 0, recipe=HOT)]
    best, (tuning,) = tuned(cells_of(records))
    assert [cell.mean for cell in best] == [2.9]
    assert (tuning.rates, tuning.best) == ((1.6e-3, 1e-2), 1e-2)


def test_a_family_holds_widths_and_heads_that_follow_them() -> None:
    shapes = [
        shape(2, 64),
        shape(2, 96, heads=4),
        replace(shape(2, 90), heads=4, head_dim=22),  # a ratio of 0.98
        shape(2, 64, heads=8, head_dim=16),  # a ratio of 2
        shape(4, 64),
        shape(2, 64, vocab=500),
        shape(2, 64, embedding=Factorised(inner=8)),
        shape(2, 64, positions=Factorised(inner=8)),
        shape(2, 64, head=Factorised(inner=8)),
        shape(2, 64, feed_forward=128),
        shape(2, 64, context=64),
    ]
    families = families_of(cells_of(record(one, 3.0, 0) for one in shapes))
    assert sorted(len(family.cells) for family in families) == [1, 1, 1, 1, 1, 1, 1, 1, 3]
    depths = [family.key.depth for family in families]
    assert depths == sorted(depths)


def test_a_family_counts_its_sizes_and_its_fewest_seeds() -> None:
    shapes = [shape(2, 64), shape(2, 64, heads=4), shape(2, 128)]
    runs = [(shapes[0], 3.0, 0), (shapes[1], 2.9, 0), (shapes[1], 2.9, 1), (shapes[2], 2.0, 0)]
    (family,) = families_of(cells_of(record(*run) for run in runs))
    assert (family.sizes, family.seeds, len(family.cells)) == (2, 1, 3)
    assert [cell.mean for cell in family.cells] == [2.9, 3.0, 2.0]  # smallest first, then best
    assert family.log_range == (math.log(12 * 2 * 64**2), math.log(12 * 2 * 128**2))


@pytest.mark.parametrize(("head_dim", "step"), [(32, 0), (33, 1), (34, 1), (64, 14), (16, -14)])
def test_attention_ratios_are_told_by_steps_of_five_percent(head_dim: int, step: int) -> None:
    (cell,) = cells_of([record(shape(2, 64, head_dim=head_dim), 3.0, 0)])
    assert cell.key.attention_step == step


def test_a_family_without_its_limits_is_that_of_full_tables() -> None:
    limited = shape(2, 64, embedding=Factorised(inner=8), head=Factorised(inner=4))
    first, second = (c.key for c in cells_of(record(a, 3.0, 0) for a in (limited, shape(2, 64))))
    key, full = (first, second) if first.factorised else (second, first)
    assert key.factorised == ("embedding", "head")
    assert key.words == "embedding rank 8, head rank 4"
    assert key.with_full_tables == full
    assert (full.words, full.any_depth.depth) == ("", 1)


def test_other_recipes_are_other_families() -> None:
    longer = replace(RECIPE, steps=2000)
    records = [record(shape(2, 64), 3.0, 0), record(shape(2, 96), 3.0, 0, recipe=longer)]
    assert len(families_of(cells_of(records))) == 2


def test_the_width_of_a_size_is_that_of_the_members() -> None:
    (family,) = families_of(cells_of(record(shape(3, w), 3.0, 0) for w in (64, 96, 128)))
    for cell in family.cells:
        assert family.width_at(cell.log_size) == pytest.approx(cell.architecture.width)


@pytest.mark.parametrize("ratio", [1, 2, 4, 8, 16])
def test_widths_that_heads_do_not_divide_stay_in_the_family_of_their_ratio(ratio: int) -> None:
    dims = (ratio * 100 - 1, ratio * 100, ratio * 100 + 1)
    shapes = [shape(4, 200, head_dim=head_dim) for head_dim in dims]
    (family,) = families_of(cells_of(record(one, 3.0, 0) for one in shapes))
    assert family.key.words == ("" if ratio == 1 else f"attention ratio {ratio}")


def test_blocks_objectives_and_their_parts_are_families_of_their_own() -> None:
    widths = (32, 64, 90, 96, 128)  # whose gated units are 2.6 to 2.8 times as many
    shapes = [
        *(_llama(width) for width in widths),
        _llama(64, feed_forward=192),
        _llama(64, kv_heads=1),
        _llama(64, qk_norm=True),
        _llama(64, objective="masked"),
        shape(2, 64),
        shape(2, 64, objective="masked"),
        shape(2, 64, feed_forward=200),
    ]
    families = families_of(cells_of(record(one, 3.0, 0) for one in shapes))
    assert sorted(len(family.cells) for family in families) == [1, 1, 1, 1, 1, 1, 1, 5]


def _llama(width: int, **more: object) -> Architecture:
    usual = {"feed_forward": gated_units(width), "head_dim": width // 4 * 2}
    parts = {"block": "llama", "positions": Rotary(), **usual, **more}
    return replace(shape(2, width), **parts)  # type: ignore[arg-type]  # it checks


def test_units_near_a_whole_multiple_count_as_that_and_others_to_5_percent() -> None:
    multiples = [multiple_of(shape(2, 64, feed_forward=units)) for units in (256, 253, 200, 203)]
    assert multiples[:2] == [4, 4]
    assert multiples[2] == multiples[3] == pytest.approx(200 / 64, rel=0.025)


def test_a_cell_of_0_1_keeps_the_text_that_seeds_its_resamples() -> None:
    (cell,) = cells_of([record(shape(2, 64), 3.0, 0)])
    old = (
        "(Architecture(depth=2, width=64, heads=2, head_dim=32, attention=Softmax(), "
        "feed_forward_multiple=4, context=128, input=Tokens(vocab=2000), embedding=Full(), "
        f"positions=Full(), head=Full()), {DATA!r}, Recipe(steps=1000, "
    )
    assert cell.text.startswith(old)
    key = repr(cell.key)
    assert key.startswith(f"FamilyKey(data_hash={DATA!r}, recipe=Recipe(steps=1000, ")
    assert key.endswith(
        "depth=2, attention=Softmax(), attention_step=0, feed_forward_multiple=4, context=128, "
        "input=Tokens(vocab=2000), embedding=Full(), positions=Full(), head=Full())"
    )


def test_losses_of_masked_and_of_next_tokens_are_never_compared() -> None:
    def pair(objective: str) -> tuple[CellResult, ...]:
        shapes = shape(2, 64, vocab=500), shape(2, 64, vocab=501, objective=objective)
        runs = [(one, seed) for one in shapes for seed in range(4)]
        return cells_of(record(one, 3.0 + 0.1 * seed, seed) for one, seed in runs)

    assert len(rankings(pair("causal"))) == len(noise_of(pair("causal"))) == 1
    assert rankings(pair("masked")) == ()
    assert {noise.cells[0].architecture.objective for noise in noise_of(pair("masked"))} == {
        "causal",
        "masked",
    }
