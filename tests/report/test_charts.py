"""Charts and pages: what they show is what was planned and audited, and nothing else is loaded."""

import json
import math
from typing import Any

import pytest

from archfit.advise.ladder import LadderRun
from archfit.advise.planner import Plan, make_plan
from archfit.audit.auditor import audit_model
from archfit.audit.embedding import EmbeddingSpectrum
from archfit.audit.zoo import zoo_model
from archfit.report.charts.audit import gallery_chart, spectrum_chart
from archfit.report.charts.depth_charts import depth_chart, ladder_chart
from archfit.report.charts.theory import LINES, growth_chart
from archfit.report.document import NARROW, WIDE
from tests_experiments import measured
from tests_plans import question

Chart = dict[str, Any]


def drawn(plan: Plan, *, is_narrow: bool = False) -> Chart:
    chart: Chart = depth_chart(plan, NARROW if is_narrow else WIDE).to_dict()
    return chart


def rows_of(chart: Chart, *fields: str) -> list[dict[str, Any]]:
    """The rows of the one layer that has just these fields."""
    (rows,) = [rows for rows in chart["datasets"].values() if rows[0].keys() == set(fields)]
    return list(rows)


def test_the_chart_of_depths_has_the_loss_of_each_ours_and_the_advisers() -> None:
    plan = make_plan(question(10**7, vocab=257, family="text"))
    chart = drawn(plan)
    curve = rows_of(chart, "depth", "lost")
    assert [row["depth"] for row in curve] == sorted(row["depth"] for row in curve)
    assert min(row["lost"] for row in curve) == pytest.approx(plan.regret.expected, rel=0.2)
    points = rows_of(chart, "name", "depth", "lost", "mark")
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


@pytest.mark.parametrize("size", [10**5, 10**18])
@pytest.mark.parametrize("max_depth", [1, 128])
def test_depths_are_drawn_of_networks_of_any_size(size: int, max_depth: int) -> None:
    plan = make_plan(question(size, vocab=257, max_depth=max_depth))
    for is_narrow in (False, True):
        chart = drawn(plan, is_narrow=is_narrow)
        low, high = chart["layer"][1]["encoding"]["x"]["scale"]["domain"]
        assert 1 <= low < high
        assert chart["title"]["text"] == f"Depths of {plan.params.total:,} parameters"
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
        chart = ladder_chart(runs, [250_000, 500_000], layout).to_dict()
        rows = rows_of(chart, "size", "depth", "bits")
        found = [(row["size"], row["depth"], round(row["bits"], 6)) for row in rows]
        assert found == [("250k", 1, 2.5), ("250k", 2, 2.1), ("500k", 2, 1.9)]
        series = chart["layer"][0]["encoding"]["color"]["scale"]["domain"]
        assert series == ["250k", "500k"]


def test_the_gallery_chart_has_every_stack_and_every_bottleneck() -> None:
    models = [audit_model(zoo_model(name)) for name in ("t5-11b", "esm-1b", "gpt2")]
    text = json.dumps(gallery_chart(models).to_dict())
    assert text.count('"name": "T5-11B"') == 3  # two stacks and an attention ratio
    assert text.count('"name": "ESM-1b"') == 2  # a stack and a rank ratio
    assert text.count('"name": "GPT-2"') == 1


def test_the_spectrum_names_its_rank() -> None:
    spectrum = EmbeddingSpectrum(
        tensors=("wte.weight",), rows=10, width=4, padded_rows=1, numerical_rank=2,
        tolerance=1e-3, stable_rank=1.5, effective_rank=1.8,
        singular_values=(4.0, 2.0, 1e-7, 0.0), bytes_read=160,
    )  # fmt: skip
    text = json.dumps(spectrum_chart([audit_model(zoo_model("gpt2"), spectrum)]).to_dict())
    assert "rank 2 of 4" in text
    assert '"share": 0.5' in text


def test_the_growth_chart_marks_what_was_measured_beside_every_bound() -> None:
    found = [measured(2, 3, 1, N) for N in (2, 6)] + [measured(2, 2, 1, 4)]
    text = json.dumps(growth_chart(found).to_dict())
    assert '"rank": "49"' in text  # 6 positions; with 2 the rank is 35, and not drawn
    assert '"rank": "35"' not in text
    assert '"rank": "18"' in text
    for line in LINES:
        assert text.count(f'"line": "{line}"') >= 2
