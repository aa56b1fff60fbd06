"""Put finished runs of the atlas into the package: python docs/atlas/pack.py FOLDER [held-back]

FOLDER holds KIND/NAME.json, the record of each run, and data/*.json, the data.json of each data set
that they were trained on. Runs that are packed already stay.
"""

import json
import lzma
import sys
from pathlib import Path

from archfit.fit.atlas import HELD_BACK, RECORDS, AtlasRun
from archfit.spec import RunRecord, loads, to_json
from archfit.spec.files import packed_lines

HERE = Path(__file__).parents[2] / "src" / "archfit" / "resources"
KIND_OF = {"mnist-16": "mnist", "mnist-256": "mnist"} | {
    f"fashion-{levels}": "fashion-mnist" for levels in (16, 256)
}


def main(folder: Path, records: str) -> None:
    """Read, merge, write."""
    labels = {}
    for file in sorted((folder / "data").glob("*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        labels[data["data_hash"]] = label_of(data)
    runs = {run.spec: run for run in packed_lines(AtlasRun, records)}
    labels |= {run.spec.data_hash: run.vocabulary for run in runs.values()}
    for file in sorted(folder.glob("*/*.json")):
        name = file.parent.name
        if name != "data":
            record = loads(RunRecord, file.read_text(encoding="utf-8"))
            kind, label = KIND_OF.get(name, name), labels[record.spec.data_hash]
            runs[record.spec] = AtlasRun(kind=kind, vocabulary=label, record=record)
    lines = sorted(runs.values(), key=lambda r: (r.kind, r.vocabulary, r.spec.name))
    text = "".join(json.dumps(to_json(line), sort_keys=True) + "\n" for line in lines)
    (HERE / records).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(lines)} runs, {(HERE / records).stat().st_size:,} bytes")


def label_of(data: dict[str, object]) -> str:
    """What a data set's tokens are."""
    settings = data["settings"]
    assert isinstance(settings, dict)
    words = {
        "bpe": f"BPE of {data['vocab']}",
        "k-mers": f"{settings.get('kmer')}-mers",
        "levels": f"{settings.get('levels')} levels",
    }
    return words.get(str(data["vocabulary"]), str(data["vocabulary"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), HELD_BACK if sys.argv[2:] else RECORDS)
