"""Fit the prior to the atlas and the public grids: OMP_NUM_THREADS=1 python docs/atlas/prior.py

Writes resources/prior.json: the surface of all, and with each family and each grid left out. It
fills the cores itself; with more threads it takes five times as long.
"""

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from archfit.advise.prior import PRIOR, atlas_families, grid_kinds
from archfit.advise.surface import Observed, Surface, fit_surface, rounded
from archfit.fit.atlas import read_atlas
from archfit.fit.public_grids import SOURCES
from archfit.spec import to_json

RESOURCES = Path(__file__).parents[2] / "src" / "archfit" / "resources"


def main() -> None:
    """Fit, in as many processes as there are cores."""
    began, atlas = time.perf_counter(), read_atlas()
    families = atlas_families(atlas, atlas.curves())
    grids = {grid: grid_kinds(grid) for grid in SOURCES}
    text = "text"  # public grids are text
    everything = {**families, **grids}
    all_kinds = fit_surface([kind for some in everything.values() for kind in some])
    print(f"{time.perf_counter() - began:.0f} s: {all_kinds}", flush=True)
    jobs: dict[tuple[str, str], list[Observed]] = {}
    for family in families:
        left = {family, *(grids if family == text else ())}
        jobs["families", family] = kinds_but(everything, left)
    for grid in grids:
        jobs["grids", grid] = kinds_but(everything, {grid})
    with ProcessPoolExecutor() as processes:
        fitted = processes.map(fit_surface, jobs.values(), [all_kinds] * len(jobs))
        found = dict(zip(jobs, map(as_json, fitted), strict=True))
    table = {"all": as_json(all_kinds), "families": {}, "grids": {}}
    for (part, name), surface in found.items():
        table[part][name] = surface  # type: ignore[index]
    (RESOURCES / PRIOR).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)


def kinds_but(kinds: dict[str, list[Observed]], left: set[str]) -> list[Observed]:
    """All but those left out."""
    return [kind for name, some in kinds.items() if name not in left for kind in some]


def as_json(surface: Surface) -> object:
    """With the digits that ship."""
    return to_json(rounded(surface))


if __name__ == "__main__":
    main()
