"""The networks that a check trains: those of the plan and their rivals, shrunk alike.

A machine that cannot train the plan in the time there is trains the same shapes smaller. Blocks
shrink by one share for all, so that what tables cost of the budget is what they cost in the plan. A
network keeps its ratio of width to depth; where the text shape is then still wider than the rank of
the input, the recommended one is as wide as that rank, and deeper, as the plan has it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from archfit.data.tokenisations import AsGiven, InBpe, InKmers, Tokenisation
from archfit.plan.law import WEIGHTS
from archfit.plan.planner import Plan
from archfit.plan.repairs import Repair
from archfit.sweep.matching import width_for

Role = Literal["recommended", "shallower", "deeper", "text-shaped", "repaired"]
HEADS = 2  # as the papers' experiments have
DEEPEST = 32  # layers of a rival that is only there to be deeper
NARROWEST = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """A network of the check, before it is asked for at one of its sizes."""

    role: Role
    name: str  # what tells it from the others
    depth: int
    block_params: float
    planned_depth: int  # of its counterpart at the plan's size
    tokens: Tokenisation
    rows: int  # of their vocabulary, about: it is counted before it is made
    patch: int | None  # tokens at a position; None: one
    patch_encoding: str

    @property
    def width(self) -> int:
        """That its blocks allow."""
        return width_at(self.depth, self.block_params)


def width_at(depth: int, block_params: float) -> int:
    """The width of a network of this depth."""
    return max(NARROWEST, width_for(round(block_params), depth=depth, heads=HEADS))


def networks(plan: Plan, share: float) -> tuple[Network, ...]:
    """The plan's network, its rivals of equal size, and repaired ones; each depth comes once.

    `share` is that of the plan's block parameters.
    """
    rows = plan.request.vocabulary.size if plan.request.vocabulary else 2
    blocks, planned = share * plan.shape.block_params, _planned_depth(plan, share)
    depths: dict[int, Role] = {planned: "recommended"}
    if plan.bottleneck is not None:
        depths.setdefault(_shrunk(plan.text_shape.depth, share), "text-shaped")
    depths.setdefault(planned // 2, "shallower")
    depths.setdefault(2 * planned, "deeper")
    most = blocks / (WEIGHTS * NARROWEST**2)  # layers; more would make a larger network
    deepest = max(planned, min(DEEPEST, plan.request.max_depth, most))
    plain = [
        replace(_given(role, depth, blocks, rows), planned_depth=_counterpart(plan, role))
        for depth, role in depths.items()
        if 1 <= depth <= deepest
    ]
    return (*plain, *_repaired(plan, share))


def _counterpart(plan: Plan, role: Role) -> int:
    """The depth that a network of this role has at the plan's size."""
    depths: dict[Role, float] = {
        "text-shaped": plan.text_shape.depth,
        "shallower": plan.shape.depth / 2,
        "deeper": 2 * plan.shape.depth,
    }
    return max(1, round(depths.get(role, plan.shape.depth)))


def _planned_depth(plan: Plan, share: float) -> int:
    """That of the recommended network; the plan's own where nothing is shrunk."""
    depth = _shrunk(plan.shape.depth, share)
    if plan.bottleneck is None:
        return depth
    blocks = share * plan.shape.block_params
    text = width_at(_shrunk(plan.text_shape.depth, share), blocks)
    least = plan.shape.width * math.pow(share, 1 / 3)
    width = max(NARROWEST, least, min(plan.bottleneck.limit, text))
    return max(min(2, plan.shape.depth), round(blocks / (WEIGHTS * width**2)))


def binds(plan: Plan, share: float) -> bool:
    """Whether the text shape is wider than the rank of the input at this size, too."""
    if plan.bottleneck is None:
        return False
    depth = _shrunk(plan.text_shape.depth, share)
    return width_at(depth, share * plan.shape.block_params) > plan.bottleneck.limit


def untested(plan: Plan) -> tuple[str, ...]:
    """Kinds of repairs that no check trains, since finished data cannot be had that way."""
    tested = ("bpe", "k-mer", "convolution", "patch")
    return tuple(one.kind for one in plan.repairs if one.kind not in tested or plan.request.patch)


def _shrunk(depth: float, share: float) -> int:
    """At a constant ratio of width to depth the size goes with the cube of either.

    One layer alone is another kind of network, so two stay two.
    """
    return max(min(2, round(depth)), round(depth * math.pow(share, 1 / 3)), 1)


def _given(role: Role, depth: int, block_params: float, rows: int) -> Network:
    """A network that reads the data as they are."""
    return Network(
        role=role,
        name=role,
        depth=depth,
        block_params=block_params,
        planned_depth=depth,
        tokens=AsGiven(),
        rows=rows,
        patch=None,
        patch_encoding="one-hot",
    )


def _repaired(plan: Plan, share: float) -> Iterator[Network]:
    vocabulary = plan.request.vocabulary
    if vocabulary is None or plan.request.patch is not None:  # no data of ours are numbers
        return
    for repair in plan.repairs:
        at_plan = repair.shape.depth
        depth, blocks = _shrunk(repair.shape.depth, share), share * repair.shape.block_params
        width = width_at(depth, blocks)
        if repair.kind in ("bpe", "k-mer"):
            yield replace(_tokenised(repair, depth, blocks), planned_depth=at_plan)
        elif repair.kind == "convolution":
            patch = max(2, math.ceil(width / vocabulary.used))
            given = _given("repaired", depth, blocks, vocabulary.size)
            name = f"convolution of {patch}"
            yield replace(given, name=name, patch=patch, planned_depth=at_plan)
        elif repair.kind == "patch":
            patch = math.ceil(math.sqrt(width)) ** 2
            given = _given("repaired", depth, blocks, vocabulary.size)
            name = f"patches of {patch} numbers"
            yield replace(
                given, name=name, patch=patch, patch_encoding="scalar", planned_depth=at_plan
            )


def _tokenised(repair: Repair, depth: int, blocks: float) -> Network:
    """A network that reads the data in a larger vocabulary."""
    tokens = InBpe(vocab=repair.size) if repair.kind == "bpe" else InKmers(k=repair.size)
    given = _given("repaired", depth, blocks, repair.rank_limit)
    return replace(given, name=tokens.label, tokens=tokens)
