"""Fit the prior to the atlas and the public grids: OMP_NUM_THREADS=1 python docs/atlas/prior.py

Writes resources/prior.json: the surface of all, and with each family and each grid left out, and
the runs that they were fitted to. It fills the cores itself; with more threads it takes five times
as long.
"""

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from archfit.advise.backtest import ATLAS, backtest
from archfit.advise.prior import PRIOR, TEXT
from archfit.advise.prior_runs import KindRuns, atlas_runs, grid_runs, law_runs
from archfit.advise.surface import Observed, Surface, fit_surface, joined, rounded
from archfit.fit.atlas import SOURCES, read_atlas
from archfit.spec import to_json

RESOURCES = Path(__file__).parents[2] / "src" / "archfit" / "resources"


def main() -> None:
    """Fit, in as many processes as there are cores."""
    began, atlas = time.perf_counter(), read_atlas()
    runs = atlas_runs(atlas, atlas.curves())
    grids = {grid: grid_runs(grid) for grid in SOURCES}
    groups = {family: [together(kinds)] for family, kinds in runs.items()}
    groups |= {grid: [together([kind]) for kind in kinds] for grid, kinds in grids.items()}
    all_kinds = fit_surface([each for some in groups.values() for each in some])
    print(f"{time.perf_counter() - began:.0f} s: {all_kinds}", flush=True)
    left_out = {family: {family, *(grids if family == TEXT else ())} for family in runs}
    left_out |= {grid: {grid} for grid in grids}
    jobs = {name: but(groups, left) for name, left in left_out.items()}
    with ProcessPoolExecutor() as processes:
        fitted = processes.map(fit_surface, jobs.values(), [all_kinds] * len(jobs))
        found = dict(zip(jobs, map(rounded, fitted), strict=True))
    known = rounded(all_kinds)
    law = law_runs()
    every_grid = [*(kind for kinds in grids.values() for kind in kinds), law]
    table = {
        "all": to_json(known),
        "families": {family: to_json(found[family]) for family in runs},
        "grids": {grid: to_json(found[grid]) for grid in grids},
        "runs": {family: list(map(to_json, kinds)) for family, kinds in runs.items()},
        "grid_runs": {grid: list(map(to_json, kinds)) for grid, kinds in grids.items()}
        | {"law": [to_json(law)]},
        "new_kinds": {
            family: new_kind(known, [*kinds, *(every_grid if family == TEXT else ())])
            for family, kinds in runs.items()
        },
    }
    write(table)
    (test,) = backtest(atlas, [ATLAS])  # by the prior that was just written
    write(table | {"rules": {score.rule: score.mean for score in test.scores}})
    print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)


def write(table: dict[str, object]) -> None:
    """The file that ships."""
    (RESOURCES / PRIOR).write_text(json.dumps(table) + "\n", encoding="utf-8")


def new_kind(surface: Surface, kinds: list[KindRuns]) -> dict[str, object]:
    """What networks on some kinds say of another of their family; no plan solves it anew."""
    posterior = surface.given(together(kinds))
    return {"weights": posterior.weights, "relatives": posterior.relatives}


def together(kinds: tuple[KindRuns, ...] | list[KindRuns]) -> Observed:
    """Kinds of one family."""
    return joined([kind.observed for kind in kinds])


def but(groups: dict[str, list[Observed]], left: set[str]) -> list[Observed]:
    """All but those left out."""
    return [each for name, some in groups.items() if name not in left for each in some]


if __name__ == "__main__":
    main()
