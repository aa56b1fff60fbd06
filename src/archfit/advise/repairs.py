"""Ways to remove a bottleneck: an input of more rank, with the command that makes it.

Each answers the same question again for the repaired input, so that its shape is one to compare.
"""

import contextlib
import itertools
import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

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


Way: TypeAlias = Callable[[PlanRequest, float], Repair | None]


def repairs_for(request: PlanRequest, needed_rank: float) -> tuple[Repair, ...]:
    """Inputs of at least `needed_rank` dimensions that this data can have and the budget pays."""
    ways: tuple[Way, ...] = _ways(request)
    if request.rank is not None and request.rank < needed_rank:
        full, ways = replace(request, rank=None), (_full_table,)
        if full.limit.limit < needed_rank:  # a full table is too small as well
            found = repairs_for(full, needed_rank)
            too = "and use a full embedding table"
            return tuple(replace(each, change=f"{each.change}, {too}") for each in found)
    repairs = (_repair_by(way, request, needed_rank) for way in ways)
    return tuple(repair for repair in repairs if repair is not None)


def _ways(request: PlanRequest) -> tuple[Way, ...]:
    """What the data may be made into."""
    if request.patch is not None:
        return (_larger_patch,)
    if request.data is None:
        return (_bpe, _kmer, _convolution)[request.family in SPELT :]
    kind = DATA_KINDS.get(request.data.kind)
    ways: dict[str, Way] = {"bpe": _bpe, "k-mer": _kmer, "patch": _pixels, "bins": _bins}
    ways["convolution"] = _convolution
    return tuple(ways[name] for name in (kind.repairs if kind else ("convolution",)))


def _repair_by(way: Way, request: PlanRequest, needed: float) -> Repair | None:
    """One whose shape is no wider than its rank; what it saves may make room for more width."""
    with contextlib.suppress(BudgetTooSmall):
        while (found := way(request, needed)) and found.shape.width > found.rank_limit:
            needed = found.shape.width
        return found
    return None


def _bpe(request: PlanRequest, needed: float) -> Repair | None:
    vocab = bpe_vocab_for(needed)
    if vocab > LARGEST_VOCAB:
        return None
    rows = VocabularySize(size=vocab, used=vocab - BYTE_TOKENS)
    change = f"merge bytes into {vocab:,} tokens (BPE)"
    options = f"--kind text --vocab {vocab} --out bpe-{vocab}"
    return _prepared(request, rows, "bpe", vocab, change, options)


def _kmer(request: PlanRequest, needed: float) -> Repair | None:
    assert request.vocabulary is not None
    letters = max(2, request.vocabulary.used - 1)  # one row ends a sequence
    k = next(k for k in itertools.count(2) if letters**k >= needed)
    size = letters**k + letters + 1
    if letters > LETTERS or k > LARGEST_KMER or size > LARGEST_VOCAB:
        return None
    change = f"read {k} letters as one token ({letters**k:,} if all occur)"
    options = f"--kind fasta --kmer {k} --out {k}-mers"
    rows = VocabularySize(size=size, used=letters**k)
    return _prepared(request, rows, "k-mer", k, change, options)


def _bins(request: PlanRequest, needed: float) -> Repair | None:
    bins = 1 << math.ceil(math.log2(needed))
    if bins >= 1 << 16:
        return None
    rows = VocabularySize(size=bins + 1, used=bins + 1)
    options = f"--kind series --bins {bins} --out bins-{bins}"
    return _prepared(request, rows, "bins", bins, f"round values to {bins:,} bins", options)


def _convolution(request: PlanRequest, needed: float) -> Repair | None:
    vocabulary = request.vocabulary
    assert vocabulary is not None
    size = max(2, math.ceil(needed / vocabulary.used))
    change = f"embed {size} tokens at a time by one convolution of stride {size}"
    ranks = size * vocabulary.size, size * vocabulary.used
    return _grouped(request, size, ranks, "convolution", change, f"--patch {size}")


def _pixels(request: PlanRequest, needed: float) -> Repair | None:
    side = math.ceil(math.sqrt(needed))
    size, option = side * side, f"--patch {side * side} --patch-encoding scalar"
    change = f"embed patches of {size} grey levels as numbers ({side} x {side} for a ViT)"
    return _grouped(request, size, (size, size), "patch", change, option)


def _grouped(
    request: PlanRequest, size: int, ranks: tuple[int, int], kind: str, change: str, option: str
) -> Repair | None:
    """Positions of `size` tokens, if a table can predict these and enough fit the context.

    `ranks`: the dimensions that enter the embedding, and those in which groups that occur differ.
    """
    assert request.vocabulary is not None
    outputs, context = size * request.vocabulary.size, request.context // size
    is_masked = request.objective == "masked"  # which hides single tokens
    if is_masked or outputs > LARGEST_VOCAB or context < LEAST_POSITIONS:
        return None
    repaired = replace(
        request,
        vocabulary=VocabularySize(size=outputs, used=outputs),
        patch=(ranks[0],),
        context=context,
        is_tied=False,
    )
    folder = request.data.folder if request.data else "DATA"
    inner = "" if request.rank is None else f" --embedding-inner {request.rank}"
    inner += f" --block {request.block}" if request.block != "gpt2" else ""
    needs = "" if request.data else "DATA: what archfit data prepare made of your source"
    found = _repaired(repaired, kind, size, change, "", needs)
    shape = f"--depth {found.shape.depth} --width {found.shape.width} --heads {found.shape.heads}"
    command = f"archfit train --data {shlex.quote(folder)} {option}{inner} {shape}"
    command += f" --context {context} --out runs"
    return replace(found, command=command, rank_limit=ranks[1])


def _larger_patch(request: PlanRequest, needed: float) -> Repair:
    assert request.patch is not None
    *sides, channels = request.patch if len(request.patch) > 1 else (*request.patch, 1)
    factor = (needed / request.input_dimensions) ** (1 / len(sides))
    larger = (*(math.ceil(side * factor) for side in sides), channels)[: len(request.patch)]
    repaired, values = replace(request, patch=larger), math.prod(larger)
    change = (
        f"use patches of {_sides(larger)}: {values:,} values (or a stem of convolutions with "
        "non-linearities, which has no such limit)"
    )
    return _repaired(repaired, "patch", values, change, plan_command(repaired))


def _full_table(request: PlanRequest, needed: float) -> Repair:
    repaired, size = replace(request, rank=None), math.ceil(needed)
    change = (
        f"use a full embedding table in place of a factorised one (or an inner size of {size:,})"
    )
    return _repaired(repaired, "full-rank", size, change, plan_command(repaired))


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
    data, vocabulary = request.data, request.vocabulary
    is_said = request.budget.kind in ("flops", "tokens")
    is_usual = is_said or request.tokens_per_param == CHINCHILLA_TOKENS
    options = {
        "data": shlex.quote(data.folder) if data else None,
        "vocab": vocabulary.size if vocabulary and not data else None,
        "patch": _sides(request.patch) if request.patch else None,
        "rank": request.rank,
        "context": request.context,
        "max-depth": request.max_depth,
        "tied": "" if request.is_tied else None,
        "block": request.block if request.block != "gpt2" else None,
        "objective": request.objective if request.objective != "causal" else None,
        "multiple-of": request.multiple_of,
        "family": request.family or ANY,
        "tokens-per-param": None if is_usual else f"{request.tokens_per_param:g}",
    }
    words = (f"--{name} {value}".rstrip() for name, value in options.items() if value is not None)
    return " ".join(("archfit plan", request.budget.option, *words))


def _sides(patch: tuple[int, ...]) -> str:
    return "x".join(map(str, patch))
