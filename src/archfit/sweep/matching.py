"""Widths that give networks of different depths or vocabularies the same size."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from archfit.spec.run_options import RunOptions
from archfit.spec.search import first_whole


def width_for(
    block_params: int, *, depth: int, heads: int, attention_ratio: float = 1.0, multiple: int = 4
) -> int:
    """The width, a multiple of `heads`, whose blocks come nearest to that many weights.

    N = L d^2 (4 ratio + 2 multiple),   in the papers 12 L d^2
    """
    exact = math.sqrt(block_params / (depth * (4 * attention_ratio + 2 * multiple)))
    below = max(heads, math.floor(exact / heads) * heads)
    # Sizes grow with the square of the width, so the nearer size is not always the nearer width.
    sizes = {width: width**2 / exact**2 for width in (below, below + heads)}
    return min(sizes, key=lambda width: abs(sizes[width] - 1))


def nearest_width(size: Callable[[int], int], target: int, *, step: int) -> int:
    """The multiple of `step` whose size comes nearest to the target.

    Sizes count weights, so that they grow with the width and are no smaller than it.
    """
    above = step * first_whole(lambda number: size(number * step) >= target, 1, max(1, target))
    candidates = (above - step, above) if above > step else (above,)
    return min(candidates, key=lambda width: abs(size(width) - target))


def equal_blocks(options: RunOptions, *, depth: int, block_params: int) -> RunOptions:
    """The network at this depth, as wide as that many weights in blocks allow."""
    width = width_for(block_params, depth=depth, heads=options.heads)
    return replace(options, depth=depth, width=width)


def equal_total(options: RunOptions, *, vocab: int, params: int) -> RunOptions:
    """The network as it is but for its width, which all its parameters together allow."""

    def total(width: int) -> int:
        return replace(options, width=width).architecture(vocab).params

    return replace(options, width=nearest_width(total, params, step=options.heads))


def ranks_below(limit: int, ranks: Sequence[int]) -> tuple[int, ...]:
    """Those that are a limit; where a small vocabulary leaves none, the smallest there are."""
    below = tuple(rank for rank in ranks if rank < limit)
    return below or tuple(rank for rank in (1, 2, 4)[: len(ranks)] if rank < limit)
