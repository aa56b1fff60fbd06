"""The JSON document of what was found."""

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import TABLES, FamilyKey
from archfit.fit.comparisons import Contrast, Ranking
from archfit.fit.conclusions import conclusions
from archfit.fit.depths import BestDepth, Crossing
from archfit.fit.fitted import Fits
from archfit.fit.laws import Law
from archfit.fit.noise import Noise
from archfit.spec import to_json
from archfit.spec.estimate import CONFIDENCE

Row = dict[str, object]


def fit_json(fits: Fits) -> Row:
    """Everything, with `low` and `high` of 90 % intervals; null is what cannot be had."""
    return {
        "confidence": CONFIDENCE,
        "runs": fits.runs,
        "diverged": fits.diverged,
        "crossings": [_crossing(item) for item in fits.crossings],
        "redundancy": [_redundancy(item) for item in fits.redundancy],
        "laws": [row for item in fits.laws for row in _parameters(item)],
        "forms": [row for item in fits.laws for row in _forms(item)],
        "contrasts": [_contrast(item) for item in fits.contrasts],
        "best_depth": [_best_depth(item) for item in fits.best_depth],
        "comparisons": [_ranking(item) for item in fits.rankings],
        "noise": [_noise(item) for item in fits.noise],
        "tuned": [to_json(item) for item in fits.tunings],
        "conclusions": list(conclusions(fits)),
    }


def _pick(item: object, *names: str) -> Row:
    """These attributes, by the names that they have."""
    return {name: getattr(item, name) for name in names}


def _family(key: FamilyKey) -> Row:
    return {
        "data": key.data_hash,
        "vocab": key.input.vocab,
        "context": key.context,
        "steps": key.recipe.steps,
        "learning_rate_rule": key.recipe.learning_rate_rule,
        **_pick(key, "block", "objective"),
        "tables": _tables(key),
    }


def _tables(key: FamilyKey) -> Row:
    """The inner size of each table, or how else it is made."""
    tables = _pick(key, *TABLES).items()
    return {name: getattr(table, "inner", type(table).__name__.lower()) for name, table in tables}


def _crossing(item: Crossing) -> Row:
    return {
        "depths": [item.shallow.depth, item.deep.depth],
        "outcome": "crossing" if item.is_crossing else "no crossing",
        **_pick(item, "verdict", "number", "times"),
        **item.size.row("size"),
        "low_is_beyond_range": item.is_crossing and item.size.low is None,
        "high_is_beyond_range": item.is_crossing and item.size.high is None,
        "width": item.width.value,
        "width_low": item.width.low,
        "width_high": item.width.high,
        "would_lie": item.beyond,
        "range": list(item.range),
        "slope_difference": item.slope,
        **_pick(item, "slope_probability", "neighbours", "seeds", "seeds_needed", "inflation"),
        "family": _family(item.shallow),
    }


def _redundancy(item: MeasuredRedundancy) -> Row:
    return {
        "kind": item.kind,
        "bottleneck": list(item.bottleneck),
        "ratio": item.ratio,
        "outcome": item.outcome,
        **item.estimate.row("redundancy"),
        "low_is_beyond_range": item.estimate.low is None,
        "high_is_beyond_range": item.estimate.high is None,
        **_pick(item.cell.architecture, "depth", "width"),
        "size": item.cell.size,
        "loss": item.cell.mean,
        "bits_per_byte": item.cell.bits_per_byte,
        "baseline_depths": list(item.baseline_depths),
        "baseline_is_limited_by_input": item.baseline_is_limited,
        "is_best_depth": item.is_best_depth,
        "seeds": item.seeds,
        "family": _family(item.family),
    }


def _parameters(item: Law) -> list[Row]:
    """A row for each parameter of a law."""
    return [
        {
            "law": item.kind,
            "form": item.form,
            "parameter": name,
            **estimate.row(),
            "seeds": item.seeds,
            "points": item.points,
            "depth": item.family.depth if item.kind == "size" else None,
            "inflation": item.inflation,
            "family": _family(item.family),
        }
        for name, estimate in item.parameters.items()
    ]


def _forms(item: Law) -> list[Row]:
    """A row for each form that competed, the best first."""
    return [
        {
            "law": item.kind,
            "depth": item.family.depth if item.kind == "size" else None,
            "form": error.form,
            "held_out_error": error.held_out_error,
            "largest_held_out_error": error.last_error,
            "is_best": place == 0,
            "family": _family(item.family),
        }
        for place, error in enumerate(item.forms)
    ]


def _contrast(item: Contrast) -> Row:
    return {
        "kind": item.kind,
        "first": _tables(item.first),
        "second": _tables(item.second),
        "depth": item.first.depth,
        **_pick(item, "width", "rank"),
        **item.difference.estimate.row("difference"),
        "standard_deviations": item.stds,
        **_pick(item.difference, "is_settled", "seeds", "seeds_needed"),
        "data": item.first.data_hash,
    }


def _best_depth(item: BestDepth) -> Row:
    return {
        "size": item.size,
        **item.estimate.row("depth"),
        "ties": list(item.ties),
        "depths": list(item.depths),
        **_pick(item, "seeds", "seeds_needed"),
        "family": _family(item.family),
    }


def _ranking(item: Ranking) -> Row:
    standings = [
        {
            **_pick(result.first.architecture, "depth", "width"),
            "vocab": result.first.architecture.input.vocab,
            "patch": result.first.architecture.input.tokens_per_position,
            "data": result.first.data_hash,
            "params": result.first.architecture.params,
            "bits_per_byte": result.first.bits_per_byte,
            **result.estimate.row("difference"),
            **_pick(result, "is_settled", "seeds", "seeds_needed"),
        }
        for result in item.results
    ]
    params = item.best.architecture.params
    return {"params": params, "degrees_of_freedom": item.degrees, "standings": standings}


def _noise(noise: Noise) -> Row:
    cells = [
        {
            **_pick(cell.architecture, "depth", "width"),
            "size": cell.size,
            "peak_learning_rate": cell.recipe.peak_learning_rate,
            "mean": cell.mean,
            "std": (cell.squares / (cell.seeds - 1)) ** 0.5 if cell.seeds > 1 else None,
            "seeds": cell.seeds,
            "is_noisy": cell in noise.noisy.cells,
        }
        for cell in noise.cells
    ]
    return {
        "data": noise.data_hash,
        "steps": noise.recipe.steps,
        "std": noise.std,
        "degrees_of_freedom": noise.degrees,
        "noisy_std": noise.noisy.std or None,
        "noisy_degrees_of_freedom": noise.noisy.degrees,
        "cells": cells,
    }
