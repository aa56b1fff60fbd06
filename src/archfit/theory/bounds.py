"""All bounds for one architecture, the best proved pair first, and where the depth stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from archfit.theory.applicable import lower_bounds, upper_bounds
from archfit.theory.bound import Bound, real
from archfit.theory.catalogue import NETWORK, Json
from archfit.theory.counting import symmetric_entries
from archfit.theory.shape import Shape
from archfit.theory.upper_statistics_vocabulary import count_variables


@dataclass(frozen=True, kw_only=True, slots=True)
class Regime:
    """Where the depth stands against the two thresholds of the width the inputs can use."""

    paper_threshold: Decimal
    corrected_threshold: Decimal
    name: str

    def as_json(self) -> dict[str, Json]:
        """The regime as `archfit bounds --json` prints it."""
        return {
            "name": self.name,
            "paper_threshold": str(self.paper_threshold),
            "paper_threshold_is": "log3(width), where the papers say that depth stops paying",
            "corrected_threshold": str(self.corrected_threshold),
            "corrected_threshold_is": "2 log3(width) + log3(2), to where the proved upper bound "
            "grows doubly exponentially in depth",
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundsReport:
    """Everything known about the separation rank of one shape."""

    shape: Shape
    regime: Regime
    bounds: tuple[Bound, ...]  # the best proved pair first
    saturation: Decimal

    @property
    def lower(self) -> Bound:
        """The best lower bound that holds."""
        return self.bounds[0]

    @property
    def upper(self) -> Bound:
        """The best upper bound that holds."""
        return self.bounds[1]

    def as_json(self) -> dict[str, Json]:
        """The document that `archfit bounds --json` prints."""
        shape = self.shape
        inputs: dict[str, Json] = {
            "depth": shape.depth,
            "width": shape.width,
            "heads": shape.heads,
            "head_dim": shape.head_dim,
            "positions": shape.positions,
            "vocab": shape.vocab,
            "rank": shape.rank,
            "position_rank": shape.position_rank,
            "residual": shape.residual,
        }
        return {
            "inputs": inputs,
            "embedding_rank": shape.embedding_rank,
            "network": NETWORK,
            "regime": self.regime.as_json(),
            "lower": self.lower.as_json(),
            "upper": self.upper.as_json(),
            "bounds": [bound.as_json() for bound in self.bounds],
            "saturation": {"share": f"{self.saturation:.6g}", "is": SATURATION_IS},
            "notes": list(notes(shape)),
        }


SATURATION_IS = (
    "log3 of the statistics upper bound over its large-depth slope times depth: "
    "a reading of an upper bound, not advice"
)


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
    return BoundsReport(
        shape=shape,
        regime=regime(shape.depth, shape.embedding_rank),
        bounds=(lower, upper, *rest),
        saturation=_saturation(shape),
    )


def regime(depth: int, width: int) -> Regime:
    """Where `depth` stands for a network that can use `width` dimensions."""
    if 3**depth < width:
        name = "below both thresholds: the bounds grow doubly exponentially in depth"
    elif 3**depth < 2 * width**2:
        name = (
            "between the thresholds: past log3(width) of the papers, below the point where the "
            "proved upper bound levels off"
        )
    else:
        name = "above both thresholds: the proved upper bound grows linearly in depth"
    return Regime(
        paper_threshold=real("depth_threshold", {"d_x": width}),
        corrected_threshold=real("depth_threshold_corrected", {"d_x": width}),
        name=name,
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
    if shape.vocab is not None:
        yield (
            "lower bounds for a vocabulary need one far larger than its rank, or long sequences "
            "(lb_vocab_min_V, lemma7_N); those whose condition is not met are left out"
        )
    if shape.residual and shape.positions is None:
        yield "the papers' bounds for residual networks need --positions"


def _saturation(shape: Shape) -> Decimal:
    """log3 of the statistics bound over (its number of statistics) times depth."""
    L, r = shape.depth, shape.embedding_rank
    if shape.vocab is not None and shape.position_rank == 0:
        slope = count_variables(L, shape.vocab, r) - 1
        log = real("ub_stat_vocab_log3", {"L": L, "V": shape.vocab, "r": r})
    elif shape.is_rank_limited and shape.position_rank > 0:
        slope = symmetric_entries(r) + r * shape.position_rank
        log = real("ub_stat_pos_log3", {"L": L, "r": r, "r_e": shape.position_rank})
    else:
        slope = symmetric_entries(r)
        log = real("ub_stat_simple_log3", {"L": L, "d_x": r})
    return log / (max(slope, 1) * L)
