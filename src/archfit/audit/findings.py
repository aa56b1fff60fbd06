"""What is wrong with a model's shape, with the evidence and a fix.

`RULES` is the table of findings, in the order and the words of `resources/findings.toml`. A rule
has the id that a linter can fail on, the function that looks at a model or a stack of it and
returns what it found there, and the sentences that the found numbers go into. Redundancy is given
only where measurements of archfit or of the papers support it (`archfit.advise.redundancy`).
"""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from archfit.advise.law import DEEPEST_TRAINED, WEIGHTS, IdealShape, ideal_shape
from archfit.advise.redundancy import Redundancy, attention_redundancy, rank_redundancy
from archfit.audit.model import TABLES, Model, Stack

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
HIGH_SHARE, MEDIUM_SHARE = 0.15, 0.05  # of the parameters, that is redundant
LAW_FACTOR = 1.5  # the law is a fit: smaller deviations say nothing
FAR_FROM_LAW = 3.0
GPU_MULTIPLE = 8  # numbers of 16 bits that the matrix units of a GPU read at once
UNLIMITED = 10**18  # a width that limits no rank
_FILE = resources.files("archfit.resources").joinpath("findings.toml")
WORDS = tomllib.loads(_FILE.read_text(encoding="utf-8"))  # ids, sentences and ways out


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that wastes parameters, or may."""

    id: str
    severity: Severity
    stack: str  # the role of the stack that it is about, or "input"
    redundancy: Redundancy | None
    evidence: str
    fix: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What a rule looks at: a model with one of its stacks, the first where it is the input."""

    model: Model
    stack: Stack
    measured_rank: int | None  # of the embedding's weights, where they were read


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a rule saw: how bad it is, and what stands in its sentences."""

    severity: Severity
    words: Mapping[str, object]
    redundancy: Redundancy | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A kind of finding."""

    id: str
    short: str  # a line of the gallery holds three of them
    look: Callable[[Subject], Found | None]  # None where all is well, or not known
    evidence: str
    fix: str
    is_about_input: bool = False  # looked at once, not for every stack
    is_bottleneck: bool = False  # has a colour in the gallery's chart


def findings_of(model: Model, *, measured_rank: int | None = None) -> tuple[Finding, ...]:
    """All findings, the severest first; `measured_rank` is that of the embedding's weights."""
    found: list[Finding] = []
    places = [(model.stacks[0], "input"), *((stack, stack.role) for stack in model.stacks)]
    for at, (stack, place) in enumerate(places):
        subject = Subject(model=model, stack=stack, measured_rank=measured_rank)
        for rule in (rule for rule in RULES if rule.is_about_input == (at == 0)):
            if (seen := rule.look(subject)) is not None:
                finding = Finding(
                    id=rule.id,
                    severity=seen.severity,
                    stack=place,
                    redundancy=seen.redundancy,
                    evidence=rule.evidence.format(**seen.words),
                    fix=rule.fix.format(**seen.words),
                )
                found.append(finding)
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


# ---- the input


def _low_rank(subject: Subject) -> Found | None:
    """Weights of less rank than the input allows, or else a factorised table."""
    model, rank = subject.model, subject.measured_rank
    limit, width, source = model.rank_limit, model.width, model.input
    if limit is None:  # what was measured is then a decoder's table, not what limits the input
        return None
    if rank is not None and rank < limit:
        fix = (
            "train the table without what keeps its rank low (weight decay, factorisation), or "
            f"store it factorised with an inner size of {rank:,}"
        )
        return _low(model, rank, fact=f"its weights have rank {rank:,} of {width:,}", fix=fix)
    if source.kind not in TABLES or source.inner != limit or limit >= width:
        return None
    options = f"--rank {limit}" + ("" if source.vocab is None else f" --vocab {source.vocab}")
    fact = f"the embedding is factorised through {limit:,} of {width:,} dimensions"
    fix = f"widen the inner size to {width:,}{_deeper(model, options)}"
    return _low(model, limit, fact=fact, fix=fix)


def _small_vocabulary(subject: Subject) -> Found | None:
    """A table of fewer rows than the width has dimensions."""
    model, limit = subject.model, subject.model.rank_limit
    is_table = model.input.kind in TABLES and model.input.inner != limit
    if limit is None or limit >= model.width or not is_table:
        return None
    return _low(model, limit, deeper=_deeper(model, f"--vocab {limit}"))


def _small_patch(subject: Subject) -> Found | None:
    """A linear map that reads fewer values than the width has dimensions."""
    model, limit = subject.model, subject.model.rank_limit
    if limit is None or limit >= model.width or model.input.kind in TABLES:
        return None
    wider = WORDS["wider_inputs"][model.input.kind].format(width=model.width)
    return _low(model, limit, wider=wider, deeper=_deeper(model, f"--patch {limit}"))


def _low(model: Model, rank: int, **words: object) -> Found:
    """An embedding of this rank, below the width."""
    share = rank_redundancy(rank, model.width, model.stacks[0].depth)
    words |= {"rank": rank, "width": model.width, "ratio": rank / model.width, "share": share}
    return Found(severity=_severity(share), words=words, redundancy=share)


def _deeper(model: Model, options: str) -> str:
    """The other way out, where its depth is one that somebody trained; and the command for both."""
    depth, limit = model.stacks[0].depth, model.rank_limit
    if depth is None or limit is None:
        return ""
    size = _papers_count(depth, model.width)
    plan = f"(archfit plan --block-params {size} {options})"
    law = ideal_shape(size, limit)
    if law.depth > DEEPEST_TRAINED:
        layers = f"a network of this size would have {law.depth:,.0f} layers {plan}"
        return f"; at a width of {limit:,} {layers}"
    return f", or take a width of about {law.width:,.0f} and {law.depth:,.0f} layers {plan}"


# ---- stacks


def _wide_attention(subject: Subject) -> Found | None:
    """Heads that are together wider than the stream that they read."""
    stack, ratio = subject.stack, subject.stack.attention_ratio
    if ratio is None or ratio <= 1 or "heads" in subject.model.doubtful:
        return None
    share = attention_redundancy(ratio, stack.depth)
    words = {"stack": stack, "ratio": ratio, "share": share}
    return Found(severity=_severity(share), words=words, redundancy=share)


def _below_threshold(subject: Subject) -> Found | None:
    """Fewer layers than the logarithm of the width."""
    stack, threshold = subject.stack, math.log(subject.stack.width, 3)
    if stack.depth is None or stack.depth >= threshold:
        return None
    words = {"stack": stack, "threshold": threshold, "least": math.ceil(threshold)}
    return Found(severity="medium", words=words)


def _too_deep(subject: Subject) -> Found | None:
    """Deeper than even the rank limit of its input asks for."""
    model, stack = subject.model, subject.stack
    if stack.depth is None:
        return None
    reads = stack is model.stacks[0] or stack.role != "vision"  # beside text it has its own input
    limit = model.input.rank_limit(UNLIMITED) if reads else None
    law = ideal_shape(_papers_count(stack.depth, stack.width), limit or math.inf)
    return _off_the_law(stack, law, stack.depth / law.depth)


def _too_shallow(subject: Subject) -> Found | None:
    """Shallower than text of this size should be, whatever its input."""
    stack = subject.stack
    if stack.depth is None:
        return None
    law = ideal_shape(_papers_count(stack.depth, stack.width))
    return _off_the_law(stack, law, law.depth / stack.depth)


def _off_gpu_sizes(subject: Subject) -> Found | None:
    """A width or heads whose rows do not fill what a GPU reads at once."""
    stack = subject.stack
    if stack.heads is None or stack.head_dim is None or "heads" in subject.model.doubtful:
        return None
    width, head_dim = (size + -size % GPU_MULTIPLE for size in (stack.width, stack.head_dim))
    if (width, head_dim) == (stack.width, stack.head_dim):
        return None
    before, after = (
        4 * stack.heads * head * across + (WEIGHTS - 4) * across**2
        for head, across in ((stack.head_dim, stack.width), (head_dim, width))
    )
    words = {"stack": stack, "width": width, "head_dim": head_dim, "cost": after / before - 1}
    return Found(severity="low", words=words)


def _off_the_law(stack: Stack, law: IdealShape, factor: float) -> Found | None:
    if factor <= LAW_FACTOR:
        return None
    shape = f"{law.depth:,.1f} x {law.width:,.0f}"
    words = {"stack": stack, "size": law.block_params, "shape": shape, "factor": factor}
    return Found(severity="medium" if factor > FAR_FROM_LAW else "low", words=words)


def _papers_count(depth: int, width: int) -> int:
    """12 L d^2: the size in the units of the law, whatever the feed-forward layer."""
    return WEIGHTS * depth * width**2


def _severity(share: Redundancy) -> Severity:
    if share.middle >= HIGH_SHARE:
        return "high"
    return "medium" if share.middle >= MEDIUM_SHARE else "low"


_LOOKS = {
    "low-rank-embedding": _low_rank,
    "vocabulary-bottleneck": _small_vocabulary,
    "patch-bottleneck": _small_patch,
    "attention-bottleneck": _wide_attention,
    "below-depth-threshold": _below_threshold,
    "deeper-than-law": _too_deep,
    "shallower-than-law": _too_shallow,
    "off-gpu-sizes": _off_gpu_sizes,
}
RULES = tuple(Rule(id=id_, look=_LOOKS[id_], **words) for id_, words in WORDS["rules"].items())
IDS = tuple(rule.id for rule in RULES)
