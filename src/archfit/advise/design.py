"""The networks that a check trains, and how large and how long their runs are.

A machine that cannot train the plan in the time there is trains the same shapes smaller. Blocks
shrink by one share for all, so that what tables cost of the budget is what they cost in the plan. A
network keeps its ratio of width to depth; where the text shape is then still wider than the rank of
the input, the recommended one is as wide as that rank, and deeper, as the plan has it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from archfit.data.retokenise import AsGiven, InBpe, InKmers, Tokenisation
from archfit.plan.law import WEIGHTS
from archfit.plan.planner import Plan
from archfit.spec import Architecture, RunSpec
from archfit.spec.run_options import RunOptions
from archfit.sweep.matching import width_for
from archfit.sweep.sweep import NO_DATA, Cell, Corpus, Scale, recipe_of

Role = Literal["recommended", "shallower", "deeper", "text-shaped", "repaired"]
HEADS = 2  # as the papers' experiments have
DEEPEST = 32  # layers of a rival that is only there to be deeper
NARROWEST = 8
TOKENS_A_PARAMETER = 10.0  # half of what Hoffmann et al. 2022 found best: shapes differ earlier
STEPS = (200, 20_000)
SEEDS = 3
LEAST_BLOCKS = 6_000.0  # parameters of the smallest networks worth training
SEVERAL_SIZES = 5.0  # minutes from which on depths are compared at several sizes
SIZES = (1.0, 0.5, 0.25)  # of the check's block parameters
SHARE_OF_TIME = 0.85  # that training is planned for: the rest starts workers and evaluates
BISECTIONS = 40


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
    at_plan: dict[Role, float] = {  # the depth that a network of this role has at the plan's size
        "recommended": plan.shape.depth,
        "text-shaped": plan.text_shape.depth,
        "shallower": plan.shape.depth / 2,
        "deeper": 2 * plan.shape.depth,
    }
    plain = [
        replace(_given(role, depth, blocks, rows), planned_depth=max(1, round(at_plan[role])))
        for depth, role in depths.items()
        if 1 <= depth <= deepest
    ]
    return (*plain, *_repaired(plan, share))


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
    return tuple(
        repair.kind for repair in plan.repairs if repair.kind not in tested or plan.request.patch
    )


def _shrunk(depth: float, share: float) -> int:
    """At a constant ratio of width to depth the size goes with the cube of either.

    One layer alone is another kind of network, so two stay two.
    """
    return max(min(2, round(depth)), round(depth * math.pow(share, 1 / 3)), 1)


def _given(role: Role, depth: int, block_params: float, rows: int) -> Network:
    """A network that reads the data as they are."""
    return Network(
        role=role, name=role, depth=depth, block_params=block_params, planned_depth=depth,
        tokens=AsGiven(), rows=rows, patch=None, patch_encoding="one-hot",
    )  # fmt: skip


def _repaired(plan: Plan, share: float) -> Iterator[Network]:
    vocabulary = plan.request.vocabulary
    if vocabulary is None or plan.request.patch is not None:  # no data of ours are numbers
        return
    for repair in plan.repairs:
        depth, blocks = _shrunk(repair.shape.depth, share), share * repair.shape.block_params
        given = _given("repaired", depth, blocks, vocabulary.size)
        given = replace(given, planned_depth=repair.shape.depth)
        if repair.kind in ("bpe", "k-mer"):  # the data in a larger vocabulary
            tokens = InBpe(vocab=repair.size) if repair.kind == "bpe" else InKmers(k=repair.size)
            yield replace(given, name=tokens.label, tokens=tokens, rows=repair.rank_limit)
        elif repair.kind == "convolution":
            patch = max(2, math.ceil(given.width / vocabulary.used))
            yield replace(given, name=f"convolution of {patch}", patch=patch)
        elif repair.kind == "patch":
            patch = math.ceil(math.sqrt(given.width)) ** 2
            name = f"patches of {patch} numbers"
            yield replace(given, name=name, patch=patch, patch_encoding="scalar")


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """How long a step takes on this machine: a part for each layer, and the operations."""

    seconds_a_layer: float
    flops_per_second: float

    def seconds(self, spec: RunSpec) -> float:
        """Of a whole run."""
        a_step = spec.training_flops / spec.recipe.steps / self.flops_per_second
        return spec.recipe.steps * (self.seconds_a_layer * spec.architecture.depth + a_step)

    def slowed(self, factor: float) -> "Speed":
        """A machine on which everything takes `factor` times as long."""
        a_layer, flops = factor * self.seconds_a_layer, self.flops_per_second / factor
        return Speed(seconds_a_layer=a_layer, flops_per_second=flops)


@dataclass(frozen=True, kw_only=True, slots=True)
class Design:
    """What all runs of a check share; with a plan it decides every one of them."""

    share: float  # of the plan's block parameters
    steps: int
    sizes: tuple[float, ...]  # at which depths are compared, the largest first
    scale: Scale  # whose recipe is used: smoke on a CPU, small on a GPU
    context: int

    def options(self, network: Network, size: float) -> RunOptions:
        """The network at one of the sizes."""
        width = width_at(network.depth, size * network.block_params)
        return replace(
            recipe_of(self.scale),
            depth=network.depth,
            width=width,
            heads=HEADS,
            context=self.context,
            steps=self.steps,
            evaluate_every=max(1, self.steps // 8),
            patch=network.patch,
            patch_encoding=network.patch_encoding,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckCell:
    """A network of the check at one size, on its data."""

    network: Network
    size: float
    cell: Cell

    @property
    def key(self) -> tuple[Architecture, str]:
        """What its runs share, whatever their seeds: the architecture and the hash of the data."""
        spec = self.cell.spec(0)
        return spec.architecture, spec.data_hash


def check_cells(plan: Plan, design: Design, corpora: Mapping[str, Corpus]) -> tuple[CheckCell, ...]:
    """The cells whose data are there; `corpora` by the label of their tokens."""
    return tuple(
        CheckCell(
            network=network,
            size=size,
            cell=Cell(corpus=corpora[network.tokens.label], options=design.options(network, size)),
        )
        for network, size in _sized(plan, design)
        if network.tokens.label in corpora
    )


def _sized(plan: Plan, design: Design) -> Iterator[tuple[Network, float]]:
    """The recommended network and its first rival at every size, the others at the largest."""
    for place, network in enumerate(networks(plan, design.share)):
        is_curve = place < 2 and network.role != "repaired"
        for size in design.sizes if is_curve else design.sizes[:1]:
            yield network, size


def affordable(plan: Plan, *, seconds: float, speed: Speed, start: Design, workers: int) -> Design:
    """The largest networks whose runs, three seeds each, take that long together.

    They see 10 tokens a parameter, as `start` sets out otherwise.
    """
    least = min(1.0, LEAST_BLOCKS / plan.shape.block_params)

    def fits(share: float) -> bool:
        specs = _counted(plan, _long_enough(plan, replace(start, share=share)))
        needed = sum(speed.seconds(spec) for spec in specs)
        return SEEDS * needed <= SHARE_OF_TIME * seconds * workers

    low, high = (1.0, 1.0) if fits(1.0) else (least, 1.0)
    for _ in range(BISECTIONS if low < high else 0):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if fits(middle) else (low, middle)
    return _long_enough(plan, replace(start, share=low))


def _long_enough(plan: Plan, design: Design) -> Design:
    """The design with as many steps as its parameters ask for."""
    spec = _counted(plan, design)[0]
    positions = spec.recipe.batch_sequences * spec.architecture.context
    wanted = round(TOKENS_A_PARAMETER * spec.architecture.params / positions)
    return replace(design, steps=min(max(STEPS[0], wanted), STEPS[1]))


def _counted(plan: Plan, design: Design) -> Sequence[RunSpec]:
    """The runs of one seed, before data are prepared for them."""
    return [
        design.options(network, size).spec(vocab=network.rows, data_hash=NO_DATA, seed=0)
        for network, size in _sized(plan, design)
    ]
