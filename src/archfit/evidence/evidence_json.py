"""All findings and how their sweeps were made, as one JSON document."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from archfit.evidence.depth import crossing_findings, depth_findings
from archfit.evidence.measures import EvidenceFinding, Measure
from archfit.evidence.modalities import modality_findings
from archfit.evidence.ranks import (
    attention_findings,
    position_findings,
    rank_findings,
    side_finding,
)
from archfit.evidence.records import Evidence, ShippedSweep
from archfit.fit.fit_json import fit_json
from archfit.spec import to_json
from archfit.spec.estimate import CONFIDENCE

CONCLUSIONS = "conclusions.json"  # the same, as the package has it for those who cannot wait


def all_findings(evidence: Evidence) -> tuple[EvidenceFinding, ...]:
    """Recomputed from the records, in the order of the questions: a few seconds, no GPU."""
    found = (
        *rank_findings(evidence),
        *crossing_findings(evidence),
        *attention_findings(evidence),
        *position_findings(evidence),
        *depth_findings(evidence),
        side_finding(evidence),
        *modality_findings(evidence),
    )
    return tuple(sorted(found, key=lambda finding: finding.question))


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepCost:
    """What a sweep took."""

    runs: int  # trained by this sweep
    tokens: int
    training_seconds: float  # sum over runs, which overlap
    wall_seconds: float
    utilisation: float | None  # of the GPU's peak, by this sweep alone

    @property
    def overhead(self) -> float:
        """Wall-clock time over the sum of training times; below 1 where runs overlap."""
        return self.wall_seconds / self.training_seconds

    @property
    def tokens_per_second(self) -> float:
        """Of all its runs together."""
        return self.tokens / self.wall_seconds


def cost_of(evidence: Evidence, sweep: ShippedSweep) -> SweepCost:
    """What a sweep took, from the timings in its records."""
    records = evidence.trained(sweep)
    timings = [record.timing for record in records]
    used = [
        timing.flop_utilisation * timing.training_seconds
        for timing in timings
        if timing.flop_utilisation is not None
    ]
    return SweepCost(
        runs=len(records),
        tokens=sum(record.spec.training_tokens for record in records),
        training_seconds=math.fsum(timing.training_seconds for timing in timings),
        wall_seconds=sweep.wall_seconds,
        utilisation=math.fsum(used) / sweep.wall_seconds if used else None,
    )


def evidence_json(evidence: Evidence, findings: Sequence[EvidenceFinding]) -> dict[str, object]:
    """What `archfit fit --evidence --json` prints before the rows of every sweep."""
    return {
        "confidence": CONFIDENCE,
        "findings": [
            dict(to_json(finding)) | {"measures": [_measure(one) for one in finding.measures]}  # type: ignore[call-overload]  # an object
            for finding in findings
        ],
        "sweeps": [_sweep(evidence, sweep) for sweep in evidence.manifest.sweeps],
    }


def _measure(measure: Measure) -> dict[str, object]:
    numbers = {"at": measure.at, **measure.estimate.row()}
    return {
        "what": measure.what,
        **{name: None if number is None else float(number) for name, number in numbers.items()},
        "unit": measure.unit,
        "seeds": measure.seeds,
        "series": measure.series,
    }


def fit_rows(evidence: Evidence) -> dict[str, object]:
    """Every crossing, redundancy and law of every sweep, as `archfit fit` gives them."""
    rows: dict[str, list[object]] = {name: [] for name in ("crossings", "redundancy", "laws")}
    for sweep in evidence.manifest.sweeps:
        document = fit_json(evidence.fits(sweep.name))
        for name, found in rows.items():
            found += [{"sweep": sweep.name, **row} for row in document[name]]  # type: ignore[attr-defined]
    return dict(rows)


def _sweep(evidence: Evidence, sweep: ShippedSweep) -> dict[str, object]:
    records, cost = evidence.records(sweep.name), cost_of(evidence, sweep)
    machines = [record.machine for record in records]
    return {
        "name": sweep.name,
        "command": sweep.command,
        "prepare": list(sweep.prepare),
        "date": sweep.date,
        "data": sorted({evidence.label(record.spec.data_hash) for record in records}),
        "device": ", ".join(sorted({machine.device for machine in machines})),
        "archfit": ", ".join(sorted({machine.archfit for machine in machines})),
        "torch": ", ".join(sorted({machine.torch for machine in machines})),
        "runs": len(records),
        "reuses": list(sweep.reuses),
        "trained": cost.runs,
        "workers": sweep.workers,
        "sweeps_at_once": sweep.sweeps_at_once,
        "wall_seconds": cost.wall_seconds,
        "training_seconds": cost.training_seconds,
        "overhead": cost.overhead,
        "tokens": cost.tokens,
        "tokens_per_second": cost.tokens_per_second,
        "utilisation": cost.utilisation,
        "note": sweep.note,
    }
