"""What it costs to compare tokens with their checksums: shares of the CPU time of training.

Run:     python benchmarks/verification.py
Prints:  for one run on the sample, one on data so large that every row lies in a block nobody read,
         and a sweep of small cells in one process: seconds in checks, in all, and their ratio.
Expect:  at most 2 % of a run and 5 % of the sweep.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData, Shard, open_prepared
from archfit.data.sources import DataSettings
from archfit.spec.run_options import RunOptions
from archfit.train import TrainSettings, Watchers, train

MOST_OF_A_RUN, MOST_OF_A_SWEEP = 0.02, 0.05
LARGE = 1 << 26  # tokens
USUAL = RunOptions(precision="float32", steps=100)
SMALL = RunOptions(
    precision="float32", depth=1, width=16, context=16, batch=4, steps=30, evaluation_sequences=8
)
HERE = TrainSettings(
    device="cpu", sharding="auto", checkpoint_seconds=1e9, keep_weights=False, code_version="-"
)


class Clock:
    """CPU seconds inside the functions that check."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.is_inside = False
        for owner, name in ((PreparedData, "shard"), (PreparedData, "check_unchanged")):
            self._wrap(owner, name)
        self._wrap(Shard, "check")

    def _wrap(self, owner: type, name: str) -> None:
        honest: Callable[..., Any] = getattr(owner, name)

        def timed(*arguments: object) -> Any:
            if self.is_inside:  # counted by the one around it
                return honest(*arguments)
            began, self.is_inside = time.process_time(), True
            try:
                return honest(*arguments)
            finally:
                self.seconds += time.process_time() - began
                self.is_inside = False

        setattr(owner, name, timed)


def main() -> None:
    """Print the three ratios."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder, clock = Path(name), Clock()
        sample = prepare("sample", folder / "sample", DataSettings(kind="bytes")).data.folder
        np.random.default_rng(0).integers(0, 250, LARGE, np.uint16).tofile(folder / "large.bin")
        large = prepare(
            str(folder / "large.bin"), folder / "large", DataSettings(kind="tokens")
        ).data.folder
        work(clock, sample, [SMALL], folder / "warm")  # torch loads more of itself
        bad = False
        for what, data, runs, most in (
            ("run on the sample", sample, [USUAL], MOST_OF_A_RUN),
            ("run on large data", large, [USUAL], MOST_OF_A_RUN),
            ("sweep of 60 small cells", sample, [SMALL] * 60, MOST_OF_A_SWEEP),
        ):
            checks, total = work(clock, data, runs, folder / what)
            bad |= checks / total > most
            print(f"{what}: {checks:.4f} of {total:.2f} CPU seconds, {checks / total:.2%}")
    sys.exit(bad)


def work(clock: Clock, folder: Path, runs: list[RunOptions], out: Path) -> tuple[float, float]:
    """CPU seconds of checks and of everything, with data that were just opened."""
    data, clock.seconds, began = open_prepared(folder), 0.0, time.process_time()
    for seed, options in enumerate(runs):
        spec = options.spec(vocab=data.vocab, data_hash=data.data_hash, seed=seed)
        train(spec, data, out, HERE, Watchers())
    return clock.seconds, time.process_time() - began


if __name__ == "__main__":
    main()
