import hashlib
import lzma
from pathlib import Path
from typing import cast

import pytest

from archfit.data.sources import (
    SAMPLE_FILE,
    SAMPLE_HELDOUT_FILE,
    DataSettings,
    find_files,
    guess_kind,
)
from archfit.spec.data_kinds import SAMPLE
from archfit.spec.packed import packed_file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.md", "deep/c.jsonl.gz", "photo.png", ".hidden.txt", ".git/d.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    return tmp_path


def test_a_folder_gives_its_files_of_the_kind_in_order(folder: Path) -> None:
    assert [file.name for file in find_files(str(folder), "text")] == [
        "a.md",
        "b.txt",
        "deep/c.jsonl.gz",
    ]


def test_bytes_takes_every_file_that_is_not_hidden(folder: Path) -> None:
    assert len(find_files(str(folder), "bytes")) == 4


def test_a_pattern_gives_what_it_matches(folder: Path) -> None:
    names = [file.name for file in find_files(f"{folder}/**/*.*", "bytes")]
    assert names == ["a.md", "b.txt", "deep/c.jsonl.gz", "photo.png"]


def test_the_sample_ships_with_the_package() -> None:
    (file,) = find_files(SAMPLE, "text")
    assert file.path.stat().st_size > 100_000


def test_a_missing_source_says_what_could_be_given() -> None:
    with pytest.raises(ValueError, match=r"no file or folder 'nowhere\.txt'; give a path"):
        find_files("nowhere.txt", "text")


def test_a_folder_without_such_files_says_so(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no file of kind fasta \(\.fasta"):
        find_files(str(folder), "fasta")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt.xz", "text"),
        ("b.FASTA", "fasta"),
        ("c.abc.gz", "abc"),
        ("d.npz", "images"),
        ("e.csv", "series"),
        ("f.bin", "tokens"),
        ("g.exe", "bytes"),
        ("h.py", "text"),
        ("i.RS.gz", "text"),
        ("hf:some/thing", "text"),
        (SAMPLE, "text"),
    ],
)
def test_the_ending_suggests_the_kind(name: str, kind: str) -> None:
    assert guess_kind(name) == kind


def test_a_folder_of_source_code_is_text(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "README.md"):
        (tmp_path / name).write_text("x = 1\n")
    assert guess_kind(str(tmp_path)) == "text"
    assert [file.name for file in find_files(str(tmp_path), "text")] == [
        "README.md",
        "a.py",
        "b.py",
    ]


def test_the_sample_is_the_text_its_readme_names() -> None:
    readme = packed_file("README.md").read_text()
    for file in (SAMPLE_FILE, SAMPLE_HELDOUT_FILE):
        assert hashlib.sha256(lzma.decompress(file.read_bytes())).hexdigest() in readme


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kind": "txt"}, "kind='txt' is unknown; use one of text, bytes"),
        ({"kind": "text", "vocab": 100}, "vocab=100 is smaller than the alphabet.*use 257"),
        ({"kind": "bytes", "vocab": 256}, "vocab=256 is smaller than the alphabet"),
        (
            {"kind": "text", "kmer": 3},
            "kmer=3 means nothing for data of kind text; it belongs to fasta",
        ),
        ({"kind": "fasta", "kmer": 0}, r"kmer=0 is not in 1\.\.24; use 1 to 24 letters"),
        ({"kind": "images", "levels": 10}, "levels=10 is no power of two"),
        ({"kind": "images", "levels": 16, "clusters": 16}, "choose one"),
        ({"kind": "images", "clusters": 1}, r"clusters=1 is not in 2\.\.65535"),
        ({"kind": "series", "bins": 1}, "one bin carries no information"),
        ({"kind": "tokens", "separator": "x"}, "separator='x' is not a token id"),
        ({"kind": "text", "max_bytes": 0}, "max_bytes=0 allows no input"),
        ({"kind": "abc", "vocab": 1}, r"vocab=1 is not in 2\.\."),
        ({"kind": "bytes", "vocab": 1 << 31}, r"vocab=2147483648 is not in 2\.\.16777216"),
        ({"kind": "tokens", "separator": "99999999999"}, "is not a token id below 16777216"),
        ({"kind": "fasta", "kmer": 10**9}, r"kmer=1000000000 is not in 1\.\.24"),
        (
            {"kind": "text", "errors": "ignore"},
            "errors='ignore' is unknown; use one of strict, replace",
        ),
    ],
)
def test_settings_that_make_no_sense_cannot_exist(
    options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        DataSettings(**cast("dict[str, str]", options))  # type: ignore[arg-type]  # wrong on purpose


def test_the_limit_on_bytes_does_not_decide_the_tokens() -> None:
    limited = DataSettings(kind="text", max_bytes=5)
    assert limited.as_json() == DataSettings(kind="text").as_json()
