"""Put public grids of trained networks into the package: python docs/atlas/grids.py FOLDER

FOLDER holds gemstones.csv, gadre_grid_openlm.csv and archai_lts.csv, extracted from the
repositories that `archfit.fit.atlas` cites (all MIT). Runs without a loss are left out.
"""

import csv
import lzma
import math
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from archfit.fit.atlas import GRIDS, PublicNetwork

HERE = Path(__file__).parents[2] / "src" / "archfit" / "resources"
Row = tuple[object, ...]


def main(folder: Path) -> None:
    """Read, write."""
    rows = [*gemstones(folder), *gadre(folder), *archai(folder)]
    lines = [
        ",".join(field.name for field in fields(PublicNetwork)),
        *(",".join(map(str, row)) for row in rows),
    ]
    packed = lzma.compress("\n".join(lines).encode() + b"\n", preset=9 | lzma.PRESET_EXTREME)
    (HERE / GRIDS).write_bytes(packed)
    print(f"{len(rows)} networks, {len(packed):,} bytes")


def read(file: Path) -> Iterator[dict[str, str]]:
    """The rows of a file."""
    with file.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def gemstones(folder: Path) -> Iterator[Row]:
    """Losses along trainings of 22 shapes, cooled or not."""
    for row in read(folder / "gemstones.csv"):
        sizes = int(row["depth"]), int(row["width"]), int(row["params_active_precise"])
        yield "gemstones", row["schedule"], *sizes, int(row["tokens"]), float(row["final_loss"])


def gadre(folder: Path) -> Iterator[Row]:
    """A grid of tunings at 20 tokens a parameter."""
    for row in read(folder / "gadre_grid_openlm.csv"):
        tuning = f"rate {row['lr']} batch {row['batch']} warm-up {row['warmup']} decay {row['wd']}"
        sizes = int(row["depth"]), int(row["width"]), round(float(row["params_total"]))
        yield "gadre", tuning, *sizes, round(float(row["tokens"])), float(row["loss"])


def archai(folder: Path) -> Iterator[Row]:
    """Networks of a search on WikiText-103 and LM1B; an embedding narrower than the network is
    another setting."""
    for row in read(folder / "archai_lts.csv"):
        if row["valid_ppl"] and row["p_total"] and float(row["valid_ppl"]) > 1:
            inner = "" if row["d_embed"] in ("-1", row["d_model"]) else f" rank {row['d_embed']}"
            sizes = int(row["n_layer"]), int(row["d_model"]), round(float(row["p_total"]))
            yield "archai", row["set"] + inner, *sizes, 0, math.log(float(row["valid_ppl"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
