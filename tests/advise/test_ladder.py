"""The ladder: what it trains next, when it stops, and what its runs are worth."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from archfit.advise.ladder import (
    DEPTHS,
    ENOUGH,
    FAR,
    FIRST_SHARE,
    MOST_DEPTHS,
    SIZES,
    TAIL,
    LadderLimits,
    LadderRun,
    Rung,
    climbed,
    contenders,
    knowledge,
    next_rung,
)
from archfit.advise.prior import DRAWS, Knowledge, family_prior, shipped_prior
from archfit.advise.surface import SCALES, Places

BUDGET, DEEPEST = 8_000_000, 48.0
NOISE = 0.004  # of ln loss
Loss = Callable[[int, int], float]  # ln, by size and depth


def limits(
    *, budget: float = BUDGET, price: Callable[[Rung], float] = lambda _: 1.0
) -> LadderLimits:
    return LadderLimits(budget=budget, deepest=DEEPEST, depths=lambda _: DEPTHS, price=price)


def half_of(budget: int) -> tuple[Callable[[Rung], float], list[float]]:
    """Prices where half of what a network of the budget costs is there; append what is spent."""
    spent = list[float]()

    def price(rung: Rung) -> float:
        cost = len(rung.depths) * (rung.size / budget) ** 2
        return cost / max(0.5 - math.fsum(spent), 1e-9)

    return price, spent


def up_to(size: int) -> Callable[[Rung], float]:
    """Whatever is no larger takes all that is left."""
    return lambda rung: 1.0 if rung.size <= size else 2.0


def trained(rung: Rung, loss: Loss) -> list[LadderRun]:
    random = np.random.default_rng([rung.size, rung.seed])
    return [
        LadderRun(
            size=rung.size,
            depth=depth,
            seed=rung.seed,
            params=rung.size,
            bits=math.exp(loss(rung.size, depth) + NOISE * float(random.standard_normal())),
        )
        for depth in rung.depths
    ]


def planted(seed: int, sizes: Sequence[int]) -> Loss:
    """A kind of data drawn from the shipped surface."""
    random, surface = np.random.default_rng(seed), shipped_prior().all
    s = np.repeat([math.log(size / 1e6) for size in sizes], len(DEPTHS))
    depths = np.tile(np.log(DEPTHS), len(sizes))
    zeros = np.zeros(len(s))
    places = Places(sizes=s, tokens=zeros, depths=depths, kinds=zeros, llama=zeros)
    scale = random.choice(SCALES, p=surface.weights)
    covariance = scale**2 * surface.covariance(places, places)
    mean = scale * surface.middle(places)
    drawn = random.multivariate_normal(mean, covariance + 1e-12 * np.eye(len(s)))
    places_of = [(size, depth) for size in sizes for depth in DEPTHS]
    table = dict(zip(places_of, map(float, drawn), strict=True))
    return lambda size, depth: 1.0 - 0.1 * math.log(size / 1e6) + table[size, depth]


def lost(known: Knowledge, loss: Loss, budget: int) -> float:
    """What the depth chosen loses against the best."""
    wanted = math.log(known.outlook(budget, DEEPEST).depth)
    losses = [loss(budget, depth) for depth in DEPTHS]
    return float(np.interp(wanted, np.log(DEPTHS), losses)) - min(losses)


@pytest.fixture(scope="module")
def prior() -> Knowledge:
    return family_prior(None)


def test_the_largest_size_that_can_be_paid_comes_first_with_as_many_depths_as_can(
    prior: Knowledge,
) -> None:
    known = prior
    for most, count in ((SIZES[2], MOST_DEPTHS), (SIZES[0], MOST_DEPTHS), (SIZES[1], 2)):

        def price(rung: Rung, most: int = most, count: int = count) -> float:
            return 1.0 if rung.size <= most and len(rung.depths) <= count else 1.01

        rung = next_rung(prior, (), limits(price=price))
        assert rung is not None
        assert (rung.size, rung.seed) == (most, 0)
        assert rung.depths == contenders(known, most, DEPTHS, count)
        assert len(rung.depths) == count
    assert next_rung(prior, (), limits(price=lambda rung: len(rung.depths))) is None


def test_a_first_look_at_the_smallest_size_is_had_where_it_costs_next_to_nothing(
    prior: Knowledge,
) -> None:
    for share, size in ((0.9 * FIRST_SHARE, SIZES[0]), (1.1 * FIRST_SHARE, SIZES[2])):

        def price(rung: Rung, share: float = share) -> float:
            return share * len(rung.depths) * (rung.size / SIZES[0]) ** 2 / MOST_DEPTHS

        rung = next_rung(prior, (), limits(price=price))
        assert rung is not None
        assert rung.size == size


def test_depths_are_spread_over_where_the_best_may_be(prior: Knowledge) -> None:
    known = prior
    drawn = known.posterior.draws(10**6, np.array(DEPTHS, dtype=float), DRAWS)
    best = np.array(DEPTHS)[drawn.argmin(axis=1)]
    few, many = contenders(known, 10**6, DEPTHS, 2), contenders(known, 10**6, DEPTHS, 6)
    assert np.mean(best <= few[0]) > TAIL / 2
    assert np.mean(best >= few[1]) > TAIL / 2
    assert few[0] < np.median(best) < few[1]
    assert len(set(many)) == len(many) == 6
    assert set(few) <= {*range(many[0], many[-1] + 1)}


def test_no_size_is_above_the_budget_and_no_network_is_trained_twice(prior: Knowledge) -> None:
    budget, runs = SIZES[3], list[LadderRun]()
    loss, (price, spent) = planted(1, SIZES[:4]), half_of(budget)

    def train(rung: Rung) -> list[LadderRun]:
        assert rung.size <= budget
        spent.append(price(rung) * (0.5 - math.fsum(spent)))
        runs.extend(found := trained(rung, loss))
        return found

    climbed(prior, (), limits(budget=budget, price=price), train)
    assert max(run.size for run in runs) == budget // 2
    assert 0.3 < math.fsum(spent) <= 0.5
    cells = [(run.size, run.depth, run.seed) for run in runs]
    assert len(set(cells)) == len(cells)


def test_where_no_larger_size_can_be_paid_the_largest_is_seen_with_another_seed(
    prior: Knowledge,
) -> None:
    rung = Rung(size=SIZES[0], depths=DEPTHS, seed=0)
    runs = trained(rung, lambda _, depth: 1.0 + 0.3 * abs(math.log(depth / 12)))
    again = next_rung(prior, runs, limits(price=up_to(SIZES[0])))
    assert again is not None
    assert (again.size, again.seed) == (SIZES[0], 1)
    both = [*runs, *(replace(run, seed=1) for run in runs)]
    assert next_rung(prior, both, limits(price=up_to(SIZES[0]))) is None


def test_it_does_not_stop_far_below_the_budget_however_sure_it_is(prior: Knowledge) -> None:
    """One size says nothing of the trend on these data."""
    rung = Rung(size=SIZES[0], depths=DEPTHS, seed=0)
    runs = trained(rung, lambda _, depth: 1.0 + 0.002 * math.log(depth / 6) ** 2)
    for budget, goes_on in ((FAR * SIZES[0], False), (2 * FAR * SIZES[0], True)):
        found = knowledge(prior, runs).outlook(budget, DEEPEST)
        assert prior.level(budget) * found.expected_regret < ENOUGH
        assert (next_rung(prior, runs, limits(budget=budget)) is not None) == goes_on


def test_it_stops_where_little_is_left_to_lose(prior: Knowledge) -> None:
    """Runs at the budget itself, without doubt about the best depth."""
    rung = Rung(size=SIZES[1], depths=DEPTHS, seed=0)
    runs = trained(rung, lambda _, depth: 1.0 + 0.2 * math.log(depth / 6) ** 2)
    at_budget = limits(budget=SIZES[1])
    found = knowledge(prior, runs).outlook(SIZES[1], DEEPEST)
    assert prior.level(SIZES[1]) * found.expected_regret < ENOUGH
    assert next_rung(prior, runs, at_budget) is None
    assert next_rung(prior, runs[:1], at_budget) is not None


def test_it_ends_where_training_fails(prior: Knowledge) -> None:
    tried = list[Rung]()

    def fails(rung: Rung) -> list[LadderRun]:
        tried.append(rung)
        return []

    assert climbed(prior, (), limits(), fails) == ()
    assert len(tried) == 1


def test_a_ladder_on_planted_data_loses_less_than_the_prior_alone(prior: Knowledge) -> None:
    sizes, prior_lost, ladder_lost = SIZES[:4], list[float](), list[float]()
    budget = sizes[-1]
    for seed in range(16):
        loss, (price, spent) = planted(seed, sizes), half_of(budget)

        def train(
            rung: Rung,
            loss: Loss = loss,
            price: Callable[[Rung], float] = price,
            spent: list[float] = spent,
        ) -> list[LadderRun]:
            spent.append(price(rung) * (0.5 - math.fsum(spent)))
            return trained(rung, loss)

        runs = climbed(prior, (), limits(budget=budget, price=price), train)
        assert runs
        prior_lost.append(lost(prior, loss, budget))
        ladder_lost.append(lost(knowledge(prior, runs), loss, budget))
    assert np.mean(ladder_lost) < 0.7 * np.mean(prior_lost)


def test_runs_that_plainly_say_a_depth_are_believed(prior: Knowledge) -> None:
    for best in (2, 24):
        runs = [
            run
            for size in SIZES[:3]
            for run in trained(
                Rung(size=size, depths=DEPTHS, seed=0),
                lambda _, depth, best=best: 1.0 + 0.2 * math.log(depth / best) ** 2,  # type: ignore[misc]
            )
        ]
        known = knowledge(prior, runs)
        assert known.outlook(SIZES[2], DEEPEST).depth == pytest.approx(best, rel=0.2)
        assert (known.own_runs, known.largest) == (3 * len(DEPTHS), SIZES[2])
        assert known.deepest == prior.deepest


def test_runs_of_networks_too_small_to_tell_change_nothing(prior: Knowledge) -> None:
    tiny = trained(Rung(size=125_000, depths=DEPTHS, seed=0), lambda _, depth: 1.0 / depth)
    assert knowledge(prior, tiny) == prior
    rung = Rung(size=SIZES[0], depths=(2, 4, 8), seed=0)
    runs = trained(rung, lambda _, depth: 1.0 + 0.1 * depth)
    with_tiny, alone = knowledge(prior, [*tiny, *runs]), knowledge(prior, runs)
    assert with_tiny.own_runs == alone.own_runs == 3
    assert with_tiny.outlook(10**6, DEEPEST) == alone.outlook(10**6, DEEPEST)


def test_a_network_that_missed_its_size_is_brought_to_it(prior: Knowledge) -> None:
    """Larger ones are better for their size alone, and half of that is told by their slope."""
    run = LadderRun(size=SIZES[2], depth=4, seed=0, params=SIZES[2], bits=2.0)
    runs = [replace(run, params=params) for params in (SIZES[1], SIZES[2], SIZES[3])]
    observed = knowledge(prior, runs).posterior.observed
    assert observed is not None
    moved = 0.5 * prior.slope(SIZES[2]) * math.log(2)
    assert moved < 0
    assert observed.losses == pytest.approx([math.log(2) + moved * at for at in (1, 0, -1)])
