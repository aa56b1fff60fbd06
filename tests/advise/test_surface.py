"""Surfaces over size and depth: planted kinds are found, intervals hold, runs bend the prior."""

import math
import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from archfit.advise.prior import outlook, shipped_prior
from archfit.advise.surface import (
    NEW,
    SCALES,
    Observed,
    Places,
    Surface,
    Training,
    joined,
    of_sizes,
)

PRIOR = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "atlas" / "prior.py"))
fit_surface, rounded = PRIOR["fit_surface"], PRIOR["rounded"]
DEPTHS = np.log([1.0, 2, 3, 4, 6, 8, 12, 16, 24, 32])
PLANTED = Surface(
    centre=1.9,
    growth=0.2,
    fading=0.1,
    hurry=1.2,
    patience=0.5,
    alike=math.log(4.0),
    mean=(0.03, 0.02, 0.0, -0.01, 0.03, 0.0),
    llama=(-0.02, 0.0, 0.0, 0.0, 0.0, 0.0),
    spread=(0.03, 0.004, 0.004, 0.004, 0.01, 0.002),
    wave=0.002,
    size_length=0.6,
    depth_length=0.6,
    misfit=0.001,
    weights=(0.3, 0.2, 0.3, 0.2),
    kinship=0.8,
)


def planted_kind(
    seed: int, sizes: tuple[float, ...] = (-2.0, -1.3, -0.7, 0.0), *, is_llama: bool = False
) -> Observed:
    """Runs of a kind drawn from the planted surface, each size at a level of its own."""
    random = np.random.default_rng(seed)
    s = np.repeat(sizes, len(DEPTHS))
    x = np.tile(DEPTHS, len(sizes))
    scale = random.choice(SCALES, p=PLANTED.weights)
    llama = np.full(len(s), float(is_llama))
    places = Places(sizes=s, tokens=np.zeros(len(s)), depths=x, kinds=np.zeros(len(s)), llama=llama)
    covariance = scale**2 * PLANTED.covariance(places, places) + 1e-12 * np.eye(len(s))
    mean = scale * PLANTED.middle(places)
    losses = random.multivariate_normal(mean, covariance) + np.repeat(
        random.uniform(-1, 1, len(sizes)), len(DEPTHS)
    )
    losses = losses + 0.002 * random.standard_normal(len(s))
    variances = np.full(len(s), 0.002**2)
    return Observed(
        sizes=s,
        tokens=np.zeros(len(s)),
        depths=x,
        losses=losses,
        variances=variances,
        levels=of_sizes(s, np.zeros(len(s))),
        kinds=places.kinds,
        llama=llama,
    )


def smaller(kind: Observed) -> Observed:
    """The runs of networks below 600k parameters."""
    fields = ("sizes", "tokens", "depths", "losses", "variances", "levels", "kinds", "llama")
    return Observed(**{name: getattr(kind, name)[kind.sizes < -0.5] for name in fields})


def best_at(kind: Observed, size: float) -> tuple[float, np.ndarray]:
    here = kind.sizes == size
    return float(np.exp(kind.depths[here][kind.losses[here].argmin()])), kind.losses[here]


def test_levels_do_not_matter() -> None:
    kind = planted_kind(0)
    moved = replace(kind, losses=kind.losses + 0.3 * (kind.sizes == 0.0))
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
    found: Surface = fit_surface([planted_kind(seed, (-1.3, 0.0)) for seed in range(12)])
    return found


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


def test_kinds_of_one_family_tell_of_each_other_and_more_of_themselves() -> None:
    kind, other = planted_kind(3), planted_kind(4)
    both = joined([kind, other])
    assert list(np.unique(both.kinds)) == [0, 1]
    assert both.levels.shape == (len(both.sizes), 8)
    assert not (both.levels[both.kinds == 0][:, 4:]).any()
    surface = replace(PLANTED, weights=(1e-200, 1e-200, 1.0, 1e-200))  # one scale
    posterior, depths = surface.given(both), np.array([2.0, 16.0])
    none, new, own = (
        np.diff(known.draws(1e6, depths, 1000, Training(number))).std()
        for known, number in ((surface.given(None), NEW), (posterior, NEW), (posterior, 0))
    )
    assert own < 0.5 * new
    assert new < 0.8 * none


def test_what_relatives_say_of_a_new_kind_is_what_their_runs_say() -> None:
    posterior, depths = PLANTED.given(joined([planted_kind(3), planted_kind(4)])), np.arange(1.0, 9)
    by_runs = posterior.draws(3e6, depths, 200, Training(7, 50.0))  # conditioned run by run
    assert posterior.draws(3e6, depths, 200, Training(NEW, 50.0)) == pytest.approx(
        by_runs, abs=1e-9
    )


def test_with_fading_depth_matters_less_in_larger_networks() -> None:
    faded, even = (replace(PLANTED, fading=fading) for fading in (0.3, 0.0))
    sizes, depths, zeros = np.full(2, 3.0), np.log([2.0, 8.0]), np.zeros(2)
    places = Places(sizes=sizes, tokens=zeros, depths=depths, kinds=zeros, llama=zeros)
    assert faded.terms(places) == pytest.approx(math.exp(-0.9) * even.terms(places))


def test_with_hurry_one_term_goes_away_as_networks_grow() -> None:
    ones = np.ones(1)
    small, large = (
        PLANTED.terms(
            Places(sizes=s * ones, tokens=0 * ones, depths=3 * ones, kinds=ones, llama=ones)
        )[0]
        for s in (-1.0, 4.0)
    )
    assert abs(large[2] / large[0]) < 0.01 < abs(small[2] / small[0])


def test_what_a_depth_costs_beside_its_loss_moves_the_best_of_them() -> None:
    known = PLANTED.given(None)
    plain = outlook(known, 1e6, (1.0, 32.0))
    slow = outlook(known, 1e6, (1.0, 32.0), cost=lambda depth: 0.05 * math.log(depth))
    same = outlook(known, 1e6, (1.0, 32.0), cost=lambda _: 0.05)
    assert slow.depth < plain.depth == same.depth
    assert same.expected_regret == pytest.approx(plain.expected_regret)


def test_the_shipped_prior_is_deeper_for_larger_networks_and_rounds_to_itself() -> None:
    prior = shipped_prior()
    depths = [
        outlook(prior.all.given(None), size, (1.0, 96.0)).depth
        for size in (2.5e5, 1e6, 1e7, 1e8, 1e9)
    ]
    assert depths == sorted(depths)
    assert 2 < depths[1] < 15
    assert 10 < depths[3] < 40
    for surface in (prior.all, *prior.families.values(), *prior.grids.values()):
        assert rounded(surface) == surface
        assert math.fsum(surface.weights) == pytest.approx(1)


def test_more_tokens_do_to_depth_what_more_parameters_do() -> None:
    kind = planted_kind(3)
    longer = replace(kind, tokens=np.full(len(kind.sizes), math.log(4.0)))
    shifted = replace(kind, sizes=kind.sizes + math.log(2.0))
    steady = replace(PLANTED, fading=0.0)  # which goes by parameters alone
    assert steady.log_evidence(longer) == pytest.approx(steady.log_evidence(shifted))
    assert steady.log_evidence(longer) != pytest.approx(steady.log_evidence(kind))
    known, depths = steady.given(kind), np.array([2.0, 8.0])
    assert known.draws(1e6, depths, 9, Training(NEW, 80.0)) == pytest.approx(
        known.draws(2e6, depths, 9)
    )
    both = of_sizes(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0]))
    assert both.sum(axis=1).tolist() == [1.0, 1.0, 1.0]
    assert both.shape == (3, 3)


@pytest.mark.slow
def test_what_llamas_blocks_change_is_found() -> None:
    kinds = [planted_kind(seed, is_llama=seed % 2 == 0) for seed in range(12)]
    assert fit_surface(kinds).llama[0] < -0.005  # planted: -0.02


def test_networks_of_llamas_blocks_are_asked_about_by_themselves() -> None:
    """By a mean of their own, which large networks do not have."""
    known = PLANTED.given(None)
    plain, llama = (
        outlook(known, 1e6, (1.0, 32.0), training=Training(is_llama=is_llama)).depth
        for is_llama in (False, True)
    )
    assert llama > 1.2 * plain
    one, zero = np.ones(2), np.zeros(2)

    def added(log_size: float) -> float:
        """What those blocks add, of two networks that differ in nothing else."""
        size = log_size * one
        places = Places(sizes=size, tokens=zero, depths=one, kinds=zero, llama=np.array([0.0, 1.0]))
        plain, other = PLANTED.middle(places)
        return float(other - plain) * math.exp(PLANTED.fading * log_size)

    # A line in z = x - centre - growth t, and half of it is gone at 4M.
    z = 1.0 - PLANTED.centre - PLANTED.growth * math.log(4.0)
    assert added(math.log(4.0)) == pytest.approx(-0.02 * z / 2)
    assert abs(added(math.log(4000.0))) < 0.01 * abs(added(math.log(0.25)))
