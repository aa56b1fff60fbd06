"""How far do seeds scatter? The atlas's networks of 125k to 500k parameters with several seeds:

    python docs/rates/scatter.py

A line a kind of data: how many networks, the median and the root mean square of their standard
deviations in bits per byte (or symbol), and the share of at most LIMIT. Two seeds give a standard
deviation whose median is 0.67 of the true one, which the last column corrects.
"""

import math
from collections.abc import Sequence
from statistics import median, stdev

from archfit.fit.atlas import Series, read_atlas, size_of
from archfit.fit.cells import grouped

SMALLEST, LARGEST = 125_000, 500_000
LIMIT = 0.02
HALF_NORMAL = 0.6745  # the median of |x| for a standard normal x


def main() -> None:
    """Group, and print."""
    runs = [run for run in read_atlas().runs if run.record.status == "finished"]
    told = [
        run for run in runs if SMALLEST <= size_of(run.spec) <= LARGEST and Series.of(run).is_usual
    ]
    cells = grouped(told, lambda run: (Series.of(run), run.spec.architecture))
    found = [
        (series, stdev(run.record.evaluations[-1].heldout_bits_per_byte for run in some))
        for (series, _), some in cells.items()
        if len(some) > 1
    ]
    print(f"{'':40} networks  median     rms  within {LIMIT}  corrected median")
    for series, some in grouped(found, lambda each: each[0]).items():
        print(line(f"{series.kind}, {series.words}", [scatter for _, scatter in some]))
    print(line("all", [scatter for _, scatter in found]))


def line(name: str, found: Sequence[float]) -> str:
    """What some networks say."""
    middle = median(found)
    square = math.sqrt(math.fsum(each**2 for each in found) / len(found))
    share = sum(each <= LIMIT for each in found) / len(found)
    return (
        f"{name:40} {len(found):8} {middle:7.4f} {square:7.4f} {share:11.0%} "
        f"{middle / HALF_NORMAL:17.4f}"
    )


if __name__ == "__main__":
    main()
