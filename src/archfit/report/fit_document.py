"""What runs say, as a document: conclusions, tables with intervals of 90 %, and where from.

Columns of the JSON are in json.toml, as fit-…
"""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from archfit.fit.depths import Crossing
from archfit.fit.fitted import Fits
from archfit.fit.laws import Law
from archfit.fit.noise import Noise
from archfit.report.conclusions import conclusions, subjects
from archfit.report.document import Command, Document, Figure, Section, Table, json_of, said
from archfit.spec import RunRecord
from archfit.spec.estimate import CONFIDENCE

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
        longest = {"question": LONGEST_QUESTION, "name": LONGEST_LABEL, "kind": LONGEST_LABEL}
        for name, most in longest.items():
            object.__setattr__(self, name, printable(getattr(self, name), most))


def printable(text: str, longest: int) -> str:
    """The text without characters that no page or drawing can hold, cut to a length."""
    kept = "".join(letter if letter.isprintable() else "�" for letter in text[: longest + 1])
    return kept if len(kept) <= longest else f"{kept[: longest - 1]}…"


def page_document(file: Path, figures: Mapping[str, Sequence[Path]]) -> Document:
    """A page that was written, and its charts with their files."""
    listed = [{"name": n, "files": [str(path) for path in paths]} for n, paths in figures.items()]
    return Document(
        title=str(file),
        headline=said("report.page", file, len(figures)),
        sections=(Section.of(*figures, title="Charts", is_why=True),),
        data={"file": str(file), "figures": listed},
    )


def fit_document(fits: Fits) -> Document:
    """What `archfit fit` says: conclusions by subject, and every table of the fit."""
    first, *others = conclusions(fits)
    why = (replace(part, is_why=True) for part in _sections(fits, {}))
    told, data = (Section.of(*others), *why), fit_json(fits)
    return Document(title="What the runs say", headline=first, sections=told, data=data)


def sweep_report(
    fits: Fits, records: Sequence[RunRecord], origins: Sequence[Origin], file: str, version: str
) -> Document:
    """The report of sweeps: what the fit says, its figures, and how to make it again as `file`."""
    from archfit.report.charts.sweep import sweep_figures

    labels = {name: label for origin in origins for name, label in origin.labels.items()}
    questions = list(dict.fromkeys(origin.question for origin in origins if origin.question))
    hours = sum(record.timing.training_seconds for record in records) / SECONDS_AN_HOUR
    made = said("report.made", version=version, stem=file.removesuffix(".html"), hours=hours)
    again = [Command(line) for line in commands(origins, file)]
    return Document(
        title=questions[0] if questions else NO_QUESTION,
        sections=(
            Section.of(*questions[1:], said("report.about", fits)),
            *_sections(fits, labels, sweep_figures(fits, labels)),
            Section.of(*again, made, *provenance(records, origins), title="How to reproduce it"),
        ),
        data=fit_json(fits),
    )


def _sections(
    fits: Fits, labels: Mapping[str, str], figures: tuple[Figure, ...] = ()
) -> tuple[Section, ...]:
    """Conclusions by subject, crossings and redundancies, then what only a page has room for."""

    def data(data_hash: str) -> str:
        return labels.get(data_hash, data_hash[:8])

    crossings = Table.of(
        "crossings",
        fits.crossings,
        data=lambda item: data(item.shallow.data_hash),
        ends=lambda item: said("report.sizes", item.size) if item.is_crossing else "",
    )
    best = Table.of("best_depth", fits.best_depth, data=lambda item: data(item.family.data_hash))
    rankings = Table.of(
        "rankings",
        [result for ranking in fits.rankings for result in ranking.results],
        data=lambda result: data(result.first.data_hash),
        ends=lambda result: said("report.ends", result.estimate) if result.estimate.value else "",
    )
    laws = Table.of(
        "laws",
        [(law, *parameter) for law in fits.laws for parameter in law.parameters.items()],
        of=lambda row: f"depth {row[0].family.depth}" if row[0].kind == "size" else "crossings",
    )
    cells = Table.of(
        "cells",
        sorted(fits.cells, key=lambda cell: (cell.data_hash, cell.size, repr(cell))),
        data=lambda cell: data(cell.data_hash),
        tables=lambda cell: cell.key.words,
    )
    redundancy = Table.of(
        "redundancy",
        fits.redundancy,
        redundant=lambda item: said(f"report.{item.outcome}", item.estimate),
    )
    others = Table.of("contrasts", fits.contrasts), best, rankings, laws, cells
    return (
        *(Section.of(*sentences, title=name) for name, sentences in subjects(fits).items()),
        Section.of(*figures, title="Figures"),
        Section.of(crossings, redundancy, title="Tables"),
        Section.of(*others, title="More tables", is_detail=True),
    )


def commands(origins: Sequence[Origin], file: str) -> list[str]:
    """What to type to train the rest or again, and to make the page."""
    folders = [shlex.quote(origin.folder) for origin in origins]
    sweeps = [
        f"archfit sweep {shlex.quote(f'{origin.folder}/sweep.json')} --out {folder}"
        for origin, folder in zip(origins, folders, strict=True)
        if origin.planned
    ]
    return [*sweeps, f"archfit report {' '.join(folders)} --out {shlex.quote(file)}"]


def provenance(records: Sequence[RunRecord], origins: Sequence[Origin]) -> Iterator[Table]:
    """Tables of sweeps, data, recipes and machines; records carry no dates."""
    labels = {name: label for origin in origins for name, label in origin.labels.items()}
    yield Table.of(
        "folders",
        origins,
        folder=lambda origin: printable(origin.folder, LONGEST_QUESTION),
        planned=lambda origin: origin.planned or "",
    )
    for name in ("data", "recipes", "machines"):
        table = Table.of(
            name,
            records,
            label=lambda record: labels.get(record.spec.data_hash, ""),
            several=lambda record: f"{record.machine.devices} x ".removeprefix("1 x "),
        )
        counts = Counter(
            tuple(printable(word, 2 * LONGEST_LABEL) for word in row) for row in table.rows
        )
        rows = tuple((*row, str(count)) for row, count in sorted(counts.items()))
        yield replace(table, columns=(*table.columns, "runs"), rows=rows)


def fit_json(fits: Fits) -> dict[str, object]:
    """Everything, with `low` and `high` of 90 % intervals; null is what cannot be had."""
    return json_of(
        "fit",
        fits,
        confidence=CONFIDENCE,
        crossings=[_crossing(item) for item in fits.crossings],
        laws=[
            json_of("fit-laws", law, parameter=name, estimate=estimate, depth=_depth(law))
            for law in fits.laws
            for name, estimate in law.parameters.items()
        ],
        forms=[
            json_of("fit-forms", error, is_best=place == 0, law=law, depth=_depth(law))
            for law in fits.laws
            for place, error in enumerate(law.forms)
        ],
        noise=[_noise(item) for item in fits.noise],
        conclusions=conclusions(fits),
    )


def _depth(law: Law) -> int | None:
    return law.family.depth if law.kind == "size" else None


def _crossing(item: Crossing) -> dict[str, object]:
    """Whether there is one, and which ends lie beyond the sizes that were trained."""
    found = item.is_crossing
    return json_of(
        "fit-crossings",
        item,
        depths=[item.shallow.depth, item.deep.depth],
        outcome="crossing" if found else "no crossing",
        low_is_beyond_range=found and item.size.low is None,
        high_is_beyond_range=found and item.size.high is None,
    )


def _noise(noise: Noise) -> dict[str, object]:
    cells = [json_of("fit-cells", cell, is_noisy=cell in noise.noisy.cells) for cell in noise.cells]
    return json_of("fit-noise", noise, noisy_std=noise.noisy.std or None, cells=cells)
