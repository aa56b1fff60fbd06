"""How long `archfit bounds` takes beyond start-up, at the sizes of the largest networks.

CPU seconds of the whole process less those of `archfit theory C L=3`, medians of repeats.
Run:    python benchmarks/bounds.py
Expect: under 1.5 s each.
"""

import statistics
import sys

from startup import cpu_seconds

REPEATS = 5
SHAPES = ((96, 12288, 96), (200, 100_000, 96), (1_000_000, 1_000_000_000, 16))


def main() -> None:
    """Time each shape and the bare start."""
    program = [sys.executable, "-m", "archfit"]
    smallest = [*program, "theory", "C", "L=3"]
    start = statistics.median(cpu_seconds(smallest) for _ in range(REPEATS))
    print(f"start-up (theory C L=3)                     {start:6.2f} s")
    for depth, width, heads in SHAPES:
        sizes = ["--depth", str(depth), "--width", str(width), "--heads", str(heads), "--json"]
        command = [*program, "bounds", *sizes]
        seconds = statistics.median(cpu_seconds(command) for _ in range(REPEATS))
        print(f"depth {depth:8} width {width:11} heads {heads:3}    {seconds - start:6.2f} s more")


if __name__ == "__main__":
    main()
