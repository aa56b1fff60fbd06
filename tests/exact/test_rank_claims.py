"""Claims: each holds in what is measured, and would be seen to fail where it does not."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from archfit.exact.experiment import Experiment
from archfit.exact.measure import estimate, measure
from archfit.exact.rank_claims import RankClaim, claims, failures, growth_bounds, growth_experiments
from archfit.theory import quantity
from archfit.theory.catalogue import as_json_value
from tests_experiments import NUMPY, measured, silent

CLAIMS = {claim.name: claim for claim in claims()}

# ranks that refute each claim, and ranks that do not
REFUTED = {
    "partition-symmetry": ((49, 49, 48), (49, 49, 49)),
    "residuals": ((8, 10), (49, 49)),
    "heads": ((110, 110, 85), (110, 107, 85)),
    "saturation": ((35, 49, 49, 50), (35, 49, 49, 49)),
    "embedding-rank": ((18, 18, 19), (18, 18, 18)),
    "small-vocabulary": ((49, 49), (13, 49)),
    "causal-mask": ((18, 18), (18, 37)),
}


def ranks_of(claim: RankClaim) -> list[list[int]]:
    return [
        [measure(case, NUMPY, progress=silent).rank for case in group] for group in claim.groups
    ]


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_fails_where_ranks_speak_against_it(name: str) -> None:
    against, for_it = REFUTED[name]
    assert failures(CLAIMS[name], [for_it, against, for_it]) == (1,)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_compares_networks_that_differ_in_one_thing(name: str) -> None:
    for group in CLAIMS[name].groups:
        assert len(group) == len(set(group)) >= 2
        assert len({case.depth for case in group}) == 1


@pytest.mark.parametrize(
    "name", ["partition-symmetry", "residuals", "small-vocabulary", "causal-mask"]
)
def test_a_claim_holds_in_what_is_measured(name: str) -> None:
    assert failures(CLAIMS[name], ranks_of(CLAIMS[name])) == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["heads", "saturation", "embedding-rank"])
def test_a_longer_claim_holds_in_what_is_measured(name: str) -> None:
    assert failures(CLAIMS[name], ranks_of(CLAIMS[name])) == ()


def test_the_claim_about_residuals_needs_heads_as_wide_as_the_network() -> None:
    pair = [measured(2, 5, 1, 10, d_a=1, residual=residual).rank for residual in (False, True)]
    assert failures(CLAIMS["residuals"], [pair]) == (0,)


def test_growth_measures_more_the_more_time_it_has() -> None:
    few, more = (growth_experiments("cpu", seconds, 16) for seconds in (0.5, 30.0))
    assert 5 < len(few) < len(more)
    assert set(few) < set(more)
    assert growth_experiments("cpu", 0.0, 16) == ()
    sizes = [(case.depth, case.width) for case in more]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize(("L", "d", "N"), [(2, 3, 6), (3, 4, 2), (4, 2, 4)])
def test_bounds_of_growth_are_those_of_the_theory(L: int, d: int, N: int) -> None:
    at = growth_bounds(L, d, N)
    half = {"n_P": N // 2, "n_Q": N // 2}
    inputs: dict[str, dict[str, int]] = {
        "ub_stat_N": half,
        "ub_thm1": {"H": 1},
        "ub_thm2": {},
        "lb": {"H": 1},
        "lb_strong": {"H": 1},
    }
    for name, more in inputs.items():
        assert str(at[name]) == str(as_json_value(quantity(name, L=L, d_x=d, **more).value))
    assert growth_bounds(1, d, N)["lb"] is None


def test_growth_holds_where_it_takes_a_moment() -> None:
    found = [measure(case, NUMPY, progress=silent) for case in growth_experiments("cpu", 1.0, 16)]
    assert all(measurement.is_exact for measurement in found)
    assert max(measurement.rank for measurement in found) > 100


def test_growth_is_measured_over_five_depths_and_seven_widths() -> None:
    cases = growth_experiments("cpu", float("inf"), float("inf"))
    assert len(cases) == 5 * 7 * 2
    sizes = [(case.depth, case.width) for case in cases[::2]]
    assert sizes == [(depth, width) for depth in range(1, 6) for width in range(2, 9)]
    assert {len(case.partition.inside) * 2 for case in cases[1::2]} == {2 * d for d in range(2, 9)}
    assert all(case.heads == 1 and case.partition.output == 0 for case in cases)


def test_growth_stops_at_the_first_case_over_the_memory() -> None:
    costs = sorted(
        (estimate(case, "cpu") for case in growth_experiments("cpu", 60.0, 16)),
        key=lambda cost: cost.seconds,
    )
    limit = costs[10].gigabytes
    assert len(growth_experiments("cpu", 60.0, limit * 0.999)) <= 10


def _sides(case: Experiment) -> tuple[int, int]:
    return len(case.partition.inside), len(case.partition.outside)


def _varied(name: str, read: Callable[[Experiment], object]) -> list[list[object]]:
    return [[read(case) for case in group] for group in CLAIMS[name].groups]


def test_all_claims_are_about_balanced_partitions_and_heads_that_fill_the_width() -> None:
    for claim in CLAIMS.values():
        for case in (case for group in claim.groups for case in group):
            assert _sides(case)[0] == _sides(case)[1]
            assert case.heads * case.head_dim == case.width
            assert case.position_rank == 0


def test_claims_vary_what_they_speak_of() -> None:
    outputs = _varied("partition-symmetry", lambda case: case.partition.output)
    assert outputs == [[0, 1] * 3] * 3
    sides = _varied("partition-symmetry", lambda case: 0 in case.partition.inside)
    assert {tuple(group) for group in sides} == {(True, True, True, False, True, False)}
    residual = _varied("residuals", lambda case: case.residual)
    assert residual == [[False, True]] * 6
    heads = _varied("heads", lambda case: case.heads)
    assert heads == [[1, 2], [1, 3], [1, 2, 4], [1, 2, 3, 6], [1, 2]]
    assert {_sides(case) for group in CLAIMS["heads"].groups for case in group} == {(2, 2)}


def test_the_lengths_that_add_nothing_are_twice_the_width_and_more() -> None:
    for group in CLAIMS["saturation"].groups:
        lengths = [2 * _sides(case)[0] for case in group]
        width = group[0].width
        assert lengths == sorted(set(lengths))
        assert lengths[:2] == [2, 4]
        assert lengths[-2] in {4, 2 * width}
        assert lengths[-1] >= 2 * width


def test_widths_beyond_the_rank_are_compared_with_the_rank_itself() -> None:
    for group in CLAIMS["embedding-rank"].groups:
        ranks, widths = {case.rank for case in group}, [c.width for c in group]
        assert ranks == {widths[0]}
        assert widths == sorted(set(widths))


def test_as_many_tokens_as_their_rank_are_compared_with_vectors_of_that_rank() -> None:
    for tokens, vectors in CLAIMS["small-vocabulary"].groups:
        assert tokens.vocab == tokens.rank == vectors.rank
        assert replace(tokens, vocab=None) == vectors
    ranks = _varied("small-vocabulary", lambda case: case.rank)
    assert ranks == [[2, 2], [3, 3], [3, 3], [4, 4]]


def test_under_a_mask_halves_are_compared_with_every_second_position() -> None:
    for halves, seconds in CLAIMS["causal-mask"].groups:
        length = 2 * _sides(halves)[0]
        assert halves.partition.outside == tuple(range(length // 2))
        assert seconds.partition.outside == tuple(range(0, length, 2))
        assert halves.partition.output == seconds.partition.output == length - 1
        assert replace(halves, partition=seconds.partition) == seconds
        assert halves.causal
