"""Which sweep the user wants: a named one, a file of his own, or a folder to go on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archfit.spec.checks import check_choice
from archfit.sweep.devices import gpus
from archfit.sweep.folder import read_sweep, stored
from archfit.sweep.named import NAMED, named_sweep, published_corpora
from archfit.sweep.sweep import SCALES, Corpus, Scale, Sweep

if TYPE_CHECKING:
    from archfit.sweep.folder import StoredSweep

MOST_SEEDS = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the user wants trained."""

    which: str
    scale: str
    data: tuple[Path, ...]
    seeds: int | None
    precision: str
    learning_rate_rule: str

    def __post_init__(self) -> None:
        check_choice(SCALES, scale=self.scale)
        check_choice(("auto", "float32", "bfloat16"), precision=self.precision)
        check_choice(("auto", "standard", "completep"), learning_rate_rule=self.learning_rate_rule)
        if self.seeds is not None and not 1 <= self.seeds <= MOST_SEEDS:
            raise ValueError(f"--seeds {self.seeds} is not in 1..{MOST_SEEDS}; each is a run")
        if self.which not in NAMED and not self.which.endswith((".toml", ".json")):
            raise ValueError(
                f"sweep {self.which!r} is unknown; use {', '.join(NAMED)}, or a .toml file"
            )

    def with_data(self, out: Path) -> StoredSweep:
        """The sweep on its data, which are prepared where they are missing."""
        from archfit.cli.sweep_data import data_for_named, given_data, labelled_data

        if self.which.endswith(".json"):
            return read_sweep(Path(self.which))
        given = given_data(self.data, out, "smoke" if self.is_own else self.scale)
        if self.is_own:
            found = labelled_data(given)
            made = self._own(found.corpora)
        else:
            found = data_for_named(self.which, self._scale(), given, out)
            made = self._named(found.corpora)
        scale = "own" if self.is_own else self.scale
        return stored(made, scale=scale, data_folders=found.folders)

    def without_data(self, out: Path | None) -> Sweep:
        """The sweep to be counted: on the data given, or on the vocabularies it asks for."""
        from archfit.cli.sweep_data import given_data, labelled_data

        if self.which.endswith(".json"):
            return read_sweep(Path(self.which)).sweep
        if self.data:
            corpora = labelled_data(given_data(self.data, out or Path(), self.scale)).corpora
        else:
            name = "levine-depth" if self.is_own else self.which
            corpora = published_corpora(name, self._scale())
        return self._own(corpora) if self.is_own else self._named(corpora)

    @property
    def is_own(self) -> bool:
        """Whether a file of the user says what to train."""
        return self.which.endswith(".toml")

    def _scale(self) -> Scale:
        return next(scale for scale in SCALES if scale == self.scale)

    def _named(self, corpora: tuple[Corpus, ...]) -> Sweep:
        named, scale = NAMED[self.which], self._scale()
        changes = {"precision": self.precision, "learning_rate_rule": self.learning_rate_rule}
        return named_sweep(
            self.which,
            scale,
            corpora,
            seeds=range(self.seeds or named.seeds[scale]),
            changes={name: word for name, word in changes.items() if word != "auto"},
        )

    def _own(self, corpora: tuple[Corpus, ...]) -> Sweep:
        from archfit.sweep.own import own_sweep

        has_gpu = bool(gpus())
        precision = self.precision
        if precision == "auto":
            precision = "bfloat16" if has_gpu else "float32"
        return own_sweep(Path(self.which), corpora, precision)
