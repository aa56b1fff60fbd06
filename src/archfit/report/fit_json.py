"""The JSON document of what was found; its columns are in json.toml, as fit-…"""

from archfit.fit.conclusions import conclusions
from archfit.fit.depths import Crossing
from archfit.fit.fitted import Fits
from archfit.fit.laws import Law
from archfit.fit.noise import Noise
from archfit.report.document import json_of
from archfit.spec import to_json
from archfit.spec.estimate import CONFIDENCE

Row = dict[str, object]


def fit_json(fits: Fits) -> Row:
    """Everything, with `low` and `high` of 90 % intervals; null is what cannot be had."""
    return json_of(
        "fit",
        fits,
        confidence=CONFIDENCE,
        crossings=[_crossing(item) for item in fits.crossings],
        laws=[
            json_of("fit-laws", law, parameter=name, estimate=estimate, depth=_depth(law))
            for law in fits.laws
            for name, estimate in law.parameters.items()
        ],
        forms=[
            json_of("fit-forms", error, is_best=place == 0, law=law, depth=_depth(law))
            for law in fits.laws
            for place, error in enumerate(law.forms)
        ],
        noise=[_noise(item) for item in fits.noise],
        tuned=[to_json(item) for item in fits.tunings],
        conclusions=conclusions(fits),
    )


def _depth(law: Law) -> int | None:
    return law.family.depth if law.kind == "size" else None


def _crossing(item: Crossing) -> Row:
    """Whether there is one, and which ends lie beyond the sizes that were trained."""
    found = item.is_crossing
    return json_of(
        "fit-crossings",
        item,
        depths=[item.shallow.depth, item.deep.depth],
        outcome="crossing" if found else "no crossing",
        low_is_beyond_range=found and item.size.low is None,
        high_is_beyond_range=found and item.size.high is None,
    )


def _noise(noise: Noise) -> Row:
    cells = [json_of("fit-cells", cell, is_noisy=cell in noise.noisy.cells) for cell in noise.cells]
    return json_of("fit-noise", noise, noisy_std=noise.noisy.std or None, cells=cells)
