"""The questions that archfit answers, as functions; the command line shows what they return.

Sizes may be numbers or words such as "125M". What is refused is a ValueError in one sentence.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from inspect import Parameter, signature
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from archfit.report.answer import Answer
from archfit.report.document import Command, Section, said
from archfit.spec.data_kinds import SAMPLE
from archfit.spec.errors import InvalidValue, check_at_least, check_choice, check_real, refuse_if
from archfit.spec.sizes import parse_bytes, parse_size

if TYPE_CHECKING:
    from archfit.advise.advice import Advice
    from archfit.advise.backtest import Backtest
    from archfit.advise.measure import Measuring
    from archfit.advise.plan_request import PlanOptions, PlanRequest
    from archfit.advise.planner import Plan
    from archfit.advise.source import Source
    from archfit.audit.auditor import AuditResult
    from archfit.data.prepared import PreparedData
    from archfit.exact.measure import Measurement
    from archfit.fit.atlas import Atlas
    from archfit.spec.architecture import BlockFamily
    from archfit.sweep.runner import SweepWatcher
    from archfit.theory.bounds import BoundsReport

Options = TypeVar("Options")
Reading = Callable[[str, int, int], None]  # stage, done and total
USUAL_MINUTES = {True: 2.0, False: 5.0}  # of measuring, with a GPU and without
USUAL_PARAMS = 10_000_000
REPORT, MODEL = "report.html", "model"


def _silent(_stage: str, _done: int, _total: int) -> None:
    """For those who do not watch."""


def _unwatched() -> AbstractContextManager[SweepWatcher]:
    from archfit.sweep.runner import SweepWatcher

    return nullcontext(SweepWatcher())


def plan(
    *,
    data: str | Path | None = None,
    tokenizer: str | Path | None = None,
    reading: Reading = _silent,
    **options: object,
) -> Answer[Plan]:
    """The shape for a budget (`params`, `flops`, `minutes`, …) and your data; trains nothing.

    `data` is a file, a folder, or what `archfit data prepare` made; options are those of
    `archfit plan`, with underscores.
    """
    from archfit.advise.plan_request import PlanOptions
    from archfit.advise.planner import make_plan
    from archfit.report.plan_document import plan_document

    given = {"vocab": options.get("vocab"), "tokenizer": tokenizer, "data": data}
    named = [f"--{name}" for name, value in given.items() if value is not None]
    if len(named) > 1:
        way_out = "; or prepare the data in it and give --data alone" if data is not None else ""
        raise ValueError(f"{' and '.join(named)} each give a vocabulary; give one of them{way_out}")
    if tokenizer is not None:
        from archfit.data.kinds import tokenizer_rows

        options["vocab"] = tokenizer_rows(Path(tokenizer))
    wanted = options_of(PlanOptions, options)
    made = make_plan(wanted.request() if data is None else _request(wanted, str(data), reading))
    return Answer(value=made, tell=lambda: plan_document(made), rows=itemgetter("advisers"))


def _request(options: PlanOptions, data: str, reading: Reading) -> PlanRequest:
    """What is asked about a source, which is read for its facts and not kept."""
    from archfit.advise.source import Source, facts_of, prepared_source, vocabulary_of
    from archfit.data.prepared import open_prepared

    source = Source(words=data, kind="", vocab=None, heldout=None, field=None)
    if source.is_prepared:
        prepared = open_prepared(Path(data))
        return options.request(vocabulary_of(prepared), facts_of(prepared))
    with tempfile.TemporaryDirectory(prefix="archfit-") as folder:
        prepared = prepared_source(source, Path(folder) / "data", reading)
        facts = replace(facts_of(prepared, data), folder=f"{source.name}-data")
        return options.request(vocabulary_of(prepared), facts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Watching:
    """Who watches while advice is measured; by default nobody."""

    reading: Callable[[], AbstractContextManager[Reading]] = lambda: nullcontext(_silent)
    training: Callable[[], AbstractContextManager[SweepWatcher]] = _unwatched
    say: Callable[[str], None] = lambda _sentence: None
    warn: Callable[[str], None] = lambda _sentence: None  # also those who want silence
    command: str = "archfit.advise"  # how to ask again


@dataclass(frozen=True, kw_only=True, slots=True)
class AdviseOptions:
    """How a source is read and measured; None and empty: as it is usual."""

    minutes_to_measure: float | None = None
    no_measure: bool = False
    device: str = "auto"
    workers: int | None = None
    kind: str = ""
    vocab: int | None = None
    heldout: str = ""
    field: str = ""

    def check(self, minutes: object) -> None:
        """Refuse what cannot be meant, before anything is read; `minutes` are a budget."""
        is_timed = self.minutes_to_measure is not None
        is_open = minutes is not None and not (is_timed or self.no_measure)
        refuse_if(is_open, "advise-minutes", minutes=minutes)
        refuse_if(is_timed and self.no_measure, "advise-measuring")
        if self.minutes_to_measure is not None:
            check_real(0.1, 1e5, minutes_to_measure=self.minutes_to_measure)
        from archfit.sweep.runner import DEVICES

        check_choice(DEVICES, device=self.device)
        check_at_least(1, workers=1 if self.workers is None else self.workers)

    def source(self, words: str) -> Source:
        """The data that these words name."""
        from archfit.advise.source import Source

        heldout, field = self.heldout or None, self.field or None
        return Source(words=words, kind=self.kind, vocab=self.vocab, heldout=heldout, field=field)

    def can_train(self, say: Callable[[str], None]) -> bool:
        """Whether something is to be measured and torch is there; else what to install is said."""
        can = not self.no_measure and find_spec("torch") is not None
        if not (can or self.no_measure):
            say(said("advice.no-torch"))
        if can and self.device not in ("auto", "cpu"):  # those need not be asked for
            from archfit.train.hardware import choose_device

            choose_device(self.device)
        return can

    def measuring(
        self, data: PreparedData, folder: Path, watching: Watching, block: BlockFamily
    ) -> Measuring:
        """What trains small networks of these blocks on the data, and for how long."""
        from archfit.advise.measure import LADDER, LadderRunner, Measuring
        from archfit.sweep.local import usual_slots

        runner = LadderRunner(
            folder=folder / LADDER,
            device=self.device,
            where=lambda: usual_slots(self.device, self.workers, threads=1),
            watch=watching.training,
            say=watching.say,
        )
        minutes = self.minutes_to_measure or USUAL_MINUTES[runner.scale == "small"]
        return Measuring(runner=runner, data=data, seconds=60 * minutes, block=block)


def advise(
    source: str | Path = SAMPLE,
    *,
    out: str | Path | None = None,
    watching: Watching | None = None,
    **options: object,
) -> Answer[Advice]:
    """Measure small networks on the data, decide, and write report and config into `out`.

    Options are those of `archfit advise`, with underscores.
    """
    from archfit.advise.advice import advised, check_budget, check_place
    from archfit.advise.plan_request import BUDGETS, PlanOptions
    from archfit.advise.shapes import BudgetTooSmall
    from archfit.advise.source import DATA, prepared_source
    from archfit.journey import check_replaceable

    watched, own = watching or Watching(), {each.name for each in fields(AdviseOptions)}
    how = options_of(AdviseOptions, {name: options.pop(name) for name in own & options.keys()})
    how.check(options.get("minutes"))
    if all(options.get(name) is None for name in BUDGETS):
        options["params"] = USUAL_PARAMS
    named, wanted = how.source(str(source)), options_of(PlanOptions, options)
    measures = how.can_train(watched.warn)
    if not measures:
        wanted.request()  # refuses minutes that are those of no machine
    check_budget(wanted)
    folder = Path(out or f"advice-{named.name}")
    check_place(folder, (REPORT, MODEL))  # refuses one in which something else would be lost
    check_replaceable(folder / MODEL)
    is_new = not folder.exists()
    with watched.reading() as reading:
        data = prepared_source(named, folder / DATA, reading)
    folder.mkdir(parents=True, exist_ok=True)
    measuring = how.measuring(data, folder, watched, wanted.block_family) if measures else None
    try:
        found = advised(named, wanted, data, folder, measuring)
    except BudgetTooSmall:  # for the vocabulary of the data, which nobody knew before
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return _written(found, wanted, folder, watched.command)


def _written(found: Advice, options: PlanOptions, folder: Path, command: str) -> Answer[Advice]:
    """The advice with its files, and a document that names them."""
    from archfit.advise.advice import store
    from archfit.journey import write_config
    from archfit.report.advice_document import advice_document
    from archfit.report.fit_document import page_document
    from archfit.report.page import save_report

    store(folder, found, options, command)  # first: it says whose the other files are
    files = [str(file) for file in write_config(found.plan, found.data, folder / MODEL)]
    document, page = advice_document(found, command=command), folder / REPORT
    written, told = None, f"The report: {page}; the config: {files[0]}."
    if find_spec("altair") is None:  # a bare checkout, where nothing can be drawn
        told = f"The config: {files[0]}. No report is drawn: pip install altair vl-convert-python."
    else:
        written = page_document(page, save_report(document, page)).data
    assert isinstance(document.data, dict)
    data = document.data | {"export": {"files": files}, "report": written}
    script = str(folder / MODEL / "train.py")
    train = Command(shlex.join(["python", script, str(found.data.folder)]))
    sections = *document.sections, Section.next(told, train)
    told_all = replace(document, sections=sections, data=data)
    return Answer(value=found, tell=lambda: told_all, rows=itemgetter("ladder"))


def audit(
    *targets: object, weights: bool = False, download: bool = False
) -> Answer[tuple[AuditResult, ...]]:
    """What the shapes of models waste, with evidence and a fix.

    A target is a config.json, a folder, a checkpoint, a name of the built-in table, or a config or
    model of transformers; with `download` also an org/name of Hugging Face.
    """
    from archfit.audit.auditor import audit_config, audit_target
    from archfit.report.audit_document import audit_document

    refuse_if(not targets, "no-target")
    found = tuple(
        audit_target(str(target), measure=weights, environment=os.environ, download=download)
        if isinstance(target, str | Path)
        else audit_config(target)
        for target in targets
    )
    return Answer(value=found, tell=lambda: audit_document(found))


def bounds(*, counterexample: bool = False, **shape: object) -> Answer[BoundsReport]:
    """All bounds on the separation rank of one architecture (`depth`, `width`, `heads`, …).

    `counterexample` searches for weights that exceed the disputed one.
    """
    from archfit.report.theory_document import bounds_document
    from archfit.theory.bounds import bounds_report
    from archfit.theory.counterexample import refute_for_shape
    from archfit.theory.shape import Shape

    report = bounds_report(options_of(Shape, shape))
    refuse_if(counterexample and report.shape.causal, "causal-counterexample")
    verdict = refute_for_shape(report) if counterexample else None
    rows = itemgetter("bounds")
    return Answer(value=report, tell=lambda: bounds_document(report, verdict), rows=rows)


def measure(
    *,
    device: str = "cpu",
    limit: float = 10.0,
    primes: Sequence[int] = (),
    progress: Reading = _silent,
    **options: object,
) -> Answer[Measurement]:
    """The separation rank of a network (`depth`, `width`, …), exactly, in `limit` minutes."""
    from archfit.exact.measure import Machine, MeasureOptions
    from archfit.report.measure_document import measure_document

    experiment = options_of(MeasureOptions, options).experiment()
    found = Machine(device, limit, tuple(primes)).measure(experiment, progress)
    return Answer(
        value=found,
        tell=lambda: measure_document(found),
        rows=lambda data: [_numbers(data)],
    )


def atlas() -> Answer[Atlas]:
    """The runs that ship with archfit, on many kinds of data; `to_frame()` is their table."""
    from archfit.fit.atlas import read_atlas
    from archfit.report.atlas_document import atlas_document, atlas_rows

    found = read_atlas()
    return Answer(value=found, tell=lambda: atlas_document(found), rows=lambda _: atlas_rows(found))


def backtest(grid: str | None = None) -> Answer[tuple[Backtest, ...]]:
    """What rules, `plan` and `advise` lose on data left out; on one grid, or on all."""
    from archfit.advise import backtest as backtests
    from archfit.fit.atlas import read_atlas
    from archfit.report.backtest_document import backtest_document

    grids = backtests.ALL_GRIDS
    if grid is not None:
        check_choice(grids, grid=grid)
    found = backtests.backtest(read_atlas(), grids if grid is None else (grid,))
    return Answer(
        value=found,
        tell=lambda: backtest_document(found),
        rows=lambda data: [
            {"grid": grid["name"], **_numbers(rule)}
            for grid in data["grids"]
            for rule in grid["rules"]
        ],
    )


def _numbers(row: Mapping[str, object]) -> dict[str, object]:
    """A row of a table, without lists and objects."""
    return {key: value for key, value in row.items() if not isinstance(value, list | dict)}


def options_of(kind: type[Options], given: Mapping[str, object]) -> Options:
    """The options as the value that they describe; sizes may be words."""
    known = signature(kind, eval_str=True).parameters
    if unknown := [name for name in given if name not in known]:
        raise ValueError(f"{unknown[0]!r} is no option; use {', '.join(known)}")
    needed = [name for name, each in known.items() if each.default is Parameter.empty]
    if missing := [name for name in needed if name not in given]:
        raise ValueError(f"{' and '.join(missing)} must be given; use {missing[0]}=4 or the like")

    def read(name: str, value: object) -> object:
        if known[name].annotation not in (int, int | None) or value is None:
            return value
        if isinstance(value, str):
            return parse_bytes(value) if name == "bytes" else parse_size(value)
        try:
            whole = int(value)  # type: ignore[call-overload]  # what cannot is refused
        except (TypeError, ValueError, OverflowError):
            whole = None
        if isinstance(value, bool) or whole != value:
            raise InvalidValue(name, value, "is not a whole number", "use one such as 12 or '125M'")
        return whole

    return kind(**{name: read(name, value) for name, value in given.items()})
