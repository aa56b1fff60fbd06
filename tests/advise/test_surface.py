"""Surfaces over size and depth: planted kinds are found, intervals hold, runs bend the prior."""

import math
from functools import cache

import numpy as np
import pytest

from archfit.advise.prior import outlook, shipped_prior
from archfit.advise.surface import (
    SCALES,
    Observed,
    Surface,
    fit_surface,
    of_sizes,
    rounded,
)

DEPTHS = np.log([1.0, 2, 3, 4, 6, 8, 12, 16, 24, 32])
PLANTED = Surface(
    centre=1.9,
    growth=0.2,
    mean=(0.03, 0.02, 0.0, 0.03, 0.0),
    spread=(0.03, 0.004, 0.004, 0.01, 0.002),
    wave=0.002,
    size_length=0.6,
    depth_length=0.6,
    misfit=0.001,
    weights=(0.3, 0.2, 0.3, 0.2),
)


def planted_kind(seed: int, sizes: tuple[float, ...] = (-2.0, -1.3, -0.7, 0.0)) -> Observed:
    """Runs of a kind drawn from the planted surface, each size at a level of its own."""
    random = np.random.default_rng(seed)
    s = np.repeat(sizes, len(DEPTHS))
    x = np.tile(DEPTHS, len(sizes))
    scale = random.choice(SCALES, p=PLANTED.weights)
    covariance = scale**2 * PLANTED.covariance(s, x, (s, x)) + 1e-12 * np.eye(len(s))
    mean = scale * PLANTED.terms(s, x) @ np.array(PLANTED.mean)
    losses = random.multivariate_normal(mean, covariance) + np.repeat(
        random.uniform(-1, 1, len(sizes)), len(DEPTHS)
    )
    losses = losses + 0.002 * random.standard_normal(len(s))
    variances = np.full(len(s), 0.002**2)
    return Observed(sizes=s, depths=x, losses=losses, variances=variances, levels=of_sizes(s))


def smaller(kind: Observed) -> Observed:
    """The runs of networks below 600k parameters."""
    fields = ("sizes", "depths", "losses", "variances", "levels")
    return Observed(**{name: getattr(kind, name)[kind.sizes < -0.5] for name in fields})


def best_at(kind: Observed, size: float) -> tuple[float, np.ndarray]:
    here = kind.sizes == size
    return float(np.exp(kind.depths[here][kind.losses[here].argmin()])), kind.losses[here]


def test_levels_do_not_matter() -> None:
    kind = planted_kind(0)
    moved = Observed(
        sizes=kind.sizes,
        depths=kind.depths,
        losses=kind.losses + 0.3 * (kind.sizes == 0.0),
        variances=kind.variances,
        levels=kind.levels,
    )
    depths = np.exp(DEPTHS)
    plain, other = (PLANTED.given(each).draws(1e6, depths, 200) for each in (kind, moved))
    spread = [draws - draws.mean(axis=1, keepdims=True) for draws in (plain, other)]
    assert np.abs(spread[0].mean(axis=0) - spread[1].mean(axis=0)).max() < 2e-3


def test_runs_of_smaller_networks_lower_the_regret_at_a_larger_size() -> None:
    prior_lost: list[float] = []
    ladder_lost: list[float] = []
    held = []
    for seed in range(40):
        kind = planted_kind(seed)
        lower = smaller(kind)
        _, true = best_at(kind, 0.0)
        for lost, runs in ((prior_lost, None), (ladder_lost, lower)):
            found = outlook(PLANTED.given(runs), 1e6, (1.0, 32.0))
            at = np.interp(math.log(found.depth), DEPTHS, true)
            lost.append(math.expm1(at - true.min()))
            held.append(lost[-1] <= found.regret_at_most + 0.004)  # the noise of single runs
    assert np.mean(ladder_lost) < 0.6 * np.mean(prior_lost)
    assert np.mean(held) >= 0.85


@cache
def fitted() -> Surface:
    return fit_surface([planted_kind(seed, (-1.3, 0.0)) for seed in range(12)])


@pytest.mark.slow
def test_a_fit_makes_its_data_likelier_than_the_start_and_finds_the_planted_trend() -> None:
    kinds = [planted_kind(seed, (-1.3, 0.0)) for seed in range(100, 110)]
    usual = fit_surface([])
    gain = sum(fitted().log_evidence(kind) - usual.log_evidence(kind) for kind in kinds)
    assert gain > 0  # on kinds that it has not seen
    found = outlook(fitted().given(None), 1e6, (1.0, 32.0))
    wanted = outlook(PLANTED.given(None), 1e6, (1.0, 32.0))
    assert found.depth == pytest.approx(wanted.depth, rel=0.6)


def test_the_outlook_without_runs_is_wider_than_with_them() -> None:
    kind = planted_kind(3)
    alone, told = (outlook(PLANTED.given(runs), 1e6, (1.0, 32.0)) for runs in (None, kind))
    assert told.expected_regret < alone.expected_regret
    assert told.expected_regret <= told.regret_at_most


def test_the_shipped_prior_is_deeper_for_larger_networks_and_rounds_to_itself() -> None:
    prior = shipped_prior()
    depths = [
        outlook(prior.all.given(None), size, (1.0, 96.0)).depth
        for size in (2.5e5, 1e6, 1e7, 1e8, 1e9)
    ]
    assert depths == sorted(depths)
    assert 3 < depths[1] < 15
    assert 10 < depths[3] < 40
    for surface in (prior.all, *prior.families.values(), *prior.grids.values()):
        assert rounded(surface) == surface
        assert math.fsum(surface.weights) == pytest.approx(1)
