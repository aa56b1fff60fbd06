"""Does factorising itself help or hurt? Tables with inner >= width against the full table.

Run:    python benchmarks/factorised_control.py [--steps 400] [--seeds 5] [--inners 64 96 4]
Prints: held-out nats per token of each table, and its difference to the full one with a 90 %
        interval (Student, paired: at equal seeds the blocks start equal and see the same batches).

The rank experiments compare factorised tables of small inner size with full ones. They mean
something only if a factorised table that loses no rank trains like a full one.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scipy.stats import t as student

from archfit.data.prepare import prepare
from archfit.data.sources import DataSettings
from archfit.spec import RunRecord, loads
from archfit.spec.data_kinds import SAMPLE


def main() -> None:
    """Train every table with every seed and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--inners", type=int, nargs="*", default=[64, 96, 4])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.workers) as pool:
        prepare(SAMPLE, Path(folder, "data"), DataSettings(kind="text"))
        inners = (None, *chosen.inners)  # None: the full table
        cells = [(inner, seed) for inner in inners for seed in range(chosen.seeds)]
        losses = dict(
            zip(
                cells,
                pool.map(lambda c: loss(Path(folder), c[0], c[1], chosen.steps), cells),
                strict=True,
            )
        )
    print(f"depth 4, width 64, bytes of the sample, {chosen.steps} steps, {chosen.seeds} seeds")
    for inner in inners:
        found = [losses[inner, seed] for seed in range(chosen.seeds)]
        text = f"{statistics.mean(found):.4f} (std {statistics.stdev(found):.4f})"
        if inner is not None:
            against = [losses[inner, seed] - losses[None, seed] for seed in range(chosen.seeds)]
            low, high = interval(against)
            text += f", difference {statistics.mean(against):+.4f} [{low:+.4f}, {high:+.4f}]"
        print(f"{'full' if inner is None else f'inner {inner}':9} {text}")


def loss(folder: Path, inner: int | None, seed: int, steps: int) -> float:
    """The last held-out loss of one run, trained by one thread."""
    shape = [] if inner is None else ["--embedding-inner", str(inner)]
    out = folder / f"{inner}-{seed}"
    subprocess.run(
        [sys.executable, "-m", "archfit", "train", "--data", str(folder / "data"),
         "--out", str(out), "--depth", "4", "--width", "64", "--steps", str(steps),
         "--seed", str(seed), "--evaluate-every", str(steps), "--no-keep-weights",
         "--device", "cpu", "--json", *shape],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True, capture_output=True,
    )  # fmt: skip
    (file,) = out.glob("*/record.json")
    return loads(RunRecord, file.read_text()).evaluations[-1].heldout_nats_per_token


def interval(differences: list[float]) -> tuple[float, float]:
    """90 % of Student's t around the mean."""
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    reach = float(student.ppf(0.95, len(differences) - 1)) * error
    return statistics.mean(differences) - reach, statistics.mean(differences) + reach


if __name__ == "__main__":
    main()
