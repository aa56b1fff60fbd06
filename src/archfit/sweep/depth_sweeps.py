"""Sweeps that ask from which size on the deeper of two networks wins."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from archfit.spec.asked import AskedRun
from archfit.sweep import published
from archfit.sweep.cell import Cell, equal_size
from archfit.sweep.recipes import LEVINE, base
from archfit.sweep.sweep import Corpus, Scale

# Depths and block parameters. The law ln d = 5.039 + 0.0555 L puts the crossings of `small` at
# 0.3M (1 and 2), 0.7M (2 and 4) and 1.8M (4 and 8).
DEPTHS: dict[Scale, tuple[int, ...]] = {"smoke": (1, 2, 4), "small": (1, 2, 4, 8)}
DEPTH_SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (9_408, 27_648, 55_488),  # widths 28, 48, 68 at depth 1: little is lost to rounding
    "small": (110_000, 300_000, 800_000, 2_200_000, 6_000_000),
}
# A shallow and a deep network. Widths of the shallow one reach from below to above the limit on
# the rank: 257 tokens, or the ranks that `LOWRANK` caps the embedding at. At `small` they are cells
# of levine-depth, so that what that sweep has trained need not be trained again.
PAIR: dict[Scale, tuple[int, int]] = {"smoke": (1, 4), "small": (2, 8)}
VOCABULARY_SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (3_072, 12_288, 49_152),  # widths 16, 32, 64
    "small": DEPTH_SIZES["small"],
}
LOWRANK: dict[Scale, tuple[int, ...]] = {
    "smoke": (4,),
    "small": (16, 64),
    "paper": (published.LOWRANK,),
}
LOWRANK_SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (1_728, 6_912, 27_648),  # widths 12, 24, 48
    "small": DEPTH_SIZES["small"],
}


def levine_depth(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """Depths at several sizes: the crossing of each two gives a point of the transition law.

    Levine et al. 2020, appendix D and figures of the published version.
    """
    (corpus,) = corpora
    if scale == "paper":
        for depth, widths in published.LEVINE_WIDTHS.items():
            for width in widths:
                yield Cell(corpus=corpus, asked=replace(LEVINE, depth=depth, width=width))
        return
    for size in DEPTH_SIZES[scale]:
        for depth in DEPTHS[scale]:
            asked = equal_size(base(scale), depth=depth, block_params=size)
            yield Cell(corpus=corpus, asked=asked)


def wies_vocab(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """A shallow and a deep network at several sizes, for each vocabulary.

    Wies et al. 2021, section 5.2.1: the deeper wins from where the shallow width is about V.
    """
    for corpus in corpora:
        if scale == "paper":
            for depth, widths in _published_widths(corpus.vocab).items():
                for width in widths:
                    asked = replace(base(scale), depth=depth, width=width)
                    yield Cell(corpus=corpus, asked=asked)
        else:
            for asked in _pair(base(scale), scale, VOCABULARY_SIZES[scale]):
                yield Cell(corpus=corpus, asked=asked)


def wies_lowrank(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """The same with the rank of the input embedding capped, tokens and positions alike.

    Wies et al. 2021, section 5.2.2: the deeper wins from shallow width 504 on at rank 500. At the
    smaller scales the uncapped networks stand beside them, as `wies-vocab` has them in the paper.
    """
    (corpus,) = corpora
    capped = [
        replace(base(scale), embedding_inner=rank, position_inner=rank) for rank in LOWRANK[scale]
    ]
    if scale == "paper":
        for depth, widths in published.LOWRANK_WIDTHS.items():
            for width in widths:
                yield Cell(corpus=corpus, asked=replace(capped[0], depth=depth, width=width))
        return
    for one in (base(scale), *capped):
        for asked in _pair(one, scale, LOWRANK_SIZES[scale]):
            yield Cell(corpus=corpus, asked=asked)


def _pair(asked: AskedRun, scale: Scale, sizes: Sequence[int]) -> Iterator[AskedRun]:
    for size in sizes:
        for depth in PAIR[scale]:
            yield equal_size(asked, depth=depth, block_params=size)


def _published_widths(vocab: int) -> dict[int, tuple[int, ...]]:
    """Those of the nearest vocabulary that the paper had; own data rarely have the same."""
    known = published.VOCABULARY_WIDTHS
    return known[min(known, key=lambda one: abs(one - vocab))]
