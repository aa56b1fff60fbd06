"""What runs say, as a document: conclusions, tables with intervals of 90 %, and where from."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import key_of
from archfit.fit.conclusions import short_size, subjects
from archfit.fit.fit_json import fit_json
from archfit.fit.fitted import Fits
from archfit.report.document import NOT_KNOWN, Command, Document, Figure, Section, Table
from archfit.spec import RunRecord
from archfit.spec.estimate import Estimate

NO_QUESTION = "What do these runs say?"
LONGEST_LABEL, LONGEST_QUESTION = 40, 300
SECONDS_AN_HOUR = 3600


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """A folder of runs, and what its sweep says of itself; nothing where it has none."""

    folder: str
    name: str = ""
    scale: str = ""
    question: str = ""
    labels: Mapping[str, str]  # of data sets, by hash
    planned: int = 0  # runs
    kind: str = ""  # of an atlas

    def __post_init__(self) -> None:
        """What comes from files is cut to a length that a page can hold."""
        labels = {name: printable(label, LONGEST_LABEL) for name, label in self.labels.items()}
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "question", printable(self.question, LONGEST_QUESTION))
        object.__setattr__(self, "name", printable(self.name, LONGEST_LABEL))
        object.__setattr__(self, "kind", printable(self.kind, LONGEST_LABEL))


def printable(text: str, longest: int) -> str:
    """The text without characters that no page or drawing can hold, cut to a length."""
    kept = "".join(letter if letter.isprintable() else "�" for letter in text[: longest + 1])
    return kept if len(kept) <= longest else f"{kept[: longest - 1]}…"


def fit_document(fits: Fits) -> Document:
    """What `archfit fit` says: conclusions by subject, and every table of the fit."""
    return Document(title="What the runs say", sections=_sections(fits, {}), data=fit_json(fits))


def sweep_report(
    fits: Fits, records: Sequence[RunRecord], origins: Sequence[Origin], file: str, version: str
) -> Document:
    """The report of sweeps: what the fit says, its figures, and how to make it again as `file`."""
    from archfit.report.charts.sweep import sweep_figures

    labels = {name: label for origin in origins for name, label in origin.labels.items()}
    questions = list(dict.fromkeys(origin.question for origin in origins if origin.question))
    about = f"{fits.runs} finished runs. All intervals are of 90 %."
    stem = file.removesuffix(".html")
    hours = sum(record.timing.training_seconds for record in records) / SECONDS_AN_HOUR
    made = (
        f"The first goes on with the sweep where its data lie as they did; the last made this page "
        f"({version}) and, beside it, each chart as {stem}-NAME.svg and .png. Training took "
        f"{hours:.2g} hours in all. The same records give the same page."
    )
    return Document(
        title=questions[0] if questions else NO_QUESTION,
        sections=(
            Section(sentences=(*questions[1:], about)),
            *_sections(fits, labels, sweep_figures(fits, labels)),
            Section(
                title="How to reproduce it",
                sentences=(*(Command(line) for line in commands(origins, file)), made),
                tables=provenance(records, origins),
            ),
        ),
        data=fit_json(fits),
    )


def _sections(
    fits: Fits, labels: Mapping[str, str], figures: tuple[Figure, ...] = ()
) -> tuple[Section, ...]:
    """Conclusions by subject, crossings and redundancies, then what only a page has room for."""
    return (
        *(Section(title=name, sentences=words) for name, words in subjects(fits).items()),
        Section(title="Figures", figures=figures),
        Section(title="Tables", tables=_main_tables(fits, labels)),
        Section(title="More tables", tables=_other_tables(fits, labels), is_detail=True),
    )


def _main_tables(fits: Fits, labels: Mapping[str, str]) -> tuple[Table, ...]:
    return (
        Table.of(
            "Depths at equal size",
            fits.crossings,
            {
                "depths": lambda item: f"{item.shallow.depth} and {item.deep.depth}",
                "tables": lambda item: item.shallow.words or "full",
                "data": lambda item: _data(item.shallow.data_hash, labels),
                "verdict": lambda item: item.verdict,
                "block parameters": lambda item: _size(item.size.value),
                "90 %": lambda item: (
                    f"{_size(item.size.low)} to {_size(item.size.high)}" if item.is_crossing else ""
                ),
                "width": lambda item: "" if item.width.value is None else f"{item.width.value:.0f}",
                "seeds": lambda item: str(item.seeds),
                "seeds needed": lambda item: (
                    "" if item.seeds_needed is None else str(item.seeds_needed)
                ),
            },
            narrow=("depths", "verdict", "block parameters", "90 %", "seeds"),
        ),
        Table.of(
            "Redundancy",
            fits.redundancy,
            {
                "bottleneck": lambda item: " and ".join(item.bottleneck),
                "ratio": lambda item: f"{item.ratio:.3g}",
                "depth": lambda item: str(item.family.depth),
                "width": lambda item: str(item.cell.architecture.width),
                "redundant": _saved,
                "90 %": lambda item: _ends(item.estimate, ".1%"),
                "seeds": lambda item: str(item.seeds),
            },
        ),
    )


def _other_tables(fits: Fits, labels: Mapping[str, str]) -> tuple[Table, ...]:
    return (
        Table.of(
            "Cells that differ in their tables",
            fits.contrasts,
            {
                "first": lambda item: item.first.words or "full tables",
                "less second": lambda item: item.second.words or "full tables",
                "depth": lambda item: str(item.first.depth),
                "width": lambda item: str(item.width),
                "nats per token": lambda item: f"{item.difference.estimate.value:+.4f}",
                "90 %": lambda item: ends_words(item.difference.estimate),
                "seeds": lambda item: str(item.difference.seeds),
            },
        ),
        Table.of(
            "Best depth at equal size",
            fits.best_depth,
            {
                "data": lambda item: _data(item.family.data_hash, labels),
                "tables": lambda item: item.family.words or "full",
                "block parameters": lambda item: _size(item.size),
                "best": lambda item: str(item.family.depth),
                "not told from": lambda item: ", ".join(map(str, item.ties)),
                "of": lambda item: ", ".join(map(str, item.depths)),
                "seeds": lambda item: str(item.seeds),
            },
        ),
        _comparisons(fits, labels),
        _laws(fits),
        _cells(fits, labels),
    )


def _comparisons(fits: Fits, labels: Mapping[str, str]) -> Table:
    return Table.of(
        "Networks of equal size that read different tokens",
        [result for ranking in fits.rankings for result in ranking.results],
        {
            "parameters": lambda result: f"{result.first.architecture.params:,}",
            "data": lambda result: _data(result.first.data_hash, labels),
            "vocabulary": lambda result: f"{result.first.architecture.input.vocab:,}",
            "patch": lambda result: str(result.first.architecture.input.tokens_per_position),
            "depth": lambda result: str(result.first.architecture.depth),
            "width": lambda result: str(result.first.architecture.width),
            "bits per byte": lambda result: f"{result.first.bits_per_byte:.4f}",
            "more than the best": lambda result: f"{result.estimate.value:+.4f}",
            "90 %": lambda result: ends_words(result.estimate) if result.estimate.value else "",
            "seeds": lambda result: str(result.seeds),
        },
    )


def _laws(fits: Fits) -> Table:
    return Table(
        title="Laws",
        columns=("law", "of", "form", "parameter", "value", "90 %", "points", "seeds"),
        rows=tuple(
            (
                item.kind,
                f"depth {item.family.depth}" if item.kind == "size" else "crossings",
                item.form,
                name,
                f"{estimate.value:.4g}",
                _ends(estimate, ".4g"),
                str(item.points),
                str(item.seeds),
            )
            for item in fits.laws
            for name, estimate in item.parameters.items()
        ),
    )


def _cells(fits: Fits, labels: Mapping[str, str]) -> Table:
    return Table.of(
        "All cells",
        sorted(fits.cells, key=lambda cell: (cell.data_hash, cell.size, repr(cell))),
        {
            "data": lambda cell: _data(cell.data_hash, labels),
            "depth": lambda cell: str(cell.architecture.depth),
            "width": lambda cell: str(cell.architecture.width),
            "tables": lambda cell: key_of(cell).words or "full",
            "block parameters": lambda cell: f"{cell.size:,}",
            "all parameters": lambda cell: f"{cell.architecture.params:,}",
            "nats per token": lambda cell: f"{cell.mean:.4f}",
            "spread": lambda cell: "" if cell.std is None else f"{cell.std:.4f}",
            "bits per byte": lambda cell: f"{cell.bits_per_byte:.4f}",
            "seeds": lambda cell: str(cell.seeds),
        },
    )


def _saved(item: MeasuredRedundancy) -> str:
    share = item.estimate
    if item.outcome == "value":
        return f"{share.value:.1%}"
    if item.outcome == "at least":
        return f"at least {share.low:.1%}"
    return "not known" if share.high is None else f"at most {share.high:.1%}"


def ends_words(estimate: Estimate) -> str:
    """The interval of a difference, both ends of which are known."""
    return f"{estimate.low:+.4f} to {estimate.high:+.4f}"


def _data(data_hash: str, labels: Mapping[str, str]) -> str:
    return labels.get(data_hash, data_hash[:8])


def _size(size: float | None) -> str:
    return NOT_KNOWN if size is None else short_size(size)


def _ends(estimate: Estimate, form: str) -> str:
    """The interval, where an end of it may be open."""
    low, high = (
        NOT_KNOWN if end is None else f"{end:{form}}" for end in (estimate.low, estimate.high)
    )
    return f"{low} to {high}"


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
    folders = Table.of(
        "Folders",
        origins,
        {
            "folder": lambda origin: printable(origin.folder, LONGEST_QUESTION),
            "sweep": lambda origin: origin.name,
            "scale": lambda origin: origin.scale,
            "runs asked for": lambda origin: str(origin.planned or ""),
        },
    )
    return (
        folders,
        _counted(
            "Data",
            ("data set", "vocabulary", "SHA-256", "runs"),
            (
                (
                    labels.get(spec.data_hash, ""),
                    f"{spec.architecture.input.vocab:,}",
                    spec.data_hash,
                )
                for spec in (record.spec for record in records)
            ),
        ),
        _counted(
            "Recipes",
            ("steps", "sequences", "context", "learning-rate rule", "precision", "runs"),
            map(_recipe, records),
        ),
        _counted(
            "Machines", ("archfit", "device", "Python", "torch", "runs"), map(_machine, records)
        ),
    )


def _recipe(record: RunRecord) -> tuple[str, ...]:
    recipe, context = record.spec.recipe, record.spec.architecture.context
    sizes = f"{recipe.steps:,}", str(recipe.batch_sequences), str(context)
    return *sizes, recipe.learning_rate_rule, recipe.precision


def _machine(record: RunRecord) -> tuple[str, ...]:
    machine = record.machine
    device = f"{machine.devices} x {machine.device}" if machine.devices > 1 else machine.device
    words = machine.archfit, device, machine.python, machine.torch
    return tuple(printable(word, 2 * LONGEST_LABEL) for word in words)


def _counted(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    counts = Counter(rows)
    found = tuple((*row, str(count)) for row, count in sorted(counts.items()))
    return Table(title=title, columns=columns, rows=found)
