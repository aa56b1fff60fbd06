"""Answers to many questions drawn at random agree with themselves and with the budget."""

import math
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from archfit.advise.budgets import Budget
from archfit.advise.plan_request import PlanRequest, VocabularySize
from archfit.advise.planner import Plan, make_plan
from archfit.advise.prior import known_families
from archfit.advise.shapes import LARGE, BudgetTooSmall, best_shape
from tests_plans import facts, question

QUESTIONS = 200
SIZES, VOCABS = (30_000, 2 * 10**9), (5, 50257)
Asked = tuple[PlanRequest, Plan]


def drawn(draw: random.Random, ends: tuple[int, int]) -> int:
    """Evenly in its logarithm."""
    return round(math.exp(draw.uniform(*map(math.log, ends))))


def budget_of(request: PlanRequest) -> int:
    assert isinstance(request.budget, Budget)
    return request.budget.amount


@pytest.fixture(scope="module")
def answers() -> Iterator[list[Asked]]:
    """Without repairs, which are questions of their own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("archfit.advise.planner.repairs_for", lambda *_: ())
        yield asked_at_random()


def asked_at_random() -> list[Asked]:
    draw, found = random.Random(0), list[Asked]()
    families = (*known_families(), None)
    while len(found) < QUESTIONS:
        budget = Budget(kind="params", amount=drawn(draw, SIZES))
        asked = question(budget, vocab=drawn(draw, VOCABS), family=draw.choice(families))
        try:
            found.append((asked, make_plan(asked)))
        except BudgetTooSmall:  # tables alone are more
            smallest = asked.sizes(1, 16).total
            assert smallest > budget.params
    return found


def test_every_family_and_order_of_size_is_among_the_questions(answers: list[Asked]) -> None:
    assert {asked.family for asked, _ in answers} == {*known_families(), None}
    assert {len(str(budget_of(asked))) for asked, _ in answers} == set(range(5, 11))


def test_the_budget_is_met_closely_where_blocks_are_most_of_it(answers: list[Asked]) -> None:
    for asked, plan in answers:
        budget, total = budget_of(asked), plan.params.total
        is_fine = budget >= 300_000 and plan.params.blocks >= total / 2
        assert total == pytest.approx(budget, rel=0.03 if is_fine else 0.08), asked


def test_heads_make_up_the_width_and_a_depth_has_at_least_twice_its_width(
    answers: list[Asked],
) -> None:
    for asked, plan in answers:
        shape = plan.shape
        assert shape.heads * shape.head_dim == shape.width, asked
        assert shape.depth <= shape.width / 2, asked


def test_large_networks_have_widths_and_heads_that_gpus_like(answers: list[Asked]) -> None:
    large = [(budget_of(asked), plan.shape) for asked, plan in answers if budget_of(asked) >= LARGE]
    assert all(shape.width % 8 == shape.head_dim % 8 == 0 for _, shape in large)
    assert all(shape.heads > 1 for _, shape in large if shape.width >= 128)
    heads = [shape.head_dim for size, shape in large if size >= 5 * LARGE]
    assert sum(size in (64, 128) for size in heads) > 0.7 * len(heads)


def test_the_depth_is_the_one_of_least_expected_loss(answers: list[Asked]) -> None:
    for asked, plan in answers:
        found = plan.best.outlook
        assert abs(plan.shape.depth - found.depth) <= max(1, 0.15 * found.depth), asked
        regrets = dict(found.regrets)
        assert regrets[found.depth] == found.expected_regret, asked
        assert found.expected_regret <= 1.05 * min(regrets.values()), asked  # drawn twice


def test_the_range_holds_the_depth_and_the_expected_regret_is_within_its_bound(
    answers: list[Asked],
) -> None:
    for asked, plan in answers:
        low, high = plan.depth_range
        assert 1 <= low <= plan.shape.depth <= high, asked
        assert 0 <= plan.regret.expected <= plan.regret.at_most, asked


def test_three_percent_more_of_the_budget_hardly_move_the_depth(answers: list[Asked]) -> None:
    for asked, plan in answers:
        more = replace(asked, budget=Budget(kind="params", amount=round(1.03 * budget_of(asked))))
        depth, other = plan.shape.depth, best_shape(more).shape.depth
        assert abs(other - depth) <= max(1, 0.2 * depth), asked


def test_small_data_are_read_four_times_and_ask_for_no_more_layers(answers: list[Asked]) -> None:
    draw = random.Random(1)
    for asked, usual in answers[::3]:
        budget, each = budget_of(asked), draw.uniform(1, 20)
        data = facts(tokens=math.ceil(each * budget / 4), family=asked.family)
        plan = make_plan(replace(asked, data=data))
        assert plan.costs.tokens == min(4 * data.tokens, 20 * plan.params.total), asked
        assert 1 <= plan.best.tokens <= 20, asked
        assert plan.best.outlook.depth <= 1.1 * usual.best.outlook.depth, asked
        assert plan.params.total == pytest.approx(budget, rel=0.08), asked
        shape, start = plan.shape, plan.costs.start
        fits = 200 * start.batch_tokens <= plan.costs.tokens
        assert fits or start.batch_tokens == asked.context, asked
        assert shape.head_dim % 8 == 0 or budget < LARGE, asked


@pytest.mark.parametrize("size", [10**6, 10**8])
def test_text_in_ascii_and_in_unicode_have_one_plan(size: int) -> None:
    """Rows of the table count, and not how many of them occur."""
    asked = question(Budget(kind="params", amount=size), vocab=257, family="text")
    few, all_ = (
        make_plan(replace(asked, vocabulary=VocabularySize(size=257, used=used)))
        for used in (100, 257)
    )
    assert few.best == all_.best
    assert few.depth_range == all_.depth_range
    assert few.regret == all_.regret
