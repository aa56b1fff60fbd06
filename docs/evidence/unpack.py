"""Turn the shipped records into folders of runs: python docs/evidence/unpack.py FOLDER.

Each sweep becomes a folder that `archfit fit` and `archfit report` read, beside your own runs.
"""

import sys
from pathlib import Path

from archfit.evidence.records import read_evidence
from archfit.spec import canonical_json
from archfit.spec.run_folder import RECORD, SPEC


def main(out: Path) -> None:
    """Write what is not there yet."""
    for line in read_evidence().lines:
        folder = out / line.sweep / line.record.spec.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SPEC).write_text(canonical_json(line.record.spec))
        (folder / RECORD).write_text(canonical_json(line.record))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
