"""The data of a sweep: those given, the shipped sample, and either in other vocabularies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.retokenise import retokenised
from archfit.data.settings import Settings
from archfit.data.sources import SAMPLE
from archfit.data.tokenisations import larger_vocabularies, possible_vocabularies
from archfit.sweep.named import NAMED
from archfit.sweep.other_sweeps import REPAIRED
from archfit.sweep.sweep import Corpus, Scale

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepData:
    """Data sets, and where they lie."""

    corpora: tuple[Corpus, ...]
    folders: dict[str, Path]  # by data hash


def given_data(folders: Sequence[Path], out: Path, scale: str) -> list[PreparedData]:
    """What the user gave; without it the sample, which is enough for smoke only."""
    if folders:
        return [open_prepared(folder) for folder in folders]
    if scale != "smoke":
        raise ValueError(
            f"--scale {scale} needs more text than the sample has; prepare data by "
            "archfit data prepare SOURCE --kind … --out DIR, and give --data DIR"
        )
    return [prepare_data(SAMPLE, out / "data" / "bytes", Settings(kind="text")).data]


def data_for_named(name: str, scale: Scale, given: list[PreparedData], out: Path) -> SweepData:
    """The data that a named sweep asks about: those given, in the vocabularies that it wants."""
    wanted = NAMED[name].vocabularies[scale]
    takes_several = wanted != "as given" and len(wanted) > 1
    if len(given) > 1:
        if not takes_several:
            raise ValueError(
                f"--data names {len(given)} data sets, and {name} asks about one; give one of them"
            )
        return collected([(_own_label(data), data) for data in given])
    (data,) = given
    if wanted == "as given" or not takes_several:
        return collected([(_own_label(data), data)])
    if wanted == "as given and larger":
        _, width = REPAIRED[scale]
        others = larger_vocabularies(data, at_least=width)
        labelled = [("as given", data)]
    else:
        assert isinstance(wanted, tuple)
        others, labelled = possible_vocabularies(data, wanted), []
    labelled += [(one.label, retokenised(data, out / "data" / one.label, one)) for one in others]
    return collected(labelled)


def labelled_data(given: Sequence[PreparedData]) -> SweepData:
    """Data sets of an own sweep, each by its own label."""
    return collected([(_own_label(data), data) for data in given])


def collected(labelled: Sequence[tuple[str, PreparedData]]) -> SweepData:
    """Several data sets as one value; one that comes twice counts once."""
    corpora: dict[str, Corpus] = {}
    folders: dict[str, Path] = {}
    for label, data in labelled:
        kind = str(data.description["kind"])
        corpus = Corpus(label=label, kind=kind, vocab=data.vocab, data_hash=data.data_hash)
        corpora.setdefault(data.data_hash, corpus)
        folders.setdefault(data.data_hash, data.folder)
    return SweepData(corpora=tuple(corpora.values()), folders=folders)


def _own_label(data: PreparedData) -> str:
    return data.folder.resolve().name
