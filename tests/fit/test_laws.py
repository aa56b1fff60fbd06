"""Laws: their parameters, their intervals against brute force, and their rivals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from archfit.fit.curves import CONSTANT, LINE
from archfit.fit.depths import Crossing
from archfit.fit.fitted import Fits, fitted
from archfit.fit.laws import Law, compared, transition_laws
from archfit.report.conclusions import conclusions
from archfit.spec import Architecture
from archfit.spec.estimate import Estimate
from tests_curves import MIDDLE, Curve, by_depth, power_law, quadratic, shape, simulated, widths

DEPTHS = (6, 12, 18, 24)


def family(curve: Curve, *, std: float = 1e-3, sizes: int = 8) -> Fits:
    shapes = [shape(6, width) for width in widths(6, 1e6, 2e7, sizes)]
    random = np.random.default_rng(2)
    return fitted(simulated(shapes, by_depth({6: curve}), std=std, seeds=3, random=random))


def only(fits: Fits) -> Law:
    (law,) = fits.laws
    return law


def test_almost_without_noise_a_size_law_is_exact() -> None:
    law = only(family(power_law(2.0, 1.0, 0.2), std=1e-6))
    assert law.parameters["E"].value == pytest.approx(2.0, rel=1e-3)
    assert law.parameters["alpha"].value == pytest.approx(0.2, rel=1e-3)
    assert law.parameters["A"].value == pytest.approx(math.exp(0.2 * MIDDLE), rel=2e-3)


def test_intervals_of_a_size_law_are_those_of_brute_force() -> None:
    """All (E, alpha) on a fine grid whose best A misses by no more than an F test allows."""
    fits = family(power_law(1.5, 2.0, 0.1))
    (noise,) = fits.noise
    cells = sorted(noise.cells, key=lambda cell: cell.size)
    u = np.array([cell.log_size - MIDDLE for cell in cells])
    losses = np.array([cell.mean for cell in cells])
    floors, alphas = np.meshgrid(np.linspace(1.3, 1.7, 600), np.linspace(0.08, 0.12, 600))
    decay = np.exp(-alphas[..., None] * u)
    above = losses - floors[..., None]
    precisions = np.array([1 / noise.variance(cell) for cell in cells])
    scale = (above * decay * precisions).sum(-1) / (decay**2 * precisions).sum(-1)
    left = ((above - scale[..., None] * decay) ** 2 * precisions).sum(-1)
    inside = left - left.min() <= stats.f.ppf(0.9, 1, noise.usual.degrees)
    law = only(fits)
    scales = scale * np.exp(alphas * MIDDLE)
    for name, grid in (("E", floors), ("alpha", alphas), ("A", scales)):
        one = law.parameters[name]
        expected = [grid[inside].min(), grid[inside].max()]
        width = expected[1] - expected[0]
        assert [one.low, one.high] == pytest.approx(expected, abs=0.05 * width)


@pytest.mark.parametrize(
    ("curve", "best"),
    [
        (power_law(2.0, 1.0, 0.4), "loss = E + A N^-alpha"),
        (quadratic(3.0, 0.1, 0.0), "loss = a - b ln N"),
        (quadratic(3.0, 0.0, 0.0), "loss = a"),
    ],
)
def test_held_out_error_finds_the_form_that_made_the_losses(curve: Curve, best: str) -> None:
    shapes = [shape(6, width) for width in widths(6, 1e6, 2e7, 10)]
    shapes += [shape(12, width) for width in widths(12, 1e6, 2e7, 10)]
    winners = []
    for seed in range(5):
        random = np.random.default_rng(seed)
        loss = by_depth({6: curve, 12: power_law(2.0, 1.0, 0.3)})
        fits = fitted(simulated(shapes, loss, std=1e-3, seeds=3, random=random))
        winners += [law.forms[0].form for law in fits.laws if law.family.depth == 6]
    assert winners.count(best) >= 3, winners


def transition(std: float, depths: tuple[int, ...] = DEPTHS) -> Fits:
    """Curves of which each meets the next on the papers' law."""
    places = [math.log(12 * depth) + 2 * (5.039 + 0.0555 * depth) for depth in depths]

    def loss(architecture: Architecture) -> float:
        x = math.log(architecture.block_params)
        met = [
            place for depth, place in zip(depths, places, strict=True) if depth < architecture.depth
        ]
        return quadratic(3.0, 0.1, 0.01)(x) - 0.02 * math.fsum(x - place for place in met)

    low, high = math.exp(places[0] - 1), math.exp(places[-1] + 1)
    shapes = [shape(depth, width) for depth in depths for width in widths(depth, low, high, 7)]
    random = np.random.default_rng(0)
    return fitted(simulated(shapes, loss, std=std, seeds=3, random=random))


def test_almost_without_noise_the_papers_law_comes_back() -> None:
    law = transition(1e-5).laws[0]
    assert (law.kind, law.points) == ("transition", 3)
    assert law.parameters["a"].value == pytest.approx(5.039, abs=1e-3)
    assert law.parameters["b"].value == pytest.approx(0.0555, abs=1e-4)
    assert law.forms[0].form == "ln width = a + b depth"
    assert law.forms[0].held_out_error < 0.1 * law.forms[1].held_out_error


def test_two_crossings_make_a_line_without_an_interval() -> None:
    law = transition(1e-3, (6, 12, 18)).laws[0]
    assert (law.kind, law.points) == ("transition", 2)
    assert {(one.low, one.high) for one in law.parameters.values()} == {(None, None)}
    assert law.forms == ()


def test_one_crossing_makes_no_law() -> None:
    assert all(law.kind == "size" for law in transition(1e-3, (6, 12)).laws)


def test_three_sizes_make_no_size_law() -> None:
    shapes = [shape(depth, width) for depth in (6, 12) for width in widths(depth, 1e6, 1e7, 3)]
    random = np.random.default_rng(0)
    curves = {6: power_law(2, 1, 0.2), 12: power_law(2, 1, 0.3)}
    fits = fitted(simulated(shapes, by_depth(curves), std=1e-3, seeds=3, random=random))
    assert fits.laws == ()
    assert len(fits.crossings) == 1


def test_forms_are_judged_by_the_points_that_were_left_out() -> None:
    """Against numpy's lines, one point left out at a time."""
    x, y = np.array([1.0, 2.0, 4.0, 7.0]), np.array([3.0, 2.6, 2.1, 1.9])
    weights = np.array([1.0, 4.0, 1.0, 2.0])
    found = {
        error.form: error
        for error in compared({"line": (LINE, x), "mean": (CONSTANT, x)}, y, weights)
    }
    misses = []
    for at in range(4):
        kept = np.arange(4) != at
        fit = np.polynomial.Polynomial.fit(x[kept], y[kept], 1, w=np.sqrt(weights[kept]))
        misses.append(float(fit(x[at]) - y[at]))
    mean_square = np.average(np.square(misses), weights=weights)
    assert found["line"].held_out_error == pytest.approx(math.sqrt(mean_square))
    assert found["line"].last_error == pytest.approx(abs(misses[-1]))
    assert found["mean"].last_error == pytest.approx(
        abs(np.average(y[:3], weights=[1, 4, 1]) - 1.9)
    )
    assert list(found) == sorted(found, key=lambda name: found[name].held_out_error)


def test_four_sizes_make_a_size_law() -> None:
    law = only(family(power_law(2.0, 1.0, 0.4), sizes=4))
    assert (law.points, law.seeds, set(law.parameters)) == (4, 3, {"E", "A", "alpha"})


def test_losses_on_a_line_leave_the_exponent_open_below() -> None:
    alpha = only(family(quadratic(3.0, 0.005, 0.0), std=2e-4)).parameters["alpha"]
    assert alpha.low is None
    assert alpha.high is not None


def test_no_floor_is_below_zero() -> None:
    """A steeper line would need one, so that the exponent cannot be as small as it likes."""
    law = only(family(quadratic(3.0, 0.02, 0.0)))
    assert law.parameters["E"].low == 0
    assert law.parameters["alpha"].is_above(0.02 / 3.2)


def test_losses_that_rise_with_size_have_no_size_law() -> None:
    law = only(family(quadratic(3.0, -0.1, 0.0)))
    assert law.parameters == {}
    (said,) = (one for one in conclusions(family(quadratic(3.0, -0.1, 0.0))) if "Size law" in one)
    assert "with E and A above zero is not near the losses" in said


def crossings_at(log_widths: list[float], std: float) -> list[Crossing]:
    """Crossings of neighbouring depths at these ln widths, each known to `std`."""
    (found,) = (item for item in transition(1e-5, (6, 12)).crossings)
    noise = np.random.default_rng(0).standard_normal(2000)
    noise *= 2 * std / np.diff(np.quantile(noise, [0.1587, 0.8413]))
    return [
        replace(
            found,
            shallow=replace(found.shallow, depth=depth),
            width=Estimate(value=math.exp(log_width), low=None, high=None),
            log_widths=log_width + np.roll(noise, 7 * depth),
        )
        for depth, log_width in zip(DEPTHS, log_widths, strict=False)
    ]


@pytest.mark.parametrize(("probability", "is_inflated"), [(0.0095, True), (0.0105, False)])
def test_crossings_off_the_line_widen_its_intervals(probability: float, is_inflated: bool) -> None:
    """Of three points one degree of freedom is left: the middle one misses by z sqrt(3 / 2) std."""
    bend = math.sqrt(stats.chi2.isf(probability, 1) * 1.5) * 0.01
    (law,) = transition_laws(crossings_at([5.0, 5.3 + bend, 5.6], 0.01))
    squares = bend**2 / 1.5 / 0.01**2
    assert law.inflation == (pytest.approx(squares, rel=1e-3) if is_inflated else 1)
    slope = law.parameters["b"]
    assert slope.value == pytest.approx(0.05)
    half = stats.norm.ppf(0.95) * 0.01 * math.sqrt(2) / 12 * math.sqrt(law.inflation)
    assert slope.high == pytest.approx(0.05 + half, abs=0.1 * half)


def test_crossings_that_are_not_of_neighbours_or_not_the_last_make_no_law() -> None:
    found = crossings_at([5.0, 5.3, 5.6], 0.01)
    assert transition_laws(replace(item, neighbours=False) for item in found) == ()
    assert transition_laws(replace(item, times=item.number + 1) for item in found) == ()
    assert len(transition_laws(found)) == 1


@pytest.mark.parametrize(
    ("log_widths", "form"),
    [
        ([5.0, 5.3, 5.6, 5.9], "ln width = a + b depth"),
        ([4 + math.log(depth) for depth in DEPTHS], "ln width = a + b ln depth"),
    ],
)
def test_crossings_name_the_form_that_they_lie_on(log_widths: list[float], form: str) -> None:
    (law,) = transition_laws(crossings_at(log_widths, 0.01))
    assert law.forms[0].form == form
    assert law.forms[0].held_out_error == pytest.approx(0, abs=1e-9)
