"""The atlas in words and figures: planted best depths come out of tables and charts."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archfit.fit.atlas import Atlas, AtlasKind, AtlasRun, read_atlas
from archfit.fit.best_depth import DepthCurve
from archfit.report.atlas_document import AtlasView, _best, atlas_document, rule_depths
from archfit.report.document import NARROW, WIDE, Document, Table
from archfit.spec.estimate import Estimate
from archfit.sweep.named import named_sweep
from archfit.sweep.sweep import Corpus
from tests_curves import record

BESTS = {"tales": 8.0, "waves": 3.0}
NATS = 3 * math.log(2)  # of a token that records take for a bit of each byte


def planted(kind: str, best: float, hash_of: str) -> list[AtlasRun]:
    random = np.random.default_rng(len(kind))
    corpus = Corpus(label="x", kind="abc", vocab=28, hash=hash_of * 64, folder="")
    runs = []
    for spec in named_sweep("atlas", "small", [corpus], seeds=[0, 1], changes={}).specs:
        shape = spec.architecture
        bits = 2 - 0.2 * math.log(shape.params / 1e5) + 0.05 * math.log(shape.depth / best) ** 2
        bits += 0.003 * random.standard_normal()
        made = record(shape, bits * NATS, spec.seed, recipe=spec.recipe)
        runs.append(AtlasRun(kind=kind, vocabulary="characters", record=made))
    return runs


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    facts = {"unit": "byte", "source": "somewhere", "licence": "MIT"}
    kinds = tuple(AtlasKind(name=name, family=name, **facts) for name in BESTS)
    runs = [run for (name, best), h in zip(BESTS.items(), "ab", strict=True)
            for run in planted(name, best, h)]  # fmt: skip
    return Atlas(kinds=kinds, runs=tuple(runs))


@pytest.fixture(scope="module")
def view(atlas: Atlas) -> AtlasView:
    return AtlasView.of(atlas)


def waves(view: AtlasView) -> DepthCurve:
    """At the largest size; best at 3, from 1 to 32 layers."""
    (curves,) = (curves for kind, (_, curves) in view.kinds.items() if kind.name == "waves")
    return curves[-1]


@pytest.fixture(scope="module")
def document(atlas: Atlas) -> Document:
    return atlas_document(atlas)


def table(document: Document, title: str) -> Table:
    return next(t for part in document.sections for t in part.tables if t.title == title)


def test_best_depths_stand_in_the_first_table(document: Document) -> None:
    for title in ("Best depth", "Intervals"):
        best = table(document, title)
        assert best.columns == ("data", "tokens", "60k", "125k", "250k", "500k", "1M")
        for row in best.rows:
            for cell in row[2:]:
                assert float(cell.split()[0]) == pytest.approx(BESTS[row[0]], rel=0.3)


def test_a_best_depth_at_the_end_of_those_trained_is_a_limit(view: AtlasView) -> None:
    """And one that no end is known of is not printed as a number."""
    curve = waves(view)
    first, last = map(float, (curve.depths[0], curve.depths[-1]))

    def told(depths: tuple[float, float], *best: float | None) -> tuple[str, str]:
        value, low, high = best
        made = replace(
            curve,
            points=tuple(p for p in curve.points if depths[0] <= p.depth <= depths[1]),
            depths=np.array([*depths]),
            best=Estimate(value=value, low=low, high=high),
        )
        return _best(made), _best(made, is_brief=True)

    assert (first, last) == (1, 32)
    assert told((6, 32), 6, None, 6.2) == ("at most 6", "≤6")
    assert told((1, 32), 32, 29.8, None) == ("at least 30", "≥30")
    assert told((1, 32), 8.3, 4.2, None) == ("8.3 (at least 4)", "8.3")
    assert told((2, 32), 5.24, None, 6.8) == ("5.2 (at most 7)", "5.2")
    assert told((1, 32), 1, 1, 2.4) == ("1 (1 to 2.4)", "1")
    for unknown in ((2, 32, 8.8, None, None), (1, 32, 24, 1, None), (1, 32, 32, 1, None)):
        assert told(unknown[:2], *unknown[2:]) == ("not resolved", "?")


def test_networks_that_learnt_little_are_marked() -> None:
    """Those of context 1,024 have learnt pairs of bytes."""
    best = table(atlas_document(read_atlas()), "Best depth")
    rows = {row[:2]: [cell for cell in row[2:] if cell] for row in best.rows}
    for kind in ("english", "c-code"):
        assert all(cell.endswith("*") for cell in rows[kind, "bytes, context 1024"])
    assert [cell.endswith("*") for cell in rows["english", "bytes"]] == [True] * 2 + [False] * 6


def test_rules_lose_what_the_curves_say(view: AtlasView, document: Document) -> None:
    eight = [each for each in view.rules if each.rule == "always 8 layers"]
    by_kind = {
        name: [e.loses for e in eight if e.kind == name and e.loses is not None] for name in BESTS
    }
    assert max(by_kind["tales"]) < 0.01
    assert min(by_kind["waves"]) == pytest.approx(0.05 * math.log(8 / 3) ** 2, abs=0.02)
    rows = {row[0]: row for row in table(document, "Mean regret of rules, bits (data sets)").rows}
    said = float(rows["always 8 layers"][-1].split()[0])
    assert said == pytest.approx(np.mean([by_kind[name][-1] for name in BESTS]), abs=1e-3)


def test_rules_of_others_are_those_of_their_papers() -> None:
    depths = rule_depths(12 * 8 * 512**2)
    assert depths["always 8 layers"] == 8
    assert depths["nanochat 2026"] == pytest.approx(8)  # 8 x 512: width / depth is 64


def drawn(document: Document, name: str, layout: Any = WIDE) -> list[dict[str, Any]]:
    datasets = document.figure(name).chart(layout).to_dict()["datasets"]
    return [row for rows in datasets.values() for row in rows]


def test_the_figure_of_a_kind_shows_every_depth_and_marks_the_best(document: Document) -> None:
    rows = drawn(document, "depth-waves")
    points = [row for row in rows if "runs" in row]
    assert {row["depth"] for row in points} == {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}
    bests = [row for row in rows if "low" in row and row["bits"] > 0.5]
    assert len(bests) == 5
    assert all(row["low"] <= row["depth"] <= row["high"] for row in bests)
    assert all(row["depth"] == pytest.approx(3, rel=0.3) for row in bests)


@pytest.mark.parametrize("layout", [WIDE, NARROW])
def test_best_depths_and_rules_are_drawn_by_family(document: Document, layout: Any) -> None:
    rows = drawn(document, "best-depth", layout)
    assert {row["kind"] for row in rows if "kind" in row} == set(BESTS)
    assert {row["rule"] for row in rows if "rule" in row} >= {"always 8 layers", "nanochat 2026"}


def test_one_vocabulary_is_compared_with_none(document: Document) -> None:
    assert "vocabularies" not in {figure.name for figure in document.figures}


def test_an_atlas_of_few_runs_says_what_is_missing(atlas: Atlas) -> None:
    few = Atlas(kinds=atlas.kinds, runs=atlas.runs[:3])
    said = atlas_document(few)
    assert "A best depth needs" in said.sections[0].sentences[0]
    assert not said.figures


def test_curves_know_what_other_depths_lose(view: AtlasView) -> None:
    assert waves(view).regret(12) == pytest.approx(0.05 * math.log(4) ** 2, abs=0.02)
