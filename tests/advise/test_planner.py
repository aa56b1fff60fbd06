"""The whole plan: repairs where the depth is absurd, warnings outside what was fitted."""

import shlex
from dataclasses import replace

import pytest

from archfit.advise.plan_request import DataFacts, TotalParams, TrainingFlops, VocabularySize
from archfit.advise.planner import make_plan
from archfit.spec import Patches, standard_architecture
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
@pytest.mark.parametrize("deepest", [6, 128])
def test_a_repair_removes_the_bottleneck_at_the_same_budget(vocab: int, deepest: int) -> None:
    asked = question(TotalParams(params=300_000_000), vocab=vocab, max_depth=deepest)
    plan = make_plan(asked)
    assert plan.repairs
    for repair in plan.repairs:
        assert repair.rank_limit >= repair.shape.width
        assert repair.params.total == pytest.approx(300e6, rel=0.1)
        assert shlex.split(repair.command)[0] == "archfit"


@pytest.mark.parametrize(
    ("kind", "repairs"),
    [
        ("fasta", {"k-mer", "convolution"}),
        ("text", {"bpe", "convolution"}),
        ("images", {"convolution"}),  # a patch of enough pixels leaves one position
        ("series", {"bins", "convolution"}),
    ],
)
def test_repairs_are_those_of_the_kind_of_data(kind: str, repairs: set[str]) -> None:
    facts = DataFacts(
        folder="d", source="s.xz", kind=kind, tokens=10**6, knows_path=False, cooccurrence_rank=5
    )
    plan = make_plan(replace(question(10**8, vocab=30), data=facts))
    assert {repair.kind for repair in plan.repairs} == repairs


def test_images_of_many_pixels_are_repaired_by_patches_of_them() -> None:
    facts = DataFacts(
        folder="d", source="s", kind="images", tokens=10**6, knows_path=False, cooccurrence_rank=5
    )
    asked = replace(question(10**8, vocab=30), data=facts, context=1 << 14)
    patch = make_plan(asked).repairs[1]
    assert patch.kind == "patch"
    assert "--patch 625 --patch-encoding scalar" in patch.command


def test_bytes_that_bpe_keeps_are_not_counted_as_tokens_that_occur() -> None:
    facts = DataFacts(
        folder="d", source="s", kind="abc", tokens=10**6, knows_path=False, cooccurrence_rank=5
    )
    asked = replace(question(50_000_000, vocab=81), data=facts)
    bpe = make_plan(asked).repairs[0]
    assert bpe.shape.width == 448
    assert "--vocab 1024" in bpe.command  # of 512 tokens, 336 occur in our sample of ABC tunes


def test_a_convolution_is_counted_as_it_is_trained() -> None:
    facts = DataFacts(
        folder="d", source="s", kind="bytes", tokens=10**6, knows_path=False, cooccurrence_rank=5
    )
    used = VocabularySize(size=257, used=80)
    asked = replace(question(5_000_000), data=facts, vocabulary=used)
    convolution = make_plan(asked).repairs[1]
    shape = convolution.shape
    standard = standard_architecture(
        depth=shape.depth, width=shape.width, heads=shape.heads, vocab=257, context=1024 // 4
    )
    trained = replace(standard, input=Patches(vocab=257, size=4, encoding="one-hot"))
    assert "--patch 4 " in convolution.command
    assert convolution.params.total == trained.params
    assert convolution.rank_limit == 4 * 80


def test_paths_in_commands_are_quoted_and_what_they_need_is_said() -> None:
    facts = DataFacts(
        folder="my data",
        source="a $b.abc",
        kind="abc",
        tokens=10**6,
        knows_path=False,
        cooccurrence_rank=5,
    )
    plan = make_plan(replace(question(10**8, vocab=30), data=facts))
    bpe, convolution = plan.repairs
    assert shlex.split(bpe.command)[3] == "a $b.abc"
    assert "data.json keeps the name alone" in bpe.needs
    assert shlex.split(convolution.command)[3] == "my data"
    assert "my data" in shlex.split(plan.check.command)
    assert plan.export_command is not None
    assert "my data" in shlex.split(plan.export_command)
    several = make_plan(replace(question(10**8, vocab=30), data=replace(facts, source=None)))
    assert "data prepare SOURCE" in several.repairs[0].command
    assert several.repairs[0].needs.startswith("SOURCE")


def test_a_rank_and_a_vocabulary_that_are_both_too_small_are_both_repaired() -> None:
    for rank in (20, 100):
        for repair in make_plan(question(10**8, vocab=33, rank=rank)).repairs:
            assert repair.rank_limit >= repair.shape.width
            assert "full embedding table" in repair.change


def test_a_repair_that_the_budget_does_not_pay_for_is_left_out() -> None:
    asked = question(TotalParams(params=5_000_000), rank=16, multiple_of=64)
    plan = make_plan(asked)  # a full table of 50,257 x 64 beside the head costs too much
    assert plan.bottleneck is not None
    assert plan.repairs == ()


def test_what_is_wider_than_its_rank_within_the_depth_allowed_has_a_bottleneck() -> None:
    free, capped = (question(10**8, vocab=800, max_depth=deepest) for deepest in (128, 6))
    assert make_plan(free).bottleneck is None
    plan = make_plan(capped)
    assert plan.shape.width > 800
    assert plan.bottleneck is not None
    assert "exceeds the rank limit of 800" in " ".join(plan.warnings)


def test_a_depth_that_is_capped_is_not_blamed_on_a_rank_that_suffices() -> None:
    (note,) = make_plan(question(10**8, max_depth=6)).warnings
    assert note == "the law asks for 24 layers; the shape keeps to --max-depth 6"


def test_a_larger_patch_keeps_its_proportions_and_channels() -> None:
    (patch,) = make_plan(question(10**10, vocab=None, patch=(2, 8, 8, 3))).repairs
    assert "--patch 5x18x18x3 " in patch.command


def test_a_factorised_table_is_exported_as_one() -> None:
    plan = make_plan(question(10**8, rank=64))
    assert plan.export_command is not None
    assert "--rank 64 --format hf-opt" in plan.export_command
    assert make_plan(question(vocab=None, patch=(64,))).export_command is None


def test_a_low_rank_is_repaired_by_a_full_table_and_a_small_patch_by_a_larger_one() -> None:
    (full,) = make_plan(question(10**9, vocab=50257, rank=64)).repairs
    assert full.kind == "full-rank"
    (patch,) = make_plan(question(10**10, vocab=None, patch=(16, 16, 3))).repairs
    assert patch.kind == "patch"
    assert patch.rank_limit >= patch.shape.width


def test_advice_for_vision_is_in_range_for_patches_of_images_alone() -> None:
    for patch, expected in (((16, 16, 3), True), ((64,), False)):
        for vocab in (None, 256):
            advice = make_plan(question(10**8, vocab=vocab, patch=patch)).advice
            (vision,) = [one for one in advice if one.name == "SoViT 2023"]
            assert vision.in_range == expected


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


def test_advisers_are_asked_for_the_size_that_is_trained() -> None:
    plan = make_plan(question(TotalParams(params=10**9), vocab=2))  # 12 d^2 < 13 d at width 1
    (log3,) = [advice for advice in plan.advice if advice.name == "log3 threshold"]
    assert log3.depth is not None
    assert log3.width is not None
    assert 12 * log3.depth * log3.width**2 == pytest.approx(plan.params.blocks, rel=0.05)


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


def test_outside_the_laws_depths_our_own_runs_are_quoted_where_there_are_any() -> None:
    (text,) = make_plan(question(2_200_000, vocab=2000)).warnings
    assert text.startswith("a depth of 4.6 lies outside the 6 to 48 layers")
    assert "archfit's own runs found 4 layers: the best of 1, 2, 4 and 8 layers at 2.21M" in text
    proteins = " ".join(make_plan(question(10**6, vocab=25)).warnings)
    assert "proteins and pixels: 32 layers of width 46 were worse than 4 of 128" in proteins
    for silent in (
        question(10**6, vocab=2000, rank=16),
        question(10**6, vocab=None, patch=(8,)),
        question(10**9, vocab=25),
        question(10**6, vocab=100),  # 8 layers: within the law's
        question(400_000, vocab=200),  # 1 layer: no depth that ours speak against
    ):
        assert "own runs" not in " ".join(make_plan(silent).warnings)


def test_the_expected_effect_is_that_of_a_text_shape_of_its_own_depth() -> None:
    shallow = make_plan(question(10**6, vocab=25))  # against 2.7 x 180
    deep = make_plan(question(125_000_000, vocab=257))
    for plan, basis in (
        (shallow, "between measurements of archfit"),
        (deep, "archfit's and the paper's measurements"),
    ):
        effect = plan.effect
        assert effect.saved is not None
        assert effect.saved.basis == basis
        assert effect.source == effect.saved.source
    assert shallow.text_shape.depth <= 8 < deep.text_shape.depth


def test_data_with_too_few_tokens_or_little_rank_are_warned_of() -> None:
    facts = DataFacts(
        folder="d", source="s", kind="text", tokens=10**6, knows_path=False, cooccurrence_rank=40
    )
    asked = replace(question(10**8), data=facts, vocabulary=VocabularySize(size=2000, used=1900))
    text = " ".join(make_plan(asked).warnings)
    assert "1,000,000 tokens for training" in text
    assert "differ in 40 dimensions" in text


def test_a_rule_that_asks_for_less_than_a_token_trains_on_one() -> None:
    plan = make_plan(replace(question(10**6), tokens_per_param=1e-300))
    assert plan.costs.tokens == 1
    assert plan.costs.start.learning_rate > 0


def test_memory_counts_the_logits_of_the_vocabulary() -> None:
    small, large = (make_plan(question(10**8, vocab=vocab)).costs.memory for vocab in (257, 50257))
    shape = make_plan(question(10**8, vocab=50257)).shape
    positions = 8 * 1024
    assert large.activations == positions * (34 * shape.depth * shape.width + 6 * 50257)
    assert small.batch_sequences == large.batch_sequences == 8


def test_latency_goes_with_depth_and_is_one_where_the_text_shape_is_planned() -> None:
    plan = make_plan(question(125_000_000, vocab=257))
    assert plan.costs.relative_latency == plan.shape.depth / plan.text_shape.depth
    assert plan.costs.relative_latency > 2
    text = make_plan(question(125_000_000))
    assert text.costs.relative_latency == pytest.approx(1, abs=0.1)
