"""The two tables of kinds, and what the first bytes of a source look like."""

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest

from archfit.data.kinds import HANDLERS, detect_kind
from archfit.data.sources import DataSettings
from archfit.spec.data_kinds import DATA_KINDS

CONTENTS = {
    "fasta": b">one protein\nMKVLAAGIV\nWTREL\n>two\nMSE\n",
    "abc": b"X: 1\nT: A tune\nM: 4/4\nK: G\nGABc dedB|\n",
    "text": b"Call me Ishmael. Some years ago, never mind how long.\n" * 9,
    "series": b"time,value\n" + b"".join(b"%d,%d.5\n" % (t, t * t) for t in range(40)),
    "images": b"\x89PNG\r\n\x1a\n" + bytes(40),
    "bytes": bytes(range(256)) * 4,
}
LONG_LATIN_1 = "naïve café, ".encode("latin-1") * 9000


def test_both_tables_have_the_same_kinds_and_every_option_is_a_setting() -> None:
    assert HANDLERS.keys() == DATA_KINDS.keys()
    settings = {field.name for field in dataclasses.fields(DataSettings)}
    options = {option for kind in DATA_KINDS.values() for option in kind.options}
    assert options == settings - {"kind", "vocab", "max_bytes"}


def test_a_vocabulary_is_found_by_its_name_alone() -> None:
    classes = {cls for handler in HANDLERS.values() for cls in handler.vocabularies}
    assert len({cls.name for cls in classes}) == len(classes)


@pytest.mark.parametrize("kind", CONTENTS)
def test_every_kind_is_known_by_its_content_whatever_the_name(kind: str, tmp_path: Path) -> None:
    (tmp_path / "thing.dat").write_bytes(CONTENTS[kind])
    look = detect_kind(str(tmp_path / "thing.dat"))
    assert look is not None
    assert look.kind == kind


def test_packed_files_are_unpacked_first(tmp_path: Path) -> None:
    (tmp_path / "thing.gz").write_bytes(gzip.compress(CONTENTS["fasta"]))
    look = detect_kind(str(tmp_path / "thing.gz"))
    assert look is not None
    assert look.like == "sequences in FASTA"


def test_long_text_that_is_not_utf8_looks_like_bytes_and_a_cut_character_does_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "latin").write_bytes(LONG_LATIN_1)
    (tmp_path / "utf8").write_bytes("漢字".encode() * 30_000)
    kinds = [detect_kind(str(tmp_path / name)) for name in ("latin", "utf8")]
    assert [found and found.kind for found in kinds] == ["bytes", "text"]


def test_arrays_look_like_images(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 3, 3), np.uint8))
    look = detect_kind(str(tmp_path / "a.npz"))
    assert look is not None
    assert look.kind == "images"


def test_what_cannot_be_opened_or_is_empty_looks_like_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert detect_kind(str(tmp_path / "empty")) is None
    assert detect_kind(str(tmp_path / "missing")) is None
    (tmp_path / "broken.xz").write_bytes(b"not xz")
    assert detect_kind(str(tmp_path / "broken.xz")) is None
