"""The sweeps that have a name: the papers' experiments and our own, at three scales.

A named sweep is one entry of `NAMED`: its question, the function that lists its cells, and the
vocabularies and seeds of each scale. At `paper` the cells are those that the papers list, which
stand in resources/published_runs.toml.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from archfit.spec.run_options import RunOptions
from archfit.sweep.matching import equal_blocks, equal_total, ranks_below, width_for
from archfit.sweep.sweep import (
    LEVINE,
    NO_DATA,
    RECIPES,
    SCALES,
    SMALL_FILES,
    Cell,
    Corpus,
    Scale,
    Sweep,
    published,
    published_runs,
    seeded,
    used_corpora,
)

BYTES = 257  # the vocabulary of bytes and a separator
PAPERS_VOCAB = 2000  # of all the papers' experiments that do not say otherwise
Vocabularies = tuple[int, ...] | Literal["as given", "as given and larger"]
Numbers = dict[Scale, tuple[int, ...]]

# Depths and block parameters. The law ln d = 5.039 + 0.0555 L puts the crossings of `small` at
# 0.3M (1 and 2), 0.7M (2 and 4) and 1.8M (4 and 8).
DEPTHS: Numbers = {"smoke": (1, 2, 4), "small": (1, 2, 4, 8)}
DEPTH_SIZES: Numbers = {
    "smoke": (9_408, 27_648, 55_488),  # widths 28, 48, 68 at depth 1: little is lost to rounding
    "small": (110_000, 300_000, 800_000, 2_200_000, 6_000_000),
}
# A shallow and a deep network. Widths of the shallow one reach from below to above the limit on
# the rank: 257 tokens, or the ranks that `LOWRANK` caps the embedding at. At `small` they are cells
# of levine-depth, so that what that sweep has trained need not be trained again.
PAIR: Numbers = {"smoke": (1, 4), "small": (2, 8)}
VOCABULARY_SIZES: Numbers = {
    "smoke": (3_072, 12_288, 49_152),  # widths 16, 32, 64
    "small": DEPTH_SIZES["small"],
}
LOWRANK: Numbers = {"smoke": (4,), "small": (16, 64)}
LOWRANK_SIZES: Numbers = {
    "smoke": (1_728, 6_912, 27_648),  # widths 12, 24, 48
    "small": DEPTH_SIZES["small"],
}
SIDE_RANKS: Numbers = {"smoke": (2, 8), "small": (8, 32, 128), "paper": (16, 64, 256)}
POSITION_RANKS: Numbers = {"smoke": (1, 4, 16), "small": (1, 4, 16, 256)}
POSITION_VOCABULARY_RANKS: Numbers = {"smoke": (2, 4, 16), "small": (16, 32, 64)}
POSITION_CONTEXTS: dict[Scale, int] = {"smoke": 64, "small": 512}
# Attention: sizes of ratio 1, and the ratios that are compared at the largest of them.
ATTENTION_DEPTHS: Numbers = {"smoke": (2,), "small": (3, 6)}
ATTENTION_SIZES: Numbers = {
    "smoke": (15_000, 30_000, 60_000),
    "small": (500_000, 900_000, 1_600_000, 2_650_000),
}
ATTENTION_RATIOS: Numbers = {"smoke": (4, 16), "small": (2, 4, 8, 16)}
ATTENTION_HEADS: dict[Scale, int] = {"smoke": 2, "small": 4}
REPEATED: dict[Scale, tuple[tuple[int, int], ...]] = {  # depth and width
    "smoke": ((1, 48), (2, 32), (4, 24)),
    "small": ((3, 128), (6, 128), (6, 256), (12, 128)),
}
LEVINE_REPEATS = 3
# Repairs: depth and width of the text-shaped network, deeper ones, and tokens of a patch.
REPAIRED: dict[Scale, tuple[int, int]] = {"smoke": (2, 48), "small": (4, 128), "paper": (12, 680)}
DEEPER: Numbers = {"smoke": (2, 4), "small": (2, 8), "paper": (2, 4)}
PATCHES = (2, 4)


@dataclass(frozen=True, kw_only=True, slots=True)
class RankNumbers:
    """The network whose rank is capped, and full-rank ones that are narrower."""

    depth: int
    width: int
    narrower: Sequence[int]
    ranks: Sequence[int]
    controls: Sequence[int]  # inner sizes from the width up: no cap, but a factorised table
    full_positions: Sequence[int]  # ranks that are tried with a full position table too


RANK_SMOKE = RankNumbers(
    depth=2, width=48, narrower=(16, 24, 32), ranks=(2, 4, 8), controls=(48,), full_positions=()
)
RANK_SMALL = RankNumbers(
    depth=6, width=256, narrower=(128, 160, 192, 224), ranks=(8, 16, 32, 64, 128),
    controls=(256, 384), full_positions=(16, 64),
)  # fmt: skip


def _rank_numbers(scale: Scale) -> RankNumbers:
    if scale == "paper":
        return RankNumbers(**published("wies-rank"))
    return RANK_SMOKE if scale == "smoke" else RANK_SMALL


def _as_published(name: str, corpus: Corpus, recipe: RunOptions) -> Iterator[Cell]:
    """The networks that a paper lists, all on one data set."""
    return (Cell(corpus=corpus, options=replace(recipe, **row)) for row in published_runs(name))


def levine_depth(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """Depths at several sizes: the crossing of each two gives a point of the transition law.

    Levine et al. 2020, appendix D and figures of the published version.
    """
    (corpus,) = corpora
    if scale == "paper":
        yield from _as_published("levine-depth", corpus, LEVINE)
        return
    for size in DEPTH_SIZES[scale]:
        for depth in DEPTHS[scale]:
            options = equal_blocks(RECIPES[scale], depth=depth, block_params=size)
            yield Cell(corpus=corpus, options=options)


def wies_vocab(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """A shallow and a deep network at several sizes, for each vocabulary.

    Wies et al. 2021, section 5.2.1: the deeper wins from where the shallow width is about V. Own
    data rarely have one of the paper's vocabularies and take the widths of the nearest.
    """
    for corpus in corpora:
        if scale == "paper":
            rows = list(published_runs("wies-vocab"))
            nearest = min((row["vocab"] for row in rows), key=lambda v: abs(v - corpus.vocab))
            for row in rows:
                if row.pop("vocab") == nearest:
                    yield Cell(corpus=corpus, options=replace(RECIPES[scale], **row))
        else:
            for options in _pair(RECIPES[scale], scale, VOCABULARY_SIZES[scale]):
                yield Cell(corpus=corpus, options=options)


def wies_lowrank(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """The same with the rank of the input embedding capped, tokens and positions alike.

    Wies et al. 2021, section 5.2.2: the deeper wins from shallow width 504 on at rank 500. At the
    smaller scales the uncapped networks stand beside them, as `wies-vocab` has them in the paper.
    """
    (corpus,), full = corpora, RECIPES[scale]
    if scale == "paper":
        yield from _as_published("wies-lowrank", corpus, full)
        return
    capped = [replace(full, embedding_inner=r, position_inner=r) for r in LOWRANK[scale]]
    for start in (full, *capped):
        for options in _pair(start, scale, LOWRANK_SIZES[scale]):
            yield Cell(corpus=corpus, options=options)


def _pair(start: RunOptions, scale: Scale, sizes: Sequence[int]) -> Iterator[RunOptions]:
    """A shallow and a deep network of each size."""
    for size in sizes:
        for depth in PAIR[scale]:
            yield equal_blocks(start, depth=depth, block_params=size)


def wies_rank(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """Loss against rank next to loss against width; a rank may also exceed the width (control).

    Wies et al. 2021, section 5.1: token and position tables are factorised alike, and for a few
    ranks the tokens only.
    """
    (corpus,), numbers = corpora, _rank_numbers(scale)
    full = replace(RECIPES[scale], depth=numbers.depth, width=numbers.width)
    for width in (*numbers.narrower, numbers.width):
        yield Cell(corpus=corpus, options=replace(full, width=width))
    limit = min(numbers.width, corpus.vocab)
    for rank in (*ranks_below(limit, numbers.ranks), *numbers.controls):
        options = replace(full, embedding_inner=rank, position_inner=rank)
        yield Cell(corpus=corpus, options=options)
    for rank in ranks_below(limit, numbers.full_positions):
        yield Cell(corpus=corpus, options=replace(full, embedding_inner=rank))


def input_or_output_rank(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """The same cap on the input embedding, on the output head, and on both.

    Wies et al. cap the input and leave the head full; Godey et al. 2024 (arXiv:2404.07647) find
    that a narrow head hurts. Positions stay full, so that the two sides differ in nothing else.
    """
    (corpus,), numbers = corpora, _rank_numbers(scale)
    full = replace(RECIPES[scale], depth=numbers.depth, width=numbers.width)
    yield Cell(corpus=corpus, options=full)
    limit = min(numbers.width, corpus.vocab)
    for rank in (*ranks_below(limit, SIDE_RANKS[scale]), numbers.width):  # the last is the control
        yield Cell(corpus=corpus, options=replace(full, embedding_inner=rank))
        yield Cell(corpus=corpus, options=replace(full, head=rank))
        yield Cell(corpus=corpus, options=replace(full, embedding_inner=rank, head=rank))


def wies_positions(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """Ranks of the position table against ranks of the vocabulary's.

    Wies et al. 2021, appendix C.4: position rank 16 is as good as full.
    """
    (corpus,), recipe = corpora, RECIPES[scale]
    if scale == "paper":
        yield from _as_published("wies-positions", corpus, recipe)
        return
    numbers, context = _rank_numbers(scale), POSITION_CONTEXTS[scale]
    full = replace(
        recipe, depth=numbers.depth, width=numbers.width, context=context,
        batch=recipe.batch * recipe.context // context,
    )  # fmt: skip
    yield Cell(corpus=corpus, options=full)
    for rank in POSITION_RANKS[scale]:
        yield Cell(corpus=corpus, options=replace(full, position_inner=rank))
    for rank in ranks_below(corpus.vocab, POSITION_VOCABULARY_RANKS[scale]):
        yield Cell(corpus=corpus, options=replace(full, embedding_inner=rank))


def wies_attention(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """Networks of equal size whose attention is 1, 2, 4 … times as wide as the network.

    Wies et al. 2021, section 5.3, where heads number 12 to 24 and the best depth of each ratio
    counts.
    """
    (corpus,) = corpora
    if scale == "paper":
        for row in published_runs("wies-attention"):
            head_dim = row.pop("attention_ratio") * row["width"] // row["heads"]
            yield Cell(corpus=corpus, options=replace(RECIPES[scale], head_dim=head_dim, **row))
        return
    heads, sizes = ATTENTION_HEADS[scale], ATTENTION_SIZES[scale]
    plain = replace(RECIPES[scale], heads=heads)
    for depth in ATTENTION_DEPTHS[scale]:
        for size in sizes:
            yield Cell(corpus=corpus, options=equal_blocks(plain, depth=depth, block_params=size))
        for ratio in ATTENTION_RATIOS[scale]:
            width = width_for(sizes[-1], depth=depth, heads=heads, attention_ratio=ratio)
            options = replace(plain, depth=depth, width=width, head_dim=ratio * width // heads)
            yield Cell(corpus=corpus, options=options)


def repeats(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """Architectures that are trained again and again: how much do seeds alone change the loss?

    Levine et al. 2020, table 2 (11 architectures); Wies et al. 2021 (8).
    """
    if scale == "paper":
        by_vocab = {corpus.vocab: corpus for corpus in corpora}
        plain = by_vocab.get(PAPERS_VOCAB, corpora[0])
        for cell in _as_published("repeats-levine", plain, LEVINE):
            yield replace(cell, most_seeds=LEVINE_REPEATS)
        for row in published_runs("repeats-wies"):
            corpus = by_vocab.get(row.pop("vocab"), plain)
            yield Cell(corpus=corpus, options=replace(RECIPES[scale], **row))
        return
    for depth, width in REPEATED[scale]:
        yield Cell(corpus=corpora[0], options=replace(RECIPES[scale], depth=depth, width=width))


def repairs(scale: Scale, corpora: Sequence[Corpus]) -> Iterator[Cell]:
    """A text-shaped network of this vocabulary, and four others of as many parameters.

    Deeper; with a larger vocabulary (BPE, k-mers: the corpora after the first); with patches. All
    see equally many positions; losses compare in bits per byte, and the tokens of a patch are
    predicted at once.
    """
    given, *larger = corpora
    depth, width = REPAIRED[scale]
    plain = replace(SMALL_FILES if scale == "small" else RECIPES[scale], depth=depth, width=width)
    params = plain.architecture(given.vocab).params
    yield Cell(corpus=given, options=plain)
    others = [(given, replace(plain, depth=times * depth)) for times in DEEPER[scale]]
    others += [(corpus, plain) for corpus in larger]
    others += [(given, replace(plain, patch=size)) for size in PATCHES]
    for corpus, options in others:
        equal = equal_total(options, vocab=corpus.vocab, params=params)
        yield Cell(corpus=corpus, options=equal)


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedSweep:
    """A sweep before it has data and a scale."""

    question: str
    cells: Callable[[Scale, Sequence[Corpus]], Iterable[Cell]]
    vocabularies: Mapping[Scale, Vocabularies] = field(default_factory=lambda: USUAL_VOCABULARIES)
    seeds: Mapping[Scale, int] = field(default_factory=lambda: USUAL_SEEDS)


USUAL_VOCABULARIES: Mapping[Scale, Vocabularies] = {
    "smoke": "as given", "small": "as given", "paper": (PAPERS_VOCAB,),
}  # fmt: skip
USUAL_SEEDS: Mapping[Scale, int] = {"smoke": 3, "small": 3, "paper": 1}


NAMED: Mapping[str, NamedSweep] = {
    "levine-depth": NamedSweep(
        question="At equal size, from which size on does the deeper of two depths win?",
        cells=levine_depth,
    ),
    "wies-rank": NamedSweep(
        question="What does a low embedding rank cost, next to a smaller width?", cells=wies_rank
    ),
    "wies-vocab": NamedSweep(
        question="Does a smaller vocabulary let the deeper network win sooner?",
        cells=wies_vocab,
        vocabularies={"smoke": (257, 500), "small": (257, 2000), "paper": (257, 500, 2000, 50257)},
    ),
    "wies-lowrank": NamedSweep(
        question="Does a capped embedding rank let the deeper network win sooner?",
        cells=wies_lowrank,
    ),
    "wies-attention": NamedSweep(
        question="At equal size, what does attention cost that is wider than the network?",
        cells=wies_attention,
    ),
    "wies-positions": NamedSweep(
        question="How low may the rank of the position table be, next to that of the vocabulary?",
        cells=wies_positions,
    ),
    "repeats": NamedSweep(
        question="How much do seeds alone change the loss?",
        cells=repeats,
        vocabularies={"smoke": "as given", "small": "as given", "paper": (257, 500, 2000, 50257)},
        seeds=dict.fromkeys(SCALES, 5),
    ),
    "input-or-output-rank": NamedSweep(
        question="Which hurts: a low rank of the input embedding, of the output head, or of both?",
        cells=input_or_output_rank,
    ),
    "repairs": NamedSweep(
        question="Which repair of a small vocabulary pays at equal size: more tokens, patches, "
        "or depth?",
        cells=repairs,
        vocabularies=dict.fromkeys(SCALES, "as given and larger"),
        seeds=dict.fromkeys(SCALES, 3),
    ),
}


def named_sweep(
    name: str,
    scale: Scale,
    corpora: Sequence[Corpus],
    *,
    seeds: Sequence[int],
    changes: Mapping[str, str],
) -> Sweep:
    """The sweep of this name on these data.

    `changes` are fields of every cell that the user sets: precision or learning_rate_rule.
    """
    named = NAMED[name]
    cells = [
        replace(cell, options=replace(cell.options, **changes))  # type: ignore[arg-type]  # words
        for cell in named.cells(scale, corpora)
    ]
    specs = seeded(cells, seeds)
    return Sweep(
        name=name, scale=scale, question=named.question, data=used_corpora(corpora, specs),
        specs=specs,
    )  # fmt: skip


def counted_corpora(name: str, scale: Scale) -> tuple[Corpus, ...]:
    """The data that a sweep asks for, where none are at hand and its cells are only counted."""
    wanted = NAMED[name].vocabularies[scale]
    sizes = wanted if isinstance(wanted, tuple) else (BYTES, PAPERS_VOCAB)
    if wanted == "as given":
        sizes = (BYTES,)
    return tuple(
        Corpus(
            label="bytes" if vocab == BYTES else f"bpe-{vocab}",
            kind="text",
            vocab=vocab,
            hash=f"{vocab:064x}" if len(sizes) > 1 else NO_DATA,
            folder="",
        )
        for vocab in sizes
    )
