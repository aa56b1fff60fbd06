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
from archfit.spec.counting import NetworkSizes
from archfit.spec.data_kinds import DATA_KINDS, LARGEST_KMER, LARGEST_VOCAB
from archfit.spec.packed import packed_table
from archfit.spec.parts import BYTE_TOKENS, bpe_vocab_for
from archfit.spec.rates import CHINCHILLA_TOKENS

WORDS = packed_table("advise_sentences.toml")["repairs"]  # of each way
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
    params: NetworkSizes


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
    return _prepared(request, "bpe", vocab, VocabularySize(size=vocab, used=vocab - BYTE_TOKENS))


def _kmer(request: PlanRequest, needed: float) -> Repair | None:
    assert request.vocabulary is not None
    letters = max(2, request.vocabulary.used - 1)  # one row ends a sequence
    k = next(k for k in itertools.count(2) if letters**k >= needed)
    size = letters**k + letters + 1
    if letters > LETTERS or k > LARGEST_KMER or size > LARGEST_VOCAB:
        return None
    return _prepared(request, "k-mer", k, VocabularySize(size=size, used=letters**k))


def _bins(request: PlanRequest, needed: float) -> Repair | None:
    bins = 1 << math.ceil(math.log2(needed))
    if bins >= 1 << 16:
        return None
    return _prepared(request, "bins", bins, VocabularySize(size=bins + 1, used=bins + 1))


def _prepared(request: PlanRequest, way: str, size: int, rows: VocabularySize) -> Repair:
    """The repair that reads the data in another vocabulary, which `data prepare` makes."""
    data = request.data
    source, needs = "SOURCE", "SOURCE: the file or folder of your data"
    if data and data.source:
        source = data.source
        alone = f"{source} in the folder you are in: data.json keeps the name alone"
        needs = "" if data.knows_path else alone
    repaired = replace(request, vocabulary=rows)
    return _repaired(repaired, way, size, needs=needs, source=shlex.quote(source))


def _convolution(request: PlanRequest, needed: float) -> Repair | None:
    vocabulary = request.vocabulary
    assert vocabulary is not None
    size = max(2, math.ceil(needed / vocabulary.used))
    return _grouped(request, "convolution", size, size * vocabulary.size, size * vocabulary.used)


def _pixels(request: PlanRequest, needed: float) -> Repair | None:
    size = math.ceil(math.sqrt(needed)) ** 2
    return _grouped(request, "patch", size, size, size)


def _grouped(
    request: PlanRequest, way: str, size: int, dimensions: int, rank: int
) -> Repair | None:
    """Positions of `size` tokens, if a table can predict these and enough fit the context.

    So many dimensions enter the embedding, and groups that occur differ in `rank` of them.
    """
    assert request.vocabulary is not None
    outputs, context = size * request.vocabulary.size, request.context // size
    is_masked = request.objective == "masked"  # which hides single tokens
    if is_masked or outputs > LARGEST_VOCAB or context < LEAST_POSITIONS:
        return None
    repaired = replace(
        request,
        vocabulary=VocabularySize(size=outputs, used=outputs),
        patch=(dimensions,),
        context=context,
        is_tied=False,
    )
    folder = shlex.quote(request.data.folder) if request.data else "DATA"
    needs = "" if request.data else "DATA: what archfit data prepare made of your source"
    network = "" if request.rank is None else f" --embedding-inner {request.rank}"
    network += f" --block {request.block}" if request.block != "gpt2" else ""
    words = {"folder": folder, "network": network, "side": math.isqrt(size)}
    return replace(_repaired(repaired, way, size, needs=needs, **words), rank_limit=rank)


def _larger_patch(request: PlanRequest, needed: float) -> Repair:
    assert request.patch is not None
    *sides, channels = request.patch if len(request.patch) > 1 else (*request.patch, 1)
    factor = (needed / request.input_dimensions) ** (1 / len(sides))
    larger = (*(math.ceil(side * factor) for side in sides), channels)[: len(request.patch)]
    repaired = replace(request, patch=larger)
    return _repaired(repaired, "larger-patch", math.prod(larger), sides=_sides(larger))


def _full_table(request: PlanRequest, needed: float) -> Repair:
    return _repaired(replace(request, rank=None), "full-rank", math.ceil(needed))


def _repaired(
    request: PlanRequest, way: str, size: int, *, needs: str = "", **words: object
) -> Repair:
    """A repair with the shape that the prior then gives; `words` stand in its sentences."""
    found, about = best_shape(request), WORDS[way]
    words |= {"size": size, "shape": found.shape, "request": request, "plan": plan_command(request)}
    return Repair(
        kind=about.get("kind", way),
        size=size,
        change=about["change"].format(**words),
        command=about["command"].format(**words),
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
