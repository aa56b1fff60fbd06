"""A network inside a slightly larger one, whose sizes a GPU is fast at.

Rows are read 16 bytes at a time where they begin at such steps, and products take such rows on a
faster path. So a narrow network lives in one whose width, hidden units and heads are multiples of
8. The weights around it are zero and stay zero, since their gradients are; norms and scales are
those of the network inside. Files hold the network inside alone.

Heads are widened at the end of each half, because rotary positions turn halves together.
"""

from dataclasses import replace

from torch import Tensor

from archfit.spec import Architecture, Full

MULTIPLE = 8

Sides = tuple[tuple[int, ...], tuple[int, ...]]  # how one side is cut, inside and in all


def widened(architecture: Architecture) -> Architecture:
    """The larger network; the same one if its sizes are multiples already."""
    width, head_dim = _up(architecture.width), _up(architecture.head_dim)
    hidden = _up(architecture.feed_forward)
    return replace(architecture, width=width, head_dim=head_dim, feed_forward=hidden)


def _up(size: int) -> int:
    return size + -size % MULTIPLE


def part_inside(name: str, tensor: Tensor, inside: Architecture) -> Tensor:
    """The part of a weight, or of something of its shape, that belongs to the network inside.

    It is a view, and may have more dimensions than the weight: a side of heads has two or three.
    """
    if not tensor.ndim:  # a count of steps
        return tensor
    sides = _sides(name, tuple(tensor.shape), inside)
    slices = tuple(slice(size) for sizes, _ in sides for size in sizes)
    return tensor.view([size for _, sizes in sides for size in sizes])[slices]


def _sides(name: str, shape: tuple[int, ...], inside: Architecture) -> list[Sides]:
    """The sides of a weight, by its name."""
    layer, kind = ("", *name.split("."))[-2:]
    width: Sides = ((inside.width,), (_up(inside.width),))
    units: Sides = ((inside.feed_forward,), (_up(inside.feed_forward),))
    first: Sides = (shape[:1], shape[:1])  # as many as in the larger network
    match layer, kind:
        case "qkv", _:
            rows = _heads(inside.heads + 2 * inside.key_value_heads, inside)
            return [rows, width][: len(shape)]
        case "out", "weight":
            return [width, _heads(inside.heads, inside)]
        case "up", _:
            parts = () if inside.block == "gpt2" else (2,)  # gates and values
            return [((*parts, *units[0]), (*parts, *units[1])), width][: len(shape)]
        case "down", "weight":
            return [width, units]
        case "query_norm" | "key_norm", _:
            return [_heads(1, inside)]
        case _, "mix_ID":
            return [first, width]
        case _, "rows_RI":
            tables = {"tokens": inside.embedding, "positions": inside.positions}
            is_full = isinstance(tables.get(layer, inside.head), Full)
            return [first, width if is_full else (shape[1:], shape[1:])]
        case _:  # norms, and biases of what is added to the stream
            return [width]


def _heads(count: int, inside: Architecture) -> Sides:
    dim = inside.head_dim
    if dim % 2:
        return (count, dim), (count, _up(dim))
    return (count, 2, dim // 2), (count, 2, _up(dim) // 2)
