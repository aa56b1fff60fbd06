"""What the shipped runs say of depth: crossings by vocabulary and rank, the law, and the trainings.

Questions 2 and 5. Tests of the vocabulary bottleneck with 2 layers are outside of its hypotheses;
`fair-depth` and `figure-one` ask the same with 6 and 12, and with 24 and 48.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Literal, TypeAlias

from archfit.fit import evidence
from archfit.fit.cells import cells_of
from archfit.fit.evidence import EvidenceFinding, Measure, evidence_fits, evidence_records, finding
from archfit.fit.fitted import Fits
from archfit.fit.noise import TAIL
from archfit.spec import Architecture
from archfit.spec.estimate import Estimate
from archfit.theory.law import A, B, ideal_shape, law_width

BYTES, BPE_500, BPE = 257, 500, 2000  # vocabularies of the English text
NEAR = 1.5  # "about" a number: within this factor
SAME_SIZE = 0.06  # of ln N, by which pairs of figure 1 differ at most
PAIR, FAIR_PAIR = (2, 8), (6, 12)  # depths that several sweeps compare
CAPS: tuple[int, ...] = (16, 64)  # ranks of the embedding
FAIR_CAPS = (32, 64, 128)
FAIR = ("fair-depth", "fair-depth-third")
GAP = "8 less 2 layers"
Shape: TypeAlias = tuple[int, int]  # depth and width


def shapes_of(fits: Fits, depths: Iterable[int]) -> list[Architecture]:
    """The networks of these depths."""
    wanted = tuple(depths)
    return [cell.architecture for cell in fits.cells if cell.architecture.depth in wanted]


def _crossing(
    fits: Fits,
    what: str,
    unit: Literal["width", "block parameters"],
    vocab: int = BPE,
    cap: int | None = None,
    depths: tuple[int, int] = PAIR,
) -> Measure:
    """Where two depths cross for this vocabulary, the embedding's rank capped or not."""
    found = next(
        crossing
        for crossing in fits.crossings
        if (crossing.shallow.depth, crossing.deep.depth) == depths
        and (crossing.shallow.input.vocab, crossing.shallow.embedding.inner_size) == (vocab, cap)
    )
    return evidence.crossing_at(found, what, unit)


def crossing_findings() -> Iterator[EvidenceFinding]:
    """Does a small vocabulary or rank let the deeper network win sooner, and at that width?"""
    names = {BYTES: f"V = {BYTES} (bytes)", BPE: f"V = {BPE} (BPE)"}
    fair = {vocab: f"V = {vocab}" for vocab in (BYTES, BPE_500, BPE)}
    for claims, depths, of_vocabs, words, of_ranks, caps in (
        ("", PAIR, ("wies-vocab",), names, ("wies-lowrank",), CAPS),
        ("fair-", FAIR_PAIR, FAIR, fair, FAIR, FAIR_CAPS),
    ):
        vocabs, ranks = evidence_fits(*of_vocabs), evidence_fits(*of_ranks)
        by_vocab = [_crossing(vocabs, words[v], "width", v, depths=depths) for v in words]
        capped = {cap: f"rank {cap}" for cap in caps} | {None: "full rank"}
        by_rank = [_crossing(ranks, capped[c], "width", cap=c, depths=depths) for c in capped]
        small = [vocab for vocab in words if vocab != BPE]
        yield from _sooner(f"{claims}vocabulary", by_vocab, small, shapes_of(vocabs, depths))
        yield from _sooner(f"{claims}low-rank", by_rank, caps, shapes_of(ranks, depths))
    for size in (BYTES, BPE_500):
        if evidence_records(f"figure-one-{size}"):  # of one only the command is known yet
            yield _figure_one(size)


def _sooner(
    claim: str, widths: Sequence[Measure], limits: Sequence[int], shapes: Sequence[Architecture]
) -> Iterator[EvidenceFinding]:
    """Widths at the crossings, the last without a limit: in which order, and where."""
    *limited, free = widths
    there = evidence.within(limited, [(limit / NEAR, limit * NEAR) for limit in limits])
    larger = evidence.all_larger((free, width) for width in limited)
    yield finding(f"{claim}-sooner", widths, larger, shapes)
    free_width = free.estimate.value or free.estimate.low or free.estimate.high or math.nan
    yield finding(f"{claim}-width", limited, there, shapes, free=free_width, near=NEAR)


def _figure_one(vocab: int) -> EvidenceFinding:
    """48 less 24 layers at each size; intervals by the noise of fair-depth on the same data."""
    cells = sorted(cells_of(evidence_records(f"figure-one-{vocab}")), key=lambda cell: cell.size)
    shallow, deep = ([c for c in cells if c.architecture.depth == depth] for depth in (24, 48))
    half, first, last = single_run_error(shallow[0].data_hash), shallow[0], shallow[-1]
    slope = (last.mean - first.mean) / max(last.log_size - first.log_size, 1e-9)  # nats an e-fold
    measures = []
    for above, below in itertools.product(shallow, deep):
        if abs(off := below.log_size - above.log_size) < SAME_SIZE:  # to be brought to one size
            value, width = below.mean - (above.mean + slope * off), above.architecture.width
            more = Estimate(value=value, low=value - half, high=value + half)
            seeds, what = min(below.seeds, above.seeds), f"width {width}"
            measures.append(Measure(what=what, at=width, estimate=more, unit="nats", seeds=seeds))
    beyond = [m.estimate for m in measures if m.at and m.at > vocab]
    verdict = evidence.verdict_of((e.is_below(0) for e in beyond), (e.is_above(0) for e in beyond))
    id_, shapes = f"figure-one-{vocab}", [cell.architecture for cell in cells]
    return finding("figure-one", measures, verdict, shapes, id_=id_, vocab=vocab)


def single_run_error(data_hash: str) -> float:
    """Half of the interval of a difference of single runs, which have no scatter of their own: by
    that of fair-depth on the same data."""
    noise = next(noise for noise in evidence_fits(*FAIR).noise if noise.data_hash == data_hash)
    return noise.t(noise.usual.cells[0]) * noise.usual.std * math.sqrt(2)


def depth_findings() -> Iterator[EvidenceFinding]:
    """Best depths and crossings beside Levine's law, and what rates, lengths and seeds do."""
    depth = evidence_fits("levine-depth")
    yield _best_depths("best-depth", depth, BPE)
    yield _best_depths("best-depth-of-bytes", evidence_fits("wies-vocab"), BYTES)
    yield _law_of_crossings(depth)
    yield from _trainings(depth)
    yield _seeds(depth)


def _best_depths(claim: str, fits: Fits, vocab: int) -> EvidenceFinding:
    """The best depth at each size, beside that of the law."""
    items = [item for item in fits.best_depth if item.family.input.vocab == vocab]
    tried, measures, law, holds = items[0].depths, [], [], []
    for item in items:
        measures.append(evidence.measured(item, f"{item.size / 1e6:.2f}M", "layers", item.size))
        law.append(ideal_shape(item.size).depth)
        if law[-1] >= 2:  # below two layers the law has nothing to say: one is the least there is
            nearest = min(tried, key=lambda depth: abs(math.log(depth / law[-1])))
            holds.append(item.estimate.contains(nearest))
    verdict = evidence.verdict_of(confirmed=holds, refuted=(not held for held in holds))
    found = f"among the best at {sum(holds)} of {len(holds)} sizes"
    words = {"tried": ", ".join(map(str, tried)), "law": ", ".join(f"{one:.1f}" for one in law)}
    return finding(claim, measures, verdict, shapes_of(fits, tried), nearest=found, **words)


def _law_of_crossings(fits: Fits) -> EvidenceFinding:
    """Crossings of neighbouring depths, beside the law of the paper."""
    found = [crossing for crossing in fits.crossings if crossing.neighbours]
    neighbours = {f"{item.shallow.depth} and {item.deep.depth}": item for item in found}
    sizes, widths = [], {}
    for depths, item in neighbours.items():
        sizes.append(evidence.crossing_at(item, f"depth {depths}", "block parameters"))
        if item.is_crossing:
            widths[depths] = evidence.crossing_at(item, f"width, {depths}", "width")
    (law,) = (law for law in fits.laws if law.kind == "transition")
    parameters = [
        Measure(what=name, estimate=estimate, unit="number", seeds=law.seeds)
        for name, estimate in law.parameters.items()
    ]
    at_two, at_four = widths["2 and 4"].estimate, widths["4 and 8"].estimate
    one, two, four = map(law_width, (1, 2, 4))
    verdict = evidence.verdict_of(
        confirmed=(at_two.contains(two), at_four.contains(four)),
        refuted=(at_two.is_above(NEAR * two), at_four.is_above(NEAR * four)),
    )
    measures, shapes = (*sizes, *widths.values(), *parameters), shapes_of(fits, (1, 2, 4, 8))
    return finding("depth-law", measures, verdict, shapes, a=A, b=B, one=one, two=two, four=four)


def _trainings(usual: Fits) -> Iterator[EvidenceFinding]:
    """What learning-rate rules do to 2 against 8 layers, and what a longer training does.

    Standard rates are the best of three for each shape.
    """
    rates, short = evidence_fits("depth-rates"), evidence_fits("depth-lengths")
    sizes = [
        _crossing(fits, f"crossing of 2 and 8 layers, {name}", "block parameters")
        for name, fits in (("CompleteP", usual), ("standard rates", rates))
    ]
    gaps = [
        _gap(fits, 2000, ((8, 152), (2, 302)), f"{GAP} at 2.2M, {name}")
        for name, fits in (("CompleteP", usual), ("standard", rates))
    ]
    yield finding("depth-and-learning-rates", (*sizes, *gaps), "new", ())
    runs = (500, short), (1000, short), (2000, usual), (4000, evidence_fits("depth-long"))
    lengths = [
        _gap(fits, steps, ((8, 56), (2, 112)), f"{GAP} at 0.3M, {steps:,} steps", steps)
        for steps, fits in runs
    ]
    yield finding("depth-and-length", lengths, "new", ())


def _gap(
    fits: Fits, steps: int, shapes: tuple[Shape, Shape], what: str, at: float | None = None
) -> Measure:
    """The loss of the first of two shapes, depth x width, less that of the second."""
    trained = [cell for cell in fits.cells if cell.recipe.steps == steps]
    found = {(cell.architecture.depth, cell.architecture.width): cell for cell in trained}
    first, second = (found[shape] for shape in shapes)
    return evidence.loss_difference(fits, first, second, what, at)


def _seeds(depth: Fits) -> EvidenceFinding:
    """The standard deviation of one run, pooled over the usual cells of each sweep."""
    from scipy.special import chdtri

    named = {
        "1 to 8 layers, all sizes": depth,
        "6 x 256 and narrower, ranks": evidence_fits("wies-rank"),
        "6 x 256, 512 positions": evidence_fits("wies-positions"),
    }
    measures = []
    for what, pool in ((name, fits.noise[0].usual) for name, fits in named.items()):
        low, high = (
            pool.std * math.sqrt(pool.degrees / float(chdtri(pool.degrees, tail)))
            for tail in (TAIL, 1 - TAIL)
        )
        std = Estimate(value=pool.std, low=low, high=high)
        seeds = min(cell.seeds for cell in pool.cells)
        measures.append(Measure(what=what, estimate=std, unit="nats, one run", seeds=seeds))
    printed = [std for table in evidence.claim_table()["printed_stds"].values() for std in table]
    times = median(m.estimate.value or 0.0 for m in measures) / median(printed)
    return finding("seeds", measures, "new", (), times=times)
