"""The rule of automatic learning rates from our runs, and what it costs on others.

    python docs/rates/fit.py docs/rates/map.jsonl.xz       # prints resources/rates.toml
    python docs/rates/fit.py --check check.jsonl.xz        # the rule that ships, on other networks

Files have one record a line. A network's loss (held-out bits per byte, mean over seeds) is a smooth
curve through the rates it was trained at, in ln rate; what a rate costs is the curve there over its
minimum. The rule is the product of powers that costs least: the mean of all costs, none counted
above 0.15, and a third of the ninth decile.
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
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.optimize import minimize

from archfit.spec import RunRecord, RunSpec, loads
from archfit.spec.rates import auto_rate

LEAST_RATES = 4
BLOCKS = ("gpt2", "llama")
CENTRE = np.log([64, 4, 5e6, 8192])  # width, depth, tokens, tokens a step
MOST_COST, SLOPE_OUTSIDE = 0.15, 0.15  # bits; a rate beyond those tried costs that per factor of e
FIRST_GUESS = (-4.9, -4.6, -0.9, -0.2, 0.1, 0.1)
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TunedNetwork:
    """One network on one data set: its loss over the learning rate."""

    spec: RunSpec
    log_rates: Array
    losses: Array

    @property
    def sizes(self) -> dict[str, int]:
        """What the rule asks about."""
        shape, recipe = self.spec.architecture, self.spec.recipe
        batch_tokens = recipe.batch_sequences * shape.context
        tokens = recipe.steps * batch_tokens
        return {"width": shape.width, "depth": shape.depth} | {
            "tokens": tokens,
            "batch_tokens": batch_tokens,
        }

    @property
    def features(self) -> Array:
        """What the coefficients of the rule multiply."""
        is_block = [float(self.spec.architecture.block == block) for block in BLOCKS]
        return np.array([*is_block, *(np.log([*self.sizes.values()]) - CENTRE)])

    def cost(self, log_rate: float) -> float:
        """Bits per byte that a rate loses against the best of the curve."""
        low, high = self.log_rates[0], self.log_rates[-1]
        curve = PchipInterpolator(self.log_rates, self.losses)
        best = float(curve(np.linspace(low, high, 60)).min())
        outside = max(0.0, low - log_rate, log_rate - high)
        here = float(curve(min(max(log_rate, low), high)))
        return float(here - best + SLOPE_OUTSIDE * outside)


def read(files: Iterable[Path]) -> list[TunedNetwork]:
    """All networks that were trained at several rates; diverged runs count as 9 bits."""
    losses: dict[RunSpec, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = loads(RunRecord, line)
                spec, rate = record.spec, record.spec.recipe.peak_learning_rate
                network = without_rate_and_seed(spec)
                is_finished = record.status == "finished"
                bits = record.evaluations[-1].heldout_bits_per_byte if is_finished else 9.0
                losses[network][rate].append(bits)
    return [
        TunedNetwork(
            spec=spec,
            log_rates=np.log(sorted(by_rate)),
            losses=np.array([np.mean(by_rate[rate]) for rate in sorted(by_rate)]),
        )
        for spec, by_rate in losses.items()
        if len(by_rate) >= LEAST_RATES
    ]


def without_rate_and_seed(spec: RunSpec) -> RunSpec:
    """The same for all rates and seeds of a network."""
    return replace(spec, seed=0, recipe=replace(spec.recipe, peak_learning_rate=0.0))


def fit(networks: list[TunedNetwork]) -> Array:
    """Coefficients: a constant for each block, and the powers of width, depth, tokens, batch."""
    features = np.array([network.features for network in networks])

    def objective(coefficients: Array) -> float:
        rates = features @ coefficients
        costs = np.array([n.cost(float(rate)) for n, rate in zip(networks, rates, strict=True)])
        return float(np.minimum(costs, MOST_COST).mean() + np.quantile(costs, 0.9) / 3)

    starts = np.random.default_rng(0).normal(FIRST_GUESS, 0.1, (4, len(FIRST_GUESS)))
    found = [
        minimize(objective, start, method="Nelder-Mead", options={"maxiter": 1200})
        for start in starts
    ]
    return np.asarray(min(found, key=lambda result: result.fun).x)


def table(networks: list[TunedNetwork], coefficients: Array) -> str:
    """The content of resources/rates.toml."""
    powers = coefficients[len(BLOCKS) :]
    names = ("width", "depth", "tokens", "batch_tokens")
    lines = ["# The rule of automatic learning rates (archfit/spec/rates.py): see docs/rates.md."]
    for block, constant in zip(BLOCKS, coefficients, strict=False):
        lines += [f"[{block}]", f"constant = {constant - float(powers @ CENTRE):.4f}"]
        lines += [f"{name} = {power:.4f}" for name, power in zip(names, powers, strict=True)] + [""]
    lines.append("[range]")
    for name in names:
        sizes = [network.sizes[name] for network in networks]
        lines.append(f"{name} = [{min(sizes)}, {max(sizes)}]")
    return "\n".join(lines) + "\n"


def costs_by(networks: list[TunedNetwork], costs: list[float]) -> str:
    """A line for each block and data set: how many networks, mean, and how many lose how much."""
    groups: dict[str, list[float]] = defaultdict(list)
    for network, cost in zip(networks, costs, strict=True):
        for name in ("all", network.spec.architecture.block, network.spec.data_hash[:8]):
            groups[name].append(cost)
    lines = ["group      networks   mean   median   90 %   within 0.01   over 0.03"]
    for name, group in groups.items():
        few, many = np.mean(np.array(group) <= 0.01), sum(cost > 0.03 for cost in group)
        lines.append(
            f"{name:10} {len(group):8} {np.mean(group):6.4f} {np.median(group):8.4f} "
            f"{np.quantile(group, 0.9):6.4f} {few:12.0%} {many:11}"
        )
    return "\n".join(lines)


def main() -> None:
    """Fit, or check."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    networks = read(chosen.files)
    if chosen.check:
        rates = [
            math.log(auto_rate(network.spec.architecture.block, **network.sizes))
            for network in networks
        ]
    else:
        coefficients = fit(networks)
        print(table(networks, coefficients))
        rates = [float(network.features @ coefficients) for network in networks]
    costs = [network.cost(rate) for network, rate in zip(networks, rates, strict=True)]
    print(costs_by(networks, costs), file=sys.stderr)


if __name__ == "__main__":
    main()
