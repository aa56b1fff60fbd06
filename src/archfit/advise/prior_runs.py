"""What the prior is made of: runs of the atlas and networks of public grids, a kind at a time."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.advise.law import ideal_shape
from archfit.advise.surface import Observed, Reals, of_sizes
from archfit.fit.atlas import Atlas, Series
from archfit.fit.best_depth import DepthCurve, DepthPoint
from archfit.fit.public_grids import PublicNetwork, public_networks

if TYPE_CHECKING:
    import numpy as np
else:
    from archfit.spec import lazy_numpy as np

LEAST_NOISE = 5e-4  # of ln loss: what no number of seeds takes away


GRID_NOISE = 0.002  # of ln loss: the least that a network of a public grid may have


LEAST_NETWORKS = 8  # of a public setting


SPAN = 3  # the deepest of them over the shallowest, at least


LAW_SIZES = (10e6, 20e6, 40e6, 80e6, 160e6, 320e6, 600e6)  # of blocks, where the law was fitted


LAW_COST, LAW_NOISE = 0.02, 0.002  # of ln loss; Kaplan et al. 2020: some per cent over wide ranges


LEAST_SIZE = 250_000  # of networks that say something of larger ones: smaller ones hardly learn


NATS_A_BYTE = 4.3 * math.log(2)  # of text, a nat per token of a large vocabulary: 4.3 bytes a token


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
    return observed_rows(rows)


def observed_rows(rows: Sequence[tuple[float, float, float, float]]) -> Observed:
    """Rows of ln size, ln depth, ln loss and its variance, of one kind of data."""
    return _observed(np.array(rows).reshape(-1, 4), is_grid=False)


def _observed(rows: Reals, *, is_grid: bool) -> Observed:
    """In a public grid hardly two networks have one size, so levels are parabolas."""
    sizes, depths, losses, variances = rows.T
    about = sizes - sizes.mean() if is_grid else sizes
    levels = np.array([np.ones_like(about), about, about**2]).T if is_grid else of_sizes(sizes)
    return Observed(
        sizes=sizes,
        depths=depths,
        losses=losses,
        variances=variances,
        levels=levels,
        kinds=np.zeros(len(sizes)),
    )


def observed_curves(curves: Iterable[DepthCurve]) -> Observed:
    """All runs behind these curves."""
    found = {curve.size: curve for curve in curves if curve.size >= LEAST_SIZE}
    return observed_points(
        {size: curve.points for size, curve in found.items()},
        {size: curve.noise / curve.least for size, curve in found.items()},
        {size: curve.slope for size, curve in found.items()},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class KindRuns:
    """What was trained on one kind of data, as the prior keeps it."""

    name: str
    is_grid: bool
    rows: tuple[tuple[float, float, float, float], ...]  # ln size, depth, loss, and its variance

    @classmethod
    def of(cls, name: str, observed: Observed, *, is_grid: bool = False) -> "KindRuns":
        """With as many digits as a file keeps."""
        columns = observed.sizes, observed.depths, observed.losses, observed.variances
        rows = zip(*columns, strict=True)
        short = tuple(tuple(float(f"{number:.6g}") for number in row) for row in rows)
        return cls(name=name, is_grid=is_grid, rows=short)  # type: ignore[arg-type]

    @property
    def observed(self) -> Observed:
        """For the surface."""
        return _observed(np.array(self.rows), is_grid=self.is_grid)

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
        for size, _, loss, _ in self.rows:
            place = round(2 * size)
            bins[place] = min(bins.get(place, (size, math.inf)), (size, loss), key=lambda b: b[1])
        sizes, least = zip(*bins.values(), strict=True)
        if len(sizes) == 1:
            return 0.0, least[0]
        slope, start = np.polyfit(sizes, least, 1)
        return float(slope), float(start)


def atlas_runs(
    atlas: Atlas, curves: Mapping[Series, tuple[DepthCurve, ...]]
) -> dict[str, tuple[KindRuns, ...]]:
    """The plain series of each family of data."""
    family = {kind.name: kind.family for kind in atlas.kinds}
    found: dict[str, list[KindRuns]] = defaultdict(list)
    for series, own in curves.items():
        if series.is_plain and any(curve.size >= LEAST_SIZE for curve in own):
            name = f"{series.kind}, {series.vocabulary}"
            found[family[series.kind]].append(KindRuns.of(name, observed_curves(own)))
    return {name: tuple(kinds) for name, kinds in found.items()}


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
    """A setting of a public grid, in bits per byte.

    Its networks differ in more than depth and width, so noise is what a quadratic leaves.
    """
    sizes = np.log([network.params / 1e6 for network in networks])
    depths = np.log([network.depth for network in networks])
    losses = np.log([network.loss / NATS_A_BYTE for network in networks])
    about = sizes - sizes.mean()
    design = np.array([about**0, about, about**2, depths, depths**2, depths * about]).T
    left = losses - design @ np.linalg.lstsq(design, losses, rcond=None)[0]
    spare = max(1, len(losses) - design.shape[1])
    variance = max(float(left @ left) / spare, GRID_NOISE**2)
    rows = np.array([sizes, depths, losses, np.full(len(losses), variance)]).T
    return _observed(rows, is_grid=True)


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


def grid_runs(grid: str) -> tuple[KindRuns, ...]:
    """One setting of each experiment of a grid, where depths differ enough to tell of them.

    Other settings are the same networks again.
    """
    settings = grid_settings(grid)
    chosen = dict.fromkeys(schedule_groups(settings).values())
    kinds = [KindRuns.of(name, observed_grid(settings[name]), is_grid=True) for name in chosen]
    return tuple(kind for kind in kinds if kind.deepest >= SPAN * kind.shallowest)


def law_runs() -> KindRuns:
    """The law of Levine et al. 2020, fitted to 10 networks and more at each size, as if trained:
    its best depth, and half and twice of it worse by LAW_COST."""
    rows = []
    for size in LAW_SIZES:
        best = math.log(ideal_shape(size).depth)
        for doublings in (-1.0, -0.5, 0.0, 0.5, 1.0):
            loss = LAW_COST * doublings**2
            rows.append((math.log(size / 1e6), best + doublings * math.log(2), loss, LAW_NOISE**2))
    short = [tuple(float(f"{number:.6g}") for number in row) for row in rows]
    return KindRuns(name="Levine et al. 2020", is_grid=True, rows=tuple(short))  # type: ignore[arg-type]
