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

from archfit.advise.budgets import DataTokens, TrainingFlops
from archfit.advise.plan_request import ANY, SPELT, PlanRequest, VocabularySize
from archfit.advise.shapes import BudgetTooSmall, RoundedShape, best_shape
from archfit.spec.counting import Parts
from archfit.spec.data_kinds import DATA_KINDS, LARGEST_KMER, LARGEST_VOCAB
from archfit.spec.parts import BYTE_TOKENS, bpe_vocab_for
from archfit.spec.rates import CHINCHILLA_TOKENS

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


Way: TypeAlias = Callable[[PlanRequest, float], Iterator[Repair]]


def repairs_for(request: PlanRequest, needed_rank: float) -> tuple[Repair, ...]:
    """Inputs of at least `needed_rank` dimensions that this data can have and the budget pays."""
    found: list[Repair] = []
    for way in _ways(request, needed_rank):
        with contextlib.suppress(BudgetTooSmall):
            found += way(request, needed_rank)
    return tuple(found)


def _ways(request: PlanRequest, needed_rank: float) -> tuple[Way, ...]:
    if request.rank is not None and request.rank < needed_rank:
        return (_full_table,)
    if request.patch is not None:
        return (_larger_patch,)
    if request.data is None:
        return (_bpe, _kmer, _convolution)[request.family in SPELT :]
    kind = DATA_KINDS.get(request.data.kind)
    ways: dict[str, Way] = {"bpe": _bpe, "k-mer": _kmer, "patch": _pixels, "bins": _bins}
    ways["convolution"] = _convolution
    return tuple(ways[name] for name in (kind.repairs if kind else ("convolution",)))


def _bpe(request: PlanRequest, needed: float) -> Iterator[Repair]:
    vocab = bpe_vocab_for(needed)
    if vocab <= LARGEST_VOCAB:
        rows = VocabularySize(size=vocab, used=vocab - BYTE_TOKENS)
        change = f"merge bytes into {vocab:,} tokens (BPE)"
        options = f"--kind text --vocab {vocab} --out bpe-{vocab}"
        yield _prepared(request, rows, "bpe", vocab, change, options)


def _kmer(request: PlanRequest, needed: float) -> Iterator[Repair]:
    assert request.vocabulary is not None
    letters = max(2, request.vocabulary.used - 1)  # one row ends a sequence
    if letters > LETTERS:
        return
    k = next(k for k in itertools.count(2) if letters**k >= needed)
    rows = VocabularySize(size=letters**k + letters + 1, used=letters**k)
    if k <= LARGEST_KMER and rows.size <= LARGEST_VOCAB:
        change = f"read {k} letters as one token ({letters**k:,} if all occur)"
        options = f"--kind fasta --kmer {k} --out {k}-mers"
        yield _prepared(request, rows, "k-mer", k, change, options)


def _bins(request: PlanRequest, needed: float) -> Iterator[Repair]:
    bins = 1 << math.ceil(math.log2(needed))
    if bins < 1 << 16:
        rows = VocabularySize(size=bins + 1, used=bins + 1)
        options = f"--kind series --bins {bins} --out bins-{bins}"
        yield _prepared(request, rows, "bins", bins, f"round values to {bins:,} bins", options)


def _convolution(request: PlanRequest, needed: float) -> Iterator[Repair]:
    vocabulary = request.vocabulary
    assert vocabulary is not None
    size = max(2, math.ceil(needed / vocabulary.used))
    ranks, option = (size * vocabulary.size, size * vocabulary.used), f"--patch {size}"
    change = f"embed {size} tokens at a time by one convolution of stride {size}"
    for repair in _grouped(request, size, ranks, "convolution", change, option):
        wider = repair.shape.width  # fewer positions leave more of the budget for width
        yield from (repair,) if wider <= repair.rank_limit else _convolution(request, wider)


def _pixels(request: PlanRequest, needed: float) -> Iterator[Repair]:
    side = math.ceil(math.sqrt(needed))
    size, option = side * side, f"--patch {side * side} --patch-encoding scalar"
    change = f"embed patches of {size} grey levels as numbers ({side} x {side} for a ViT)"
    for repair in _grouped(request, size, (size, size), "patch", change, option):
        wider = repair.shape.width
        yield from (repair,) if wider <= repair.rank_limit else _pixels(request, wider)


def _grouped(
    request: PlanRequest, size: int, ranks: tuple[int, int], kind: str, change: str, option: str
) -> Iterator[Repair]:
    """Positions of `size` tokens, if a table can predict these and enough fit the context.

    `ranks`: the dimensions that enter the embedding, and those in which groups that occur differ.
    """
    assert request.vocabulary is not None
    outputs, context = size * request.vocabulary.size, request.context // size
    is_masked = request.objective == "masked"  # which hides single tokens
    if is_masked or outputs > LARGEST_VOCAB or context < LEAST_POSITIONS:
        return
    repaired = replace(
        request,
        vocabulary=VocabularySize(size=outputs, used=outputs),
        patch=(ranks[0],),
        context=context,
        is_tied=False,
    )
    found = best_shape(repaired)
    shape = found.shape
    folder = request.data.folder if request.data else "DATA"
    inner = "" if request.rank is None else f" --embedding-inner {request.rank}"
    inner += f" --block {request.block}" if request.block != "gpt2" else ""
    yield Repair(
        kind=kind,
        size=size,
        change=change,
        command=f"archfit train --data {shlex.quote(folder)} {option}{inner} --depth "
        f"{shape.depth} --width {shape.width} --heads {shape.heads} --context {context} --out runs",
        needs="" if request.data else "DATA: what archfit data prepare made of your source",
        rank_limit=ranks[1],
        shape=shape,
        params=found.params,
    )


def _larger_patch(request: PlanRequest, needed: float) -> Iterator[Repair]:
    assert request.patch is not None
    *sides, channels = request.patch if len(request.patch) > 1 else (*request.patch, 1)
    factor = (needed / request.input_dimensions) ** (1 / len(sides))
    larger = (*(math.ceil(side * factor) for side in sides), channels)[: len(request.patch)]
    repaired, values = replace(request, patch=larger), math.prod(larger)
    change = (
        f"use patches of {_sides(larger)}: {values:,} values (or a stem of convolutions with "
        "non-linearities, which has no such limit)"
    )
    repair = _repaired(repaired, "patch", values, change, plan_command(repaired))
    wider = repair.shape.width  # it may be rounded up
    yield from (repair,) if wider <= repair.rank_limit else _larger_patch(request, wider)


def _full_table(request: PlanRequest, needed: float) -> Iterator[Repair]:
    repaired = replace(request, rank=None)
    if repaired.limit.limit < needed:  # a full table is too small as well
        for repair in repairs_for(repaired, needed):
            yield replace(repair, change=f"{repair.change}, and use a full embedding table")
        return
    size = math.ceil(needed)
    change = (
        f"use a full embedding table in place of a factorised one (or an inner size of {size:,})"
    )
    yield _repaired(repaired, "full-rank", size, change, plan_command(repaired))


def _prepared(
    request: PlanRequest, rows: VocabularySize, kind: str, size: int, change: str, options: str
) -> Repair:
    """The repair that reads the data in another vocabulary, which `data prepare` makes."""
    data = request.data
    source = data.source if data else None
    needs = "SOURCE: the file or folder of your data"
    if data and source:
        alone = f"{source} in the folder you are in: data.json keeps the name alone"
        needs = "" if data.knows_path else alone
    command = f"archfit data prepare {shlex.quote(source or 'SOURCE')} {options}"
    return _repaired(replace(request, vocabulary=rows), kind, size, change, command, needs)


def _repaired(
    request: PlanRequest, kind: str, size: int, change: str, command: str, needs: str = ""
) -> Repair:
    """A repair with the shape that the prior then gives."""
    found = best_shape(request)
    return Repair(
        kind=kind,
        size=size,
        change=change,
        command=command,
        needs=needs,
        rank_limit=request.limit.limit,
        shape=found.shape,
        params=found.params,
    )


def plan_command(request: PlanRequest) -> str:
    """What asks this again on the command line."""
    words = ["archfit plan", request.budget.option]
    if request.data is not None:
        words.append(f"--data {shlex.quote(request.data.folder)}")
    elif request.vocabulary is not None:
        words.append(f"--vocab {request.vocabulary.size}")
    if request.patch is not None:
        words.append(f"--patch {_sides(request.patch)}")
    if request.rank is not None:
        words.append(f"--rank {request.rank}")
    words.append(f"--context {request.context} --max-depth {request.max_depth}")
    words += ["--tied"] if request.is_tied else []
    words += [f"--block {request.block}"] if request.block != "gpt2" else []
    words += [f"--objective {request.objective}"] if request.objective != "causal" else []
    words += [f"--multiple-of {request.multiple_of}"] if request.multiple_of else []
    words.append(f"--family {request.family or ANY}")
    is_said = isinstance(request.budget, TrainingFlops | DataTokens)
    if not is_said and request.tokens_per_param != CHINCHILLA_TOKENS:
        words.append(f"--tokens-per-param {request.tokens_per_param:g}")
    return " ".join(words)


def _sides(patch: tuple[int, ...]) -> str:
    return "x".join(map(str, patch))
