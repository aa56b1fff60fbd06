"""From a question to the shape on the law, and to one that hardware likes."""

import math
from dataclasses import dataclass

from archfit.plan.law import IdealShape, solve
from archfit.plan.question import BlockParams, Question
from archfit.plan.rounding import RoundedShape, rounded_shape
from archfit.spec.search import bisect_rising


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """Parameters by where they are."""

    blocks: int  # weight matrices, 12 L d^2
    biases_and_norms: int
    embedding: int  # tables of tokens and positions, and the head
    total: int


def cost(question: Question, shape: IdealShape) -> float:
    """What a shape takes of the budget."""
    if isinstance(question.budget, BlockParams):
        return shape.block_params
    small = _biases_and_norms(shape.depth, shape.width)
    return shape.block_params + small + question.table_params(shape.width)


def ideal_for(question: Question, rank_limit: float) -> IdealShape:
    """The shape on the law that the budget buys, for an input of at most this rank."""
    return solve(lambda shape: cost(question, shape), question.budget.params, rank_limit)


def within(question: Question, ideal: IdealShape) -> IdealShape:
    """The ideal shape, or the one of the deepest depth allowed that the budget buys."""
    if ideal.depth <= question.max_depth:
        return ideal

    def spent(width: float) -> float:
        return cost(question, IdealShape(depth=question.max_depth, width=width))

    width = bisect_rising(spent, question.budget.params, 0.0, 1e10)
    return IdealShape(depth=question.max_depth, width=width)


def rounded_for(question: Question, ideal: IdealShape) -> RoundedShape:
    """The nearest shape that hardware likes, of about the same cost."""

    def affordable_depth(width: int) -> float:
        without, layer = (cost(question, IdealShape(depth=depth, width=width)) for depth in (0, 1))
        return (question.budget.params - without) / (layer - without)

    return rounded_shape(
        within(question, ideal),
        affordable_depth,
        multiple_of=question.multiple_of,
        max_depth=question.max_depth,
    )


def parts(question: Question, shape: RoundedShape) -> Parts:
    """All parameters of a rounded shape, with the biases and norms of GPT-2."""
    small = round(_biases_and_norms(shape.depth, shape.width))
    tables = math.ceil(question.table_params(shape.width))
    return Parts(
        blocks=shape.block_params,
        biases_and_norms=small,
        embedding=tables,
        total=shape.block_params + small + tables,
    )


def _biases_and_norms(depth: float, width: float) -> float:
    biases = (3 + 2 + 4) * width  # query, key, value; two outputs; feed-forward
    norms = 4 * width
    return depth * (biases + norms) + 2 * width
