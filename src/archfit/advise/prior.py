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

from archfit.advise.surface import Observed, Posterior, Surface, of_sizes
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


def schedule_groups(settings: Mapping[str, Sequence[PublicNetwork]]) -> dict[str, str]:
    """Settings that train the same networks, by the largest of them: they are one experiment."""

    def worth(name: str) -> tuple[int, int, int]:
        networks = settings[name]
        depths = len({network.depth for network in networks})
        return depths, len(networks), max(network.tokens for network in networks)

    shapes = {name: {(n.depth, n.width, n.params) for n in some} for name, some in settings.items()}
    groups: dict[str, str] = {}
    for name in sorted(settings, key=worth, reverse=True):
        known = (each for each in groups.values() if _overlap(shapes[name], shapes[each]))
        groups[name] = next(known, name)
    return groups


def _overlap(some: set[tuple[int, int, int]], others: set[tuple[int, int, int]]) -> bool:
    return 2 * len(some & others) > len(some)


def grid_kinds(grid: str) -> list[Observed]:
    """One setting of each experiment of a grid: others are the same networks again."""
    settings = grid_settings(grid)
    chosen = dict.fromkeys(schedule_groups(settings).values())
    return [observed_grid(settings[name]) for name in chosen]


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
    expected_regret: float
    regret_at_most: float  # with 90 %


def outlook(posterior: Posterior, size: float, ends: tuple[float, float]) -> DepthOutlook:
    """The depth of least expected loss between two ends."""
    depths = np.exp(np.linspace(math.log(ends[0]), math.log(ends[1]), GRID_DEPTHS))
    drawn = posterior.draws(size, depths, DRAWS)
    regrets = np.expm1(drawn - drawn.min(axis=1, keepdims=True))
    best = int(regrets.mean(axis=0).argmin())
    return DepthOutlook(
        depth=float(depths[best]),
        expected_regret=float(regrets[:, best].mean()),
        regret_at_most=float(np.quantile(regrets[:, best], SURE)),
    )
