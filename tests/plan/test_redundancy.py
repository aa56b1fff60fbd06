"""The measured points come out, and what lies between them is monotone."""

import itertools

import pytest

from archfit.plan.redundancy import attention_redundancy, rank_redundancy


@pytest.mark.parametrize(
    ("share", "point"),
    [
        (rank_redundancy(16 / 680), 0.25),
        (attention_redundancy(4), 0.25),
        (attention_redundancy(16), 0.45),
        (rank_redundancy(128 / 4096), 0.25),  # ALBERT-xxlarge: about 25 %, say Wies et al.
        (rank_redundancy(33 / 1280), 0.25),  # ESM-1b: likewise
    ],
)
def test_the_papers_numbers_lie_inside_the_interval(share: object, point: float) -> None:
    assert share.low < point < share.high  # type: ignore[attr-defined]


def test_without_a_bottleneck_nothing_is_redundant() -> None:
    for share in (rank_redundancy(1), rank_redundancy(3), attention_redundancy(1)):
        assert (share.low, share.high) == (0, 0)
    assert attention_redundancy(0.5).high == 0


def test_redundancy_falls_with_the_rank_and_rises_with_the_attention_ratio() -> None:
    ranks = [rank_redundancy(step / 1000) for step in range(1, 1001)]  # measured at 0.0235
    ratios = [attention_redundancy(1 + step / 10) for step in range(300)]  # at 4 and 16
    for higher, lower in [*itertools.pairwise(ranks), *itertools.pairwise(ratios[::-1])]:
        assert higher.low >= lower.low
        assert higher.high >= lower.high


def test_what_is_not_measured_says_so() -> None:
    assert rank_redundancy(16 / 680).basis == "measured"
    assert rank_redundancy(0.5).basis == "interpolated"
    beyond = rank_redundancy(0.001)
    assert beyond.basis == "beyond what was measured"
    assert (str(beyond), str(attention_redundancy(64))) == ("at least 20%", "at least 40%")
