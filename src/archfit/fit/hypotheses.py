"""What a claim assumes, checked on the networks that are to decide it.

A hypothesis is a quantity of a network with the range that the claim was made for; both stand in
`resources/evidence/claims.toml`. Networks outside of it neither confirm nor refute.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from archfit.spec import Architecture

QUANTITIES: Mapping[str, Callable[[Architecture], float]] = {
    "depth": lambda shape: shape.depth,
    "width": lambda shape: shape.width,
    "positions": lambda shape: shape.context,
    "block weights": lambda shape: shape.block_params,
    "depth less log3 of the width": lambda shape: shape.depth - math.log(shape.width, 3),
    "rank less heads": lambda shape: shape.embedding_rank - shape.heads,
    "width less rank": lambda shape: shape.width - shape.embedding_rank,
    "hidden units over attention": lambda s: s.feed_forward / (s.heads * s.head_dim),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedHypothesis:
    """A hypothesis, and the first of the networks that it does not hold for."""

    says: str
    holds: bool
    outside: str  # empty where it holds

    def __str__(self) -> str:
        return f"{self.says}: {'holds' if self.holds else f'not so for {self.outside}'}"


def checked(table: Mapping[str, object], shapes: Iterable[Architecture]) -> CheckedHypothesis:
    """The hypothesis of one entry of the table for these networks."""
    quantity, low, high = QUANTITIES[str(table["quantity"])], table["least"], table["most"]
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    out = next((shape for shape in shapes if not low <= quantity(shape) <= high), None)
    words = f"{out.depth} x {out.width} ({quantity(out):.3g})" if out else ""
    return CheckedHypothesis(says=str(table["says"]), holds=out is None, outside=words)
