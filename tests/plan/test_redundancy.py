"""Our points and the paper's come out, and what lies between them is monotone."""

import itertools
import math
from collections.abc import Callable

import pytest

from archfit.plan.redundancy import Redundancy, attention_redundancy, rank_redundancy

DEPTHS = (1, 4, 8, 9, 12, 48)
RATIOS = [step / 1000 for step in range(1, 1001)]  # measured from 0.0235 to 0.5


def _percent(share: Redundancy) -> tuple[float, float]:
    return round(100 * share.low, 1), round(100 * share.high, 1)


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [  # docs/evidence.md, finding `rank`
        (1 / 32, (74.8, 100.0)),
        (1 / 16, (48.6, 55.1)),
        (1 / 8, (11.9, 24.2)),
        (1 / 4, (0.0, 14.4)),
        (1 / 2, (0.0, 5.0)),
    ],
)
def test_our_curve_of_ranks_comes_out_at_its_depth(
    ratio: float, expected: tuple[float, float]
) -> None:
    share = rank_redundancy(ratio, 6)
    assert _percent(share) == expected
    assert share.basis == "measured by archfit"


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [  # finding `attention`
        (2, (14.4, 25.0)),
        (4, (60.8, 64.6)),
        (8, (75.4, 100.0)),
        (16, (82.1, 100.0)),
    ],
)
def test_our_curve_of_attention_comes_out_at_its_depths(
    ratio: float, expected: tuple[float, float]
) -> None:
    for depth in (3, 6):
        share = attention_redundancy(ratio, depth)
        assert _percent(share) == expected
        assert share.basis == "measured by archfit"


def test_between_our_points_both_ends_are_straight_in_the_logarithm_of_the_ratio() -> None:
    middle = rank_redundancy(math.sqrt(1 / 8 * 1 / 16), 3)
    assert _percent(middle) == pytest.approx(((48.6 + 11.9) / 2, (55.1 + 24.2) / 2), abs=0.1)
    towards_full = rank_redundancy(math.sqrt(1 / 2), 3)
    assert _percent(towards_full) == pytest.approx((0, 5.0 / 2), abs=0.1)
    wide = attention_redundancy(math.sqrt(2), 3)
    assert _percent(wide) == pytest.approx((14.4 / 2, 25.0 / 2), abs=0.1)
    assert {middle.basis, towards_full.basis, wide.basis} == {"between measurements of archfit"}


def test_before_a_point_that_is_only_a_limit_stands_what_its_neighbour_has() -> None:
    assert str(rank_redundancy(1 / 20, 6)) == "at least 49%"
    assert str(attention_redundancy(12, 6)) == "at least 75%"


def test_a_curve_is_called_measured_at_the_depth_of_its_runs_alone() -> None:
    assert rank_redundancy(1 / 8, 2).basis == "between measurements of archfit"
    assert rank_redundancy(1 / 8, 5.8).basis == "measured by archfit"  # a plan's depth
    assert attention_redundancy(4, 1).basis == "between measurements of archfit"


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (16 / 680, (20.0, 30.0)),
        (128 / 4096, (18.1, 30.0)),  # 25 ln(ratio) / ln(16 / 680) - 5 at the lower end
        (1 / 16, (13.5, 30.0)),
        (1 / 8, (8.9, 24.2)),
        (1 / 4, (0.0, 14.4)),
        (1 / 2, (0.0, 5.0)),
    ],
)
def test_a_deeper_network_has_the_lower_of_our_end_and_the_papers(
    ratio: float, expected: tuple[float, float]
) -> None:
    for depth in (9, 12, None):
        assert _percent(rank_redundancy(ratio, depth)) == expected


def test_deeper_networks_say_whose_measurements_made_the_interval() -> None:
    assert rank_redundancy(16 / 680, 12).basis == "measured in the paper"
    assert rank_redundancy(1 / 32, 12).basis == "between measurements of the paper"
    assert rank_redundancy(1 / 8, 12).basis == "archfit's and the paper's measurements"
    assert attention_redundancy(4, 24).basis == "archfit's and the paper's measurements"


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (2, (3.3, 25.0)),  # 25 / 3 - 5 in the paper, 14.4 to 25.0 in ours
        (4, (20.0, 64.6)),
        (16, (40.0, 100.0)),
    ],
)
def test_wide_attention_of_a_deeper_network_spans_ours_and_the_papers(
    ratio: float, expected: tuple[float, float]
) -> None:
    for depth in (7, 24, None):
        assert _percent(attention_redundancy(ratio, depth)) == expected


@pytest.mark.parametrize(
    ("share", "point"),
    [
        (rank_redundancy(16 / 680, 12), 0.25),
        (attention_redundancy(4, 24), 0.25),
        (attention_redundancy(16, 24), 0.45),
        (rank_redundancy(128 / 4096, 12), 0.25),  # ALBERT-xxlarge: about 25 %, say Wies et al.
        (rank_redundancy(33 / 1280, 33), 0.25),  # ESM-1b: likewise
    ],
)
def test_the_papers_numbers_lie_inside_the_interval(share: Redundancy, point: float) -> None:
    assert share.low < point < share.high


def test_without_a_bottleneck_nothing_is_redundant() -> None:
    for depth in (2, 24, None):
        for share in (
            *(rank_redundancy(ratio, depth) for ratio in (1, 3)),
            *(attention_redundancy(ratio, depth) for ratio in (0.5, 1)),
        ):
            assert (share.low, share.high, share.basis) == (0, 0, "no bottleneck")


@pytest.mark.parametrize("depth", [*DEPTHS, None])
def test_redundancy_falls_with_the_rank_and_rises_with_the_attention_ratio(
    depth: float | None,
) -> None:
    ranks = [rank_redundancy(ratio, depth) for ratio in RATIOS]
    wide = [attention_redundancy(1 + step / 50, depth) for step in range(1000)]
    for higher, lower in [*itertools.pairwise(ranks), *itertools.pairwise(wide[::-1])]:
        assert higher.low >= lower.low
        assert higher.high >= lower.high
    for share in (*ranks, *wide):
        assert 0 <= share.low <= share.high <= 1


def test_a_low_rank_never_wastes_more_of_a_deeper_network() -> None:
    for ratio in RATIOS:
        shares = [rank_redundancy(ratio, depth) for depth in (*DEPTHS, None)]
        for shallower, deeper in itertools.pairwise(shares):
            assert deeper.low <= shallower.low
            assert deeper.high <= shallower.high


@pytest.mark.parametrize(
    ("redundancy", "ratio", "ours", "papers"),
    [
        (rank_redundancy, 0.14, "19 % (12 to 24) at ratio 0.125", "25 % at ratio 0.0235"),
        (rank_redundancy, 0.03, "at least 75 % at ratio 0.0312", "25 % at ratio 0.0235"),
        (rank_redundancy, 0.5, "at most 5 % at ratio 0.5", "25 % at ratio 0.0235"),
        (attention_redundancy, 4.5, "63 % (61 to 65) at ratio 4", "25 % at 4 and 45 % at 16"),
        (attention_redundancy, 9, "80 % (75 or more) at ratio 8", "25 % at 4 and 45 % at 16"),
    ],
)
def test_the_source_names_the_nearest_of_our_points_and_the_papers(
    redundancy: Callable[[float, float | None], Redundancy], ratio: float, ours: str, papers: str
) -> None:
    for depth in (2, 24):
        source = redundancy(ratio, depth).source
        assert source.startswith("archfit's own runs (")
        assert ours in source
        assert source.endswith(f"about {papers}")


def test_the_source_of_a_rank_shows_what_depth_did_to_it() -> None:
    assert (
        "rank 16 wastes 70 % (67 to 73) at 2 x 302, 52 % (48 to 55) at 6 x 256, 41 % (31 to 48) "
        "at 8 x 250"
    ) in rank_redundancy(0.1, 2).source


def test_what_is_not_measured_says_so() -> None:
    shares = {
        "at least 75%": rank_redundancy(0.001, 6),
        "at least 20%": rank_redundancy(0.001, 12),
        "at least 82%": attention_redundancy(64, 6),
        "at least 40%": attention_redundancy(64, None),
    }
    for words, share in shares.items():
        assert str(share) == words
        assert share.basis == "beyond what was measured"
