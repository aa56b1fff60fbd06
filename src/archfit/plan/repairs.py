"""Ways to remove a bottleneck: an input of more rank, with the command that makes it.

Each answers the same question again for the repaired input, so that its shape is one to compare.
"""

import contextlib
import itertools
import math
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from archfit.plan.question import CHINCHILLA_TOKENS, Question, TrainingFlops, Vocabulary
from archfit.plan.rounding import BudgetTooSmall, RoundedShape
from archfit.plan.shapes import Parts, ideal_for, parts, rounded_for
from archfit.spec.vocabularies import BYTES, bpe_vocab_for

LARGEST_KMER = 24  # letters, as data prepare takes them
LARGEST_VOCAB = 1 << 24
LETTERS = 100  # an alphabet; more are not letters
LEAST_POSITIONS = 8  # of a context: what is shorter is hardly a sequence


@dataclass(frozen=True, kw_only=True, slots=True)
class Repair:
    """An input without the bottleneck, and the shape that the budget then buys."""

    kind: str  # bpe, k-mer, convolution, bins, patch or full-rank
    size: int  # rows of a BPE, letters, tokens of a group, bins; of a full table its rank
    change: str
    command: str
    needs: str  # what the command takes for granted; empty if nothing
    rank_limit: int
    shape: RoundedShape
    params: Parts


Way: TypeAlias = Callable[[Question, float], Iterator[Repair]]


def repairs_for(question: Question, needed_rank: float) -> tuple[Repair, ...]:
    """Inputs of at least `needed_rank` dimensions that this data can have and the budget pays."""
    found: list[Repair] = []
    for way in _ways(question, needed_rank):
        with contextlib.suppress(BudgetTooSmall):
            found += way(question, needed_rank)
    return tuple(found)


def _ways(question: Question, needed_rank: float) -> tuple[Way, ...]:
    if question.rank is not None and question.rank < needed_rank:
        return (_full_table,)
    if question.patch is not None:
        return (_larger_patch,)
    kind = question.data.kind if question.data else None
    ways: dict[str | None, tuple[Way, ...]] = {
        "text": (_bpe, _convolution),
        "bytes": (_bpe, _convolution),
        "abc": (_bpe, _convolution),
        "fasta": (_kmer, _convolution),
        "images": (_convolution, _pixels),
        "series": (_bins, _convolution),
        "tokens": (_convolution,),
        None: (_bpe, _kmer, _convolution),
    }
    return ways.get(kind, (_convolution,))


def _bpe(question: Question, needed: float) -> Iterator[Repair]:
    vocab = bpe_vocab_for(needed)
    if vocab <= LARGEST_VOCAB:
        yield _prepared(
            replace(question, vocabulary=Vocabulary(size=vocab, used=vocab - BYTES)),
            kind="bpe",
            size=vocab,
            change=f"merge bytes into {vocab:,} tokens (BPE)",
            options=f"--kind text --vocab {vocab} --out bpe-{vocab}",
        )


def _kmer(question: Question, needed: float) -> Iterator[Repair]:
    assert question.vocabulary is not None
    letters = max(2, question.vocabulary.used - 1)  # one row ends a sequence
    k = next(k for k in itertools.count(2) if letters**k >= needed)
    rows = letters**k + letters + 1
    if letters <= LETTERS and k <= LARGEST_KMER and rows <= LARGEST_VOCAB:
        yield _prepared(
            replace(question, vocabulary=Vocabulary(size=rows, used=letters**k)),
            kind="k-mer",
            size=k,
            change=f"read {k} letters as one token ({letters**k:,} if all occur)",
            options=f"--kind fasta --kmer {k} --out {k}-mers",
        )


def _convolution(question: Question, needed: float) -> Iterator[Repair]:
    vocabulary = question.vocabulary
    assert vocabulary is not None
    size = max(2, math.ceil(needed / vocabulary.used))
    groups = _Groups(
        size=size,
        dimensions=size * vocabulary.size,
        rank=size * vocabulary.used,
        kind="convolution",
        change=f"embed {size} tokens at a time by one convolution of stride {size}",
        option=f"--patch {size}",
    )
    for repair in _grouped(question, groups):
        wider = repair.shape.width  # fewer positions leave more of the budget for width
        yield from (repair,) if wider <= repair.rank_limit else _convolution(question, wider)


def _pixels(question: Question, needed: float) -> Iterator[Repair]:
    side = math.ceil(math.sqrt(needed))
    groups = _Groups(
        size=side * side,
        dimensions=side * side,
        rank=side * side,
        kind="patch",
        change=f"embed patches of {side * side} grey levels as numbers ({side} x {side} for a ViT)",
        option=f"--patch {side * side} --patch-encoding scalar",
    )
    for repair in _grouped(question, groups):
        wider = repair.shape.width
        yield from (repair,) if wider <= repair.rank_limit else _pixels(question, wider)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Groups:
    """Positions that hold several tokens, all of which the head predicts."""

    size: int  # tokens
    dimensions: int  # that enter the embedding
    rank: int  # in which groups that occur can differ
    kind: str
    change: str
    option: str


def _grouped(question: Question, groups: _Groups) -> Iterator[Repair]:
    """The repair, if a table can predict such groups and enough of them fit the context."""
    assert question.vocabulary is not None
    outputs = groups.size * question.vocabulary.size
    context = question.context // groups.size
    if outputs > LARGEST_VOCAB or context < LEAST_POSITIONS:
        return
    repaired = replace(
        question,
        vocabulary=Vocabulary(size=outputs, used=outputs),
        patch=(groups.dimensions,),
        context=context,
        is_tied=False,
    )
    shape = rounded_for(repaired, ideal_for(repaired, groups.rank))
    folder = question.data.folder if question.data else "DATA"
    inner = "" if question.rank is None else f" --embedding-inner {question.rank}"
    yield Repair(
        kind=groups.kind,
        size=groups.size,
        change=groups.change,
        command=f"archfit train --data {shlex.quote(folder)} {groups.option}{inner} --depth "
        f"{shape.depth} --width {shape.width} --heads {shape.heads} --context {context} --out runs",
        needs="" if question.data else "DATA: what archfit data prepare made of your source",
        rank_limit=groups.rank,
        shape=shape,
        params=parts(repaired, shape),
    )


def _bins(question: Question, needed: float) -> Iterator[Repair]:
    bins = 1 << math.ceil(math.log2(needed))
    if bins < 1 << 16:
        yield _prepared(
            replace(question, vocabulary=Vocabulary(size=bins + 1, used=bins + 1)),
            kind="bins",
            size=bins,
            change=f"round values to {bins:,} bins",
            options=f"--kind series --bins {bins} --out bins-{bins}",
        )


def _larger_patch(question: Question, needed: float) -> Iterator[Repair]:
    assert question.patch is not None
    *sides, channels = question.patch if len(question.patch) > 1 else (*question.patch, 1)
    factor = (needed / question.input_dimensions) ** (1 / len(sides))
    larger = (*(math.ceil(side * factor) for side in sides), channels)[: len(question.patch)]
    repaired = replace(question, patch=larger)
    repair = _repaired(
        repaired,
        kind="patch",
        size=math.prod(larger),
        change=f"use patches of {_sides(larger)}: {math.prod(larger):,} values (or a stem of "
        "convolutions with non-linearities, which has no such limit)",
        command=plan_command(repaired),
        needs="",
    )
    wider = repair.shape.width  # it may be rounded up
    yield from (repair,) if wider <= repair.rank_limit else _larger_patch(question, wider)


def _full_table(question: Question, needed: float) -> Iterator[Repair]:
    repaired = replace(question, rank=None)
    if repaired.limit.limit < needed:  # a full table is too small as well
        for repair in repairs_for(repaired, needed):
            yield replace(repair, change=f"{repair.change}, and use a full embedding table")
        return
    yield _repaired(
        repaired,
        kind="full-rank",
        size=math.ceil(needed),
        change="use a full embedding table in place of a factorised one (or an inner size of "
        f"{math.ceil(needed):,})",
        command=plan_command(repaired),
        needs="",
    )


def _prepared(question: Question, *, kind: str, size: int, change: str, options: str) -> Repair:
    data = question.data
    source = data.source if data else None
    needs = "SOURCE: the file or folder of your data"
    if data and source:
        alone = f"{source} in the folder you are in: data.json keeps the name alone"
        needs = "" if data.knows_path else alone
    return _repaired(
        question,
        kind=kind,
        size=size,
        change=change,
        command=f"archfit data prepare {shlex.quote(source or 'SOURCE')} {options}",
        needs=needs,
    )


def _repaired(
    question: Question, *, kind: str, size: int, change: str, command: str, needs: str
) -> Repair:
    shape = rounded_for(question, ideal_for(question, question.limit.limit))
    return Repair(
        kind=kind,
        size=size,
        change=change,
        command=command,
        needs=needs,
        rank_limit=question.limit.limit,
        shape=shape,
        params=parts(question, shape),
    )


def plan_command(question: Question) -> str:
    """What asks this question again on the command line."""
    words = ["archfit plan", question.budget.option]
    if question.data is not None:
        words.append(f"--data {shlex.quote(question.data.folder)}")
    elif question.vocabulary is not None:
        words.append(f"--vocab {question.vocabulary.size}")
    if question.patch is not None:
        words.append(f"--patch {_sides(question.patch)}")
    if question.rank is not None:
        words.append(f"--rank {question.rank}")
    words.append(f"--context {question.context} --max-depth {question.max_depth}")
    words += ["--tied"] if question.is_tied else []
    words += [f"--multiple-of {question.multiple_of}"] if question.multiple_of else []
    is_said = isinstance(question.budget, TrainingFlops)
    if not is_said and question.tokens_per_param != CHINCHILLA_TOKENS:
        words.append(f"--tokens-per-param {question.tokens_per_param:g}")
    return " ".join(words)


def _sides(patch: tuple[int, ...]) -> str:
    return "x".join(map(str, patch))
