"""Which runs are repeats, which a curve, and which stand aside."""

from dataclasses import replace

import pytest

from archfit.fit.cells import cells_of, families_of, tuned
from archfit.spec import Factorised
from tests_curves import RECIPE, record, shape

HOT = replace(RECIPE, peak_learning_rate=1e-2)


def test_seeds_make_a_cell_and_its_loss_is_the_last_one() -> None:
    (cell,) = cells_of(record(shape(2, 64), loss, seed) for seed, loss in enumerate((3.0, 3.2)))
    assert cell.losses == (3.0, 3.2)  # half-way they were higher by 0.5
    assert cell.mean == pytest.approx(3.1)
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
    ]
    families = families_of(cells_of(record(one, 3.0, 0) for one in shapes))
    assert sorted(len(family.cells) for family in families) == [1, 1, 1, 1, 3]


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
