"""What is wrong with a model's shape, with the evidence and a fix.

`RULES` is the table of findings in `resources/findings.toml`, by the id that a linter can fail on:
its words, and the sentences that found numbers go into. The functions in `INPUT_LOOKS` look at a
model, those in `STACK_LOOKS` at each stack of it; None says that all is well, or not known.
Redundancy is given only where measurements of archfit or of the papers support it
(`archfit.advise.redundancy`).

A shape does not say what data it is for, and families of data like different depths. A depth is
found wrong only where it is wrong for every family that such an input may be of. Few training
tokens ask for few layers: where a model does not say how many it has, they are the usual or more.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from archfit.advise.budgets import LARGEST_BUDGET
from archfit.advise.plan_request import SPELT, TEXT_VOCAB
from archfit.advise.prior import FAR, LEAST_SIZE, TEXT, DepthOutlook, family_prior, known_families
from archfit.advise.redundancy import Redundancy, attention_redundancy, rank_redundancy
from archfit.advise.shapes import GPU_MULTIPLE, LARGE, TABLES_AT_MOST
from archfit.audit.model import TABLES, Model, Stack
from archfit.spec.architecture import BlockFamily
from archfit.spec.packed import packed_table
from archfit.theory.law import DEEPEST_TRAINED, WEIGHTS

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
HIGH_SHARE, MEDIUM_SHARE = 0.15, 0.05  # of the parameters, that is redundant
LITTLE_LOST, MUCH_LOST = 0.005, 0.03  # bits per byte, expected, more than at the best depth
WRITTEN = (TEXT, "code")  # families whose vocabularies are as large as one likes
BYTES = range(256, 261)  # tokens, with a separator or a few marks
LARGEST_CODEBOOK = 16_384  # tokens of pictures, sounds and sequences: others have no more
TOKENS = 20.0, 320.0  # a parameter: nobody says how many a network saw
SIZES_A_DOUBLING = 2  # of networks, at which depths are looked up
CHARTED = 1e6, 1e12  # the sizes of a chart
NARROW = 16  # dimensions of a head
WORDS = packed_table("findings.toml")
RULES: Mapping[str, Mapping[str, Any]] = WORDS["rules"]
IDS = tuple(RULES)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that wastes parameters, or may."""

    id: str
    severity: Severity
    stack: str  # the role of the stack that it is about, or "input"
    redundancy: Redundancy | None
    evidence: str
    fix: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What a rule looks at: a model with one of its stacks, the first where it is the input."""

    model: Model
    stack: Stack
    place: str  # the role of the stack, or "input"
    measured_rank: int | None  # of the embedding's weights, where they were read

    def found(self, id_: str, severity: Severity, **words: object) -> Finding:
        """The finding of this id, with words for the places in its sentences."""
        evidence, fix = (RULES[id_][text].format(**words) for text in ("evidence", "fix"))
        return Finding(id_, severity, self.place, None, evidence, fix)


def findings_of(model: Model, *, measured_rank: int | None = None) -> tuple[Finding, ...]:
    """All findings, the severest first; `measured_rank` is that of the embedding's weights."""
    first = Subject(model, model.stacks[0], "input", measured_rank)
    stacks = [replace(first, stack=stack, place=stack.role) for stack in model.stacks]
    seen = [look(first) for look in INPUT_LOOKS]
    seen += [look(subject) for subject in stacks for look in STACK_LOOKS]
    found = (finding for finding in seen if finding is not None)
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


# ---- the input


def _low_rank(subject: Subject) -> Finding | None:
    """Weights of less rank than the input allows, or else a factorised table."""
    model, rank = subject.model, subject.measured_rank
    limit, source = model.rank_limit, model.input
    if limit is None:  # what was measured is then a decoder's table, not what limits the input
        return None
    if rank is not None and rank < limit:
        return _low(subject, "low-rank-embedding", rank, WORDS["low_ranks"]["measured"])
    if source.kind not in TABLES or source.inner != limit or limit >= model.width:
        return None
    return _low(subject, "low-rank-embedding", limit, WORDS["low_ranks"]["factorised"])


def _few_inputs(subject: Subject) -> Finding | None:
    """A table of fewer rows, or a linear map that reads fewer values, than the width has
    dimensions, in a network that could be deeper."""
    model, limit = subject.model, subject.model.rank_limit
    kind, is_table = model.input.kind, model.input.kind in TABLES
    if limit is None or limit >= model.width or (is_table and model.input.inner == limit):
        return None
    depth = _off_depth(subject)
    if depth is None or depth.id != "too-shallow":
        return None
    if is_table:
        return _low(subject, "vocabulary-bottleneck", limit, {})
    return _low(subject, "patch-bottleneck", limit, {"wider": WORDS["wider_inputs"][kind]})


def _low(subject: Subject, id_: str, rank: int, sentences: Mapping[str, str]) -> Finding:
    """An embedding of this rank, below the width; the numbers go into `sentences`, too."""
    width = subject.model.width
    share = rank_redundancy(rank, width, subject.stack.depth)
    numbers = {"rank": rank, "width": width, "part": 100 * rank / width}
    said = {name: sentence.format(**numbers) for name, sentence in sentences.items()}
    return _redundant(subject, id_, share, **numbers, **said)


def _redundant(subject: Subject, id_: str, share: Redundancy, **words: object) -> Finding:
    """Parameters of which this share does nothing; the share is what makes it severe."""
    is_high, is_low = share.middle >= HIGH_SHARE, share.middle < MEDIUM_SHARE
    severity: Severity = "high" if is_high else "low" if is_low else "medium"
    said = f"{share.source}. {WORDS['bases'][share.basis]}"
    return replace(subject.found(id_, severity, said=said, **words), redundancy=share)


# ---- stacks


def _wide_attention(subject: Subject) -> Finding | None:
    """Heads that are together wider than the stream that they read."""
    stack, ratio = subject.stack, subject.stack.attention_ratio
    if ratio is None or ratio <= 1 or "heads" in subject.model.doubtful:
        return None
    units = stack.feed_forward or 4 * stack.width
    like_t5 = units > 4 * stack.width * math.sqrt(ratio)  # nearer to 4 attentions than to 4 widths
    share = attention_redundancy(ratio, stack.depth, like_t5=like_t5)
    return _redundant(subject, "attention-bottleneck", share, stack=stack, ratio=ratio)


def _off_depth(subject: Subject) -> Finding | None:
    """Deeper or shallower than trained networks of its size are good at."""
    found = _misfit(subject)
    if found is None:
        return None
    low, high = round(found.outlook.low), round(found.outlook.high)
    trained = WORDS["trained"]["told" if subject.model.training_tokens else "usual"]
    words = {
        "stack": subject.stack,
        "layers": f"{found.depth} layer{'s' if found.depth > 1 else ''}",
        "good": f"{low} to {high}" if low < high else str(low),
        "data": found.family or "data of all families",
        "lost": 100 * found.lost,
        "beyond": " (by extrapolation)" if found.times > 1 else "",
        "trained": trained.format(tokens=found.tokens, usual=TOKENS[0]),
    }
    id_ = "too-deep" if found.depth > found.outlook.depth else "too-shallow"
    return subject.found(id_, "medium" if found.lost_bits > MUCH_LOST else "low", **words)


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is known of a depth, for one family of data, one size and tokens a parameter."""

    family: str | None  # None: one that the atlas does not have
    tokens: float
    depth: int
    outlook: DepthOutlook
    level: float  # bits per byte of a good network
    times: float  # the largest network of the family that was trained

    @property
    def lost(self) -> float:
        """Share of the loss that it is expected to lose more than the best depth."""
        return self.outlook.regret_at(self.depth) - self.outlook.expected_regret

    @property
    def lost_bits(self) -> float:
        """The same in bits per byte."""
        return self.lost * self.level

    @property
    def is_good(self) -> bool:
        """Among those as good as the best, to the layer that a plan may miss, or a trifle worse."""
        is_inside = self.outlook.low - 1 <= self.depth <= self.outlook.high + 1
        return is_inside or self.lost_bits < LITTLE_LOST


def _misfit(subject: Subject) -> Prospect | None:
    """What is known of a depth that is good for no data that the model may read.

    It is that of the likeliest family; None for a good depth, or one that nothing is known of:
    smaller networks than were trained, those with no blocks to speak of among them, hardly learn.
    """
    model, stack = subject.model, subject.stack
    size = judged_size(model, stack)
    if size is None:
        return None
    assert stack.depth is not None  # or it is not judged
    deepest = max(DEEPEST_TRAINED, 1 << (stack.depth - 1).bit_length())
    block: BlockFamily = "llama" if stack.is_gated else "gpt2"
    step = round(SIZES_A_DOUBLING * math.log2(size))
    found = (
        Prospect(family, tokens, stack.depth, *_known(family, block, step, deepest, tokens))
        for family in _families(model)
        for tokens in _tokens(model, size, family)
    )
    likeliest = next(found)
    return None if likeliest.is_good or any(each.is_good for each in found) else likeliest


def judged_size(model: Model, stack: Stack) -> float | None:
    """The size that a depth is judged at; None where it is not known, or nobody trained such."""
    blocks = WEIGHTS * (stack.depth or 0) * stack.width**2
    # As a plan asks: all parameters, but no more of tables than of blocks.
    tables = model.parameters.embedding or 0
    size = min(blocks + tables, TABLES_AT_MOST * blocks, LARGEST_BUDGET)
    if not stack.depth or size < LEAST_SIZE:
        return None
    is_shared = (stack.distinct_blocks or stack.depth) < stack.depth  # layers cost no parameters
    return None if is_shared else size


def _tokens(model: Model, size: float, family: str | None) -> tuple[float, ...]:
    """Tokens a parameter that a depth is judged at: what a model says, by both sizes of a plan,
    else few, and as many as any run on the family had: beyond nobody knows."""
    if not model.training_tokens:
        few, many = TOKENS
        return few, min(many, family_prior(family).most_tokens)
    sizes = (model.parameters.total or size, size)
    return tuple(float(f"{model.training_tokens / each:.3g}") for each in sizes)


def _families(model: Model) -> tuple[str | None, ...]:
    """Families of data that the input may be of, the likeliest first."""
    vocab = (model.input.vocab or 0) if model.input.kind in TABLES else 0
    likeliest = TEXT if vocab >= TEXT_VOCAB else None
    others = (None, *(WRITTEN if vocab > LARGEST_CODEBOOK else known_families()))
    left_out = {likeliest, *(SPELT if vocab in BYTES else ())}
    return (likeliest, *(each for each in others if each not in left_out))


@cache
def _known(
    family: str | None, block: BlockFamily, step: int, deepest: int, tokens: float
) -> tuple[DepthOutlook, float, float]:
    """What is known of depths, bits per byte of a good network, and how far beyond all trained."""
    size = 2 ** (step / SIZES_A_DOUBLING)
    known = replace(family_prior(family, block), deepest=deepest)
    found = known.outlook(size, math.inf, tokens)
    return found, known.level(size), size / known.largest


def good_depths() -> Iterator[tuple[float, DepthOutlook]]:
    """Sizes that depths of text are known at, with what is known there; for a chart."""
    for step in range(*(round(SIZES_A_DOUBLING * math.log2(size)) for size in CHARTED)):
        outlook, _, times = _known(TEXT, "gpt2", step, DEEPEST_TRAINED, TOKENS[0])
        if times <= FAR:
            yield 2 ** (step / SIZES_A_DOUBLING), outlook


def _narrow_heads(subject: Subject) -> Finding | None:
    """Heads too narrow to tell tokens apart."""
    stack = subject.stack
    if stack.head_dim is None or stack.head_dim >= NARROW or "heads" in subject.model.doubtful:
        return None
    return subject.found("narrow-heads", "medium", stack=stack)


def _off_gpu_sizes(subject: Subject) -> Finding | None:
    """A width or heads whose rows do not fill what a GPU reads at once."""
    stack = subject.stack
    if stack.heads is None or stack.head_dim is None or "heads" in subject.model.doubtful:
        return None
    width, head_dim = (size + -size % GPU_MULTIPLE for size in (stack.width, stack.head_dim))
    is_small = WEIGHTS * (stack.depth or 0) * stack.width**2 < LARGE
    if (width, head_dim) == (stack.width, stack.head_dim) or is_small:
        return None
    before, after = (
        4 * stack.heads * head * across + (WEIGHTS - 4) * across**2
        for head, across in ((stack.head_dim, stack.width), (head_dim, width))
    )
    cost = 100 * (after / before - 1)
    found = {"stack": stack, "width": width, "head_dim": head_dim, "cost": cost}
    return subject.found("off-gpu-sizes", "low", **found)


INPUT_LOOKS = (_low_rank, _few_inputs)
STACK_LOOKS = (_wide_attention, _off_depth, _narrow_heads, _off_gpu_sizes)
