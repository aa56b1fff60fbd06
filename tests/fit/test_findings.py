"""Findings: recomputed, compared with what is shipped and printed, and with sums done by hand."""

import itertools
import json
import math
import runpy
import statistics
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from archfit.fit.evidence import (
    EvidenceFinding,
    Measure,
    checked_hypotheses,
    claim_table,
    evidence_fits,
    evidence_records,
    is_inside,
    read_evidence,
)
from archfit.fit.evidence_points import CONCLUSIONS, OUTSIDE, points_of
from archfit.fit.paper_findings import all_findings
from archfit.report.papers_document import evidence_json, fit_rows
from archfit.spec import Architecture, Factorised, Full
from archfit.spec.files import packed_file
from archfit.spec.run_options import RunOptions

EVIDENCE = read_evidence()
DOCS = Path(__file__).parents[2] / "docs"
written_page = runpy.run_path(str(DOCS / "evidence" / "write.py"))["written_page"]
NETWORK = RunOptions(precision="float32", depth=6, width=64, heads=2).architecture(vocab=2000)
NUMBERS = 1e-6  # relative: fits end where the last bits of a library's sums let them


@pytest.fixture(scope="module")
def findings() -> dict[str, EvidenceFinding]:
    return {finding.id: finding for finding in all_findings()}


def measure(finding: EvidenceFinding, what: str) -> Measure:
    """The measure of this name."""
    return next(measure for measure in finding.measures if measure.what == what)


def means(sweep: str, *, width: int | None = None) -> dict[Architecture, float]:
    """The mean last loss of each network, summed by hand."""
    losses = defaultdict(list)
    for record in evidence_records(sweep):
        if width in (None, record.spec.architecture.width):
            last = record.evaluations[-1].heldout_nats_per_token
            losses[record.spec.architecture].append(last)
    return {shape: sum(those) / len(those) for shape, those in losses.items()}


def assert_same(found: object, shipped: object, where: str = "") -> None:
    """Equal, numbers within rounding."""
    if isinstance(shipped, dict):
        assert isinstance(found, dict)
        assert found.keys() == shipped.keys(), where
        for key, value in shipped.items():
            assert_same(found[key], value, f"{where}.{key}")
    elif isinstance(shipped, list):
        assert isinstance(found, list)
        assert len(found) == len(shipped), where
        for at, (one, other) in enumerate(zip(found, shipped, strict=True)):
            assert_same(one, other, f"{where}[{at}]")
    elif isinstance(shipped, float):
        assert found == pytest.approx(shipped, rel=NUMBERS, abs=NUMBERS), where
    else:
        assert found == shipped, where


def test_the_shipped_conclusions_are_recomputed_from_the_records(
    findings: dict[str, EvidenceFinding],
) -> None:
    found = json.loads(json.dumps(evidence_json(EVIDENCE, tuple(findings.values()))))
    assert_same(found, json.loads(packed_file(CONCLUSIONS).read_text()))


def test_every_number_of_the_page_is_recomputed_from_the_records(
    findings: dict[str, EvidenceFinding],
) -> None:
    page = (DOCS / "evidence.md").read_text()
    assert written_page(page, EVIDENCE, tuple(findings.values())) == page


def test_every_finding_has_its_figure_and_three_seeds(findings: dict[str, EvidenceFinding]) -> None:
    for finding in findings.values():
        assert (DOCS / "evidence" / f"{finding.sweeps[0]}.svg").is_file()
        least = 1 if finding.id.startswith(("figure-one", "rank-long")) else 3
        least = 2 if finding.id.startswith("fair-") else least
        assert min(measure.seeds for measure in finding.measures) >= least


def test_all_seven_questions_are_answered(findings: dict[str, EvidenceFinding]) -> None:
    assert {finding.question for finding in findings.values()} == set(range(1, 8))
    settled = {f.question for f in findings.values() if f.verdict not in ("undecided", OUTSIDE)}
    assert settled >= {1, 3, 4, 5, 6}


def test_nothing_is_confirmed_or_refuted_outside_of_its_hypotheses(
    findings: dict[str, EvidenceFinding],
) -> None:
    for found in findings.values():
        holds = [hypothesis.holds for hypothesis in found.hypotheses]
        assert (found.verdict == OUTSIDE) == (not all(holds)), found.id
        assert holds or found.verdict == "new", found.id
    outside = {found.id for found in findings.values() if found.verdict == OUTSIDE}
    assert outside >= {
        *("vocabulary-width", "low-rank-width", "position-rank-one", "best-depth-of-bytes"),
        *("depth-dna", "depth-proteins", "depth-mnist"),  # seven of eight that were called refuted
    }


def test_theorem_2_is_not_asked_of_too_few_layers(findings: dict[str, EvidenceFinding]) -> None:
    """By hand: 2 layers are above log3 of no width beyond 8, 6 layers above that of 256."""
    deep, _ = findings["vocabulary-width"].hypotheses
    assert not deep.holds
    assert deep.outside.startswith("2 x ")
    assert all(hypothesis.holds for hypothesis in findings["rank"].hypotheses)
    assert 2 < math.log(9.01, 3) < math.log(256, 3) < 6
    at_the_edge = [replace(NETWORK, width=width) for width in (728, 730)]  # 3 ** 6 is 729
    assert [is_inside("rank", shape) for shape in at_the_edge] == [True, False]
    with_many_heads = replace(NETWORK, heads=8, head_dim=8, width=64, embedding=Factorised(inner=8))
    assert not is_inside("rank", with_many_heads)


def test_a_claim_about_a_long_training_is_not_judged_by_a_short_one(
    findings: dict[str, EvidenceFinding],
) -> None:
    """Wies et al. trained on 1M x 512 x 128 tokens; rank-long on 6,104 x 256 x 128."""
    *_, length = findings["rank-long"].hypotheses
    assert (length.holds, length.outside) == (False, "200M")
    for tokens, holds in ((1e6 * 512 * 128, True), (6104 * 256 * 128, False), (math.nan, False)):
        assert checked_hypotheses("rank-long", [], tokens)[-1].holds is holds


def test_every_hypothesis_of_the_table_is_assumed_by_a_claim() -> None:
    claims = claim_table()["claims"].values()
    assert {name for claim in claims for name in claim["assumes"]} == set(
        claim_table()["hypotheses"]
    )


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="put <!-- findings --> into it"):
        written_page("# Evidence", EVIDENCE, ())


def test_redundancy_at_rank_16_agrees_with_a_ruler_on_the_baseline(
    findings: dict[str, EvidenceFinding],
) -> None:
    """A straight line between the two full-rank networks that enclose the loss."""
    shapes = means("wies-rank")
    (capped,) = (
        loss
        for shape, loss in shapes.items()
        if shape.embedding == shape.positions == Factorised(inner=16)
    )
    full = sorted(
        (shape.block_params, loss)
        for shape, loss in shapes.items()
        if shape.embedding == shape.positions == Full()
    )
    (n0, above), (n1, below) = next(
        pair for pair in itertools.pairwise(full) if pair[0][1] > capped > pair[1][1]
    )
    share = (above - capped) / (above - below)
    size = math.exp(math.log(n0) + share * math.log(n1 / n0))
    found = measure(findings["rank"], "rank 16 of 256").estimate
    assert found.contains(1 - size / full[-1][0])
    assert found.value == pytest.approx(1 - size / full[-1][0], abs=0.02)


def test_the_head_costs_what_the_means_say(findings: dict[str, EvidenceFinding]) -> None:
    shapes = means("input-or-output-rank")
    rank = Factorised(inner=32)
    (head,) = (loss for s, loss in shapes.items() if s.head == rank and s.embedding == Full())
    (side,) = (loss for s, loss in shapes.items() if s.embedding == rank and s.head == Full())
    found = measure(findings["input-or-output-rank"], "rank 32 of 256").estimate
    assert found.value == pytest.approx(head - side)


@pytest.mark.parametrize(
    ("sweep", "vocab", "finding", "what"),
    [
        ("wies-vocab", 257, "vocabulary-sooner", "V = 257 (bytes)"),
        ("wies-vocab", 2000, "vocabulary-sooner", "V = 2000 (BPE)"),
        ("wies-lowrank", 16, "low-rank-sooner", "rank 16"),
        ("wies-lowrank", 64, "low-rank-sooner", "rank 64"),
    ],
)
def test_crossings_lie_where_the_means_change_their_order(
    findings: dict[str, EvidenceFinding], sweep: str, vocab: int, finding: str, what: str
) -> None:
    chosen = {
        (shape.depth, shape.width): loss
        for shape, loss in means(sweep).items()
        if vocab in (getattr(shape.embedding, "inner", shape.input.vocab),)
    }
    shallow = sorted(width for depth, width in chosen if depth == 2)
    deep = sorted(width for depth, width in chosen if depth == 8)
    wins = [chosen[8, d] < chosen[2, s] for s, d in zip(shallow, deep, strict=True)]
    first = wins.index(True)
    assert all(wins[first:])
    crossing = measure(findings[finding], what).estimate.value
    assert crossing is not None
    assert shallow[first - 1] <= crossing <= shallow[first]


def test_deepening_loses_on_every_small_vocabulary(findings: dict[str, EvidenceFinding]) -> None:
    for kind in ("dna", "proteins", "mnist", "music"):
        finding = findings[f"depth-{kind}"]
        by_depth: dict[int, list[float]] = defaultdict(list)
        for record in evidence_records(f"repairs-{kind}"):
            shape = record.spec.architecture
            if shape.input.vocab in (5, 24, 17, 257) and shape.input.tokens_per_position == 1:
                by_depth[shape.depth].append(record.evaluations[-1].heldout_bits_per_byte)
        gap = sum(by_depth[32]) / 3 - sum(by_depth[4]) / 3
        assert measure(finding, "32 layers").estimate.value == pytest.approx(gap)
        assert finding.verdict == OUTSIDE  # 4 layers are below log3 of 128
        assert finding.paper.startswith("Ours, ")


def test_the_repetition_lies_inside_the_first_intervals(
    findings: dict[str, EvidenceFinding],
) -> None:
    first = measure(findings["depth-dna"], "32 layers").estimate
    again = measure(findings["again"], "32 layers").estimate
    assert again.value is not None
    assert first.contains(again.value)
    assert first.is_above(0)  # "which alone excluded zero"
    assert again.contains(0)


def test_plans_read_the_curves_of_the_findings() -> None:
    assert [point.at for point in points_of("rank")] == [1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2]
    assert [point.at for point in points_of("wide-attention")] == [2, 4, 8, 16]
    by_depth = points_of("rank-and-depth")
    assert [point.what for point in by_depth] == ["2 x 302", "6 x 256", "8 x 250"]
    shares = [point.estimate.value for point in by_depth]
    assert shares == sorted(shares, key=lambda share: -(share or 0))


def test_rows_name_their_sweep_and_have_low_high_and_seeds() -> None:
    rows = fit_rows(EVIDENCE)
    for name in ("crossings", "redundancy", "laws"):
        found = rows[name]
        assert isinstance(found, list)
        assert len(found) > 10
        assert all({"sweep", "low", "high", "seeds"} <= row.keys() for row in found)


def test_what_the_sentences_add_to_the_numbers_holds(findings: dict[str, EvidenceFinding]) -> None:
    """Words are written by hand; records that said otherwise would make them false."""
    rates = evidence_fits("depth-rates")
    assert {one.best for one in rates.tunings if one.depth == 8} == {0.006}
    assert {one.rates for one in rates.tunings} == {(0.0015, 0.003, 0.006)}
    assert [one.verdict for one in rates.crossings] == ["shallower wins everywhere"]
    short = evidence_fits("depth-lengths")
    assert {one.family.depth for one in short.best_depth} == {8}
    tied = [
        (round(one.size / 1e6, 1), one.family.recipe.steps) for one in short.best_depth if one.ties
    ]
    assert tied == [(2.2, 1000)]  # "after 1,000 steps at 2.2M within the noise"
    at_two = {one.width: one.best for one in rates.tunings if one.depth == 2}
    assert at_two == {112: 0.006, 182: 0.006, 302: 0.003}
    lengths = [one.estimate.value or 0 for one in findings["depth-and-length"].measures]
    assert [value < 0 for value in lengths] == [True, True, False, False]
    assert measure(findings["rank"], "rank 128 of 256").estimate.is_below(0.06)
    shares = [one.estimate.value or 0 for one in findings["rank-long"].measures]
    assert shares[0] > shares[1] > shares[2] == pytest.approx(shares[3], abs=0.005)
    runs = evidence_records("rank-long")
    narrow = next(run for run in runs if run.spec.architecture.width == 472)
    low = next(run for run in runs if run.spec.architecture.embedding.inner_size)
    pairs = zip(narrow.evaluations, low.evaluations, strict=True)
    assert all(one.heldout_nats_per_token < two.heldout_nats_per_token for one, two in pairs)


def test_networks_of_a_low_rank_scatter_and_those_of_full_ones_do_not() -> None:
    """Of 512 positions; the others scatter as those of 128 positions do."""
    spread = {}
    for cell in evidence_fits("wies-positions").cells:
        low = getattr(cell.architecture.positions, "inner", 256) < 16
        spread[cell] = (low or cell.architecture.embedding != Full(), statistics.stdev(cell.losses))
    low = sorted(round(std, 3) for is_low, std in spread.values() if is_low)
    assert (low[0], low[-1]) == (0.014, 0.053)
    assert {round(std, 3) for is_low, std in spread.values() if not is_low} <= {0.006, 0.007}
    usual = evidence_fits("levine-depth").noise[0].usual.std
    assert usual == pytest.approx(0.007, abs=0.0005)


def test_bytes_cross_where_their_vocabulary_limits_no_rank(
    findings: dict[str, EvidenceFinding],
) -> None:
    """So that a sentence about the bottleneck would be false."""
    crossing = measure(findings["vocabulary-sooner"], "V = 257 (bytes)")
    assert crossing.estimate.is_below(257)
    assert "not the papers' bottleneck" in findings["vocabulary-sooner"].because
    tight = [measure(findings["low-rank-sooner"], f"rank {rank}") for rank in (16, 64)]
    low, high = (measure.estimate for measure in tight)
    assert not high.lies_above(low)  # "not told apart"
    assert not low.lies_above(high)


def test_capping_the_input_costs_nothing_more_once_the_head_is_capped_at_32_or_128() -> None:
    shapes = {
        tuple(getattr(table, "inner", None) for table in (s.embedding, s.head)): loss
        for s, loss in means("input-or-output-rank").items()
    }
    assert [shapes[rank, rank] > shapes[None, rank] for rank in (8, 32, 128)] == [
        True,
        False,
        False,
    ]


def test_a_network_of_many_tokens_trained_twice_gave_the_same_losses_to_the_last_bit() -> None:
    """The three runs that two sweeps both trained: only few and frequent rows are summed anew."""
    first, second = (
        {record.spec: record for record in evidence_records(name)}
        for name in ("wies-rank", "input-or-output-rank")
    )
    shared = first.keys() & second.keys()
    assert len(shared) == 3
    for spec in shared:
        assert first[spec].evaluations == second[spec].evaluations
        assert first[spec].timing != second[spec].timing


def test_every_claim_is_asked_and_its_sentences_have_no_hole_left(
    findings: dict[str, EvidenceFinding],
) -> None:
    claims = claim_table()["claims"]
    packed = {sweep.name for sweep in EVIDENCE.shipped} | {"{sweep}", "repairs-{kind}"}
    packed |= {"figure-one-{vocab}"} if "figure-one-257" in packed else set()
    asked = {name for name, claim in claims.items() if claim["sweeps"][0] in packed}
    named = asked - {"depth-of-data", "repairs-of-data", "figure-one"}
    of_data = {f"{what}-{kind}" for what in ("depth", "repairs") for kind in claim_table()["kinds"]}
    of_cells = {name for name in packed if name.startswith("figure-one-") and "{" not in name}
    assert set(findings) == named | of_data | of_cells
    for found in findings.values():
        assert not any("{" in text or "}" in text for text in (found.asks, found.because))
