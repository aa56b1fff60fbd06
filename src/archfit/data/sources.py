"""What SOURCE means: a file, a folder, a pattern, the sample that ships with archfit."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from archfit.data.unpack import PACKED, SourceFile

if TYPE_CHECKING:
    from archfit.data.settings import Settings

SAMPLE = "sample"
HUGGING_FACE = "hf:"
RESOURCES = Path(__file__).parents[1] / "resources"
SAMPLE_FILE = RESOURCES / "sample-english.txt.xz"
SAMPLE_HELDOUT_FILE = RESOURCES / "sample-english-heldout.txt.xz"

# What is picked out of a folder; a file named directly is taken whatever its ending.
ENDINGS: dict[str, tuple[str, ...]] = {
    "text": (".txt", ".md", ".jsonl", ".parquet"),
    "bytes": (),  # every file
    "fasta": (".fasta", ".fa", ".faa", ".fna", ".ffn"),
    "images": (".npz", ".npy", ".png", ".jpg", ".jpeg"),
    "series": (".csv",),
    "abc": (".abc", ".txt"),
    "tokens": (".bin", ".npy"),
}
_GUESSES = {
    ending: kind for kind in ("tokens", "abc", "series", "images", "fasta", "text")
    for ending in ENDINGS[kind]
}  # fmt: skip


def guess_kind(source: str) -> str:
    """The kind that a source's name suggests: fasta for genes.fa.gz, bytes if nothing else."""
    if source == SAMPLE or source.startswith(HUGGING_FACE):
        return "text"
    path = Path(source)
    if path.is_dir():
        found = [_GUESSES.get(file.suffix, "bytes") for file in _walk(path)]
        return max(sorted(set(found)), key=found.count, default="bytes")
    return _GUESSES.get(SourceFile(path, path.name).suffix, "bytes")


def is_sample(source: str) -> bool:
    """Whether `source` means the shipped sample: its name, unless a file here is called so."""
    return source == SAMPLE and not Path(source).exists()


def find_files(source: str, settings: Settings) -> list[SourceFile]:
    """The files that `source` stands for, in an order that does not depend on the machine."""
    path = Path(source)
    if is_sample(source):
        return [SourceFile(SAMPLE_FILE, SAMPLE_FILE.name)]
    if path.is_dir():
        return _in_folder(path, settings.kind)
    if path.exists():
        return [SourceFile(path, path.name)]
    found = sorted(glob.glob(source, recursive=True))
    files = [SourceFile(Path(name), name) for name in found if not Path(name).is_dir()]
    if not files:
        raise ValueError(
            f"there is no file or folder {source!r}; give a path, a pattern in quotes, "
            f"hf:NAME or {SAMPLE!r}"
        )
    prefix = len(os.path.commonpath([str(file.path.parent) for file in files]))
    return [SourceFile(file.path, file.name[prefix:].lstrip("/")) for file in files]


def _in_folder(folder: Path, kind: str) -> list[SourceFile]:
    endings = ENDINGS[kind]
    files = [file for file in _walk(folder) if not endings or file.suffix in endings]
    if not files:
        wanted = " ".join(endings) or "any"
        raise ValueError(
            f"folder {folder.name!r} holds no file of kind {kind} ({wanted}, also packed as "
            f"{' '.join(PACKED)}); name the files or choose another --kind"
        )
    return files


def _unreadable(problem: OSError) -> None:
    """A folder that cannot be listed would silently leave its files out."""
    raise ValueError(
        f"{problem.filename} cannot be read ({problem.strerror}); change its permissions, or name "
        "the files"
    ) from problem


def _walk(folder: Path) -> list[SourceFile]:
    """Files below `folder` by relative name; hidden ones and linked folders are left out."""
    found: list[str] = []
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(place, name) for name in names if not name.startswith(".")]
    relative = sorted(Path(name).relative_to(folder).as_posix() for name in found)
    return [SourceFile(folder / name, name) for name in relative]
