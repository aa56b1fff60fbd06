"""The prior: the surface that the atlas and public grids give, and what it says of depths.

It ships fitted, with the runs of every family (resources/prior.json; docs/atlas/prior.py makes it),
also with each family of data and each public grid left out, for back-tests. Data of a family that
the atlas has are one more kind of it; other data are a kind of a family of their own.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from archfit.advise.surface import (
    NEW,
    USUAL,
    USUAL_TOKENS,
    Observed,
    Posterior,
    Reals,
    Relatives,
    Surface,
    Training,
    of_sizes,
    short,
)
from archfit.spec import from_json
from archfit.spec import lazy_numpy as np
from archfit.spec.architecture import BlockFamily
from archfit.spec.files import packed_file

PRIOR = "prior.json"
LAW = "Levine et al. 2020"
LEAST_SIZE = 250_000  # of networks that say something of larger ones: smaller ones hardly learn
NATS_A_BYTE = 4.3 * math.log(2)  # of text, a nat per token of a large vocabulary: 4.3 bytes a token
TEXT = "text"  # the family of public grids
OURS = "archfit plan"  # among the rules of back-tests
GRID_DEPTHS = 80  # at which a decision looks
GRID_BEYOND = 20  # of depths that are not to be chosen
DRAWS = 1000
SURE = 0.9
CLOSE = 0.01  # bits per byte: depths this near the best are as good
CLEAR = 0.01  # of the loss: what a better depth must gain
UNSEEN = 2.0  # times the deepest network that was seen: so deep larger ones may want to be
LEAST_TOKENS = 1.0  # a parameter: the fewest at which networks of equal size were compared
FAR = 8  # times the largest run: beyond it nobody has looked


# A network: ln size, ln depth, ln loss, its variance, ln of tokens a parameter over the usual ones.
Row: TypeAlias = tuple[float, float, float, float, float]


def log_tokens(tokens_a_parameter: float) -> float:
    """As the surface counts them."""
    return math.log(tokens_a_parameter / USUAL_TOKENS)


@dataclass(frozen=True, kw_only=True, slots=True)
class KindRuns:
    """What was trained on one kind of data, as the prior keeps it."""

    name: str
    is_grid: bool = False
    rows: tuple[Row, ...]
    block: BlockFamily = "gpt2"  # the nearer of the two

    @classmethod
    def of(
        cls, name: str, rows: Iterable[Row], *, block: BlockFamily, is_grid: bool = False
    ) -> "KindRuns":
        """With as many digits as a file keeps."""
        written = tuple(tuple(map(short, row)) for row in rows)
        return cls(name=name, is_grid=is_grid, rows=written, block=block)  # type: ignore[arg-type]

    @property
    def observed(self) -> Observed:
        """For the surface. In a public grid hardly two networks have one size, so levels are
        parabolas."""
        sizes, depths, losses, variances, tokens = np.array(self.rows).reshape(-1, 5).T
        if self.is_grid:
            about = sizes - sizes.mean()
            levels = np.array([np.ones_like(about), about, about**2]).T
        else:
            levels = of_sizes(sizes, tokens)
        return Observed(
            sizes=sizes,
            tokens=tokens,
            depths=depths,
            losses=losses,
            variances=variances,
            levels=levels,
            kinds=np.zeros(len(sizes)),
            llama=np.full(len(sizes), float(self.block == "llama")),
        )

    @property
    def sizes(self) -> tuple[float, float]:
        """The smallest and the largest network, in parameters."""
        logs = [row[0] for row in self.rows]
        return 1e6 * math.exp(min(logs)), 1e6 * math.exp(max(logs))

    @property
    def shallowest(self) -> int:
        """Layers."""
        return round(math.exp(min(row[1] for row in self.rows)))

    @property
    def deepest(self) -> int:
        """Layers."""
        return round(math.exp(max(row[1] for row in self.rows)))

    def line(self) -> tuple[float, float]:
        """ln of the least loss over ln size: the slope of a line, and its height at 1M."""
        bins: dict[int, tuple[float, float]] = {}
        for size, _, loss, *_ in self.rows:
            place = round(2 * size)
            bins[place] = min(bins.get(place, (size, math.inf)), (size, loss), key=lambda b: b[1])
        sizes, least = zip(*bins.values(), strict=True)
        if len(sizes) == 1:
            return 0.0, least[0]
        slope, start = np.polyfit(sizes, least, 1)
        return float(slope), float(start)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShippedPrior:
    """Surfaces by what they were not fitted to, and the runs of each family."""

    all: Surface
    families: Mapping[str, Surface]
    grids: Mapping[str, Surface]
    runs: Mapping[str, tuple[KindRuns, ...]]
    grid_runs: Mapping[str, tuple[KindRuns, ...]]
    new_kinds: Mapping[str, Posterior]  # what the surface of all says of a new kind of a family
    rules: Mapping[str, float]  # what rules, ours among them, lost in back-tests on the atlas


@cache
def shipped_prior() -> ShippedPrior:
    """The one of this version."""
    table = json.loads(packed_file(PRIOR).read_text(encoding="utf-8"))
    surface = from_json(Surface, table["all"])
    return ShippedPrior(
        all=surface,
        families={name: from_json(Surface, found) for name, found in table["families"].items()},
        grids={name: from_json(Surface, found) for name, found in table["grids"].items()},
        runs={name: tuple(map(_kind, found)) for name, found in table["runs"].items()},
        grid_runs={name: tuple(map(_kind, found)) for name, found in table["grid_runs"].items()},
        new_kinds={
            name: Posterior(
                surface=surface,
                weights=tuple(found["weights"]),
                relatives=tuple(Relatives(*each) for each in found["relatives"]),
            )
            for name, found in table["new_kinds"].items()
        },
        rules=table.get("rules", {}),  # docs/atlas/prior.py adds them
    )


def _kind(found: Mapping[str, Any]) -> KindRuns:
    """Without the codec's checks of every number: there are thousands, and the file is ours."""
    rows = tuple(map(tuple, found["rows"]))
    return KindRuns(**{**found, "rows": rows})


DepthCost: TypeAlias = Callable[[float], float]  # of ln loss, that a depth has beside its own


@dataclass(frozen=True, kw_only=True, slots=True)
class Knowledge:
    """What depths are chosen by: runs on a family of data, and any on the data themselves."""

    family: str | None  # None: of no known one
    kinds: tuple[KindRuns, ...]  # of the family; of all where it is not known
    posterior: Posterior
    block: BlockFamily  # of the networks that are asked about
    deepest: int  # network that was seen
    largest: float  # in parameters; of the runs on the data themselves, if there are any
    kind: int = NEW  # that is asked about
    own_runs: int = 0  # on the data themselves

    @classmethod
    def of(
        cls,
        family: str | None,
        kinds: Iterable[KindRuns],
        posterior: Posterior,
        block: BlockFamily,
    ) -> "Knowledge":
        """Without runs on the data."""
        some = tuple(kinds)
        return cls(
            family=family,
            kinds=some,
            posterior=posterior,
            block=block,
            deepest=max(kind.deepest for kind in some),
            largest=max(kind.sizes[1] for kind in some),
        )

    @property
    def largest_of_all(self) -> float:
        """The largest network on these data or others, in parameters."""
        return max(self.largest, *(kind.sizes[1] for kind in self.kinds))

    @property
    def most_tokens(self) -> float:
        """The most tokens a parameter that networks on other data were trained on."""
        return USUAL_TOKENS * math.exp(max(row[4] for kind in self.kinds for row in kind.rows))

    def training(self, tokens_per_param: float = USUAL_TOKENS) -> Training:
        """Networks of these blocks on these data."""
        return Training(self.kind, tokens_per_param, self.block == "llama")

    def outlook(
        self,
        size: float,
        deepest: float,
        tokens_per_param: float = USUAL_TOKENS,
        cost: DepthCost | None = None,
        most: float | None = None,
    ) -> "DepthOutlook":
        """Depths at a size, up to one; nothing is asked below what was fitted.

        No depth is chosen beyond `most`, where that is less, or beyond what was seen; what is lost
        by that counts. In networks larger than any that was seen the best may be deeper than all.
        """
        seen = self.deepest * (UNSEEN if size > self.largest_of_all else 1.0)
        end = max(1.0 + 1e-9, min(float(self.deepest), deepest, deepest if most is None else most))
        return outlook(
            self.posterior,
            max(size, LEAST_SIZE),
            (1.0, end, min(seen, deepest)),
            close=CLOSE / self.level(size),
            cost=cost,
            training=self.training(self.tokens_told_of(size, tokens_per_param)),
        )

    def tokens_told_of(self, size: float, tokens_per_param: float) -> float:
        """The same tokens, unless so few say nothing of depths.

        The fewest are those of LEAST_SIZE parameters on the usual tokens, brought to this size, and
        those at which networks were ever compared.
        """
        patience = self.posterior.surface.patience
        least = USUAL_TOKENS * math.pow(min(1.0, LEAST_SIZE / size), 1 / patience)
        return max(least, LEAST_TOKENS, tokens_per_param)

    def level(self, size: float) -> float:
        """Bits per byte (or symbol) of a good network: the mean of the kinds nearest in size."""
        log_size = math.log(size / 1e6)
        levels = []
        for kind in self._nearest(size):
            low, high = (math.log(end / 1e6) for end in kind.sizes)
            slope, start = kind.line()
            reach = min(max(log_size, low - math.log(FAR)), high + math.log(FAR))
            levels.append(start + slope * reach)
        return math.exp(math.fsum(levels) / len(levels))

    def slope(self, size: float) -> float:
        """How ln loss falls with ln size about there."""
        slopes = [kind.line()[0] for kind in self._nearest(size, of_several=True)]
        return math.fsum(slopes) / len(slopes)

    def _nearest(self, size: float, *, of_several: bool = False) -> list[KindRuns]:
        """The kinds whose networks are nearest in size, of several sizes if that is asked for.

        With any blocks: losses differ far more by data than by blocks.
        """

        def distance(kind: KindRuns) -> float:
            low, high = kind.sizes
            return abs(math.log(size / min(max(size, low), high)))

        kinds = [kind for kind in self.kinds if kind.name != LAW]  # which has no losses of its own
        if of_several:
            kinds = [kind for kind in kinds if kind.line()[0]] or kinds
        least = min(map(distance, kinds))
        return [kind for kind in kinds if distance(kind) <= least + 1e-9]


def known_families() -> tuple[str, ...]:
    """That the atlas has."""
    return tuple(shipped_prior().runs)


@cache
def family_prior(family: str | None, block: BlockFamily = "gpt2") -> Knowledge:
    """What is known of a family that the atlas has; of any other, or None, by all kinds."""
    prior = shipped_prior()
    if family is None or family not in prior.runs:
        kinds = (kind for some in prior.runs.values() for kind in some)
        return Knowledge.of(None, kinds, prior.all.given(None), block)
    grids = (kind for some in prior.grid_runs.values() for kind in some) if family == TEXT else ()
    return Knowledge.of(family, (*prior.runs[family], *grids), prior.new_kinds[family], block)


@dataclass(frozen=True, kw_only=True, slots=True)
class DepthOutlook:
    """What is known of the best depth at one size. Losses are shares of the loss."""

    depth: float
    low: float  # depths from here to `high` are as good as the best, more likely than not
    high: float
    expected_regret: float
    regret_at_most: float  # with 90 %
    half_better: float  # probability that half the depth is better by more than 1 %
    double_better: float
    regrets: tuple[tuple[float, float], ...]  # depths, and what each is expected to lose

    def regret_at(self, depth: float) -> float:
        """What a depth is expected to lose, between those that were looked at."""
        depths, lost = zip(*self.regrets, strict=True)
        return float(np.interp(math.log(depth), np.log(depths), lost))


def outlook(
    posterior: Posterior,
    size: float,
    ends: tuple[float, ...],
    *,
    close: float = CLOSE,
    training: Training = USUAL,
    cost: DepthCost | None = None,
) -> DepthOutlook:
    """The depth of least expected loss between two ends; `close` is a share of the loss.

    Up to a third end, if there is one, depths are not chosen, but what they gain is regret.
    """
    low, high, *reach = ends
    depths = np.exp(np.linspace(math.log(low), math.log(high), GRID_DEPTHS))

    def drawn_and_regrets(beyond: Reals) -> tuple[Reals, Reals]:
        every = np.append(depths, beyond)
        drawn = posterior.draws(size, every, DRAWS, training)
        if cost is not None:
            drawn = drawn + np.array([cost(float(depth)) for depth in every])
        kept = drawn[:, :GRID_DEPTHS]
        return kept, np.expm1(kept - drawn.min(axis=1, keepdims=True))

    drawn, regrets = drawn_and_regrets(np.empty(0))
    best = int(regrets.mean(axis=0).argmin())
    if reach and reach[0] > high:  # after the choice: random numbers of more depths differ
        drawn, regrets = drawn_and_regrets(np.geomspace(high, reach[0], GRID_BEYOND)[1:])
    means = regrets.mean(axis=0)
    near = np.flatnonzero((regrets <= close).mean(axis=0) >= 0.5)
    near = np.append(near, best)

    def better(factor: float) -> float:
        other = int(np.abs(depths - factor * depths[best]).argmin())
        return float((drawn[:, best] - drawn[:, other] > CLEAR).mean())

    return DepthOutlook(
        depth=float(depths[best]),
        low=float(depths[near.min()]),
        high=float(depths[near.max()]),
        expected_regret=float(means[best]),
        regret_at_most=float(np.sort(regrets[:, best])[math.ceil(SURE * len(regrets)) - 1]),
        half_better=better(0.5),
        double_better=better(2.0),
        regrets=tuple((float(d), float(m)) for d, m in zip(depths, means, strict=True)),
    )
