"""Other advice on depth and width, beside ours, each with its source and where it was seen.

`ADVISERS` is the table: one more adviser is one more entry. One that names a band of depths, or no
shape at all, is quoted as such.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from archfit.evidence.points import Point, best_depths
from archfit.plan.law import (
    FITTED_BLOCK_PARAMS,
    FITTED_DEPTHS,
    FITTED_VOCABS,
    WEIGHTS,
    IdealShape,
    ideal_shape,
)
from archfit.theory.sizes import RANGES
from archfit.theory.thresholds import minimal_depth

MILLION, BILLION = 10**6, 10**9
TRAINED_SIZES = (110_000, 6_000_000)  # block parameters
BYTE_VOCABS = (200, 257)  # vocabularies of text that is read byte by byte
OUR_SOURCE = "docs/evidence.md"
OUR_RANGE = "0.11M to 6M block parameters, 1 to 8 layers, English, 33M tokens"
SMALL_VOCABULARIES = (
    "archfit's own runs of 0.8M parameters on DNA, proteins and pixels: 32 layers of width 46 were "
    "worse than 4 of 128 on all three, and no repair was better beyond doubt"
)


SHAPES_IN_USE = (
    ("SmolLM2-135M", 30, 576),
    ("Qwen3-0.6B", 28, 1024),
    ("SmolLM3-3B", 36, 2048),
    ("GPT-3 175B", 96, 12288),
    ("BLOOM", 70, 14336),
)
EVIDENCE_AGAINST = (
    "nanochat pull request 807: token embedding and first block at half the width, no loss for "
    "its FLOPs over 40 runs",
    "reports that a low input rank barely hurts GPT-2 small trained from scratch",
    "Kaplan 2020: shapes of one size differ by a few % of loss over a 40-fold range of width / "
    "depth",
    "CompleteP 2025: with a learning rate of its own for each depth, many shapes are as good",
    SMALL_VOCABULARIES,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkFacts:
    """What an adviser is told about the network that is planned."""

    block_params: float
    rank_limit: int
    vocab: int  # rows of a full table; 0 for patches and factorised tables
    is_text: bool
    is_vision: bool  # patches of an image

    def of_depth(self, depth: float) -> IdealShape:
        """The shape of this size with this depth."""
        return IdealShape(depth=depth, width=(self.block_params / (WEIGHTS * depth)) ** 0.5)

    def of_aspect(self, ratio: float) -> IdealShape:
        """The shape of this size with this width / depth: N = 12 L (ratio L)^2."""
        return self.of_depth((self.block_params / (WEIGHTS * ratio**2)) ** (1 / 3))

    def is_text_of(self, least: float, most: float) -> bool:
        """Whether it is text and has between so many block parameters."""
        return self.is_text and least <= self.block_params <= most


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """What one adviser says; `depths` is a band where no single depth is named."""

    name: str
    depth: float | None
    width: float | None
    depths: tuple[float, float] | None
    says: str
    source: str
    seen_in: str  # where it was seen to hold
    in_range: bool  # whether the question is of the kind and size that the advice was seen at


Band: TypeAlias = tuple[float, float]
Named: TypeAlias = IdealShape | Band | None  # a shape, a band of depths, or neither


@dataclass(frozen=True, kw_only=True, slots=True)
class Adviser:
    """A rule that somebody published: what it names for a network, and where it was seen."""

    name: str
    says: str
    source: str
    seen_in: str
    names: Callable[[NetworkFacts], Named]
    in_range: Callable[[NetworkFacts], bool]

    def advice(self, facts: NetworkFacts) -> Advice:
        """Its answer for this network."""
        named = self.names(facts)
        shape, depths = (named, None) if isinstance(named, IdealShape) else (None, named)
        return Advice(
            name=self.name,
            depth=shape.depth if shape else None,
            width=shape.width if shape else None,
            depths=depths,
            says=self.says,
            source=self.source,
            seen_in=self.seen_in,
            in_range=self.in_range(facts),
        )


def all_advice(facts: NetworkFacts) -> tuple[Advice, ...]:
    """Everybody's answer: our runs, the published rules, and the nearest shape in use."""
    advisers = (_our_runs(facts), *ADVISERS, _shape_in_use(facts))
    return tuple(adviser.advice(facts) for adviser in advisers)


@dataclass(frozen=True, kw_only=True, slots=True)
class BestDepths:
    """The best of the depths that were trained at one size, and those as good as it."""

    low: float
    high: float
    says: str

    def __str__(self) -> str:
        ends = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        return f"{ends} layers: {self.says}"


def has_runs_of_size(block_params: float) -> bool:
    """Whether the size is one of those that were trained, or between them."""
    return TRAINED_SIZES[0] <= block_params <= TRAINED_SIZES[1]


def best_depths_of_text(block_params: float, vocab: int) -> BestDepths | None:
    """What was found at the nearest size; None where no text of this size or kind was trained."""
    if vocab < BYTE_VOCABS[0] or not has_runs_of_size(block_params):
        return None

    def distance(point: Point) -> float:
        return abs(math.log(point.at / block_params))

    point = min(best_depths(vocab), key=distance)
    if point.low is None or point.high is None:
        return None
    data, depths = ("bytes", "2 and 8") if vocab <= BYTE_VOCABS[1] else ("BPE", "1, 2, 4 and 8")
    says = (
        f"the best of {depths} layers at {point.at / 1e6:.2f}M, and those that cannot be told from "
        f"it (English, {data})"
    )
    return BestDepths(low=point.low, high=point.high, says=says)


def _our_runs(facts: NetworkFacts) -> Adviser:
    """Our own runs, which say what they found at the nearest size."""
    found = best_depths_of_text(facts.block_params, facts.vocab) if facts.is_text else None
    named: Named = None
    if found is not None:
        is_single = found.low == found.high
        named = facts.of_depth(found.low) if is_single else (found.low, found.high)
    outside = "no best depth: outside of the sizes and kinds of text that were trained"
    return Adviser(
        name="archfit's own runs",
        says=found.says if found else outside,
        source=OUR_SOURCE,
        seen_in=OUR_RANGE,
        names=lambda _: named,
        in_range=lambda _: found is not None,
    )


def _shape_in_use(facts: NetworkFacts) -> Adviser:
    """The published model nearest in size, which lends its proportions."""

    def distance(shape: tuple[str, int, int]) -> float:
        return abs(math.log(WEIGHTS * shape[1] * shape[2] ** 2 / facts.block_params))

    name, depth, width = nearest = min(SHAPES_IN_USE, key=distance)
    return Adviser(
        name="shape in use",
        says=f"the proportions of {name}, {depth} x {width}",
        source="published configs",
        seen_in="the nearest in size of five",
        names=lambda facts: facts.of_aspect(width / depth),
        in_range=lambda facts: facts.is_text and distance(nearest) < math.log(2),
    )


def _is_between(ends: Band, value: float) -> bool:
    return ends[0] <= value <= ends[1]


def _levine_holds(facts: NetworkFacts) -> bool:
    shape = ideal_shape(facts.block_params)
    is_sized = _is_between(FITTED_BLOCK_PARAMS, facts.block_params)
    return is_sized and _is_between(FITTED_DEPTHS, shape.depth) and facts.rank_limit >= shape.width


def _wies_holds(facts: NetworkFacts) -> bool:
    depth = ideal_shape(facts.block_params, facts.rank_limit).depth
    is_sized = _is_between((5 * MILLION, 110 * MILLION), facts.block_params)
    return (
        is_sized and _is_between((24, 48), depth) and _is_between(FITTED_VOCABS, facts.rank_limit)
    )


def _log3_depth(facts: NetworkFacts) -> IdealShape:
    least, most = RANGES["size"]
    depth = minimal_depth(min(max(round(facts.block_params), least), most)).min_depth
    return facts.of_depth(max(1, depth))


def _ten_times_deeper(facts: NetworkFacts) -> IdealShape:
    text = ideal_shape(facts.block_params)
    return facts.of_aspect(text.width / text.depth / 10)


def _mobile_llm(facts: NetworkFacts) -> Named:
    has_number = _is_between((62.5 * MILLION, 250 * MILLION), facts.block_params)
    return facts.of_depth(30) if has_number else None


def _marin(facts: NetworkFacts) -> IdealShape:
    """d^3 = N ratio(d) / 12, and the ratio changes slowly."""

    def ratio(width: float) -> float:
        share = math.log(width / 512) / math.log(8192 / 512)
        return 85 + 21 * min(1.0, max(0.0, share))

    width = (facts.block_params * 95 / WEIGHTS) ** (1 / 3)
    for _ in range(50):
        width = (facts.block_params * ratio(width) / WEIGHTS) ** (1 / 3)
    return IdealShape(depth=width / ratio(width), width=width)


def _depth_delusion(facts: NetworkFacts) -> IdealShape:
    width = (facts.block_params / WEIGHTS) ** (1 / 2.44)
    return IdealShape(depth=width**0.44, width=width)


def _godey_depth(facts: NetworkFacts) -> float:
    return facts.block_params / (WEIGHTS * 1000**2)


ADVISERS: tuple[Adviser, ...] = (
    Adviser(
        name="Levine 2020",
        says="deepen until ln(width) = 5.039 + 0.0555 depth",
        source="arXiv:2006.12467, published version",
        seen_in="own runs of 1M to 0.6B, 6 to 48 layers, text",
        names=lambda facts: ideal_shape(facts.block_params),
        in_range=_levine_holds,
    ),
    Adviser(
        name="Levine + Wies 2021",
        says="the same with the width capped by the rank of the input",
        source="arXiv:2105.03928",
        seen_in="V 257 to 50257, 24 to 48 layers, 5M to 110M",
        names=lambda facts: ideal_shape(facts.block_params, facts.rank_limit),
        in_range=_wies_holds,
    ),
    Adviser(
        name="log3 threshold",
        says="depth at least log3 of the width",
        source="arXiv:2006.12467, preprint, table 1",
        seen_in="theory; the deep bound behind it is disputed",
        names=_log3_depth,
        in_range=lambda _: True,
    ),
    Adviser(
        name="Kaplan 2020",
        says="width / depth may vary 40 times for a few % of loss; 6 x 4288 is within 3 % of "
        "48 x 1600",
        source="arXiv:2001.08361",
        seen_in="text, up to 1.5B",
        names=lambda facts: (facts.of_aspect(4288 / 6).depth, facts.of_aspect(1600 / 48).depth),
        in_range=lambda facts: facts.is_text_of(0, 1.5 * BILLION),
    ),
    Adviser(
        name="Henighan 2020",
        says="images and mathematics want about 10 times more depth for their width than text "
        "(here: than Levine's shape)",
        source="arXiv:2010.14701, as cited by Wies et al. 2021",
        seen_in="small vocabularies",
        names=_ten_times_deeper,
        in_range=lambda facts: not facts.is_text,
    ),
    Adviser(
        name="Tay 2021",
        says="deepen first; gains level off at 32 to 36 layers",
        source="arXiv:2109.10686",
        seen_in="T5, up to 3B",
        names=lambda _: (32.0, 36.0),
        in_range=lambda facts: facts.is_text_of(0, 3 * BILLION),
    ),
    Adviser(
        name="Petty 2023",
        says="deeper generalises better, returns diminish fast, shallower than usual is fine",
        source="arXiv:2310.19956",
        seen_in="41M, 134M, 374M",
        names=lambda _: None,
        in_range=lambda facts: facts.is_text_of(41 * MILLION, 374 * MILLION),
    ),
    Adviser(
        name="MobileLLM 2024",
        says="below 1B deep and thin wins: 30 layers at 125M",
        source="arXiv:2402.14905",
        seen_in="125M to 1B",
        names=_mobile_llm,
        in_range=lambda facts: facts.is_text_of(100 * MILLION, BILLION),
    ),
    Adviser(
        name="nanochat 2026",
        says="width / depth 64 beats 128 at 1e18 FLOPs; head_dim 128 beats 64",
        source="nanochat repository",
        seen_in="up to about 1B",
        names=lambda facts: facts.of_aspect(64),
        in_range=lambda facts: facts.is_text_of(0, BILLION),
    ),
    Adviser(
        name="Marin recipe",
        says="width / depth from 85 (width 512) to 106 (width 8192), head_dim 128",
        source="Marin project",
        seen_in="text, width 512 to 8192",
        names=_marin,
        in_range=lambda facts: facts.is_text and _is_between((512, 8192), _marin(facts).width),
    ),
    Adviser(
        name="Depth Delusion 2026",
        says="depth beyond width^0.44 hurts (read with a factor of 1)",
        source="arXiv:2601.20994",
        seen_in="17M to 7B",
        names=_depth_delusion,
        in_range=lambda facts: facts.is_text_of(17 * MILLION, 7 * BILLION),
    ),
    Adviser(
        name="CompleteP 2025",
        says="with residual branches scaled by 1/depth and matching learning rates many shapes are "
        "as good: a depth sweep at one learning rate is confounded",
        source="arXiv:2505.01618",
        seen_in="up to 1.5B",
        names=lambda _: None,
        in_range=lambda facts: facts.is_text_of(0, 1.5 * BILLION),
    ),
    Adviser(
        name="SoViT 2023",
        says="vision: scale the feed-forward layer fastest, then depth, then width",
        source="arXiv:2305.13035",
        seen_in="ViT",
        names=lambda _: None,
        in_range=lambda facts: facts.is_vision,
    ),
    Adviser(
        name="Tao 2024",
        says="larger networks want larger vocabularies (Llama2-70B: 216K instead of 32K)",
        source="arXiv:2407.13623",
        seen_in="text",
        names=lambda _: None,
        in_range=lambda facts: facts.is_text,
    ),
    Adviser(
        name="Godey 2024",
        says="output side: heads of width below about 1000 saturate",
        source="arXiv:2404.07647",
        seen_in="text",
        names=lambda facts: (1.0, max(1.0, _godey_depth(facts))),
        in_range=lambda facts: facts.is_text and _godey_depth(facts) >= 1,
    ),
)
