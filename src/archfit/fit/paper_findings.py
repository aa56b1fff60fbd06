"""The seven questions that the shipped runs are asked: measures and verdicts, from their records.

Of ranks (1, 4 and 6), of crossings and depths (2 and 5), of wide attention (3), of other data (7).
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from archfit.fit.cells import CellResult, cells_of
from archfit.fit.comparisons import differences
from archfit.fit.depths import Crossing
from archfit.fit.evidence import (
    EvidenceFinding,
    Measure,
    Verdict,
    all_above,
    all_larger,
    claim_table,
    depth_at,
    evidence_fits,
    evidence_records,
    finding,
    loss_difference,
    noise_about,
    share_of,
    size_of,
    verdict_of,
    width_of,
    within,
)
from archfit.fit.fitted import Fits
from archfit.spec.search import bisect_rising

BYTES, BPE = 257, 2000  # vocabularies of the English text
NEAR = 1.5  # "about" a number: within this factor
WORTH = 0.05  # a share of the parameters that a reader of the papers' figures could not tell from 0
SAME = 0.02  # nats per token: a tenth of what the lowest rank costs
ALIKE = 1.2  # ratios within this factor are about the same
LAW = (5.039, 0.0555)  # Levine et al. 2020: ln width = a + b depth
PAIR = (2, 8)  # depths that several sweeps compare
WIDTH = 256  # of the sweeps over ranks
CAPS = (16, 64)  # ranks of the sweep over widths
RATIOS = (1, 2, 4, 8, 16)  # of attention to the stream
TEXT = (4, 128)  # depth and width of the text-shaped network
RANK, SIDE, LOWRANK = "wies-rank", "input-or-output-rank", "wies-lowrank"
DEPTH, VOCAB, LONG = "levine-depth", "wies-vocab", "depth-long"
GAP = "8 less 2 layers"
InnerSizes: TypeAlias = tuple[int | None, int | None, int | None]  # embedding, positions, head
FULL: InnerSizes = (None, None, None)


def all_findings() -> tuple[EvidenceFinding, ...]:
    """Recomputed from the records, in the order of the questions: a few seconds, no GPU."""
    both, ranks, capped = evidence_fits(RANK, SIDE), evidence_fits(RANK), evidence_fits(LOWRANK)
    depth, vocab = evidence_fits(DEPTH), evidence_fits(VOCAB)
    return (
        *_rank_costs(both),
        _rank_and_depth(capped, ranks),
        _rank_or_ratio(capped),
        *_crossings(vocab, capped),
        *_attention(evidence_fits("wies-attention")),
        *_position_ranks(evidence_fits("wies-positions")),
        _best_depths("best-depth", depth, BPE),
        _best_depths("best-depth-of-bytes", vocab, BYTES),
        _law_of_crossings(depth),
        *_trainings(depth),
        _side(evidence_fits(SIDE)),
        *_other_data(),
    )


def _by_inner_sizes(fits: Fits) -> dict[InnerSizes, CellResult]:
    shapes = ((cell.architecture, cell) for cell in fits.cells if cell.architecture.width == WIDTH)
    return {
        (s.embedding.inner_size, s.positions.inner_size, getattr(s.head, "inner", None)): cell
        for s, cell in shapes
    }


def _by_rank(
    fits: Fits,
    what: str,
    ranks: Iterable[int],
    tables: Callable[[int], tuple[InnerSizes, InnerSizes]],
) -> dict[int, Measure]:
    """At each rank: the loss of the first of two cells less that of the second."""
    cells = _by_inner_sizes(fits)
    return {
        rank: loss_difference(fits, cells[first], cells[second], what.format(rank), rank)
        for rank in ranks
        for first, second in (tables(rank),)
    }


def _pair(fits: Fits, vocab: int, cap: int | None = None) -> Crossing:
    """The comparison of 2 and 8 layers for this vocabulary, the embedding's rank capped or not."""
    (found,) = (
        crossing
        for crossing in fits.crossings
        if (crossing.shallow.depth, crossing.deep.depth) == PAIR
        and crossing.shallow.input.vocab == vocab
        and crossing.shallow.embedding.inner_size == cap
    )
    return found


def _rank_costs(fits: Fits) -> Iterator[EvidenceFinding]:
    """What a low rank wastes, whether factorised tables that lose no rank cost, and positions."""
    for claim, tables in (("rank", ("embedding", "positions")), ("rank-of-tokens", ("embedding",))):
        items = [item for item in fits.redundancy if item.bottleneck == tables and item.ratio < 1]
        shares = {
            rank: share_of(item, f"rank {rank} of {WIDTH}")
            for item in items
            for rank in (item.family.embedding.inner_size,)
        }
        yield finding(claim, shares.values(), all_above(WORTH, shares[16]))
    control = _by_rank(fits, "inner size {}", (256, 384), lambda r: ((r, r, None), FULL)).values()
    yield finding("rank-control", control, within(control, [(-SAME, SAME)] * 2), same=SAME)
    cells, ranks, bands = _by_inner_sizes(fits), (8, 16, 32, 64, 128), []
    tokens = _by_rank(fits, "rank {}", ranks, lambda r: ((r, None, None), (r, r, None))).values()
    for rank in ranks:
        pair = cells[rank, None, None], cells[rank, rank, None]
        std = max(noise_about(fits, cell).pool(cell).std for cell in pair)
        bands.append((-2 * std, 2 * std))
    yield finding("rank-with-full-positions", tokens, within(tokens, bands))


def _rank_and_depth(capped: Fits, ranks: Fits) -> EvidenceFinding:
    """What rank 16 wastes at widths of 250 to 300, by depth."""
    measures = [
        share_of(item, f"{depth} x {width}")
        for fits, depth, width in ((capped, 2, 302), (ranks, 6, 256), (capped, 8, 250))
        for item in fits.redundancy
        if (item.family.depth, item.cell.architecture.width) == (depth, width)
        and item.bottleneck == ("embedding", "positions")
        and item.family.embedding.inner_size == CAPS[0]
    ]
    return finding("rank-and-depth", measures, all_larger(itertools.pairwise(measures)))


def _rank_or_ratio(fits: Fits) -> EvidenceFinding:
    """What a rank wastes at each width at which it is a limit and its cost is known.

    Refuted by cells of one depth and about one ratio whose ranks, 16 and 64, waste not the same;
    intervals that overlap would not show that the ratio is all.
    """
    shares = {
        (depth, cap): [
            share_of(
                item,
                f"{depth} x {item.cell.architecture.width}, rank {cap}, ratio {item.ratio:.2g}",
                series=f"{depth} layers, rank {cap}",
            )
            for item in fits.redundancy
            if (item.family.depth, item.family.embedding.inner_size) == (depth, cap)
            and (item.outcome == "value" and item.ratio < 1)
        ]
        for cap in CAPS
        for depth in PAIR
    }
    is_refuted = any(
        small.estimate.lies_above(large.estimate)
        for depth in PAIR
        for small, large in itertools.product(shares[depth, CAPS[0]], shares[depth, CAPS[1]])
        if small.at and large.at and 1 <= small.at / large.at < ALIKE
    )
    measures = itertools.chain.from_iterable(shares.values())
    return finding("rank-or-ratio", measures, "refuted" if is_refuted else "undecided")


def _side(fits: Fits) -> EvidenceFinding:
    """Whether the same rank hurts more on the head than on the input."""
    both, what = (lambda r: ((None, None, r), (r, None, None))), f"rank {{}} of {WIDTH}"
    measures = _by_rank(fits, what, (8, 32, 128), both).values()
    is_above = all(measure.estimate.is_above(0) for measure in measures)
    return finding("input-or-output-rank", measures, "new" if is_above else "undecided")


def _position_ranks(fits: Fits) -> Iterator[EvidenceFinding]:
    """How low the rank of positions may be, alone and beside that of the vocabulary."""
    alone = _by_rank(fits, "rank {}", (1, 4, 16, 256), lambda r: ((None, r, None), FULL))
    words = "less a vocabulary of rank {}"
    against = _by_rank(fits, words, (16, 32, 64), lambda r: ((None, 1, None), (r, None, None)))
    eighth, quarter = against[32].estimate, against[64].estimate
    is_worse = eighth.is_above(0) and quarter.is_above(0)
    verdict = verdict_of((eighth.is_below(0), quarter.is_below(0)), (is_worse,))
    cost = alone[16].estimate
    as_good = verdict_of((cost.is_below(SAME),), (cost.is_above(SAME),))
    yield finding("position-rank", alone.values(), as_good)
    yield finding("position-rank-one", against.values(), verdict)


def _attention(fits: Fits) -> Iterator[EvidenceFinding]:
    """What wide attention costs, whether the cost rises all the way, and which depth serves it."""
    largest = max(cell.size for cell in fits.cells)
    shares, cells, depths = {}, {}, []
    for ratio in RATIOS:  # at the depth of the least loss, since of some only limits are known
        wide = [cell for cell in fits.cells if round(cell.architecture.attention_ratio) == ratio]
        cells[ratio] = min((c for c in wide if c.size > 0.9 * largest), key=lambda cell: cell.mean)
        wasted = [item for item in fits.redundancy if round(item.ratio) == ratio]
        if ratio > 1:
            shares[ratio] = share_of(min(wasted, key=lambda item: item.cell.mean), f"ratio {ratio}")
        best = [d for d in fits.best_depth if round(2 ** (d.family.attention_step / 14)) == ratio]
        depths.append(depth_at(max(best, key=lambda item: item.size), f"ratio {ratio}"))
    rises = [
        loss_difference(fits, cells[wide], cells[narrow], f"ratio {wide} less {narrow}")
        for narrow, wide in itertools.pairwise(RATIOS)
    ]
    least, most = depths[0].estimate, depths[-1].estimate
    shallow = verdict_of((most.is_below(6), least.is_above(3)), (most.is_above(3),))
    paper = [shares[ratio] for ratio in (4, 16)]  # the ratios of the paper
    yield finding("attention", shares.values(), all_above(WORTH, *paper))
    yield finding("attention-rises", rises, all_above(0, *rises))
    yield finding("attention-depth", depths, shallow)


def _crossings(vocab: Fits, lowrank: Fits) -> Iterator[EvidenceFinding]:
    """Does a small vocabulary or rank let the deeper network win sooner, and at that width?"""
    by_vocab = [
        width_of(_pair(vocab, size), f"V = {size} ({name})")
        for size, name in ((BYTES, "bytes"), (BPE, "BPE"))
    ]
    by_rank = [width_of(_pair(lowrank, BPE, cap), f"rank {cap}") for cap in CAPS]
    by_rank.append(width_of(_pair(lowrank, BPE), "full rank"))
    for claim, widths, limits in (("vocabulary", by_vocab, (BYTES,)), ("low-rank", by_rank, CAPS)):
        *limited, free = widths
        there = within(limited, [(limit / NEAR, limit * NEAR) for limit in limits])
        yield finding(f"{claim}-sooner", widths, all_larger((free, width) for width in limited))
        yield finding(f"{claim}-width", limited, there, near=NEAR, free=free.estimate.value)


def _law_width(depth: float) -> float:
    return math.exp(LAW[0] + LAW[1] * depth)


def _best_depths(claim: str, fits: Fits, vocab: int) -> EvidenceFinding:
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


def _trainings(usual: Fits) -> Iterator[EvidenceFinding]:
    """What learning-rate rules do to 2 against 8 layers, and what a longer training does.

    Standard rates are the best of three for each shape.
    """
    rates, short = evidence_fits("depth-rates"), evidence_fits("depth-lengths")
    sizes = [
        size_of(_pair(fits, BPE), f"crossing of 2 and 8 layers, {name}")
        for name, fits in (("CompleteP", usual), ("standard rates", rates))
    ]
    gaps = [
        loss_difference(fits, *_shapes(fits, 2000, (8, 152), (2, 302)), f"{GAP} at 2.2M, {name}")
        for name, fits in (("CompleteP", usual), ("standard", rates))
    ]
    yield finding("depth-and-learning-rates", (*sizes, *gaps), "new")
    lengths = []
    for steps, fits in (500, short), (1000, short), (2000, usual), (4000, evidence_fits(LONG)):
        pair, words = _shapes(fits, steps, (8, 56), (2, 112)), f"{GAP} at 0.3M, {steps:,} steps"
        lengths.append(loss_difference(fits, *pair, words, steps))
    yield finding("depth-and-length", lengths, "new")


def _shapes(
    fits: Fits, steps: int, first: tuple[int, int], second: tuple[int, int]
) -> tuple[CellResult, CellResult]:
    """The cells of two shapes, depth x width, that were trained for so many steps."""
    trained = [cell for cell in fits.cells if cell.recipe.steps == steps]
    found = {(cell.architecture.depth, cell.architecture.width): cell for cell in trained}
    return found[first], found[second]


def _other_data() -> Iterator[EvidenceFinding]:
    """On each kind of data: does depth beat a text-shaped network, and do repairs beat depth?"""
    for kind, words in claim_table()["kinds"].items():
        cells = _named(f"repairs-{kind}")
        deeper = {name: own for name, own in _against_text(cells).items() if "layers" in name}
        wanted = (
            TEXT[0] * (TEXT[1] / words["tokens"]) ** 2
        )  # layers of a width of V, as many blocks
        depths = [int(name.split()[0]) for name in deeper]
        nearest = min(depths, key=lambda depth: abs(math.log(depth / wanted)))
        verdict = _better(deeper[f"{nearest} layers"])
        facts = {**words, "kind": kind, "wanted": wanted, "nearest": nearest}
        yield finding("depth-of-data", deeper.values(), verdict, id_=f"depth-{kind}", **facts)
        plain = [cell for name, cell in cells.items() if "layers" in name]
        best = min(plain, key=lambda cell: cell.bits_per_byte)
        others = {name: cell for name, cell in cells.items() if "layers" not in name}
        # The best of the depths is also the luckiest: each of them was compared.
        repairs = _in_bits(best, others, cells, among=len(others) * len(plain)).values()
        facts["best"] = best.architecture.depth
        yield finding("repairs-of-data", repairs, _better(*repairs), id_=f"repairs-{kind}", **facts)
    # One of them was trained once more from nothing by the same command.
    first, again = (_against_text(_named(name)) for name in ("repairs-dna", "again-dna"))
    inside = [first[name].estimate.contains(m.estimate.value or 0) for name, m in again.items()]
    verdict = "confirmed" if all(inside) else "undecided" if any(inside) else "refuted"
    yield finding("again", again.values(), verdict, inside=sum(inside), all=len(inside))


def _better(*measures: Measure) -> Verdict:
    """Confirmed where one is better beyond doubt, refuted where all are worse."""
    if any(measure.estimate.is_below(0) for measure in measures):
        return "confirmed"
    is_worse = all(measure.estimate.is_above(0) for measure in measures)
    return "refuted" if is_worse else "undecided"


def _against_text(cells: Mapping[str, CellResult]) -> dict[str, Measure]:
    """What every other network loses more than the text-shaped one."""
    others = dict(cells)
    text = others.pop(f"{TEXT[0]} layers")
    return _in_bits(text, others, cells, among=len(others))


def _in_bits(
    reference: CellResult,
    others: Mapping[str, CellResult],
    cells: Mapping[str, CellResult],
    *,
    among: int,
) -> dict[str, Measure]:
    """Bits a byte of the others less those of the reference, by their names."""
    found = differences(reference, [*others.values()], pooled=[*cells.values()], among=among)
    named = sorted(zip(others, found, strict=True), key=lambda pair: pair[0])
    return {
        name: Measure(what=name, estimate=item.estimate, unit="bits a byte", seeds=item.seeds)
        for name, item in named
    }


def _named(sweep: str) -> dict[str, CellResult]:
    """The cells of a sweep by their names: layers, where the data are read token by token."""
    cells, names = cells_of(evidence_records(sweep)), []
    fewest = min(cell.architecture.input.vocab for cell in cells)
    for shape in (cell.architecture for cell in cells):
        if shape.input.tokens_per_position > 1:
            names.append(f"patches of {shape.input.tokens_per_position}")
        elif shape.input.vocab > fewest:
            names.append(f"vocabulary of {shape.input.vocab}")
        else:
            names.append(f"{shape.depth} layers")
    return dict(zip(names, cells, strict=True))
