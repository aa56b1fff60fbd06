"""The spectrum of co-occurrence: its axis has ticks, however flat or steep it is."""

import pytest

from archfit.report.charts.check import cooccurrence_figure
from archfit.report.document import WIDE


@pytest.mark.parametrize(
    ("values", "ticks"),
    [((0.9, 0.8, 0.5), [1, 0.1]), ((0.9,), [1, 0.1]), ((1.0, 0.5, 0.004), [1, 0.1, 0.01, 0.001])],
)
def test_the_axis_ends_at_a_power_of_ten_below_the_least_value(
    values: tuple[float, ...], ticks: list[float]
) -> None:
    figure = cooccurrence_figure(values, rank=3, limit=17, width=32)
    assert figure is not None
    y = figure.chart(WIDE).to_dict()["layer"][0]["encoding"]["y"]
    assert y["axis"]["values"] == pytest.approx(ticks)
    assert y["scale"]["domain"] == pytest.approx([ticks[-1], 1])
