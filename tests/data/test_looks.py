"""What the first bytes of a source look like."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from archfit.data.looks import look_at

CONTENTS = {
    "fasta": b">one protein\nMKVLAAGIV\nWTREL\n>two\nMSE\n",
    "abc": b"X: 1\nT: A tune\nM: 4/4\nK: G\nGABc dedB|\n",
    "text": b"Call me Ishmael. Some years ago, never mind how long.\n" * 9,
    "series": b"time,value\n" + b"".join(b"%d,%d.5\n" % (t, t * t) for t in range(40)),
    "images": b"\x89PNG\r\n\x1a\n" + bytes(40),
    "bytes": bytes(range(256)) * 4,
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_every_kind_is_known_by_its_content_whatever_the_name(kind: str, tmp_path: Path) -> None:
    (tmp_path / "thing.dat").write_bytes(CONTENTS[kind])
    look = look_at(str(tmp_path / "thing.dat"))
    assert look is not None
    assert look.kind == kind


def test_packed_files_are_unpacked_first(tmp_path: Path) -> None:
    (tmp_path / "thing.gz").write_bytes(gzip.compress(CONTENTS["fasta"]))
    look = look_at(str(tmp_path / "thing.gz"))
    assert look is not None
    assert look.like == "sequences in FASTA"


def test_arrays_look_like_images(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 3, 3), np.uint8))
    look = look_at(str(tmp_path / "a.npz"))
    assert look is not None
    assert look.kind == "images"


def test_what_cannot_be_opened_or_is_empty_looks_like_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert look_at(str(tmp_path / "empty")) is None
    assert look_at(str(tmp_path / "missing")) is None
    (tmp_path / "broken.xz").write_bytes(b"not xz")
    assert look_at(str(tmp_path / "broken.xz")) is None
