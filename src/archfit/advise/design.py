"""How large and how long the check's runs are, so that they fit into the time there is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from archfit.advise.networks import HEADS, Network, networks, width_at
from archfit.plan.planner import Plan
from archfit.spec import RunSpec
from archfit.spec.asked import AskedRun
from archfit.sweep.cell import Cell
from archfit.sweep.recipes import base
from archfit.sweep.sweep import NO_DATA, Corpus, Scale

TOKENS_A_PARAMETER = 10.0  # half of what Hoffmann et al. 2022 found best: shapes differ earlier
STEPS = (200, 20_000)
SEEDS = 3
LEAST_BLOCKS = 6_000.0  # parameters of the smallest networks worth training
SEVERAL_SIZES = 5.0  # minutes from which on depths are compared at several sizes
SIZES = (1.0, 0.5, 0.25)  # of the check's block parameters
SHARE_OF_TIME = 0.85  # that training is planned for: the rest starts workers and evaluates
BISECTIONS = 40


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
        return Speed(
            seconds_a_layer=factor * self.seconds_a_layer,
            flops_per_second=self.flops_per_second / factor,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Design:
    """What all runs of a check share; with a plan it decides every one of them."""

    share: float  # of the plan's block parameters
    steps: int
    sizes: tuple[float, ...]  # at which depths are compared, the largest first
    scale: Scale  # whose recipe is used: smoke on a CPU, small on a GPU
    context: int

    def asked(self, network: Network, size: float) -> AskedRun:
        """The network at one of the sizes."""
        width = width_at(network.depth, size * network.block_params)
        return replace(
            base(self.scale),
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


def check_cells(plan: Plan, design: Design, corpora: Mapping[str, Corpus]) -> tuple[CheckCell, ...]:
    """The cells whose data are there; `corpora` by the label of their tokens."""
    return tuple(
        CheckCell(
            network=network,
            size=size,
            cell=Cell(corpus=corpora[network.tokens.label], asked=design.asked(network, size)),
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
        needed = _seconds(plan, _long_enough(plan, replace(start, share=share)), speed)
        return SEEDS * needed <= SHARE_OF_TIME * seconds * workers

    return _long_enough(plan, replace(start, share=_largest(fits, least)))


def _largest(fits: Callable[[float], bool], least: float) -> float:
    """The largest share from `least` to 1 that fits; the least, if none does."""
    if fits(1.0):
        return 1.0
    low, high = least, 1.0
    for _ in range(BISECTIONS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _long_enough(plan: Plan, design: Design) -> Design:
    """The design with as many steps as its parameters ask for."""
    spec = _counted(plan, design)[0]
    positions = spec.recipe.batch_sequences * spec.architecture.context
    wanted = round(TOKENS_A_PARAMETER * spec.architecture.params / positions)
    return replace(design, steps=min(max(STEPS[0], wanted), STEPS[1]))


def _seconds(plan: Plan, design: Design, speed: Speed) -> float:
    return sum(speed.seconds(spec) for spec in _counted(plan, design))


def _counted(plan: Plan, design: Design) -> Sequence[RunSpec]:
    """The runs of one seed, before data are prepared for them."""
    return [
        design.asked(network, size).spec(vocab=network.rows, data_hash=NO_DATA, seed=0)
        for network, size in _sized(plan, design)
    ]
