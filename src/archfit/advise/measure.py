"""Measuring on the user's data, in the time there is: vocabularies first, then the ladder.

All runs lie in one sweep. Whatever is in it counts, so that a stopped advice goes on where it was,
and one that is given more time climbs further.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from archfit.advise.budgets import Speed, Timed, fitted_speed, known_speed
from archfit.advise.ladder import DEPTHS, SIZES, LadderLimits, LadderRun, Rung, climbed
from archfit.advise.prior import Knowledge
from archfit.data.prepared import PreparedData
from archfit.data.retokenise import Tokenisation, retokenised
from archfit.spec import RunRecord, RunSpec
from archfit.spec.architecture import BlockFamily
from archfit.spec.files import SWEEP, read_record
from archfit.spec.rates import EPOCHS
from archfit.sweep.folder import open_sweep, read_sweep, write_results
from archfit.sweep.local import DeviceSlot, LocalRunner
from archfit.sweep.named import atlas, sweep_numbers
from archfit.sweep.runner import CellQueue, RunnerOptions, SweepWatcher
from archfit.sweep.sweep import Cell, Corpus, Sweep, recipe_of, seeded

NAME, LADDER = "advise-ladder", "ladder"
QUESTION = "Which vocabulary and depth are best on these data, at sizes below the budget?"
TRIAL_SIZES = (30_000, 60_000, 125_000, 250_000)  # at which vocabularies are compared
TRIAL_DEPTH, PILOT_DEPTH = 4, 2
TRIAL_SHARE = 0.3  # of the time, at most
SCATTER = 0.02  # bits per byte, of the seeds of networks so small (docs/rates.md)
PACE = {"small": 0.4, "smoke": 0.7}  # seconds that pass for one of a network alone: side by side
LEAST_TIMED = 3  # networks that say how fast a machine is
LEAST_SECONDS = 0.1  # left, that networks could be trained in
NEAR_SIZE = 0.2  # of a rung's size, within which a network was meant to have it
START_SECONDS = {"small": 15.0, "smoke": 3.0}  # until the first step


@dataclass(frozen=True, kw_only=True, slots=True)
class LadderRunner:
    """Where networks are trained, and who watches."""

    folder: Path
    device: str
    where: Callable[[], list[DeviceSlot]]  # anew for each runner
    watch: Callable[[], AbstractContextManager[SweepWatcher]]  # anew for each round
    say: Callable[[str], None]  # what is tried next, and what is known so far

    @property
    def scale(self) -> str:
        """Whose recipe is used: small on a GPU, smoke on a CPU."""
        return "small" if any(slot.gpu is not None for slot in self.where()) else "smoke"

    def run(self, specs: tuple[RunSpec, ...], data: tuple[Path, ...]) -> dict[str, str]:
        """Train what is not done yet; why runs failed, by their names."""
        cells = CellQueue(specs, self.folder)
        if not cells.all_done:
            options = RunnerOptions(
                out=self.folder.resolve(), data_folders=data, device=self.device, threads=1,
                checkpoint_seconds=60.0,
            )  # fmt: skip
            with self.watch() as watch:
                LocalRunner(cells, options, self.where(), watch).run(wait=True)
        return {spec.name: reason for spec, reason in cells.failed.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyTrial:
    """A vocabulary at a small size."""

    label: str
    vocab: int
    depth: int
    params: int
    bits: float  # per byte, held out
    train_tokens: int = 0  # that the data have in it


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What was trained on the user's data; unless it is said, nothing."""

    trials: tuple[VocabularyTrial, ...] = ()  # the best first
    chosen: Tokenisation | None = None  # of the ladder
    runs: tuple[LadderRun, ...] = ()
    failures: tuple[str, ...] = ()  # why some runs failed, each once
    speed: Speed | None = None  # of this machine, if enough networks were timed, else of one alike


def _timed(record: RunRecord) -> Timed:
    shape, spec = record.spec.architecture, record.spec
    seconds = record.timing.training_seconds / spec.training_tokens
    return shape.depth, shape.width, shape.input.vocab, shape.context, seconds


@dataclass(kw_only=True)
class Measuring:
    """A stretch of measuring: where it is done, for how long, and how fast it goes."""

    runner: LadderRunner
    data: PreparedData
    seconds: float
    block: BlockFamily = "gpt2"
    began: float = field(default_factory=time.monotonic)
    failures: dict[str, str] = field(default_factory=dict)
    corpora: dict[str, Corpus] = field(default_factory=dict)  # by the label of the tokens
    train_tokens: dict[str, int] = field(default_factory=dict)  # by the hash of the data

    def __post_init__(self) -> None:
        self.scale = self.runner.scale
        self.pace = PACE[self.scale]  # seconds that pass for one of a network alone
        self.speed = known_speed("h200" if self.scale == "small" else "cpu")
        self.numbers = sweep_numbers("atlas", self.scale)  # type: ignore[arg-type]  # a scale

    @property
    def left(self) -> float:
        """Seconds."""
        return self.seconds - (time.monotonic() - self.began)

    def corpus(self, tokens: Tokenisation) -> Corpus:
        """The data in a vocabulary, made now or before."""
        if tokens.label not in self.corpora:
            folder = self.runner.folder / "data" / tokens.label.replace(" ", "-")
            found = retokenised(self.data, folder, tokens)
            self.train_tokens[found.data_hash] = found.train_tokens
            self.corpora[tokens.label] = Corpus(
                label=tokens.label,
                kind=found.kind,
                vocab=found.vocab,
                hash=found.data_hash,
                folder=str(found.folder.resolve()),
            )
        return self.corpora[tokens.label]

    def cells(self, corpus: Corpus, size: int, depths: Sequence[int]) -> list[Cell]:
        """Networks of a size, on as many tokens as usual or as there are; none on too few."""
        fed = EPOCHS * self.train_tokens[corpus.hash] // size
        if fed < least_fed():
            return []
        numbers = {**self.numbers, "sizes": [size], "depths": list(depths)}
        numbers["tokens_a_parameter"] = min(numbers["tokens_a_parameter"], fed)
        recipe = replace(recipe_of(numbers["recipe"]), block=self.block)
        return list(atlas(numbers, recipe, [corpus]))

    def takes(self, cells: Iterable[Cell]) -> float:
        """Seconds, about."""
        return self.pace * sum(self.speed.seconds_of(cell.spec(0)) for cell in cells)

    def train(self, cells: Sequence[Cell], seed: int) -> list[RunRecord]:
        """The records of these cells, and what they say of the pace."""
        if not cells:
            return []
        specs = seeded(cells, [seed])
        data = tuple({cell.corpus.hash: cell.corpus for cell in cells}.values())
        wanted = Sweep(name=NAME, scale=self.scale, question=QUESTION, data=data, specs=specs)
        opened = open_sweep(self.runner.folder, wanted)
        began, is_new = time.monotonic(), [s for s in specs if not self._record(s)]
        folders = tuple(Path(corpus.folder) for corpus in opened.data)
        self.failures |= self.runner.run(specs, folders)
        write_results(self.runner.folder, opened)
        if is_new:
            alone = sum(map(self.speed.seconds_of, is_new))
            start, usual = START_SECONDS[self.scale], PACE[self.scale]
            slots = max(1, len(self.runner.where()))
            busy = min(len(is_new), slots) / slots  # the others could have worked meanwhile
            passed = busy * max(0.0, time.monotonic() - began - start)
            self.pace = (passed + usual * start) / (alone + start)  # little work says little
        return self._finished(specs)

    def _record(self, spec: RunSpec) -> RunRecord | None:
        return read_record(self.runner.folder / spec.name)

    def _begun(self) -> tuple[tuple[RunSpec, ...], tuple[Path, ...]]:
        """Runs that are there, and their data; runs of other blocks are of another ladder."""
        if not (self.runner.folder / SWEEP).exists():
            return (), ()
        sweep = read_sweep(self.runner.folder / SWEEP)
        specs = (spec for spec in sweep.specs if spec.architecture.block == self.block)
        return tuple(specs), tuple(Path(corpus.folder) for corpus in sweep.data)

    def finish_begun(self) -> None:
        """Runs that were stopped are finished first, whatever size or vocabulary they are of."""
        self.failures |= self.runner.run(*self._begun())

    def records(self) -> list[RunRecord]:
        """Of those that have ended well, here or before."""
        return self._finished(self._begun()[0])

    def _finished(self, specs: Iterable[RunSpec]) -> list[RunRecord]:
        found = map(self._record, specs)
        return [record for record in found if record and record.status == "finished"]


def measured(
    measuring: Measuring,
    tokens: Sequence[Tokenisation],
    prior: Knowledge,
    *,
    budget: float,
    deepest: float,
    tokens_per_param: float,
) -> Measured:
    """Vocabularies compared at a small size, then depths in the best of them.

    Asked about is a network of `budget` parameters on so many tokens for each.
    """
    measuring.finish_begun()
    say = measuring.runner.say
    trials = _trials(measuring, tokens) if len(tokens) > 1 else {}
    stays = {tokens[0]: SCATTER}  # what is given, unless another is better beyond chance
    chosen = min(trials, key=lambda it: trials[it].bits - stays.get(it, 0), default=tokens[0])
    if trials:
        say(f"{trials[chosen].label} is taken: {trials[chosen].bits:.3f} bits per byte")
    corpus = measuring.corpus(chosen)
    # Larger tokens are fewer: what the data feed of them.
    tokens_per_param = min(tokens_per_param, EPOCHS * measuring.train_tokens[corpus.hash] / budget)
    if not trials:  # nothing has been timed yet
        measuring.train(measuring.cells(corpus, TRIAL_SIZES[0], [PILOT_DEPTH]), 0)

    def cells(rung: Rung) -> list[Cell]:
        return measuring.cells(corpus, rung.size, rung.depths)

    def train(rung: Rung) -> list[LadderRun]:
        depths, seconds = ", ".join(map(str, rung.depths)), measuring.takes(cells(rung))
        say(f"{rung.size:,} parameters: {depths} layers, about {seconds:.0f} s")
        return [LadderRun.of(rung.size, each) for each in measuring.train(cells(rung), rung.seed)]

    limits = LadderLimits(
        budget=budget,
        deepest=deepest,
        tokens_per_param=tokens_per_param,
        depths=lambda size: [cell.options.depth for cell in measuring.cells(corpus, size, DEPTHS)],
        price=lambda rung: measuring.takes(cells(rung)) / max(measuring.left, LEAST_SECONDS),
    )
    runs = climbed(prior, _known_runs(measuring, corpus), limits, train)
    timed = [_timed(record) for record in measuring.records()] if runs or trials else []
    is_timed = len(timed) >= LEAST_TIMED
    return Measured(
        trials=tuple(
            trials[it] for it in sorted(trials, key=lambda it: (it != chosen, trials[it].bits))
        ),
        chosen=chosen,
        runs=runs,
        failures=tuple(dict.fromkeys(measuring.failures.values())),
        speed=fitted_speed("this machine", timed) if is_timed else measuring.speed,
    )


def _trials(
    measuring: Measuring, tokens: Sequence[Tokenisation]
) -> dict[Tokenisation, VocabularyTrial]:
    """Every vocabulary at the largest small size that can be paid; none if nothing can."""
    for size in reversed(TRIAL_SIZES):
        cells = [measuring.cells(measuring.corpus(each), size, [TRIAL_DEPTH]) for each in tokens]
        wanted, able = [cell for some in cells for cell in some], sum(map(bool, cells))
        if able > 1 and measuring.takes(wanted) <= TRIAL_SHARE * measuring.left:
            measuring.runner.say(f"{size:,} parameters: {able} vocabularies")
            records = {record.spec.data_hash: record for record in measuring.train(wanted, 0)}
            return {
                each: _trial(each, record, measuring.train_tokens[record.spec.data_hash])
                for each in tokens
                if (record := records.get(measuring.corpus(each).hash))
            }
    return {}


def least_fed() -> int:
    """The fewest tokens a parameter that tell of depth."""
    return int(sweep_numbers("atlas", "smoke")["tokens_a_parameter"])


def least_tokens() -> int:
    """Of data, for the smallest networks that tell of depth."""
    return least_fed() * SIZES[0] // EPOCHS


def _trial(tokens: Tokenisation, record: RunRecord, train_tokens: int) -> VocabularyTrial:
    shape = record.spec.architecture
    return VocabularyTrial(
        label=tokens.label,
        vocab=shape.input.vocab,
        depth=shape.depth,
        params=shape.params,
        bits=record.evaluations[-1].heldout_bits_per_byte,
        train_tokens=train_tokens,
    )


def _known_runs(measuring: Measuring, corpus: Corpus) -> list[LadderRun]:
    """Runs of an earlier stretch."""
    found = []
    for record in measuring.records():
        params = record.spec.architecture.params
        size = min(SIZES, key=lambda each: abs(each - params))
        if record.spec.data_hash == corpus.hash and abs(params / size - 1) < NEAR_SIZE:
            found.append(LadderRun.of(size, record))
    return found
