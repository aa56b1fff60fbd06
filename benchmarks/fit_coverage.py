"""How often the 90 % intervals of `archfit fit` hold the truth, on simulated runs.

Run:    OPENBLAS_NUM_THREADS=1 python benchmarks/fit_coverage.py [TRIALS]
Expect: covered 0.85 to 0.95 of 400 trials, bias below 0.1 (mean error over the interval), "no
        crossing" of equal curves in 0.90 or more. A quarter of an hour on one core.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from tests_coverage import (  # the simulations are those of the tests
    CROSSINGS,
    EQUAL_CURVES,
    LAWS,
    REDUNDANCIES,
    coverages,
    no_crossing_share,
)

SEEDS = (3, 5)


def main() -> None:
    """Print a row for each truth and number of seeds."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print("| truth | quantity | seeds | reported | covered | bias | median width |")
    print("|---|---|---|---|---|---|---|")
    for name, trial in (CROSSINGS | REDUNDANCIES | LAWS).items():
        for seeds in SEEDS:
            for quantity, found in coverages(trial, seeds=seeds, trials=trials).items():
                print(
                    f"| {name} | {quantity} | {seeds} | {found.answered:.2f} | {found.covered:.3f} "
                    f"| {found.bias:+.3f} | {found.width:.3g} |",
                    flush=True,
                )
    for name, truth in EQUAL_CURVES.items():
        for seeds in SEEDS:
            share = no_crossing_share(truth, seeds=seeds, trials=trials)
            print(f'| equal {name} | "no crossing" | {seeds} | | {share:.3f} | | |', flush=True)


if __name__ == "__main__":
    main()
