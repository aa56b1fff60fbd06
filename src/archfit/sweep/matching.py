"""Widths that give networks of different depths or vocabularies the same size."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from archfit.spec.run_options import RunOptions
from archfit.spec.search import first_whole


def width_for(block_params: int, *, depth: int, heads: int, attention_ratio: float = 1.0) -> int:
    """The width, a multiple of `heads`, whose blocks of GPT-2 come nearest to that many weights.

    N = L d^2 (4 ratio + 8),   in the papers 12 L d^2
    """
    exact = math.sqrt(block_params / (depth * (4 * attention_ratio + 8)))
    below = max(heads, math.floor(exact / heads) * heads)
    # Sizes grow with the square of the width, so the nearer size is not always the nearer width.
    sizes = {width: width**2 / exact**2 for width in (below, below + heads)}
    return min(sizes, key=lambda width: abs(sizes[width] - 1))


def nearest_width(size: Callable[[int], int], target: int, *, step: int) -> int:
    """The multiple of `step` whose size, which grows with it, comes nearest to the target."""
    most = 1
    while size(most * step) < target:  # not beyond: no network has a width of billions
        most *= 2
    above = step * first_whole(lambda number: size(number * step) >= target, 1, most)
    candidates = (above - step, above) if above > step else (above,)
    return min(candidates, key=lambda width: abs(size(width) - target))


def equal_blocks(options: RunOptions, *, depth: int, block_params: int) -> RunOptions:
    """The network at this depth, as wide as that many weights in blocks allow."""
    options = replace(options, depth=depth)
    return replace(options, width=matched_width(options, block_params))


def block_size(options: RunOptions, width: int) -> int:
    """Weights in blocks of the network at this width; what it reads does not count."""
    return replace(options, width=width).architecture(vocab=2).block_params


def matched_width(options: RunOptions, block_params: int) -> int:
    """The width whose blocks come nearest to that many weights."""
    step = 1 if options.head_dim else width_step(options)
    return nearest_width(lambda width: block_size(options, width), block_params, step=step)


def width_step(options: RunOptions) -> int:
    """What the width is a multiple of where heads divide it: rotary positions need even heads."""
    return max(1, options.heads) * (2 if options.block == "llama" else 1)


def equal_total(options: RunOptions, *, vocab: int, params: int) -> RunOptions:
    """The network as it is but for its width, which all its parameters together allow."""

    def total(width: int) -> int:
        return replace(options, width=width).architecture(vocab).params

    return replace(options, width=nearest_width(total, params, step=width_step(options)))


def ranks_below(limit: int, ranks: Sequence[int]) -> tuple[int, ...]:
    """Those that are a limit; where a small vocabulary leaves none, the smallest there are."""
    below = tuple(rank for rank in ranks if rank < limit)
    return below or tuple(rank for rank in (1, 2, 4)[: len(ranks)] if rank < limit)
