"""Put the fingerprints of the atlas's data into the package:

    python docs/atlas/fingerprints.py FOLDER

FOLDER/NAME is prepared data of the kind NAME (or mnist-16 …), in the vocabulary it was given.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from archfit.data.fingerprint import fingerprint
from archfit.data.prepared import open_prepared
from archfit.fit.foretelling import FINGERPRINTS

RESOURCES = Path(__file__).parents[2] / "src" / "archfit" / "resources"
DIGITS = 5


def main(folder: Path) -> None:
    """Read, count, write; by hash of the data."""
    found = {}
    for each in sorted(folder.glob("*/data.json")):
        data = open_prepared(each.parent)
        found[data.data_hash] = rounded(asdict(fingerprint(data.tokens("train"))))
        print(each.parent.name, found[data.data_hash], flush=True)
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    (RESOURCES / FINGERPRINTS).write_text(text, encoding="utf-8")


def rounded(value: object) -> object:
    """Fewer digits than chance has."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    main(Path(sys.argv[1]))
