"""Sweeps that cap the rank of a table and ask what it costs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from archfit.sweep import published
from archfit.sweep.cell import Cell, ranks_below
from archfit.sweep.recipes import base
from archfit.sweep.sweep import Corpus, Scale


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ranks:
    """The network whose rank is capped, and full-rank ones that are narrower."""

    depth: int
    width: int
    narrower: tuple[int, ...]
    ranks: tuple[int, ...]
    controls: tuple[int, ...]  # inner sizes from the width up: no cap, but a factorised table
    full_positions: tuple[int, ...]  # ranks that are tried with a full position table too


RANKS: dict[Scale, _Ranks] = {
    "smoke": _Ranks(
        depth=2, width=48, narrower=(16, 24, 32), ranks=(2, 4, 8), controls=(48,), full_positions=()
    ),
    "small": _Ranks(
        depth=6,
        width=256,
        narrower=(128, 160, 192, 224),
        ranks=(8, 16, 32, 64, 128),
        controls=(256, 384),
        full_positions=(16, 64),
    ),
    "paper": _Ranks(
        depth=published.RANK_DEPTH,
        width=published.RANK_WIDTH,
        narrower=tuple(
            width for width in published.RANK_BASELINES if width != published.RANK_WIDTH
        ),
        ranks=tuple(rank for rank in published.RANKS if rank < published.RANK_WIDTH),
        controls=tuple(rank for rank in published.RANKS if rank >= published.RANK_WIDTH),
        full_positions=published.RANKS_WITH_FULL_POSITIONS,
    ),
}
SIDE_RANKS: dict[Scale, tuple[int, ...]] = {
    "smoke": (2, 8),
    "small": (8, 32, 128),
    "paper": (16, 64, 256),
}
POSITION_RANKS: dict[Scale, tuple[int, ...]] = {"smoke": (1, 4, 16), "small": (1, 4, 16, 256)}
POSITION_VOCABULARY_RANKS: dict[Scale, tuple[int, ...]] = {
    "smoke": (2, 4, 16),
    "small": (16, 32, 64),
}


def wies_rank(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """Loss against rank next to loss against width; a rank may also exceed the width (control).

    Wies et al. 2021, section 5.1: token and position tables are factorised alike, and for a few
    ranks the tokens only.
    """
    (corpus,), these = corpora, RANKS[scale]
    full = replace(base(scale), depth=these.depth, width=these.width)
    for width in (*these.narrower, these.width):
        yield Cell(corpus=corpus, asked=replace(full, width=width))
    limit = min(these.width, corpus.vocab)
    for rank in (*ranks_below(limit, these.ranks), *these.controls):
        asked = replace(full, embedding_inner=rank, position_inner=rank)
        yield Cell(corpus=corpus, asked=asked)
    for rank in ranks_below(limit, these.full_positions):
        yield Cell(corpus=corpus, asked=replace(full, embedding_inner=rank))


def input_or_output_rank(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """The same cap on the input embedding, on the output head, and on both.

    Wies et al. cap the input and leave the head full; Godey et al. 2024 (arXiv:2404.07647) find
    that a narrow head hurts. Positions stay full, so that the two sides differ in nothing else.
    """
    (corpus,), these = corpora, RANKS[scale]
    full = replace(base(scale), depth=these.depth, width=these.width)
    yield Cell(corpus=corpus, asked=full)
    limit = min(these.width, corpus.vocab)
    for rank in (*ranks_below(limit, SIDE_RANKS[scale]), these.width):  # the last is the control
        yield Cell(corpus=corpus, asked=replace(full, embedding_inner=rank))
        yield Cell(corpus=corpus, asked=replace(full, head=rank))
        yield Cell(corpus=corpus, asked=replace(full, embedding_inner=rank, head=rank))


def wies_positions(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """Ranks of the position table against ranks of the vocabulary's.

    Wies et al. 2021, appendix C.4: position rank 16 is as good as full.
    """
    (corpus,) = corpora
    if scale == "paper":
        full = replace(
            base(scale),
            depth=published.POSITION_DEPTH,
            width=published.POSITION_WIDTH,
            context=published.POSITION_CONTEXT,
        )
        positions: tuple[int, ...] = published.POSITION_RANKS
        tokens: tuple[int, ...] = published.POSITION_VOCABULARY_RANKS
    else:
        these, context = RANKS[scale], {"smoke": 64, "small": 512}[scale]
        batch = base(scale).batch * base(scale).context // context
        full = replace(
            base(scale), depth=these.depth, width=these.width, context=context, batch=batch
        )
        positions = POSITION_RANKS[scale]
        tokens = ranks_below(corpus.vocab, POSITION_VOCABULARY_RANKS[scale])
        yield Cell(corpus=corpus, asked=full)
    for rank in positions:
        yield Cell(corpus=corpus, asked=replace(full, position_inner=rank))
    for rank in tokens:
        yield Cell(corpus=corpus, asked=replace(full, embedding_inner=rank))
