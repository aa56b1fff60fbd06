"""Which sweep the user wants: a named one, a file of his own, or a folder to go on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from archfit.spec.checks import check_choice
from archfit.sweep.devices import gpus
from archfit.sweep.folder import read_sweep
from archfit.sweep.named import NAMED, counted_corpora, named_sweep
from archfit.sweep.sweep import SCALES, Corpus, Scale, Sweep

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
        if self.which not in NAMED and not (self.is_own or self.is_stored):
            raise ValueError(
                f"sweep {self.which!r} is unknown; use {', '.join(NAMED)}, or a .toml file"
            )
        self._check_is_not_said_by_the_file()

    def with_data(self, out: Path) -> Sweep:
        """The sweep on its data, which are prepared where they are missing."""
        from archfit.cli.sweep_data import data_for_named, given_data, labelled_data, moved

        if self.is_stored:
            return moved(read_sweep(Path(self.which)), self.data)
        if self.is_own:
            self.counted()  # a file that is wrong is refused before anything is prepared
        given = given_data(self.data, out, self.scale)
        if self.is_own:
            return self._own(labelled_data(given))
        return self._named(data_for_named(self.which, self._scale(), given, out))

    def counted(self) -> Sweep:
        """The sweep on the data given, or on the vocabularies it asks for."""
        if self.is_stored:
            return read_sweep(Path(self.which))
        if self.is_own:
            return self._own(self._counted_corpora("levine-depth"))
        return self._named(self._counted_corpora(self.which))

    def _counted_corpora(self, name: str) -> tuple[Corpus, ...]:
        from archfit.cli.sweep_data import counted_for_named, labelled_data
        from archfit.data.prepared import open_prepared

        if not self.data:
            return counted_corpora(name, self._scale())
        given = [open_prepared(folder) for folder in self.data]
        if self.is_own:
            return labelled_data(given)
        return counted_for_named(name, self._scale(), given)

    def _check_is_not_said_by_the_file(self) -> None:
        """Refuse what would change nothing: a file says all of it."""
        given = {
            "--scale": self.scale != "smoke",
            "--seeds": self.seeds is not None,
            "--learning-rate-rule": self.learning_rate_rule != "auto",
            "--precision": self.precision != "auto" and self.is_stored,
        }
        said = [option for option, is_given in given.items() if is_given]
        if said and (self.is_own or self.is_stored):
            raise ValueError(
                f"{said[0]} is for named sweeps, and {self.which} says itself what is trained; "
                "change it there"
            )

    @property
    def is_stored(self) -> bool:
        """Whether a sweep.json says what to train."""
        return self.which.endswith(".json")

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
        from archfit.sweep.sweep_file import read_sweep_file

        has_gpu = bool(gpus())
        precision = self.precision
        if precision == "auto":
            precision = "bfloat16" if has_gpu else "float32"
        return read_sweep_file(Path(self.which), corpora, precision)
