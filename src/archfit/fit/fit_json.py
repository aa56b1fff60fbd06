"""The JSON document of what was found; its columns are in `resources/fit_columns.toml`."""

import tomllib
from functools import cache
from operator import attrgetter

from archfit.fit.cells import FamilyKey
from archfit.fit.conclusions import conclusions
from archfit.fit.depths import Crossing
from archfit.fit.fitted import Fits
from archfit.fit.laws import Law
from archfit.fit.noise import Noise
from archfit.spec import to_json
from archfit.spec.estimate import CONFIDENCE, Estimate
from archfit.spec.files import packed_file

Row = dict[str, object]
COLUMNS = "fit_columns.toml"


def fit_json(fits: Fits) -> Row:
    """Everything, with `low` and `high` of 90 % intervals; null is what cannot be had."""
    return {
        "confidence": CONFIDENCE,
        "runs": fits.runs,
        "diverged": fits.diverged,
        "crossings": [_crossing(item) for item in fits.crossings],
        "redundancy": [_row("redundancy", r, **_open(r.estimate)) for r in fits.redundancy],
        "laws": [row for item in fits.laws for row in _parameters(item)],
        "forms": [row for item in fits.laws for row in _forms(item)],
        "contrasts": [_row("contrasts", item) for item in fits.contrasts],
        "best_depth": [_row("best_depth", item) for item in fits.best_depth],
        "comparisons": [
            _row("comparisons", item, standings=[_row("standings", one) for one in item.results])
            for item in fits.rankings
        ],
        "noise": [_noise(item) for item in fits.noise],
        "tuned": [to_json(item) for item in fits.tunings],
        "conclusions": list(conclusions(fits)),
    }


@cache
def _columns() -> dict[str, dict[str, str]]:
    return tomllib.loads(packed_file(COLUMNS).read_text(encoding="utf-8"))


def _row(table: str, item: object, **computed: object) -> Row:
    """The columns of a table for an item, those that have no attribute as they are given."""
    return {
        name: computed[name] if name in computed else _value(attrgetter(attribute)(item))
        for name, attribute in _columns()[table].items()
    }


def _value(value: object) -> object:
    if isinstance(value, FamilyKey):
        return _row("family", value)
    return list(value) if isinstance(value, tuple) else value


def _open(estimate: Estimate) -> dict[str, bool]:
    """Which ends lie beyond the sizes that were trained."""
    ends = {"low": estimate.low, "high": estimate.high}
    return {f"{name}_is_beyond_range": end is None for name, end in ends.items()}


def _crossing(item: Crossing) -> Row:
    is_open = {name: item.is_crossing and end for name, end in _open(item.size).items()}
    outcome = "crossing" if item.is_crossing else "no crossing"
    depths = [item.shallow.depth, item.deep.depth]
    return _row("crossings", item, depths=depths, outcome=outcome, **is_open)


def _depth(item: Law) -> int | None:
    return item.family.depth if item.kind == "size" else None


def _parameters(item: Law) -> list[Row]:
    return [
        _row("laws", item, parameter=name, depth=_depth(item), **estimate.row())
        for name, estimate in item.parameters.items()
    ]


def _forms(item: Law) -> list[Row]:
    same = {"law": item.kind, "depth": _depth(item), "family": _value(item.family)}
    return [
        _row("forms", error, is_best=place == 0, **same) for place, error in enumerate(item.forms)
    ]


def _noise(noise: Noise) -> Row:
    cells = [_row("cells", cell, is_noisy=cell in noise.noisy.cells) for cell in noise.cells]
    return _row("noise", noise, noisy_std=noise.noisy.std or None, cells=cells)
