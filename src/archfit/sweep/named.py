"""The sweeps that have a name: what each asks, on which vocabularies, and with how many seeds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from archfit.sweep.cell import Cell, seeded
from archfit.sweep.depth_sweeps import levine_depth, wies_lowrank, wies_vocab
from archfit.sweep.other_sweeps import repairs, repeats, wies_attention
from archfit.sweep.published import VOCAB, VOCABULARY_WIDTHS, WIES_REPEATED
from archfit.sweep.rank_sweeps import input_or_output_rank, wies_positions, wies_rank
from archfit.sweep.sweep import NO_DATA, Corpus, Scale, Sweep

BYTES = 257  # the vocabulary of bytes and a separator
Vocabularies = tuple[int, ...] | Literal["as given", "as given and larger"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedSweep:
    """A sweep before it has data and a scale."""

    question: str
    cells: Callable[[Scale, Sequence[Corpus]], Iterator[Cell]]
    vocabularies: Mapping[Scale, Vocabularies]
    seeds: Mapping[Scale, int]


ONE: Mapping[Scale, Vocabularies] = {
    "smoke": "as given",
    "small": "as given",
    "paper": (VOCAB,),
}
SEEDS: Mapping[Scale, int] = {"smoke": 3, "small": 3, "paper": 1}

NAMED: Mapping[str, NamedSweep] = {
    "levine-depth": NamedSweep(
        question="At equal size, from which size on does the deeper of two depths win?",
        cells=levine_depth,
        vocabularies=ONE,
        seeds=SEEDS,
    ),
    "wies-rank": NamedSweep(
        question="What does a low embedding rank cost, next to a smaller width?",
        cells=wies_rank,
        vocabularies=ONE,
        seeds=SEEDS,
    ),
    "wies-vocab": NamedSweep(
        question="Does a smaller vocabulary let the deeper network win sooner?",
        cells=wies_vocab,
        vocabularies={
            "smoke": (BYTES, 500),
            "small": (BYTES, 2000),
            "paper": tuple(VOCABULARY_WIDTHS),
        },
        seeds=SEEDS,
    ),
    "wies-lowrank": NamedSweep(
        question="Does a capped embedding rank let the deeper network win sooner?",
        cells=wies_lowrank,
        vocabularies=ONE,
        seeds=SEEDS,
    ),
    "wies-attention": NamedSweep(
        question="At equal size, what does attention cost that is wider than the network?",
        cells=wies_attention,
        vocabularies=ONE,
        seeds=SEEDS,
    ),
    "wies-positions": NamedSweep(
        question="How low may the rank of the position table be, next to that of the vocabulary?",
        cells=wies_positions,
        vocabularies=ONE,
        seeds=SEEDS,
    ),
    "repeats": NamedSweep(
        question="How much do seeds alone change the loss?",
        cells=repeats,
        vocabularies={
            "smoke": "as given",
            "small": "as given",
            "paper": tuple(sorted({vocab for vocab, *_ in WIES_REPEATED})),
        },
        seeds={"smoke": 5, "small": 5, "paper": 5},
    ),
    "input-or-output-rank": NamedSweep(
        question="Which hurts: a low rank of the input embedding, of the output head, or of both?",
        cells=input_or_output_rank,
        vocabularies=ONE,
        seeds=SEEDS,
    ),
    "repairs": NamedSweep(
        question="Which repair of a small vocabulary pays at equal size: more tokens, patches, "
        "or depth?",
        cells=repairs,
        vocabularies={
            "smoke": "as given and larger",
            "small": "as given and larger",
            "paper": "as given and larger",
        },
        seeds={"smoke": 3, "small": 3, "paper": 3},
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
        replace(cell, asked=replace(cell.asked, **changes))  # type: ignore[arg-type]  # both words
        for cell in named.cells(scale, corpora)
    ]
    specs = seeded(cells, seeds)
    used = {spec.data_hash for spec in specs}
    return Sweep(
        name=name,
        question=named.question,
        corpora=tuple(corpus for corpus in corpora if corpus.data_hash in used),
        specs=specs,
    )


def published_corpora(name: str, scale: Scale) -> tuple[Corpus, ...]:
    """The data that a sweep asks for, where none are at hand and its cells are only counted."""
    wanted = NAMED[name].vocabularies[scale]
    sizes = wanted if isinstance(wanted, tuple) else (BYTES, VOCAB)
    if wanted == "as given":
        sizes = (BYTES,)
    return tuple(
        Corpus(
            label="bytes" if vocab == BYTES else f"bpe-{vocab}",
            kind="text",
            vocab=vocab,
            data_hash=f"{vocab:064x}" if len(sizes) > 1 else NO_DATA,
        )
        for vocab in sizes
    )
