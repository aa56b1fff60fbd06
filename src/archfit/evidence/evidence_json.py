"""All findings and how their sweeps were made, as one JSON document."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from archfit.evidence import depth, ranks
from archfit.evidence.measures import EvidenceFinding, Measure
from archfit.evidence.modalities import modality_findings
from archfit.evidence.records import Evidence, ShippedSweep
from archfit.fit.fit_json import fit_json
from archfit.spec import to_json
from archfit.spec.estimate import CONFIDENCE

CONCLUSIONS = "conclusions.json"  # the same, as the package has it for those who cannot wait

COSTS = (
    "wall_seconds", "training_seconds", "overhead", "tokens", "tokens_per_second", "utilisation",
)  # fmt: skip


def all_findings(evidence: Evidence) -> tuple[EvidenceFinding, ...]:
    """Recomputed from the records, in the order of the questions: a few seconds, no GPU."""
    found = (
        *ranks.rank_findings(evidence),
        *depth.crossing_findings(evidence),
        *ranks.attention_findings(evidence),
        *ranks.position_findings(evidence),
        *depth.depth_findings(evidence),
        ranks.side_finding(evidence),
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
    busy = [(t.flop_utilisation, t.training_seconds) for t in timings]
    used = [share * seconds for share, seconds in busy if share is not None]
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
            dict(to_json(finding)) | {"measures": [_measure(m) for m in finding.measures]}  # type: ignore[call-overload]  # an object
            for finding in findings
        ],
        "sweeps": [_sweep(evidence, sweep) for sweep in evidence.manifest.sweeps],
    }


def _measure(measure: Measure) -> dict[str, object]:
    """The measure with its estimate taken apart, every number a float."""
    numbers = {"at": measure.at, **measure.estimate.row()}
    floats = {name: None if number is None else float(number) for name, number in numbers.items()}
    words = {name: getattr(measure, name) for name in ("unit", "seeds", "series")}
    return {"what": measure.what, **floats, **words}


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
        **{
            name: ", ".join(sorted({getattr(machine, name) for machine in machines}))
            for name in ("device", "archfit", "torch")
        },
        "runs": len(records),
        "reuses": list(sweep.reuses),
        "trained": cost.runs,
        "workers": sweep.workers,
        "sweeps_at_once": sweep.sweeps_at_once,
        **{name: getattr(cost, name) for name in COSTS},
        "note": sweep.note,
    }
