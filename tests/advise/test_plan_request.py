"""What is refused at the door, and what the input of a question allows."""

from dataclasses import replace

import pytest

from archfit.advise.plan_request import (
    BlockParams,
    DataFacts,
    TotalParams,
    TrainingFlops,
    VocabularySize,
)
from tests_plans import question


def test_a_flops_budget_follows_six_n_d() -> None:
    budget = TrainingFlops(flops=10**21, tokens_per_param=20)
    tokens = 20 * budget.params
    assert 6 * budget.params * tokens == pytest.approx(1e21)


@pytest.mark.parametrize("kind", [TotalParams, BlockParams])
def test_a_budget_over_ten_to_the_eighteen_is_refused(kind: type) -> None:
    kind(params=10**18)
    with pytest.raises(ValueError, match=r"over 10\^18"):
        kind(params=10**18 + 1)
    with pytest.raises(ValueError, match="buys nothing"):
        kind(params=0)


def test_a_flops_budget_is_refused_where_it_pays_for_over_ten_to_the_eighteen() -> None:
    TrainingFlops(flops=12 * 10**37, tokens_per_param=20)
    with pytest.raises(ValueError, match=r"over 10\^18 parameters"):
        TrainingFlops(flops=13 * 10**37, tokens_per_param=20)


def test_the_narrowest_place_limits_the_rank() -> None:
    assert question(vocab=500).limit.limit == 500
    assert question(vocab=500, rank=64).limit.kind == "rank"
    assert question(vocab=32, rank=64).limit.kind == "vocabulary"
    patches = question(vocab=None, patch=(16, 16, 3)).limit
    assert (patches.kind, patches.limit) == ("patch", 768)


def test_tokens_that_never_occur_do_not_count() -> None:
    used = replace(question(), vocabulary=VocabularySize(size=50257, used=80))
    assert used.limit.limit == 80


def test_tables_are_counted_full_factorised_and_tied() -> None:
    full = question(vocab=1000)
    assert full.sizes(1, 64).embedding == 1000 * 64 * 2 + 1024 * 64
    assert replace(full, is_tied=True).sizes(1, 64).embedding == 1000 * 64 + 1024 * 64
    narrow = question(vocab=1000, rank=8)
    assert narrow.sizes(1, 64).embedding == (1000 + 64) * 8 + 1000 * 64 + 1024 * 64


def test_more_used_tokens_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="used_vocab=300 is above vocab=257"):
        VocabularySize(size=257, used=300)


def test_a_tied_head_needs_tokens() -> None:
    with pytest.raises(ValueError, match="tied"):
        replace(question(vocab=None, patch=(4, 4)), is_tied=True)


def test_facts_of_data_are_plain_values() -> None:
    facts = DataFacts(
        folder="d", source="s", kind="text", tokens=5, knows_path=False, cooccurrence_rank=3
    )
    assert replace(question(), data=facts).data == facts
