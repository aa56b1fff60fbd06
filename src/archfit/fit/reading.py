"""Records from folders of runs, if they may be compared."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from archfit import __version__
from archfit.spec import RunRecord, open_regular
from archfit.spec.run_folder import read_records

SWEEP = "sweep.json"
FORMAT = 1
LARGEST_SWEEP = 16_000_000  # bytes
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Folder:
    """A folder of runs and the data sets that its sweep names."""

    path: Path
    records: tuple[RunRecord, ...]
    data: frozenset[str]


def read_folders(paths: Sequence[Path]) -> tuple[RunRecord, ...]:
    """The records of all folders, each run once; a sentence says why they cannot be fitted."""
    folders = [_folder(path) for path in paths]
    _check_data(folders)
    found: dict[str, tuple[Path, RunRecord]] = {}
    for folder in folders:
        for record in folder.records:
            path, known = found.setdefault(record.spec.hash, (folder.path, record))
            if not known.same_result(record):
                raise ValueError(
                    f"run {record.spec.name} has different losses in {path} and {folder.path}; "
                    "delete the one that is wrong, or fit one folder at a time"
                )
    return tuple(found[name][1] for name in sorted(found))


def _folder(path: Path) -> Folder:
    if not path.is_dir():
        raise ValueError(f"{path} is no folder; give a folder of runs, as archfit train --out has")
    named = _named_data(path / SWEEP)
    records = read_records(path)
    if not records:
        raise ValueError(
            f"{path} has no finished run (a folder in it with record.json); run archfit sweep or "
            f"archfit train with --out {path} first"
        )
    return Folder(path=path, records=records, data=named or _single(path, records))


def _single(path: Path, records: Sequence[RunRecord]) -> frozenset[str]:
    """The data set of a folder without a sweep, which must be one."""
    hashes = sorted({record.spec.data_hash for record in records})
    if len(hashes) > 1:
        raise ValueError(
            f"{path} mixes the data sets {hashes[0][:16]} and {hashes[1][:16]}, whose losses "
            "cannot be compared; move the runs of each to its own folder and fit one at a time"
        )
    return frozenset(hashes)


def _check_data(folders: Sequence[Folder]) -> None:
    """Every record's data set must be one that every folder names."""
    for folder in folders:
        for record in folder.records:
            name = record.spec.data_hash
            other = next((other for other in folders if name not in other.data), None)
            if other is not None:
                raise ValueError(
                    f"{folder.path} has runs on the data set {name[:16]} and {other.path} is of "
                    f"{min(other.data)[:16]}; losses on different data cannot be compared: fit one "
                    "folder at a time"
                )


def _named_data(path: Path) -> frozenset[str]:
    """The data sets that a sweep names; none where there is no sweep."""
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST_SWEEP + 1)
    except FileNotFoundError:
        return frozenset()
    except ValueError as problem:
        raise ValueError(f"{path} cannot be read: {problem}") from problem
    if len(content) > LARGEST_SWEEP:
        raise ValueError(f"{path} has over {LARGEST_SWEEP:,} bytes, more than any sweep; delete it")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"{path} is damaged (no JSON); run archfit sweep again") from problem
    return _checked(path, document)


def _checked(path: Path, document: object) -> frozenset[str]:
    damaged = f"{path} is damaged ({{}}); run archfit sweep again, or delete the file"
    if not isinstance(document, dict):
        raise ValueError(damaged.format("no JSON object"))
    _check_version(path, document.get("format"), document.get("archfit"))
    data = document.get("data")
    if not isinstance(data, list) or not data:
        raise ValueError(damaged.format("data is no list of data sets"))
    hashes = [item.get("hash") if isinstance(item, dict) else None for item in data]
    if not all(isinstance(name, str) and _SHA256.fullmatch(name) for name in hashes):
        raise ValueError(damaged.format("a data set has no hash of 64 hexadecimal digits"))
    return frozenset(str(name) for name in hashes)


def _check_version(path: Path, form: object, version: object) -> None:
    if form == FORMAT and not isinstance(form, bool) and version == __version__:
        return
    if not isinstance(version, str):
        raise ValueError(
            f"{path} is damaged (it names no version of archfit); run archfit sweep again, or "
            "delete the file"
        )
    shown = version[:40] if version.isprintable() else repr(version[:40])
    raise ValueError(
        f"{path.parent} is being written by archfit {shown} (format {str(form)[:20]}), this is "
        f"{__version__} (format {FORMAT}); use that version, or another folder"
    )
