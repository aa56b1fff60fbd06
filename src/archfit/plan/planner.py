"""The answer: a shape, why, what others say, what would repair a bottleneck, how to test it."""

import shlex
from dataclasses import dataclass

from archfit.plan.advisers import (
    SMALL_VOCABULARIES,
    Advice,
    NetworkFacts,
    all_advice,
    best_depths_of_text,
    has_runs_of_size,
)
from archfit.plan.law import FITTED_BLOCK_PARAMS, FITTED_DEPTHS, FITTED_VOCABS, IdealShape
from archfit.plan.redundancy import Redundancy, rank_redundancy
from archfit.plan.repairs import Repair, repairs_for
from archfit.plan.request import FLOPS, PlanRequest, RankLimit
from archfit.plan.shapes import RoundedShape, cost, ideal_for, parts, rounded_for, within
from archfit.spec.counting import Parts, TrainingMemory, training_memory
from archfit.spec.data_kinds import DATA_KINDS

TEXT_VOCAB = 256  # from here on a vocabulary of unknown origin is taken for text
BATCH_SEQUENCES = 8  # for which activations are stated
RATE_RANGE = (1e17, 2e19)  # FLOPs that the rules for rate and batch were fitted at


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """What the shape is expected to gain over the one that text models of this size have."""

    against: IdealShape
    saved: Redundancy | None  # of the parameters, where a bottleneck binds
    loss_percent: tuple[float, float] | None  # where none does
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A learning rate and batch to begin a search at, not to end it."""

    learning_rate: float
    batch_tokens: int
    source: str
    in_range: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """What a training run of this shape takes."""

    tokens: int
    flops: float  # 6 N D
    attention_flops: float  # for scores and values, on top
    memory: TrainingMemory
    relative_latency: float  # layers one after the other, over those of the text shape
    start: Start


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """The experiment that could refute the plan."""

    sweep: str
    command: str
    refuted_if: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A shape for a budget and data, with everything that speaks for and against it."""

    request: PlanRequest
    ideal: IdealShape  # on the law, whatever the depth
    allowed: IdealShape  # within --max-depth
    shape: RoundedShape
    params: Parts
    text_shape: IdealShape  # on the law without a limit of rank, within --max-depth
    bottleneck: RankLimit | None
    advice: tuple[Advice, ...]
    repairs: tuple[Repair, ...]
    effect: Effect
    costs: Costs
    check: Check
    warnings: tuple[str, ...]

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
        data, vocab = request.data, f" --vocab {request.input_dimensions}"
        words += f" --data {shlex.quote(data.folder)}" if data else vocab
        words += " --tied" if request.is_tied else ""
        words += f" --rank {request.rank}" if name == "hf-opt" else ""
        return f"{words} --format {name} --context {request.context} --out model"

    @property
    def export_format(self) -> str | None:
        """The format of Hugging Face that has such a network; none has patches."""
        request = self.request
        formats = {"hf-gpt2": ("gpt2", "causal"), "hf-llama": ("llama", "causal")}
        formats["hf-esm"] = ("gpt2", "masked")
        able = [
            name for name, kind in formats.items() if kind == (request.block, request.objective)
        ]
        if request.rank is not None and request.rank != self.shape.width:
            able = ["hf-opt"] if able == ["hf-gpt2"] else []
        return able[0] if able and request.patch is None else None

    @property
    def leads_with_repairs(self) -> bool:
        """Whether the law asks for more depth than anyone should train."""
        return bool(self.repairs) and self.ideal.depth > self.request.max_depth

    @property
    def rounding_cost(self) -> float:
        """What rounding added to the parameters that count, or took away, as a share."""
        wanted = cost(self.request, self.allowed.depth, self.allowed.width)
        got = cost(self.request, self.shape.depth, self.shape.width)
        return got / wanted - 1


def make_plan(request: PlanRequest) -> Plan:
    """The shape that the law gives, rounded, with other advice, repairs and costs."""
    limit = request.limit
    text_shape = within(request, ideal_for(request, float("inf")))
    ideal = ideal_for(request, limit.limit)
    allowed = within(request, ideal)
    shape = rounded_for(request, ideal)
    bottleneck = limit if limit.limit < text_shape.width else None
    enough_rank = max(text_shape.width, rounded_for(request, text_shape).width)
    sizes = parts(request, shape)
    facts = _network_facts(request, allowed)
    return Plan(
        request=request,
        ideal=ideal,
        allowed=allowed,
        shape=shape,
        params=sizes,
        text_shape=text_shape,
        bottleneck=bottleneck,
        advice=all_advice(facts),
        repairs=repairs_for(request, enough_rank) if bottleneck else (),
        effect=_effect(text_shape, bottleneck),
        costs=_costs(request, shape, sizes, text_shape),
        check=_check(request, bottleneck),
        warnings=(
            *_range_warnings(request, ideal, facts),
            *_shape_warnings(request, ideal, shape, sizes),
        ),
    )


def _network_facts(request: PlanRequest, allowed: IdealShape) -> NetworkFacts:
    vocab = request.vocabulary.size if request.vocabulary else 0
    is_text = request.patch is None and vocab >= TEXT_VOCAB
    if request.data:
        kind = DATA_KINDS.get(request.data.kind)
        is_text = kind is not None and kind.is_prose
    has_full_table = request.patch is None and request.rank is None
    return NetworkFacts(
        block_params=allowed.block_params,
        rank_limit=request.limit.limit,
        vocab=vocab if has_full_table else 0,
        is_text=is_text,
        is_vision=request.patch is not None and len(request.patch) > 1,
    )


def _effect(text_shape: IdealShape, bottleneck: RankLimit | None) -> Effect:
    if bottleneck is None:
        source = (
            "no bottleneck: shapes of one size lie within about 3 % of loss of each other over a "
            "wide range (Kaplan 2020)"
        )
        return Effect(against=text_shape, saved=None, loss_percent=(0.0, 3.0), source=source)
    saved = rank_redundancy(bottleneck.limit, text_shape.width, text_shape.depth)
    return Effect(against=text_shape, saved=saved, loss_percent=None, source=saved.source)


def _costs(request: PlanRequest, shape: RoundedShape, sizes: Parts, text: IdealShape) -> Costs:
    """What training takes; attention adds 12 L d N for each token, forward and backward."""
    tokens = max(1, round(request.tokens_per_param * sizes.total))
    flops = float(FLOPS * sizes.total * tokens)
    return Costs(
        tokens=tokens,
        flops=flops,
        attention_flops=12.0 * shape.depth * shape.width * request.context * tokens,
        memory=training_memory(
            sizes.total,
            layer_units=shape.depth * shape.width,
            context=request.context,
            outputs=request.vocabulary.size if request.vocabulary else 0,
            batch_sequences=BATCH_SEQUENCES,
        ),
        relative_latency=shape.depth / text.depth,
        start=starting_point(flops),
    )


def starting_point(flops: float) -> Start:
    """Peak learning rate 0.3118 C^-0.125 and batch 0.292 C^0.3271 tokens (DeepSeek LLM 2024)."""
    return Start(
        learning_rate=float(f"{0.3118 * flops**-0.1250:.2g}"),
        batch_tokens=max(1, int(float(f"{0.2920 * flops**0.3271:.2g}"))),
        source="DeepSeek LLM, arXiv:2401.02954, eq. 1; fitted at 1e17 to 2e19 FLOPs on text",
        in_range=RATE_RANGE[0] <= flops <= RATE_RANGE[1],
    )


def _check(request: PlanRequest, bottleneck: RankLimit | None) -> Check:
    folder = shlex.quote(request.data.folder) if request.data else "DATA"
    name, refuted = "levine-depth", "a shallower or deeper network of equal size has the lower loss"
    if bottleneck:
        name = "wies-lowrank" if bottleneck.kind == "rank" else "repairs"
        refuted = "a text-shaped network of equal size reaches the loss of the recommended one"
    command = f"archfit sweep {name} --scale small --data {folder} --out check"
    return Check(sweep=name, command=command, refuted_if=refuted)


def _range_warnings(request: PlanRequest, ideal: IdealShape, facts: NetworkFacts) -> list[str]:
    found = []
    if not FITTED_BLOCK_PARAMS[0] <= ideal.block_params <= FITTED_BLOCK_PARAMS[1]:
        found.append(
            f"{ideal.block_params:.3g} block parameters lie outside the 1M to 0.6B that the law "
            "was fitted to"
        )
    if not FITTED_DEPTHS[0] <= ideal.depth <= FITTED_DEPTHS[1]:
        found.append(
            f"a depth of {ideal.depth:,.1f} lies outside the 6 to 48 layers that the law was "
            f"fitted to{_found_there(ideal, facts)}"
        )
    vocabulary = request.vocabulary
    if vocabulary and not FITTED_VOCABS[0] <= vocabulary.size <= FITTED_VOCABS[1]:
        found.append(
            f"a vocabulary of {vocabulary.size:,} lies outside the 257 to 50,257 that Wies et al. "
            "trained"
        )
    return found


def _found_there(ideal: IdealShape, facts: NetworkFacts) -> str:
    """What our own runs say about a depth that the law was not fitted to; empty without any."""
    if facts.is_text:
        found = best_depths_of_text(facts.block_params, facts.vocab)
        return "" if found is None else f"; archfit's own runs found {found}"
    is_seen = facts.vocab > 0 and has_runs_of_size(facts.block_params)
    return f"; {SMALL_VOCABULARIES}" if is_seen and ideal.depth > FITTED_DEPTHS[1] else ""


def _shape_warnings(
    request: PlanRequest, ideal: IdealShape, shape: RoundedShape, sizes: Parts
) -> list[str]:
    """What the shape gives up of the law, and what the data does not hold for it."""
    found, data, limit = [], request.data, request.limit.limit
    if ideal.depth > request.max_depth:
        wide = f", so that its width of {shape.width:,} exceeds the rank limit of {limit:,}"
        found.append(
            f"the law asks for {ideal.depth:,.0f} layers; the shape keeps to --max-depth "
            f"{request.max_depth}{wide if limit < shape.width else ''}"
        )
    wanted, rank = request.tokens_per_param * sizes.total, min(shape.width, limit)
    if data and data.tokens < wanted:
        found.append(
            f"the data has {data.tokens:,} tokens for training, {data.tokens / wanted:.1%} of the "
            f"{wanted:,.0f} that {request.tokens_per_param:g} a parameter ask for; plan for "
            "fewer parameters, or expect to repeat the data"
        )
    if data and data.cooccurrence_rank < rank:
        found.append(
            f"neighbouring tokens of this data differ in {data.cooccurrence_rank:,} dimensions "
            f"(99.9 % of their co-occurrence), fewer than the embedding rank of {rank:,}; if the "
            f"data needs no more, a factorised embedding (--rank {data.cooccurrence_rank}) would do"
        )
    return found
