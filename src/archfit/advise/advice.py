"""One recommendation for a source and a budget: the data, what was measured on them, the plan."""

from dataclasses import dataclass, replace
from pathlib import Path

from archfit.advise.ladder import LadderRun, knowledge
from archfit.advise.measure import (
    LADDER,
    Measured,
    Measuring,
    VocabularyTrial,
    measured,
    tokens_to_try,
)
from archfit.advise.plan_request import (
    USUAL_VOCABS,
    DataFacts,
    PlanOptions,
    PlanRequest,
    VocabularySize,
)
from archfit.advise.planner import Plan, make_plan
from archfit.advise.prior import FAR, TEXT, family_prior
from archfit.advise.shapes import best_shape
from archfit.advise.source import Source, facts_of, vocabulary_of
from archfit.advise.speed import Speed
from archfit.advise.surface import USUAL_TOKENS
from archfit.data.prepared import PreparedData
from archfit.data.retokenise import (
    InBpe,
    Tokenisation,
    given_tokenisation,
    possible_vocabularies,
    retokenised,
)

TRIED_VOCABS = (257, 512, 2000)  # of text, at the sizes of trials
LEARNT = 0.97  # of the entropy of single tokens: a network above it has learnt next to nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class AdviceRequest:
    """A source and a budget."""

    source: Source
    options: PlanOptions

    def __post_init__(self) -> None:
        """Refuse before any data is prepared what no plan could be made for."""
        if self.options.minutes is None or self.options.gpu:
            best_shape(self.options.request(VocabularySize(size=2, used=2)))


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
    trials: tuple[VocabularyTrial, ...]  # the best first
    runs: tuple[LadderRun, ...]
    failures: tuple[str, ...]  # why some runs failed, each once

    @property
    def runner_up(self) -> RunnerUp:
        """Half or twice the depth, whichever is expected to lose less, if it was looked at."""
        outlook, level = self.plan.best.outlook, self.plan.best.level
        depths = [max(1, round(outlook.depth / 2)), round(2 * outlook.depth)]
        others = [d for d in depths if d <= outlook.regrets[-1][0] and d != self.plan.shape.depth]
        depth = min(others or depths[:1], key=outlook.regret_at)
        ours = outlook.regret_at(self.plan.shape.depth)
        return RunnerUp(depth=depth, lost=level * (outlook.regret_at(depth) - ours))


def advised(
    request: AdviceRequest, data: PreparedData, out: Path, measuring: Measuring | None
) -> Advice:
    """Measure on the data, if there is something to measure with, and decide."""
    source, options = request.source, request.options
    looks = facts_of(data).family
    family = options.family_of(looks)
    found, prior, speed = None, family_prior(family, options.block_family), None
    if measuring is not None:
        is_fixed = source.is_prepared or source.vocab is not None
        tokens = tokens_to_try(data, possible_vocabularies(data, TRIED_VOCABS), is_fixed=is_fixed)
        found = measured(measuring, tokens, prior, **_asked(request, data, looks))
        speed = found.speed
    tokens_of_answer = _tokens(request, data, family, found)
    folder = out / LADDER / "data" / tokens_of_answer.label.replace(" ", "-")
    final = retokenised(data, folder, tokens_of_answer)
    trials, runs = (found.trials, found.runs) if found else ((), ())
    made = decided(source, options, final, looks, runs, speed)
    failures = tuple(dict.fromkeys(found.failures.values())) if found else ()
    return replace(made, trials=trials, failures=failures)


def decided(
    source: Source,
    options: PlanOptions,
    data: PreparedData,
    looks: str | None,
    runs: tuple[LadderRun, ...],
    speed: Speed | None,
) -> Advice:
    """The plan for data that are there and look like those of a family, after these runs."""
    request = _request(source, options, data, looks, speed)
    plan = make_plan(request, knowledge(family_prior(request.family, request.block), runs))
    warnings = (*plan.warnings, *_measuring_warnings(plan, data, runs))
    return Advice(
        source=source,
        data=data,
        plan=replace(plan, warnings=warnings),
        trials=(),
        runs=runs,
        failures=(),
    )


def _request(
    source: Source,
    options: PlanOptions,
    data: PreparedData,
    looks: str | None,
    speed: Speed | None,
) -> PlanRequest:
    facts: DataFacts = replace(facts_of(data, source.words), family=looks)
    return options.request(vocabulary_of(data), facts, speed)


def _asked(request: AdviceRequest, data: PreparedData, looks: str | None) -> dict[str, float]:
    """What the ladder climbs towards: a size, the deepest network there, and its tokens."""
    options = request.options
    if options.minutes is not None and not options.gpu:  # known when the ladder has been timed
        options = replace(options, gpu="cpu")
    asked = _request(request.source, options, data, looks, None)
    size = best_shape(asked).size
    return {
        "budget": size,
        "deepest": float(min(options.max_depth, family_prior(asked.family).deepest)),
        "tokens_per_param": asked.trained_tokens(size),
    }


def _tokens(
    request: AdviceRequest, data: PreparedData, family: str | None, found: Measured | None
) -> Tokenisation:
    """The vocabulary of the answer: the best that was tried; of text a BPE for the budget."""
    given = given_tokenisation(data)
    source = request.source
    if source.is_prepared or source.vocab is not None:
        return given
    is_tried = found is not None and bool(found.trials)
    chosen = found.chosen if found is not None and is_tried else given
    is_text = family == TEXT or family == "code"
    if data.units == "bytes" and (isinstance(chosen, InBpe) or (is_text and not is_tried)):
        usual = request.options.usual_vocab(found.speed if found is not None else None)
        least = chosen.vocab if isinstance(chosen, InBpe) else USUAL_VOCABS[1]
        return InBpe(vocab=max(usual, least))
    return chosen


def _measuring_warnings(
    plan: Plan, data: PreparedData, runs: tuple[LadderRun, ...]
) -> tuple[str, ...]:
    """What measuring did not tell."""
    if not runs:
        return ()
    found, described = [], data.description
    entropy = float(described["unigram_entropy_bits"]) / float(described["bytes_per_token"])
    best = min(run.bits for run in runs)
    if best > LEARNT * entropy:
        found.append(
            f"the networks learnt next to nothing ({best:.2f} bits per byte, the frequencies of "
            f"single tokens give {entropy:.2f}), so that the depth is the atlas's"
        )
    largest = max(run.size for run in runs)
    if plan.best.size > FAR * largest:
        can_grow = plan.request.trained_tokens(2 * largest) >= USUAL_TOKENS
        way_out = (
            "more --minutes-to-measure go further" if can_grow else "the data feed none larger"
        )
        found.append(
            f"the largest network measured has {largest:,} parameters, "
            f"{plan.best.size / largest:.0f} times fewer than the budget; {way_out}"
        )
    return tuple(found)
