"""Measured separation ranks: all that have been published, and what a certificate promises."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import archfit.exact.measure
from archfit.exact.experiment import degree_bounds, upper_bound
from archfit.exact.matrix import random_mixes, sample_sides
from archfit.exact.measure import (
    LARGE_PRIMES,
    SMALL_PRIMES,
    WORTH_SPLITTING,
    Measurement,
    RankTrial,
    measure,
    part_sizes,
)
from tests_experiments import NUMPY, TORCH, experiment, measured, silent

VECTORS = [
    vector
    for vector in json.loads(
        (Path(__file__).parents[1] / "theory" / "theory_vectors.json").read_text()
    )
    if vector["quantity"] == "sep_rank"
]
LONG = {(2, 6), (3, 3), (4, 2)}  # depth and width of the vectors that take more than a second

# L, d, H, N, rank, rank with residual connections (None: not published), upper bound
UNMASKED = [
    *((1, d, H, N, d + 1, None, d + 1) for d in range(2, 6) for H in (1, d) for N in (2, 4, 6)),
    (2, 2, 1, 2, 15, 15, 15),
    (2, 2, 1, 4, 18, 18, 18),
    (2, 2, 2, 2, 15, 15, 15),
    (2, 2, 2, 4, 17, 17, 18),
    (2, 3, 1, 4, 49, 49, 49),
    (2, 3, 1, 6, 49, 49, 49),
    (2, 3, 3, 2, 35, 35, 35),
    (2, 3, 3, 4, 43, 43, 49),
    (2, 4, 1, 2, 70, 70, 70),
    *((2, 4, 1, N, 110, 110, 110) for N in (4, 6, 8)),
    (2, 4, 2, 2, 70, 70, 70),
    *((2, 4, 2, N, 107, 107, 110) for N in (4, 6, 8)),
    (2, 4, 4, 4, 85, 85, 110),
    (2, 4, 4, 6, 85, 85, 110),
    (2, 5, 1, 2, 126, 126, 126),
    *((2, 5, 1, N, 216, 216, 216) for N in (4, 6, 8, 10)),
    (2, 6, 1, 2, 210, 210, 210),
    (2, 6, 1, 4, 385, 385, 385),
    (2, 6, 1, 12, 385, 385, 385),
    (2, 6, 2, 2, 210, 210, 210),
    (2, 6, 6, 4, 231, 231, 385),
    (2, 7, 1, 2, 330, None, 330),
    (2, 7, 7, 2, 295, None, 330),
    (2, 7, 1, 4, 638, None, 638),
    (2, 7, 7, 4, 344, None, 638),
    (2, 8, 2, 2, 495, None, 495),
    (2, 8, 4, 2, 495, None, 495),
    (3, 2, 1, 2, 105, 105, 105),
    (3, 2, 1, 4, 232, None, 232),
    (3, 2, 2, 4, 215, 215, 232),
    (3, 3, 1, 4, 2640, None, 2640),
    (3, 3, 1, 6, 3102, None, 3102),
    (3, 3, 1, 8, 3102, None, 3102),
    (3, 4, 1, 2, 2380, None, 2380),
    (4, 2, 1, 2, 861, None, 861),
    (4, 2, 1, 4, 4538, None, 4538),
]

# L, d, H, N, r, r_e, rank
LOW_RANK = [
    (2, 4, 1, 4, 1, 0, 5),
    (2, 4, 1, 4, 2, 0, 18),
    (2, 4, 1, 4, 3, 0, 49),
    (2, 4, 1, 4, 4, 0, 110),
    (2, 4, 2, 4, 2, 0, 18),
    (2, 4, 2, 4, 3, 0, 49),
    (2, 4, 4, 4, 2, 0, 18),
    (2, 6, 2, 4, 2, 0, 18),
    (2, 6, 2, 4, 3, 0, 49),
    (2, 6, 3, 4, 3, 0, 49),
    (2, 6, 6, 4, 3, 0, 49),
    (2, 6, 6, 4, 4, 0, 100),
    (3, 4, 1, 4, 2, 0, 232),
    *((2, 4, 1, N, 1, 1, rank) for N, rank in ((2, 9), (4, 12), (6, 12), (8, 12))),
    *((2, 4, H, N, 2, 1, rank) for H in (1, 2) for N, rank in ((2, 25), (4, 39), (6, 39), (8, 39))),
    (2, 3, 1, 4, 3, 3, 49),  # positions on top of full rank change nothing
    (2, 3, 3, 4, 3, 3, 43),
]

# L, d, H, V, r, N, rank
TOKENS = [
    (1, 3, 1, 2, 2, 6, 2),
    (1, 3, 1, 3, 3, 6, 3),
    (1, 3, 1, 5, 3, 6, 4),
    (2, 3, 1, 2, 2, 6, 4),
    (2, 3, 1, 2, 2, 12, 5),
    *((2, 3, 1, 3, 3, N, 13) for N in (8, 12, 16)),
    (2, 3, 1, 4, 3, 8, 22),
    (2, 3, 1, 6, 3, 8, 39),
    (2, 3, 1, 7, 3, 8, 49),
    (2, 4, 2, 4, 2, 10, 18),
    (2, 4, 2, 4, 4, 10, 24),
    (2, 4, 1, 6, 2, 8, 18),
    (3, 2, 1, 2, 2, 16, 9),
    (3, 2, 1, 2, 2, 28, 14),
    (3, 2, 1, 2, 2, 32, 14),
]

# L, d, H, N, rank with the first half on one side, rank with every second position
CAUSAL = [
    (2, 2, 1, 2, 14, 14),
    (2, 2, 1, 4, 18, 37),
    (2, 2, 1, 6, 18, 62),
    (2, 2, 1, 8, None, 86),
    (2, 2, 1, 10, None, 110),
    (2, 3, 1, 2, 30, 30),
    (2, 3, 1, 4, 47, None),
    (2, 3, 3, 4, 26, 71),
    (2, 3, 1, 6, 47, 187),
    (1, 2, 1, 4, 3, 3),
    (1, 3, 1, 4, 4, 4),
]


def slow_if(is_slow: bool, *values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow if is_slow else ())


def sizes_of(inputs: dict[str, Any]) -> tuple[tuple[int, ...], dict[str, Any]]:
    every_second = inputs["partition"] == "interleaved"
    return (inputs["L"], inputs["d_x"], inputs["H"], inputs["N"]), {
        "residual": inputs["residual"],
        "causal": inputs["mask"] == "causal",
        "V": inputs.get("V"),
        "r": inputs.get("r"),
        "r_e": inputs.get("r_e", 0),
        "side": range(0, inputs["N"], 2) if every_second else None,
    }


def test_there_are_thirty_vectors() -> None:
    assert len(VECTORS) == 30


@pytest.mark.parametrize(
    "vector",
    [slow_if((v["inputs"]["L"], v["inputs"]["d_x"]) in LONG, v) for v in VECTORS],
    ids=lambda vector: vector["id"],
)
def test_vector(vector: dict[str, Any]) -> None:
    sizes, more = sizes_of(vector["inputs"])
    assert measured(*sizes, **more).rank == vector["expected"]


@pytest.mark.parametrize(
    ("sizes", "rank", "upper"), [slow_if(row[6] > 300, row[:4], row[4], row[6]) for row in UNMASKED]
)
def test_row_without_a_mask(sizes: tuple[int, ...], rank: int, upper: int) -> None:
    found = measured(*sizes)
    assert (found.rank, found.upper) == (rank, upper)
    assert found.is_exact == (rank == upper)


@pytest.mark.parametrize(
    ("sizes", "rank"),
    [slow_if(row[5] > 200, row[:4], row[5]) for row in UNMASKED if row[5] is not None],
)
def test_row_with_residual_connections(sizes: tuple[int, ...], rank: int) -> None:
    assert measured(*sizes, residual=True).rank == rank


@pytest.mark.parametrize("row", LOW_RANK)
def test_row_of_low_rank(row: tuple[int, ...]) -> None:
    *sizes, r, r_e, rank = row
    assert measured(*sizes, r=r, r_e=r_e).rank == rank


@pytest.mark.parametrize("row", TOKENS)
@pytest.mark.parametrize("residual", [False, True])
def test_row_of_tokens(row: tuple[int, ...], residual: bool) -> None:
    L, d, H, V, r, N, rank = row
    found = measured(L, d, H, N, V=V, r=r, residual=residual)
    assert (found.rank, found.is_exact) == (rank, True)


@pytest.mark.parametrize(("L", "d", "H", "N", "first_half", "interleaved"), CAUSAL)
def test_row_under_a_causal_mask(
    L: int, d: int, H: int, N: int, first_half: int | None, interleaved: int | None
) -> None:
    for side, rank in ((None, first_half), (range(0, N, 2), interleaved)):
        if rank is not None:
            found = measured(L, d, H, N, causal=True, side=side)
            assert found.rank == rank
            assert found.upper >= rank


@pytest.mark.parametrize(
    ("d", "H", "N", "rank", "sides"),
    [
        (3, 1, 4, 49, ((0, 1), (0, 2), (0, 3))),
        (4, 2, 4, 107, ((0, 1), (0, 2), (0, 3))),
        (2, 2, 6, 17, ((0, 1, 2), (0, 2, 4), (1, 3, 4))),
    ],
)
def test_balanced_partitions_have_the_same_rank_with_the_output_on_either_side(
    d: int, H: int, N: int, rank: int, sides: tuple[tuple[int, ...], ...]
) -> None:
    ranks = {measured(2, d, H, N, side=side, output=out).rank for side in sides for out in (0, 1)}
    assert ranks == {rank}


@pytest.mark.parametrize(("inside", "rank", "upper"), [(1, 39, 41), (2, 49, 49), (3, 43, 43)])
def test_unbalanced_partitions(inside: int, rank: int, upper: int) -> None:
    found = measured(2, 3, 1, 4, side=range(inside))
    assert (found.rank, found.upper) == (rank, upper)


def test_parts_by_degree_add_up_to_the_rank_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for L, d, H, N in ((2, 3, 1, 4), (2, 3, 3, 4), (2, 4, 2, 2), (3, 2, 2, 4)):
        whole = measured(L, d, H, N)
        monkeypatch.setattr("archfit.exact.measure.WORTH_SPLITTING", 1)
        monkeypatch.setattr("archfit.exact.measure.MULTIPLICATION", 0)  # evaluation is free
        split = measured(L, d, H, N)
        monkeypatch.undo()
        parts = split.trials[0].parts
        assert parts is not None
        assert whole.trials[0].parts is None
        assert sum(parts) == split.rank == whole.rank
        bounds = degree_bounds(whole.experiment)
        assert all(part <= bound for part, bound in zip(parts, bounds, strict=True))


@pytest.fixture(scope="module")
def deep() -> tuple[Measurement, list[tuple[str, int, int]]]:
    """One coordinate in seven layers, and the progress that was reported."""
    seen: list[tuple[str, int, int]] = []
    found = measure(experiment(7, 1, N=2), NUMPY, progress=lambda *report: seen.append(report))
    return found, seen


def test_large_matrices_are_split_and_small_ones_are_not(
    deep: tuple[Measurement, list[tuple[str, int, int]]],
) -> None:
    assert measured(3, 2).trials[0].parts is None
    found, _ = deep
    assert found.rank == 1094 > WORTH_SPLITTING
    assert found.trials[0].parts == (1,) * 1094
    assert part_sizes(experiment(2, 10, 1, 20), 2162) == ()  # few degrees: parts are no smaller
    assert max(part_sizes(experiment(3, 4, 1, 8), 31_462)) == 11_442


def test_a_prime_with_too_few_numbers_to_interpolate_is_used_whole() -> None:
    found = measure(experiment(7, 1), NUMPY, primes=(101,), progress=silent)
    assert found.trials[0].parts is None
    assert found.rank <= 101


def test_an_exact_rank_needs_small_primes_alone_and_others_two_large_ones() -> None:
    exact = measured(2, 3)
    assert [trial.prime for trial in exact.trials] == list(SMALL_PRIMES)
    assert exact.failure_probability == 0
    loose = measured(2, 3, 3)
    assert [trial.prime for trial in loose.trials] == list(LARGE_PRIMES[:2])
    assert len({trial.seed for trial in loose.trials}) == 2
    # a minor of 43 + 1 rows of degree 2 * 3^2 + 4 * 4 each, once for each prime; all of it is
    # far below the absolute tolerance that `approx` has unless it is told otherwise
    wanted = (44 * 34 / LARGE_PRIMES[0]) * (44 * 34 / LARGE_PRIMES[1])
    assert loose.failure_probability == pytest.approx(wanted, rel=1e-12, abs=0)


def test_only_primes_that_found_the_rank_speak_for_it() -> None:
    """A prime that found less was unlucky, and its chance of failing says nothing."""
    loose = measured(2, 3, 3)
    first, second = loose.trials
    unlucky = replace(loose, trials=(replace(first, rank=42), second))
    assert unlucky.rank == 43
    wanted = 44 * 34 / second.prime
    assert unlucky.failure_probability == pytest.approx(wanted, rel=1e-12, abs=0)
    tiny = replace(loose, trials=(replace(first, prime=1009),))
    assert tiny.failure_probability == 1.0  # 44 * 34 is above the prime: no chance exceeds 1


def test_no_trial_is_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    run = []

    def counted(*inputs: Any) -> RankTrial:
        run.append(inputs[2])
        return original(*inputs)

    original = archfit.exact.measure._trial
    monkeypatch.setattr("archfit.exact.measure._trial", counted)
    assert len(measured(2, 3).trials) == len(run) == 2  # exact: two small primes
    run.clear()
    assert len(measured(2, 3, 3, 4).trials) == len(run) - 1 == 2  # a small one first, in vain


def test_a_prime_that_is_too_small_is_outvoted_by_none_and_claims_nothing() -> None:
    found = measure(experiment(2, 3), NUMPY, primes=(3,), progress=silent)
    assert found.rank < 49
    assert found.failure_probability == 1
    assert not found.is_exact


def test_primes_that_disagree_are_joined_by_a_third(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is made to be unlucky: modulo 3 nearly everything is zero."""
    monkeypatch.setattr("archfit.exact.measure.LARGE_PRIMES", (3, *LARGE_PRIMES[1:]))
    found = measured(2, 3, 3)
    assert len(found.trials) == 3
    assert found.rank == 43


def test_the_same_experiment_gives_the_same_ranks_again_and_on_torch() -> None:
    for more in ({}, {"H": 3}, {"causal": True, "side": (0, 2)}, {"V": 4}, {"r": 2, "r_e": 1}):
        what = experiment(2, 3, **more)
        first, again = (measure(what, NUMPY, progress=silent) for _ in range(2))
        other = measure(what, TORCH, progress=silent)
        ranks = [
            [(t.prime, t.seed, t.rank, t.samples) for t in m.trials] for m in (first, again, other)
        ]
        assert ranks[0] == ranks[1] == ranks[2]


def test_no_rank_is_above_the_proved_bound_or_below_the_other() -> None:
    """Shapes of every kind, also those with less room in the heads than in the width."""
    for L, d, H, d_a, N in (
        (1, 4, 1, 1, 4), (2, 4, 1, 1, 8), (2, 5, 2, 1, 10), (2, 3, 1, 2, 6), (2, 2, 5, 3, 4),
        (3, 2, 1, 1, 4), (2, 3, 2, 3, 3), (2, 4, 4, 4, 5),
    ):  # fmt: skip
        for residual in (False, True):
            found = measured(L, d, H, N, d_a=d_a, residual=residual)
            assert (found.lower or 1) <= found.rank <= found.upper


def test_theorem_one_is_no_bound_where_there_are_residual_connections() -> None:
    """Its proof has none: (H (d_a + 1))^C is 16 here."""
    assert upper_bound(experiment(2, 5, d_a=1, N=10)) == 16
    assert upper_bound(experiment(2, 5, d_a=1, N=10, residual=True)) == 216


def test_residual_connections_raise_the_rank_where_heads_are_narrower_than_the_width() -> None:
    assert measured(2, 5, 1, 10, d_a=1).rank == 8
    assert measured(2, 5, 1, 10, d_a=1, residual=True).rank == 10


def test_tokens_of_which_not_all_fillings_were_tried_promise_nothing_but_a_lower_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("archfit.exact.matrix.MOST_LISTED", 8)
    monkeypatch.setattr("archfit.exact.experiment.MOST_LISTED", 8)
    found = measured(2, 3, 1, 8, V=4)
    assert found.rank == 8 < 22
    assert (found.is_exact, found.failure_probability) == (False, 1)


def test_progress_is_reported_to_the_end() -> None:
    seen: list[tuple[str, int, int]] = []
    measure(experiment(2, 2), NUMPY, progress=lambda *report: seen.append(report))
    assert {what for what, _, _ in seen} == {"evaluating", "eliminating"}
    assert (24 * 24, 24 * 24) in {(done, total) for _, done, total in seen}


def test_a_measurement_takes_the_time_of_all_its_trials() -> None:
    found = measured(2, 2)
    assert found.seconds == sum(trial.seconds for trial in found.trials) > 0


def test_progress_of_parts_is_reported_for_each(
    deep: tuple[Measurement, list[tuple[str, int, int]]],
) -> None:
    _, seen = deep
    eliminated = [(done, total) for what, done, total in seen if what == "eliminating"]
    assert eliminated[:1094] == [(done, 1094) for done in range(1094)]
    assert ("evaluating", 49, 49) in seen


def test_no_two_draws_of_a_measurement_share_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights and samples of both trials are drawn independently of each other."""
    seeds: list[int] = []
    mixes, sides = random_mixes, sample_sides

    def counted_mixes(network: Any, field: Any, seed: int) -> Any:
        seeds.append(seed)
        return mixes(network, field, seed)

    def counted_sides(*inputs: Any, seed: int, **more: Any) -> Any:
        seeds.append(seed)
        return sides(*inputs, seed=seed, **more)

    monkeypatch.setattr("archfit.exact.measure.random_mixes", counted_mixes)
    monkeypatch.setattr("archfit.exact.measure.sample_sides", counted_sides)
    measure(experiment(2, 2), NUMPY, primes=(101, 103, 107), progress=silent)
    assert sorted(seeds) == [0, 1, 2, 3, 4, 5]
