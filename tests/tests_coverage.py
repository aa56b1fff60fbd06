"""Simulations with a known truth: how often intervals hold it, and how far estimates miss it."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from archfit.fit.fitted import Fits, fitted
from archfit.spec import Architecture, Factorised, RunRecord
from archfit.spec.estimate import Estimate
from tests_curves import (
    MIDDLE,
    Curve,
    by_depth,
    power_law,
    quadratic,
    shape,
    shifted_to_meet,
    simulated,
    widths,
)

WIES_24 = (200, 224, 248, 280, 336, 408, 480, 544, 704, 744, 792, 848, 1064)  # V = 2000
WIES_48 = (144, 160, 176, 200, 240, 288, 336, 384, 496, 528, 560, 600, 752)
WIES_RANK = (576, 592, 640, 668, 670, 672, 674, 676, 678, 680, 688)  # L = 12, full rank


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One interval with what it should hold."""

    name: str  # of the quantity
    truth: float
    estimate: Estimate


Trial = Callable[[int, np.random.Generator], list[Outcome]]  # seeds and noise


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Of many trials."""

    outcomes: list[Outcome]
    trials: int

    @property
    def covered(self) -> float:
        return float(np.mean([one.estimate.contains(one.truth) for one in self.outcomes]))

    @property
    def width(self) -> float:
        """The median of the closed intervals."""
        ends = [(one.estimate.low, one.estimate.high) for one in self.outcomes]
        closed = [high - low for low, high in ends if low is not None and high is not None]
        return float(np.median(closed))

    @property
    def bias(self) -> float:
        """Mean error over the width of the interval."""
        errors = [(one.estimate.value or math.nan) - one.truth for one in self.outcomes]
        return float(np.mean(errors)) / self.width

    @property
    def answered(self) -> float:
        """Intervals in a trial."""
        return len(self.outcomes) / self.trials


def coverages(trial: Trial, *, seeds: int, trials: int) -> dict[str, Coverage]:
    """By quantity; the noise of a trial depends on its number alone."""
    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    for number in range(trials):
        for outcome in trial(seeds, np.random.default_rng((number, seeds))):
            outcomes[outcome.name].append(outcome)
    return {name: Coverage(outcomes=found, trials=trials) for name, found in outcomes.items()}


@dataclass(frozen=True, kw_only=True)
class TwoDepths:
    """A crossing at `place` (-1 to 1 over the range in ln N) of curves over `decades` of size."""

    shallow: Curve
    deep: Curve  # moved to meet the other at the crossing
    sizes: int
    decades: float
    place: float
    std: float

    def records(self, seeds: int, random: np.random.Generator) -> list[RunRecord]:
        half = self.decades * math.log(10) / 2
        low, high = math.exp(MIDDLE - half), math.exp(MIDDLE + half)
        shapes = [shape(6, width) for width in widths(6, low, high, self.sizes)]
        shapes += [shape(12, width) for width in widths(12, 1.1 * low, 1.15 * high, self.sizes)]
        deep = shifted_to_meet(self.deep, self.shallow, self.truth)
        loss = by_depth({6: self.shallow, 12: deep})
        return simulated(shapes, loss, std=self.std, seeds=seeds, random=random)

    @property
    def truth(self) -> float:
        return MIDDLE + self.place * self.decades * math.log(10) / 2

    def __call__(self, seeds: int, random: np.random.Generator) -> list[Outcome]:
        return _crossings(fitted(self.records(seeds, random)), self.truth)


def papers_depths(seeds: int, random: np.random.Generator) -> list[Outcome]:
    """L = 24 and 48 at the papers' widths; they meet where the shallow width is 500."""
    truth = math.log(12 * 24 * 500**2)
    shapes = [shape(24, width) for width in WIES_24] + [shape(48, width) for width in WIES_48]

    def loss(architecture: Architecture) -> float:
        x = math.log(architecture.block_params)
        return (
            2.2
            + 0.8 * math.exp(-0.25 * (x - truth))
            - 0.008 * (x - truth) * (architecture.depth == 48)
        )

    records = simulated(shapes, loss, std=1.7e-3, seeds=seeds, random=random)
    return _crossings(fitted(records), truth)


def papers_rank(seeds: int, random: np.random.Generator) -> list[Outcome]:
    """L = 12 at the papers' widths, r = 16 of 680 as good as 25 % fewer parameters."""
    cells = [shape(12, 680, embedding=Factorised(inner=16), positions=Factorised(inner=16))]
    shapes = [shape(12, width) for width in WIES_RANK] + cells
    curve = power_law(1.5, 1.5, 0.07)
    return list(_redundancies(curve, shapes, 0.25, 1e-3, seeds, random))


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """A cell that is as good as a baseline with a share of its parameters less."""

    curve: Curve
    cell: Architecture
    sizes: int
    share: float
    std: float

    def __call__(self, seeds: int, random: np.random.Generator) -> list[Outcome]:
        baseline = [shape(6, width) for width in widths(6, 1e6, 1e7, self.sizes)]
        shapes = [*baseline, self.cell]
        return list(_redundancies(self.curve, shapes, self.share, self.std, seeds, random))


@dataclass(frozen=True, kw_only=True)
class Transition:
    """Depths of which each meets the next where ln width = a + b depth."""

    first: Curve
    depths: tuple[int, ...]
    a: float
    b: float
    slope: float  # nats per e-fold of size, between neighbours
    std: float

    def __call__(self, seeds: int, random: np.random.Generator) -> list[Outcome]:
        places = [math.log(12 * depth) + 2 * (self.a + self.b * depth) for depth in self.depths]
        low, high = math.exp(min(places[:-1]) - 1), math.exp(max(places[:-1]) + 1)
        shapes = [
            shape(depth, width) for depth in self.depths for width in widths(depth, low, high, 8)
        ]

        def loss(architecture: Architecture) -> float:
            x = math.log(architecture.block_params)
            passed = [
                place
                for depth, place in zip(self.depths, places, strict=True)
                if depth < architecture.depth
            ]
            return self.first(x) - self.slope * math.fsum(x - place for place in passed)

        fits = fitted(simulated(shapes, loss, std=self.std, seeds=seeds, random=random))
        return _parameters(fits, "transition", {"a": self.a, "b": self.b})


@dataclass(frozen=True, kw_only=True)
class SizeLaw:
    """One family that has the law."""

    floor: float
    scale: float
    alpha: float
    sizes: int
    decades: float
    std: float

    def __call__(self, seeds: int, random: np.random.Generator) -> list[Outcome]:
        half = self.decades * math.log(10) / 2
        all_widths = widths(6, math.exp(MIDDLE - half), math.exp(MIDDLE + half), self.sizes)
        loss = by_depth({6: power_law(self.floor, self.scale, self.alpha)})
        shapes = [shape(6, width) for width in all_widths]
        fits = fitted(simulated(shapes, loss, std=self.std, seeds=seeds, random=random))
        truths = {
            "E": self.floor,
            "A": self.scale * math.exp(self.alpha * MIDDLE),
            "alpha": self.alpha,
        }
        return _parameters(fits, "size", truths)


def _parameters(fits: Fits, kind: str, truths: dict[str, float]) -> list[Outcome]:
    return [
        Outcome(name=name, truth=truths[name], estimate=estimate)
        for law in fits.laws
        if law.kind == kind
        for name, estimate in law.parameters.items()
    ]


def _crossings(fits: Fits, truth: float) -> list[Outcome]:
    """Those that are reported, in ln N."""
    return [
        Outcome(name="ln size", truth=truth, estimate=item.size.rising(math.log))
        for item in fits.crossings
        if item.is_crossing
    ]


def _redundancies(
    curve: Curve,
    shapes: list[Architecture],
    share: float,
    std: float,
    seeds: int,
    random: np.random.Generator,
) -> Iterator[Outcome]:
    def loss(architecture: Architecture) -> float:
        is_limited = (
            isinstance(architecture.embedding, Factorised) or architecture.attention_ratio > 1.5
        )
        return curve(math.log(architecture.block_params * (1 - share * is_limited)))

    for item in fitted(simulated(shapes, loss, std=std, seeds=seeds, random=random)).redundancy:
        if item.outcome == "value":
            yield Outcome(name="saved", truth=share, estimate=item.estimate)


LOW_RANK = shape(6, 300, embedding=Factorised(inner=16))
WIDE_ATTENTION = shape(6, 144, heads=12, head_dim=48)  # ratio 4

CROSSINGS: dict[str, Trial] = {
    "power laws, alpha 0.05 and 0.08, 8 sizes": TwoDepths(
        shallow=power_law(1.5, 2.0, 0.05),
        deep=power_law(1.5, 1.5, 0.08),
        sizes=8,
        decades=1.2,
        place=0.3,
        std=1e-3,
    ),
    "power laws, alpha 0.5 and 0.3, 5 sizes": TwoDepths(
        shallow=power_law(2.5, 0.2, 0.5),
        deep=power_law(2.3, 0.4, 0.3),
        sizes=5,
        decades=1.0,
        place=0.4,
        std=5e-4,
    ),
    "power laws, alpha 0.2 and 0.25, 13 sizes": TwoDepths(
        shallow=power_law(2.0, 1.0, 0.2),
        deep=power_law(2.1, 0.95, 0.25),
        sizes=13,
        decades=1.5,
        place=-0.5,
        std=3e-3,
    ),
    "quadratics, 9 sizes": TwoDepths(
        shallow=quadratic(3.0, 0.10, 0.012),
        deep=quadratic(3.0, 0.13, 0.02),
        sizes=9,
        decades=1.2,
        place=0.4,
        std=1.5e-3,
    ),
    "power law and quadratic, 7 sizes": TwoDepths(
        shallow=power_law(2.5, 0.4, 0.3),
        deep=quadratic(3.0, 0.14, 0.01),
        sizes=7,
        decades=1.0,
        place=0.2,
        std=2e-3,
    ),
    "the papers' widths, L = 24 and 48": papers_depths,
}
REDUNDANCIES: dict[str, Trial] = {
    "rank, the papers' widths, 25 %": papers_rank,
    "rank, power law, 6 sizes, 40 %": Bottleneck(
        curve=power_law(2.5, 0.4, 0.4), cell=LOW_RANK, sizes=6, share=0.4, std=5e-4
    ),
    "attention, quadratic, 9 sizes, 25 %": Bottleneck(
        curve=quadratic(3.0, 0.1, 0.015), cell=WIDE_ATTENTION, sizes=9, share=0.25, std=3e-3
    ),
}


LAWS: dict[str, Trial] = {
    "transition of quadratics": Transition(
        first=quadratic(3.0, 0.1, 0.02),
        depths=(3, 6, 12, 18),
        a=4.6,
        b=0.05,
        slope=0.012,
        std=1.5e-3,
    ),
    "transition by the papers' law": Transition(
        first=power_law(2.0, 1.0, 0.15),
        depths=(6, 12, 18, 24),
        a=5.039,
        b=0.0555,
        slope=0.012,
        std=1.5e-3,
    ),
    "size law, alpha 0.07, 9 sizes": SizeLaw(
        floor=1.5, scale=1.8, alpha=0.07, sizes=9, decades=1.5, std=1e-3
    ),
    "size law, alpha 0.4, 6 sizes": SizeLaw(
        floor=2.5, scale=0.4, alpha=0.4, sizes=6, decades=1.0, std=2e-3
    ),
}
EQUAL_CURVES: dict[str, TwoDepths] = {
    "power laws, 12 sizes": TwoDepths(
        shallow=power_law(2.5, 0.4, 0.4),
        deep=power_law(2.5, 0.4, 0.4),
        sizes=12,
        decades=1.5,
        place=0.0,
        std=3e-3,
    ),
    "quadratics, 5 sizes": TwoDepths(
        shallow=quadratic(3.0, 0.1, 0.015),
        deep=quadratic(3.0, 0.1, 0.015),
        sizes=5,
        decades=1.0,
        place=0.0,
        std=1e-3,
    ),
}


def no_crossing_share(truth: TwoDepths, *, seeds: int, trials: int) -> float:
    """Of trials of two equal curves."""
    found = [
        fitted(truth.records(seeds, np.random.default_rng((number, seeds)))).crossings[0]
        for number in range(trials)
    ]
    return float(np.mean([not crossing.is_crossing for crossing in found]))
