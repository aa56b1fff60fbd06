"""The networks whose best learning rate was sought: sweep files for `archfit sweep`.

    python docs/rates/cells.py fit english proteins c-code instruments > fit.toml
    python docs/rates/cells.py check french dna music > check.toml
    python docs/rates/cells.py line english > line.toml

A cell is a block, a shape, a number of tokens, a batch and a data set. Sizes, depths, tokens a
parameter and batches are drawn evenly on logarithmic scales from a scrambled Sobol sequence, as
comparisons of shapes need them: blocks of 30k to 2M parameters, 8 to 40 tokens for each, at least
1M and at most 20M of them. Each is trained at four rates, factors of 2 apart, around a first guess.
Cells of the check have other draws, other data, two seeds, at least 400 steps, no more than four
epochs, and five rates around that of the rule; the line is one shape at 1M to 100M tokens. Blocks
and data are dealt out by chance: in the order of the sequence, as in the first 452 runs
(map.jsonl.xz), they go with halves of its ranges.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.stats import qmc

from archfit.spec.rates import auto_rate

CELLS = {"fit": 96, "check": 64}
DRAWN = 128  # a power of 2, as the sequence wants it
SEEDS = {"fit": 1, "check": 2, "line": 1}
DRAW = {"fit": 3, "check": 4}  # 1 was that of the first runs
RANGES = {
    "params": (30e3, 2e6),
    "depth": (1, 32),
    "tokens_a_param": (8, 40),
    "batch_tokens": (2048, 32768),
}
TOKENS = {"fit": (1e6, 20e6), "check": (1.2e6, 8e6)}
FOUR_EPOCHS = {"music": 3.5e6}
WIDTHS = (16, 256)
LINE_SHAPES, LINE_TOKENS, LINE_BATCH = ((4, 64),), (1e6, 3e6, 10e6, 30e6, 100e6), 64
LEAST_STEPS = {"fit": 200, "check": 400}
CONTEXT, MOST_LAYER_STEPS = 256, 60_000
FACTORS = {
    "fit": (0.35, 0.7, 1.4, 2.8),  # of a first guess
    "check": (0.25, 0.5, 1.0, 2.0, 4.0),  # of the rule
    "line": (0.35, 0.7, 1.4),
}
WARMUP = 0.3


@dataclass(frozen=True, kw_only=True)
class RateCell:
    """One network on one data set, to be trained at several rates."""

    data: str
    block: str
    depth: int
    width: int
    batch: int
    steps: int

    @property
    def heads(self) -> int:
        """As a plan chooses them: two, or one for every 64 dimensions."""
        return max(2, self.width // 64)

    @property
    def guess(self) -> float:
        """About the best rate, from the first runs."""
        narrow, shallow = math.log(64 / self.width), math.log(4 / self.depth)
        large = math.log(self.batch * CONTEXT / 8192)
        return 0.009 * math.exp(1.1 * narrow + 0.3 * shallow + 0.2 * large)

    @property
    def by_rule(self) -> float:
        """The rate that `auto` stands for."""
        return auto_rate(self.block, width=self.width, batch_tokens=self.batch * CONTEXT)


def cells(kind: str, data: list[str]) -> Iterator[RateCell]:
    """The cells of a sweep; blocks and data are dealt out evenly, in an order of chance."""
    if kind == "line":
        yield from _line(data[0])
        return
    points = qmc.Sobol(len(RANGES), seed=DRAW[kind]).random(DRAWN)[: CELLS[kind]]
    places = np.random.default_rng(DRAW[kind]).permutation(len(points))
    for at, point in zip(places, points, strict=True):
        drawn = {
            name: math.exp(math.log(low) + share * math.log(high / low))
            for (name, (low, high)), share in zip(RANGES.items(), point, strict=True)
        }
        depth = round(drawn["depth"])
        exact = math.sqrt(drawn["params"] / (12 * depth))
        width = 4 * round(min(max(exact, WIDTHS[0]), WIDTHS[1]) / 4)
        while width % (2 * max(2, width // 64)):  # heads divide it, and are even
            width += 4
        batch = round(drawn["batch_tokens"] / CONTEXT)
        tokens = drawn["tokens_a_param"] * 12 * depth * width**2
        tokens = min(max(tokens, TOKENS[kind][0]), TOKENS[kind][1])
        block, name = ("gpt2", "llama")[at % 2], data[at // 2 % len(data)]
        tokens = min(tokens, FOUR_EPOCHS.get(name, tokens))
        if kind == "check":
            batch = min(batch, round(tokens / (LEAST_STEPS[kind] * CONTEXT)))
        steps = max(LEAST_STEPS[kind], round(tokens / (batch * CONTEXT)))
        if steps * depth > MOST_LAYER_STEPS:  # such small batches take a GPU too long
            batch = math.ceil(batch * steps * depth / MOST_LAYER_STEPS)
            steps = round(tokens / (batch * CONTEXT))
        yield RateCell(data=name, block=block, depth=depth, width=width, batch=batch, steps=steps)


def _line(data: str) -> Iterator[RateCell]:
    for (depth, width), block, tokens in product(LINE_SHAPES, ("gpt2", "llama"), LINE_TOKENS):
        steps = round(tokens / (LINE_BATCH * CONTEXT))
        yield RateCell(
            data=data, block=block, depth=depth, width=width, batch=LINE_BATCH, steps=steps
        )


def main() -> None:
    """Write the sweep file."""
    kind, *data = sys.argv[1:]
    print(f"seeds = {SEEDS[kind]}\n[base]\ncontext = {CONTEXT}\nbeta2 = 0.95")
    print('learning_rate_rule = "fan-in"\nevaluation_sequences = 512\nprecision = "bfloat16"')
    for cell in cells(kind, data):
        middle = cell.by_rule if kind == "check" else cell.guess
        rates = [float(f"{middle * factor:.3g}") for factor in FACTORS[kind]]
        print(f'[[grid]]\ndata = ["{cell.data}"]\nblock = "{cell.block}"')
        if cell.block == "llama":
            print("qk_norm = true")
        print(f"depth = {cell.depth}\nwidth = {cell.width}\nheads = {cell.heads}")
        print(f"batch = {cell.batch}\nsteps = {cell.steps}\nevaluate_every = {cell.steps}")
        print(f"warmup = {round(WARMUP * cell.steps)}\nlearning_rate = {rates}")


if __name__ == "__main__":
    main()
