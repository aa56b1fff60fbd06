"""The records that ship with archfit stay readable, and every spec keeps the hash it had in 0.1."""

import hashlib
import json
import lzma
from collections.abc import Collection
from importlib import resources

from archfit.spec import RunRecord, from_json, to_json

PACKED = resources.files("archfit.resources").joinpath("evidence") / "records.jsonl.xz"
# SHA-256 of the sorted hashes, as version 0.1 computed them
HASHES_OF_0_1 = "85d8ee1c098dc467a6e139304d56eb807b8d8c9f55fb28c72b476d97cc9e3811"


LATER = {
    "fair-depth",
    "fair-depth-third",
    "figure-one-257",
    "rank-long",
    "wies-attention",
}  # sweeps that 0.1 had not


def _records(but: Collection[str] = ()) -> list[dict[str, object]]:
    lines = map(json.loads, lzma.decompress(PACKED.read_bytes()).decode().splitlines())
    return [line["record"] for line in lines if line["sweep"] not in but]


def test_every_shipped_spec_has_the_hash_of_its_own_json() -> None:
    """The oracle: the hash of the document as it lies in the file, without our values."""
    for document in _records():
        record = from_json(RunRecord, document)
        plain = json.dumps(document["spec"], sort_keys=True, separators=(",", ":"))
        assert record.spec.hash == hashlib.sha256(f"archfit-run-1\n{plain}".encode()).hexdigest()
        assert to_json(record) == document


def test_the_hashes_are_those_of_version_0_1() -> None:
    hashes = {from_json(RunRecord, document).spec.hash for document in _records(but=LATER)}
    assert hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest() == HASHES_OF_0_1
