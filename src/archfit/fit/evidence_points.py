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


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A measurement at one ratio."""

    what: str
    at: float
    estimate: Estimate


@cache
def shipped_findings() -> dict[str, dict[str, Any]]:
    """Every finding, by its id."""
    document = json.loads(packed_file(CONCLUSIONS).read_text(encoding="utf-8"))
    return {finding["id"]: finding for finding in document["findings"]}


def points_of(id_: str, series: str = "") -> tuple[Point, ...]:
    """The points of a finding, or of one of its curves, smallest ratio first.

    There are none while only networks outside of the claim were trained.
    """
    found = shipped_findings()[id_]
    measures = [one for one in found["measures"] if series in ("", one["series"])]
    points = [
        Point(what=one["what"], at=one["at"], estimate=estimate_of(one))
        for one in measures
        if found["verdict"] != OUTSIDE
    ]
    return tuple(sorted(points, key=lambda point: point.at))


def estimate_of(measure: dict[str, Any]) -> Estimate:
    """The number of a measure with its interval."""
    return Estimate(**{name: measure[name] for name in ("value", "low", "high")})
