"""Questions 2 and 5: from which size on the deeper network wins, and what moves that point."""

import math
from collections.abc import Iterable, Sequence

from archfit.evidence.measures import (
    BPE,
    BYTES,
    NEAR,
    EvidenceFinding,
    Measure,
    depth_at,
    finding,
    loss_difference,
    pair_of,
    size_of,
    verdict_of,
    width_of,
    within,
)
from archfit.evidence.records import Evidence
from archfit.fit.cells import CellResult, cells_of
from archfit.fit.fitted import Fits
from archfit.fit.noise import noise_among
from archfit.spec.search import bisect_rising

LAW = (5.039, 0.0555)  # Levine et al. 2020: ln width = a + b depth
DEPTH, VOCAB, LOWRANK = "levine-depth", "wies-vocab", "wies-lowrank"
CAPS = (16, 64)  # ranks of the sweep over widths


def crossing_findings(evidence: Evidence) -> tuple[EvidenceFinding, ...]:
    """Does a small vocabulary or rank let the deeper network win sooner, and at that width?"""
    vocab, lowrank = evidence.fits(VOCAB), evidence.fits(LOWRANK)
    by_vocab = [
        width_of(pair_of(vocab, vocab=size, cap=None), f"V = {size} ({name})")
        for size, name in ((BYTES, "bytes"), (BPE, "BPE"))
    ]
    by_rank = [width_of(pair_of(lowrank, vocab=BPE, cap=cap), f"rank {cap}") for cap in CAPS]
    by_rank.append(width_of(pair_of(lowrank, vocab=BPE, cap=None), "full rank"))
    return (
        _sooner("vocabulary-sooner", by_vocab),
        _at_the_limit("vocabulary-width", by_vocab, (BYTES,)),
        _sooner("low-rank-sooner", by_rank),
        _at_the_limit("low-rank-width", by_rank, CAPS),
    )


def _sooner(claim: str, widths: Sequence[Measure]) -> EvidenceFinding:
    *limited, free = (width.estimate for width in widths)
    verdict = verdict_of(
        confirmed=(free.lies_above(width) for width in limited),
        refuted=(width.lies_above(free) for width in limited),
    )
    return finding(claim, widths, verdict)


def _at_the_limit(claim: str, widths: Sequence[Measure], limits: Sequence[int]) -> EvidenceFinding:
    *limited, free = widths
    verdict = within(limited, [(limit / NEAR, limit * NEAR) for limit in limits])
    return finding(claim, limited, verdict, near=NEAR, free=free.estimate.value)


def depth_findings(evidence: Evidence) -> tuple[EvidenceFinding, ...]:
    """The best depth at each size, the law of crossings, and what moves them."""
    return (
        _best_depth("best-depth", evidence.fits(DEPTH), BPE),
        _best_depth("best-depth-of-bytes", evidence.fits(VOCAB), BYTES),
        _law_of_crossings(evidence.fits(DEPTH)),
        _learning_rates(evidence),
        _lengths(evidence),
    )


def _best_depth(claim: str, fits: Fits, vocab: int) -> EvidenceFinding:
    """The best depth at each size, beside that of the law."""
    items = [item for item in fits.best_depth if item.family.input.vocab == vocab]
    measures = [depth_at(item, f"{item.size / 1e6:.2f}M") for item in items]
    law = [_law_depth(item.size) for item in items]
    tried = items[0].depths
    holds = [  # below two layers the law has nothing to say: one is the least there is
        measure.estimate.contains(_nearest(wanted, tried))
        for measure, wanted in zip(measures, law, strict=True)
        if wanted >= 2
    ]
    return finding(
        claim,
        measures,
        verdict_of(confirmed=holds, refuted=(not held for held in holds)),
        tried=", ".join(map(str, tried)),
        law=", ".join(f"{depth:.1f}" for depth in law),
    )


def _law_of_crossings(fits: Fits) -> EvidenceFinding:
    """Crossings of neighbouring depths, beside the law of the paper."""
    neighbours = {
        f"{crossing.shallow.depth} and {crossing.deep.depth}": crossing
        for crossing in fits.crossings
        if crossing.neighbours
    }
    sizes = [size_of(crossing, f"depth {depths}") for depths, crossing in neighbours.items()]
    widths = {
        depths: width_of(crossing, f"width, {depths}")
        for depths, crossing in neighbours.items()
        if crossing.is_crossing
    }
    (law,) = (law for law in fits.laws if law.kind == "transition")
    parameters = [
        Measure(what=name, estimate=estimate, unit="number", seeds=law.seeds)
        for name, estimate in law.parameters.items()
    ]
    at_two, at_four = widths["2 and 4"].estimate, widths["4 and 8"].estimate
    return finding(
        "depth-law",
        (*sizes, *widths.values(), *parameters),
        verdict_of(
            confirmed=(at_two.contains(_law_width(2)), at_four.contains(_law_width(4))),
            refuted=(
                at_two.is_above(NEAR * _law_width(2)),
                at_four.is_above(NEAR * _law_width(4)),
            ),
        ),
        a=LAW[0],
        b=LAW[1],
        one=_law_width(1),
        two=_law_width(2),
        four=_law_width(4),
    )


def _learning_rates(evidence: Evidence) -> EvidenceFinding:
    """The learning-rate rule: standard rates, the best of three for each shape, or CompleteP."""
    sources = {"CompleteP": evidence.fits(DEPTH), "standard": evidence.fits("depth-rates")}
    crossing = {name: pair_of(fits, vocab=BPE, cap=None) for name, fits in sources.items()}
    sizes = (
        size_of(crossing["CompleteP"], "crossing of 2 and 8 layers, CompleteP"),
        size_of(crossing["standard"], "crossing of 2 and 8 layers, standard rates"),
    )
    gaps = [
        loss_difference(
            fits,
            _cell(fits.cells, depth=8, width=152, steps=2000),
            _cell(fits.cells, depth=2, width=302, steps=2000),
            f"8 less 2 layers at 2.2M, {name}",
        )
        for name, fits in sources.items()
    ]
    return finding("depth-and-learning-rates", (*sizes, *gaps), "new")


def _lengths(evidence: Evidence) -> EvidenceFinding:
    """What a longer training does to 2 against 8 layers."""
    short, usual = evidence.fits("depth-lengths"), evidence.fits(DEPTH)
    # Of the sizes that were trained for 4,000 steps only one has both depths: no fit.
    longest = cells_of(evidence.records("depth-long"))
    sources = (
        (500, short, short.cells),
        (1000, short, short.cells),
        (2000, usual, usual.cells),
        (4000, noise_among(longest), longest),
    )
    measures = [
        loss_difference(
            source,
            _cell(cells, depth=8, width=56, steps=steps),
            _cell(cells, depth=2, width=112, steps=steps),
            f"8 less 2 layers at 0.3M, {steps:,} steps",
            at=steps,
        )
        for steps, source, cells in sources
    ]
    return finding("depth-and-length", measures, "new")


def _cell(cells: Iterable[CellResult], *, depth: int, width: int, steps: int) -> CellResult:
    (found,) = (
        cell
        for cell in cells
        if (cell.architecture.depth, cell.architecture.width) == (depth, width)
        and cell.recipe.steps == steps
    )
    return found


def _nearest(wanted: float, tried: Iterable[int]) -> int:
    """The depth by whose factor the wanted one is missed least."""
    return min(tried, key=lambda depth: abs(math.log(depth / wanted)))


def _law_depth(size: float) -> float:
    """Where 12 L e^(2 (a + b L)) is the size; 1 below one layer on the law."""
    return bisect_rising(lambda depth: 12 * depth * _law_width(depth) ** 2, size, 1.0, 100.0)


def _law_width(depth: float) -> float:
    return math.exp(LAW[0] + LAW[1] * depth)
