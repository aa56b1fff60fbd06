"""Widths that give networks of different depths the same size."""

import math
from dataclasses import replace

from archfit.spec import Architecture


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


def width_beside(block_params: int, *, depth: int, heads: int, head_dim: int, multiple: int) -> int:
    """The width whose blocks come nearest to that many weights where the heads keep their size.

    N = L (4 d H d_a + 2 multiple d^2)
    """

    def size(width: int) -> int:
        return depth * (4 * width * heads * head_dim + 2 * multiple * width**2)

    # The root of the quadratic, rounded down; whole numbers, since sizes may pass 2^53.
    inner, square = 2 * heads * head_dim, 2 * multiple
    target = block_params // depth
    below = (
        (math.isqrt(inner**2 + square * target) - inner) // square
        if square
        else target // (2 * inner)
    )
    return min(
        (max(1, below), max(1, below) + 1), key=lambda width: abs(size(width) - block_params)
    )


def resized(shape: Architecture, block_params: int, *, depth: int) -> Architecture:
    """The shape at another depth, as wide as that many block weights allow, its ratios kept."""
    width = width_for(
        block_params,
        depth=depth,
        heads=shape.heads,
        attention_ratio=shape.attention_ratio,
        multiple=shape.feed_forward_multiple,
    )
    head_dim = max(1, round(shape.attention_ratio * width / shape.heads))
    return replace(shape, depth=depth, width=width, head_dim=head_dim)
