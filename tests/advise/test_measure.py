"""Measuring: vocabularies, then a ladder in the best of them; whatever is there counts."""

import json
import math
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from archfit.advise.budgets import known_speed
from archfit.advise.ladder import SIZES, LadderLimits, knowledge
from archfit.advise.measure import (
    PILOT_DEPTH,
    TRIAL_DEPTH,
    Measured,
    Measuring,
    measured,
)
from archfit.advise.prior import Knowledge, family_prior
from archfit.data.prepared import PreparedData
from archfit.data.retokenise import BYTES, Tokenisation
from archfit.spec import RunSpec
from tests_advice import PlantedRunner, planted_runner, prepared

LONG = 1e6  # seconds
BOTH = (BYTES, Tokenisation(vocab=512))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    return prepared("sample", tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def text() -> Knowledge:
    return family_prior("text")


def four_layers_are_best(spec: RunSpec) -> float:
    return 2.0 + 0.3 * math.log(spec.architecture.depth / 4) ** 2


def climb(
    runner: PlantedRunner,
    data: PreparedData,
    prior: Knowledge,
    *,
    tokens: tuple[Tokenisation, ...] = (BYTES,),
    seconds: float = LONG,
) -> Measured:
    measuring = Measuring(runner=runner, data=data, seconds=seconds, block=prior.block)
    return measured(measuring, tokens, prior, budget=10**6, deepest=32.0, tokens_per_param=20.0)


@dataclass(frozen=True)
class Stretch:
    """A ladder on the sample, with no end of time."""

    out: Path
    runner: PlantedRunner
    found: Measured
    said: list[str]


@pytest.fixture(scope="module")
def stretch(
    sample: PreparedData, text: Knowledge, tmp_path_factory: pytest.TempPathFactory
) -> Stretch:
    said, out = list[str](), tmp_path_factory.mktemp("stretch")
    runner = planted_runner(out, four_layers_are_best, said)
    return Stretch(out, runner, climb(runner, sample, text), said)


def test_what_is_planted_is_measured(stretch: Stretch) -> None:
    runner, found, said = stretch.runner, stretch.found, stretch.said
    assert found.trials == ()
    assert found.chosen == BYTES
    assert {run.size for run in found.runs} == {SIZES[0]}  # more would read the sample too often
    assert min(found.runs, key=lambda run: run.bits).depth == 4
    assert len(runner.trained) == len(found.runs) + 1  # that is timed
    for run in found.runs:
        assert run.bits == pytest.approx(2.0 + 0.3 * math.log(run.depth / 4) ** 2)
        assert run.params == pytest.approx(run.size, rel=0.1)
    assert said[0].startswith("250,000 parameters: ")


def test_a_gpu_trains_on_as_many_tokens_as_there_are_where_those_are_few(
    sample: PreparedData, text: Knowledge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlantedRunner, "scale", "small")  # 20 tokens a parameter if there are
    found = climb(planted_runner(tmp_path, four_layers_are_best), sample, text)
    assert {run.size for run in found.runs} == {SIZES[0]}
    fed = 4 * sample.train_tokens / SIZES[0]
    assert 10 < fed < 20
    assert all(run.tokens_per_param == pytest.approx(fed, rel=0.1) for run in found.runs)


def test_the_vocabulary_that_is_best_at_a_small_size_has_the_ladder(
    sample: PreparedData, text: Knowledge, tmp_path: Path
) -> None:
    def pieces_are_best(spec: RunSpec) -> float:
        return four_layers_are_best(spec) - 0.2 * (spec.architecture.input.vocab == 512)

    runner = planted_runner(tmp_path, pieces_are_best)
    found = climb(runner, sample, text, tokens=BOTH)
    assert found.chosen == Tokenisation(vocab=512)
    assert [trial.label for trial in found.trials] == ["bpe-512", "bytes"]
    assert [trial.bits for trial in found.trials] == pytest.approx([1.8, 2.0])
    assert {trial.depth for trial in found.trials} == {TRIAL_DEPTH}
    assert sorted(trial.label for trial in found.trials) == ["bpe-512", "bytes"]
    ladder = [spec for spec in runner.trained if spec.architecture.depth != TRIAL_DEPTH]
    assert all(spec.architecture.input.vocab == 512 for spec in ladder)


def test_a_ladder_asks_about_as_many_tokens_as_the_data_have_in_its_vocabulary(
    sample: PreparedData, text: Knowledge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[LadderLimits] = []

    def no_ladder(_: object, __: object, limits: LadderLimits, ___: object) -> tuple[()]:
        asked.append(limits)
        return ()

    monkeypatch.setattr("archfit.advise.measure.climbed", no_ladder)
    runner = planted_runner(tmp_path, four_layers_are_best)
    climb(runner, sample, text)
    climb(runner, sample, text, tokens=(Tokenisation(vocab=512),))
    written = json.loads((runner.folder / "data" / "bpe-512" / "data.json").read_text())
    there = [sample.train_tokens, written["train"]["tokens"]]
    assert there[0] > 1.5 * there[1]
    assert [each.tokens_per_param for each in asked] == pytest.approx([4e-6 * n for n in there])


@pytest.mark.parametrize(("better", "taken"), [(0.01, BYTES), (0.03, Tokenisation(vocab=512))])
def test_what_is_given_stays_unless_another_is_better_beyond_chance(
    sample: PreparedData, text: Knowledge, tmp_path: Path, better: float, taken: Tokenisation
) -> None:
    def pieces_are_better(spec: RunSpec) -> float:
        return four_layers_are_best(spec) - better * (spec.architecture.input.vocab == 512)

    found = climb(planted_runner(tmp_path, pieces_are_better), sample, text, tokens=BOTH)
    assert found.chosen == taken
    assert found.trials[0].label == taken.label


def test_all_of_the_time_given_is_there_to_be_used(sample: PreparedData, tmp_path: Path) -> None:
    runner = planted_runner(tmp_path, four_layers_are_best)
    now = time.monotonic()
    measuring = Measuring(runner=runner, data=sample, seconds=300.0, began=now - 100)
    assert 190.0 < measuring.left <= 200.0


def test_with_no_time_one_network_is_timed(
    sample: PreparedData, text: Knowledge, tmp_path: Path
) -> None:
    runner = planted_runner(tmp_path, four_layers_are_best)
    found = climb(runner, sample, text, tokens=BOTH, seconds=0.0)
    assert (found.trials, found.runs, found.chosen) == ((), (), BYTES)
    assert [spec.architecture.depth for spec in runner.trained] == [PILOT_DEPTH]
    assert found.speed == known_speed("cpu")  # too few to tell


def test_a_second_stretch_counts_what_is_there_and_trains_none_of_it_again(
    sample: PreparedData, text: Knowledge, stretch: Stretch
) -> None:
    again = planted_runner(stretch.out, four_layers_are_best)
    second = climb(again, sample, text)
    assert again.trained == []

    def by_shape(found: Measured) -> list[tuple[int, int, int]]:
        return sorted((run.size, run.depth, run.seed) for run in found.runs)

    assert by_shape(second) == by_shape(stretch.found)
    assert second.speed is not None
    assert second.speed.machine == "this machine"


def test_a_ladder_of_other_blocks_counts_none_of_what_is_there(
    sample: PreparedData, text: Knowledge, stretch: Stretch, tmp_path: Path
) -> None:
    """What GPT-2's blocks lose at a depth says nothing of Llama's."""
    first = stretch.found
    shutil.copytree(stretch.out, tmp_path, dirs_exist_ok=True)

    def deeper_is_better(spec: RunSpec) -> float:
        return 2.5 - 0.1 * math.log(spec.architecture.depth)

    runner, llama = planted_runner(tmp_path, deeper_is_better), family_prior("text", "llama")
    found = climb(runner, sample, llama)
    assert {spec.architecture.block for spec in runner.trained} == {"llama"}
    assert len(found.runs) == len(runner.trained)
    by_depth = {run.depth: run.bits for run in found.runs}
    expected = {depth: 2.5 - 0.1 * math.log(depth) for depth in by_depth}
    assert by_depth == pytest.approx(expected)
    shallow, deep = (knowledge(*each) for each in ((text, first.runs), (llama, found.runs)))
    depths = [known.outlook(250_000, 32.0).depth for known in (shallow, deep)]
    assert depths[0] < 6 < 12 < depths[1]


def test_runs_that_fail_are_said_and_end_the_ladder(
    sample: PreparedData, text: Knowledge, tmp_path: Path
) -> None:
    found = climb(planted_runner(tmp_path, lambda _: math.nan), sample, text)
    assert found.runs == ()
    assert found.failures == ("it failed",)


def test_a_machine_that_is_faster_than_thought_can_do_more(
    sample: PreparedData, tmp_path: Path
) -> None:
    measuring = Measuring(
        runner=planted_runner(tmp_path, four_layers_are_best), data=sample, seconds=LONG
    )
    corpus = measuring.corpus(BYTES)
    cells = measuring.cells(corpus, SIZES[0], [2, 4])
    before = measuring.takes(cells)
    measuring.train(cells, 0)  # in no time
    assert 0 < measuring.takes(cells) < before
    assert measuring.left <= LONG


def test_data_that_would_be_read_too_often_train_no_network(
    sample: PreparedData, tmp_path: Path
) -> None:
    measuring = Measuring(
        runner=planted_runner(tmp_path, four_layers_are_best), data=sample, seconds=LONG
    )
    corpus = measuring.corpus(BYTES)
    assert measuring.cells(corpus, SIZES[0], [4])
    assert measuring.cells(corpus, SIZES[1], [4]) == []
    measuring.train_tokens = {corpus.hash: 10**9}
    assert measuring.cells(replace(corpus), SIZES[1], [4])
