import hashlib
import lzma
from pathlib import Path

import pytest

from archfit.data.settings import Settings
from archfit.data.sources import (
    RESOURCES,
    SAMPLE,
    SAMPLE_FILE,
    SAMPLE_HELDOUT_FILE,
    find_files,
    guess_kind,
)

TEXT = Settings(kind="text")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.md", "deep/c.jsonl.gz", "photo.png", ".hidden.txt", ".git/d.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    return tmp_path


def test_a_folder_gives_its_files_of_the_kind_in_order(folder: Path) -> None:
    assert [file.name for file in find_files(str(folder), TEXT)] == [
        "a.md",
        "b.txt",
        "deep/c.jsonl.gz",
    ]


def test_bytes_takes_every_file_that_is_not_hidden(folder: Path) -> None:
    assert len(find_files(str(folder), Settings(kind="bytes"))) == 4


def test_a_pattern_gives_what_it_matches(folder: Path) -> None:
    names = [file.name for file in find_files(f"{folder}/**/*.*", Settings(kind="bytes"))]
    assert names == ["a.md", "b.txt", "deep/c.jsonl.gz", "photo.png"]


def test_the_sample_ships_with_the_package() -> None:
    (file,) = find_files(SAMPLE, TEXT)
    assert file.path.stat().st_size > 100_000


def test_a_missing_source_says_what_could_be_given() -> None:
    with pytest.raises(ValueError, match=r"no file or folder 'nowhere\.txt'; give a path"):
        find_files("nowhere.txt", TEXT)


def test_a_folder_without_such_files_says_so(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no file of kind fasta \(\.fasta"):
        find_files(str(folder), Settings(kind="fasta"))


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
        ("hf:some/thing", "text"),
        (SAMPLE, "text"),
    ],
)
def test_the_ending_suggests_the_kind(name: str, kind: str) -> None:
    assert guess_kind(name) == kind


def test_the_sample_is_the_text_its_readme_names() -> None:
    readme = (RESOURCES / "README.md").read_text()
    for file in (SAMPLE_FILE, SAMPLE_HELDOUT_FILE):
        assert hashlib.sha256(lzma.decompress(file.read_bytes())).hexdigest() in readme
