"""A check that could say nothing is refused before anything is trained."""

from dataclasses import replace

import pytest

from archfit.advise.check import LEAST_SEEDS, MOST_SEEDS, affordable_seeds, refuse_too_few
from tests_advice import made_check, plan_of


def test_too_few_networks_or_seeds_are_refused_with_those_that_are_enough() -> None:
    cells = made_check(plan_of("bytes"), 0.2, {}).cells
    assert len(cells) == 3
    refuse_too_few(cells, 3)
    with pytest.raises(ValueError, match=r"seeds=2 of 3 networks say too little.*use --seeds 3"):
        refuse_too_few(cells, 2)
    smaller = replace(cells[0], size=0.5)  # the same network once more is no rival
    with pytest.raises(ValueError, match=r"no rival of other depth.*use a larger --max-depth"):
        refuse_too_few((cells[0], smaller), 3)


def test_seeds_take_nearly_all_of_the_time_and_neither_too_few_nor_too_many() -> None:
    assert affordable_seeds(100.0, 600.0) == 5  # 95 % of 600 s pays for 5.7 seeds
    assert affordable_seeds(95.0, 600.0) == 6
    assert affordable_seeds(300.0, 600.0) == LEAST_SEEDS
    assert affordable_seeds(0.0, 600.0) == MOST_SEEDS
