"""Question 2, and depth in question 1: what a limited input does to shallow and deep networks."""

import itertools
from dataclasses import dataclass

from archfit.evidence.finding import Finding, Measure, is_above, is_below, lies_above, verdict_of
from archfit.evidence.measuring import (
    BPE,
    BYTES,
    NEAR,
    PAIR,
    inner_size,
    pair_of,
    share_of,
    width_of,
)
from archfit.evidence.records import Evidence
from archfit.fit.fitted import Fits, fitted
from archfit.fit.redundancy import Redundancy

CAPS = (16, 64)
ALIKE = 1.2  # ratios within this factor are about the same
LOWRANK, VOCAB = "wies-lowrank", "wies-vocab"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Limit:
    """What limits the rank of the input."""

    name: str
    symbol: str
    sweep: str
    paper: str
    caveat: str
    moves: str  # what the limit has to do with the crossing


VOCABULARY = _Limit(
    name="vocabulary",
    symbol="V",
    sweep=VOCAB,
    paper="Wies et al. 2021, 5.2.1: the smaller the vocabulary, the sooner the deeper network "
    "wins, from where the shallow width is about V (24 and 48 layers; V = 500: width 408)",
    caveat=". At a width of 71 a table of 257 rows limits no rank, so it is not the papers' "
    "bottleneck that does it: bytes and BPE also differ in how much text a context holds",
    moves="the vocabulary does not limit the rank there",
)
RANK = _Limit(
    name="low-rank",
    symbol="r",
    sweep=LOWRANK,
    paper="Wies et al. 2021, 5.2.2: at rank 500 the deeper network wins from a shallow width of "
    "504 on (24 and 48 layers)",
    caveat="; ranks 16 and 64 are not told apart",
    moves="the limit moves that point, and does not set it",
)


def vocabulary_findings(evidence: Evidence) -> tuple[Finding, Finding]:
    """Does a small vocabulary let the deeper network win sooner, and at a width of about V?"""
    fits = fitted(evidence.records(VOCAB))
    few, many = (
        width_of(pair_of(fits, vocab=vocab, cap=None), name)
        for vocab, name in ((BYTES, "V = 257 (bytes)"), (BPE, "V = 2000 (BPE)"))
    )
    return (
        _sooner(VOCABULARY, (few, many)),
        _at_the_limit(VOCABULARY, {few: BYTES}, many),
    )


def lowrank_findings(evidence: Evidence) -> tuple[Finding, ...]:
    """The same for a capped rank; and what the cap costs a shallow and a deep network."""
    fits = fitted(evidence.records(LOWRANK))
    caps: tuple[int | None, ...] = (*CAPS, None)
    widths = [
        width_of(
            pair_of(fits, vocab=BPE, cap=cap),
            "full rank" if cap is None else f"rank {cap}",
        )
        for cap in caps
    ]
    limits = dict(zip(widths, CAPS, strict=False))
    return (
        _sooner(RANK, tuple(widths)),
        _at_the_limit(RANK, limits, widths[-1]),
        _rank_and_depth(fits, fitted(evidence.records("wies-rank"))),
        _rank_or_ratio(fits),
    )


def _sooner(limit: _Limit, widths: tuple[Measure, ...]) -> Finding:
    *tight, last = widths
    return Finding(
        id=f"{limit.name}-sooner",
        question=2,
        asks=f"Does the deeper network win sooner where {limit.symbol} is smaller?",
        paper=limit.paper,
        measures=widths,
        verdict=verdict_of(
            confirmed=(lies_above(last, one) for one in tight),
            refuted=(lies_above(one, last) for one in tight),
        ),
        because="shallow widths from which 8 layers beat 2: those of a smaller "
        f"{limit.symbol} lie below the interval of the last" + limit.caveat,
        sweeps=(limit.sweep,),
    )


def _at_the_limit(limit: _Limit, widths: dict[Measure, int], free: Measure) -> Finding:
    return Finding(
        id=f"{limit.name}-width",
        question=2,
        asks=f"Does the deeper network win from a shallow width of about {limit.symbol} on?",
        paper=limit.paper,
        measures=tuple(widths),
        verdict=verdict_of(
            confirmed=(
                is_above(one, value / NEAR) and is_below(one, value * NEAR)
                for one, value in widths.items()
            ),
            refuted=(
                is_above(one, value * NEAR) or is_below(one, value / NEAR)
                for one, value in widths.items()
            ),
        ),
        because=f"with 2 and 8 layers it is not within a factor of {NEAR} of {limit.symbol}. "
        f"Networks without a limit cross at a width of {free.value:.0f}; {limit.moves}",
        sweeps=(limit.sweep,),
    )


def _rank_and_depth(capped: Fits, ranks: Fits) -> Finding:
    """What rank 16 wastes at widths of 250 to 300, by depth."""
    wanted = ((capped, 2, 302), (ranks, 6, 256), (capped, 8, 250))
    measures = [
        share_of(_capped(fits, depth, width), f"{depth} x {width}") for fits, depth, width in wanted
    ]
    pairs = list(itertools.pairwise(measures))
    return Finding(
        id="rank-and-depth",
        question=1,
        asks="Does a low rank waste less of a deeper network?",
        paper="Wies et al. 2021: depth makes up for a low rank (theory); rank 16 of 680 at 12 "
        "layers about 25 %",
        measures=tuple(measures),
        verdict=verdict_of(
            confirmed=(lies_above(shallow, deep) for shallow, deep in pairs),
            refuted=(lies_above(deep, shallow) for shallow, deep in pairs),
        ),
        because="redundancy at rank 16 and widths of 250 to 300 falls with depth (and with the "
        "size, which grows along: 2.2M, 4.7M, 6.0M); the paper's number at 12 layers, of another "
        "width, is lower still",
        sweeps=(LOWRANK, "wies-rank"),
    )


def _rank_or_ratio(fits: Fits) -> Finding:
    """Cells of one depth and about one ratio, whose ranks are 16 and 64."""
    few, many = CAPS
    shares = {(depth, cap): _shares(fits, depth, cap) for cap in CAPS for depth in PAIR}
    alike = [
        (small, large)
        for depth in PAIR
        for small in shares[depth, few]
        for large in shares[depth, many]
        if small.at and large.at and 1 <= small.at / large.at < ALIKE
    ]
    return Finding(
        id="rank-or-ratio",
        question=1,
        asks="Is it the ratio of rank to width alone that decides what is wasted?",
        paper="Wies et al. 2021 read their result, and ALBERT's 128 of 4096, by the ratio",
        measures=tuple(itertools.chain.from_iterable(shares.values())),
        # Intervals that overlap would not show that the ratio is all.
        verdict="refuted" if any(lies_above(*pair) for pair in alike) else "undecided",
        because="at equal or larger ratio rank 16 wastes more than rank 64, at 2 layers and at 8 "
        "(there the networks of rank 64 are also the wider and larger ones); from width 56 to 250 "
        "what rank 16 wastes grows by a third at 8 layers. A large model of the same ratio may "
        "waste less than the papers' and these small ones",
        sweeps=(LOWRANK,),
    )


def _shares(fits: Fits, depth: int, cap: int) -> list[Measure]:
    """What a rank wastes at each width at which it is a limit and its cost is known."""
    return [
        share_of(
            item,
            f"{depth} x {item.cell.architecture.width}, rank {cap}, ratio {item.ratio:.2g}",
            series=f"{depth} layers, rank {cap}",
        )
        for item in fits.redundancy
        if (item.family.depth, inner_size(item.family.embedding)) == (depth, cap)
        and item.value is not None
        and item.ratio < 1
    ]


def _capped(fits: Fits, depth: int, width: int) -> Redundancy:
    (found,) = (
        item
        for item in fits.redundancy
        if (item.family.depth, item.cell.architecture.width) == (depth, width)
        and item.bottleneck == ("embedding", "positions")
        and inner_size(item.family.embedding) == CAPS[0]
    )
    return found
