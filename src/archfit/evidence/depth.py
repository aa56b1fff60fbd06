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
)  # fmt: skip
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
    law = [  # where 12 L e^(2 (a + b L)) is the size; 1 below one layer on the law
        bisect_rising(lambda depth: 12 * depth * _law_width(depth) ** 2, item.size, 1.0, 100.0)
        for item in items
    ]
    tried = items[0].depths
    holds = [  # below two layers the law has nothing to say: one is the least there is
        measure.estimate.contains(min(tried, key=lambda depth: abs(math.log(depth / wanted))))
        for measure, wanted in zip(measures, law, strict=True)
        if wanted >= 2
    ]
    verdict = verdict_of(confirmed=holds, refuted=(not held for held in holds))
    law_words = ", ".join(f"{depth:.1f}" for depth in law)
    return finding(claim, measures, verdict, tried=", ".join(map(str, tried)), law=law_words)


def _law_of_crossings(fits: Fits) -> EvidenceFinding:
    """Crossings of neighbouring depths, beside the law of the paper."""
    found = [crossing for crossing in fits.crossings if crossing.neighbours]
    neighbours = {f"{item.shallow.depth} and {item.deep.depth}": item for item in found}
    sizes = [size_of(item, f"depth {depths}") for depths, item in neighbours.items()]
    widths = {
        depths: width_of(item, f"width, {depths}")
        for depths, item in neighbours.items()
        if item.is_crossing
    }
    (law,) = (law for law in fits.laws if law.kind == "transition")
    parameters = [
        Measure(what=name, estimate=estimate, unit="number", seeds=law.seeds)
        for name, estimate in law.parameters.items()
    ]
    at_two, at_four = widths["2 and 4"].estimate, widths["4 and 8"].estimate
    one, two, four = (_law_width(depth) for depth in (1, 2, 4))
    verdict = verdict_of(
        confirmed=(at_two.contains(two), at_four.contains(four)),
        refuted=(at_two.is_above(NEAR * two), at_four.is_above(NEAR * four)),
    )
    measures = (*sizes, *widths.values(), *parameters)
    return finding("depth-law", measures, verdict, a=LAW[0], b=LAW[1], one=one, two=two, four=four)


def _learning_rates(evidence: Evidence) -> EvidenceFinding:
    """The learning-rate rule: standard rates, the best of three for each shape, or CompleteP."""
    sources = {"CompleteP": evidence.fits(DEPTH), "standard": evidence.fits("depth-rates")}
    crossing = {name: pair_of(fits, vocab=BPE, cap=None) for name, fits in sources.items()}
    words = {"CompleteP": "CompleteP", "standard": "standard rates"}
    sizes = [size_of(crossing[n], f"crossing of 2 and 8 layers, {words[n]}") for n in sources]
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
    trained_so = (cell for cell in cells if cell.recipe.steps == steps)
    shape = (depth, width)
    (found,) = (c for c in trained_so if (c.architecture.depth, c.architecture.width) == shape)
    return found


def _law_width(depth: float) -> float:
    return math.exp(LAW[0] + LAW[1] * depth)
