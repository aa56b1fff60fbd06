"""What an advice was, beside its report: enough to write the report again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from archfit import __version__
from archfit.advise.advice import Advice, decided
from archfit.advise.budgets import TrainingMinutes
from archfit.advise.ladder import LadderRun
from archfit.advise.measure import VocabularyTrial
from archfit.advise.plan_request import PlanOptions
from archfit.advise.source import Source
from archfit.advise.speed import Speed
from archfit.data.prepared import open_prepared
from archfit.spec import canonical_json, load_file, write_whole
from archfit.spec.files import ADVICE, LARGEST_ADVICE

FORMAT = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAdvice:
    """A request, where its data lie, and what was measured."""

    format: int
    archfit: str
    source: Source
    options: PlanOptions
    family: str | None  # that the data look like
    data: str  # within the folder of the advice, so that it can be moved, or a whole path
    trials: tuple[VocabularyTrial, ...]
    runs: tuple[LadderRun, ...]
    failures: tuple[str, ...]
    speed: Speed | None  # of the machine, where the budget is time on it
    command: str


def check_place(out: Path, names: Sequence[str]) -> None:
    """Refuse a folder of no advice that has something of a name which an advice would replace."""
    there = [name for name in names if (out / name).exists()]
    if there and not (out / ADVICE).is_file():
        raise ValueError(
            f"{str(out)!r} holds {there[0]} and no advice, and {there[0]} would be lost; use "
            "another --out"
        )


def store(out: Path, advice: Advice, options: PlanOptions, command: str) -> None:
    """Write what was asked and found, so that a page can be made again."""
    folder, within = advice.data.folder.resolve(), out.resolve()
    budget = advice.plan.request.budget
    stored = StoredAdvice(
        format=FORMAT,
        archfit=__version__,
        source=advice.source,
        options=options,
        family=advice.plan.request.data.family if advice.plan.request.data else None,
        data=str(folder.relative_to(within) if folder.is_relative_to(within) else folder),
        trials=advice.trials,
        runs=advice.runs,
        failures=advice.failures,
        speed=budget.speed if isinstance(budget, TrainingMinutes) else None,
        command=command,
    )
    write_whole(out / ADVICE, (canonical_json(stored) + "\n").encode())


def read_advice(out: Path) -> tuple[Advice, StoredAdvice]:
    """The advice in a folder; nothing is trained."""
    path = out / ADVICE
    try:
        stored = load_file(StoredAdvice, path, most_bytes=LARGEST_ADVICE)
    except ValueError as problem:
        raise ValueError(
            f"{path} holds no advice of this version: {problem}; run archfit advise again"
        ) from problem
    if (stored.format, stored.archfit) != (FORMAT, __version__):
        raise ValueError(
            f"{path} is written by archfit {stored.archfit:.20}, and this is archfit "
            f"{__version__}; run archfit advise again"
        )
    data = open_prepared(out / stored.data)
    advice = decided(stored.source, stored.options, data, stored.family, stored.runs, stored.speed)
    return replace(advice, trials=stored.trials, failures=stored.failures), stored
