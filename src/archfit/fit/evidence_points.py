"""What plans and audits take from the evidence: curves of points, read from a file.

The file is `archfit fit --evidence --json`, written by `make evidence`; a test recomputes it.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from archfit.spec.estimate import Estimate
from archfit.spec.files import packed_file

CONCLUSIONS = "evidence/conclusions.json"
RANK_SETTING = "6 layers, width 256, English"
ATTENTION_SETTING = "3 and 6 layers, 2.65M, English"


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A measurement at one ratio."""

    at: float
    estimate: Estimate


def rank_curve() -> tuple[Point, ...]:
    """Redundant share over rank / width (tokens and positions capped), smallest ratio first."""
    return _points("rank")


def rank_of_tokens_curve() -> tuple[Point, ...]:
    """The same with tokens alone capped, as a small vocabulary does it."""
    return _points("rank-of-tokens")


def rank_series(depth: int) -> dict[int, tuple[Point, ...]]:
    """By the rank, 16 or 64: redundant share over rank / width at 2 or 8 layers."""
    return {rank: _points("rank-or-ratio", f"{depth} layers, rank {rank}") for rank in (16, 64)}


def attention_curve() -> tuple[Point, ...]:
    """Redundant share over heads x head_dim / width, smallest ratio first."""
    return _points("attention")


def rank_by_depth() -> tuple[tuple[str, Point], ...]:
    """What rank 16 wastes at widths of 250 to 300, shallow first, with the shapes' names."""
    return tuple((measure["what"], _point(measure)) for measure in _measures()["rank-and-depth"])


@cache
def _measures() -> dict[str, list[dict[str, Any]]]:
    """The measures of every finding, by its id."""
    document = json.loads(packed_file(CONCLUSIONS).read_text(encoding="utf-8"))
    return {finding["id"]: finding["measures"] for finding in document["findings"]}


def _points(id_: str, series: str = "") -> tuple[Point, ...]:
    """The points of a finding, or of one of its curves, smallest first."""
    found = [_point(one) for one in _measures()[id_] if series in ("", one["series"])]
    return tuple(sorted(found, key=lambda point: point.at))


def _point(measure: dict[str, Any]) -> Point:
    ends = {name: measure[name] for name in ("value", "low", "high")}
    return Point(at=measure["at"], estimate=Estimate(**ends))
