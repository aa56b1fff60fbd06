"""Charts and pages: what they show is what was planned and audited, and nothing else is loaded."""

import json
import math
from typing import Any

import pytest

from archfit.advise.ladder import LadderRun
from archfit.advise.planner import Plan, make_plan
from archfit.advise.prior import family_prior
from archfit.audit.auditor import audit_model
from archfit.audit.embedding import EmbeddingSpectrum
from archfit.audit.zoo import zoo_model
from archfit.report.charts.audit import gallery_chart, spectrum_chart
from archfit.report.charts.depth_charts import depth_chart, ladder_chart, prior_chart
from archfit.report.charts.theory import LINES, growth_chart
from archfit.report.document import NARROW, WIDE
from tests_experiments import measured
from tests_plans import question

Chart = dict[str, Any]


def drawn(plan: Plan, *, is_narrow: bool = False) -> Chart:
    chart: Chart = depth_chart(plan, None, NARROW if is_narrow else WIDE).to_dict()
    return chart


def rows_of(chart: Chart, *fields: str) -> list[dict[str, Any]]:
    """The rows of the one layer that has just these fields."""
    named = [rows for rows in chart["datasets"].values() if rows]
    (rows,) = [rows for rows in named if rows[0].keys() == set(fields)]
    return list(rows)


def test_the_chart_of_depths_has_the_loss_of_each_ours_and_the_advisers() -> None:
    plan = make_plan(question(10**7, vocab=257, family="text"))
    chart = drawn(plan)
    curve = rows_of(chart, "depth", "lost")
    assert [row["depth"] for row in curve] == sorted(row["depth"] for row in curve)
    assert min(row["lost"] for row in curve) == pytest.approx(plan.regret.expected, rel=0.2)
    points = _points(chart)
    (ours,) = [row for row in points if row["mark"] == "recommended"]
    assert (ours["name"], ours["depth"]) == ("archfit", plan.shape.depth)
    assert points[-1] == ours  # drawn last, on top of the others
    advised = {one.name: one for one in plan.advice if one.depth is not None}
    theirs = {row["name"]: row for row in points if row is not ours}
    assert theirs.keys() <= advised.keys()
    assert len(theirs) > 3
    for name, row in theirs.items():
        assert row["depth"] == advised[name].depth
        assert row["mark"].endswith("in its range") == advised[name].in_range
        assert row["lost"] >= min(one["lost"] for one in curve)


def test_the_depths_that_are_as_good_are_shaded() -> None:
    plan = make_plan(question(10**7, vocab=257))
    (band,) = rows_of(drawn(plan), "low", "high")
    assert (band["low"], band["high"]) == pytest.approx(plan.depth_range, rel=0.03)


def _points(chart: Chart) -> list[dict[str, Any]]:
    return rows_of(chart, "name", "depth", "lost", "mark")


@pytest.mark.parametrize("size", [10**5, 3 * 10**6, 10**18])
@pytest.mark.parametrize("max_depth", [1, 2, 128])
def test_depths_are_drawn_of_networks_of_any_size(size: int, max_depth: int) -> None:
    plan = make_plan(question(size, vocab=257, max_depth=max_depth))
    for is_narrow in (False, True):
        chart = drawn(plan, is_narrow=is_narrow)
        low, high = chart["layer"][2]["encoding"]["x"]["scale"]["domain"]
        assert 0.7 < low < high
        (ours,) = [row for row in _points(chart) if row["mark"] == "recommended"]
        assert low < ours["depth"] < high  # the answer stands inside, whatever is left out
        assert 0 <= ours["lost"] < chart["layer"][-1]["encoding"]["y"]["scale"]["domain"][1]
        assert all(math.isfinite(row["lost"]) for row in rows_of(chart, "depth", "lost"))


def test_the_chart_of_a_ladder_has_a_line_for_each_size_and_a_point_for_each_depth() -> None:
    losses = {
        (250_000, 1, 0): 2.5,
        (250_000, 2, 0): 2.0,
        (250_000, 2, 1): 2.2,
        (500_000, 2, 0): 1.9,
    }
    runs = [
        LadderRun(size=size, depth=depth, seed=seed, params=size, bits=bits)
        for (size, depth, seed), bits in losses.items()
    ]
    for layout in (WIDE, NARROW):
        chart = ladder_chart(runs, family_prior("text"), layout).to_dict()
        lines, points, circles = (_layer_rows(chart, at) for at in range(3))
        found = [(row["size"], row["depth"], round(row["bits"], 6)) for row in points]
        assert found == [("250k", 1, 2.5), ("250k", 2, 2.1), ("500k", 2, 1.9)]
        assert circles == [points[1], points[2]]
        series = chart["layer"][0]["encoding"]["color"]["scale"]["domain"]
        assert series == ["250k", "500k"]
        assert {(row["size"], row["depth"]) for row in lines} >= {("250k", 1.0), ("250k", 2.0)}
        for field, axis in (("depth", "x"), ("bits", "y")):
            low, high = chart["layer"][0]["encoding"][axis]["scale"]["domain"]
            assert all(low < row[field] < high for row in lines + points)


def _layer_rows(chart: Chart, at: int) -> list[dict[str, Any]]:
    return list(chart["datasets"][chart["layer"][at]["data"]["name"]])


def test_the_curve_of_a_ladder_goes_through_its_runs() -> None:
    """Up to what a seed scatters, since it is fitted to them, and stands at their level."""
    runs = [
        LadderRun(size=10**6, depth=d, seed=0, params=10**6, bits=2 + 0.1 * math.log(d / 6) ** 2)
        for d in (1, 2, 3, 4, 6, 8, 12, 16, 24)
    ]
    lines, points, _ = (
        _layer_rows(ladder_chart(runs, family_prior("text"), WIDE).to_dict(), at) for at in range(3)
    )
    for point in points:
        nearest = min(lines, key=lambda row: abs(math.log(row["depth"] / point["depth"])))
        assert nearest["bits"] == pytest.approx(point["bits"], rel=0.02)
    best = min(lines, key=lambda row: row["bits"])
    assert best["depth"] == pytest.approx(6, rel=0.4)


def test_the_chart_of_the_prior_has_the_answer_and_both_opinions() -> None:
    plan = make_plan(question(10**7, vocab=257, family="text"))
    runs = [
        LadderRun(size=10**6, depth=d, seed=0, params=10**6, bits=2 + d / 50) for d in (1, 4, 16)
    ]
    chart = prior_chart(plan, runs, WIDE).to_dict()
    (answer,) = rows_of(chart, "known", "params", "depth")
    shown = {"params": plan.best.size, "depth": plan.shape.depth}
    assert answer == shown | {"known": "recommended"}  # which the legend names
    legend = chart["layer"][2]["encoding"]["shape"]["scale"]
    assert dict(zip(legend["domain"], legend["range"], strict=True))["recommended"] == "diamond"
    rows = _layer_rows(chart, 0)
    before, after = (
        next(row for row in rows[::-1] if row["known"] == name)
        for name in ("other data", "with your data")
    )
    assert before["depth"] == pytest.approx(plan.best.outlook.depth, rel=0.05)
    assert after["depth"] < before["depth"]  # on these data shallow networks are better
    assert all(row["low"] < row["depth"] < row["high"] for row in rows if row["depth"] > 2)
    assert {row["known"] for row in _layer_rows(prior_chart(plan, (), WIDE).to_dict(), 0)} == {
        "other data"
    }


def test_the_gallery_chart_has_every_stack_and_every_bottleneck() -> None:
    models = [audit_model(zoo_model(name)) for name in ("t5-11b", "esm-1b", "gpt2")]
    text = json.dumps(gallery_chart(models, WIDE).to_dict())
    assert text.count('"name": "T5-11B"') == 3  # two stacks and an attention ratio
    assert text.count('"name": "ESM-1b"') == 2  # a stack and a rank ratio
    assert text.count('"name": "GPT-2"') == 1


def test_the_spectrum_names_its_rank() -> None:
    spectrum = EmbeddingSpectrum(
        tensors=("wte.weight",), rows=10, width=4, padded_rows=1, numerical_rank=2,
        tolerance=1e-3, stable_rank=1.5, effective_rank=1.8,
        singular_values=(4.0, 2.0, 1e-7, 0.0), bytes_read=160,
    )  # fmt: skip
    text = json.dumps(spectrum_chart([audit_model(zoo_model("gpt2"), spectrum)], WIDE).to_dict())
    assert "rank 2 of 4" in text
    assert '"share": 0.5' in text


def test_the_growth_chart_marks_what_was_measured_beside_every_bound() -> None:
    found = [measured(2, 3, 1, N) for N in (2, 6)] + [measured(2, 2, 1, 4)]
    text = json.dumps(growth_chart(found, WIDE).to_dict())
    assert '"rank": "49"' in text  # 6 positions; with 2 the rank is 35, and not drawn
    assert '"rank": "35"' not in text
    assert '"rank": "18"' in text
    for line in LINES:
        assert text.count(f'"line": "{line}"') >= 2
