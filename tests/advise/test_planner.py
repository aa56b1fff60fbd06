"""The whole plan: repairs where the input has little rank, warnings where nobody has looked."""

import math
import shlex
from dataclasses import replace

import pytest

from archfit.advise.budgets import Budget
from archfit.advise.ladder import LadderRun, knowledge
from archfit.advise.plan_request import VocabularySize
from archfit.advise.planner import make_plan
from archfit.advise.prior import LAW, family_prior
from archfit.spec import Patches, standard_architecture
from tests_plans import facts, question


def test_text_at_100m_has_no_bottleneck_and_needs_no_repair() -> None:
    plan = make_plan(question(10**8))
    assert plan.bottleneck is None
    assert plan.repairs == ()


def test_bytes_at_100m_are_wider_than_their_rank_and_shown_repairs() -> None:
    plan = make_plan(question(10**8, vocab=257))
    assert plan.shape.width > 257
    assert plan.bottleneck is not None
    assert plan.embedding_rank == 257
    assert {repair.kind for repair in plan.repairs} == {"bpe", "convolution"}  # no 256 letters


def test_sequences_of_letters_are_not_merged_as_if_they_were_text() -> None:
    asked = replace(question(35 * 10**6, vocab=25), family="protein")
    assert {repair.kind for repair in make_plan(asked).repairs} == {"k-mer", "convolution"}


@pytest.mark.parametrize("vocab", [5, 33, 257])
@pytest.mark.parametrize("deepest", [6, 128])
def test_a_repair_removes_the_bottleneck_at_the_same_budget(vocab: int, deepest: int) -> None:
    asked = question(Budget(kind="params", amount=300_000_000), vocab=vocab, max_depth=deepest)
    plan = make_plan(asked)
    assert plan.repairs
    for repair in plan.repairs:
        assert repair.rank_limit >= repair.shape.width
        assert repair.shape.depth <= deepest
        assert repair.params.total == pytest.approx(300e6, rel=0.05)
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
    plan = make_plan(replace(question(10**8, vocab=30), data=facts(kind)))
    assert {repair.kind for repair in plan.repairs} == repairs


def test_images_of_many_pixels_are_repaired_by_patches_of_them() -> None:
    asked = replace(question(10**8, vocab=30), data=facts("images"), context=1 << 14)
    patch = make_plan(asked).repairs[1]
    assert patch.kind == "patch"
    side = round(patch.rank_limit**0.5)
    assert side * side == patch.rank_limit >= patch.shape.width > 0.8 * patch.rank_limit
    assert f"--patch {side * side} --patch-encoding scalar" in patch.command


def test_bytes_that_bpe_keeps_are_not_counted_as_tokens_that_occur() -> None:
    asked = replace(question(50_000_000, vocab=81, max_depth=20), data=facts("abc"))
    bpe = make_plan(asked).repairs[0]
    assert bpe.rank_limit == bpe.size - 256 >= bpe.shape.width
    assert f"--vocab {bpe.size} " in bpe.command


def test_a_convolution_is_counted_as_it_is_trained() -> None:
    used = VocabularySize(size=257, used=80)
    asked = replace(question(5_000_000), data=facts("bytes"), vocabulary=used)
    convolution = make_plan(asked).repairs[1]
    shape, size = convolution.shape, convolution.size
    standard = standard_architecture(
        depth=shape.depth, width=shape.width, heads=shape.heads, vocab=257, context=1024 // size
    )
    trained = replace(standard, input=Patches(vocab=257, size=size, encoding="one-hot"))
    assert f"--patch {size} " in convolution.command
    assert "--block" not in convolution.command
    of_llama = make_plan(replace(asked, block="llama")).repairs[1]
    assert f"--patch {of_llama.size} --block llama " in of_llama.command
    assert convolution.params.total == trained.params
    assert convolution.rank_limit == size * 80


def test_a_convolution_that_makes_room_for_more_width_has_the_rank_for_it() -> None:
    """Fewer positions take less of the budget."""
    asked = replace(
        question(Budget(kind="params", amount=10**6), vocab=5, family="text"), context=4096
    )
    plan = make_plan(asked)
    convolution = plan.repairs[-1]
    assert convolution.kind == "convolution"
    assert plan.shape.width < convolution.shape.width <= convolution.rank_limit


def test_paths_in_commands_are_quoted_and_what_they_need_is_said() -> None:
    data = facts("abc", folder="my data", source="a $b.abc")
    plan = make_plan(replace(question(10**8, vocab=30), data=data))
    bpe, convolution = plan.repairs
    assert shlex.split(bpe.command)[3] == "a $b.abc"
    assert "data.json keeps the name alone" in bpe.needs
    assert shlex.split(convolution.command)[3] == "my data"
    assert plan.export_command is not None
    assert "my data" in shlex.split(plan.export_command)
    several = make_plan(replace(question(10**8, vocab=30), data=replace(data, source=None)))
    assert "data prepare SOURCE" in several.repairs[0].command
    assert several.repairs[0].needs.startswith("SOURCE")


def test_a_rank_and_a_vocabulary_that_are_both_too_small_are_both_repaired() -> None:
    for rank in (20, 100):
        repairs = make_plan(question(10**8, vocab=33, rank=rank)).repairs
        assert repairs
        for repair in repairs:
            assert repair.rank_limit >= repair.shape.width
            assert "full embedding table" in repair.change


def test_a_repair_that_the_budget_does_not_pay_for_is_left_out() -> None:
    asked = question(Budget(kind="params", amount=5_000_000), rank=16, multiple_of=64)
    plan = make_plan(asked)  # a full table of 50,257 x 64 beside the head costs too much
    assert plan.bottleneck is not None
    assert plan.repairs == ()


def test_a_larger_patch_keeps_its_proportions_and_channels() -> None:
    (patch,) = make_plan(question(10**10, vocab=None, patch=(2, 8, 8, 3))).repairs
    words = patch.command.split()
    time, height, width, channels = map(int, words[words.index("--patch") + 1].split("x"))
    assert (height, channels) == (width, 3)
    assert height / time == pytest.approx(4, rel=0.2)
    assert time * height * width * channels == patch.rank_limit >= patch.shape.width


def test_a_low_rank_is_repaired_by_a_full_table_and_a_small_patch_by_a_larger_one() -> None:
    (full,) = make_plan(question(10**9, vocab=50257, rank=64)).repairs
    assert full.kind == "full-rank"
    (patch,) = make_plan(question(10**10, vocab=None, patch=(16, 16, 3))).repairs
    assert patch.kind == "patch"
    assert patch.rank_limit >= patch.shape.width


def test_a_factorised_table_is_exported_as_one_and_patches_are_not() -> None:
    plan = make_plan(question(10**8, rank=64))
    assert plan.export_command is not None
    assert "--rank 64 --format hf-opt" in plan.export_command
    assert make_plan(question(vocab=None, patch=(64,))).export_command is None


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


def test_the_papers_law_is_asked_for_what_tables_leave() -> None:
    plan = make_plan(question(Budget(kind="params", amount=10**9)))
    assert plan.ideal.block_params < 0.95e9
    assert make_plan(question(10**9)).ideal.block_params == pytest.approx(1e9)


def test_advisers_are_asked_for_the_size_that_is_trained() -> None:
    plan = make_plan(question(Budget(kind="params", amount=10**7), vocab=20000))
    (log3,) = [advice for advice in plan.advice if advice.name == "log3 threshold"]
    assert log3.depth is not None
    assert log3.width is not None
    assert 12 * log3.depth * log3.width**2 == pytest.approx(plan.params.blocks)


def test_a_flops_budget_is_spent() -> None:
    plan = make_plan(question(Budget(kind="flops", amount=10**20, tokens_per_param=20)))
    assert plan.costs.flops == pytest.approx(1e20, rel=0.06)


def test_the_largest_budget_is_answered_and_called_an_extrapolation() -> None:
    plan = make_plan(question(10**18))
    assert plan.shape.block_params == pytest.approx(10**18, rel=1e-3)
    assert any("an extrapolation: " in warning for warning in plan.warnings)


def test_where_networks_of_such_size_were_trained_nothing_is_warned_of() -> None:
    asked = question(Budget(kind="params", amount=10**8), vocab=257, family="text")
    assert make_plan(asked).warnings == ()


def test_a_depth_that_theory_would_not_stop_at_is_said_with_what_theory_says() -> None:
    plan = make_plan(question(10**8, max_depth=6))
    least = math.log(plan.shape.width, 3)
    assert f"theory asks for log3(width) = {least:.1f} layers or more" in plan.warnings
    free = make_plan(question(10**6, vocab=33, family="protein"))  # nobody asked for few layers
    least = math.log(free.shape.width, 3)
    assert free.shape.depth < least
    words = f"theory asks for log3(width) = {least:.1f} layers or more; fewer trained better"
    assert words in free.warnings


def test_what_a_limit_of_depth_loses_counts_as_regret() -> None:
    free, limited = (
        make_plan(
            question(Budget(kind="params", amount=10**8), vocab=257, family="text", max_depth=depth)
        )
        for depth in (100, 2)
    )
    assert limited.shape.depth == 2 < free.shape.depth
    assert limited.regret.expected > 5 * free.regret.expected
    assert limited.best.outlook.low == pytest.approx(limited.best.outlook.high)


def test_no_plan_is_deeper_than_networks_of_its_family_and_that_is_regretted_too() -> None:
    plan = make_plan(question(Budget(kind="params", amount=10**9), vocab=8000, family="code"))
    assert plan.shape.depth == family_prior("code").deepest
    assert plan.regret.expected > 0.001


def test_an_encoder_and_a_family_that_the_data_are_not_are_warned_of() -> None:
    asked = replace(question(10**7, vocab=33, family="DNA"), objective="masked")
    warnings = make_plan(replace(asked, data=replace(facts(), family="protein"))).warnings
    decoders = "the networks behind this are decoders; no encoder was measured"
    assert decoders in warnings
    own = LadderRun(size=10**6, depth=8, seed=0, params=10**6, bits=3.0, tokens_per_param=20.0)
    measured = make_plan(asked, knowledge(family_prior("DNA"), [own]))
    assert decoders in measured.warnings  # ladders are of decoders, too
    assert "the data look like protein, and the family named is DNA" in warnings


def test_the_config_of_an_encoder_has_a_row_for_its_mask() -> None:
    asked = replace(question(10**7, vocab=33), objective="masked", data=facts())
    words = make_plan(asked).export_command
    assert words is not None
    assert f" --data {facts().folder} --vocab 33 --format hf-esm " in words
    causal = make_plan(replace(asked, objective="causal")).export_command
    assert causal is not None
    assert "--vocab" not in causal


def test_a_plan_says_what_it_rests_on() -> None:
    text, unknown = (make_plan(question(10**7, family=family)).basis for family in ("text", None))
    assert text.source == unknown.source == "prior"
    assert (text.family, unknown.family) == ("text", None)
    assert text.runs > 0
    assert set(text.kinds) > {"english, bytes"}
    assert "english, bytes" in unknown.kinds
    assert text.largest > 10**8  # public grids


def test_a_plan_after_a_ladder_rests_on_its_runs() -> None:
    runs = [
        LadderRun(size=250_000, depth=depth, seed=0, params=250_000, bits=2.0 + 0.05 * abs(at))
        for at, depth in enumerate((2, 4, 8, 16), start=-1)
    ]
    asked = question(Budget(kind="params", amount=10**6), vocab=30, family="protein")
    plan = make_plan(asked, knowledge(family_prior("protein"), runs))
    assert (plan.basis.source, plan.basis.runs, plan.basis.largest) == ("ladder", 4, 250_000)


def test_a_regret_is_in_nats_where_bytes_per_token_are_not_known() -> None:
    assert make_plan(question(10**8)).regret.unit == "nats per token"
    assert make_plan(question(10**8, vocab=257)).regret.unit == "bits per byte"
    assert make_plan(replace(question(10**8), data=facts())).regret.unit == "bits per byte"


def test_data_with_too_few_tokens_are_warned_of_with_what_they_feed() -> None:
    few, many = (
        make_plan(replace(question(10**7, vocab=2000), data=facts(tokens=tokens))).warnings
        for tokens in (10**6, 10**9)
    )
    assert few[0] == (
        "few data: 1,000,000 tokens, 0.33 per parameter at 4 epochs, where 20 are usual; they suit "
        "about 200,000 parameters"
    )
    assert not any("few data" in warning for warning in many)


def test_a_rule_that_asks_for_less_than_a_token_trains_on_one() -> None:
    plan = make_plan(replace(question(10**6), tokens_per_param=1e-300))
    assert plan.costs.tokens == 1
    assert plan.costs.start.learning_rate > 0


def test_memory_counts_the_logits_of_the_vocabulary() -> None:
    plan = make_plan(question(10**8, vocab=50257))
    positions = 8 * 1024
    shape, memory = plan.shape, plan.costs.memory
    assert memory.activations == positions * (34 * shape.depth * shape.width + 6 * 50257)
    assert memory.batch_sequences == 8


def test_a_range_is_named_only_where_a_depth_is_likely_enough() -> None:
    unsure = make_plan(
        question(Budget(kind="params", amount=5 * 10**6), vocab=257, family="signal")
    )
    assert unsure.regret.expected > unsure.regret.close
    assert unsure.depth_range == (unsure.shape.depth, unsure.shape.depth)
    sure = make_plan(question(Budget(kind="params", amount=10**8), family="text"))
    assert sure.depth_range[0] < sure.shape.depth < sure.depth_range[1]


def test_networks_are_counted_and_what_a_law_stands_for_is_not() -> None:
    known = family_prior("text", "gpt2")
    trained = sum(len(kind.rows) for kind in known.kinds if kind.name != LAW)
    assert trained < sum(len(kind.rows) for kind in known.kinds)
    assert make_plan(question(10**8, family="text")).basis.runs == trained


@pytest.mark.parametrize(
    ("params", "tokens", "said"),
    [
        (30_000, 20.0, "smaller than all networks that tell of depth"),
        (10**6, 2.0, "what fewer do to depth is not known"),
        (10**7, 1e5, "networks on such data had at most 207 tokens per parameter"),
        (10**8, 20.0, None),
    ],
)
def test_what_lies_beyond_all_runs_is_said(params: int, tokens: float, said: str | None) -> None:
    asked = question(Budget(kind="params", amount=params), vocab=257, family="text")
    asked = replace(asked, tokens_per_param=tokens)
    warnings = [each for each in make_plan(asked).warnings if not each.startswith("theory")]
    assert (said in warnings[0]) if said else not warnings


def test_rounding_makes_no_network_deeper_than_half_its_width() -> None:
    for params in range(400_000, 3_000_000, 200_000):
        asked = question(Budget(kind="params", amount=params), vocab=257, family="signal")
        shape = make_plan(replace(asked, block="llama")).shape
        assert shape.depth <= shape.width / 2
