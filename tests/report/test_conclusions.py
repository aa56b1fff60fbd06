"""Sentences, which are part of the JSON document: which of them is said, and its numbers."""

import math
from dataclasses import replace
from typing import Literal

import pytest

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import CellResult, FamilyKey, Tuning, cells_of
from archfit.fit.comparisons import CellDifference, Ranking
from archfit.fit.depths import BestDepth, Crossing
from archfit.fit.fitted import Fits
from archfit.fit.laws import FormError, Law
from archfit.fit.noise import Noise, noise_among
from archfit.report.conclusions import conclusions, subjects
from archfit.report.fit_document import fit_json
from archfit.spec import Architecture, Factorised, Patches
from archfit.spec.estimate import UNKNOWN, Estimate
from archfit.spec.sizes import short_size
from tests_curves import DATA, OTHER_DATA, record, shape

NOTHING = Fits(
    curves=(), crossings=(), redundancy=(), laws=(), contrasts=(), best_depth=(), noise=()
)
RANK_8 = Factorised(inner=8)


def cell(architecture: Architecture, losses: tuple[float, ...] = (3.0, 3.2, 3.1)) -> CellResult:
    (found,) = cells_of(record(architecture, loss, seed) for seed, loss in enumerate(losses))
    return found


def key(depth: int = 6, **more: object) -> FamilyKey:
    return cell(shape(depth, 64, **more)).key  # type: ignore[arg-type]  # fields of a shape


def known(value: float | None, low: float | None, high: float | None) -> Estimate:
    return Estimate(value=value, low=low, high=high)


CROSSING = Crossing(
    shallow=key(6),
    deep=key(12),
    verdict="deeper wins above",
    size=known(2.5e6, 2.25e6, 2.875e6),
    width=known(186.3, 176.7, 199.8),
    range=(1.02e6, 9.96e6),
    slope=-0.01,
    slope_probability=0.001,
    seeds=3,
    neighbours=True,
    inflation=1.0,
    number=1,
    times=1,
)
UNDECIDED = replace(CROSSING, verdict="undecided", size=UNKNOWN, width=UNKNOWN, number=0, times=0)


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        (
            CROSSING,
            "Depth 12 overtakes depth 6 at 2.50M block parameters (90 %: 2.25M to 2.88M), where "
            "the shallow width is 186 (177 to 200); 3 seeds.",
        ),
        (
            replace(CROSSING, verdict="shallower wins above", number=2, times=2, seeds=1),
            "Depth 6 overtakes depth 12 at 2.50M block parameters (90 %: 2.25M to 2.88M), where "
            "the shallow width is 186 (177 to 200); crossing 2 of 2; 1 seed.",
        ),
        (
            replace(CROSSING, size=known(2.5e6, None, 2.8e6), width=known(186.3, None, None)),
            "Depth 12 overtakes depth 6 at 2.50M block parameters (90 %: up to 2.80M, below it the "
            "range ends), where the shallow width is 186 (beyond the range on both sides); 3 "
            "seeds.",
        ),
        (
            replace(CROSSING, size=known(2.5e6, 2.2e6, None), shallow=key(6, embedding=RANK_8)),
            "Depth 12 overtakes depth 6 (embedding rank 8) at 2.50M block parameters (90 %: from "
            "2.20M, above it the range ends), where the shallow width is 186 (177 to 200); 3 "
            "seeds.",
        ),
        (
            replace(UNDECIDED, seeds_needed=40),
            "No crossing of depth 6 and depth 12 is clear in 1.02M to 9.96M block parameters: "
            "undecided; about 40 seeds would settle it.",
        ),
        (
            replace(UNDECIDED, seeds_needed=2, beyond="above"),
            "No crossing of depth 6 and depth 12 is clear in 1.02M to 9.96M block parameters; a "
            "crossing would lie above 9.96M: undecided; about 4 seeds would settle it.",
        ),
        (
            UNDECIDED,
            "No crossing of depth 6 and depth 12 is clear in 1.02M to 9.96M block parameters: "
            "undecided; more than 1,000 seeds would be needed to settle it, if there is an effect.",
        ),
        (
            replace(UNDECIDED, verdict="shallower wins everywhere"),
            "Depth 6 beats depth 12 at all of 1.02M to 9.96M block parameters: no crossing in "
            "range; 3 seeds.",
        ),
        (
            replace(UNDECIDED, verdict="deeper wins everywhere", beyond="below"),
            "Depth 12 beats depth 6 at all of 1.02M to 9.96M block parameters: no crossing in "
            "range; a crossing would lie below 1.02M; 3 seeds.",
        ),
    ],
)
def test_what_is_said_of_two_depths(item: Crossing, sentence: str) -> None:
    assert conclusions(replace(NOTHING, crossings=(item,)))[0] == sentence


LIMITED = cell(shape(6, 64, embedding=RANK_8))
WASTE = MeasuredRedundancy(
    kind="rank",
    bottleneck=("embedding",),
    ratio=0.125,
    family=LIMITED.key,
    cell=LIMITED,
    baseline_depths=(6,),
    baseline_is_limited=False,
    estimate=known(0.2512, 0.2, 0.3),
    seeds=3,
)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (WASTE, "25.1 % redundant (90 %: 20.0 % to 30.0 %); 3 seeds."),
        (
            replace(WASTE, estimate=known(0.25, 0.2, None)),
            "25.0 % redundant (90 %: from 20.0 %, above it the range ends); 3 seeds.",
        ),
        (
            replace(WASTE, estimate=known(None, 0.2, None)),
            "at least 20.0 % redundant; every network without the bottleneck is better; 3 seeds.",
        ),
        (
            replace(WASTE, estimate=known(None, 0.0, None)),
            "of unknown redundancy: every network without the bottleneck is better, and "
            "no smaller one is; 3 seeds.",
        ),
        (
            replace(WASTE, estimate=known(None, None, 0.1)),
            "at most 10.0 % redundant; no network without the bottleneck is as good; 3 seeds.",
        ),
        (
            replace(WASTE, estimate=UNKNOWN, baseline_is_limited=True),
            "of unknown redundancy: the networks without the bottleneck are "
            "too small or too large; 3 seeds; the networks it is compared with are themselves "
            "limited by their vocabulary.",
        ),
    ],
)
def test_what_is_said_of_a_bottleneck(item: MeasuredRedundancy, words: str) -> None:
    start = "With a rank of 0.125 of the width (embedding), 6 x 64 is "
    assert conclusions(replace(NOTHING, redundancy=(item,))) == (start + words,)


def test_wide_attention_is_said_at_its_best_depth_alone() -> None:
    wide = replace(WASTE, kind="attention", bottleneck=("attention",), ratio=4.0)
    (said,) = conclusions(
        replace(NOTHING, redundancy=(wide, replace(wide, is_best_depth=False, ratio=8.0)))
    )
    assert said.startswith("With attention 4 times as wide as the network, 6 x 64 is")


def contrast(
    kind: Literal["cost", "side"],
    first: CellResult,
    second: CellResult,
    value: float,
    half: float,
    needed: int | None = None,
) -> CellDifference:
    return CellDifference(
        kind=kind,
        first=first,
        second=second,
        estimate=known(value, value - half, value + half),
        stds=value / 0.01,
        is_settled=abs(value) > half,
        seeds_needed=needed,
    )


FULL = cell(shape(6, 64))
HEAD = cell(shape(6, 64, head=RANK_8))


@pytest.mark.parametrize(
    ("value", "half", "needed", "sentence"),
    [
        (
            *(0.03, 0.01, None),
            "A low rank costs more on the embedding than on the head (rank 8 at depth 6, "
            "width 64): embedding minus head +0.0300 nats (90 %: +0.0200 to +0.0400); 3 seeds.",
        ),
        (
            *(-0.03, 0.01, None),
            "A low rank costs more on the head than on the embedding (rank 8 at depth 6, "
            "width 64): embedding minus head -0.0300 nats (90 %: -0.0400 to -0.0200); 3 seeds.",
        ),
        (
            *(0.01, 0.02, 9),
            "Whether the embedding or the head suffers more from rank 8 at depth 6, width 64 is "
            "undecided: +0.0100 nats (90 %: -0.0100 to +0.0300); about 9 seeds would settle it.",
        ),
    ],
)
def test_what_is_said_of_two_sides(
    value: float, half: float, needed: int | None, sentence: str
) -> None:
    item = contrast("side", LIMITED, HEAD, value, half, needed)
    assert conclusions(replace(NOTHING, contrasts=(item,))) == (sentence,)


def test_a_control_on_two_sides_is_no_limit() -> None:
    wide = Factorised(inner=64)
    cells = cell(shape(6, 64, embedding=wide)), cell(shape(6, 64, head=wide))
    item = contrast("side", *cells, 0.03, 0.01)
    assert conclusions(replace(NOTHING, contrasts=(item,))) == ()


def test_costs_of_one_network_are_one_sentence_and_a_cheap_rank_of_positions_is_named() -> None:
    ranks = [cell(shape(6, 64, positions=Factorised(inner=inner))) for inner in (2, 4, 8)]
    costs = [
        contrast("cost", limited, FULL, value, 0.01)
        for limited, value in zip(ranks, (0.05, 0.02, 0.0), strict=True)
    ]
    first, second = conclusions(replace(NOTHING, contrasts=tuple(costs)))
    assert first == (
        "Against full embeddings, 6 x 64, positions: rank 2 costs +0.0500 (+0.0400 to "
        "+0.0600); rank 4 costs +0.0200 (+0.0100 to +0.0300); rank 8 costs +0.0000 (-0.0100 to "
        "+0.0100) nats per token (90 %); 3 seeds."
    )
    assert second == (  # 0.02 is two standard deviations of a run, as the papers count
        "Position embeddings of rank 4 are within 2 standard deviations of full ones (6 x 64): "
        "+0.0200 nats (90 %: +0.0100 to +0.0300); 3 seeds."
    )


def test_what_is_said_of_networks_that_read_different_tokens() -> None:
    patches = cell(shape(6, 64, input=Patches(vocab=2000, size=2, encoding="one-hot")))
    results = [
        CellDifference(
            first=first,
            second=FULL,
            estimate=known(value, value - 0.01, value + 0.01),
            stds=value / 0.01,
            is_settled=value > 0.02,
            seeds_needed=12,
        )
        for first, value in ((FULL, 0.0), (HEAD, 0.02), (patches, 0.03))
    ]
    (said,) = conclusions(replace(NOTHING, rankings=(Ranking(results=tuple(results), degrees=6),)))
    size, bits = short_size(FULL.architecture.params), 3.1 / math.log(2) / 3
    assert said == (
        f"Of networks of about {size} parameters depth 6 with vocabulary 2,000 is best with "
        f"{bits:.4f} bits per byte; depth 6 with vocabulary 2,000 +0.0200 (+0.0100 to +0.0300; "
        "undecided among 3: about 12 seeds would settle it), depth 6 with vocabulary 2,000 in "
        "patches of 2 +0.0300 (+0.0200 to +0.0400); 3 seeds; tokens of a patch are predicted at "
        "once."
    )


def test_best_depths_of_one_question_are_one_sentence() -> None:
    plain = BestDepth(family=key(6), size=1e6, ties=(), depths=(6, 12), seeds=3, seeds_needed=None)
    other = replace(plain, family=key(12), size=2e6, ties=(6, 24), depths=(6, 12, 24))
    (said,) = conclusions(replace(NOTHING, best_depth=(plain, other)))
    assert said == (
        "Best of the depths 6, 12, 24 at equal size: 6 at 1.00M; 12 at 2.00M (tied with 6, 24) "
        "block parameters."
    )


LAW = Law(
    kind="size",
    form="loss = E + A N^-alpha",
    family=key(6, embedding=RANK_8),
    parameters={"E": known(1.5, 1.4, 1.6), "alpha": known(0.2, None, 0.25)},
    forms=(
        FormError(form="loss = a", held_out_error=0.012, last_error=0.02),
        FormError(form="loss = E + A N^-alpha", held_out_error=0.034, last_error=0.05),
    ),
    points=6,
    seeds=3,
    inflation=4.0,
)


def test_what_is_said_of_laws() -> None:
    transition = replace(
        LAW,
        kind="transition",
        form="ln width = a + b depth",
        parameters={"a": known(5.0, None, None), "b": known(0.05, None, None)},
        forms=(),
        points=2,
        inflation=1.0,
    )
    first, second = conclusions(replace(NOTHING, laws=(LAW, transition)))
    assert first == (
        "Transition law: ln width = a + b depth, a = 5, b = 0.05; 2 crossings, 3 seeds; an "
        "interval needs 3 crossings."
    )
    assert second == (
        "Size law of depth 6 (embedding rank 8): loss = E + A N^-alpha, E = 1.5 (90 %: 1.4 to "
        "1.6), alpha = 0.2 (90 %: up to 0.25, below it the range ends); 6 sizes, 3 seeds; points "
        "scatter 2.0 times more than seeds explain; by held-out error loss = a is best (0.012; "
        "loss = E + A N^-alpha 0.034)."
    )


def pool(*losses: tuple[float, ...]) -> Noise:
    return noise_among([cell(shape(6, 64 + 2 * at), own) for at, own in enumerate(losses)])


def test_what_is_said_of_seeds() -> None:
    wild = pool(*[(3.0, 3.001, 2.999)] * 5, (3.0, 3.5, 2.5))
    assert wild.noisy.cells
    few = replace(pool((3.0, 3.1), (3.0,)), data_hash=OTHER_DATA)
    same = pool((3.0, 3.0, 3.0), (3.0, 3.0, 3.0))
    fits = replace(
        NOTHING,
        noise=(wild, few, same),
        tunings=(Tuning(depth=6, width=64, rates=(1.0, 2.0), best=1.0),),
        diverged=2,
        crossings=(CROSSING, replace(CROSSING, inflation=1.5)),
        is_one_source=False,
    )
    assert conclusions(fits)[2:] == (
        f"Standard deviation over seeds: 1.00e-03 nats per token (18 runs of 6 cells on data "
        f"{DATA[:8]}, 10 degrees of freedom); 5.00e-01 for depth 6, width 74, more than chance "
        "allows, so pooled apart.",
        f"No interval can be had within 3 runs of 2 cells on data {OTHER_DATA[:8]}: they repeat "
        "networks 1 time, and 4 are needed; train more seeds.",
        f"No interval can be had within 6 runs of 2 cells on data {DATA[:8]}: runs of one network "
        "have the very same losses; train seeds that differ.",
        "1 shape trained at several learning rates: the best rate of each stands for it.",
        "Left out: 2 diverged runs.",
        "In 1 of 2 comparisons of depths a curve misses its points by more than seeds explain; "
        "their intervals are wider for it.",
        f"Runs on the data sets {DATA[:8]}, {OTHER_DATA[:8]} were fitted each on their own and not "
        "compared: no sweep.json says that these are one source in several vocabularies.",
    )
    assert conclusions(fits)[0].startswith(
        f"Depth 12 overtakes depth 6 (data {DATA[:8]}, vocabulary 2,000) at "
    )


def test_subjects_come_in_the_order_of_the_papers_questions() -> None:
    fits = replace(NOTHING, laws=(LAW,), redundancy=(WASTE,), crossings=(CROSSING,))
    assert list(subjects(fits)) == ["Depth against size", "What a bottleneck wastes", "Size laws"]


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (12, "12"),
        (1e3, "1.00k"),
        (123_456, "123k"),
        (1_312_000, "1.31M"),
        (13.12e6, "13.1M"),
        (2.5e9, "2.50B"),
        (1e12, "1.00T"),
        (999.4, "999"),
    ],
)
def test_sizes_are_written_as_people_do(size: float, words: str) -> None:
    assert short_size(size) == words


def test_the_document_has_a_row_for_each_with_its_ends() -> None:
    """Null is what cannot be had; every row says which end lies beyond the range."""
    side = contrast("side", LIMITED, HEAD, 0.01, 0.02, 9)
    best = BestDepth(family=key(12), size=2e6, ties=(6,), depths=(6, 12), seeds=3, seeds_needed=9)
    found = fit_json(
        replace(
            NOTHING,
            crossings=(replace(CROSSING, size=known(2.5e6, None, 2.8e6)), UNDECIDED),
            redundancy=(WASTE, replace(WASTE, estimate=known(None, 0.2, None))),
            laws=(LAW,),
            contrasts=(side,),
            best_depth=(best,),
            noise=(pool((3.0, 3.2), (3.0,)),),
        )
    )
    rows = {name: part for name, part in found.items() if isinstance(part, list)}
    first, second = rows["crossings"]
    expected = {
        "depths": [6, 12],
        "outcome": "crossing",
        "size": 2.5e6,
        "low": None,
        "high": 2.8e6,
        "low_is_beyond_range": True,
        "high_is_beyond_range": False,
        "width": 186.3,
        "width_low": 176.7,
        "width_high": 199.8,
        "would_lie": None,
        "slope_difference": -0.01,
        "number": 1,
        "times": 1,
        "neighbours": True,
    }
    assert first.items() >= expected.items()
    assert (second["outcome"], second["low_is_beyond_range"]) == ("no crossing", False)
    assert [row["outcome"] for row in rows["redundancy"]] == ["value", "at least"]
    ends = {"redundancy": None, "low": 0.2, "high": None, "high_is_beyond_range": True}
    assert rows["redundancy"][1].items() >= ends.items()
    assert [(row["parameter"], row["low"]) for row in rows["laws"]] == [("E", 1.4), ("alpha", None)]
    assert [row["is_best"] for row in rows["forms"]] == [True, False]
    (row,) = rows["contrasts"]
    ends = {"difference": 0.01, "low": -0.01, "high": 0.03, "is_settled": False, "rank": 8}
    assert row.items() >= ends.items()
    assert row["first"] == {"embedding": 8, "positions": "full", "head": "full"}
    (row,) = rows["best_depth"]
    assert (
        row.items() >= {"depth": 12, "low": 6, "high": 12, "ties": [6], "seeds_needed": 9}.items()
    )
    (row,) = rows["noise"]
    assert [one["std"] for one in row["cells"]] == [pytest.approx(0.02**0.5), None]
    assert found["confidence"] == 0.9
