"""Questions 1 and 6: what a low rank of a table costs, and on which side."""

from archfit.evidence.finding import Finding, is_above, is_below, verdict_of
from archfit.evidence.measuring import by_inner_sizes, loss_difference, pooled_std, share_of
from archfit.evidence.records import Evidence
from archfit.fit.fitted import Fits, fitted
from archfit.fit.redundancy import Redundancy
from archfit.spec import Factorised

WORTH = 0.05  # a share of the parameters that a reader of the papers' figures could not tell from 0
SAME = 0.02  # nats per token: a tenth of what the lowest rank costs
WIDTH, RANKS = 256, (8, 16, 32, 64, 128)
RANK, SIDE = "wies-rank", "input-or-output-rank"
BOTH_TABLES, TOKENS = ("embedding", "positions"), ("embedding",)


def rank_findings(evidence: Evidence) -> tuple[Finding, ...]:
    """From both sweeps together, which share data, recipe and network."""
    fits = fitted(evidence.records(RANK, SIDE))
    return (
        _cost(fits, "rank", BOTH_TABLES, "tokens and positions"),
        _cost(fits, "rank-of-tokens", TOKENS, "tokens alone"),
        _control(fits),
        _full_positions(fits),
    )


def side_finding(evidence: Evidence) -> Finding:
    """Which side hurts."""
    fits = fitted(evidence.records(SIDE))
    cells = by_inner_sizes(fits, width=WIDTH)
    measures = [
        loss_difference(
            fits,
            cells[None, None, rank],
            cells[rank, None, None],
            f"rank {rank} of {WIDTH}",
            at=rank,
        )
        for rank in (8, 32, 128)
    ]
    return Finding(
        id="input-or-output-rank",
        question=6,
        asks="Does a low rank hurt more on the head than on the input (nats: head less input)?",
        paper="Wies et al. 2021 cap the input and leave the head full; Godey et al. 2024 find that "
        "a narrow head hurts",
        measures=tuple(measures),
        verdict="new" if all(is_above(one, 0) for one in measures) else "undecided",
        because="the same rank costs more nats per token on the head at every rank that was tried. "
        "With the head capped, a cap of the input costs more at rank 8 alone: at 32 and 128 both "
        "together lose no more than the head does",
        sweeps=(SIDE,),
    )


def _cost(fits: Fits, id_: str, tables: tuple[str, ...], words: str) -> Finding:
    items = [item for item in fits.redundancy if item.bottleneck == tables]
    measures = [share_of(item, _named(item)) for item in items if item.ratio < 1]
    sixteenth = next(one for one in measures if one.what.startswith("rank 16 "))
    return Finding(
        id=id_,
        question=1,
        asks=f"Does a low rank waste parameters, and what share of the blocks ({words} capped)?",
        paper="Wies et al. 2021, 5.1: at rank 16 of 680 (12 layers) about 25 %",
        measures=tuple(measures),
        verdict=verdict_of(
            confirmed=(is_above(sixteenth, WORTH),), refuted=(is_below(sixteenth, WORTH),)
        ),
        because="6 layers of width 256; at rank 16 the waste is larger here than at 12 layers of "
        "680 in the paper (see rank-and-depth); at half of the width no cost was seen",
        sweeps=(RANK, SIDE),
    )


def _control(fits: Fits) -> Finding:
    cells = by_inner_sizes(fits, width=WIDTH)
    measures = [
        loss_difference(
            fits,
            cells[inner, inner, None],
            cells[None, None, None],
            f"inner size {inner}",
            at=inner,
        )
        for inner in (256, 384)
    ]
    return Finding(
        id="rank-control",
        question=1,
        asks="Does a factorised table that loses no rank train like a full one (nats: less full)?",
        paper="Wies et al. 2021, figure 2: ranks of 880 and 1080 at width 680 lie with the full "
        "table",
        measures=tuple(measures),
        verdict=verdict_of(
            confirmed=(is_above(one, -SAME) and is_below(one, SAME) for one in measures),
            refuted=(is_above(one, SAME) for one in measures),
        ),
        because=f"both intervals lie within {SAME} nats of zero: the factorisation itself is not "
        "what costs",
        sweeps=(RANK,),
    )


def _full_positions(fits: Fits) -> Finding:
    cells = by_inner_sizes(fits, width=WIDTH)
    pairs = {rank: (cells[rank, None, None], cells[rank, rank, None]) for rank in RANKS}
    measures = [
        loss_difference(fits, *pair, f"rank {rank}", at=rank) for rank, pair in pairs.items()
    ]
    bands = [2 * pooled_std(fits, *pair) for pair in pairs.values()]
    return Finding(
        id="rank-with-full-positions",
        question=1,
        asks="Does it matter whether positions are capped, too (nats: full less capped)?",
        paper="Wies et al. 2021, 5.1: at ranks 16, 32 and 64 a full position table agrees within 2 "
        "standard deviations",
        measures=tuple(measures),
        verdict=verdict_of(
            confirmed=(
                is_above(one, -band) and is_below(one, band)
                for one, band in zip(measures, bands, strict=True)
            ),
            refuted=(
                is_above(one, band) or is_below(one, -band)
                for one, band in zip(measures, bands, strict=True)
            ),
        ),
        because="capped positions are as good or a little better; three seeds do not tell whether "
        "all of that is within 2 standard deviations of a run (one cell of rank 16 is noisier than "
        "accident allows)",
        sweeps=(RANK, SIDE),
    )


def _named(item: Redundancy) -> str:
    table = getattr(item.cell.architecture, item.bottleneck[0])
    assert isinstance(table, Factorised)
    return f"rank {table.inner} of {item.cell.architecture.width}"
