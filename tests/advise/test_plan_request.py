"""What is refused at the door, what a budget buys, and what the input of a question allows."""

import re
from dataclasses import replace

import pytest

from archfit.advise.budgets import Budget, Kind, TrainingMinutes, known_speed
from archfit.advise.plan_request import PlanOptions, VocabularySize
from archfit.advise.planner import Plan, make_plan
from archfit.spec.errors import InvalidValue
from archfit.spec.rates import EPOCHS
from tests_plans import facts, question


def test_a_flops_budget_follows_six_n_d() -> None:
    budget = Budget(kind="flops", amount=10**21, tokens_per_param=20)
    tokens = 20 * budget.params
    assert 6 * budget.params * tokens == pytest.approx(1e21)


@pytest.mark.parametrize("kind", ["params", "block_params"])
def test_a_budget_over_ten_to_the_eighteen_is_refused(kind: Kind) -> None:
    Budget(kind=kind, amount=10**18)
    with pytest.raises(ValueError, match=r"over 10\^18"):
        Budget(kind=kind, amount=10**18 + 1)
    with pytest.raises(ValueError, match="buys nothing"):
        Budget(kind=kind, amount=0)


def test_a_flops_budget_is_refused_where_it_pays_for_over_ten_to_the_eighteen() -> None:
    Budget(kind="flops", amount=12 * 10**37, tokens_per_param=20)
    with pytest.raises(ValueError, match=r"over 10\^18 parameters"):
        Budget(kind="flops", amount=13 * 10**37, tokens_per_param=20)


def test_bytes_are_bits_of_weights_and_tokens_are_read_some_times() -> None:
    assert Budget(kind="bytes", amount=16_000_000, weight_bits=16).params == 8_000_000
    assert Budget(kind="bytes", amount=16_000_000, weight_bits=4).params == 32_000_000
    assert Budget(kind="tokens", amount=10**9, tokens_per_param=20).params == EPOCHS * 10**9 / 20


@pytest.mark.parametrize(
    ("options", "params"),
    [
        (PlanOptions(tokens=10**8, vocab=257), 20_000_000),
        (PlanOptions(tokens=10**8, tokens_per_param=40, vocab=257), 10_000_000),
    ],
)
def test_a_budget_of_tokens_has_the_shape_of_the_parameters_that_it_is(
    options: PlanOptions, params: int
) -> None:
    asked = options.request()
    same = replace(asked, budget=Budget(kind="params", amount=params))
    assert make_plan(asked).best == make_plan(same).best


def timed(minutes: float, gpu: str = "h200", family: str = "text") -> Plan:
    return make_plan(PlanOptions(minutes=minutes, gpu=gpu, vocab=257, family=family).request())


@pytest.mark.parametrize("gpu", ["h200", "cpu"])
def test_more_minutes_train_a_larger_network_for_as_long(gpu: str) -> None:
    totals = []
    for minutes in (10, 30, 300):
        plan = timed(minutes, gpu)
        shape, total = plan.shape, plan.params.total
        each = known_speed(gpu).seconds(
            depth=shape.depth, width=shape.width, vocab=257, context=1024
        )
        assert each * plan.costs.tokens / 60 == pytest.approx(minutes, rel=0.15)  # layers are whole
        totals.append(total)
    assert totals[0] < totals[1] < totals[2]


@pytest.mark.parametrize("gpu", ["h200", "cpu"])
@pytest.mark.parametrize("family", ["text", "signal", "any"])
def test_by_time_a_network_is_no_deeper_than_by_its_parameters(gpu: str, family: str) -> None:
    plan = timed(60, gpu, family)
    params = PlanOptions(params=int(plan.params.total), vocab=257, family=family)
    assert plan.shape.depth <= make_plan(params.request()).shape.depth
    assert plan.depth_range[0] <= plan.shape.depth <= plan.depth_range[1]


def test_minutes_may_be_those_of_a_machine_that_was_timed() -> None:
    speed = known_speed("h200")
    budget = PlanOptions(minutes=5).request(speed=speed).budget
    assert isinstance(budget, TrainingMinutes)
    assert budget.speed == speed
    assert budget.option == "--minutes 5"
    assert str(budget) == "5 minutes on NVIDIA H200, bfloat16"


@pytest.mark.parametrize(
    ("options", "value", "rule", "way_out"),
    [
        (PlanOptions(params=0), "params=0", "buys nothing", "use 100K or more"),
        (PlanOptions(block_params=-3), "block_params=-3", "buys nothing", "use 100K or more"),
        (PlanOptions(flops=0), "flops=0", "buys nothing", "use 1e15 or more"),
        (PlanOptions(bytes=1), "bytes=1", "holds no network", "use 1MB or more"),
        (PlanOptions(bytes=10**20), "bytes=10", "holds no network", "less than an exabyte"),
        (
            PlanOptions(bytes=10**6, weight_bits=7),
            "weight_bits=7",
            "is no size of a weight",
            "use one of 4, 8, 16, 32",
        ),
        (PlanOptions(tokens=1), "tokens=1", "at 20 a parameter feed no", "use 100K or more"),
        (
            PlanOptions(tokens=10**6, tokens_per_param=0),
            "tokens_per_param=0",
            "is not in (0, 10^6]",
            "Chinchilla's rule is 20",
        ),
        (PlanOptions(minutes=5), "minutes='5'", "need a machine", "--gpu h200"),
        (PlanOptions(minutes=0, gpu="h200"), "minutes=0", "is not in 0.01..", "nearest is 0.01"),
        (
            PlanOptions(minutes=float("nan"), gpu="h200"),
            "minutes=nan",
            "is not in 0.01..",
            "nearest is 0.01",
        ),
        (PlanOptions(minutes=5, gpu="abacus"), "gpu='abacus'", "was not timed", "use h200"),
        (PlanOptions(params=10**6, gpu="h200"), "gpu='h200'", "whose minutes", "give --minutes"),
        (
            PlanOptions(params=10**6, family="prose"),
            "family='prose'",
            "is no family of data that we know",
            "or any",
        ),
    ],
)
def test_a_bad_budget_is_refused_in_one_sentence_with_its_value_the_rule_and_the_way_out(
    options: PlanOptions, value: str, rule: str, way_out: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        options.request()
    sentence = str(refused.value)
    assert re.match(f"{re.escape(value)}.*{re.escape(rule)}.*; .*{re.escape(way_out)}", sentence)
    assert len(sentence) < 200
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (PlanOptions(), "no budget is given"),
        (PlanOptions(params=1, tokens=1), "--params and --tokens are given"),
        (PlanOptions(minutes=1, gpu="cpu", bytes=1), "--minutes and --bytes are given"),
    ],
)
def test_none_and_two_budgets_are_refused_with_all_that_there_are(
    options: PlanOptions, found: str
) -> None:
    both = found.startswith("--params and --tokens")
    ways = "--params 125M, --block-params 100M, --flops 1e19, --minutes 30 --gpu h200, --bytes 16MB"
    with pytest.raises(ValueError, match=f"^{found}; give one of {ways} or --tokens 1B"):
        options.request()
    with pytest.raises(ValueError, match="--tokens-per-param" if both else "1B$"):
        options.request()


def test_the_vocabulary_of_a_family_is_its_own_where_none_is_named() -> None:
    sizes = {"DNA": 5, "protein": 24, "text": 8000}
    for family, size in sizes.items():
        vocabulary = PlanOptions(params=10**7, family=family).request().vocabulary
        assert vocabulary is not None
        assert vocabulary.size == size
    named = PlanOptions(params=10**7, family="DNA", vocab=4096).request().vocabulary
    assert named is not None
    assert named.size == 4096


def test_too_few_minutes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.01 minutes on two cores .* use a larger budget"):
        make_plan(PlanOptions(minutes=0.01, gpu="cpu", vocab=50257).request())


def test_the_usual_vocabulary_grows_with_the_budget() -> None:
    vocabs = [PlanOptions(params=10**power).usual_vocab() for power in (4, 6, 7, 8, 9)]
    assert vocabs == sorted(vocabs)
    assert (vocabs[0], vocabs[-1]) == (257, 50257)
    assert PlanOptions(params=10**7, tied=True).usual_vocab() >= vocabs[2]


def test_data_without_a_name_are_text_where_the_vocabulary_is_large() -> None:
    families = [PlanOptions(params=10**6, vocab=vocab).request().family for vocab in (33, 257)]
    assert families == [None, "text"]
    assert PlanOptions(params=10**6, vocab=257, family="any").request().family is None
    assert PlanOptions(params=10**6, vocab=33, family="dna").request().family == "DNA"


def test_a_masked_objective_has_a_token_more() -> None:
    request = PlanOptions(params=10**6, vocab=33, objective="masked").request()
    assert request.vocabulary == VocabularySize(size=34, used=34)


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


def test_data_of_a_family_are_of_it_unless_another_is_named() -> None:
    rows, data = VocabularySize(size=24, used=24), facts("fasta", family="protein")
    assert PlanOptions(params=10**6).request(rows, data).family == "protein"
    assert PlanOptions(params=10**6, family="dna").request(rows, data).family == "DNA"
    assert PlanOptions(params=10**6, family="any").request(rows, data).family is None
