"""The seven questions that the shipped runs are asked: measures and verdicts, from their records.

Here those of ranks (1, 4 and 6), of wide attention (3) and of other data (7); depth (2 and 5) has a
file of its own.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from archfit.fit import depth_findings, evidence
from archfit.fit.cells import CellResult, cells_of
from archfit.fit.comparisons import differences
from archfit.fit.depth_findings import CAPS, PAIR, shapes_of
from archfit.fit.evidence import EvidenceFinding, Measure, evidence_fits, finding, measured
from archfit.fit.fitted import Fits
from archfit.spec import Tokens
from archfit.spec.estimate import Estimate

WORTH = 0.05  # a share of the parameters that a reader of the papers' figures could not tell from 0
SAME = 0.02  # nats per token: a tenth of what the lowest rank costs
ALIKE = 1.2  # ratios within this factor are about the same
WIDTH = 256  # of the sweeps over ranks
RATIOS = (1, 2, 4, 8, 16)  # of attention to the stream
TEXT = (4, 128)  # depth and width of the text-shaped network
RANK, SIDE, LOWRANK = "wies-rank", "input-or-output-rank", "wies-lowrank"
PAPERS_SHARE = (0.2, 0.3)  # about 25 %, as far as a reader of the figure could tell
InnerSizes: TypeAlias = tuple[int | None, int | None, int | None]  # embedding, positions, head
FULL: InnerSizes = (None, None, None)


def all_findings() -> tuple[EvidenceFinding, ...]:
    """Recomputed from the records, in the order of the questions: a few seconds, no GPU."""
    ranks, capped = evidence_fits(RANK), evidence_fits(LOWRANK)
    return (
        *_rank_costs(evidence_fits(RANK, SIDE)),
        _rank_and_depth(capped, ranks),
        _rank_or_ratio(capped),
        _rank_long(),
        *depth_findings.crossing_findings(),
        *_attention(),
        *_position_ranks(evidence_fits("wies-positions")),
        *depth_findings.depth_findings(),
        _side(evidence_fits(SIDE)),
        *_other_data(),
    )


def _by_inner_sizes(fits: Fits) -> dict[InnerSizes, CellResult]:
    return {
        (s.embedding.inner_size, s.positions.inner_size, getattr(s.head, "inner", None)): cell
        for cell in fits.cells
        if (s := cell.architecture).width == WIDTH
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
        rank: evidence.loss_difference(fits, cells[first], cells[second], what.format(rank), rank)
        for rank in ranks
        for first, second in (tables(rank),)
    }


def _rank_costs(fits: Fits) -> Iterator[EvidenceFinding]:
    """What a low rank wastes, whether factorised tables that lose no rank cost, and positions."""
    for claim, tables in (("rank", ("embedding", "positions")), ("rank-of-tokens", ("embedding",))):
        items = [item for item in fits.redundancy if item.bottleneck == tables and item.ratio < 1]
        shares = {
            rank: measured(item, f"rank {rank} of {WIDTH}", "share", item.ratio)
            for item in items
            for rank in (item.family.embedding.inner_size,)
        }
        shapes = [item.cell.architecture for item in items]
        yield finding(claim, shares.values(), evidence.all_above(WORTH, shares[16]), shapes)
    control = _by_rank(fits, "inner size {}", (256, 384), lambda r: ((r, r, None), FULL)).values()
    cells, ranks, bands = _by_inner_sizes(fits), (8, 16, 32, 64, 128), []
    whole = [cells[FULL].architecture, *(cells[r, r, None].architecture for r in (256, 384))]
    same = evidence.within(control, [(-SAME, SAME)] * 2)
    yield finding("rank-control", control, same, whole, same=SAME)
    tokens = _by_rank(fits, "rank {}", ranks, lambda r: ((r, None, None), (r, r, None))).values()
    for rank in ranks:
        pair = cells[rank, None, None], cells[rank, rank, None]
        std = max(fits.noise_about(cell).pool(cell).std for cell in pair)
        bands.append((-2 * std, 2 * std))
    capped = [cells[rank, rank, None].architecture for rank in ranks]
    yield finding("rank-with-full-positions", tokens, evidence.within(tokens, bands), capped)


def _rank_and_depth(capped: Fits, ranks: Fits) -> EvidenceFinding:
    """What rank 16 wastes at widths of 250 to 300, by depth."""
    found = [
        (item.cell.architecture, measured(item, f"{depth} x {width}", "share", item.ratio))
        for fits, depth, width in ((capped, 2, 302), (ranks, 6, 256), (capped, 8, 250))
        for item in fits.redundancy
        if (item.family.depth, item.cell.architecture.width) == (depth, width)
        and item.bottleneck == ("embedding", "positions")
        and item.family.embedding.inner_size == CAPS[0]
    ]
    claim, measures = "rank-and-depth", [measure for _, measure in found]
    inside = {shape: share for shape, share in found if evidence.is_inside(claim, shape)}
    verdict = evidence.all_larger(itertools.pairwise(inside.values()))
    return finding(claim, measures, verdict, inside)


def _rank_or_ratio(fits: Fits) -> EvidenceFinding:
    """What a rank wastes at each width at which it is a limit and its cost is known.

    Refuted by cells of 8 layers and about one ratio whose ranks, 16 and 64, waste not the same;
    intervals that overlap would not show that the ratio is all. Two layers do not decide.
    """
    shares: dict[tuple[int, int | None], list[Measure]]
    shares = {(depth, cap): [] for cap in CAPS for depth in PAIR}
    for item in fits.redundancy:
        depth, cap = item.family.depth, item.family.embedding.inner_size
        if (depth, cap) in shares and item.outcome == "value" and item.ratio < 1:
            series = f"{depth} layers, rank {cap}"
            what = f"{depth} x {item.cell.architecture.width}, rank {cap}, ratio {item.ratio:.2g}"
            shares[depth, cap].append(measured(item, what, "share", item.ratio, series))
    deep = PAIR[1]
    is_refuted = any(
        small.estimate.lies_above(large.estimate)
        for small, large in itertools.product(shares[deep, CAPS[0]], shares[deep, CAPS[1]])
        if small.at and large.at and 1 <= small.at / large.at < ALIKE
    )
    measures = itertools.chain.from_iterable(shares.values())
    verdict = evidence.verdict_of((False,), (is_refuted,))
    return finding("rank-or-ratio", measures, verdict, shapes_of(fits, (deep,)))


def _rank_long() -> EvidenceFinding:
    """At each quarter of a long training: the share of blocks that a full rank saves."""
    measures, records = (
        [],
        evidence.evidence_records("rank-long"),
    )  # the low rank, and a line of full ones
    half = depth_findings.single_run_error(records[0].spec.data_hash)
    shapes, trained_on = [r.spec.architecture for r in records], records[0].spec.training_tokens
    (capped,) = (shape for shape in shapes if shape.embedding.inner_size)
    for quarter in range(1, 5):
        at = [r.evaluations[len(r.evaluations) * quarter // 4 - 1] for r in records]
        losses = {s: e.heldout_nats_per_token for s, e in zip(shapes, at, strict=True)}
        own = losses.pop(capped)
        full = {shape.block_params: loss for shape, loss in losses.items()}
        low, value, high = (
            1 - _size_of_loss(full, own + off) / capped.block_params for off in (-half, 0.0, half)
        )
        tokens, share = trained_on * quarter / 4, Estimate(value=value, low=low, high=high)
        what = f"after {tokens / 1e6:.0f}M tokens"
        measures.append(Measure(what=what, at=tokens, estimate=share, unit="share", seeds=1))
    verdict = evidence.within(measures[-1:], [PAPERS_SHARE])
    return finding("rank-long", measures, verdict, shapes, trained_on)


def _size_of_loss(losses: Mapping[int, float], wanted: float) -> float:
    """The size of this loss, straight in its logarithm between sizes and beyond the last two."""
    points = sorted((math.log(size), loss) for size, loss in losses.items())
    pairs = list(itertools.pairwise(points))
    pair = next((p for p in pairs if p[0][1] >= wanted >= p[1][1]), None)
    (x0, y0), (x1, y1) = pair or (pairs[0] if wanted > points[0][1] else pairs[-1])
    return math.exp(x0 + (x1 - x0) * (wanted - y0) / (y1 - y0))


def _side(fits: Fits) -> EvidenceFinding:
    """Whether the same rank hurts more on the head than on the input."""
    both, what = (lambda r: ((None, None, r), (r, None, None))), f"rank {{}} of {WIDTH}"
    measures = _by_rank(fits, what, (8, 32, 128), both).values()
    is_above = all(measure.estimate.is_above(0) for measure in measures)
    return finding("input-or-output-rank", measures, "new" if is_above else "undecided", ())


def _position_ranks(fits: Fits) -> Iterator[EvidenceFinding]:
    """How low the rank of positions may be, alone and beside that of the vocabulary."""
    alone = _by_rank(fits, "rank {}", (1, 4, 16, 256), lambda r: ((None, r, None), FULL))
    words = "less a vocabulary of rank {}"
    against = _by_rank(fits, words, (16, 32, 64), lambda r: ((None, 1, None), (r, None, None)))
    eighth, quarter = against[32].estimate, against[64].estimate
    is_worse = eighth.is_above(0) and quarter.is_above(0)
    verdict = evidence.verdict_of((eighth.is_below(0), quarter.is_below(0)), (is_worse,))
    cost = alone[16].estimate
    as_good = evidence.verdict_of((cost.is_below(SAME),), (cost.is_above(SAME),))
    shapes = shapes_of(fits, (6,))
    yield finding("position-rank", alone.values(), as_good, shapes)
    yield finding("position-rank-one", against.values(), verdict, shapes)


def _attention() -> Iterator[EvidenceFinding]:
    """What wide attention costs, whether the cost rises all the way, and which depth serves it.

    In the paper's networks; the shares of ours, which its claims are not about, stand for models
    with wide heads and a usual feed-forward layer.
    """
    fits = evidence_fits("wies-attention")
    largest = max(cell.size for cell in fits.cells)
    tried = {cell.architecture.depth for cell in fits.cells}
    cells, depths = {}, []
    for ratio in RATIOS:  # at the depth of the least loss, since of some only limits are known
        wide = [cell for cell in fits.cells if round(cell.architecture.attention_ratio) == ratio]
        cells[ratio] = min((c for c in wide if c.size > 0.9 * largest), key=lambda cell: cell.mean)
        best = [d for d in fits.best_depth if round(2 ** (d.family.attention_step / 14)) == ratio]
        largest_best = max(best, key=lambda item: item.size)
        depths.append(measured(largest_best, f"ratio {ratio}", "layers", largest_best.size))
    rises = [
        evidence.loss_difference(fits, cells[wide], cells[narrow], f"ratio {wide} less {narrow}")
        for narrow, wide in itertools.pairwise(RATIOS)
    ]
    least, most = depths[0].estimate, depths[-1].estimate
    sooner = (most.is_below(max(tried)), least.is_above(min(tried)))
    shallow = evidence.verdict_of(sooner, (most.is_above(min(tried)),))
    shares, shapes = _attention_shares(fits), shapes_of(fits, tried)
    words = {"tried": " and ".join(map(str, sorted(tried)))}
    paper = evidence.all_above(WORTH, shares[4], shares[16])  # the ratios of the paper
    yield finding("attention", shares.values(), paper, shapes, **words)
    yield finding("attention-rises", rises, evidence.all_above(0, *rises), shapes, **words)
    yield finding("attention-depth", depths, shallow, shapes, **words)
    usual = _attention_shares(evidence_fits("wide-attention"))
    yield finding("wide-attention", usual.values(), "new", ())


def _attention_shares(fits: Fits) -> dict[int, Measure]:
    """By the ratio: what it wastes at its best depth."""
    found = {}
    for ratio in RATIOS[1:]:
        items = [item for item in fits.redundancy if round(item.ratio) == ratio]
        best = min(items, key=lambda item: item.cell.mean)
        found[ratio] = measured(best, f"ratio {ratio}", "share", best.ratio)
    return found


def _other_data() -> Iterator[EvidenceFinding]:
    """On each kind of data: does depth beat a text-shaped network, and do repairs beat depth?"""
    for kind, words in evidence.claim_table()["kinds"].items():
        cells = _named(f"repairs-{kind}")
        deeper = {name: own for name, own in _against_text(cells).items() if "layers" in name}
        wanted = TEXT[0] * (TEXT[1] / words["tokens"]) ** 2  # layers of width V, as many blocks
        depths = [int(name.split()[0]) for name in deeper]
        nearest = min(depths, key=lambda depth: abs(math.log(depth / wanted)))
        verdict = _better(deeper[f"{nearest} layers"])
        facts = {**words, "kind": kind, "wanted": wanted, "nearest": nearest}
        plain = [cell for name, cell in cells.items() if "layers" in name]
        # The network as it reads the tokens that occur: others are rows that it never uses.
        read = Tokens(vocab=words["tokens"])
        shapes = [replace(cell.architecture, input=read) for cell in plain]
        measures = deeper.values()
        yield finding("depth-of-data", measures, verdict, shapes, id_=f"depth-{kind}", **facts)
        best = min(plain, key=lambda cell: cell.bits_per_byte)
        others = {name: cell for name, cell in cells.items() if "layers" not in name}
        # The best of the depths is also the luckiest: each of them was compared.
        among = len(others) * len(plain)
        found = differences(best, others, pooled=cells.values(), among=among)
        repairs = [measured(found[name], name, "bits a byte") for name in sorted(found)]
        facts["best"] = best.architecture.depth
        verdict, id_ = _better(*repairs), f"repairs-{kind}"
        limited = [replace(best.architecture, input=read)]  # what the repairs are to beat
        yield finding("repairs-of-data", repairs, verdict, limited, id_=id_, **facts)
    # One of them was trained once more from nothing by the same command.
    first, again = (_against_text(_named(name)) for name in ("repairs-dna", "again-dna"))
    inside = [first[name].estimate.contains(m.estimate.value or 0) for name, m in again.items()]
    yield finding("again", again.values(), "new", (), inside=sum(inside), all=len(inside))


def _better(*measures: Measure) -> evidence.Verdict:
    """Confirmed where one is better beyond doubt, refuted where all are worse."""
    is_better = any(measure.estimate.is_below(0) for measure in measures)
    is_worse = all(measure.estimate.is_above(0) for measure in measures)
    return evidence.verdict_of((is_better,), (is_worse,))


def _against_text(cells: Mapping[str, CellResult]) -> dict[str, Measure]:
    """Bits a byte that every other network loses more than the text-shaped one."""
    others = dict(cells)
    text = others.pop(f"{TEXT[0]} layers")
    found = differences(text, others, pooled=cells.values(), among=len(others))
    return {name: measured(found[name], name, "bits a byte") for name in sorted(found)}


def _named(sweep: str) -> dict[str, CellResult]:
    """The cells of a sweep by their names: layers, where the data are read token by token."""
    cells, names = cells_of(evidence.evidence_records(sweep)), []
    fewest = min(cell.architecture.input.vocab for cell in cells)
    for shape in (cell.architecture for cell in cells):
        if shape.input.tokens_per_position > 1:
            names.append(f"patches of {shape.input.tokens_per_position}")
        elif shape.input.vocab > fewest:
            names.append(f"vocabulary of {shape.input.vocab}")
        else:
            names.append(f"{shape.depth} layers")
    return dict(zip(names, cells, strict=True))
