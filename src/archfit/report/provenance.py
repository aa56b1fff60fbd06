"""Where the records of a report come from: sweeps, versions, machines, recipes, data."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from archfit.report.sweep_tables import Table
from archfit.spec import RunRecord

LONGEST_LABEL, LONGEST_QUESTION = 40, 300
SECONDS_AN_HOUR = 3600


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """A folder of runs, and what its sweep says of itself; nothing where it has none."""

    folder: str
    name: str
    scale: str
    question: str
    labels: Mapping[str, str]  # of data sets, by hash
    planned: int  # runs

    def __post_init__(self) -> None:
        """What comes from files is cut to a length that a page can hold."""
        labels = {name: shown(label, LONGEST_LABEL) for name, label in self.labels.items()}
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "question", shown(self.question, LONGEST_QUESTION))
        object.__setattr__(self, "name", shown(self.name, LONGEST_LABEL))


def shown(text: str, longest: int) -> str:
    """The text without characters that no page or drawing can hold."""
    kept = "".join(letter if letter.isprintable() else "�" for letter in text[: longest + 1])
    return kept if len(kept) <= longest else f"{kept[: longest - 1]}…"


def commands(origins: Sequence[Origin], file: str) -> list[str]:
    """What to type to train the rest or again, and to make the page."""
    folders = [shlex.quote(origin.folder) for origin in origins]
    sweeps = [
        f"archfit sweep {shlex.quote(f'{origin.folder}/sweep.json')} --out {folder}"
        for origin, folder in zip(origins, folders, strict=True)
        if origin.planned
    ]
    return [*sweeps, f"archfit report {' '.join(folders)} --out {shlex.quote(file)}"]


def provenance(records: Sequence[RunRecord], origins: Sequence[Origin]) -> tuple[Table, ...]:
    """Tables of sweeps, data, recipes and machines; records carry no dates."""
    labels = {name: label for origin in origins for name, label in origin.labels.items()}
    return (
        _sweeps(origins),
        _counted(
            "Data",
            ("data set", "vocabulary", "SHA-256", "runs"),
            (
                (
                    labels.get(record.spec.data_hash, ""),
                    f"{record.spec.architecture.input.vocab:,}",
                    record.spec.data_hash,
                )
                for record in records
            ),
        ),
        _counted(
            "Recipes",
            ("steps", "sequences", "context", "learning-rate rule", "precision", "runs"),
            (_recipe(record) for record in records),
        ),
        _counted(
            "Machines",
            ("archfit", "device", "Python", "torch", "runs"),
            (_machine(record) for record in records),
        ),
    )


def training_hours(records: Iterable[RunRecord]) -> float:
    """Hours of training, all runs together."""
    return sum(record.timing.training_seconds for record in records) / SECONDS_AN_HOUR


def _sweeps(origins: Sequence[Origin]) -> Table:
    return Table(
        title="Folders",
        columns=("folder", "sweep", "scale", "runs asked for"),
        rows=tuple(
            (
                shown(origin.folder, LONGEST_QUESTION),
                origin.name,
                origin.scale,
                str(origin.planned or ""),
            )
            for origin in origins
        ),
    )


def _recipe(record: RunRecord) -> tuple[str, ...]:
    recipe = record.spec.recipe
    return (
        f"{recipe.steps:,}",
        str(recipe.batch_sequences),
        str(record.spec.architecture.context),
        recipe.learning_rate_rule,
        recipe.precision,
    )


def _machine(record: RunRecord) -> tuple[str, ...]:
    machine = record.machine
    device = f"{machine.devices} x {machine.device}" if machine.devices > 1 else machine.device
    words = machine.archfit, device, machine.python, machine.torch
    return tuple(shown(word, 2 * LONGEST_LABEL) for word in words)


def _counted(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    counts = Counter(rows)
    found = tuple((*row, str(count)) for row, count in sorted(counts.items()))
    return Table(title=title, columns=columns, rows=found)
