"""What the shipped runs say about the papers: a document, its JSON, the tables of its page."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from archfit.fit.evidence import (
    Evidence,
    EvidenceFinding,
    Measure,
    ShippedSweep,
    evidence_fits,
    evidence_records,
)
from archfit.fit.evidence_points import OUTSIDE
from archfit.report.document import Document, Section, json_of, said
from archfit.report.fit_document import fit_json
from archfit.spec import to_json
from archfit.spec.estimate import CONFIDENCE

VERDICTS = {  # and what is said of how many have them
    "confirmed": "confirmed",
    "refuted": "refuted",
    "undecided": "undecided",
    OUTSIDE: "outside of what they assume",
    "new": "questions of our own",
}
ANSWERS = {"refuted": "No.", "confirmed": "Yes.", "undecided": "Undecided."}  # to what was asked


def evidence_document(
    evidence: Evidence, findings: Sequence[EvidenceFinding], *, rows: bool
) -> Document:
    """What the shipped runs say about the papers' findings; `rows`: with every fit in the JSON."""
    data = evidence_json(evidence, findings)
    counts = Counter(str(finding.verdict) for finding in findings)
    told = [f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items()]
    answers = (
        f"{each.asks} {answer}"
        for verdict, answer in ANSWERS.items()
        for each in findings
        if each.verdict == verdict
    )
    return Document(
        title="What the shipped runs say about the papers' findings",
        headline=said("evidence.experiments", len(findings), told),
        sections=(Section.of("", *answers), *map(_section, findings)),
        data=data | fit_rows(evidence) if rows else data,
    )


def _section(finding: EvidenceFinding) -> Section:
    """What was asked and measured, what the claim assumes, and the verdict."""
    return Section.of(
        said("evidence.asks", finding),
        *([f"Paper: {finding.paper}"] if finding.paper else []),
        *(said("evidence.measure", found) for found in finding.measures),
        *assumed(finding),
        said("evidence.verdict", finding, verdict=finding.verdict.upper()),
        is_why=True,
        status=finding.verdict,
    )


def evidence_json(evidence: Evidence, findings: Sequence[EvidenceFinding]) -> dict[str, object]:
    """What `archfit fit --evidence --json` prints before the rows of every sweep."""
    return {
        "confidence": CONFIDENCE,
        "findings": [
            dict(to_json(finding)) | {"measures": [_measure(m) for m in finding.measures]}  # type: ignore[call-overload]  # an object
            for finding in findings
        ],
        "sweeps": [sweep_json(evidence, sweep) for sweep in evidence.shipped],
    }


def _measure(measure: Measure) -> dict[str, object]:
    """The measure with its estimate taken apart, every number a float."""
    numbers = {"at": measure.at, **measure.estimate.row()}
    floats = {name: None if number is None else float(number) for name, number in numbers.items()}
    return json_of("evidence-measure", measure, **floats)


def fit_rows(evidence: Evidence) -> dict[str, object]:
    """Every crossing, redundancy and law of every sweep, as `archfit fit` gives them."""
    rows: dict[str, list[object]] = {name: [] for name in ("crossings", "redundancy", "laws")}
    for sweep in (sweep for sweep in evidence.shipped if sweep.is_repeated):
        document = fit_json(evidence_fits(sweep.name))
        for name, found in rows.items():
            found += [{"sweep": sweep.name, **row} for row in document[name]]  # type: ignore[attr-defined]
    return dict(rows)


def sweep_json(evidence: Evidence, sweep: ShippedSweep) -> dict[str, Any]:
    """How a sweep was made and, from the timings in its records, what it took."""
    records, trained = evidence_records(sweep.name), sweep.trained()
    timings = [record.timing for record in trained]
    seconds = math.fsum(timing.training_seconds for timing in timings)  # of runs, which overlap
    busy = [(t.flop_utilisation, t.training_seconds) for t in timings]
    used = [share * seconds for share, seconds in busy if share is not None]
    tokens = sum(record.spec.training_tokens for record in trained)
    machines = {
        name: ", ".join(sorted({getattr(record.machine, name) for record in records}))
        for name in ("device", "archfit", "torch")
    }
    return json_of(
        "evidence-sweep",
        sweep,
        data=sorted({evidence.labels[record.spec.data_hash] for record in records}),
        **machines,
        runs=len(records),
        trained=len(trained),
        training_seconds=seconds,
        overhead=sweep.wall_seconds / seconds,  # below 1 where runs overlap
        tokens=tokens,
        tokens_per_second=tokens / sweep.wall_seconds,
        utilisation=math.fsum(used) / sweep.wall_seconds if used else None,  # of the GPU's peak
    )


def assumed(finding: EvidenceFinding) -> list[str]:
    """What its claim assumes, each a sentence."""
    return [f"assumes {hypothesis}" for hypothesis in finding.hypotheses]
