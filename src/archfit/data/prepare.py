"""From a source to a prepared data set, which appears whole or was there already."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archfit.data.assemble import examine, write_data_set
from archfit.data.description import described_origin, work_hash
from archfit.data.images import GREY
from archfit.data.prepared import FILES, PreparedData, open_prepared
from archfit.data.readers import hash_inputs
from archfit.data.reading import Reading
from archfit.data.shards import AppearedError, appearing_folder
from archfit.data.sources import SAMPLE_HELDOUT_FILE, is_sample
from archfit.data.vocabulary_choice import check_tokenizer_file, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from archfit.data.reading import Report
    from archfit.data.settings import Settings


@dataclass(frozen=True, slots=True)
class Outcome:
    """A prepared data set, and whether it was there already."""

    data: PreparedData
    already_there: bool


class OtherDataError(ValueError):
    """Where the data set should be lies something else."""


def silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""


def prepare(
    source: str,
    out: Path,
    settings: Settings,
    *,
    heldout: str | None = None,
    overwrite: bool = False,
    report: Report = silent,
) -> Outcome:
    """The data set of `source` in the folder `out`, made now or found there finished.

    `heldout` is a source of its own for the held-out side; without it the split is by content.
    """
    if heldout is None and is_sample(source):
        heldout = str(SAMPLE_HELDOUT_FILE)
    readings = [Reading(source, settings, report)]
    if heldout is not None:
        other = dataclasses.replace(settings, field=settings.heldout_field or settings.field)
        readings.append(Reading(heldout, other, report))
    _refuse_own_output(source, out, settings.kind)
    if settings.tokenizer is not None:
        check_tokenizer_file(settings.tokenizer)
    return found_or_made(
        out,
        work=lambda: _work_hash(readings),
        write=lambda folder: _write(folder, readings),
        overwrite=overwrite,
    )


def found_or_made(
    out: Path, *, work: Callable[[], str], write: Callable[[Path], None], overwrite: bool
) -> Outcome:
    """The data set in `out`: found there, if its work has the hash `work`, or written now."""
    if there := _what_is_there(out, overwrite=overwrite):
        return _same_work(there, work())
    try:
        with appearing_folder(out, overwrite=overwrite) as folder:
            write(folder)
    except AppearedError:  # another process was faster; was it the same work?
        return _same_work(open_prepared(out), work())
    return Outcome(open_prepared(out), already_there=False)


def _same_work(there: PreparedData, work: str) -> Outcome:
    """The data set that is there, if it is what would be made."""
    if there.description["work_hash"] == work:
        return Outcome(there, already_there=True)
    raise OtherDataError(
        f"{str(there.folder)!r} holds a data set made from other data or settings; "
        "use --overwrite to replace it, or choose another --out"
    )


def _refuse_own_output(source: str, out: Path, kind: str) -> None:
    """Refuse to write where a later run, reading every file of the source, would find it."""
    folder = Path(source).resolve()
    if kind in ("bytes", "tokens") and folder.is_dir() and out.resolve().is_relative_to(folder):
        raise ValueError(
            f"--out {str(out)!r} lies inside {source!r}, all of whose files are read; "
            "choose a folder outside"
        )


def _what_is_there(out: Path, *, overwrite: bool) -> PreparedData | None:
    """The data set in `out`, or None where one may be put; a folder of anything else is refused."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    if overwrite and out.is_dir() and {path.name for path in out.iterdir()} <= FILES:
        return None  # a data set, perhaps a damaged one, and nothing else
    try:
        if not overwrite:
            return open_prepared(out)
    except (ValueError, NotADirectoryError) as problem:
        raise OtherDataError(
            f"{str(out)!r} exists and is not a complete data set; choose another --out, or "
            "--overwrite if it is a damaged one"
        ) from problem
    raise ValueError(f"{str(out)!r} holds other things than a data set; choose another --out")


def _work_hash(readings: list[Reading]) -> str:
    files = [hash_inputs(reading.source, reading.settings).values() for reading in readings]
    return work_hash(readings[0].settings, files)


def _write(folder: Path, readings: list[Reading]) -> None:
    settled_readings = _settled_readings(readings)
    examined = examine(settled_readings)
    write_data_set(folder, examined, described_origin(readings[0].settings, settled_readings))


def _settled_readings(readings: list[Reading]) -> list[Reading]:
    """The same readings, told whether images are grey or coloured: the first image decides."""
    main = readings[0]
    if main.settings.kind == "images":
        next(main.blocks("reading"), None)
    channels = main.facts.get("channels", GREY)
    return [
        Reading(reading.source, settled(reading.settings, channels), reading.report)
        for reading in readings
    ]
