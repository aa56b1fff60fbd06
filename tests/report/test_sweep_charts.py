"""Figures of sweeps: what is drawn is what was trained and fitted."""

import json
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from archfit.fit.fitted import Fits, fitted
from archfit.report.charts.look import distinguishing_words
from archfit.report.charts.sweep import sweep_figures
from archfit.report.document import NARROW, WIDE, Figure
from archfit.report.page import titled_chart
from archfit.spec import RunRecord
from tests_reports import attention_runs, depth_runs, repair_runs, table_runs

KINDS: dict[Callable[[], list[RunRecord]], list[str]] = {
    depth_runs: ["loss-against-size", "spread-of-seeds"],
    table_runs: [
        "loss-against-rank-and-width",
        "redundancy",
        "position-ranks",
        "input-and-output-rank",
        "spread-of-seeds",
    ],
    attention_runs: ["loss-against-size", "redundancy", "spread-of-seeds"],
    repair_runs: ["bits-per-byte", "spread-of-seeds"],
}


@cache
def fits_of(runs: Callable[[], list[RunRecord]]) -> Fits:
    return fitted(runs())


def figure_of(runs: Callable[[], list[RunRecord]], name: str) -> Figure:
    (found,) = [one for one in sweep_figures(fits_of(runs), {}) if one.name == name]
    return found


def drawn_rows(figure: Figure) -> list[dict[str, Any]]:
    """All rows of all layers."""
    return [row for rows in figure.chart(WIDE).to_dict()["datasets"].values() for row in rows]


def values_at(rows: list[dict[str, Any]], *keys: str) -> set[tuple[float, ...]]:
    return {
        tuple(round(row[key], 9) for key in keys) for row in rows if all(key in row for key in keys)
    }


def layers_of(spec: Any) -> Iterator[dict[str, Any]]:
    for key in ("concat", "vconcat", "layer"):
        for part in spec.get(key, []):
            yield from layers_of(part)
    if "encoding" in spec:
        yield spec


@pytest.mark.parametrize("runs", KINDS, ids=lambda runs: runs.__name__)
def test_a_sweep_has_the_figures_that_its_records_support(
    runs: Callable[[], list[RunRecord]],
) -> None:
    assert [figure.name for figure in sweep_figures(fits_of(runs), {})] == KINDS[runs]


@pytest.mark.parametrize("runs", KINDS, ids=lambda runs: runs.__name__)
def test_every_figure_is_described_and_every_axis_has_its_unit(
    runs: Callable[[], list[RunRecord]],
) -> None:
    for figure in sweep_figures(fits_of(runs), {}):
        chart = titled_chart(figure).to_dict()
        assert chart["title"]["text"] == figure.title
        assert chart["description"] == figure.description
        assert any(letter.isdigit() for letter in figure.description)
        for layer in layers_of(figure.chart(NARROW).to_dict()):
            for axis in ("x", "y"):
                encoded = layer["encoding"].get(axis, {"type": "nominal"})
                assert encoded["type"] == "nominal" or encoded["title"]


@pytest.mark.parametrize("runs", KINDS, ids=lambda runs: runs.__name__)
def test_series_differ_in_shape_or_dash_and_not_in_colour_alone(
    runs: Callable[[], list[RunRecord]],
) -> None:
    for figure in sweep_figures(fits_of(runs), {}):
        for layer in layers_of(figure.chart(WIDE).to_dict()):
            encoding, mark = layer["encoding"], layer["mark"]["type"]
            if "field" not in encoding.get("color", {}):
                continue
            other = {"point": "shape", "line": "strokeDash"}.get(mark)
            is_limit = layer["mark"].get("filled") is False
            if other and not is_limit:
                looks = [json.dumps(look) for look in encoding[other]["scale"]["range"]]
                assert len(set(looks)) == len(encoding[other]["scale"]["domain"])


def test_the_size_chart_draws_every_run_and_the_curves_and_crossings_of_the_fit() -> None:
    fits, rows = fits_of(depth_runs), drawn_rows(figure_of(depth_runs, "loss-against-size"))
    runs = {
        (one.spec.architecture.block_params, round(one.evaluations[-1].heldout_nats_per_token, 9))
        for one in depth_runs()
    }
    assert {(row["size"], round(row["loss"], 9)) for row in rows if "run" in row} == runs
    for curve in fits.curves:
        points = np.linspace(*curve.family.log_range, 60)
        low, high = np.quantile(curve.resampled(points), [0.05, 0.95], axis=0)
        columns = zip(np.exp(points), curve.mean(points), low, high, strict=True)
        expected = {tuple(round(float(value), 6) for value in point) for point in columns}
        found = {
            tuple(round(row[key], 6) for key in ("size", "loss", "low", "high"))
            for row in rows
            if row.get("depth") == str(curve.family.key.depth) and "low" in row
        }
        assert found == expected
    (crossing,) = fits.crossings
    (mark,) = [row for row in rows if "row" in row]  # and no triangle: both ends are inside
    assert {name: mark[name] for name in ("size", "low", "high")} == crossing.size.row("size")
    assert mark["row"] == "6 and 12: 3.02M"


def test_ranks_and_widths_share_their_scale_of_losses() -> None:
    fits, figure = fits_of(table_runs), figure_of(table_runs, "loss-against-rank-and-width")
    chart = figure.chart(WIDE).to_dict()
    scales = {
        json.dumps(layer["encoding"]["y"]["scale"])
        for layer in layers_of(chart)
        if "y" in layer["encoding"]
    }
    assert len(scales) == 1
    rows = drawn_rows(figure)
    means = values_at(rows, "rank", "loss", "low")
    expected = {
        (float(cell.architecture.embedding.inner), round(cell.mean, 9))
        for cell in fits.cells
        if hasattr(cell.architecture.embedding, "inner")
    }
    assert len(expected) == 4
    assert expected <= {mean[:2] for mean in means}
    widths = {row["width"] for row in rows if "rank" not in row and "width" in row}
    assert {100, 150, 200, 250, 300} <= widths


def test_the_interval_of_a_mean_is_that_of_the_pooled_noise() -> None:
    (noise,) = fits_of(table_runs).noise
    rows = drawn_rows(figure_of(table_runs, "position-ranks"))
    found = next(row for row in rows if row.get("tables") == "positions" and "low" in row)
    half = (
        1.6991 * noise.usual.std / math.sqrt(3)
    )  # t of 29 to 34 degrees of freedom is 1.699 to 1.691
    assert found["high"] - found["low"] == pytest.approx(2 * half, rel=0.01)


@pytest.mark.parametrize("runs", [table_runs, attention_runs])
def test_redundancies_are_drawn_with_the_intervals_of_the_fit(
    runs: Callable[[], list[RunRecord]],
) -> None:
    rows = drawn_rows(figure_of(runs, "redundancy"))
    found = values_at(rows, "share", "low", "high")
    whole = [item for item in fits_of(runs).redundancy if item.estimate.is_bounded]
    assert whole
    for item in whole:
        assert tuple(round(end or 0, 9) for end in item.estimate.row().values()) in found


def test_a_redundancy_that_is_only_bounded_is_an_arrow() -> None:
    worse = [one for one in table_runs() if one.spec.architecture.width in (200, 250, 300)]
    kept = [one for one in worse if getattr(one.spec.architecture.head, "inner", 300) in (5, 300)]
    fits = fitted(kept)
    (figure,) = [one for one in sweep_figures(fits, {}) if one.name == "redundancy"]
    limits = [row for row in drawn_rows(figure) if row.get("mark") == "at least"]
    (item,) = [one for one in fits.redundancy if one.outcome == "at least"]
    low = item.estimate.low
    assert len(limits) == 2  # the arrow and its line
    for row in limits:
        assert (row["share"], row["low"], row["high"]) == (low, low, 1.0)
    assert f"at least {low:.1%}" in figure.description


def test_the_costs_of_input_and_output_are_those_of_the_contrasts() -> None:
    rows = drawn_rows(figure_of(table_runs, "input-and-output-rank"))
    found = values_at(rows, "inner", "cost", "low", "high")
    expected = {
        (item.first.rank, *(round(end or 0, 9) for end in item.estimate.row().values()))
        for item in fits_of(table_runs).contrasts
        if item.kind == "cost" and item.first.key.factorised in (("embedding",), ("head",))
    }
    assert len(expected) == 8
    assert found == expected


def test_networks_of_equal_size_stand_in_the_order_of_their_bits_per_byte() -> None:
    (ranking,) = fits_of(repair_runs).rankings
    rows = [r for r in drawn_rows(figure_of(repair_runs, "bits-per-byte")) if "low" in r]
    assert [row["bits"] for row in rows] == [item.first.bits_per_byte for item in ranking.results]
    lows = [ranking.best.bits_per_byte + (item.estimate.low or 0) for item in ranking.results]
    assert [row["low"] for row in rows] == pytest.approx(lows, rel=1e-12)  # the chart adds anew
    assert rows[0]["row"] == "vocabulary 2,000: 6 x 232"


def test_the_spread_of_seeds_sums_to_nothing_in_each_cell() -> None:
    rows = drawn_rows(figure_of(depth_runs, "spread-of-seeds"))
    cells = {row["row"] for row in rows if "low" in row}
    assert len(cells) == 10
    for cell in cells:
        mine = [row["difference"] for row in rows if row.get("row") == cell and "noisy" in row]
        assert len(mine) == 3
        assert sum(mine) == pytest.approx(0, abs=1e-9)


def test_families_are_named_by_what_sets_them_apart() -> None:
    curves = fits_of(depth_runs).curves
    key = curves[0].family.key
    assert distinguishing_words([key], {}) == {key: "full tables"}
    keys = [cell.family.key for cell in fits_of(table_runs).curves] + [key]
    assert set(distinguishing_words(keys, {}).values()) == {"full tables"}
