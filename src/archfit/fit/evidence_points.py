"""What plans and audits take from the evidence: curves of points, read from a file.

The file is `archfit fit --evidence --json`, written by `make evidence`; a test recomputes it.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from archfit.spec.estimate import Estimate
from archfit.spec.files import packed_file

CONCLUSIONS = "evidence/conclusions.json"
OUTSIDE: Literal["outside the claim's hypotheses"] = "outside the claim's hypotheses"
RANK_SETTING = "6 layers, width 256, English"
ATTENTION_SETTING = "3 and 6 layers, 2.65M, English, feed-forward layers of 4 widths"
T5_SETTING = "6 and 12 layers, 2.65M, English, feed-forward layers of 4 attentions"


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


def attention_curve(*, like_t5: bool) -> tuple[Point, ...]:
    """Redundant share over heads x head_dim / width, smallest ratio first.

    Hidden units go with the attention, as in T5 and in the papers' networks, or with the width. Of
    the first there is nothing while only networks outside of the papers' claim were trained.
    """
    if not like_t5:
        return _points("wide-attention")
    return _points("attention") if _findings()["attention"]["verdict"] != OUTSIDE else ()


def rank_by_depth() -> tuple[tuple[str, Point], ...]:
    """What rank 16 wastes at widths of 250 to 300, shallow first, with the shapes' names."""
    found = _findings()["rank-and-depth"]["measures"]
    return tuple((measure["what"], _point(measure)) for measure in found)


@cache
def _findings() -> dict[str, dict[str, Any]]:
    """Every finding, by its id."""
    document = json.loads(packed_file(CONCLUSIONS).read_text(encoding="utf-8"))
    return {finding["id"]: finding for finding in document["findings"]}


def _points(id_: str, series: str = "") -> tuple[Point, ...]:
    """The points of a finding, or of one of its curves, smallest first."""
    measures = _findings()[id_]["measures"]
    found = [_point(one) for one in measures if series in ("", one["series"])]
    return tuple(sorted(found, key=lambda point: point.at))


def _point(measure: dict[str, Any]) -> Point:
    ends = {name: measure[name] for name in ("value", "low", "high")}
    return Point(at=measure["at"], estimate=Estimate(**ends))
