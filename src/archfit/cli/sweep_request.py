"""Which sweep is asked for, on which data: a named one, a sweep file, or a folder to go on with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from archfit.cli.options import MOST_SEEDS
from archfit.data import retokenise
from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.retokenise import AsGiven, Tokenisation
from archfit.data.sources import SAMPLE, DataSettings
from archfit.fit.atlas import check_kind_name, read_atlas
from archfit.spec.errors import check_choice
from archfit.spec.run import LearningRateRule
from archfit.sweep.folder import read_sweep
from archfit.sweep.local import gpus
from archfit.sweep.named import ATLAS, NAMED, counted_corpora, named_sweep, sweep_numbers
from archfit.sweep.sweep import (
    SCALES,
    Corpus,
    Scale,
    Sweep,
    at_neighbouring_rates,
    used_corpora,
)
from archfit.sweep.sweep_file import read_sweep_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepRequest:
    """The options that say what is trained."""

    which: str
    scale: Scale
    data: tuple[Path, ...]
    seeds: int | None
    precision: str
    learning_rate_rule: str
    tune: bool
    kind: str | None

    def __post_init__(self) -> None:
        check_choice(SCALES, scale=self.scale)
        check_choice(("auto", "float32", "bfloat16"), precision=self.precision)
        rules = ("auto", *get_args(LearningRateRule))
        check_choice(rules, learning_rate_rule=self.learning_rate_rule)
        if self.seeds is not None and not 1 <= self.seeds <= MOST_SEEDS:
            raise ValueError(f"--seeds {self.seeds} is not in 1..{MOST_SEEDS}; each is a run")
        if self.which not in NAMED and not (self.is_sweep_file or self.is_stored):
            raise ValueError(
                f"sweep {self.which!r} is unknown; use {', '.join(NAMED)}, or a .toml file"
            )
        self._check_is_not_said_by_the_file()
        self._check_kind()

    def with_data(self, out: Path) -> Sweep:
        """The sweep on its data, which are prepared where they are missing."""
        if self.is_stored:
            return moved(read_sweep(Path(self.which)), self.data)
        if self.is_sweep_file:
            self.counted()  # a file that is wrong is refused before anything is prepared
        given = given_data(self.data, out, self.scale)
        if self.is_sweep_file:
            return self._tuned(self._from_file(labelled_data(given)))
        corpora = data_for_named(self.which, self.scale, given, out)
        made = [open_prepared(Path(corpus.folder)) for corpus in corpora]
        return self._tuned(self._not_read_too_often(self._named(corpora), made))

    def counted(self) -> Sweep:
        """The sweep on the data given, or on the vocabularies it asks for."""
        if self.is_stored:
            return read_sweep(Path(self.which))
        if self.is_sweep_file:
            return self._tuned(self._from_file(self._counted_corpora("levine-depth")))
        given = [open_prepared(folder) for folder in self.data]
        sweep = self._named(self._counted_corpora(self.which))
        return self._tuned(self._not_read_too_often(sweep, given))

    def _not_read_too_often(self, sweep: Sweep, data: Sequence[PreparedData]) -> Sweep:
        """The sweep without runs that would read their data more often than it allows."""
        epochs = sweep_numbers(self.which, self.scale).get("most_epochs")
        if epochs is None:
            return sweep
        most = {each.data_hash: epochs * len(each.tokens("train")) for each in data}
        kept = [
            spec
            for spec in sweep.specs
            if spec.training_tokens <= most.get(spec.data_hash, math.inf)
        ]
        if not kept:
            least = min(spec.training_tokens for spec in sweep.specs)
            raise ValueError(
                f"{self.which} trains on {least:,} tokens or more and reads data {epochs} times "
                "at most, and these have too few; give more data"
            )
        return replace(sweep, specs=tuple(kept), data=used_corpora(sweep.data, kept))

    def _tuned(self, sweep: Sweep) -> Sweep:
        return at_neighbouring_rates(sweep) if self.tune else sweep

    def _counted_corpora(self, name: str) -> tuple[Corpus, ...]:
        if not self.data:
            return counted_corpora(name, self.scale)
        given = [open_prepared(folder) for folder in self.data]
        if self.is_sweep_file:
            return labelled_data(given)
        return counted_for_named(name, self.scale, given)

    def _check_is_not_said_by_the_file(self) -> None:
        """Refuse what would change nothing: a file says all of it."""
        given = {
            "--scale": self.scale != "smoke",
            "--seeds": self.seeds is not None,
            "--learning-rate-rule": self.learning_rate_rule != "auto",
            "--precision": self.precision != "auto" and self.is_stored,
            "--tune": self.tune and self.is_stored,
            "--kind": self.kind is not None,
        }
        said = [option for option, is_given in given.items() if is_given]
        if said and (self.is_sweep_file or self.is_stored):
            raise ValueError(
                f"{said[0]} is for named sweeps, and {self.which} says itself what is trained; "
                "change it there"
            )

    def _check_kind(self) -> None:
        """Refuse data under the name of a kind that was trained on others."""
        if self.kind is None:
            return
        if self.which not in ATLAS:
            raise ValueError(
                f"--kind {self.kind} is for {', '.join(ATLAS)}, and {self.which} belongs to no "
                "atlas; leave it out"
            )
        check_kind_name(self.kind)
        atlas = read_atlas()
        known = {run.spec.data_hash for run in atlas.runs if run.kind == self.kind}
        source = next((kind.source for kind in atlas.kinds if kind.name == self.kind), None)
        if source is None:
            return
        if not self.data:
            raise ValueError(
                f"the data of {self.kind} do not ship ({source}); prepare them as docs/atlas.md "
                "says, and give --data DIR"
            )
        if foreign := [
            folder for folder in self.data if open_prepared(folder).data_hash not in known
        ]:
            raise ValueError(
                f"--data {foreign[0]} holds other data than {self.kind} of the atlas; give them a "
                "name of their own by --kind NAME"
            )

    @property
    def is_stored(self) -> bool:
        """Whether a sweep.json says what to train."""
        return self.which.endswith(".json")

    @property
    def is_sweep_file(self) -> bool:
        """Whether a file of the user says what to train."""
        return self.which.endswith(".toml")

    def _named(self, corpora: tuple[Corpus, ...]) -> Sweep:
        changes = {"precision": self.precision, "learning_rate_rule": self.learning_rate_rule}
        sweep = named_sweep(
            self.which,
            self.scale,
            corpora,
            seeds=range(self.seeds or sweep_numbers(self.which, self.scale)["seeds"]),
            changes={name: word for name, word in changes.items() if word != "auto"},
        )
        return replace(sweep, kind=self.kind or "")

    def _from_file(self, corpora: tuple[Corpus, ...]) -> Sweep:
        usual = "bfloat16" if gpus() else "float32"
        precision = usual if self.precision == "auto" else self.precision
        return read_sweep_file(Path(self.which), corpora, precision)


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
    made = (
        (label, retokenise.retokenised(data, out / "data" / label, wanted))
        for label, data, wanted in _wanted(name, scale, given)
    )
    return collected(made)


def counted_for_named(name: str, scale: Scale, given: list[PreparedData]) -> tuple[Corpus, ...]:
    """The same before any of it is made: what a sweep on these data would be trained on."""
    corpora = {}
    for label, data, wanted in _wanted(name, scale, given):
        kind, vocab = str(data.description["kind"]), retokenise.expected_vocab(data, wanted)
        is_made = isinstance(wanted, AsGiven) or wanted == retokenise.given_tokenisation(data)
        found = data.data_hash if is_made else f"{vocab:064x}"  # a stand-in: there is none yet
        corpora[found] = Corpus(label=label, kind=kind, vocab=vocab, hash=found, folder="")
    return tuple(corpora.values())


def _wanted(
    name: str, scale: Scale, given: list[PreparedData]
) -> list[tuple[str, PreparedData, Tokenisation]]:
    """Labels, and what is to be made of which data."""
    numbers = sweep_numbers(name, scale)
    wanted = numbers["vocabularies"]
    takes_several = wanted != "as given" and len(wanted) > 1
    if len(given) > 1 and not takes_several:
        raise ValueError(
            f"--data names {len(given)} data sets, and {name} asks about one; give one of them"
        )
    if len(given) > 1 or not takes_several:
        return [(data.folder.resolve().name, data, AsGiven()) for data in given]
    (data,) = given
    if wanted == "as given and grouped":  # text as BPE, sequences as k-mers, others as they are
        if data.kind != "text" and data.units != "letters":
            return [("as given", data, AsGiven())]
        wanted = numbers["groups"]
    if wanted == "as given and larger":
        larger = retokenise.larger_vocabularies(data, at_least=numbers["width"])
        return [("as given", data, AsGiven()), *((tokens.label, data, tokens) for tokens in larger)]
    return [
        (tokens.label, data, tokens) for tokens in retokenise.possible_vocabularies(data, wanted)
    ]


def labelled_data(given: Sequence[PreparedData]) -> tuple[Corpus, ...]:
    """Data sets of an own sweep, each by its own label."""
    return collected([(data.folder.resolve().name, data) for data in given])


def moved(sweep: Sweep, folders: Sequence[Path]) -> Sweep:
    """The sweep with those of its data that lie in `folders` found there."""
    given = {data.data_hash: data.folder for data in map(open_prepared, folders)}
    if foreign := given.keys() - {corpus.hash for corpus in sweep.data}:
        raise ValueError(
            f"--data {given[min(foreign)]} is none of the data of {sweep.name}, whose cells are "
            f"made for {', '.join(corpus.label for corpus in sweep.data)}; give those"
        )
    places = {name: str(folder.resolve()) for name, folder in given.items()}
    data = (replace(kept, folder=places.get(kept.hash, kept.folder)) for kept in sweep.data)
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


def collected(labelled: Iterable[tuple[str, PreparedData]]) -> tuple[Corpus, ...]:
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
        if label in {corpus.label for hash, corpus in corpora.items() if hash != data.data_hash}:
            raise ValueError(
                f"two of the data sets are called {label}, so that nobody could tell them apart; "
                "rename one of the folders"
            )
        corpora.setdefault(data.data_hash, corpus)
    return tuple(corpora.values())
