"""Charts and pages: what they show is what was planned and audited, and nothing else is loaded."""

import itertools
import json

import pytest

from archfit.advise.planner import make_plan
from archfit.audit.auditor import audit_model
from archfit.audit.embedding_spectrum import EmbeddingSpectrum
from archfit.audit.zoo import zoo_model
from archfit.report.charts.audit import gallery_chart, spectrum_chart
from archfit.report.charts.plan import HEIGHT, LINE, iso_parameter_chart
from archfit.report.charts.theory import LINES, growth_chart
from tests_experiments import measured
from tests_plans import question

KNOWN = (("near", 12, 800), ("twice the size", 24, 1600), ("far", 96, 12288))


def test_the_iso_parameter_chart_shows_ours_advisers_repairs_and_models_of_the_size() -> None:
    plan = make_plan(question(10**8, vocab=257))
    text = json.dumps(iso_parameter_chart(plan, KNOWN).to_dict())
    for name in ("archfit", "Levine 2020", "log3 threshold", "bpe", "near"):
        assert f'"name": "{name}"' in text
    for name in ("far", "twice the size"):
        assert name not in text
    assert f'"depth": {plan.shape.depth}.0, "width": {plan.shape.width}.0' in text


@pytest.mark.parametrize(
    ("size", "words"), [(10**18, "1,000,000T"), (10**12, "1T"), (650_000_000, "650M"), (800, "800")]
)
def test_sizes_in_the_title_are_words_that_people_use(size: int, words: str) -> None:
    chart = iso_parameter_chart(make_plan(question(size, multiple_of=8)), ()).to_dict()
    assert chart["title"]["text"].startswith(f"Shapes of {words} block parameters")


@pytest.mark.parametrize("size", [10**7, 10**18])
def test_the_law_is_drawn_past_the_shape_that_lies_on_it(size: int) -> None:
    plan = make_plan(question(size, vocab=10**9, max_depth=1000))
    chart = iso_parameter_chart(plan, ()).to_dict()
    lines = [rows for rows in chart["datasets"].values() if len(rows) > 40]
    (law,) = [
        depths for rows in lines if (depths := [row["depth"] for row in rows])[0] < depths[-1]
    ]
    assert law[0] < plan.ideal.depth < law[-1]


def test_names_never_lie_on_one_another() -> None:
    chart = iso_parameter_chart(make_plan(question(10**8)), KNOWN).to_dict()
    (labels,) = [rows for rows in chart["datasets"].values() if rows and "label_y" in rows[0]]
    places = sorted(label["label_y"] for label in labels)
    assert all(b - a >= LINE - 1e-9 for a, b in itertools.pairwise(places))
    assert places[-1] <= max(HEIGHT, LINE * len(places))


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
