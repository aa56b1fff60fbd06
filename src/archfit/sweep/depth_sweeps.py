"""Sweeps that ask from which size on the deeper of two networks wins."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from archfit.spec.asked import AskedRun
from archfit.sweep import published
from archfit.sweep.cell import Cell, equal_size
from archfit.sweep.recipes import LEVINE, base
from archfit.sweep.sweep import Corpus, Scale

# Depths and block parameters. The law ln d = 5.039 + 0.0555 L puts the crossings of `small` at
# 0.7M (2 and 4), 1.8M (4 and 8) and 5.5M (8 and 16).
DEPTHS: dict[Scale, tuple[int, ...]] = {"smoke": (1, 2, 4), "small": (2, 4, 8, 16)}
DEPTH_SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (9_408, 27_648, 55_488),  # widths 28, 48, 68 at depth 1: little is lost to rounding
    "small": (250_000, 600_000, 1_400_000, 3_400_000, 8_000_000),
}
# A shallow and a deep network. Widths of the shallow one reach from below to above the limit on
# the rank: 257 tokens, or the rank that `LOWRANK` caps the embedding at.
PAIR: dict[Scale, tuple[int, int]] = {"smoke": (1, 4), "small": (4, 12)}
VOCABULARY_WIDTHS: dict[Scale, tuple[int, ...]] = {
    "smoke": (16, 32, 64),
    "small": (128, 184, 256, 364, 512),
}
LOWRANK: dict[Scale, int] = {"smoke": 4, "small": 64, "paper": published.LOWRANK}
LOWRANK_WIDTHS: dict[Scale, tuple[int, ...]] = {
    "smoke": (12, 24, 48),
    "small": (64, 96, 144, 216, 324),
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
            for asked in _pair(base(scale), scale, VOCABULARY_WIDTHS[scale]):
                yield Cell(corpus=corpus, asked=asked)


def wies_lowrank(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """The same with the rank of the input embedding capped, tokens and positions alike.

    Wies et al. 2021, section 5.2.2: the deeper wins from shallow width 504 on at rank 500. At the
    smaller scales the uncapped networks stand beside them, as `wies-vocab` has them in the paper.
    """
    (corpus,) = corpora
    rank = LOWRANK[scale]
    capped = replace(base(scale), embedding_inner=rank, position_inner=rank)
    if scale == "paper":
        for depth, widths in published.LOWRANK_WIDTHS.items():
            for width in widths:
                yield Cell(corpus=corpus, asked=replace(capped, depth=depth, width=width))
        return
    for one in (base(scale), capped):
        for asked in _pair(one, scale, LOWRANK_WIDTHS[scale]):
            yield Cell(corpus=corpus, asked=asked)


def _pair(asked: AskedRun, scale: Scale, shallow_widths: Sequence[int]) -> Iterator[AskedRun]:
    shallow, deep = PAIR[scale]
    for width in shallow_widths:
        yield replace(asked, depth=shallow, width=width)
        yield equal_size(asked, depth=deep, block_params=12 * shallow * width**2)


def _published_widths(vocab: int) -> dict[int, tuple[int, ...]]:
    """Those of the nearest vocabulary that the paper had; own data rarely have the same."""
    known = published.VOCABULARY_WIDTHS
    return known[min(known, key=lambda one: abs(one - vocab))]
