"""All bounds for one architecture, the best proved pair first, and where the depth stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from archfit.theory.arithmetic import digits, log3, symmetric_entries
from archfit.theory.causal_bounds import seen_statistics
from archfit.theory.lower_bounds import lower_bounds
from archfit.theory.shape import Bound, Shape
from archfit.theory.statistics_bounds import (
    count_variables,
    statistics_upper_bound,
    statistics_upper_bound_positions,
    statistics_upper_bound_vocabulary,
)
from archfit.theory.thresholds import depth_threshold
from archfit.theory.upper_bounds import upper_bounds


@dataclass(frozen=True, kw_only=True, slots=True)
class Regime:
    """Where the depth stands against two numbers that the width the inputs can use gives."""

    paper_threshold: Decimal
    corrected_threshold: Decimal
    corrected_is: str
    name: str

    @property
    def corrected_threshold_is(self) -> str:
        """What the second number is, and what not."""
        return (
            f"{self.corrected_is}: up to this depth the upper bound grows doubly exponentially; no "
            "threshold of the network, for no lower bound is known to change there, too"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundsReport:
    """Everything known about the separation rank of one shape."""

    shape: Shape
    regime: Regime
    bounds: tuple[Bound, ...]  # the best proved pair first
    saturation: Decimal
    saturation_is: str

    @property
    def lower(self) -> Bound:
        """The best lower bound that holds."""
        return self.bounds[0]

    @property
    def upper(self) -> Bound:
        """The best upper bound that holds."""
        return self.bounds[1]


def bounds_report(shape: Shape, witness_tries: int = 4) -> BoundsReport:
    """All bounds on the separation rank of this shape, best proved pair first.

    `witness_tries` plans are grown for the monomial witness, the only bound that is searched for.
    """
    found = [*lower_bounds(shape, witness_tries), *upper_bounds(shape)]
    trusted = [bound for bound in found if bound.status != "disputed"]
    lower = max((b for b in trusted if b.side == "lower"), key=lambda bound: bound.log3)
    upper = min((b for b in trusted if b.side == "upper"), key=lambda bound: bound.log3)
    rest = sorted(
        (bound for bound in found if bound is not lower and bound is not upper),
        key=lambda bound: (bound.status == "disputed", bound.side, bound.log3),
    )
    share, of = _saturation(shape, upper)
    return BoundsReport(
        shape=shape,
        regime=regime(shape),
        bounds=(lower, upper, *rest),
        saturation=share,
        saturation_is=f"{of}: a reading of an upper bound, not advice",
    )


def regime(shape: Shape) -> Regime:
    """Where the depth stands for a network that can use so many dimensions as its inputs have."""
    width, bend, formula = shape.embedding_rank, 2 * shape.embedding_rank**2, "2 log3(d) + log3(2)"
    growth = "linearly in depth"
    if shape.causal:
        bend = 4 * seen_statistics(shape.masked)[0]
        formula = "log3(4 m_0), m_0 the numbers of the prefix that the first layer uses"
        growth = "with the square of depth"
    paper, corrected = depth_threshold(width), digits(lambda: log3(bend))
    if 3**shape.depth < width:
        name = f"below log3({width}) = {paper:.1f}: both bounds grow doubly exponentially in depth"
    elif 3**shape.depth < bend:
        name = (
            f"past log3({width}) = {paper:.1f}, where a disputed theorem says depth stops paying; "
            f"up to {corrected:.1f} the upper bound grows doubly exponentially, so that by it more "
            "layers may still help"
        )
    else:
        name = (
            f"past {corrected:.1f}, up to which the upper bound grows doubly exponentially; from "
            f"there on its logarithm grows {growth}, and further layers may add less"
        )
    return Regime(
        paper_threshold=paper, corrected_threshold=corrected, corrected_is=formula, name=name
    )


def notes(shape: Shape) -> Iterator[str]:
    """What a reader of the bounds must know about this shape."""
    if shape.head_dim is None and shape.width % shape.heads:
        yield (
            f"heads={shape.heads} does not divide width={shape.width}; upper bounds use the "
            f"formula as it stands, lower bounds a network with heads of {shape.blocks[1]}"
        )
    if shape.positions is None:
        yield "upper bounds hold for every length; lower bounds for sequences long enough"
    if shape.causal:
        yield "a mask can raise the rank: bounds of the unmasked network do not hold under it"
    elif shape.vocab is not None:
        yield (
            "lower bounds for a vocabulary need one far larger than its rank, or long sequences "
            "(lb_vocab_min_V, lemma7_N); those whose condition is not met are left out"
        )
    if shape.residual and shape.positions is None:
        yield "the papers' bounds for residual networks need --positions"


def _saturation(shape: Shape, upper: Bound) -> tuple[Decimal, str]:
    """log3 of the upper bound over what it grows like at large depth, and in words."""
    L, r = shape.depth, shape.embedding_rank
    if shape.causal:
        growth = Decimal(max(1, seen_statistics(shape.masked)[0])) * L**2 / 2
        return upper.log3 / growth, "log3 of the upper bound over m_0 L^2 / 2, as it grows in depth"
    if shape.vocab is not None and shape.position_rank == 0:
        slope = count_variables(shape.vocab, r) - 1
        log = statistics_upper_bound_vocabulary.log3(L, shape.vocab, r)
    elif shape.is_rank_limited and shape.position_rank > 0:
        slope = symmetric_entries(r) + r * shape.position_rank
        log = statistics_upper_bound_positions.log3(L, r, shape.position_rank)
    else:
        slope = symmetric_entries(r)
        log = statistics_upper_bound.log3(L, r)
    words = "log3 of the statistics upper bound over its large-depth slope times depth"
    return log / (max(slope, 1) * L), words
