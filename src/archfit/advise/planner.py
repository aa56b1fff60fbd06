"""The answer: a shape, how sure it is, what it rests on, what others say, what training takes."""

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from archfit.advise.advisers import Advice, NetworkFacts, all_advice
from archfit.advise.budgets import FLOPS, Budget, TrainingMinutes
from archfit.advise.plan_request import SPELT, PlanRequest, RankLimit
from archfit.advise.prior import (
    CLOSE,
    FAR,
    LAW,
    LEAST_SIZE,
    NATS_A_BYTE,
    TEXT,
    Knowledge,
    family_prior,
)
from archfit.advise.repairs import Repair, repairs_for
from archfit.advise.shapes import BestShape, RoundedShape, best_shape, cost
from archfit.spec.counting import NetworkSizes, TrainingMemory, training_memory
from archfit.spec.data_kinds import BYTE_VOCAB
from archfit.spec.packed import packed_table
from archfit.spec.rates import CHINCHILLA_TOKENS, EPOCHS, Start, starting_point, training_tokens
from archfit.theory.law import IdealShape, solve

WARNINGS = packed_table("advise_sentences.toml")["warnings"]
BATCH_SEQUENCES = 8  # for which activations are stated
BEYOND = 1.05  # times the largest network trained: from here on it is said


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """What a training run of this shape takes."""

    tokens: int
    tokens_per_param: float
    flops: float  # 6 N D
    attention_flops: float  # for scores and values, on top
    memory: TrainingMemory
    start: Start


@dataclass(frozen=True, kw_only=True, slots=True)
class Regret:
    """What a depth may lose against the best one, which nobody knows."""

    expected: float
    at_most: float  # with 90 %
    unit: str  # bits per byte, or nats per token where bytes per token are not known
    close: float  # depths that lose no more than this are as good as the best


@dataclass(frozen=True, kw_only=True, slots=True)
class Basis:
    """What an answer rests on: networks that were trained."""

    source: str  # prior, or ladder
    family: str | None  # None: the spread of all
    kinds: tuple[str, ...]
    runs: int
    largest: float  # of those networks, in parameters


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A shape for a budget and data, how sure it is, and what it rests on."""

    request: PlanRequest
    best: BestShape
    depth_range: tuple[int, int]  # as good as the best, more likely than not
    regret: Regret
    basis: Basis
    ideal: IdealShape  # on the papers' law
    bottleneck: RankLimit | None
    advice: tuple[Advice, ...]
    repairs: tuple[Repair, ...]
    costs: Costs
    warnings: tuple[str, ...]

    @property
    def shape(self) -> RoundedShape:
        """The answer."""
        return self.best.shape

    @property
    def params(self) -> NetworkSizes:
        """Its parameters."""
        return self.best.params

    @property
    def embedding_rank(self) -> int:
        """r = min(width, what the input allows)."""
        return min(self.shape.width, self.request.limit.limit)

    @property
    def aspect_ratio(self) -> float:
        """Width over depth, the ratio that Kaplan et al. 2020 vary at one size."""
        return self.shape.width / self.shape.depth

    @property
    def export_command(self) -> str | None:
        """What writes the config; None where no format has such a network."""
        request, shape, name = self.request, self.shape, self.export_format
        if name is None:
            return None
        words = f"archfit export --depth {shape.depth} --width {shape.width} --heads {shape.heads}"
        words += f" --data {shlex.quote(request.data.folder)}" if request.data else ""
        if request.data is None or request.objective == "masked":  # data do not count the mask
            words += f" --vocab {request.input_dimensions}"
        words += " --tied" if request.is_tied else ""
        words += f" --rank {request.rank}" if name == "hf-opt" else ""
        if request.tokens_per_param != CHINCHILLA_TOKENS:
            words += f" --tokens-per-param {request.tokens_per_param:g}"
        return f"{words} --format {name} --context {request.context} --out model"

    @property
    def export_format(self) -> str | None:
        """The format of Hugging Face that has such a network; none has patches."""
        request = self.request
        formats = {("gpt2", "causal"): "hf-gpt2", ("llama", "causal"): "hf-llama"}
        formats["gpt2", "masked"] = "hf-esm"
        able = formats.get((request.block, request.objective)) if request.patch is None else None
        if request.rank in (None, self.shape.width):
            return able
        return "hf-opt" if able == "hf-gpt2" else None


def make_plan(request: PlanRequest, knowledge: Knowledge | None = None) -> Plan:
    """The shape of least expected loss by the prior, or by runs on the data, and all about it."""
    known = knowledge or family_prior(request.family, request.block)
    best = best_shape(request, known)
    shape, outlook, limit, sized = best.shape, best.outlook, request.limit, request
    if isinstance(request.budget, TrainingMinutes):  # the parameters that it came to
        sized = replace(request, budget=Budget(kind="params", amount=int(best.params.total)))
    low, high = max(1, round(outlook.low)), round(outlook.high)
    if outlook.low == outlook.high:  # no other depth is likely enough to be as good
        low, high = shape.depth, shape.depth
    params = sized.budget.params  # type: ignore[union-attr]  # no longer one of time
    ideal = solve(lambda each: cost(sized, each.depth, each.width), params, limit.limit)
    facts = NetworkFacts(
        block_params=shape.block_params,
        rank_limit=limit.limit,
        is_text=request.family == TEXT,
        is_vision=request.patch is not None and len(request.patch) > 1,
    )
    basis = Basis(
        source="ladder" if known.own_runs else "prior",
        family=known.family,
        kinds=tuple(kind.name for kind in known.kinds),
        runs=known.own_runs or sum(len(kind.rows) for kind in known.kinds if kind.name != LAW),
        largest=known.largest,
    )
    bottleneck = limit if limit.limit < shape.width else None
    return Plan(
        request=request,
        best=best,
        depth_range=(min(shape.depth, low), max(shape.depth, high)),
        regret=_regret(request, best),
        basis=basis,
        ideal=ideal,
        bottleneck=bottleneck,
        advice=all_advice(facts),
        repairs=repairs_for(sized, shape.width) if bottleneck else (),
        costs=_costs(request, shape, best.params),
        warnings=(*_data_warnings(request, best), *_depth_warnings(request, best, known)),
    )


def _regret(request: PlanRequest, best: BestShape) -> Regret:
    """Of the depth that the shape came to, in bits per byte; nats per token for tokens of whose
    bytes nothing is known, as of a BPE. A group of letters has as many bytes as letters.
    """
    vocabulary, scale, unit = request.vocabulary, 1.0, "bits per byte"
    is_known = request.data is not None or request.family in SPELT
    if not is_known and vocabulary and vocabulary.size > BYTE_VOCAB:
        scale, unit = NATS_A_BYTE, "nats per token"
    factor, outlook = scale * best.level, best.outlook
    lost = outlook.regret_at(best.shape.depth)
    # A tail of less than 10 % may hold more of the mean than the rest.
    at_most = max(lost, outlook.regret_at_most + lost - outlook.expected_regret)
    return Regret(expected=factor * lost, at_most=factor * at_most, unit=unit, close=scale * CLOSE)


def _costs(request: PlanRequest, shape: RoundedShape, sizes: NetworkSizes) -> Costs:
    """What training takes; attention adds 12 L d N for each token, forward and backward."""
    params, data_tokens = int(sizes.total), request.data.tokens if request.data else None
    tokens = training_tokens(params, request.tokens_per_param, data_tokens)
    network = {"depth": shape.depth, "width": shape.width, "context": request.context}
    return Costs(
        tokens=tokens,
        tokens_per_param=request.trained_tokens(params),
        flops=float(FLOPS * params * tokens),
        attention_flops=12.0 * shape.depth * shape.width * request.context * tokens,
        memory=training_memory(
            params,
            layer_units=shape.depth * shape.width,
            context=request.context,
            outputs=request.vocabulary.size if request.vocabulary else 0,
            batch_sequences=BATCH_SEQUENCES,
        ),
        start=starting_point(request.block, **network, tokens=tokens),
    )


def _data_warnings(request: PlanRequest, best: BestShape) -> Iterator[str]:
    """What the data do not hold for the network, or are not."""
    data, usual = request.data, request.tokens_per_param
    if data is None:
        return
    each = request.trained_tokens(best.params.total)
    if each < usual:
        enough = float(f"{EPOCHS * data.tokens / usual:.2g}")
        told = {"tokens": data.tokens, "each": each, "usual": usual, "enough": enough}
        yield WARNINGS["few-data"].format(epochs=EPOCHS, **told)
    if data.family and request.family and data.family != request.family:
        yield f"the data look like {data.family}, and the family named is {request.family}"


def _depth_warnings(request: PlanRequest, best: BestShape, known: Knowledge) -> Iterator[str]:
    """Where nobody has looked, or theory says more than the runs."""
    depth, width = best.shape.depth, best.shape.width
    times = best.size / known.largest_of_all
    if times > BEYOND:
        said = f"an extrapolation: {times:,.0f}" if times > FAR else f"{times:.1f}"
        yield f"{said} times the largest network trained on such data"
    if best.size < LEAST_SIZE:
        yield WARNINGS["small"].format(least=LEAST_SIZE)
    if best.tokens > request.tokens_per_param:
        yield WARNINGS["few-tokens"].format(told=best.tokens)
    elif best.tokens > known.most_tokens * BEYOND:
        yield WARNINGS["many-tokens"].format(most=known.most_tokens)
    if request.objective == "masked":
        yield "the networks behind this are decoders; no encoder was measured"
    if depth >= known.deepest:
        yield f"no network of such data deeper than {known.deepest} layers was trained"
    least = math.log(width) / math.log(3)
    if depth < least:
        needed = "" if depth == request.max_depth else "; fewer trained better"
        yield f"theory asks for log3(width) = {least:.1f} layers or more{needed}"
