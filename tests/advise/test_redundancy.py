"""Our points and the paper's come out, and what lies between them is monotone."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import pytest

from archfit.advise import redundancy as advised
from archfit.advise.redundancy import Redundancy, rank_redundancy

DEPTHS = (1, 4, 8, 9, 12, 48)
attention_redundancy = partial(advised.attention_redundancy, like_t5=False)
RANKS = [1.05**step for step in range(179)]  # 1 to 6,000


def _percent(share: Redundancy) -> tuple[float, float]:
    return round(100 * share.low, 1), round(100 * share.high, 1)


@pytest.mark.parametrize(
    ("rank", "width", "depth", "expected"),
    [  # docs/evidence.md: `rank` and `rank-of-tokens` together, `rank-or-ratio`
        (8, 256, 6, (74.8, 100.0)),
        (16, 256, 6, (48.6, 74.5)),
        (32, 256, 6, (11.9, 33.9)),
        (64, 256, 6, (0.0, 17.4)),
        (128, 256, 6, (0.0, 5.7)),
        (16, 302, 2, (66.7, 73.2)),
        (64, 302, 2, (18.7, 37.4)),
        (64, 250, 8, (0.0, 18.0)),
    ],
)
def test_what_was_trained_comes_out(
    rank: int, width: int, depth: int, expected: tuple[float, float]
) -> None:
    share = rank_redundancy(rank, width, depth)
    assert _percent(share) == expected
    is_limit = share.high == 1
    assert share.basis == ("beyond what was measured" if is_limit else "measured by archfit")


def test_a_curve_that_wavers_is_widened_until_it_rises() -> None:
    """At 8 layers rank 16 wastes 31 to 48 % at width 250 and 34 to 45 % at the milder 152."""
    assert _percent(rank_redundancy(16, 152, 8)) == (30.7, 44.8)
    assert _percent(rank_redundancy(16, 250, 8)) == (30.7, 47.8)


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (8, (51.9, 100.0)),  # a smaller rank than any: at least what 16 wastes at this ratio
        (16, (51.9, 59.0)),
        (30, (22.5, 59.0)),  # between the two
        (64, (22.5, 59.0)),  # 64 was not trained at this ratio: at least what it wastes at 0.128
        (200, (0.0, 59.0)),  # a larger one: at most that
    ],
)
def test_at_one_ratio_a_larger_rank_wastes_less(rank: int, expected: tuple[float, float]) -> None:
    """Two layers, ratio 0.115."""
    assert _percent(rank_redundancy(rank, rank / 0.115, 2)) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(
    ("rank", "width", "expected"),
    [
        (32, 512, (11.9, 74.5)),  # at least rank 32 of 256, at most rank 16 of 256
        (32, 128, (0.0, 33.9)),  # at least ratio 1/4, at most rank 32 of 256
        (1, 1000, (74.8, 100.0)),
        (300, 1000, (0.0, 14.3)),
    ],
)
def test_six_layers_of_another_width_lie_between_those_of_their_rank_and_of_their_ratio(
    rank: int, width: int, expected: tuple[float, float]
) -> None:
    assert _percent(rank_redundancy(rank, width, 6)) == expected


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [  # finding `wide-attention`
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
    middle = rank_redundancy(256 * math.sqrt(1 / 8 * 1 / 16), 256, 6)
    assert _percent(middle) == pytest.approx(((48.6 + 11.9) / 2, (74.5 + 33.9) / 2), abs=0.1)
    towards_full = rank_redundancy(256 * math.sqrt(1 / 2), 256, 6)
    assert _percent(towards_full) == pytest.approx((0, 5.7 / 2), abs=0.1)
    wide = attention_redundancy(math.sqrt(2), 3)
    assert _percent(wide) == pytest.approx((14.4 / 2, 25.0 / 2), abs=0.1)
    assert {middle.basis, towards_full.basis, wide.basis} == {"between measurements of archfit"}


def test_before_a_point_that_is_only_a_limit_stands_what_its_neighbour_has() -> None:
    assert str(rank_redundancy(256 / 20, 256, 6)) == "at least 49 %"
    assert str(attention_redundancy(12, 6)) == "at least 75 %"


def test_a_curve_is_called_measured_at_the_depth_of_its_runs_alone() -> None:
    assert rank_redundancy(32, 256, 5).basis == "between measurements of archfit"
    assert rank_redundancy(32, 256, 5.8).basis == "measured by archfit"  # a plan's depth
    assert rank_redundancy(32, 250, 6).basis == "between measurements of archfit"
    assert attention_redundancy(4, 4).basis == "between measurements of archfit"
    assert attention_redundancy(4, 1).basis == "beyond what was measured"


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (1, (66.7, 100.0)),  # at least what 2 layers waste
        (3, (48.6, 73.2)),  # at least what 6 layers waste, at most what 2 do
        (5, (48.6, 73.2)),
        (7, (30.7, 73.2)),  # 6 layers of this width have no upper end, 2 have
    ],
)
def test_between_depths_the_deeper_is_the_lower_end_and_the_shallower_the_upper(
    depth: int, expected: tuple[float, float]
) -> None:
    assert _percent(rank_redundancy(16, 302, depth)) == expected


@pytest.mark.parametrize(
    ("rank", "width", "expected"),
    [
        (16, 680, (20.0, 30.0)),
        (128, 4096, (18.1, 30.0)),  # 25 ln(ratio) / ln(16 / 680) - 5 at the lower end
        (16, 256, (13.5, 30.0)),
        (32, 256, (0.0, 30.0)),  # 8 layers: at least nothing (rank 64), at most 45 % (rank 16)
        (64, 256, (0.0, 17.4)),
        (512, 1024, (0.0, 5.7)),
        (8, 680, (20.0, 100.0)),  # a smaller rank than the paper's
    ],
)
def test_a_deeper_network_has_the_lowest_of_our_ends_and_the_papers(
    rank: int, width: int, expected: tuple[float, float]
) -> None:
    for depth in (12, 48, None):
        assert _percent(rank_redundancy(rank, width, depth)) == expected


def test_the_papers_point_bounds_nothing_that_is_shallower_than_its_network() -> None:
    assert _percent(rank_redundancy(16, 680, 10)) == (20.0, 100.0)
    assert _percent(rank_redundancy(16, 250, 10)) == (13.3, 47.8)


def test_deeper_networks_say_whose_measurements_made_the_interval() -> None:
    assert rank_redundancy(16, 680, 12).basis == "measured in the paper"
    assert rank_redundancy(128, 4096, 12).basis == "between measurements of the paper"
    assert rank_redundancy(128, 1024, 12).basis == "archfit's and the paper's measurements"
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
        (rank_redundancy(16, 680, 12), 0.25),
        (attention_redundancy(4, 24), 0.25),
        (attention_redundancy(16, 24), 0.45),
        (rank_redundancy(128, 4096, 12), 0.25),  # ALBERT-xxlarge: about 25 %, say Wies et al.
        (rank_redundancy(33, 1280, 33), 0.25),  # ESM-1b: likewise
    ],
)
def test_the_papers_numbers_lie_inside_the_interval(share: Redundancy, point: float) -> None:
    assert share.low < point < share.high


@pytest.mark.parametrize(
    ("ratio", "shallow", "deep"),
    [
        (2, (16.8, 24.7), (3.3, 24.7)),
        (4, (42.2, 47.1), (20.0, 47.1)),
        (16, (79.6, 80.9), (40.0, 80.9)),
    ],
)
def test_heads_and_hidden_units_that_grow_together_have_a_curve_of_their_own(
    ratio: float, shallow: tuple[float, float], deep: tuple[float, float]
) -> None:
    """T5's form: finding `attention`, and beyond its depths the paper's points beside it."""
    like_t5 = partial(advised.attention_redundancy, ratio, like_t5=True)
    for depth in (6, 12):
        assert _percent(like_t5(depth)) == shallow
        assert like_t5(depth).basis == "measured by archfit"
    for beyond in (24, None):
        assert _percent(like_t5(beyond)) == deep
        assert like_t5(beyond).basis == "archfit's and the paper's measurements"
    assert like_t5(3).basis == "beyond what was measured"


def test_without_a_bottleneck_nothing_is_redundant() -> None:
    for depth in (2, 24, None):
        for share in (
            *(rank_redundancy(rank, 100, depth) for rank in (100, 300)),
            *(attention_redundancy(ratio, depth) for ratio in (0.5, 1)),
        ):
            assert (share.low, share.high, share.basis) == (0, 0, "no bottleneck")


@pytest.mark.parametrize("width", [60, 256, 1000, 4096])
@pytest.mark.parametrize("depth", [*DEPTHS, None])
def test_redundancy_falls_with_the_rank_and_rises_with_the_attention_ratio(
    depth: float | None, width: int
) -> None:
    ranks = [rank_redundancy(rank, width, depth) for rank in RANKS]
    wide = [attention_redundancy(1 + step / 10, depth) for step in range(200)]
    for higher, lower in [*itertools.pairwise(ranks), *itertools.pairwise(wide[::-1])]:
        assert higher.low >= lower.low
        assert higher.high >= lower.high
    for share in (*ranks, *wide):
        assert 0 <= share.low <= share.high <= 1


RANK_PAPER = "25 % of the parameters redundant where the rank is 2.35 % of the width"
WIDE_PAPER = "25 % at 4 times the width and 45 % at 16 times the width redundant"


@pytest.mark.parametrize(
    ("redundancy", "ours", "papers"),
    [
        (partial(rank_redundancy, 14, 100), "19 % (12 to 24) at 12.5 %", RANK_PAPER),
        (partial(rank_redundancy, 3, 100), "at least 75 % at 3.12 %", RANK_PAPER),
        (partial(rank_redundancy, 50, 100), "at most 5 % at 50 %", RANK_PAPER),
        (partial(attention_redundancy, 4.5), "63 % (61 to 65) at 4 times", WIDE_PAPER),
        (partial(attention_redundancy, 9), "80 % (75 or more) at 8 times", WIDE_PAPER),
    ],
)
def test_the_source_names_the_nearest_of_our_points_and_the_papers(
    redundancy: Callable[[float | None], Redundancy], ours: str, papers: str
) -> None:
    for depth in (2, 24):
        source = redundancy(depth).source
        assert source.startswith("Wies et al. 2021 (5.")
        assert f"found about {papers}" in source
        assert ours in source.partition(". archfit's own runs (")[2]


def test_the_source_of_a_rank_shows_what_depth_did_to_it() -> None:
    assert (
        "It falls with depth: rank 16 cost 70 % (67 to 73) with 2 layers of width 302, 52 % (48 to "
        "55) with 6 layers of width 256, 41 % (31 to 48) with 8 layers of width 250. "
    ) in rank_redundancy(10, 100, 2).source


def test_what_is_not_measured_says_so() -> None:
    shares = {
        "at least 75 %": rank_redundancy(1, 1000, 6),
        "at least 20 %": rank_redundancy(1, 1000, 12),
        "at least 82 %": attention_redundancy(64, 6),
        "at least 40 %": attention_redundancy(64, None),
    }
    for words, share in shares.items():
        assert str(share) == words
        assert share.basis == "beyond what was measured"
