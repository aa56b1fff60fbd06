"""The whole plan: repairs where the depth is absurd, warnings outside what was fitted."""

import json
import shlex
from dataclasses import replace

import pytest

from archfit.plan.document import plan_json
from archfit.plan.planner import make_plan
from archfit.plan.question import DataFacts, TotalParams, TrainingFlops, Vocabulary
from tests_plans import question


def test_text_at_100m_has_no_bottleneck_and_needs_no_repair() -> None:
    plan = make_plan(question(10**8))
    assert plan.bottleneck is None
    assert plan.repairs == ()
    assert plan.effect.loss_percent == (0.0, 3.0)


def test_bytes_at_100m_are_planned_deep_and_shown_repairs_second() -> None:
    plan = make_plan(question(10**8, vocab=257))
    assert abs(plan.shape.depth - 126) <= 2
    assert plan.shape.width == 256
    assert plan.bottleneck is not None
    assert not plan.leads_with_repairs
    assert {repair.kind for repair in plan.repairs} == {"bpe", "convolution"}  # no 256 letters


def test_amino_acids_at_650m_lead_with_repairs_and_keep_to_the_deepest_allowed() -> None:
    plan = make_plan(question(650_000_000, vocab=33, max_depth=64))
    assert plan.leads_with_repairs
    assert plan.shape.depth <= 64
    assert {repair.kind for repair in plan.repairs} == {"bpe", "k-mer", "convolution"}
    assert any("49,7" in warning for warning in plan.warnings)


@pytest.mark.parametrize("vocab", [5, 24, 33, 257])
def test_a_repair_removes_the_bottleneck_at_the_same_budget(vocab: int) -> None:
    asked = question(TotalParams(params=300_000_000), vocab=vocab)
    for repair in make_plan(asked).repairs:
        assert repair.rank_limit >= repair.shape.width
        assert repair.params.total == pytest.approx(300e6, rel=0.1)
        assert shlex.split(repair.command)[0] == "archfit"


@pytest.mark.parametrize(
    ("kind", "repairs"),
    [
        ("fasta", {"k-mer", "convolution"}),
        ("text", {"bpe", "convolution"}),
        ("images", {"convolution", "patch"}),
        ("series", {"bins", "convolution"}),
    ],
)
def test_repairs_are_those_of_the_kind_of_data(kind: str, repairs: set[str]) -> None:
    facts = DataFacts(folder="d", source="s.xz", kind=kind, tokens=10**6, cooccurrence_rank=5)
    plan = make_plan(replace(question(10**8, vocab=30), data=facts))
    assert {repair.kind for repair in plan.repairs} == repairs


def test_a_low_rank_is_repaired_by_a_full_table_and_a_small_patch_by_a_larger_one() -> None:
    (full,) = make_plan(question(10**9, vocab=50257, rank=64)).repairs
    assert full.kind == "full-rank"
    (patch,) = make_plan(question(10**10, vocab=None, patch=(16, 16, 3))).repairs
    assert patch.kind == "patch"
    assert patch.rank_limit >= patch.shape.width


def test_a_patch_limits_the_rank() -> None:
    plan = make_plan(question(10**10, vocab=None, patch=(16, 16, 3)))
    assert plan.embedding_rank == 768
    assert plan.bottleneck is not None
    assert plan.bottleneck.kind == "patch"


def test_a_total_budget_is_met_with_its_tables() -> None:
    plan = make_plan(question(TotalParams(params=10**9)))
    assert plan.params.total == pytest.approx(1e9, rel=0.03)
    assert plan.ideal.block_params < 0.9e9


def test_a_total_budget_pays_for_biases_and_norms_of_narrow_layers_too() -> None:
    asked = question(TotalParams(params=10**6), vocab=16, max_depth=1000)  # 13 / 12 d of a block
    plan = make_plan(asked)
    assert plan.params.total == pytest.approx(1e6 * (1 + plan.rounding_cost), rel=1e-9)
    assert plan.params.total == pytest.approx(1e6, rel=0.01)


def test_a_flops_budget_is_spent() -> None:
    plan = make_plan(question(TrainingFlops(flops=10**20, tokens_per_param=20)))
    assert plan.costs.flops == pytest.approx(1e20, rel=0.1)


@pytest.mark.parametrize("size", [12, 10**18])
def test_the_smallest_and_the_largest_budget_are_answered(size: int) -> None:
    plan = make_plan(question(size, multiple_of=1))
    assert plan.shape.block_params == pytest.approx(size, rel=1e-3)


def test_answers_outside_the_fitted_range_say_so() -> None:
    text = " ".join(make_plan(question(10**12, vocab=5)).warnings)
    assert "outside the 1M to 0.6B" in text
    assert "outside the 6 to 48 layers" in text
    assert "outside the 257 to 50,257" in text
    assert make_plan(question(10**8)).warnings == ()


def test_data_with_too_few_tokens_or_little_rank_are_warned_of() -> None:
    facts = DataFacts(folder="d", source="s", kind="text", tokens=10**6, cooccurrence_rank=40)
    asked = replace(question(10**8), data=facts, vocabulary=Vocabulary(size=2000, used=1900))
    text = " ".join(make_plan(asked).warnings)
    assert "1,000,000 tokens for training" in text
    assert "differ in 40 dimensions" in text


def test_the_document_is_json_and_has_the_keys_of_the_contract() -> None:
    document = json.loads(json.dumps(plan_json(make_plan(question(10**8, vocab=257)))))
    assert document.keys() >= {
        "recommended", "ideal", "bottleneck", "advisers", "repairs", "check", "warnings",
    }  # fmt: skip
    assert document["recommended"].keys() >= {
        "depth", "width", "heads", "head_dim", "vocab", "embedding_rank", "params",
    }  # fmt: skip
    assert document["recommended"]["params"].keys() >= {"blocks", "embedding", "total"}
    assert document["bottleneck"] == {"kind": "vocabulary", "limit": 257}
    assert document["ideal"]["depth"] == pytest.approx(126.17, abs=0.01)
    for advice in document["advisers"]:
        assert advice.keys() >= {"name", "depth", "width", "source", "in_range"}
