"""Gradients of the weights in blocks: shares of them everywhere, added up once at the end.

Such a gradient is a sum over all rows of a batch, which many programs make part by part. Alone on a
GPU a network has one place for the parts of all its weights, and one kernel adds them up when the
backward pass is over: in a small network every kernel costs some microseconds, however little it
does. Each number has one writer.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.attention_kernels import gradient_tiles
from archfit.model.feed_forward_kernels import bias_shares
from archfit.model.product_kernels import is_narrow, product_count
from archfit.model.rotary_kernels import turn_tiles
from archfit.model.row_kernels import norm_programs
from archfit.model.tiles import HeadShape
from archfit.model.transformer import Block, SoftmaxTrunk, Transformer

SUMMED = {"tall": (256, 16), "flat": (32, 128)}  # shares and columns of a program that adds up
TALL = 65  # shares from which a place is tall


@triton.jit
def _add_up(parts, sums, table, SHARES: tl.constexpr, COLUMNS: tl.constexpr):
    table += tl.program_id(0) * 5
    place, shares, stride = tl.load(table), tl.load(table + 1), tl.load(table + 2)
    goal, columns = tl.load(table + 3), tl.load(table + 4)
    column = tl.arange(0, COLUMNS)
    total = tl.zeros((SHARES, COLUMNS), tl.float32)
    for first in range(0, shares, SHARES):
        share = first + tl.arange(0, SHARES)
        inside = (share < shares)[:, None] & (column < columns)[None, :]
        total += tl.load(parts + place + share[:, None] * stride + column[None, :], inside, 0.0)
    tl.store(sums + goal + column, tl.sum(total, 0), column < columns)


class Place(NamedTuple):
    """Room for the shares of weights whose gradients one kernel makes."""

    shares: int
    owner: Tensor  # at which that kernel finds it, and the first of the weights
    others: tuple[Tensor | None, ...] = ()  # side by side, equally long; some may not exist

    @property
    def columns(self) -> int:
        """Numbers of a share."""
        return (1 + len(self.others)) * self.owner.numel()


class GradientShares:
    """The places of all weights in blocks, and their sums."""

    def __init__(self, model: Transformer, batch: int) -> None:
        self.places = [*_places(model, batch)]
        device = self.places[0].owner.device
        numbers = [place.shares * place.columns for place in self.places]
        columns = [place.columns for place in self.places]
        self.parts = torch.zeros(sum(numbers), device=device)
        self.sums = torch.zeros(sum(columns), device=device)
        self.gradients: list[tuple[Tensor, Tensor]] = []
        rows: dict[str, list[tuple[int, ...]]] = {kind: [] for kind in SUMMED}
        for place, part, goal in zip(
            self.places, self.parts.split(numbers), self.sums.split(columns), strict=True
        ):
            shares, owner, others = place
            owner.shares = part.view(shares, -1, *owner.shape)  # type: ignore[attr-defined]
            weights = zip((owner, *others), goal.view(-1, *owner.shape), strict=True)
            self.gradients += [(weight, each) for weight, each in weights if weight is not None]
            at, to, length = part.storage_offset(), goal.storage_offset(), len(goal)
            kind = "tall" if shares >= TALL else "flat"
            rows[kind] += [
                (at + first, shares, length, to + first, length - first)
                for first in range(0, length, SUMMED[kind][1])
            ]
        self.tables = {
            kind: torch.tensor(found, dtype=torch.int64, device=device)
            for kind, found in rows.items()
        }

    def add_up(self) -> None:
        """Make the gradients of all weights that have a place."""
        for kind, table in self.tables.items():
            shares, columns = SUMMED[kind]
            _add_up[(len(table),)](self.parts, self.sums, table, SHARES=shares, COLUMNS=columns)
        for weight, gradient in self.gradients:
            weight.grad = gradient

    def remove(self) -> None:
        """Let each layer make its gradients itself again."""
        for _, owner, _ in self.places:
            del owner.shares  # type: ignore[attr-defined]


def _places(model: Transformer, batch: int) -> Iterator[Place]:
    """All of them; a norm also makes the gradient of the bias of the branch that it adds."""
    shape, trunk, heads = model.architecture, model.trunk, HeadShape.of(model.architecture)
    assert isinstance(trunk, SoftmaxTrunk)
    rows, branch_bias = batch * shape.context, None
    norm_shares = norm_programs(rows, shape.width, trunk.norm.weight.device)
    for block in trunk.blocks:
        assert isinstance(block, Block)
        attention, feed_forward = block.attention, block.feed_forward
        for norm, bias in (
            (block.attention_norm, branch_bias),
            (block.feed_forward_norm, attention.out.bias),
        ):
            yield Place(norm_shares, norm.weight, (norm.bias, bias))
        branch_bias = feed_forward.down.bias
        if attention.query_norm is not None and attention.key_norm is not None:
            norms = attention.query_norm.weight, attention.key_norm.weight
            yield Place(turn_tiles(heads, batch), norms[0], norms[1:])
        if attention.qkv.bias is not None:
            yield Place(gradient_tiles(heads, batch), attention.qkv.bias)
        if feed_forward.up.bias is not None:
            count = bias_shares(rows, shape.width, shape.feed_forward)
            yield Place(count, feed_forward.up.bias)
        for layer in (attention.qkv, attention.out, feed_forward.up, feed_forward.down):
            if is_narrow(*layer.weight.shape):
                yield Place(product_count(layer.weight, rows), layer.weight)
    yield Place(norm_shares, trunk.norm.weight, (trunk.norm.bias, branch_bias))
