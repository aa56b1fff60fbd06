"""The chart of a check: what lies beyond its edge is drawn on the side where it lies."""

import pytest

from archfit.report.charts.check import Trial, curve_figure, difference_figure
from archfit.report.document import WIDE


def trial(name: str, difference: float) -> Trial:
    return Trial(
        name=name,
        bits_per_byte=(2 + difference, 2 + difference),
        difference=difference,
        low=difference - 0.01 if difference else 0.0,
        high=difference + 0.01 if difference else 0.0,
        curve=((100, 3.0), (200, 2.0 + difference)),
    )


@pytest.mark.parametrize(("far", "shape"), [(-1.5, "triangle-left"), (1.5, "triangle-right")])
def test_a_network_far_better_is_at_the_left_edge_and_one_far_worse_at_the_right(
    far: float, shape: str
) -> None:
    trials = [trial("recommended", 0.0), trial("deeper", 0.02), trial("kmer-2", far)]
    chart = difference_figure(trials).chart(WIDE).to_dict()
    last = chart["layer"][-1]
    (edge,) = chart["datasets"][last["data"]["name"]]
    low, high = last["encoding"]["x"]["scale"]["domain"]
    assert low < 0 < high < 0.1
    assert (edge["shape"], edge["bits"]) == (shape, low if far < 0 else high)
    assert "kmer-2" in edge["row"]


def test_curves_are_told_apart_without_colour_in_their_legend_too() -> None:
    trials = [trial("recommended", 0.0), trial("deeper", 0.02), trial("kmer-2", -0.3)]
    points = curve_figure(trials).chart(WIDE).to_dict()["layer"][1]
    assert len(set(points["encoding"]["shape"]["scale"]["range"])) == len(trials)
