"""The data of a sweep: those given, the shipped sample, and either in other vocabularies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.retokenise import (
    AsGiven,
    Tokenisation,
    expected_vocab,
    given_tokenisation,
    larger_vocabularies,
    possible_vocabularies,
    retokenised,
)
from archfit.data.sources import SAMPLE, DataSettings
from archfit.sweep.named import NAMED, REPAIRED
from archfit.sweep.sweep import Corpus, Scale, Sweep

if TYPE_CHECKING:
    from collections.abc import Sequence


def given_data(folders: Sequence[Path], out: Path, scale: str) -> list[PreparedData]:
    """What the user gave; without it the sample, which is enough for smoke only."""
    if folders:
        return [open_prepared(folder) for folder in folders]
    if scale != "smoke":
        raise ValueError(
            f"--scale {scale} needs more text than the sample has; prepare data by "
            "archfit data prepare SOURCE --kind … --out DIR, and give --data DIR"
        )
    return [prepare_data(SAMPLE, out / "data" / "bytes", DataSettings(kind="text")).data]


def data_for_named(
    name: str, scale: Scale, given: list[PreparedData], out: Path
) -> tuple[Corpus, ...]:
    """The data that a named sweep asks about: those given, in the vocabularies that it wants."""
    return collected(
        [
            (label, retokenised(data, out / "data" / label, wanted))
            for label, data, wanted in _wanted(name, scale, given)
        ]
    )


def counted_for_named(name: str, scale: Scale, given: list[PreparedData]) -> tuple[Corpus, ...]:
    """The same before any of it is made: what a sweep on these data would be trained on."""
    corpora = [
        Corpus(
            label=label,
            kind=str(data.description["kind"]),
            vocab=expected_vocab(data, wanted),
            hash=_hash_before(data, wanted),
            folder="",
        )
        for label, data, wanted in _wanted(name, scale, given)
    ]
    return tuple({corpus.hash: corpus for corpus in corpora}.values())


def _wanted(
    name: str, scale: Scale, given: list[PreparedData]
) -> list[tuple[str, PreparedData, Tokenisation]]:
    """Labels, and what is to be made of which data."""
    wanted = NAMED[name].vocabularies[scale]
    takes_several = wanted != "as given" and len(wanted) > 1
    if len(given) > 1 and not takes_several:
        raise ValueError(
            f"--data names {len(given)} data sets, and {name} asks about one; give one of them"
        )
    if len(given) > 1 or not takes_several:
        return [(_own_label(data), data, AsGiven()) for data in given]
    (data,) = given
    if wanted == "as given and larger":
        _, width = REPAIRED[scale]
        larger = larger_vocabularies(data, at_least=width)
        return [("as given", data, AsGiven()), *((one.label, data, one) for one in larger)]
    assert isinstance(wanted, tuple)
    return [(one.label, data, one) for one in possible_vocabularies(data, wanted)]


def _hash_before(data: PreparedData, wanted: Tokenisation) -> str:
    """The hash where there is one, else a stand-in: data not made yet have none."""
    if isinstance(wanted, AsGiven) or wanted == given_tokenisation(data):
        return data.data_hash
    return f"{expected_vocab(data, wanted):064x}"


def labelled_data(given: Sequence[PreparedData]) -> tuple[Corpus, ...]:
    """Data sets of an own sweep, each by its own label."""
    return collected([(_own_label(data), data) for data in given])


def moved(sweep: Sweep, folders: Sequence[Path]) -> Sweep:
    """The sweep with those of its data that lie in `folders` found there."""
    given = {data.data_hash: data.folder for data in map(open_prepared, folders)}
    if foreign := given.keys() - {corpus.hash for corpus in sweep.data}:
        folder = given[min(foreign)]
        raise ValueError(
            f"--data {folder} is none of the data of {sweep.name}, whose cells are made for "
            f"{', '.join(corpus.label for corpus in sweep.data)}; give those"
        )
    data = [
        replace(corpus, folder=str(given[corpus.hash].resolve()))
        if corpus.hash in given
        else corpus
        for corpus in sweep.data
    ]
    return replace(sweep, data=tuple(data))


def data_there(sweep: Sweep) -> tuple[Path, ...]:
    """The folders that still hold data of the sweep; none at all is refused.

    Cells on data that are gone fail one by one, and the others are trained.
    """
    found, problems = [], []
    for corpus in sweep.data:
        try:
            if open_prepared(Path(corpus.folder)).data_hash == corpus.hash:
                found.append(Path(corpus.folder))
            else:
                problems.append(f"{corpus.folder!r} holds other data than the cells are made for")
        except (OSError, ValueError) as problem:
            problems.append(str(problem))
    if not found:
        raise ValueError(f"{problems[0]}; or, where they lie elsewhere, give --data DIR")
    return tuple(found)


def collected(labelled: Sequence[tuple[str, PreparedData]]) -> tuple[Corpus, ...]:
    """Several data sets; one that comes twice counts once."""
    corpora: dict[str, Corpus] = {}
    for label, data in labelled:
        corpus = Corpus(
            label=label,
            kind=str(data.description["kind"]),
            vocab=data.vocab,
            hash=data.data_hash,
            folder=str(data.folder.resolve()),
        )
        if label in {one.label for hash, one in corpora.items() if hash != data.data_hash}:
            raise ValueError(
                f"two of the data sets are called {label}, so that nobody could tell them apart; "
                "rename one of the folders"
            )
        corpora.setdefault(data.data_hash, corpus)
    return tuple(corpora.values())


def _own_label(data: PreparedData) -> str:
    return data.folder.resolve().name
