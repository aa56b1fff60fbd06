"""What advice is worth: the regret of rules, of the prior and of a ladder, on data left out.

A setting is one kind of data (or public schedule) and size. Regret is what a depth loses there
against the best depth. Never against the luckiest run: where seeds allow, the reference depth is
the best of a smooth curve through one half of them, and rule and reference are scored by the curve
of the other half; else both by one curve. The prior has not seen the family of the setting.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import fmean
from typing import TypeAlias

from archfit.advise.advisers import NetworkFacts, all_advice
from archfit.advise.ladder import LadderLimits, LadderRun, Rung, climbed, knowledge
from archfit.advise.prior import LEAST_SIZE, OURS, TEXT, Knowledge, outlook, shipped_prior
from archfit.advise.prior_runs import GRID_BLOCKS, schedule_groups, tokens_at
from archfit.advise.prior_runs import grid_settings as schedules_of
from archfit.advise.surface import USUAL_TOKENS, joined
from archfit.fit.atlas import HELD_BACK, SOURCES, Atlas, PublicNetwork, Series, read_atlas, size_of
from archfit.fit.best_depth import DepthCurve, DepthPoint, depth_curves
from archfit.fit.cells import grouped
from archfit.fit.curves import RESAMPLES, generator
from archfit.fit.noise import TAIL
from archfit.spec import lazy_numpy as np
from archfit.spec.architecture import BlockFamily
from archfit.spec.estimate import UNKNOWN, Estimate

Score: TypeAlias = Callable[[float], float]  # the loss of a depth, by a curve
ATLAS, UNSEEN = "atlas", "held-back"  # nothing was fitted to the latter
ALL_GRIDS = (ATLAS, UNSEEN, *SOURCES)
FIXED = (4, 6, 8, 12, 16, 24)
PRIOR, LADDER = OURS, "archfit advise"
GRID_POINTS = 120
SIZES_OF_A_GRID = 6
NEAR_SIZE = 1.6  # networks within this factor say which depths a size has
LADDER_SHARE, LARGE_SHARE = 0.5, 0.15  # of the operations of the network that is asked about
TINY = 1e-9  # of them
LARGE = 8_000_000  # parameters, from which on a ladder may cost the lesser share
LEAST_LADDER = 1_000_000  # with smaller budgets a ladder has no rung
LEAST_FAMILIES = 3
LEAST_DEPTHS, LEAST_WIDTHS = 3, 2  # of networks near a size of a public grid


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """Networks of one size on one kind of data."""

    grid: str
    family: str  # left out together; of public grids, schedules of the same networks
    name: str
    size: int
    ends: tuple[float, float]  # depths trained
    halves: tuple[tuple[float, Score], ...]  # a reference depth, and the curve that scores it
    runs: tuple[LadderRun, ...]  # of smaller networks, that a ladder could have made
    vocab: int
    tokens_per_param: float
    block: BlockFamily

    def regret(self, depth: float) -> float:
        """Of a depth, against the reference; a mean over halves."""
        return fmean(score(depth) - score(best) for best, score in self.halves)

    def has(self, depth: float) -> bool:
        """Whether such a depth was trained, or lies between two that were."""
        return self.ends[0] <= depth * 1.0001 and depth <= self.ends[1] * 1.0001

    @property
    def oracle(self) -> float | None:
        """What the reference loses to the best of the curve that scores it, if that is another."""
        if len(self.halves) < 2:
            return None
        depths = _depths(self.ends)
        return fmean(score(best) - min(map(score, depths)) for best, score in self.halves)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pick:
    """A rule's depth in a setting; no regret where such a depth was not trained."""

    setting: Setting
    depth: float
    regret: float | None
    at_most: float | None = None  # with 90 %, where the rule says so


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleScore:
    """What a rule loses on a grid: means over families, each counted once."""

    rule: str
    picks: tuple[Pick, ...]
    mean: float | None
    worst: float | None
    low: float | None  # of the mean, over families
    high: float | None
    scored: int  # settings in which it names a depth that was trained
    more: Estimate  # regret than the prior's in the same settings, a mean over families

    @property
    def covered(self) -> Estimate:
        """The share of settings in which "at most" held, and its interval by how families do."""
        held = [
            (pick, float(pick.regret <= pick.at_most))
            for pick in self.picks
            if pick.regret is not None and pick.at_most is not None
        ]
        share = fmean(each for _, each in held) if held else None
        return replace(_over_families(held), value=share)


@dataclass(frozen=True, kw_only=True, slots=True)
class Backtest:
    """All rules on one grid."""

    grid: str
    unit: str
    settings: tuple[Setting, ...]
    scores: tuple[RuleScore, ...]  # least regret first, each beside the prior's where both are

    @property
    def oracle(self) -> float | None:
        """The mean of that of settings which have one."""
        known = [each.oracle for each in self.settings if each.oracle is not None]
        return fmean(known) if known else None

    @property
    def in_halves(self) -> int:
        """Settings whose best depth is chosen on one half of the seeds, and scored on the other."""
        return sum(len(setting.halves) == 2 for setting in self.settings)


def backtest(atlas: Atlas, grids: Sequence[str]) -> tuple[Backtest, ...]:
    """Every rule on the atlas and on public grids."""
    found = []
    for grid in grids:
        unit = "nats per token" if grid in SOURCES else "bits per byte or symbol"
        if grid in SOURCES:
            settings = public_settings(grid)
        else:
            settings = atlas_settings(read_atlas(HELD_BACK) if grid == UNSEEN else atlas)
        if settings:
            # Means of rules are of different settings; what they lose more than the prior is not.
            more = {score: score.more.value for score in _scores(settings)}
            scores = sorted(more, key=lambda score: (more[score] is None, more[score]))
            found.append(Backtest(grid=grid, unit=unit, settings=settings, scores=tuple(scores)))
    return tuple(found)


def atlas_settings(atlas: Atlas) -> tuple[Setting, ...]:
    """The usual series of every kind, from LEAST_SIZE on; ladders only where tokens are usual."""
    family = {kind.name: kind.family for kind in atlas.kinds}
    finished = [run for run in atlas.runs if run.record.status == "finished"]
    usual = [run for run in finished if Series.of(run).is_usual]
    found = list[Setting]()
    for series, own in grouped(usual, Series.of).items():
        runs = [LadderRun.of(size_of(run.spec), run.record) for run in own]
        is_usual = series.tokens_a_parameter == USUAL_TOKENS
        halves = [_curves(series, (r for r in runs if r.seed % 2 == half)) for half in (0, 1)]
        for size, curve in _curves(series, runs).items():
            if size >= LEAST_SIZE:
                smaller = (run for run in runs if LEAST_SIZE <= run.size < size)
                setting = Setting(
                    grid=ATLAS,
                    family=family[series.kind],
                    name=f"{series.kind}, {series.words}",
                    size=size,
                    ends=(float(curve.depths[0]), float(curve.depths[-1])),
                    halves=_halves(curve, *(half.get(size) for half in halves)),
                    runs=tuple(smaller) if is_usual else (),
                    vocab=own[0].spec.architecture.input.vocab,
                    tokens_per_param=series.tokens_a_parameter,
                    block=series.block,
                )
                found.append(setting)
    return tuple(found)


def _curves(series: Series, runs: Iterable[LadderRun]) -> dict[int, DepthCurve]:
    """Of each size, by all seeds of a shape."""
    points = {}
    for size, own in grouped(runs, lambda run: run.size).items():
        cells = grouped(own, lambda run: (run.depth, run.params)).items()
        losses = {shape: tuple(run.bits for run in some) for shape, some in cells}
        points[size] = [DepthPoint(depth=d, params=n, losses=losses[d, n]) for d, n in losses]
    return {curve.size: curve for curve in depth_curves(repr(series), points)}


def _halves(
    whole: DepthCurve, first: DepthCurve | None, second: DepthCurve | None
) -> tuple[tuple[float, Score], ...]:
    """Of each a reference depth, and the curve that scores it: one half of the seeds, the other."""
    pairs = [(whole, whole)]
    if first and second and len(first.points) == len(second.points) == len(whole.points):
        pairs = [(first, second), (second, first)]
    return tuple((best, other.at) for one, other in pairs if (best := one.best.value) is not None)


def _climbed(setting: Setting, prior: Knowledge) -> Knowledge:
    """What a ladder of the setting's smaller networks tells, at a share of the operations."""
    there = {(run.size, run.depth, run.seed): run for run in setting.runs}
    share = LADDER_SHARE if setting.size < LARGE else LARGE_SHARE
    spent: list[float] = []

    def cost(rung: Rung) -> float:  # operations go with parameters times tokens
        return len(rung.depths) * (rung.size / setting.size) ** 2

    def trained(rung: Rung) -> list[LadderRun]:
        spent.append(cost(rung))
        keys = [(rung.size, depth, rung.seed) for depth in rung.depths]
        return [there[key] for key in keys if key in there]

    limits = LadderLimits(
        budget=setting.size,
        tokens_per_param=setting.tokens_per_param,
        deepest=setting.ends[1],
        depths=lambda size: sorted({depth for each, depth, _ in there if each == size}),
        price=lambda rung: cost(rung) / max(share - math.fsum(spent), TINY),
    )
    return knowledge(prior, climbed(prior, (), limits, trained))


def public_settings(grid: str) -> tuple[Setting, ...]:
    """Sizes of each schedule of a public grid, scored by a quadratic through its networks."""
    found, schedules = [], schedules_of(grid)
    groups = schedule_groups(schedules)
    for name, networks in schedules.items():
        sizes = np.log([network.params for network in networks])
        score = _quadratic(networks)
        for log_size in np.quantile(sizes, np.linspace(0.1, 0.9, SIZES_OF_A_GRID)):
            near = [n for n, s in zip(networks, sizes, strict=True)
                    if abs(s - log_size) <= math.log(NEAR_SIZE)]  # fmt: skip
            depths = {network.depth for network in near}
            widths = {network.width for network in near}  # of one width the deeper are the larger
            if len(depths) >= LEAST_DEPTHS and len(widths) >= LEAST_WIDTHS:
                ends = float(min(depths)), float(max(depths))
                loss = partial(score, float(log_size))
                best = min(_depths(ends), key=loss)
                found.append(
                    Setting(
                        grid=grid,
                        family=groups[name],
                        name=name,
                        size=round(math.exp(log_size)),
                        ends=ends,
                        halves=((best, loss),),
                        runs=(),
                        vocab=0,
                        tokens_per_param=tokens_at(networks, math.exp(log_size)),
                        block=GRID_BLOCKS[grid],
                    )
                )
    return tuple(found)


def _depths(ends: tuple[float, float]) -> list[float]:
    """Many, evenly in their logarithms."""
    low, high = map(math.log, ends)
    return [float(depth) for depth in np.exp(np.linspace(low, high, GRID_POINTS))]


def _quadratic(networks: Sequence[PublicNetwork]) -> Callable[[float, float], float]:
    """The loss by ln size and depth, whose logarithm is quadratic."""

    def row(log_size: float, depth: float) -> list[float]:
        s, x = log_size - middle, math.log(depth)
        return [1.0, s, s * s, x, x * x, x * s]

    middle = math.fsum(math.log(n.params) for n in networks) / len(networks)
    design = np.array([row(math.log(n.params), n.depth) for n in networks])
    logs = np.log([n.loss for n in networks])
    solved = np.linalg.lstsq(design, logs, rcond=None)[0]
    return lambda log_size, depth: math.exp(float(np.dot(solved, row(log_size, depth))))


def _scores(settings: Sequence[Setting]) -> Iterable[RuleScore]:
    picks: dict[str, list[Pick]] = defaultdict(list)
    for setting in settings:
        for rule, depth in _rules(setting).items():
            picks[rule].append(_pick(setting, depth))
        family = setting.family if setting.grid == ATLAS else ""
        prior = _unseen(setting.grid, family, setting.block)
        picks[PRIOR].append(_outlook_pick(setting, prior))
        if setting.runs and setting.size >= LEAST_LADDER:
            picks[LADDER].append(_outlook_pick(setting, _climbed(setting, prior)))
    ours = {pick.setting: pick for pick in picks[PRIOR]}
    for rule, made in picks.items():
        yield _score(rule, made, ours)


@cache
def _unseen(grid: str, family: str, block: BlockFamily) -> Knowledge:
    """What is known without the family, or the grid, of a setting."""
    prior = shipped_prior()
    if grid == ATLAS:  # a family of the user's is in none
        kinds = [kind for name, some in prior.runs.items() if name != family for kind in some]
        surface = prior.families.get(family, prior.all)
        return Knowledge.of(None, kinds, surface.given(None), block)
    others = [kind for name, some in prior.grid_runs.items() if name != grid for kind in some]
    text = *prior.runs[TEXT], *others
    posterior = prior.grids[grid].given(joined([kind.observed for kind in text]))
    return Knowledge.of(TEXT, text, posterior, block)


def _rules(setting: Setting) -> dict[str, float]:
    facts = NetworkFacts(
        block_params=setting.size,
        rank_limit=setting.vocab or setting.size,
        is_text=setting.grid != ATLAS or setting.family == "text",
        is_vision=False,
    )
    others = {each.name: each.depth for each in all_advice(facts) if each.depth is not None}
    fixed = {f"always {depth} layers": float(depth) for depth in FIXED}
    return {name: max(1.0, depth) for name, depth in (others | fixed).items()}


def _pick(setting: Setting, depth: float, at_most: float | None = None) -> Pick:
    regret = setting.regret(depth) if setting.has(depth) else None
    return Pick(setting=setting, depth=depth, regret=regret, at_most=at_most)


def _outlook_pick(setting: Setting, known: Knowledge) -> Pick:
    training = known.training(setting.tokens_per_param)
    found = outlook(known.posterior, setting.size, setting.ends, training=training)
    best, score = setting.halves[0]
    return _pick(setting, found.depth, found.regret_at_most * score(best))


def _score(rule: str, picks: Sequence[Pick], ours: Mapping[Setting, Pick]) -> RuleScore:
    both = [
        (pick, pick.regret, prior)
        for pick in picks
        if pick.regret is not None and (prior := ours[pick.setting].regret) is not None
    ]
    found = _over_families((pick, regret) for pick, regret, _ in both)
    more = ((pick, regret - prior) for pick, regret, prior in both)
    return RuleScore(
        rule=rule,
        picks=tuple(picks),
        mean=found.value,
        worst=max((regret for _, regret, _ in both), default=None),
        low=found.low,
        high=found.high,
        scored=len(both),
        more=_over_families(more, is_signed=True),
    )


def _over_families(numbers: Iterable[tuple[Pick, float]], *, is_signed: bool = False) -> Estimate:
    """The mean of the means of families, and its interval by how they differ.

    That of a number below 0 nowhere draws families anew, with tails that are wider the fewer they
    are (Hesterberg 2015); that of one with a sign is Student's.
    """
    from scipy.special import ndtr, stdtrit

    families = grouped(numbers, lambda each: each[0].setting.family).values()
    means, count = [fmean(number for _, number in some) for some in families], len(families)
    if count < LEAST_FAMILIES:
        return Estimate(value=fmean(means), low=None, high=None) if means else UNKNOWN
    mean, t = fmean(means), float(stdtrit(count - 1, 1 - TAIL))
    if is_signed:
        half = t * float(np.std(means, ddof=1)) / math.sqrt(count)
        return Estimate(value=mean, low=mean - half, high=mean + half)
    tail = float(ndtr(-t * math.sqrt(count / (count - 1))))
    drawn = generator("families").choice(means, (RESAMPLES, count)).mean(axis=1)
    low, high = (float(end) for end in np.quantile(drawn, [tail, 1 - tail]))
    return Estimate(value=mean, low=low, high=high)
