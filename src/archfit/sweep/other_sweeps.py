"""Sweeps on attention that is wider than the network, on noise, and on repairs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from archfit.spec.asked import AskedRun
from archfit.sweep import published
from archfit.sweep.cell import Cell, equal_size, equal_total
from archfit.sweep.matching import width_for
from archfit.sweep.recipes import LEVINE, SMALL_FILES, base
from archfit.sweep.sweep import Corpus, Scale

# Attention: sizes of ratio 1, and the ratios that are compared at the largest of them.
ATTENTION_DEPTHS: dict[Scale, tuple[int, ...]] = {"smoke": (2,), "small": (3, 6)}
ATTENTION_SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (15_000, 30_000, 60_000),
    "small": (500_000, 900_000, 1_600_000, 2_650_000),
}
ATTENTION_RATIOS: dict[Scale, tuple[int, ...]] = {"smoke": (4, 16), "small": (2, 4, 8, 16)}
ATTENTION_HEADS: dict[Scale, int] = {"smoke": 2, "small": 4}

REPEATED: dict[Scale, tuple[tuple[int, int], ...]] = {  # depth and width
    "smoke": ((1, 48), (2, 32), (4, 24)),
    "small": ((3, 128), (6, 128), (6, 256), (12, 128)),
}
# Repairs: depth and width of the text-shaped network, deeper ones, and tokens of a patch.
REPAIRED: dict[Scale, tuple[int, int]] = {"smoke": (2, 48), "small": (4, 128), "paper": (12, 680)}
DEEPER: dict[Scale, tuple[int, int]] = {"smoke": (2, 4), "small": (2, 8), "paper": (2, 4)}
PATCHES = (2, 4)


def wies_attention(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """Networks of equal size whose attention is 1, 2, 4 … times as wide as the network.

    Wies et al. 2021, section 5.3, where heads number 12 to 24 and the best depth of each ratio
    counts.
    """
    (corpus,) = corpora
    if scale == "paper":
        for ratio, depth, heads, widths in published.ATTENTION:
            for width in widths:
                asked = replace(base(scale), depth=depth, width=width, heads=heads)
                asked = replace(asked, head_dim=ratio * width // heads)
                yield Cell(corpus=corpus, asked=asked)
        return
    plain = replace(base(scale), heads=ATTENTION_HEADS[scale])
    sizes = ATTENTION_SIZES[scale]
    for depth in ATTENTION_DEPTHS[scale]:
        for size in sizes:
            yield Cell(corpus=corpus, asked=equal_size(plain, depth=depth, block_params=size))
        for ratio in ATTENTION_RATIOS[scale]:
            yield Cell(corpus=corpus, asked=_with_ratio(plain, depth, ratio, sizes[-1]))


def _with_ratio(plain: AskedRun, depth: int, ratio: int, size: int) -> AskedRun:
    heads = plain.heads
    width = width_for(size, depth=depth, heads=heads, attention_ratio=ratio)
    return replace(plain, depth=depth, width=width, head_dim=ratio * width // heads)


def repeats(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """Architectures that are trained again and again: how much do seeds alone change the loss?

    Levine et al. 2020, table 2 (11 architectures); Wies et al. 2021 (8).
    """
    if scale == "paper":
        by_vocab = {corpus.vocab: corpus for corpus in corpora}
        plain = by_vocab.get(published.VOCAB, corpora[0])
        for depth, widths in published.LEVINE_REPEATED.items():
            for width in widths:
                asked = replace(LEVINE, depth=depth, width=width)
                yield Cell(corpus=plain, asked=asked, most_seeds=published.LEVINE_REPEATS)
        for vocab, depth, width, rank in published.WIES_REPEATED:
            asked = replace(
                base(scale), depth=depth, width=width, embedding_inner=rank, position_inner=rank
            )
            yield Cell(corpus=by_vocab.get(vocab, plain), asked=asked)
        return
    for depth, width in REPEATED[scale]:
        yield Cell(corpus=corpora[0], asked=replace(base(scale), depth=depth, width=width))


def repairs(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """A text-shaped network of this vocabulary, and four others of as many parameters.

    Deeper; with a larger vocabulary (BPE, k-mers: the corpora after the first); with patches. All
    see equally many positions; losses compare in bits per byte, and the tokens of a patch are
    predicted at once.
    """
    given, *larger = corpora
    depth, width = REPAIRED[scale]
    recipe = SMALL_FILES if scale == "small" else base(scale)
    plain = replace(recipe, depth=depth, width=width)
    params = plain.architecture(given.vocab).params
    yield Cell(corpus=given, asked=plain)
    for times in DEEPER[scale]:
        deeper = replace(plain, depth=times * depth)
        yield Cell(corpus=given, asked=equal_total(deeper, vocab=given.vocab, params=params))
    for corpus in larger:
        yield Cell(corpus=corpus, asked=equal_total(plain, vocab=corpus.vocab, params=params))
    for size in PATCHES:
        patched = replace(plain, patch=size)
        yield Cell(corpus=given, asked=equal_total(patched, vocab=given.vocab, params=params))
