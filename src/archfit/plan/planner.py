"""The answer: a shape, why, what others say, what would repair a bottleneck, how to test it."""

import shlex
from dataclasses import dataclass

from archfit.plan.advisers import Advice, Asked, all_advice
from archfit.plan.costs import (
    Costs,
    attention_flops,
    starting_point,
    training_flops,
    training_memory,
)
from archfit.plan.law import (
    FITTED_BLOCK_PARAMS,
    FITTED_DEPTHS,
    FITTED_VOCABS,
    IdealShape,
)
from archfit.plan.own_runs import SMALL_VOCABULARIES, best_depths_of_text, has_runs_of_size
from archfit.plan.question import Question, RankLimit
from archfit.plan.redundancy import Redundancy, rank_redundancy
from archfit.plan.repairs import Repair, repairs_for
from archfit.plan.rounding import RoundedShape
from archfit.plan.shapes import Parts, cost, ideal_for, parts, rounded_for, within

TEXT_KINDS = ("text", "bytes")
TEXT_VOCAB = 256  # from here on a vocabulary of unknown origin is taken for text


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """What the shape is expected to gain over the one that text models of this size have."""

    against: IdealShape
    saved: Redundancy | None  # of the parameters, where a bottleneck binds
    loss_percent: tuple[float, float] | None  # where none does
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """The experiment that could refute the plan."""

    sweep: str
    command: str
    refuted_if: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A shape for a budget and data, with everything that speaks for and against it."""

    question: Question
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
        return min(self.shape.width, self.question.limit.limit)

    @property
    def export_command(self) -> str | None:
        """What writes the config; None for patches, which no format has."""
        question, shape = self.question, self.shape
        if question.patch is not None:
            return None
        words = f"archfit export --depth {shape.depth} --width {shape.width} --heads {shape.heads}"
        data = question.data
        words += (
            f" --data {shlex.quote(data.folder)}"
            if data
            else f" --vocab {question.input_dimensions}"
        )
        words += " --tied" if question.is_tied else ""
        is_factorised = question.rank is not None and question.rank != shape.width
        words += (
            f" --rank {question.rank} --format hf-opt" if is_factorised else " --format hf-gpt2"
        )
        return f"{words} --context {question.context} --out model"

    @property
    def leads_with_repairs(self) -> bool:
        """Whether the law asks for more depth than anyone should train."""
        return bool(self.repairs) and self.ideal.depth > self.question.max_depth

    @property
    def rounding_cost(self) -> float:
        """What rounding added to the parameters that count, or took away, as a share."""
        wanted = cost(self.question, self.allowed)
        got = cost(self.question, IdealShape(depth=self.shape.depth, width=self.shape.width))
        return got / wanted - 1


def make_plan(question: Question) -> Plan:
    """The shape that the law gives, rounded, with other advice, repairs and costs."""
    limit = question.limit
    text_shape = within(question, ideal_for(question, float("inf")))
    ideal = ideal_for(question, limit.limit)
    allowed = within(question, ideal)
    shape = rounded_for(question, ideal)
    bottleneck = limit if limit.limit < text_shape.width else None
    sizes = parts(question, shape)
    asked = _asked(question, allowed)
    return Plan(
        question=question,
        ideal=ideal,
        allowed=allowed,
        shape=shape,
        params=sizes,
        text_shape=text_shape,
        bottleneck=bottleneck,
        advice=all_advice(asked),
        repairs=_repairs(question, text_shape) if bottleneck else (),
        effect=_effect(text_shape, bottleneck),
        costs=_costs(question, shape, sizes, text_shape),
        check=_check(question, bottleneck),
        warnings=(
            *_range_warnings(question, ideal, asked),
            *_depth_warnings(question, ideal, shape),
            *_data_warnings(question, shape, sizes),
        ),
    )


def _asked(question: Question, allowed: IdealShape) -> Asked:
    vocab = question.vocabulary.size if question.vocabulary else 0
    is_text = question.patch is None and vocab >= TEXT_VOCAB
    if question.data:
        is_text = question.data.kind in TEXT_KINDS
    has_full_table = question.patch is None and question.rank is None
    return Asked(
        block_params=allowed.block_params,
        rank_limit=question.limit.limit,
        vocab=vocab if has_full_table else 0,
        is_text=is_text,
        is_vision=question.patch is not None and len(question.patch) > 1,
    )


def _repairs(question: Question, text_shape: IdealShape) -> tuple[Repair, ...]:
    """Inputs of enough rank for the text shape, also after its width is rounded up."""
    rounded = rounded_for(question, text_shape)
    return repairs_for(question, max(text_shape.width, rounded.width))


def _effect(text_shape: IdealShape, bottleneck: RankLimit | None) -> Effect:
    if bottleneck is None:
        return Effect(
            against=text_shape,
            saved=None,
            loss_percent=(0.0, 3.0),
            source="no bottleneck: shapes of one size lie within about 3 % of loss of each other "
            "over a wide range (Kaplan 2020)",
        )
    saved = rank_redundancy(bottleneck.limit, text_shape.width, text_shape.depth)
    return Effect(against=text_shape, saved=saved, loss_percent=None, source=saved.source)


def _costs(question: Question, shape: RoundedShape, sizes: Parts, text: IdealShape) -> Costs:
    tokens = max(1, round(question.tokens_per_param * sizes.total))
    flops = training_flops(sizes.total, tokens)
    vocab = question.vocabulary.size if question.vocabulary else 0
    return Costs(
        tokens=tokens,
        flops=flops,
        attention_flops=attention_flops(
            depth=shape.depth, width=shape.width, context=question.context, tokens=tokens
        ),
        memory=training_memory(
            sizes.total,
            depth=shape.depth,
            width=shape.width,
            context=question.context,
            vocab=vocab,
        ),
        relative_latency=shape.depth / text.depth,
        start=starting_point(flops),
    )


def _check(question: Question, bottleneck: RankLimit | None) -> Check:
    folder = shlex.quote(question.data.folder) if question.data else "DATA"
    sweeps = {"vocabulary": "repairs", "patch": "repairs", "rank": "wies-lowrank"}
    name = sweeps[bottleneck.kind] if bottleneck else "levine-depth"
    refuted = (
        "a text-shaped network of equal size reaches the loss of the recommended one"
        if bottleneck
        else "a shallower or deeper network of equal size has the lower loss"
    )
    return Check(
        sweep=name,
        command=f"archfit sweep {name} --scale small --data {folder} --out check",
        refuted_if=refuted,
    )


def _depth_warnings(question: Question, ideal: IdealShape, shape: RoundedShape) -> list[str]:
    if ideal.depth <= question.max_depth:
        return []
    capped = (
        f"the law asks for {ideal.depth:,.0f} layers; the shape keeps to --max-depth "
        f"{question.max_depth}"
    )
    limit = question.limit.limit
    if limit < shape.width:
        capped += f", so that its width of {shape.width:,} exceeds the rank limit of {limit:,}"
    return [capped]


def _range_warnings(question: Question, ideal: IdealShape, asked: Asked) -> list[str]:
    least, most = FITTED_BLOCK_PARAMS
    found = []
    if not least <= ideal.block_params <= most:
        found.append(
            f"{ideal.block_params:.3g} block parameters lie outside the 1M to 0.6B that the law "
            "was fitted to"
        )
    if not FITTED_DEPTHS[0] <= ideal.depth <= FITTED_DEPTHS[1]:
        found.append(
            f"a depth of {ideal.depth:,.1f} lies outside the 6 to 48 layers that the law was "
            f"fitted to{_found_there(ideal, asked)}"
        )
    vocabulary = question.vocabulary
    if vocabulary and not FITTED_VOCABS[0] <= vocabulary.size <= FITTED_VOCABS[1]:
        found.append(
            f"a vocabulary of {vocabulary.size:,} lies outside the 257 to 50,257 that Wies et al. "
            "trained"
        )
    return found


def _found_there(ideal: IdealShape, asked: Asked) -> str:
    """What our own runs say about a depth that the law was not fitted to; empty without any."""
    if asked.is_text:
        found = best_depths_of_text(asked.block_params, asked.vocab)
        return "" if found is None else f"; archfit's own runs found {found}"
    is_seen = asked.vocab > 0 and has_runs_of_size(asked.block_params)
    return f"; {SMALL_VOCABULARIES}" if is_seen and ideal.depth > FITTED_DEPTHS[1] else ""


def _data_warnings(question: Question, shape: RoundedShape, sizes: Parts) -> list[str]:
    data = question.data
    if data is None:
        return []
    found = []
    wanted = question.tokens_per_param * sizes.total
    if data.tokens < wanted:
        found.append(
            f"the data has {data.tokens:,} tokens for training, {data.tokens / wanted:.1%} of the "
            f"{wanted:,.0f} that {question.tokens_per_param:g} a parameter ask for; plan for "
            "fewer parameters, or expect to repeat the data"
        )
    if data.cooccurrence_rank < min(shape.width, question.limit.limit):
        found.append(
            f"neighbouring tokens of this data differ in {data.cooccurrence_rank:,} dimensions "
            f"(99.9 % of their co-occurrence), fewer than the embedding rank of "
            f"{min(shape.width, question.limit.limit):,}; if the data needs no more, a "
            f"factorised embedding (--rank {data.cooccurrence_rank}) would do"
        )
    return found
