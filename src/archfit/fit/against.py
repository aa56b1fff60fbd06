"""One network against others of the same experiment, whatever they read."""

from collections.abc import Sequence
from dataclasses import dataclass

from archfit.fit.cells import Cell
from archfit.fit.comparison import in_bits
from archfit.fit.noise import Noise, noise_among
from archfit.fit.power import seeds_needed
from archfit.fit.resample import TAIL


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The bits per byte of `other` less those of `reference`."""

    reference: Cell
    other: Cell
    bits_per_byte: float
    low: float
    high: float
    seeds: int  # the fewer
    seeds_needed: int | None  # to settle it; None where it is settled, or above 1000

    @property
    def is_worse(self) -> bool:
        """Whether the other is worse than the reference."""
        return self.low > 0

    @property
    def is_better(self) -> bool:
        """Whether it is better."""
        return self.high < 0


def differences(
    reference: Cell, others: Sequence[Cell], *, pooled: Sequence[Cell], among: int
) -> tuple[Difference, ...]:
    """Each of the others against the reference, with intervals that hold together at 90 %.

    Bonferroni over `among` comparisons: more than are made here, if the reference was itself
    chosen for its loss. The noise is that of the cells `pooled`.
    """
    noise = noise_among([in_bits(cell) for cell in pooled])
    if not noise.is_enough:
        raise ValueError(
            f"{noise.degrees} degrees of freedom are too few for an interval; train more seeds"
        )
    tail = TAIL / among
    return tuple(_difference(reference, other, noise, tail) for other in others)


def _difference(reference: Cell, other: Cell, noise: Noise, tail: float) -> Difference:
    both = in_bits(reference), in_bits(other)
    found, error = other.bits_per_byte - reference.bits_per_byte, noise.error(*both)
    half, seeds = noise.t(tail, *both) * error, min(reference.seeds, other.seeds)
    needed = seeds_needed(found, error, seeds, tail=tail) if abs(found) <= half else None
    return Difference(
        reference=reference,
        other=other,
        bits_per_byte=found,
        low=found - half,
        high=found + half,
        seeds=seeds,
        seeds_needed=None if needed is None else max(needed, seeds + 1),  # these did not settle it
    )
