import math
from dataclasses import replace

import pytest

from archfit.train.schedule import learning_rate
from tests_training import RECIPE

EIGHTH = math.cos(math.pi / 4)


@pytest.mark.parametrize(
    ("warmup", "rates"),
    [
        (0, [1, (1 + EIGHTH) / 2, 1 / 2, (1 - EIGHTH) / 2]),
        (1, [1, 1, 3 / 4, 1 / 4]),
        (2, [1 / 2, 1, 1, 1 / 2]),
        (4, [1 / 4, 1 / 2, 3 / 4, 1]),
    ],
)
def test_four_steps_have_the_rates_of_the_formula(warmup: int, rates: list[float]) -> None:
    recipe = replace(RECIPE, steps=4, warmup_steps=warmup, peak_learning_rate=3.0)
    found = [learning_rate(step, recipe) / 3 for step in range(4)]
    assert found == pytest.approx(rates, abs=1e-12)
