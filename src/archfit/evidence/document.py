"""The findings and how their sweeps were made, as one JSON document."""

import math
from dataclasses import dataclass

from archfit.evidence.finding import Finding
from archfit.evidence.records import Evidence, Made
from archfit.fit.document import document_of as fit_document
from archfit.fit.fitted import fitted
from archfit.spec import to_json

CONCLUSIONS = "conclusions.json"  # the same, as the package has it for those who cannot wait


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a sweep took."""

    runs: int  # trained by this sweep
    tokens: int
    training_seconds: float  # sum over runs, which overlap
    wall_seconds: float
    tokens_per_second: float
    utilisation: float | None  # of the GPU's peak, by this sweep alone

    @property
    def overhead(self) -> float:
        """Wall-clock time over the sum of training times; below 1 where runs overlap."""
        return self.wall_seconds / self.training_seconds


def cost_of(evidence: Evidence, made: Made) -> Cost:
    """From the timings in the records."""
    records = evidence.trained(made)
    tokens = sum(record.spec.training_tokens for record in records)
    used = [(record.timing.flop_utilisation, record.timing.training_seconds) for record in records]
    shares = [share * seconds for share, seconds in used if share is not None]
    return Cost(
        runs=len(records),
        tokens=tokens,
        training_seconds=math.fsum(seconds for _, seconds in used),
        wall_seconds=made.wall_seconds,
        tokens_per_second=tokens / made.wall_seconds,
        utilisation=math.fsum(shares) / made.wall_seconds if shares else None,
    )


def document_of(evidence: Evidence, findings: tuple[Finding, ...]) -> dict[str, object]:
    """What `archfit fit --evidence --json` prints."""
    return {
        "confidence": 0.9,
        "findings": [to_json(finding) for finding in findings],
        "sweeps": [_sweep(evidence, made) for made in evidence.manifest.sweeps],
    }


def rows_of(evidence: Evidence) -> dict[str, object]:
    """Every crossing, redundancy and law of every sweep, as `archfit fit` gives them."""
    rows: dict[str, list[object]] = {name: [] for name in ("crossings", "redundancy", "laws")}
    for made in evidence.manifest.sweeps:
        fits = fit_document(fitted(evidence.records(made.name)))
        for name, found in rows.items():
            found += [{"sweep": made.name, **row} for row in fits[name]]  # type: ignore[attr-defined]
    return dict(rows)


def _sweep(evidence: Evidence, made: Made) -> dict[str, object]:
    records, cost = evidence.records(made.name), cost_of(evidence, made)
    machines = [record.machine for record in records]
    return {
        "name": made.name,
        "command": made.command,
        "prepare": list(made.prepare),
        "date": made.date,
        "data": sorted({evidence.label(record.spec.data_hash) for record in records}),
        "device": ", ".join(sorted({machine.device for machine in machines})),
        "archfit": ", ".join(sorted({machine.archfit for machine in machines})),
        "torch": ", ".join(sorted({machine.torch for machine in machines})),
        "runs": len(records),
        "reuses": list(made.reuses),
        "trained": cost.runs,
        "workers": made.workers,
        "sweeps_at_once": made.sweeps_at_once,
        "wall_seconds": cost.wall_seconds,
        "training_seconds": cost.training_seconds,
        "overhead": cost.overhead,
        "tokens": cost.tokens,
        "tokens_per_second": cost.tokens_per_second,
        "utilisation": cost.utilisation,
        "note": made.note,
    }
