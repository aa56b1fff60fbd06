"""What is wrong with a model's shape, with the evidence and a fix.

Each finding has an id that a linter can fail on. Redundancy is given only where measurements of
archfit or of the papers support it; `archfit.plan.redundancy` holds those.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from archfit.audit.model import TABLES, InputKind, Model, Stack
from archfit.plan.law import DEEPEST_TRAINED, WEIGHTS, IdealShape, ideal_shape
from archfit.plan.redundancy import Redundancy, attention_redundancy, rank_redundancy

Severity = Literal["high", "medium", "low"]
IDS = (
    "vocabulary-bottleneck",
    "low-rank-embedding",
    "patch-bottleneck",
    "attention-bottleneck",
    "below-depth-threshold",
    "deeper-than-law",
    "shallower-than-law",
)
LAW_FACTOR = 1.5  # the law is a fit: smaller deviations say nothing
FAR_FROM_LAW = 3.0
UNLIMITED = 10**18  # a width that limits no rank
WIDER_INPUTS: dict[InputKind, str] = {  # where a linear map reads values
    "linear_patch": "use larger patches or a convolutional stem with non-linearities",
    "linear_on_conv_features": "end the convolutional stem in {width:,} channels or more",
    "linear_continuous": "embed the vectors by a small network with non-linearities",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that wastes parameters, or may."""

    id: str
    severity: Severity
    stack: str  # the role of the stack that it is about, or "input"
    redundancy: Redundancy | None
    evidence: str
    fix: str


def findings_of(model: Model, *, measured_rank: int | None = None) -> tuple[Finding, ...]:
    """All findings, the severest first; `measured_rank` is that of the embedding's weights."""
    found = [*_input_findings(model, measured_rank)]
    for stack in model.stacks:
        if "heads" not in model.doubtful:
            found += _attention_findings(stack)
        found += _depth_findings(model, stack)
    order: dict[Severity, int] = {"high": 0, "medium": 1, "low": 2}
    return tuple(sorted(found, key=lambda finding: order[finding.severity]))


def _input_findings(model: Model, measured_rank: int | None) -> Iterator[Finding]:
    """What the input allows, and what its weights make of that; one finding for each cause."""
    limit, width = model.rank_limit, model.width
    if limit is None:  # what was measured is then a decoder's table, not what limits the input
        return
    limited = [_limit_finding(model, limit)] if limit < width else []
    if measured_rank is not None and measured_rank < limit:
        yield _rank_finding(
            "low-rank-embedding",
            measured_rank,
            model,
            "its weights have rank {rank:,} of {width:,}",
            "train the table without what keeps its rank low (weight decay, factorisation), or "
            f"store it factorised with an inner size of {measured_rank:,}",
        )
        limited = [finding for finding in limited if finding.id != "low-rank-embedding"]
    yield from limited


def _limit_finding(model: Model, limit: int) -> Finding:
    source, width = model.input, model.width
    if source.kind not in TABLES:
        return _rank_finding(
            "patch-bottleneck",
            limit,
            model,
            "{rank:,} values enter a width of {width:,}",
            WIDER_INPUTS[source.kind].format(width=width)
            + _deeper(model, limit, f"--patch {limit}"),
        )
    if source.inner == limit:
        options = f"--rank {limit}" + ("" if source.vocab is None else f" --vocab {source.vocab}")
        return _rank_finding(
            "low-rank-embedding",
            limit,
            model,
            "the embedding is factorised through {rank:,} of {width:,} dimensions",
            f"widen the inner size to {width:,}" + _deeper(model, limit, options),
        )
    return _rank_finding(
        "vocabulary-bottleneck",
        limit,
        model,
        "{rank:,} tokens enter a width of {width:,}",
        f"raise the vocabulary above {width:,} (BPE, k-mers, patches of tokens)"
        + _deeper(model, limit, f"--vocab {limit}"),
    )


def _deeper(model: Model, limit: int, options: str) -> str:
    """The other way out, where its depth is one that somebody trained; and the command for both."""
    depth = model.stacks[0].depth
    if depth is None:
        return ""
    size = _papers_count(depth, model.width)
    plan = f"(archfit plan --block-params {size} {options})"
    law = ideal_shape(size, limit)
    if law.depth > DEEPEST_TRAINED:
        return (
            f"; at a width of {limit:,} a network of this size would have {law.depth:,.0f} layers "
            f"{plan}"
        )
    return f", or take a width of about {law.width:,.0f} and {law.depth:,.0f} layers {plan}"


def _rank_finding(id_: str, rank: int, model: Model, fact: str, fix: str) -> Finding:
    width = model.width
    share = rank_redundancy(rank, width, model.stacks[0].depth)
    doubt = ", and measured for tokens, not for values" if id_ == "patch-bottleneck" else ""
    return Finding(
        id=id_,
        severity=_severity(share),
        stack="input",
        redundancy=share,
        evidence=f"{fact.format(rank=rank, width=width)} (ratio {rank / width:.3g}); "
        f"{share.source}; {share.basis} here{doubt}",
        fix=fix,
    )


def _attention_findings(stack: Stack) -> Iterator[Finding]:
    ratio = stack.attention_ratio
    if ratio is None or ratio <= 1:
        return
    share = attention_redundancy(ratio, stack.depth)
    yield Finding(
        id="attention-bottleneck",
        severity=_severity(share),
        stack=stack.role,
        redundancy=share,
        evidence=f"{stack.heads} heads of {stack.head_dim} read a width of {stack.width:,} (ratio "
        f"{ratio:.3g}); {share.source}; {share.basis} here",
        fix=f"make heads x head_dim at most the width of {stack.width:,} and spend what is saved "
        "on width or depth",
    )


def _depth_findings(model: Model, stack: Stack) -> Iterator[Finding]:
    if stack.depth is None:
        return
    threshold = math.log(stack.width, 3)
    if stack.depth < threshold:
        yield Finding(
            id="below-depth-threshold",
            severity="medium",
            stack=stack.role,
            redundancy=None,
            evidence=f"{stack.depth} layers at width {stack.width:,}: below log3(width) = "
            f"{threshold:.1f}, where depth is worth more than width (Levine et al. 2020)",
            fix=f"use {math.ceil(threshold)} layers or more and less width",
        )
    yield from _law_findings(model, stack, stack.depth)


def _law_findings(model: Model, stack: Stack, depth: int) -> Iterator[Finding]:
    """Shallower than text of this size should be, or deeper than even its rank limit asks for.

    What lies between the two is the bottleneck's own finding.
    """
    reads = stack is model.stacks[0] or stack.role != "vision"  # beside text it has its own input
    limit = model.input.rank_limit(UNLIMITED) if reads else None
    size = _papers_count(depth, stack.width)
    text, limited = ideal_shape(size), ideal_shape(size, limit or math.inf)
    if depth * LAW_FACTOR < text.depth:
        yield _law_finding(stack, text, text.depth / depth, "shallower-than-law", "as deep")
    elif depth > limited.depth * LAW_FACTOR:
        yield _law_finding(stack, limited, depth / limited.depth, "deeper-than-law", "less deep")


def _law_finding(stack: Stack, law: IdealShape, factor: float, id_: str, word: str) -> Finding:
    shape = f"{law.depth:,.1f} x {law.width:,.0f}"
    return Finding(
        id=id_,
        severity="medium" if factor > FAR_FROM_LAW else "low",
        stack=stack.role,
        redundancy=None,
        evidence=f"{stack.depth} layers at width {stack.width:,}; for 12 L d^2 = "
        f"{law.block_params:.3g} the law gives {shape}, {factor:.2g} times {word} (Levine et al. "
        "2020, Wies et al. 2021; other advice differs: archfit plan)",
        fix=f"a shape near {shape} of the same size, if a sweep on your data agrees",
    )


def _papers_count(depth: int, width: int) -> int:
    """12 L d^2: the size in the units of the law, whatever the feed-forward layer."""
    return WEIGHTS * depth * width**2


def _severity(share: Redundancy) -> Severity:
    if share.middle >= 0.15:
        return "high"
    return "medium" if share.middle >= 0.05 else "low"
