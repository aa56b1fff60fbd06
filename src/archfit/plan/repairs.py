"""Ways to remove a bottleneck: an input of more rank, with the command that makes it.

Each answers the same question again for the repaired input, so that its shape is one to compare.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from archfit.plan.question import Question, Vocabulary
from archfit.plan.rounding import RoundedShape
from archfit.plan.shapes import Parts, ideal_for, parts, rounded_for

LARGEST_KMER = 24  # letters, as data prepare takes them
LARGEST_VOCAB = 1 << 24
LETTERS = 100  # an alphabet; more are not letters


@dataclass(frozen=True, kw_only=True, slots=True)
class Repair:
    """An input without the bottleneck, and the shape that the budget then buys."""

    kind: str  # bpe, k-mer, convolution, bins, patch or full-rank
    change: str
    command: str
    rank_limit: int
    shape: RoundedShape
    params: Parts


def repairs_for(question: Question, needed_rank: float) -> tuple[Repair, ...]:
    """Inputs of at least `needed_rank` dimensions that this kind of data can have."""
    limit = question.limit
    if limit.kind == "rank":
        return tuple(_full_rank(question, needed_rank))
    if limit.kind == "patch":
        return tuple(_larger_patch(question, needed_rank))
    kind = question.data.kind if question.data else None
    ways = {
        "text": (_bpe, _convolution),
        "bytes": (_bpe, _convolution),
        "abc": (_bpe, _convolution),
        "fasta": (_kmer, _convolution),
        "images": (_convolution, _pixels),
        "series": (_bins, _convolution),
        "tokens": (_convolution,),
        None: (_bpe, _kmer, _convolution),
    }
    return tuple(
        repair for way in ways.get(kind, (_convolution,)) for repair in way(question, needed_rank)
    )


def _bpe(question: Question, needed: float) -> Iterator[Repair]:
    vocab = max(512, 1 << math.ceil(math.log2(needed)))
    if vocab <= LARGEST_VOCAB:
        yield _repaired(
            replace(question, vocabulary=Vocabulary(size=vocab, used=vocab)),
            kind="bpe",
            change=f"merge bytes into {vocab:,} tokens (BPE)",
            command=f"archfit data prepare {_source(question)} --kind text --vocab {vocab} "
            f"--out bpe-{vocab}",
        )


def _kmer(question: Question, needed: float) -> Iterator[Repair]:
    assert question.vocabulary is not None
    letters = max(2, question.vocabulary.used - 1)  # one row ends a sequence
    k = max(2, math.ceil(math.log(needed) / math.log(letters)))
    rows = letters**k + letters + 1
    if letters <= LETTERS and k <= LARGEST_KMER and rows <= LARGEST_VOCAB:
        yield _repaired(
            replace(question, vocabulary=Vocabulary(size=rows, used=letters**k)),
            kind="k-mer",
            change=f"read {k} letters as one token ({letters**k:,} if all occur)",
            command=f"archfit data prepare {_source(question)} --kind fasta --kmer {k} "
            f"--out {k}-mers",
        )


def _convolution(question: Question, needed: float) -> Iterator[Repair]:
    assert question.vocabulary is not None
    size = max(2, math.ceil(needed / question.vocabulary.used))
    yield from _patch_of_tokens(
        question,
        size,
        rank=size * question.vocabulary.used,
        kind="convolution",
        change=f"embed {size} tokens at a time by one convolution of stride {size}",
        option=f"--patch {size}",
    )


def _pixels(question: Question, needed: float) -> Iterator[Repair]:
    side = math.ceil(math.sqrt(needed))
    yield from _patch_of_tokens(
        question,
        side * side,
        rank=side * side,
        kind="patch",
        change=f"embed patches of {side * side} grey levels as numbers ({side} x {side} for a ViT)",
        option=f"--patch {side * side} --patch-encoding scalar",
    )


def _patch_of_tokens(
    question: Question, size: int, *, rank: int, kind: str, change: str, option: str
) -> Iterator[Repair]:
    """Positions that hold `size` tokens; the head predicts them all."""
    assert question.vocabulary is not None
    outputs = size * question.vocabulary.size
    if outputs > LARGEST_VOCAB or size > question.context:
        return
    repaired = replace(
        question,
        vocabulary=Vocabulary(size=outputs, used=outputs),
        patch=(rank,),
        context=max(1, question.context // size),
        is_tied=False,
    )
    shape = rounded_for(repaired, ideal_for(repaired, rank))
    folder = question.data.folder if question.data else "DATA"
    yield _repaired(
        repaired,
        kind=kind,
        change=change,
        command=f"archfit train --data {folder} {option} --depth {shape.depth} "
        f"--width {shape.width} --heads {shape.heads} --context {repaired.context} --out runs",
    )


def _bins(question: Question, needed: float) -> Iterator[Repair]:
    bins = 1 << math.ceil(math.log2(needed))
    if bins < 1 << 16:
        yield _repaired(
            replace(question, vocabulary=Vocabulary(size=bins + 1, used=bins + 1)),
            kind="bins",
            change=f"round values to {bins:,} bins",
            command=f"archfit data prepare {_source(question)} --kind series --bins {bins} "
            f"--out bins-{bins}",
        )


def _larger_patch(question: Question, needed: float) -> Iterator[Repair]:
    assert question.patch is not None
    *sides, channels = question.patch if len(question.patch) > 1 else (*question.patch, 1)
    side = math.ceil((needed / channels) ** (1 / len(sides)))
    larger = (*[side] * len(sides), channels)
    words = "x".join(map(str, larger if len(question.patch) > 1 else larger[:1]))
    yield _repaired(
        replace(question, patch=larger),
        kind="patch",
        change=f"use patches of {words}: {math.prod(larger):,} values (or a stem of convolutions "
        "with non-linearities, which has no such limit)",
        command=f"archfit plan {question.budget.option} --patch {words}",
    )


def _full_rank(question: Question, needed: float) -> Iterator[Repair]:
    repaired = replace(question, rank=None)
    if repaired.limit.limit < needed:  # a full table is too small as well: mend that first
        yield from repairs_for(repaired, needed)
        return
    vocab = f" --vocab {question.vocabulary.size}" if question.vocabulary else ""
    yield _repaired(
        repaired,
        kind="full-rank",
        change="use a full embedding table in place of a factorised one (or an inner size of "
        f"{math.ceil(needed):,})",
        command=f"archfit plan {question.budget.option}{vocab}",
    )


def _repaired(question: Question, *, kind: str, change: str, command: str) -> Repair:
    shape = rounded_for(question, ideal_for(question, question.limit.limit))
    return Repair(
        kind=kind,
        change=change,
        command=command,
        rank_limit=question.limit.limit,
        shape=shape,
        params=parts(question, shape),
    )


def _source(question: Question) -> str:
    return question.data.source if question.data else "SOURCE"
