"""The JSON document of what was found."""

from typing import Literal

from archfit.fit.best_depth import BestDepth
from archfit.fit.comparison import Comparison
from archfit.fit.conclusions import conclusions
from archfit.fit.contrasts import Contrast
from archfit.fit.crossing import Crossing
from archfit.fit.families import FamilyKey
from archfit.fit.fitted import Fits
from archfit.fit.laws import Law
from archfit.fit.noise import Noise
from archfit.fit.redundancy import Redundancy
from archfit.fit.resample import INSIDE
from archfit.spec import to_json

Document = dict[str, object]


def document_of(fits: Fits) -> Document:
    """Everything, with `low` and `high` of 90 % intervals; null is what cannot be had."""
    return {
        "confidence": INSIDE,
        "runs": fits.runs,
        "diverged": fits.diverged,
        "crossings": [_crossing(item) for item in fits.crossings],
        "redundancy": [_redundancy(item) for item in fits.redundancy],
        "laws": [row for item in fits.laws for row in _law(item)],
        "forms": [row for item in fits.laws for row in _forms(item)],
        "contrasts": [_contrast(item) for item in fits.contrasts],
        "best_depth": [_best_depth(item) for item in fits.best_depth],
        "comparisons": [_comparison(item) for item in fits.comparisons],
        "noise": [_noise(item) for item in fits.noise],
        "tuned": [to_json(item) for item in fits.tunings],
        "conclusions": list(conclusions(fits)),
    }


def _family(key: FamilyKey) -> Document:
    return {
        "data": key.data_hash,
        "vocab": key.input.vocab,
        "context": key.context,
        "steps": key.recipe.steps,
        "learning_rate_rule": key.recipe.learning_rate_rule,
        "tables": {
            name: getattr(getattr(key, name), "inner", type(getattr(key, name)).__name__.lower())
            for name in ("embedding", "positions", "head")
        },
    }


def _crossing(item: Crossing) -> Document:
    return {
        "depths": [item.shallow.depth, item.deep.depth],
        "outcome": "crossing" if item.is_crossing else "no crossing",
        "verdict": item.verdict,
        "number": item.number,
        "times": item.times,
        "size": item.size,
        "low": item.low,
        "high": item.high,
        "low_is_beyond_range": item.is_crossing and item.low is None,
        "high_is_beyond_range": item.is_crossing and item.high is None,
        "width": item.width,
        "width_low": item.width_low,
        "width_high": item.width_high,
        "would_lie": item.beyond,
        "range": list(item.range),
        "slope_difference": item.slope,
        "slope_probability": item.slope_probability,
        "neighbours": item.neighbours,
        "seeds": item.seeds,
        "seeds_needed": item.seeds_needed,
        "inflation": item.inflation,
        "family": _family(item.shallow),
    }


def _redundancy(item: Redundancy) -> Document:
    shape = item.cell.architecture
    kind: Literal["value", "at least", "at most", "unknown"] = "unknown"
    if item.value is not None:
        kind = "value"
    elif item.low is not None:
        kind = "at least"
    elif item.high is not None:
        kind = "at most"
    return {
        "kind": item.kind,
        "bottleneck": list(item.bottleneck),
        "ratio": item.ratio,
        "outcome": kind,
        "redundancy": item.value,
        "low": item.low,
        "high": item.high,
        "low_is_beyond_range": item.low is None,
        "high_is_beyond_range": item.high is None,
        "depth": shape.depth,
        "width": shape.width,
        "size": item.cell.size,
        "loss": item.cell.mean,
        "bits_per_byte": item.cell.bits_per_byte,
        "baseline_depths": list(item.baseline_depths),
        "baseline_is_limited_by_input": item.baseline_is_limited,
        "is_best_depth": item.is_best_depth,
        "seeds": item.seeds,
        "family": _family(item.family),
    }


def _law(item: Law) -> list[Document]:
    """A row for each parameter."""
    return [
        {
            "law": item.kind,
            "form": item.form,
            "parameter": parameter.name,
            "value": parameter.value,
            "low": parameter.low,
            "high": parameter.high,
            "seeds": item.seeds,
            "points": item.points,
            "depth": item.family.depth if item.kind == "size" else None,
            "inflation": item.inflation,
            "family": _family(item.family),
        }
        for parameter in item.parameters
    ]


def _forms(item: Law) -> list[Document]:
    return [
        {
            "law": item.kind,
            "depth": item.family.depth if item.kind == "size" else None,
            "form": rival.form,
            "held_out_error": rival.held_out_error,
            "largest_held_out_error": rival.last_error,
            "is_best": place == 0,
            "family": _family(item.family),
        }
        for place, rival in enumerate(item.rivals)
    ]


def _contrast(item: Contrast) -> Document:
    return {
        "kind": item.kind,
        "first": _family(item.first)["tables"],
        "second": _family(item.second)["tables"],
        "depth": item.first.depth,
        "width": item.width,
        "rank": item.rank,
        "difference": item.difference,
        "low": item.low,
        "high": item.high,
        "standard_deviations": item.stds,
        "is_settled": item.is_settled,
        "seeds": item.seeds,
        "seeds_needed": item.seeds_needed,
        "data": item.first.data_hash,
    }


def _best_depth(item: BestDepth) -> Document:
    return {
        "size": item.size,
        "depth": item.depth,
        "low": item.low,
        "high": item.high,
        "ties": list(item.ties),
        "depths": list(item.depths),
        "seeds": item.seeds,
        "seeds_needed": item.seeds_needed,
        "family": _family(item.family),
    }


def _comparison(item: Comparison) -> Document:
    return {
        "params": item.params,
        "degrees_of_freedom": item.degrees,
        "standings": [
            {
                "depth": standing.cell.architecture.depth,
                "width": standing.cell.architecture.width,
                "vocab": standing.cell.architecture.input.vocab,
                "patch": standing.cell.architecture.input.tokens_per_position,
                "data": standing.cell.data_hash,
                "params": standing.cell.architecture.params,
                "bits_per_byte": standing.bits_per_byte,
                "difference": standing.difference,
                "low": standing.low,
                "high": standing.high,
                "is_settled": standing.is_settled,
                "seeds": standing.seeds,
                "seeds_needed": standing.seeds_needed,
            }
            for standing in item.standings
        ],
    }


def _noise(noise: Noise) -> Document:
    return {
        "data": noise.data_hash,
        "steps": noise.recipe.steps,
        "std": noise.std,
        "degrees_of_freedom": noise.degrees,
        "noisy_std": noise.noisy.std or None,
        "noisy_degrees_of_freedom": noise.noisy.degrees,
        "cells": [
            {
                "depth": cell.architecture.depth,
                "width": cell.architecture.width,
                "size": cell.size,
                "peak_learning_rate": cell.recipe.peak_learning_rate,
                "mean": cell.mean,
                "std": (cell.squares / (cell.seeds - 1)) ** 0.5 if cell.seeds > 1 else None,
                "seeds": cell.seeds,
                "is_noisy": cell in noise.noisy.cells,
            }
            for cell in noise.cells
        ],
    }
