"""One recommendation: which vocabulary it has, what it rests on, what it warns of."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from archfit.advise.advice import Advice, _tokens, advised, check_budget, decided
from archfit.advise.budgets import known_speed
from archfit.advise.ladder import LadderRun
from archfit.advise.measure import Measured, Measuring, VocabularyTrial
from archfit.advise.plan_request import PlanOptions
from archfit.advise.source import facts_of
from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData
from archfit.data.retokenise import BYTES, Tokenisation
from archfit.data.sources import DataSettings
from archfit.spec.errors import InvalidValue
from tests_advice import planted_runner, prepared, source_of, write_fasta

SMALL = PlanOptions(params=300_000, context=64)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    return prepared("sample", tmp_path_factory.mktemp("sample"))


def advice_on(
    data: PreparedData,
    out: Path,
    *,
    words: Path | str = "sample",
    vocab: int | None = None,
    options: PlanOptions = SMALL,
    measuring: Measuring | None = None,
) -> Advice:
    return advised(source_of(words, vocab=vocab), options, data, out, measuring)


def tried(chosen: Tokenisation, vocab: int) -> Measured:
    """Two vocabularies, of which this one was the best."""
    best = VocabularyTrial(label=chosen.label, vocab=vocab, depth=4, params=60_000, bits=2.0)
    return Measured(
        trials=(best, replace(best, label="another", bits=2.1)),
        chosen=chosen,
        runs=(),
        failures=(),
        speed=None,
    )


def ladder(bits: float, *, size: int = 250_000) -> tuple[LadderRun, ...]:
    return tuple(
        LadderRun(size=size, depth=depth, seed=0, params=size, bits=bits + 0.01 * at)
        for at, depth in enumerate((2, 4, 8))
    )


@pytest.mark.parametrize(("params", "vocab"), [(300_000, 512), (10_000_000, 8_000)])
def test_text_that_nobody_measured_gets_the_bpe_that_the_budget_carries(
    sample: PreparedData, params: int, vocab: int
) -> None:
    options = PlanOptions(params=params)
    assert _tokens(options, sample, "text", Measured()) == Tokenisation(vocab=vocab)
    assert _tokens(options, sample, "code", Measured()) == Tokenisation(vocab=vocab)


def test_bytes_are_kept_where_they_were_the_best_and_where_data_are_no_text(
    sample: PreparedData,
) -> None:
    large = PlanOptions(params=10**8)
    assert _tokens(large, sample, "text", tried(BYTES, 257)) == BYTES
    assert _tokens(large, sample, None, Measured()) == BYTES


def test_where_pieces_were_best_the_budget_has_as_many_as_it_carries_and_no_fewer(
    sample: PreparedData,
) -> None:
    won = tried(Tokenisation(vocab=2000), 2000)
    large = PlanOptions(params=10**7)
    assert _tokens(large, sample, "text", won) == Tokenisation(vocab=8_000)
    assert _tokens(SMALL, sample, "text", won) == Tokenisation(vocab=2000)


def test_minutes_on_a_machine_that_was_just_timed_say_how_many(sample: PreparedData) -> None:
    found = replace(tried(Tokenisation(vocab=512), 512), speed=known_speed("cpu"))
    answers = [_tokens(PlanOptions(minutes=m), sample, "text", found) for m in (0.01, 10**6)]
    assert answers == [Tokenisation(vocab=512), Tokenisation(vocab=50257)]


def test_a_vocabulary_that_was_asked_for_and_prepared_data_are_kept(
    sample: PreparedData, tmp_path: Path
) -> None:
    assert advice_on(sample, tmp_path, vocab=257).data.vocab == 257
    assert advice_on(sample, tmp_path, words=sample.folder).data.vocab == 257
    dna = prepared(write_fasta(tmp_path / "small.fa"), tmp_path)
    assert _tokens(SMALL, dna, "DNA", Measured()) == Tokenisation(k=1)


def test_vocabularies_are_tried_unless_one_is_fixed(
    sample: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[list[Tokenisation]]()

    def measured(_: Measuring, tokens: list[Tokenisation], *_of: object, **_to: object) -> Measured:
        asked.append(tokens)
        return replace(tried(tokens[0], 257), trials=())

    monkeypatch.setattr("archfit.advise.advice.measured", measured)
    monkeypatch.setattr("archfit.advise.advice.TRIED_VOCABS", (257, 512))
    runner = planted_runner(tmp_path, lambda _: 2.0)
    dna = prepared(write_fasta(tmp_path / "small.fa"), tmp_path)
    for data, vocab in ((sample, None), (sample, 257), (dna, None)):
        measuring = Measuring(runner=runner, data=data, seconds=1.0)
        advice_on(data, tmp_path, vocab=vocab, measuring=measuring)
    assert asked[:2] == [[BYTES, Tokenisation(vocab=512)], [BYTES]]
    assert asked[2] == [Tokenisation(k=1), Tokenisation(k=2), Tokenisation(k=3)]


def test_what_no_plan_could_be_made_for_is_refused_before_data_are_read() -> None:
    with pytest.raises(InvalidValue, match="params=0 buys nothing"):
        check_budget(PlanOptions(params=0))
    check_budget(PlanOptions(minutes=5))  # known when the ladder was timed


def test_an_advice_without_measuring_is_the_plan_of_the_atlas(
    sample: PreparedData, tmp_path: Path
) -> None:
    found = advice_on(sample, tmp_path)
    assert found.data.vocab == found.plan.request.input_dimensions == 512
    assert found.plan.request.family == "text"
    assert found.plan.basis.source == "prior"
    assert (found.trials, found.runs, found.failures) == ((), (), ())
    plan = advice_on(sample, tmp_path, options=replace(SMALL, family="music")).plan
    assert plan.basis.family == "music"
    assert "the data look like text, and the family named is music" in plan.warnings


@pytest.mark.parametrize(("letters", "family"), [("ACGTNRYKM", "DNA"), ("ACDEFGHIKL", "protein")])
@pytest.mark.parametrize("k", [1, 3])
def test_sequences_are_told_by_their_letters_in_groups_of_any_size(
    letters: str, family: str, k: int, tmp_path: Path
) -> None:
    """Not by how many tokens there are: groups of 3 letters of DNA are more than amino acids."""
    (tmp_path / "x.fa").write_text("".join(f">{n}\n{letters * n}\n" for n in range(1, 40)))
    settings = DataSettings(kind="fasta", kmer=k)
    data = prepare(str(tmp_path / "x.fa"), tmp_path / "data", settings).data
    assert facts_of(data).family == family


def test_an_advice_after_measuring_rests_on_its_runs(sample: PreparedData, tmp_path: Path) -> None:
    runner = planted_runner(
        tmp_path, lambda spec: 2.0 + 0.3 * math.log(spec.architecture.depth / 8) ** 2
    )
    measuring = Measuring(runner=runner, data=sample, seconds=1e6)
    alone = advice_on(sample, tmp_path / "alone", vocab=257)
    found = advice_on(sample, tmp_path, vocab=257, measuring=measuring)
    assert found.plan.basis.source == "ladder"
    assert found.plan.basis.runs == len(found.runs) > 0
    assert found.data.vocab == 257
    assert abs(math.log(found.plan.shape.depth / 8)) < abs(math.log(alone.plan.shape.depth / 8))


def test_networks_that_learnt_nothing_or_are_far_smaller_are_warned_of(
    sample: PreparedData,
) -> None:
    def warned(runs: tuple[LadderRun, ...], params: int = 10**6) -> str:
        options = PlanOptions(params=params, context=64)
        advice = decided(source_of("sample"), options, sample, "text", Measured(runs=runs))
        return " ".join(advice.plan.warnings)

    assert "learnt next to nothing" in warned(ladder(4.5))
    assert "learnt next to nothing" not in warned(ladder(2.0))
    assert "40 times fewer than the budget" in warned(ladder(2.0), 10**7)
    assert "fewer than the budget" not in warned(ladder(2.0))
    assert "fewer than the budget" not in warned((), 10**7)


def test_the_runner_up_is_another_depth_that_was_looked_at_and_loses_more(
    sample: PreparedData,
) -> None:
    for params, deepest in ((10**5, 128), (10**8, 128), (10**8, 6)):
        options = PlanOptions(params=params, context=64, max_depth=deepest)
        advice = decided(source_of("sample"), options, sample, "text", Measured())
        second, depth = advice.runner_up, advice.plan.shape.depth
        assert second.depth != depth
        assert second.depth <= deepest
        assert 0.4 <= second.depth / advice.plan.best.outlook.depth <= 2.5
        assert second.lost > 0
