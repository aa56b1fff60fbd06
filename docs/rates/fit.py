"""The rule of automatic learning rates from our runs, and what it costs on others.

    python docs/rates/fit.py docs/rates/{fit,map,cpu}.jsonl.xz     # prints resources/rates.toml
    python docs/rates/fit.py --check docs/rates/check.jsonl.xz     # the rule that ships, on others
    python docs/rates/fit.py --chart docs/rates/*.jsonl.xz > docs/rates/map.svg

Files have one record a line. A network's loss (held-out bits per byte, mean over seeds) is a smooth
curve through the rates it was trained at, in ln rate; what a rate costs is the curve there over its
minimum. A check prints it also against a minimum that is not the luckiest (`fair_cost`). The rule
is the product of powers that costs least on average, no cost counted above 0.1.
"""

import argparse
import lzma
import math
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import vl_convert
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.optimize import minimize

from archfit.spec import RunRecord, RunSpec, loads
from archfit.spec.rates import BATCH_TOKENS, WIDTH, auto_rate

LEAST_RATES, LEAST_STEPS, LEAST_TOKENS_A_PARAMETER = 3, 180, 2  # of networks in the fit
BLOCKS = ("gpt2", "llama")
MOST_COST, SLOPE_OUTSIDE = 0.1, 0.15  # bits; a rate beyond those tried costs that per factor of e
FACTOR = math.log(2)
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TunedNetwork:
    """One network on one data set: its loss over the learning rate."""

    spec: RunSpec
    log_rates: Array
    losses: Array
    halves: tuple[Array, Array]  # the losses of either half of the seeds
    spread: float  # of seeds, at the middle rate: a standard deviation, nan of a single one

    @property
    def batch_tokens(self) -> int:
        """Positions a step."""
        return self.spec.recipe.batch_sequences * self.spec.architecture.context

    @property
    def is_fitted_to(self) -> bool:
        """Whether the fit takes it: trained for long enough to compare rates."""
        shape, steps = self.spec.architecture, self.spec.recipe.steps
        tokens = steps * self.batch_tokens
        return steps >= LEAST_STEPS and tokens >= LEAST_TOKENS_A_PARAMETER * shape.params

    @property
    def features(self) -> Array:
        """What the coefficients of the rule multiply."""
        shape = self.spec.architecture
        is_block = [float(shape.block == block) for block in BLOCKS]
        sizes = np.log([shape.width / WIDTH, self.batch_tokens / BATCH_TOKENS])
        return np.array([*is_block, *sizes])

    def cost(self, log_rate: float) -> float:
        """Bits per byte that a rate loses against the best of the curve."""
        low, high = self.log_rates[0], self.log_rates[-1]
        curve = PchipInterpolator(self.log_rates, self.losses)
        best = float(curve(np.linspace(low, high, 60)).min())
        outside = max(0.0, low - log_rate, log_rate - high)
        here = float(curve(min(max(log_rate, low), high)))
        return float(here - best + SLOPE_OUTSIDE * outside)

    def fair_cost(self, log_rate: float) -> float:
        """The same against a best rate that is not the luckiest: it is chosen by the curve of one
        half of the seeds, and both rates are scored by that of the other."""
        grid = np.linspace(self.log_rates[0], self.log_rates[-1], 60)
        here = min(max(log_rate, grid[0]), grid[-1])
        first, second = (PchipInterpolator(self.log_rates, losses) for losses in self.halves)
        return float(
            np.mean(
                [
                    score(here) - score(grid[choose(grid).argmin()])
                    for choose, score in ((first, second), (second, first))
                ]
            )
        )

    def smoothed_cost(self, log_rate: float) -> float:
        """The same by a cubic curve near the points, in which chance at single rates counts less.

        Points far above the best count little: no cubic follows a run that diverges.
        """
        above = self.losses - self.losses.min()
        centre = self.log_rates.mean()
        cubic = np.polynomial.Polynomial.fit(
            self.log_rates - centre, above, min(3, len(above) - 1), w=1 / (0.02 + above)
        )
        grid = np.linspace(self.log_rates[0], self.log_rates[-1], 60)
        low, high = self.log_rates[[0, -1]]
        return float(cubic(min(max(log_rate, low), high) - centre) - cubic(grid - centre).min())


def read(files: Iterable[Path]) -> list[TunedNetwork]:
    """All networks that were trained at several rates; diverged runs count as 9 bits."""
    losses: dict[RunSpec, dict[float, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = loads(RunRecord, line)
                spec, rate = record.spec, record.spec.recipe.peak_learning_rate
                network = without_rate_and_seed(spec)
                is_finished = record.status == "finished"
                bits = record.evaluations[-1].heldout_bits_per_byte if is_finished else 9.0
                losses[network][rate][spec.seed] = bits
    return [tuned(spec, by_rate) for spec, by_rate in losses.items() if len(by_rate) >= LEAST_RATES]


def tuned(spec: RunSpec, by_rate: dict[float, dict[int, float]]) -> TunedNetwork:
    """The network with its losses by rate, which may have several seeds."""
    rates = sorted(by_rate)
    seeds = [*by_rate[rates[len(rates) // 2]].values()]
    half = (max(max(by_rate[rate]) for rate in rates) + 1) / 2

    def means(low: float, high: float) -> Array:
        kept = [[x for seed, x in by_rate[r].items() if low <= seed < high] for r in rates]
        return np.array(
            [np.mean(some or [*by_rate[r].values()]) for r, some in zip(rates, kept, strict=True)]
        )

    return TunedNetwork(
        spec=spec,
        log_rates=np.log(rates),
        losses=means(0, math.inf),
        halves=(means(0, half), means(half, math.inf)),
        spread=float(np.std(seeds, ddof=1)) if len(seeds) > 1 else math.nan,
    )


def without_rate_and_seed(spec: RunSpec) -> RunSpec:
    """The same for all rates and seeds of a network."""
    return replace(spec, seed=0, recipe=replace(spec.recipe, peak_learning_rate=0.0))


def fit(networks: list[TunedNetwork]) -> Array:
    """Coefficients: ln rate of each block at the reference sizes, powers of width and batch."""
    features = np.array([network.features for network in networks])

    def objective(coefficients: Array) -> float:
        rates = features @ coefficients
        costs = [n.cost(float(rate)) for n, rate in zip(networks, rates, strict=True)]
        return float(np.minimum(costs, MOST_COST).mean())

    best = np.array([n.log_rates[n.losses.argmin()] for n in networks])
    start = np.linalg.lstsq(features, best, rcond=None)[0]
    starts = start + np.random.default_rng(0).normal(0, 0.1, (4, len(start)))
    found = [minimize(objective, each, method="Nelder-Mead") for each in starts]
    return np.asarray(min(found, key=lambda result: result.fun).x)


def table(networks: list[TunedNetwork], coefficients: Array) -> str:
    """The content of resources/rates.toml."""
    width_power, batch_power = coefficients[len(BLOCKS) :]
    lines = ["# The rule of automatic learning rates (archfit/spec/rates.py): see docs/rates.md."]
    lines += [f"width_power = {width_power:.2f}", f"batch_power = {batch_power:.2f}", "", "[rate]"]
    lines += [f"{b} = {math.exp(c):.3g}" for b, c in zip(BLOCKS, coefficients, strict=False)]
    recipes = [network.spec.recipe for network in networks]
    shapes = [network.spec.architecture for network in networks]
    batches = [network.batch_tokens for network in networks]
    tokens = [recipe.steps * batch for recipe, batch in zip(recipes, batches, strict=True)]
    ranges = {
        "width": [shape.width for shape in shapes], "depth": [shape.depth for shape in shapes],
        '"tokens a step"': batches, "steps": [recipe.steps for recipe in recipes],
        '"training tokens"': tokens,
    }  # fmt: skip
    lines += ["", "[range]"]
    lines += [f"{name} = [{min(sizes)}, {max(sizes)}]" for name, sizes in ranges.items()]
    return "\n".join(lines) + "\n"


def costs_by(networks: list[TunedNetwork], costs: list[float]) -> str:
    """A line for each block and data set: how many networks, mean, and how many lose how much."""
    groups: dict[str, list[float]] = defaultdict(list)
    for network, cost in zip(networks, costs, strict=True):
        block, data = network.spec.architecture.block, network.spec.data_hash[:8]
        for name in ("all", block, data, f"{data} {block}"):
            groups[name].append(cost)
    lines = ["group           networks   mean   median   90 %   within 0.01   over 0.03"]
    for name, group in sorted(groups.items()):
        few, many = np.mean(np.array(group) <= 0.01), sum(cost > 0.03 for cost in group)
        lines.append(
            f"{name:15} {len(group):8} {np.mean(group):6.4f} {np.median(group):8.4f} "
            f"{np.quantile(group, 0.9):6.4f} {few:12.0%} {many:11}"
        )
    return "\n".join(lines)


def mark(network: TunedNetwork) -> dict[str, object]:
    """Where a network stands."""
    shape, at = network.spec.architecture, int(network.losses.argmin())
    rule = [
        auto_rate(shape.block, width=shape.width, batch_tokens=batch)
        for batch in (BATCH_TOKENS, network.batch_tokens)
    ]
    best = float(np.exp(network.log_rates[at]))
    wrong = [network.cost(float(network.log_rates[at]) + side) for side in (-FACTOR, FACTOR)]
    return {
        "width": shape.width,
        "rate": best * rule[0] / rule[1],
        "block": shape.block,
        "cost": min(0.3, float(np.mean(wrong))),
    }


def chart(networks: list[TunedNetwork]) -> str:
    """Best rates over width as an SVG picture, and the rule as lines.

    A mark is a network, brought to 8,192 tokens a step by the rule's power of the batch; the larger
    it is, the more a wrong rate costs there.
    """
    marks = [mark(network) for network in networks if network.is_fitted_to]
    lines = [
        {"width": w, "rate": auto_rate(b, width=w, batch_tokens=BATCH_TOKENS), "block": b}
        for b in BLOCKS
        for w in (16, 32, 64, 128, 256)
    ]
    axes = {
        "x": {"field": "width", "type": "quantitative", "title": "width",
              "scale": {"type": "log", "domain": [14, 290]}},
        "y": {"field": "rate", "type": "quantitative",
              "title": "best peak rate at 8,192 tokens a step",
              "scale": {"type": "log", "domain": [5e-4, 0.2]}},
        "color": {"field": "block", "type": "nominal"},
    }  # fmt: skip
    size = {"field": "cost", "type": "quantitative", "title": "bits lost at half or twice the rate"}
    points = {
        "data": {"values": marks},
        "mark": {"type": "point", "filled": True, "opacity": 0.55},
        "encoding": axes | {"size": size},
    }
    rule = {"data": {"values": lines}, "mark": "line", "encoding": axes}
    picture = {"width": 560, "height": 340, "layer": [points, rule]}
    return str(vl_convert.vegalite_to_svg(picture))


def main() -> None:
    """Fit, or check."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--chart", action="store_true")
    chosen = parser.parse_args()
    networks = read(chosen.files)
    if chosen.chart:
        print(chart(networks))
        return
    if chosen.check:
        rates = [
            math.log(auto_rate(n.spec.architecture.block, width=n.spec.architecture.width,
                               batch_tokens=n.batch_tokens))
            for n in networks
        ]  # fmt: skip
    else:
        networks = [network for network in networks if network.is_fitted_to]
        coefficients = fit(networks)
        print(table(networks, coefficients))
        rates = [float(network.features @ coefficients) for network in networks]
    for name in ("cost", "smoothed_cost", *(["fair_cost"] if chosen.check else [])):
        costs = [getattr(n, name)(rate) for n, rate in zip(networks, rates, strict=True)]
        print(f"{name}\n{costs_by(networks, costs)}", file=sys.stderr)
    spreads = np.array([network.spread for network in networks])
    if not np.isnan(spreads).all():
        print(f"seeds: standard deviation {np.sqrt(np.nanmean(spreads**2)):.4f} (root mean square),"
              f" median {np.nanmedian(spreads):.4f}", file=sys.stderr)  # fmt: skip


if __name__ == "__main__":
    main()
