"""What the prior is made of: runs of the atlas and networks of public grids, a kind at a time."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from archfit.advise.prior import LAW, LEAST_SIZE, NATS_A_BYTE, KindRuns, Row, log_tokens
from archfit.advise.surface import USUAL_TOKENS
from archfit.fit.atlas import Atlas, PublicNetwork, Series, public_networks
from archfit.fit.best_depth import DepthCurve
from archfit.fit.cells import grouped
from archfit.spec import lazy_numpy as np
from archfit.spec.architecture import BlockFamily
from archfit.theory.law import ideal_shape

LEAST_NOISE = 5e-4  # of ln loss: what no number of seeds takes away
GRID_NOISE = 0.002  # of ln loss: the least that a network of a public grid may have
LEAST_NETWORKS = 8  # of a public setting
SPAN = 3  # the deepest of them over the shallowest, at least
LAW_SIZES = (10e6, 20e6, 40e6, 80e6, 160e6, 320e6, 600e6)  # of blocks, where the law was fitted
LAW_COST, LAW_NOISE = 0.02, 0.002  # of ln loss; Kaplan et al. 2020: some per cent over wide ranges
# Rotary positions and gated units as in Llama, or learned positions (archai also Transformer-XL's).
GRID_BLOCKS: dict[str, BlockFamily] = {"gemstones": "llama", "gadre": "llama", "archai": "gpt2"}


def _rows_of_curve(curve: DepthCurve, tokens_a_parameter: float) -> Iterator[Row]:
    """The runs behind a curve, brought to its size."""
    noise = max(curve.noise / curve.least, LEAST_NOISE)
    for point in curve.points:
        missed = curve.slope * math.log(point.params / curve.size)
        logs = math.log(curve.size / 1e6), math.log(point.depth), math.log(point.mean - missed)
        yield *logs, noise**2 / len(point.losses), log_tokens(tokens_a_parameter)


def atlas_runs(
    atlas: Atlas, curves: Mapping[Series, tuple[DepthCurve, ...]]
) -> dict[str, tuple[KindRuns, ...]]:
    """What was trained on each kind of a family as usual, but for its blocks and tokens."""
    family = {kind.name: kind.family for kind in atlas.kinds}
    usual = [(series, c) for series, own in curves.items() if series.is_usual for c in own]
    told = [(series, curve) for series, curve in usual if curve.size >= LEAST_SIZE]
    kinds: dict[str, tuple[KindRuns, ...]] = defaultdict(tuple)
    for place, some in grouped(told, lambda each: replace(each[0], tokens_a_parameter=20)).items():
        rows = [row for own, curve in some for row in _rows_of_curve(curve, own.tokens_a_parameter)]
        name = f"{place.kind}, {place.words}"
        kinds[family[place.kind]] += (KindRuns.of(name, rows, block=place.block),)
    return dict(kinds)


def grid_settings(grid: str) -> dict[str, tuple[PublicNetwork, ...]]:
    """What may be compared in a public grid: for each schedule, networks as long in training.

    Of archai only networks drawn at random: others were chosen for their loss.
    """
    networks = [network for network in public_networks() if network.grid == grid]
    if grid == "archai":
        networks = [network for network in networks if network.setting.startswith("random_")]
    found = grouped(networks, _setting).items()
    return {name: tuple(some) for name, some in found if len(some) >= LEAST_NETWORKS}


def _setting(network: PublicNetwork) -> str:
    """By tokens, or where a grid scales them with size, by tokens a parameter."""
    if network.grid == "gemstones":
        return f"{network.setting}, {network.tokens / 1e9:.0f}B tokens"
    if network.grid == "gadre":
        halvings = round(2 * math.log2(network.tokens / network.params)) / 2
        return f"{network.setting}, {2**halvings:.2g} tokens a parameter"
    return network.setting


def grid_rows(networks: Sequence[PublicNetwork]) -> list[Row]:
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
    variances = np.full(len(losses), max(float(left @ left) / spare, GRID_NOISE**2))
    tokens = [log_tokens(tokens_of(network)) for network in networks]
    return list(zip(sizes, depths, losses, variances, tokens, strict=True))


def tokens_of(network: PublicNetwork) -> float:
    """Tokens a parameter; the usual number where nobody says."""
    return network.tokens / network.params if network.tokens else USUAL_TOKENS


def tokens_at(networks: Sequence[PublicNetwork], size: float) -> float:
    """Tokens a parameter of a size, where all networks have as many tokens, or as many for each."""
    if len({network.tokens for network in networks}) == 1 and networks[0].tokens:
        return networks[0].tokens / size
    return float(np.median([tokens_of(network) for network in networks]))


def schedule_groups(settings: Mapping[str, Sequence[PublicNetwork]]) -> dict[str, str]:
    """Settings that train the same networks, by one of them: they are one experiment.

    That is the one of most depths, then of most networks, then nearest to the usual tokens.
    """

    def worth(name: str) -> tuple[int, int, float]:
        networks = settings[name]
        away = [abs(log_tokens(tokens_of(network))) for network in networks]
        return len({network.depth for network in networks}), len(networks), -math.fsum(away)

    shapes = {name: {(n.depth, n.width, n.params) for n in some} for name, some in settings.items()}
    groups: dict[str, str] = {}
    for name in sorted(settings, key=worth, reverse=True):
        own = shapes[name]
        known = (each for each in groups.values() if 2 * len(own & shapes[each]) > len(own))
        groups[name] = next(known, name)
    return groups


def grid_runs(grid: str) -> tuple[KindRuns, ...]:
    """One setting of each experiment of a grid, where depths differ enough to tell of them.

    Other settings are the same networks again.
    """
    settings = grid_settings(grid)
    chosen = dict.fromkeys(schedule_groups(settings).values())
    kinds = [
        KindRuns.of(name, grid_rows(settings[name]), block=GRID_BLOCKS[grid], is_grid=True)
        for name in chosen
    ]
    return tuple(kind for kind in kinds if kind.deepest >= SPAN * kind.shallowest)


def law_runs() -> KindRuns:
    """The law of Levine et al. 2020, fitted to 10 networks and more at each size, as if trained:
    its best depth, and half and twice of it worse by LAW_COST."""
    rows = []
    for size in LAW_SIZES:
        best = math.log(ideal_shape(size).depth)
        for doublings in (-1.0, -0.5, 0.0, 0.5, 1.0):
            logs = math.log(size / 1e6), best + doublings * math.log(2), LAW_COST * doublings**2
            rows.append((*logs, LAW_NOISE**2, 0.0))  # it says nothing of tokens
    return KindRuns.of(LAW, rows, block="gpt2", is_grid=True)
