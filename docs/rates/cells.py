"""The networks whose best learning rate was sought: sweep files for `archfit sweep`.

    python docs/rates/cells.py fit english proteins c-code instruments > fit.toml
    python docs/rates/cells.py check french dna music mnist > check.toml

A cell is a block, a shape, a number of tokens, a batch and a data set, drawn evenly on logarithmic
scales from a scrambled Sobol sequence; each is trained at five rates, factors of 2 apart, around a
first guess. Cells of the check have other draws, other data, and two seeds. Blocks and data are
dealt out by chance: in the order of the sequence, as in the first 452 runs, they go with the halves
of its ranges (all deep networks were then of one block).
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

CELLS = {"fit": 128, "check": 64}
SEEDS = {"fit": 1, "check": 2}
DRAW = {"fit": 3, "check": 4}  # 1 was that of the first runs
RANGES = {
    "width": (16, 256),
    "depth": (1, 32),
    "tokens": (1e6, 20e6),
    "batch_tokens": (2048, 65536),
}
CONTEXT, LEAST_STEPS, MOST_STEPS = 256, 120, 6000
MOST_LAYER_STEPS, MOST_FLOPS = 50_000, 1.5e14
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
WARMUP = 0.3
ROW = ("data", "block", "depth", "width", "heads", "batch", "steps", "warmup", "learning_rate")


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
        """As a plan chooses them: two, then one for every 64 dimensions."""
        return max(2, self.width // 64)

    @property
    def guess(self) -> float:
        """About the best rate, from a few earlier runs."""
        factor = (48 / self.width) ** 0.8 * (self.batch * CONTEXT / 4096) ** 0.25
        return 0.011 * float(factor)


def cells(kind: str, data: list[str]) -> list[RateCell]:
    """The cells of a sweep, blocks and data in turns."""
    points = qmc.Sobol(len(RANGES), seed=DRAW[kind]).random(CELLS[kind])
    places = np.random.default_rng(DRAW[kind]).permutation(len(points))
    found = []
    for at, point in zip(places, points, strict=True):
        drawn = {
            name: math.exp(math.log(low) + share * math.log(high / low))
            for (name, (low, high)), share in zip(RANGES.items(), point, strict=True)
        }
        depth, width = round(drawn["depth"]), 4 * round(drawn["width"] / 4)
        if width >= 128:
            width = 8 * round(width / 8)  # three heads and four divide it, or two
        batch = max(8, round(drawn["batch_tokens"] / CONTEXT))
        flops = 72 * depth * width**2 * batch * CONTEXT  # a step
        steps = drawn["tokens"] / (batch * CONTEXT)
        most = min(MOST_STEPS, MOST_LAYER_STEPS / depth, MOST_FLOPS / flops)
        if most < LEAST_STEPS:
            batch, most = max(8, int(batch * most / LEAST_STEPS)), LEAST_STEPS
        steps = round(min(most, max(LEAST_STEPS, steps)))
        block, name = ("gpt2", "llama")[at % 2], data[at // 2 % len(data)]
        while width % max(2, width // 64) or (width // max(2, width // 64)) % 2:
            width += 4
        found.append(
            RateCell(data=name, block=block, depth=depth, width=width, batch=batch, steps=steps)
        )
    return found


def main() -> None:
    """Write the sweep file."""
    kind, *data = sys.argv[1:]
    print(f"seeds = {SEEDS[kind]}\n[base]\ncontext = {CONTEXT}\nbeta2 = 0.95")
    print('learning_rate_rule = "fan-in"\nevaluation_sequences = 512\nprecision = "bfloat16"')
    for cell in cells(kind, data):
        rates = [float(f"{cell.guess * factor:.3g}") for factor in FACTORS]
        print(f'[[grid]]\ndata = ["{cell.data}"]\nblock = "{cell.block}"')
        if cell.block == "llama":
            print("qk_norm = true")
        print(f"depth = {cell.depth}\nwidth = {cell.width}\nheads = {cell.heads}")
        print(f"batch = {cell.batch}\nsteps = {cell.steps}\nevaluate_every = {cell.steps}")
        print(f"warmup = {round(WARMUP * cell.steps)}\nlearning_rate = {rates}")


if __name__ == "__main__":
    main()
