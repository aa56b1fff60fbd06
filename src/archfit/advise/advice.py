"""One recommendation for a source and a budget: the data, what was measured on them, the plan.

It is stored beside its report: enough to write the report again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from archfit import __version__
from archfit.advise.budgets import Speed, TrainingMinutes
from archfit.advise.ladder import LadderRun, knowledge
from archfit.advise.measure import LADDER, Measured, Measuring, VocabularyTrial, measured
from archfit.advise.plan_request import USUAL_VOCABS, PlanOptions, PlanRequest, VocabularySize
from archfit.advise.planner import WARNINGS, Plan, make_plan
from archfit.advise.prior import FAR, TEXT, family_prior
from archfit.advise.shapes import best_shape
from archfit.advise.source import Source, facts_of, vocabulary_of
from archfit.advise.surface import USUAL_TOKENS
from archfit.data import retokenise
from archfit.data.prepared import PreparedData, open_prepared
from archfit.spec import canonical_json, load_file, write_whole
from archfit.spec.errors import refusal
from archfit.spec.files import ADVICE, LARGEST_ADVICE

FORMAT = 2
TRIED_VOCABS = (257, 512, 2000)  # of text, at the sizes of trials
LEARNT = 0.97  # of the entropy of single tokens: a network above it has learnt next to nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class RunnerUp:
    """The next best depth, and what it would lose."""

    depth: int
    lost: float  # bits per byte, expected, more than the recommended one


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """The answer."""

    source: Source
    data: PreparedData  # in the vocabulary of the answer
    plan: Plan
    runs: tuple[LadderRun, ...]
    trials: tuple[VocabularyTrial, ...] = ()  # the one taken first
    failures: tuple[str, ...] = ()  # why some runs failed, each once

    @property
    def runner_up(self) -> RunnerUp:
        """Half or twice the depth, whichever is expected to lose less, if it was looked at."""
        outlook, level = self.plan.best.outlook, self.plan.best.level
        depths = [max(1, round(outlook.depth / 2)), round(2 * outlook.depth)]
        others = [d for d in depths if d <= outlook.regrets[-1][0] and d != self.plan.shape.depth]
        depth = min(others or depths[:1], key=outlook.regret_at)
        ours = outlook.regret_at(self.plan.shape.depth)
        return RunnerUp(depth=depth, lost=level * (outlook.regret_at(depth) - ours))


def check_budget(options: PlanOptions) -> None:
    """Refuse before any data is prepared what no plan could be made for."""
    if options.minutes is None or options.gpu:
        best_shape(options.request(VocabularySize(size=2, used=2)))


def advised(
    source: Source, options: PlanOptions, data: PreparedData, out: Path, measuring: Measuring | None
) -> Advice:
    """Measure on the data, if there is something to measure with, and decide."""
    looks, given = facts_of(data).family, retokenise.given_tokenisation(data)
    family, found = options.family_of(looks), Measured()
    is_fixed = source.is_prepared or source.vocab is not None
    if measuring is not None:
        others = () if is_fixed else retokenise.possible_vocabularies(data, TRIED_VOCABS)
        tokens, prior = dict.fromkeys((given, *others)), family_prior(family, options.block_family)
        found = measured(measuring, [*tokens], prior, **_asked(source, options, data, looks))
    chosen = given if is_fixed else _tokens(options, data, family, found)
    folder = out / LADDER / "data" / chosen.label.replace(" ", "-")
    final = retokenise.retokenised(data, folder, chosen)
    return decided(source, options, final, looks, found)


def decided(
    source: Source, options: PlanOptions, data: PreparedData, looks: str | None, found: Measured
) -> Advice:
    """The plan for data that are there and look like those of a family, after what was found."""
    request = _request(source, options, data, looks, found.speed)
    plan = make_plan(request, knowledge(family_prior(request.family, request.block), found.runs))
    warnings = (*plan.warnings, *_measuring_warnings(plan, data, found.runs))
    return Advice(
        source=source,
        data=data,
        plan=replace(plan, warnings=warnings),
        runs=found.runs,
        trials=found.trials,
        failures=found.failures,
    )


def _request(
    source: Source, options: PlanOptions, data: PreparedData, looks: str | None, speed: Speed | None
) -> PlanRequest:
    facts = replace(facts_of(data, source.words), family=looks)
    return options.request(vocabulary_of(data), facts, speed)


def _asked(
    source: Source, options: PlanOptions, data: PreparedData, looks: str | None
) -> dict[str, float]:
    """What the ladder climbs towards: a size, the deepest network there, and its tokens."""
    if options.minutes is not None and not options.gpu:  # known when the ladder has been timed
        options = replace(options, gpu="cpu")
    asked = _request(source, options, data, looks, None)
    size = best_shape(asked).size
    return {
        "budget": size,
        "deepest": float(min(options.max_depth, family_prior(asked.family).deepest)),
        "tokens_per_param": asked.trained_tokens(size),
    }


def _tokens(
    options: PlanOptions, data: PreparedData, family: str | None, found: Measured
) -> retokenise.Tokenisation:
    """The vocabulary of the answer: the best that was tried; of text a BPE for the budget."""
    chosen = found.chosen or retokenise.given_tokenisation(data)
    is_untried_text = family in (TEXT, "code") and not found.trials
    pieces = None if chosen == retokenise.BYTES else chosen.vocab
    if data.units == "bytes" and (pieces or is_untried_text):
        least = pieces or USUAL_VOCABS[1]
        return retokenise.Tokenisation(vocab=max(options.usual_vocab(found.speed), least))
    return chosen


def _measuring_warnings(
    plan: Plan, data: PreparedData, runs: tuple[LadderRun, ...]
) -> Iterator[str]:
    """What measuring did not tell."""
    if not runs:
        return
    described = data.description
    entropy = float(described["unigram_entropy_bits"]) / float(described["bytes_per_token"])
    best = min(run.bits for run in runs)
    if best > LEARNT * entropy:
        yield WARNINGS["learnt-nothing"].format(best=best, entropy=entropy)
    largest = max(run.size for run in runs)
    if plan.best.size > FAR * largest:
        can_grow = plan.request.trained_tokens(2 * largest) >= USUAL_TOKENS
        more = "more --minutes-to-measure go further" if can_grow else "the data feed none larger"
        times = plan.best.size / largest
        yield WARNINGS["small-ladder"].format(largest=largest, times=times, more=more)


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
        raise refusal("lost-in-advice", folder=repr(str(out)), name=there[0])


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
        raise refusal("no-advice", path=path, problem=problem) from problem
    if (stored.format, stored.archfit) != (FORMAT, __version__):
        version = f"{stored.archfit:.20}"
        raise refusal("other-advice", path=path, version=version, own=__version__)
    found = Measured(
        trials=stored.trials, runs=stored.runs, failures=stored.failures, speed=stored.speed
    )
    data = open_prepared(out / stored.data)
    return decided(stored.source, stored.options, data, stored.family, found), stored
