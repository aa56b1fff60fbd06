"""Fit the prior to the atlas and the public grids: OMP_NUM_THREADS=1 python docs/atlas/prior.py

Writes resources/prior.json: the surface of all, and with each family and each grid left out, and
the runs that they were fitted to. It fills the cores itself; with more threads it takes five times
as long.
"""

import json
import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from archfit.advise.backtest import ATLAS, backtest
from archfit.advise.prior import PRIOR, TEXT, KindRuns
from archfit.advise.prior_runs import atlas_runs, grid_runs, law_runs
from archfit.advise.surface import SCALES, TERMS, Observed, Reals, Surface, joined, short
from archfit.fit.atlas import SOURCES, read_atlas
from archfit.spec import to_json

RESOURCES = Path(__file__).parents[2] / "src" / "archfit" / "resources"
LAST = "centre", "growth", "fading", "hurry", "patience", "alike"
LIKELY_FACTOR = 1.5  # how far from the usual logarithms of spreads are likely: a factor of 4.5
LIKELY_LAST = 0.7, 0.03, 0.03, 0.4, 0.3, 0.7  # in the order of LAST
UNIT = 0.02  # of coefficients, so that all numbers of a fit are of one size
LEAST_LENGTH, MOST_LENGTH = 0.2, 3.0
USUAL_SURFACE = Surface(  # where a fit begins
    centre=2.0,
    growth=0.25,  # as in Levine et al. 2020
    fading=0.24,
    hurry=1.2,
    patience=0.5,
    alike=math.log(4.0),
    mean=(0.02, 0.003, 0.004, 0.0, 0.03, 0.008),
    llama=(0.0,) * TERMS,
    spread=(0.02, 0.005, 0.01, 0.01, 0.02, 0.005),
    wave=0.015,
    size_length=0.5,
    depth_length=0.5,
    misfit=0.003,
    weights=(1 / len(SCALES),) * len(SCALES),
    kinship=0.5,
)


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


def fit_surface(families: Sequence[Observed], start: Surface | None = None) -> Surface:
    """The surface under which these families are most likely, weakly held to the usual one."""
    usual = _numbers(USUAL_SURFACE)
    likely = np.full(len(usual), LIKELY_FACTOR)
    likely[-len(LIKELY_LAST) :] = LIKELY_LAST

    def cost(numbers: Reals) -> float:
        surface = _surface(numbers)
        away = ((numbers - usual) / likely) ** 2
        return float(away.sum() / 2) - math.fsum(map(surface.log_evidence, families))

    begin = usual if start is None else _numbers(start)
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(begin)
    for at in (3 * TERMS + 1, 3 * TERMS + 2):
        ends[at] = math.log(LEAST_LENGTH), math.log(MOST_LENGTH)
    options = {"maxiter": 200, "maxfun": 10**5, "eps": 1e-6, "ftol": 1e-8}
    found = minimize(cost, begin, method="L-BFGS-B", bounds=ends, options=options)
    return _surface(found.x)


def _numbers(surface: Surface) -> Reals:
    wave = surface.wave, surface.size_length, surface.depth_length, surface.misfit
    odds = np.log(surface.weights[:-1]) - math.log(surface.weights[-1])
    mean, llama = np.array([surface.mean, surface.llama]) / UNIT
    kinship = math.log(surface.kinship / (1 - surface.kinship))
    last = [kinship] + [getattr(surface, name) for name in LAST]
    return np.concatenate([mean, np.log(surface.spread), llama, np.log(wave), odds, last])


def _surface(numbers: Reals) -> Surface:
    mean, spread, llama, rest = np.split(numbers, [TERMS, 2 * TERMS, 3 * TERMS])
    wave, size_length, depth_length, misfit = map(float, np.exp(rest[:4]))
    kinship = -1 - len(LAST)
    odds = np.exp(np.append(rest[4:kinship], 0.0))
    return Surface(
        **dict(zip(LAST, map(float, rest[-len(LAST) :]), strict=True)),
        mean=tuple(float(UNIT * number) for number in mean),
        llama=tuple(float(UNIT * number) for number in llama),
        spread=tuple(map(float, np.exp(spread))),
        wave=wave,
        size_length=size_length,
        depth_length=depth_length,
        misfit=misfit,
        weights=tuple(map(float, odds / odds.sum())),
        kinship=1 / (1 + math.exp(-float(rest[kinship]))),
    )


def rounded(surface: Surface) -> Surface:
    """With short numbers."""
    found: dict[str, Any] = {
        name: tuple(map(short, part)) if isinstance(part, tuple) else short(part)
        for name, part in asdict(surface).items()
    }
    *weights, _ = found["weights"]
    return Surface(**found | {"weights": (*weights, 1 - math.fsum(weights))})


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
