"""A thousand random shapes: balls hold exact values, relaxations lie on their side, and every
lower bound is below every upper bound that holds.
"""

import random
from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from archfit.theory import quantity
from archfit.theory.bounds import lower_bounds, upper_bounds
from archfit.theory.catalogue import ENTRIES
from archfit.theory.reals import digits, log3
from archfit.theory.shape import Shape

CASES = 1200
WITH_LOGARITHM = {name: f"{name}_log3" for name in ENTRIES if f"{name}_log3" in ENTRIES}
# Their logarithm takes the middle split, or counts words and monomials more generously.
SIMPLE_SPLIT = {"ub_stat_vocab", "ub_stat_pos", "ub_causal_prefix"}


def _random_inputs(chance: random.Random, name: str) -> dict[str, object]:
    d = chance.randint(3, 12)
    sizes: dict[str, object] = {
        "L": chance.randint(2, 5),
        "d_x": d,
        "H": chance.randint(1, d - 2),
        "N": chance.randint(2, 600),
        "V": chance.randint(d, 400),
        "r": d,
        "r_e": chance.randint(1, 5),
        "n_A": chance.randint(1, 9),
        "n_B": chance.randint(1, 9),
        "residual": chance.random() < 0.5,
        "chains": chance.randint(1, 3),
        "n": chance.randint(1, 300),
        "k": chance.randint(0, 300),
    }
    if name.startswith("lb_vocab"):
        sizes["H"] = chance.randint(1, max(1, d - 3))
        sizes["r"] = chance.randint(int(str(sizes["H"])) + 2, d)
    if name == "lb_vocab_long":
        sizes["r"] = int(str(sizes["H"])) + 3 + chance.randint(0, 4)
    if name == "lb_causal_chain":
        sizes["L"] = chance.randint(3, 300)
    if name == "monomial_witness":
        sizes |= {"d_x": 4, "H": 4, "plan": "example", "L": chance.randint(4, 9)}
    return {letter: sizes[letter] for letter in ENTRIES[name].letters if letter in sizes}


@pytest.mark.parametrize("name", WITH_LOGARITHM)
def test_exact_values_lie_inside_their_certified_balls(name: str) -> None:
    """At a low working precision, so that the ball is wide and the containment means something."""
    chance = random.Random(name)
    entry = ENTRIES[WITH_LOGARITHM[name]]
    for _ in range(CASES // len(WITH_LOGARITHM) + 1):
        inputs = _random_inputs(chance, name)
        exact = quantity(name, **inputs)
        assert isinstance(exact.value, int | Fraction)
        words = {ENTRIES[name].words[letter]: value for letter, value in exact.inputs.items()}
        with ctx.workprec(40):
            found = entry.given(**words)()
            ball = found if isinstance(found, arb) else found.log3()
        with ctx.workprec(4000):
            value = Fraction(exact.value)
            true = arb(fmpq(value.numerator, value.denominator)).log() / arb(3).log()
            assert true <= ball.upper() if name in SIMPLE_SPLIT else ball.overlaps(true)


def _real(name: str, **inputs: object) -> Decimal:
    value = quantity(name, **inputs).value
    assert isinstance(value, Decimal)
    return value


def test_relaxations_of_the_lower_bound_lie_below_it() -> None:
    chance = random.Random(1)
    for _ in range(CASES):
        d = chance.randint(5, 2000)
        H = chance.randint(1, d - 4)
        shape = {"L": chance.randint(2, 14), "d_x": d, "H": H}
        exact = _real("lb_log3", **shape)
        wide, deep = _real("lb_relaxA_log3", **shape), _real("lb_relaxB_log3", **shape)
        assert exact >= wide
        assert exact >= deep
        if (d - H) % 2 == 0:
            assert wide >= _real("lb_thm1_closed_log3", **shape)
            assert deep >= _real("lb_thm2_closed_log3", **shape)


def test_with_an_odd_difference_the_closed_form_may_pass_the_exact_bound() -> None:
    """Why its status asks for d_x - H even: n = 3/2 is rounded down in the exact form only."""
    shape = {"L": 2, "d_x": 4, "H": 1}
    assert _real("lb_thm1_closed_log3", **shape) > _real("lb_log3", **shape)


def test_relaxations_of_the_deep_formula_lie_above_it_when_deep() -> None:
    chance = random.Random(2)
    for _ in range(CASES):
        depth = chance.randint(1, 30)
        shape = {"L": depth, "d_x": chance.randint(1, min(3000, 3**depth - 1))}
        exact = _real("ub_thm2_log3", **shape)
        closed = _real("ub_thm2_closed_log3", **shape)
        preprint = _real("ub_thm2_closed_log3_preprint", **shape)
        assert exact <= closed <= preprint


def test_the_corrected_residual_product_covers_the_recursion() -> None:
    chance = random.Random(3)
    for _ in range(CASES // 4):
        d = chance.randint(1, 2000)
        shape = {
            "L": chance.randint(2, 40),
            "d_x": d,
            "H": chance.randint(1, d),
            "N": chance.randint(2, 5000),
        }
        corrected = _real("ub_residual_product_corrected_log3", **shape)
        assert _real("ub_residual_recursion_log3", **shape) <= corrected
        assert _real("ub_residual_product_paper_log3", **shape) < corrected


def test_the_printed_residual_product_lies_below_its_own_recursion() -> None:
    """Not only does it not follow: with K = 2, R_3 = 370443 and the product is 4! K^13 = 196608."""
    shape = {"L": 3, "d_x": 1, "H": 1, "N": 2}
    assert quantity("ub_residual_recursion", **shape).value == 370_443
    printed = _real("ub_residual_product_paper_log3", **shape)
    assert abs(3 ** float(printed) - 196_608) < 1e-6 * 196_608


def _random_shape(chance: random.Random) -> Shape:
    width = chance.choice((chance.randint(2, 9), chance.randint(2, 300), chance.randint(2, 20000)))
    heads = chance.randint(1, width)
    return Shape(
        depth=chance.choice((chance.randint(1, 4), chance.randint(1, 120))),
        width=width,
        heads=heads,
        head_dim=chance.choice((None, chance.randint(1, 2 * width))),
        positions=chance.choice((None, chance.randint(2, 64))),
        vocab=chance.choice((None, chance.randint(2, 60000))),
        rank=chance.choice((None, chance.randint(1, 2 * width))),
        position_rank=chance.choice((0, 0, chance.randint(1, 20))),
        residual=chance.random() < 0.3,
    )


@pytest.mark.parametrize("seed", range(3))
def test_every_proved_lower_bound_is_below_every_proved_upper_bound(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        shape = _random_shape(chance)
        lowest_upper = min(b.log3 for b in upper_bounds(shape) if b.status != "disputed")
        for bound in lower_bounds(shape, witness_tries=1):
            assert bound.log3 <= lowest_upper, (shape, bound.id)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 105))
def test_five_thousand_more_shapes_keep_lower_below_upper(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(1000):
        shape = _random_shape(chance)
        lowest_upper = min(b.log3 for b in upper_bounds(shape) if b.status != "disputed")
        for bound in lower_bounds(shape, witness_tries=1):
            assert bound.log3 <= lowest_upper, (shape, bound.id)


@pytest.mark.parametrize("depth", [1, 2, 11, 12, 13])
def test_the_recursion_keeps_its_digits_where_its_logarithm_is_cut_short(depth: int) -> None:
    """From depth 13 on the last steps are a closed form; R_13 with K = 2 has 372,000 digits."""
    shape = {"L": depth, "d_x": 1, "H": 1, "N": 2}
    exact = quantity("ub_residual_recursion", **shape).value
    assert isinstance(exact, Fraction)
    assert _real("ub_residual_recursion_log3", **shape) == digits(lambda: log3(exact))
