"""Prepare the data of the atlas as its records name them:

    python docs/atlas/prepare.py FILES OUT [KIND…]

FILES is a folder with what docs/atlas/sources.py writes and the other sources (english.txt.xz and
english-heldout.txt.xz, the same of c-code, dna, proteins, music and instruments). Some kinds are
the first documents of a source only, others a folder of two files. Afterwards `archfit sweep atlas
--kind NAME --data OUT/NAME` goes on with a kind; what was made is compared with the records.
"""

import lzma
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from archfit.data.prepare import prepare
from archfit.data.sources import DataSettings
from archfit.fit.atlas import read_atlas

DOCUMENT = "\n<|doc|>\n"


@dataclass(frozen=True, kw_only=True)
class AtlasSource:
    """A kind: its source, how it is read, and how many of its documents are taken."""

    source: str
    settings: dict[str, Any] = field(default_factory=dict)
    heldout: str | None = None
    documents: int | None = None  # of the source, the first ones; None: all
    heldout_documents: int | None = None
    separator: str = DOCUMENT


BYTES = {"kind": "text", "vocab": 257}
KINDS = {
    "english": AtlasSource(
        source="english.txt.xz",
        heldout="english-heldout.txt.xz",
        settings=BYTES,
        documents=2527,
        heldout_documents=135,
    ),
    "c-code": AtlasSource(source="c-code.txt.xz", heldout="c-code-heldout.txt.xz", settings=BYTES),
    "german": AtlasSource(source="german.txt", settings=BYTES),
    "french": AtlasSource(source="french.txt", settings=BYTES),
    "javascript": AtlasSource(source="javascript.txt", settings=BYTES),
    "go": AtlasSource(source="go.txt", settings=BYTES),
    "proteins": AtlasSource(
        source="proteins.fasta.xz", heldout="proteins-heldout.fasta.xz", settings={"kind": "fasta"}
    ),
    "dna": AtlasSource(  # a folder of dna.fasta and ecoli536.fasta
        source="dna", heldout="dna-heldout.fasta.xz", settings={"kind": "fasta"}
    ),
    "molecules": AtlasSource(
        source="molecules.txt", settings={"kind": "abc"}, documents=12_807, separator="\n\n"
    ),
    "music": AtlasSource(  # a folder of music.abc and tunes.abc
        source="music", heldout="music-heldout.abc", settings={"kind": "abc"}
    ),
    "scores": AtlasSource(source="scores.krn", settings={"kind": "abc"}),
    "instruments": AtlasSource(  # a folder of instruments.bin and sounds.bin
        source="instruments", heldout="instruments-heldout.bin", settings={"kind": "bytes"}
    ),
    "soundtracks": AtlasSource(
        source="soundtracks.bin", heldout="soundtracks-heldout.bin", settings={"kind": "bytes"}
    ),
    "mnist-16": AtlasSource(source="mnist.npz", settings={"kind": "images", "levels": 16}),
    "mnist-256": AtlasSource(source="mnist.npz", settings={"kind": "images"}),
    "fashion-16": AtlasSource(
        source="fashion-mnist.npz", settings={"kind": "images", "levels": 16}, documents=30_000
    ),
    "fashion-256": AtlasSource(
        source="fashion-mnist.npz", settings={"kind": "images"}, documents=30_000
    ),
}


def main(files: Path, out: Path, names: list[str]) -> None:
    """Prepare, and compare with the records."""
    known = {run.spec.data_hash for run in read_atlas().runs}
    for name in names or list(KINDS):
        kind = KINDS[name]
        source = first_documents(files / kind.source, kind.documents, kind.separator, out)
        heldout = None
        if kind.heldout:
            count = kind.heldout_documents
            heldout = str(first_documents(files / kind.heldout, count, kind.separator, out))
        settings = DataSettings(**kind.settings)
        made = prepare(str(source), out / name, settings, heldout=heldout).data
        told = "as in the atlas" if made.data_hash in known else "NOT those of the atlas"
        print(f"{name}: {made.data_hash[:16]}, {told}", flush=True)


def first_documents(source: Path, count: int | None, separator: str, out: Path) -> Path:
    """A copy of the source with its first documents; itself, if all are taken."""
    if count is None:
        return source
    copy = out / f"first-{count}-{source.name.removesuffix('.xz')}"
    copy.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".npz":
        np.savez_compressed(copy, train_x=np.load(source)["train_x"][:count])
    else:
        raw = source.read_bytes()
        text = (lzma.decompress(raw) if source.suffix == ".xz" else raw).decode()
        copy.write_text(separator.join(text.split(separator)[:count]), encoding="utf-8")
    return copy


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
