"""The prior: the surface that the atlas and public grids give, and what it says of depths.

It ships fitted (resources/prior.json; docs/atlas/prior.py fits it), also with each family of data
and each public grid left out, for back-tests.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from archfit.advise.surface import Observed, Posterior, Reals, Surface, of_sizes
from archfit.fit.atlas import Atlas, Series
from archfit.fit.best_depth import DepthCurve, DepthPoint
from archfit.fit.public_grids import PublicNetwork, public_networks
from archfit.spec import from_json
from archfit.spec.files import packed_file

if TYPE_CHECKING:
    import numpy as np
else:
    from archfit.spec import lazy_numpy as np

PRIOR = "prior.json"
LEAST_NOISE = 5e-4  # of ln loss: what no number of seeds takes away
GRID_NOISE = 0.002  # of ln loss: the least that a network of a public grid may have
LEAST_NETWORKS = 8  # of a public setting
GRID_DEPTHS = 64  # at which a decision looks
DRAWS = 1000
SURE = 0.9
NEAR = 0.01  # bits per byte, or of the loss where bits are not known: not worth a thought
BETTER = 0.01  # of the loss


def observed_points(
    points: Mapping[int, Sequence[DepthPoint]],
    noises: Mapping[int, float],
    slopes: Mapping[int, float],
) -> Observed:
    """Depths by size, brought to it; `noises` are standard deviations of one run over its loss."""
    rows = [
        (
            math.log(size / 1e6),
            math.log(point.depth),
            math.log(point.mean - slopes[size] * math.log(point.params / size)),
            max(noises[size], LEAST_NOISE) ** 2 / len(point.losses),
        )
        for size, found in points.items()
        for point in found
    ]
    sizes, depths, losses, variances = np.array(rows).reshape(-1, 4).T
    return Observed(
        sizes=sizes, depths=depths, losses=losses, variances=variances, levels=of_sizes(sizes)
    )


def observed_curves(curves: Iterable[DepthCurve]) -> Observed:
    """All runs behind these curves."""
    found = {curve.size: curve for curve in curves}
    return observed_points(
        {size: curve.points for size, curve in found.items()},
        {size: curve.noise / curve.least for size, curve in found.items()},
        {size: curve.slope for size, curve in found.items()},
    )


def atlas_families(
    atlas: Atlas, curves: Mapping[Series, tuple[DepthCurve, ...]]
) -> dict[str, list[Observed]]:
    """The plain series of each family of data."""
    family = {kind.name: kind.family for kind in atlas.kinds}
    found: dict[str, list[Observed]] = defaultdict(list)
    for series, own in curves.items():
        if series.is_plain and own:
            found[family[series.kind]].append(observed_curves(own))
    return dict(found)


def grid_settings(grid: str) -> dict[str, tuple[PublicNetwork, ...]]:
    """What may be compared in a public grid: for each schedule, networks as long in training."""
    found: dict[str, list[PublicNetwork]] = defaultdict(list)
    for network in public_networks():
        if network.grid == grid and _is_fair(network):
            found[_setting(network)].append(network)
    return {name: tuple(some) for name, some in found.items() if len(some) >= LEAST_NETWORKS}


def _is_fair(network: PublicNetwork) -> bool:
    """Of archai only networks drawn at random: others were chosen for their loss."""
    return network.grid != "archai" or network.setting.startswith("random_")


def _setting(network: PublicNetwork) -> str:
    """By tokens, or where a grid scales them with size, by tokens a parameter."""
    if network.grid == "gemstones":
        return f"{network.setting}, {network.tokens / 1e9:.0f}B tokens"
    if network.grid == "gadre":
        halvings = round(2 * math.log2(network.tokens / network.params)) / 2
        return f"{network.setting}, {2**halvings:.2g} tokens a parameter"
    return network.setting


def observed_grid(networks: Sequence[PublicNetwork]) -> Observed:
    """A setting of a public grid: hardly two networks have one size, so levels are parabolas.

    Its networks differ in more than depth and width, so noise is what a quadratic leaves.
    """
    sizes = np.log([network.params / 1e6 for network in networks])
    depths = np.log([network.depth for network in networks])
    losses = np.log([network.loss for network in networks])
    about = sizes - sizes.mean()
    levels = np.array([np.ones_like(about), about, about**2]).T
    design = np.column_stack([levels, depths, depths**2, depths * about])
    left = losses - design @ np.linalg.lstsq(design, losses, rcond=None)[0]
    spare = max(1, len(losses) - design.shape[1])
    variance = max(float(left @ left) / spare, GRID_NOISE**2)
    return Observed(
        sizes=sizes,
        depths=depths,
        losses=losses,
        variances=np.full(len(losses), variance),
        levels=levels,
    )


def last_settings(grid: str, most: int = 3) -> list[Observed]:
    """The largest settings of a grid, which are all that a prior takes: others are the same
    networks earlier in training."""
    settings = sorted(grid_settings(grid).values(), key=_weight, reverse=True)
    return [observed_grid(networks) for networks in settings[:most]]


def _weight(networks: Sequence[PublicNetwork]) -> tuple[int, int]:
    return len({n.depth for n in networks}), len(networks) + max(n.tokens for n in networks)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShippedPrior:
    """Surfaces by what they were not fitted to."""

    all: Surface
    families: Mapping[str, Surface]
    grids: Mapping[str, Surface]


@cache
def shipped_prior() -> ShippedPrior:
    """The one of this version."""
    table = json.loads(packed_file(PRIOR).read_text(encoding="utf-8"))
    parts = {name: table[name] for name in ("families", "grids")}
    left_out = {
        part: {name: from_json(Surface, found) for name, found in some.items()}
        for part, some in parts.items()
    }
    return ShippedPrior(all=from_json(Surface, table["all"]), **left_out)


@dataclass(frozen=True, kw_only=True, slots=True)
class DepthOutlook:
    """What is known of the best depth at one size. Losses are shares of the loss."""

    depth: float
    low: float  # depths from here …
    high: float  # … to here are near enough to the best with a probability of a half
    expected_regret: float
    regret_at_most: float  # with 90 %
    halved: float  # probability that half the depth would be better by more than 1 %
    doubled: float


def outlook(
    posteriors: Sequence[Posterior], size: float, ends: tuple[float, float], near: float = NEAR
) -> DepthOutlook:
    """The depth of least expected loss between two ends, by equal shares of these posteriors."""
    depths = np.exp(np.linspace(math.log(ends[0]), math.log(ends[1]), GRID_DEPTHS))
    share = max(1, DRAWS // len(posteriors))
    drawn = np.concatenate([
        each.draws(size, depths, share, seed=at) for at, each in enumerate(posteriors)
    ])  # fmt: skip
    regrets = np.expm1(drawn - drawn.min(axis=1, keepdims=True))
    best = int(regrets.mean(axis=0).argmin())
    is_near = np.flatnonzero((regrets <= near).mean(axis=0) >= 0.5)
    reach = is_near if len(is_near) else np.array([best])
    depth = float(depths[best])
    return DepthOutlook(
        depth=depth,
        low=float(depths[min(best, reach[0])]),
        high=float(depths[max(best, reach[-1])]),
        expected_regret=float(regrets[:, best].mean()),
        regret_at_most=float(np.quantile(regrets[:, best], SURE)),
        halved=_better(drawn, depths, depth, depth / 2),
        doubled=_better(drawn, depths, depth, depth * 2),
    )


def _better(drawn: Reals, depths: Reals, depth: float, other: float) -> float:
    """How likely another depth is better by more than a hundredth; one outside is not."""
    if not depths[0] <= other <= depths[-1]:
        return 0.0
    here, there = (np.abs(depths - each).argmin() for each in (depth, other))
    return float((drawn[:, here] - drawn[:, there] > math.log1p(BETTER)).mean())
