"""Other advice on depth and width, beside ours, each with its source and where it was seen.

`resources/advisers.toml` is the table: one more adviser is one more entry there. One that names a
band of depths, or no shape at all, is quoted as such.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from archfit.advise.prior import shipped_prior
from archfit.spec.packed import packed_table
from archfit.spec.search import bisect_rising
from archfit.theory.inputs import SIZE
from archfit.theory.law import WEIGHTS, IdealShape, ideal_shape

TABLE = packed_table("advisers.toml")
Named: TypeAlias = IdealShape | tuple[float, float] | None  # a shape, a band of depths, or neither


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkFacts:
    """What an adviser is told about the network that is planned."""

    block_params: float
    rank_limit: int
    is_text: bool
    is_vision: bool  # patches of an image

    def of_depth(self, depth: float) -> IdealShape:
        """The shape of this size with this depth."""
        return IdealShape(depth=depth, width=(self.block_params / (WEIGHTS * depth)) ** 0.5)

    def of_aspect(self, ratio: float) -> IdealShape:
        """The shape of this size with this width / depth: N = 12 L (ratio L)^2."""
        return self.of_depth((self.block_params / (WEIGHTS * ratio**2)) ** (1 / 3))


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
    regret: float | None  # bits per byte that it lost in back-tests on the atlas, in the mean


def all_advice(facts: NetworkFacts) -> tuple[Advice, ...]:
    """Everybody's answer: the published rules, and the nearest shape in use."""
    published = []
    for entry in TABLE["adviser"]:
        named = _named(facts, entry.get("names", {}))
        published.append(_advice(entry, named, _is_seen(facts, named, entry["range"])))
    return (*published, _shape_in_use(facts))


def evidence_against() -> tuple[str, ...]:
    """What speaks against the thesis that a low rank of the input is a bottleneck."""
    return tuple(TABLE["evidence_against"])


def _advice(entry: Mapping[str, str], named: Named, in_range: bool) -> Advice:
    shape, depths = (named, None) if isinstance(named, IdealShape) else (None, named)
    return Advice(
        **{name: entry[name] for name in ("name", "says", "source", "seen_in")},
        depth=shape.depth if shape else None,
        width=shape.width if shape else None,
        depths=depths,
        in_range=in_range,
        regret=shipped_prior().rules.get(entry["name"]),
    )


def _named(facts: NetworkFacts, names: Mapping[str, Any]) -> Named:
    match names:
        case {"rule": rule}:
            return SHAPE_RULES[rule](facts)
        case {"depth": depth}:
            return facts.of_depth(depth)
        case {"aspect": ratio}:
            return facts.of_aspect(ratio)
        case {"shapes": [[depth, width], [deeper, narrower]]}:
            return facts.of_aspect(width / depth).depth, facts.of_aspect(narrower / deeper).depth
        case {"depths": [low, high]}:
            return float(low), float(high)
    return None


def _is_seen(facts: NetworkFacts, named: Named, seen: Mapping[str, Sequence[float]]) -> bool:
    """Whether the network is of the data, and between the ends, that the table says."""
    shape = named if isinstance(named, IdealShape) else IdealShape(depth=math.nan, width=math.nan)
    of_data = {"text": facts.is_text, "other": not facts.is_text, "vision": facts.is_vision}
    sizes = {kind: facts.block_params if of_it else math.nan for kind, of_it in of_data.items()}
    sizes |= {"any": facts.block_params, "depth": shape.depth, "width": shape.width}
    sizes |= {"rank": facts.rank_limit, "rank_by_width": facts.rank_limit / shape.width}
    return all(low <= sizes[name] <= high for name, (low, high) in seen.items())


def _shape_in_use(facts: NetworkFacts) -> Advice:
    """The published model nearest in size, which lends its proportions."""

    def distance(shape: tuple[str, int, int]) -> float:
        return abs(math.log(WEIGHTS * shape[1] * shape[2] ** 2 / facts.block_params))

    name, depth, width = nearest = min(TABLE["shapes_in_use"], key=distance)
    entry = {"name": "shape in use", "says": f"the proportions of {name}, {depth} x {width}"}
    entry |= {"source": "published configs", "seen_in": "the nearest in size of five"}
    in_range = facts.is_text and distance(nearest) < math.log(2)
    return _advice(entry, facts.of_aspect(width / depth), in_range)


def _log3(facts: NetworkFacts) -> Named:
    """`min_depth` of the theory in floating point: a bare checkout has no certified digits."""
    least, most = SIZE
    size = min(max(facts.block_params, least), most)
    lambert = bisect_rising(lambda u: u * math.exp(u), math.log(3) * size / 6, 0.0, 500.0)
    depth = math.floor(lambert / (2 * math.log(3)))
    return facts.of_depth(max(1, depth))


def _ten_times_deeper(facts: NetworkFacts) -> Named:
    text = ideal_shape(facts.block_params)
    return facts.of_aspect(text.width / text.depth / 10)


def _marin(facts: NetworkFacts) -> IdealShape:
    """d^3 = N ratio(d) / 12, and the ratio changes slowly."""

    def ratio(width: float) -> float:
        share = math.log(width / 512) / math.log(8192 / 512)
        return 85 + 21 * min(1.0, max(0.0, share))

    width = (facts.block_params * 95 / WEIGHTS) ** (1 / 3)
    for _ in range(50):
        width = (facts.block_params * ratio(width) / WEIGHTS) ** (1 / 3)
    return IdealShape(depth=width / ratio(width), width=width)


def _depth_delusion(facts: NetworkFacts) -> Named:
    width = (facts.block_params / WEIGHTS) ** (1 / 2.44)
    return IdealShape(depth=width**0.44, width=width)


SHAPE_RULES: dict[str, Callable[[NetworkFacts], Named]] = {
    "levine": lambda facts: ideal_shape(facts.block_params),
    "wies": lambda facts: ideal_shape(facts.block_params, facts.rank_limit),
    "log3": _log3,
    "ten times deeper": _ten_times_deeper,
    "mobile llm": lambda facts: (
        facts.of_depth(30) if 62.5e6 <= facts.block_params <= 250e6 else None
    ),
    "marin": _marin,
    "depth delusion": _depth_delusion,
    "godey": lambda facts: (1.0, max(1.0, facts.block_params / (WEIGHTS * 1000**2))),
}
