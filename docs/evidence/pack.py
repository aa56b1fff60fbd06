"""Put the records of finished sweeps into the package: python docs/evidence/pack.py FOLDER.

FOLDER holds a folder for each sweep that `src/archfit/resources/evidence/sweeps.json` names; those
that it has not are kept as they are packed. Runs that several sweeps share stand with each.
"""

import json
import lzma
import sys
from pathlib import Path

from archfit.fit.evidence import RECORDS, SWEEPS, PackedRun
from archfit.spec import RunSpec, from_json, to_json
from archfit.spec.files import SWEEP, packed_lines, read_records, read_sweep_json

HERE = Path(__file__).parents[2] / "src" / "archfit" / "resources"


def main(folder: Path) -> None:
    """Read, merge, write."""
    names = [entry["name"] for entry in json.loads((HERE / SWEEPS).read_text())["sweeps"]]
    fresh = {name: folder / name for name in names if (folder / name).is_dir()}
    lines = [line for line in packed_lines(PackedRun, RECORDS) if line.sweep not in fresh]
    for name, path in fresh.items():
        asked = read_sweep_json(path / SWEEP)["specs"]
        assert isinstance(asked, list)
        wanted = {from_json(RunSpec, spec).name for spec in asked}
        records = [record for record in read_records(path) if record.spec.name in wanted]
        lines += [PackedRun(sweep=name, record=record) for record in records]
    lines.sort(key=lambda line: (names.index(line.sweep), line.record.spec.name))
    text = "".join(json.dumps(to_json(line), sort_keys=True) + "\n" for line in lines)
    (HERE / RECORDS).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(lines)} records of {len(names)} sweeps, {(HERE / RECORDS).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
