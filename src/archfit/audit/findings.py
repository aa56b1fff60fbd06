"""What is wrong with a model's shape, with the evidence and a fix.

`RULES` is the table of findings, in the order and the words of `resources/findings.toml`. A rule
has the id that a linter can fail on, the function that looks at a model or a stack of it and
returns what it found there, and the sentences that the found numbers go into. Redundancy is given
only where measurements of archfit or of the papers support it (`archfit.advise.redundancy`).
"""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Literal

from archfit.advise.law import WEIGHTS
from archfit.advise.plan_request import TEXT_VOCAB
from archfit.advise.prior import TEXT, DepthOutlook
from archfit.advise.redundancy import Redundancy, attention_redundancy, rank_redundancy
from archfit.advise.shapes import GPU_MULTIPLE, Knowledge
from archfit.audit.model import TABLES, Model, Stack

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
HIGH_SHARE, MEDIUM_SHARE = 0.15, 0.05  # of the parameters, that is redundant
GPU_SIZE = 16_000_000  # weights of blocks from which on networks fill a GPU
LITTLE_LOST, MUCH_LOST = 0.01, 0.03  # of the loss, expected, more than at the best depth
ALL_OF_BLOCKS = 1.1  # parameters of a network, over those of its blocks, where tables are small
NARROW = 16  # dimensions of a head
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
    fact = f"the embedding is factorised through {limit:,} of {width:,} dimensions"
    return _low(model, limit, fact=fact, fix=f"widen the inner size to {width:,}")


def _small_vocabulary(subject: Subject) -> Found | None:
    """A table of fewer rows than the width has dimensions, in a network that could be deeper."""
    model, limit = subject.model, subject.model.rank_limit
    is_table = model.input.kind in TABLES and model.input.inner != limit
    if limit is None or limit >= model.width or not is_table or not _could_be_deeper(subject):
        return None
    return _low(model, limit)


def _small_patch(subject: Subject) -> Found | None:
    """A linear map that reads fewer values than the width has dimensions, likewise."""
    model, limit = subject.model, subject.model.rank_limit
    is_table = model.input.kind in TABLES
    if limit is None or limit >= model.width or is_table or not _could_be_deeper(subject):
        return None
    wider = WORDS["wider_inputs"][model.input.kind].format(width=model.width)
    return _low(model, limit, wider=wider)


def _low(model: Model, rank: int, **words: object) -> Found:
    """An embedding of this rank, below the width."""
    share = rank_redundancy(rank, model.width, model.stacks[0].depth)
    words |= {"rank": rank, "width": model.width, "ratio": rank / model.width, "share": share}
    return Found(severity=_severity(share), words=words, redundancy=share)


# ---- stacks


def _wide_attention(subject: Subject) -> Found | None:
    """Heads that are together wider than the stream that they read."""
    stack, ratio = subject.stack, subject.stack.attention_ratio
    if ratio is None or ratio <= 1 or "heads" in subject.model.doubtful:
        return None
    share = attention_redundancy(ratio, stack.depth)
    words = {"stack": stack, "ratio": ratio, "share": share}
    return Found(severity=_severity(share), words=words, redundancy=share)


def _too_deep(subject: Subject) -> Found | None:
    """Deeper than trained networks of its size say, by what they lost."""
    found, depth = _outlook(subject), subject.stack.depth or 0
    return _off_depth(subject.stack, found) if found and depth > found.high else None


def _too_shallow(subject: Subject) -> Found | None:
    """Shallower than trained networks of its size say, by what they lost."""
    found = _outlook(subject)
    return _off_depth(subject.stack, found) if found and _could_be_deeper(subject) else None


def _could_be_deeper(subject: Subject) -> bool:
    found = _outlook(subject)
    return found is not None and (subject.stack.depth or 0) < found.low


def _outlook(subject: Subject) -> DepthOutlook | None:
    """What is known of depths at the size of a stack; None without its depth."""
    stack, model = subject.stack, subject.model
    if stack.depth is None:
        return None
    is_text = model.input.kind in TABLES and (model.input.vocab or 0) >= TEXT_VOCAB
    size = ALL_OF_BLOCKS * WEIGHTS * stack.depth * stack.width**2
    return _depths(TEXT if is_text else None, size, stack.depth)


@cache
def _depths(family: str | None, size: float, depth: int) -> DepthOutlook:
    known = Knowledge.of_family(family)
    return replace(known, deepest=max(known.deepest, depth)).outlook(size, math.inf)


def _off_depth(stack: Stack, found: DepthOutlook) -> Found | None:
    """What the depth is expected to lose more than the best, where that is no trifle."""
    depth = math.log(stack.depth or 1)
    nearest = min(found.regrets, key=lambda each: abs(math.log(each[0]) - depth))
    lost = nearest[1] - found.expected_regret
    if lost < LITTLE_LOST:
        return None
    words = {"stack": stack, "lost": lost, "depth": found.depth}
    words |= {"low": round(found.low), "high": round(found.high)}
    return Found(severity="medium" if lost > MUCH_LOST else "low", words=words)


def _narrow_heads(subject: Subject) -> Found | None:
    """Heads too narrow to tell tokens apart."""
    stack = subject.stack
    if stack.head_dim is None or stack.head_dim >= NARROW or "heads" in subject.model.doubtful:
        return None
    return Found(severity="medium", words={"stack": stack})


def _off_gpu_sizes(subject: Subject) -> Found | None:
    """A width or heads whose rows do not fill what a GPU reads at once."""
    stack = subject.stack
    if stack.heads is None or stack.head_dim is None or "heads" in subject.model.doubtful:
        return None
    width, head_dim = (size + -size % GPU_MULTIPLE for size in (stack.width, stack.head_dim))
    is_small = WEIGHTS * (stack.depth or 0) * stack.width**2 < GPU_SIZE
    if (width, head_dim) == (stack.width, stack.head_dim) or is_small:
        return None
    before, after = (
        4 * stack.heads * head * across + (WEIGHTS - 4) * across**2
        for head, across in ((stack.head_dim, stack.width), (head_dim, width))
    )
    words = {"stack": stack, "width": width, "head_dim": head_dim, "cost": after / before - 1}
    return Found(severity="low", words=words)


def _severity(share: Redundancy) -> Severity:
    if share.middle >= HIGH_SHARE:
        return "high"
    return "medium" if share.middle >= MEDIUM_SHARE else "low"


_LOOKS = {
    "low-rank-embedding": _low_rank,
    "vocabulary-bottleneck": _small_vocabulary,
    "patch-bottleneck": _small_patch,
    "attention-bottleneck": _wide_attention,
    "too-deep": _too_deep,
    "too-shallow": _too_shallow,
    "narrow-heads": _narrow_heads,
    "off-gpu-sizes": _off_gpu_sizes,
}
RULES = tuple(Rule(id=id_, look=_LOOKS[id_], **words) for id_, words in WORDS["rules"].items())
IDS = tuple(rule.id for rule in RULES)
