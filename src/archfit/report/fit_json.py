"""The JSON document of what was found; its columns are in json.toml, as fit-…"""

from archfit.fit.cells import FamilyKey
from archfit.fit.conclusions import conclusions
from archfit.fit.depths import Crossing
from archfit.fit.fitted import Fits
from archfit.fit.laws import Law
from archfit.fit.noise import Noise
from archfit.report.document import json_of
from archfit.spec import to_json
from archfit.spec.estimate import CONFIDENCE, Estimate

Row = dict[str, object]


def fit_json(fits: Fits) -> Row:
    """Everything, with `low` and `high` of 90 % intervals; null is what cannot be had."""
    return {
        "confidence": CONFIDENCE,
        "runs": fits.runs,
        "diverged": fits.diverged,
        "crossings": [_crossing(item) for item in fits.crossings],
        "redundancy": [
            json_of("fit-redundancy", item, family=_family(item.family), **_open(item.estimate))
            for item in fits.redundancy
        ],
        "laws": [row for item in fits.laws for row in _parameters(item)],
        "forms": [row for item in fits.laws for row in _forms(item)],
        "contrasts": [json_of("fit-contrasts", item) for item in fits.contrasts],
        "best_depth": [
            json_of("fit-best_depth", item, family=_family(item.family)) for item in fits.best_depth
        ],
        "comparisons": [
            json_of(
                "fit-comparisons",
                item,
                standings=[json_of("fit-standings", one) for one in item.results],
            )
            for item in fits.rankings
        ],
        "noise": [_noise(item) for item in fits.noise],
        "tuned": [to_json(item) for item in fits.tunings],
        "conclusions": list(conclusions(fits)),
    }


def _family(family: FamilyKey) -> Row:
    return json_of("fit-family", family)


def _open(estimate: Estimate) -> dict[str, bool]:
    """Which ends lie beyond the sizes that were trained."""
    ends = {"low": estimate.low, "high": estimate.high}
    return {f"{name}_is_beyond_range": end is None for name, end in ends.items()}


def _crossing(item: Crossing) -> Row:
    is_open = {name: item.is_crossing and end for name, end in _open(item.size).items()}
    depths, family = [item.shallow.depth, item.deep.depth], _family(item.shallow)
    outcome = "crossing" if item.is_crossing else "no crossing"
    return json_of("fit-crossings", item, depths=depths, outcome=outcome, family=family, **is_open)


def _of_law(item: Law) -> Row:
    depth = item.family.depth if item.kind == "size" else None
    return {"law": item.kind, "depth": depth, "family": _family(item.family)}


def _parameters(item: Law) -> list[Row]:
    return [
        json_of("fit-laws", item, parameter=name, **_of_law(item), **estimate.row())
        for name, estimate in item.parameters.items()
    ]


def _forms(item: Law) -> list[Row]:
    return [
        json_of("fit-forms", error, is_best=place == 0, **_of_law(item))
        for place, error in enumerate(item.forms)
    ]


def _noise(noise: Noise) -> Row:
    cells = [json_of("fit-cells", cell, is_noisy=cell in noise.noisy.cells) for cell in noise.cells]
    return json_of("fit-noise", noise, noisy_std=noise.noisy.std or None, cells=cells)
