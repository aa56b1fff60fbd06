"""Put the records of finished sweeps into the package:

    python docs/evidence/pack.py FOLDER [NAME=SECONDS …]

FOLDER holds a folder for each sweep that `src/archfit/resources/evidence/sweeps.json` names; those
that it has not are kept as they are packed. Runs that several sweeps share stand with each. SECONDS
are what the command of a sweep took; they are written there, with the day.
"""

import json
import lzma
import sys
from datetime import UTC, datetime
from pathlib import Path

from archfit.fit.evidence import RECORDS, SWEEPS, PackedRun
from archfit.spec import to_json
from archfit.spec.files import SWEEP, packed_lines, read_records
from archfit.sweep.folder import read_sweep

HERE = Path(__file__).parents[2] / "src" / "archfit" / "resources"


def main(folder: Path, seconds: dict[str, float]) -> None:
    """Read, merge, write."""
    document = json.loads((HERE / SWEEPS).read_text())
    names = [entry["name"] for entry in document["sweeps"]]
    if unknown := seconds.keys() - set(names):
        sys.exit(f"{min(unknown)} is no sweep of {SWEEPS}; use one of {', '.join(names)}")
    for entry in document["sweeps"]:
        if entry["name"] in seconds:
            entry |= {
                "wall_seconds": seconds[entry["name"]],
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
            }
    (HERE / SWEEPS).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    fresh = {name: folder / name for name in names if (folder / name).is_dir()}
    lines = [line for line in packed_lines(PackedRun, RECORDS) if line.sweep not in fresh]
    for name, path in fresh.items():
        wanted = {spec.name for spec in read_sweep(path / SWEEP).specs}
        records = [record for record in read_records(path) if record.spec.name in wanted]
        lines += [PackedRun(sweep=name, record=record) for record in records]
    lines.sort(key=lambda line: (names.index(line.sweep), line.record.spec.name))
    text = "".join(json.dumps(to_json(line), sort_keys=True) + "\n" for line in lines)
    (HERE / RECORDS).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    packed = len({line.sweep for line in lines})
    print(f"{len(lines)} records of {packed} sweeps, {(HERE / RECORDS).stat().st_size:,} bytes")


if __name__ == "__main__":
    named = (word.split("=") for word in sys.argv[2:])
    main(Path(sys.argv[1]), {name: float(took) for name, took in named})
