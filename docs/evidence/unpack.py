"""Turn the shipped records into folders of runs: python docs/evidence/unpack.py FOLDER.

Each sweep becomes a folder that `archfit fit` and `archfit report` read, beside your own runs.
"""

import sys
from pathlib import Path

from archfit.fit.evidence import Evidence, ShippedSweep, evidence_records, read_evidence
from archfit.spec import canonical_json
from archfit.spec.files import RECORD, SPEC, SWEEP
from archfit.sweep.folder import sweep_json
from archfit.sweep.sweep import Corpus, Sweep


def main(out: Path) -> None:
    """Write what is not there yet."""
    evidence = read_evidence()
    for sweep in evidence.shipped:
        for record in evidence_records(sweep.name):
            folder = out / sweep.name / record.spec.name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / SPEC).write_text(canonical_json(record.spec))
            (folder / RECORD).write_text(canonical_json(record))
        (out / sweep.name / SWEEP).write_text(sweep_json(_sweep(evidence, sweep)))


def _sweep(evidence: Evidence, sweep: ShippedSweep) -> Sweep:
    """What the sweep asked for; its data lie where their preparation puts them."""
    specs = {record.spec: record.spec.architecture.input for record in evidence_records(sweep.name)}
    vocabularies = {spec.data_hash: read.vocab for spec, read in specs.items()}
    return Sweep(
        name=sweep.name,
        scale="own" if ".toml" in sweep.command else "small",
        question="",
        data=tuple(
            Corpus(
                label=data.label,
                kind=data.kind,
                vocab=vocabularies[data.hash],
                hash=data.hash,
                folder="",
            )
            for data in evidence.data
            if data.hash in vocabularies
        ),
        specs=tuple(specs),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
