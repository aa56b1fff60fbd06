"""`archfit sweep`: a named sweep or one of your own, run here, on Ray or by Slurm."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, get_args

from archfit.cli.progress import say_beyond_rates, watched
from archfit.cli.shared import MANNER, MOST_SEEDS, NAME, say, say_stopped, show, with_words
from archfit.data import retokenise
from archfit.data.prepare import prepare as prepare_data
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.retokenise import AS_GIVEN, Tokenisation
from archfit.data.sources import DataSettings
from archfit.fit.atlas import check_kind_name, read_atlas
from archfit.report.document import counted
from archfit.report.sweep_document import cells_document, outcome_document, script_document
from archfit.spec import write_whole
from archfit.spec.data_kinds import SAMPLE
from archfit.spec.errors import check_at_least, check_choice, check_real, refusal, refuse_if
from archfit.spec.run import LearningRateRule
from archfit.spec.signals import Stopped
from archfit.sweep.clusters import check_script_file, needs_a_gpu, run_on_ray, slurm_script
from archfit.sweep.folder import open_sweep, read_sweep, write_results
from archfit.sweep.local import WORKERS_ON_A_GPU, LocalRunner, gpus, usual_slots
from archfit.sweep.named import ATLAS, NAMED, asked, counted_corpora, named_sweep, sweep_numbers
from archfit.sweep.runner import CellQueue, RunnerOptions, SweepWatcher
from archfit.sweep.sweep import SCALES, Corpus, Scale, Sweep, at_neighbouring_rates, used_corpora
from archfit.sweep.sweep_file import read_sweep_file

SLURM_TASKS = 8
SOME_FAILED = 1  # exit status
TOML_OPTIONS = ("precision", "tune")  # that a sweep file leaves open
STORED = ".json"  # ends a sweep.json, which says itself what to train
Wanted: TypeAlias = tuple[str, PreparedData, Tokenisation]  # label, data and what is made of them


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepRequest:
    """The options that say what is trained."""

    which: str
    scale: Scale = "smoke"
    data: tuple[Path, ...]
    seeds: int | None = None
    precision: str = "auto"
    learning_rate_rule: str = "auto"
    tune: bool = False
    kind: str | None = None

    def __post_init__(self) -> None:
        check_choice(SCALES, scale=self.scale)
        check_choice(("auto", "float32", "bfloat16"), precision=self.precision)
        rules = ("auto", *get_args(LearningRateRule))
        check_choice(rules, learning_rate_rule=self.learning_rate_rule)
        check_real(1, MOST_SEEDS, seeds=1 if self.seeds is None else self.seeds)
        is_file = self.which.endswith((STORED, ".toml"))
        if self.which not in NAMED and not is_file:
            raise refusal("sweep-name", name=repr(self.which), names=", ".join(NAMED))
        self._check_is_not_said_by_the_file()
        self._check_kind()

    def sweep(self, out: Path | None = None) -> Sweep:
        """The sweep on its data, made in `out` where they are missing; without it only counted."""
        if self.which.endswith(STORED):
            stored = read_sweep(Path(self.which))
            return stored if out is None else _moved(stored, self.data)
        is_named = self.which in NAMED
        if out is not None and not is_named:
            self.sweep()  # a file that is wrong is refused before anything is prepared
        given = self._wanted(self._given_data(out))
        if out is not None:
            given = [
                (label, retokenise.retokenised(data, out / "data" / label, wanted), AS_GIVEN)
                for label, data, wanted in given
            ]
        usual = counted_corpora(self.which if is_named else "levine-depth", self.scale)
        corpora = _corpora(given) if given else usual
        sweep = self._named(corpora, given) if is_named else self._from_file(corpora)
        return at_neighbouring_rates(sweep) if self.tune else sweep

    def _given_data(self, out: Path | None) -> list[PreparedData]:
        """What the user gave; without it the sample, which is enough for smoke only."""
        if self.data or out is None:
            return [open_prepared(folder) for folder in self.data]
        refuse_if(self.scale != "smoke", "sweep-scale", scale=self.scale)
        return [prepare_data(SAMPLE, out / "data" / "bytes", DataSettings(kind="text")).data]

    def _named(self, corpora: tuple[Corpus, ...], given: list[Wanted]) -> Sweep:
        """A named sweep, without runs that would read their data more often than it allows."""
        numbers = sweep_numbers(self.which, self.scale)
        changes = {"precision": self.precision, "learning_rate_rule": self.learning_rate_rule}
        changes = {name: word for name, word in changes.items() if word != "auto"}
        seeds = range(self.seeds or numbers["seeds"])
        sweep = named_sweep(self.which, self.scale, corpora, seeds=seeds, changes=changes)
        if (epochs := numbers.get("most_epochs")) is not None:
            most = {data.data_hash: epochs * len(data.tokens("train")) for _, data, _ in given}
            tokens = {spec: spec.training_tokens for spec in sweep.specs}
            kept = [spec for spec in tokens if tokens[spec] <= most.get(spec.data_hash, math.inf)]
            least = f"{min(tokens.values()):,}"
            refuse_if(not kept, "sweep-epochs", name=self.which, least=least, epochs=epochs)
            sweep = replace(sweep, specs=tuple(kept), data=used_corpora(sweep.data, kept))
        return replace(sweep, kind=self.kind or "")

    def _from_file(self, corpora: tuple[Corpus, ...]) -> Sweep:
        usual = "bfloat16" if gpus() else "float32"
        precision = usual if self.precision == "auto" else self.precision
        return read_sweep_file(Path(self.which), corpora, precision)

    def _wanted(self, given: list[PreparedData]) -> list[Wanted]:
        """Labels, and what a sweep makes of which data."""
        as_given: list[Wanted] = [(it.folder.resolve().name, it, AS_GIVEN) for it in given]
        if self.which not in NAMED:
            return as_given
        numbers = sweep_numbers(self.which, self.scale)
        wanted = numbers["vocabularies"]
        takes_several = wanted != "as given" and len(wanted) > 1
        is_too_many = len(given) > 1 and not takes_several
        refuse_if(is_too_many, "sweep-data", count=len(given), name=self.which)
        if len(given) != 1 or not takes_several:
            return as_given
        (data,) = given
        found: tuple[Tokenisation, ...] = (AS_GIVEN,)
        if wanted == "as given and larger":
            found += retokenise.larger_vocabularies(data, at_least=numbers["width"])
        elif wanted != "as given and grouped":
            found = retokenise.possible_vocabularies(data, wanted)
        elif data.kind == "text" or data.units == "letters":  # as BPE or k-mers, others as they are
            found = retokenise.possible_vocabularies(data, numbers["groups"])
        return [(tokens.label, data, tokens) for tokens in found]

    def _check_is_not_said_by_the_file(self) -> None:
        """Refuse what would change nothing: a file says all of it."""
        if self.which in NAMED:
            return
        left_open = ("which", "data", *(() if self.which.endswith(STORED) else TOML_OPTIONS))
        for each in fields(self):
            if each.name not in left_open and getattr(self, each.name) != each.default:
                raise refusal("sweep-option", option=each.name.replace("_", "-"), file=self.which)

    def _check_kind(self) -> None:
        """Refuse data under the name of a kind that was trained on others."""
        if self.kind is None:
            return
        words = {"kind": self.kind, "names": ", ".join(ATLAS), "name": self.which}
        refuse_if(self.which not in ATLAS, "sweep-kind", **words)
        check_kind_name(self.kind)
        atlas = read_atlas()
        known = {run.spec.data_hash for run in atlas.runs if run.kind == self.kind}
        source = next((kind.source for kind in atlas.kinds if kind.name == self.kind), None)
        if source is None:
            return
        refuse_if(not self.data, "sweep-no-data", kind=self.kind, source=source)
        given = {folder: open_prepared(folder).data_hash for folder in self.data}
        if foreign := [folder for folder, found in given.items() if found not in known]:
            raise refusal("sweep-foreign", folder=foreign[0], kind=self.kind)


@with_words("sweep", SweepRequest, sweeps=["".join(asked())], on_a_gpu=[str(WORKERS_ON_A_GPU)])
def sweep(
    out: Path | None = None,
    data: list[Path] | None = None,
    workers: int | None = None,
    threads: int = 1,
    device: str = "auto",
    ray: str | None = None,
    slurm: Path | None = None,
    wait: bool = True,
    checkpoint_seconds: float = 60.0,
    dry_run: bool = False,
    **request: Any,
) -> None:
    """Train many networks and compare them. Run the same command again to resume.

    Named sweeps, and what they ask: {sweeps}
    """
    wanted = SweepRequest(**request, data=tuple(data or ()))
    if dry_run:
        return show(cells_document(wanted.sweep()))
    if out is None:
        raise ValueError("--out is missing; name the folder that the sweep is to have")
    options = RunnerOptions(
        out=out.resolve(), device=device, threads=threads, checkpoint_seconds=checkpoint_seconds
    )
    _check_runner(workers, ray, slurm)
    opened = open_sweep(out, wanted.sweep(out))
    if slurm is not None:
        return _write_slurm(slurm, workers or SLURM_TASKS, opened, options)
    say_beyond_rates(opened.specs)
    cells = CellQueue(opened.specs, out)

    def run(options: RunnerOptions, watch: SweepWatcher) -> None:
        if ray is not None:
            return run_on_ray(cells, options, watch, address=ray)
        slots = usual_slots(device, workers, threads)
        return LocalRunner(cells, options, slots, watch).run(wait=wait)

    _train(cells, opened, options, run)
    _show_outcome(cells, opened, out)
    if cells.failed:
        raise SystemExit(SOME_FAILED)
    return None


def _check_runner(workers: int | None, ray: str | None, slurm: Path | None) -> None:
    """Refuse before anything is prepared what could not be done after it."""
    check_at_least(1, workers=1 if workers is None else workers)
    if ray is not None and (slurm is not None or workers is not None):
        other = "--slurm" if slurm is not None else "--workers"
        raise ValueError(f"--ray {ray} and {other} cannot both say who trains; leave one out")
    if slurm is not None:
        check_script_file(slurm)


def _train(
    cells: CellQueue,
    opened: Sweep,
    options: RunnerOptions,
    run: Callable[[RunnerOptions, SweepWatcher], None],
) -> None:
    """Train what is left of a sweep; a signal ends it with results.csv written."""
    if not cells.all_done:
        options = replace(options, data_folders=_data_there(opened))
    try:
        with watched() as watch:
            run(options, watch)
    except Stopped as stopped:
        write_results(options.out, opened)
        say_stopped(f"{stopped}: {cells.left} of {cells.total} runs left")
        raise SystemExit(128 + stopped.signal_number) from stopped


def _show_outcome(cells: CellQueue, opened: Sweep, out: Path) -> None:
    """Say how the sweep ended and what its records say so far, and rebuild results.csv."""
    from archfit.fit.fitted import fitted, read_folders
    from archfit.report.conclusions import conclusions

    if cells.failed and not MANNER.get().is_silent:  # first: a full disk has no room for the table
        say(f"{NAME}: {counted(len(cells.failed), 'run')} failed")
    results = str(write_results(out, opened))
    try:
        said = conclusions(fitted(*read_folders([out])))
    except ValueError as problem:  # too few records are no failure of the sweep
        said = (f"No conclusion yet: {problem}.",)
    show(outcome_document(cells, opened, folder=str(out), results=results, conclusions=said))


def _write_slurm(file: Path, tasks: int, opened: Sweep, options: RunnerOptions) -> None:
    """Write the script of a sweep whose tasks share its cells."""
    needs_gpu = any(needs_a_gpu(spec, options.device) for spec in opened.specs)
    workers = WORKERS_ON_A_GPU if needs_gpu else 1
    script = slurm_script(opened.name, options, tasks=tasks, workers=workers, needs_gpu=needs_gpu)
    write_whole(file, script.encode())
    show(script_document(opened, str(file), tasks))


def _moved(sweep: Sweep, folders: Sequence[Path]) -> Sweep:
    """The sweep with those of its data that lie in `folders` found there."""
    given = {data.data_hash: data.folder for data in map(open_prepared, folders)}
    if foreign := given.keys() - {corpus.hash for corpus in sweep.data}:
        labels = ", ".join(corpus.label for corpus in sweep.data)
        raise refusal("sweep-moved", folder=given[min(foreign)], name=sweep.name, labels=labels)
    places = {name: str(folder.resolve()) for name, folder in given.items()}
    data = (replace(kept, folder=places.get(kept.hash, kept.folder)) for kept in sweep.data)
    return replace(sweep, data=tuple(data))


def _data_there(sweep: Sweep) -> tuple[Path, ...]:
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


def _corpora(given: Iterable[Wanted]) -> tuple[Corpus, ...]:
    """Several data sets; one that comes twice counts once. What is not made yet is foretold."""
    corpora: dict[str, Corpus] = {}
    for label, data, wanted in given:
        found, vocab = data.data_hash, retokenise.expected_vocab(data, wanted)
        if wanted not in (AS_GIVEN, retokenise.given_tokenisation(data)):
            found = f"{vocab:064x}"  # a stand-in
        folder = str(data.folder.resolve())
        corpus = Corpus(label=label, kind=data.kind, vocab=vocab, hash=found, folder=folder)
        if any(other.label == label and other.hash != found for other in corpora.values()):
            raise refusal("sweep-labels", label=label)
        corpora.setdefault(found, corpus)
    return tuple(corpora.values())
