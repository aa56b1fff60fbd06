"""Questions 1, 4 and 6: what a low rank of a table costs. Question 3: wide attention."""

import itertools

from archfit.evidence.measures import (
    PAIR,
    EvidenceFinding,
    Measure,
    by_inner_sizes,
    depth_at,
    finding,
    loss_difference,
    noise_about,
    share_of,
    verdict_of,
    within,
)
from archfit.evidence.records import Evidence
from archfit.fit.cells import CellResult
from archfit.fit.fitted import Fits

WORTH = 0.05  # a share of the parameters that a reader of the papers' figures could not tell from 0
SAME = 0.02  # nats per token: a tenth of what the lowest rank costs
WIDTH, RANKS = 256, (8, 16, 32, 64, 128)
CAPS = (16, 64)  # ranks of the sweep over widths
ALIKE = 1.2  # ratios within this factor are about the same
RATIOS, PAPER_RATIOS = (1, 2, 4, 8, 16), (4, 16)  # of attention: ours, and those of the paper
RANK, SIDE, LOWRANK = "wies-rank", "input-or-output-rank", "wies-lowrank"
POSITIONS, ATTENTION = "wies-positions", "wies-attention"


def rank_findings(evidence: Evidence) -> tuple[EvidenceFinding, ...]:
    """What a low rank wastes and what it depends on; two sweeps share data, recipe and network."""
    fits = evidence.fits(RANK, SIDE)
    return (
        _cost(fits, "rank", ("embedding", "positions")),
        _cost(fits, "rank-of-tokens", ("embedding",)),
        _control(fits),
        _full_positions(fits),
        _rank_and_depth(evidence.fits(LOWRANK), evidence.fits(RANK)),
        _rank_or_ratio(evidence.fits(LOWRANK)),
    )


def side_finding(evidence: Evidence) -> EvidenceFinding:
    """Whether the same rank hurts more on the head than on the input."""
    fits = evidence.fits(SIDE)
    cells = by_inner_sizes(fits, width=WIDTH)
    measures = [
        loss_difference(fits, cells[None, None, r], cells[r, None, None], f"rank {r} of {WIDTH}", r)
        for r in (8, 32, 128)
    ]
    is_above = all(measure.estimate.is_above(0) for measure in measures)
    return finding("input-or-output-rank", measures, "new" if is_above else "undecided")


def _cost(fits: Fits, claim: str, tables: tuple[str, ...]) -> EvidenceFinding:
    shares = {
        item.family.embedding.inner_size: item
        for item in fits.redundancy
        if item.bottleneck == tables and item.ratio < 1
    }
    measures = [share_of(item, f"rank {rank} of {WIDTH}") for rank, item in shares.items()]
    share = shares[16].estimate
    verdict = verdict_of(confirmed=(share.is_above(WORTH),), refuted=(share.is_below(WORTH),))
    return finding(claim, measures, verdict)


def _control(fits: Fits) -> EvidenceFinding:
    cells = by_inner_sizes(fits, width=WIDTH)
    full = cells[None, None, None]
    measures = [
        loss_difference(fits, cells[inner, inner, None], full, f"inner size {inner}", at=inner)
        for inner in (256, 384)
    ]
    estimates = [measure.estimate for measure in measures]
    verdict = verdict_of(
        confirmed=(own.is_above(-SAME) and own.is_below(SAME) for own in estimates),
        refuted=(own.is_above(SAME) for own in estimates),
    )
    return finding("rank-control", measures, verdict, same=SAME)


def _full_positions(fits: Fits) -> EvidenceFinding:
    cells = by_inner_sizes(fits, width=WIDTH)
    pairs = {rank: (cells[rank, None, None], cells[rank, rank, None]) for rank in RANKS}
    measures = [loss_difference(fits, *pair, f"rank {r}", at=r) for r, pair in pairs.items()]
    stds = [max(noise_about(fits, cell).pool(cell).std for cell in pair) for pair in pairs.values()]
    verdict = within(measures, [(-2 * std, 2 * std) for std in stds])
    return finding("rank-with-full-positions", measures, verdict)


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
    pairs = list(itertools.pairwise(measure.estimate for measure in measures))
    verdict = verdict_of(
        confirmed=(shallow.lies_above(deep) for shallow, deep in pairs),
        refuted=(deep.lies_above(shallow) for shallow, deep in pairs),
    )
    return finding("rank-and-depth", measures, verdict)


def _rank_or_ratio(fits: Fits) -> EvidenceFinding:
    """Cells of one depth and about one ratio, whose ranks are 16 and 64."""
    few, many = CAPS
    shares = {(depth, cap): _shares(fits, depth, cap) for cap in CAPS for depth in PAIR}
    alike = [
        (small.estimate, large.estimate)
        for depth in PAIR
        for small in shares[depth, few]
        for large in shares[depth, many]
        if small.at and large.at and 1 <= small.at / large.at < ALIKE
    ]
    # Intervals that overlap would not show that the ratio is all.
    is_refuted = any(small.lies_above(large) for small, large in alike)
    measures = itertools.chain.from_iterable(shares.values())
    return finding("rank-or-ratio", measures, "refuted" if is_refuted else "undecided")


def _shares(fits: Fits, depth: int, cap: int) -> list[Measure]:
    """What a rank wastes at each width at which it is a limit and its cost is known."""
    return [
        share_of(
            item,
            f"{depth} x {item.cell.architecture.width}, rank {cap}, ratio {item.ratio:.2g}",
            series=f"{depth} layers, rank {cap}",
        )
        for item in fits.redundancy
        if (item.family.depth, item.family.embedding.inner_size) == (depth, cap)
        and (item.outcome == "value" and item.ratio < 1)
    ]


def position_findings(evidence: Evidence) -> tuple[EvidenceFinding, ...]:
    """How low the rank of positions may be, alone and beside that of the vocabulary."""
    fits = evidence.fits(POSITIONS)
    cells = by_inner_sizes(fits, width=WIDTH)
    full, one = cells[None, None, None], cells[None, 1, None]
    sixteen = {
        rank: loss_difference(fits, cells[None, rank, None], full, f"rank {rank}", at=rank)
        for rank in (1, 4, 16, 256)
    }
    cost = sixteen[16].estimate
    against = {
        r: loss_difference(fits, one, cells[r, None, None], f"less a vocabulary of rank {r}", r)
        for r in (16, 32, 64)
    }
    eighth, quarter = against[32].estimate, against[64].estimate
    verdict = verdict_of(confirmed=(cost.is_below(SAME),), refuted=(cost.is_above(SAME),))
    verdict_of_one = verdict_of(
        confirmed=(eighth.is_below(0), quarter.is_below(0)),
        refuted=(eighth.is_above(0) and quarter.is_above(0),),
    )
    return (
        finding("position-rank", sixteen.values(), verdict),
        finding("position-rank-one", against.values(), verdict_of_one),
    )


def attention_findings(evidence: Evidence) -> tuple[EvidenceFinding, ...]:
    """What wide attention costs, whether the cost rises all the way, and which depth serves it."""
    fits = evidence.fits(ATTENTION)
    shares = {}
    for ratio in RATIOS[1:]:  # at the depth of the least loss, since of some only limits are known
        items = [item for item in fits.redundancy if round(item.ratio) == ratio]
        shares[ratio] = share_of(min(items, key=lambda item: item.cell.mean), f"ratio {ratio}")
    paper = [shares[ratio].estimate for ratio in PAPER_RATIOS]
    cells = {ratio: _best_cell(fits, ratio) for ratio in RATIOS}
    rises = [
        loss_difference(fits, cells[wide], cells[narrow], f"ratio {wide} less {narrow}")
        for narrow, wide in itertools.pairwise(RATIOS)
    ]
    depths = [_best_depth(fits, ratio) for ratio in RATIOS]
    least, most = depths[0].estimate, depths[-1].estimate
    costs = verdict_of(
        confirmed=(share.is_above(WORTH) for share in paper),
        refuted=(share.is_below(WORTH) for share in paper),
    )
    rising = verdict_of(
        confirmed=(measure.estimate.is_above(0) for measure in rises),
        refuted=(measure.estimate.is_below(0) for measure in rises),
    )
    shallow = verdict_of(
        confirmed=(most.is_below(6), least.is_above(3)), refuted=(most.is_above(3),)
    )
    return (
        finding("attention", shares.values(), costs),
        finding("attention-rises", rises, rising),
        finding("attention-depth", depths, shallow),
    )


def _best_cell(fits: Fits, ratio: int) -> CellResult:
    largest = max(cell.size for cell in fits.cells)
    wide = [cell for cell in fits.cells if round(cell.architecture.attention_ratio) == ratio]
    return min((c for c in wide if c.size > 0.9 * largest), key=lambda cell: cell.mean)


def _best_depth(fits: Fits, ratio: int) -> Measure:
    """At the largest size, where all ratios were trained."""
    found = (
        item for item in fits.best_depth if round(2 ** (item.family.attention_step / 14)) == ratio
    )
    return depth_at(max(found, key=lambda item: item.size), f"ratio {ratio}")
