"""Attention by our kernels, as a function with a gradient, and the tiles that they are given.

row_kernels.py says when kernels are used. Shape letters: B batch, N positions, H heads (in `qkv`:
queries of all heads, keys of all groups, values of all groups), K head_dim.
"""

import torch
import triton
from torch import Tensor

from archfit.model.attention_kernels import (
    forward_kernel,
    key_backward_kernel,
    query_backward_kernel,
    tile_backward_kernel,
)
from archfit.model.rotary_kernels import Turn, turn_back, turned_heads
from archfit.model.tiles import HeadShape, alignment, cut, power_of_two, share_sums

# For heads of at most so many columns the fastest tiles of those tried on an H200
# (docs/performance.md): queries and keys of one, warps and stages forwards, then for the gradients
# of queries and for those of keys, which share rows of sums and so have equally many rows.
TILES = {
    32: ((64, 64, 4, 1), (64, 64, 4, 1), (64, 64, 4, 1)),
    64: ((64, 32, 4, 2), (64, 32, 4, 2), (64, 64, 4, 1)),
    128: ((64, 64, 4, 1), (64, 32, 4, 2), (64, 64, 4, 1)),
    256: ((64, 32, 4, 2), (32, 32, 4, 2), (32, 32, 4, 1)),
    512: ((32, 32, 8, 2), (32, 16, 8, 2), (32, 16, 8, 2)),  # fits 99 kB, what some GPUs have
}
# A context that fits one tile: its positions, the columns of a head, those of a chunk, and launch.
LONGEST, NARROWEST, LONGEST_CHUNK = 128, 129, 64
TILE_LAUNCH = {"num_warps": 8, "num_stages": 2}

Tile = tuple[int, int, int, int]


def _tiles(shape: HeadShape) -> tuple[Tile, Tile, Tile]:
    columns = sum(cut(shape.head_dim))
    return next(tiles for most, tiles in TILES.items() if most >= columns)


def _fits_one_tile(shape: HeadShape) -> bool:
    """Whether one kernel makes all gradients; not of heads that share keys and values."""
    is_wide = shape.head_dim >= NARROWEST
    return is_wide and shape.positions <= LONGEST and shape.groups == shape.heads


def gradient_tiles(shape: HeadShape, batch: int) -> int:
    """Tiles of rows backwards, each with a share of the bias's gradient."""
    rows = shape.positions if _fits_one_tile(shape) else _tiles(shape)[1][0]
    return int(batch * triton.cdiv(shape.positions, rows))


def attention_forward(
    qk_BNHK: Tensor, qkv_BNHK: Tensor, scale: float, shape: HeadShape
) -> tuple[Tensor, Tensor]:
    """Attention's output, and log2 of the sum of each query's powers; queries and keys are read
    from `qk`, which may be `qkv`."""
    batch = len(qkv_BNHK)
    out = qkv_BNHK.new_empty(batch, shape.positions, shape.heads, shape.head_dim)
    log_sums = out.new_empty(batch, shape.heads, shape.positions, dtype=torch.float32)
    (queries, keys, warps, stages), _, _ = _tiles(shape)
    forward_kernel[(triton.cdiv(shape.positions, queries) * batch * shape.heads,)](
        qk_BNHK, qkv_BNHK, out, log_sums, scale, **shape.tile(is_halved=False),
        read_heads=qk_BNHK.shape[2], CAUSAL=shape.is_causal, QUERIES=queries, KEYS=keys,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out, log_sums


def attention_backward(qk_BNHK, qkv_BNHK, made, d_out, scale, shape, shares):
    """The gradient of what was read, like `qkv`, and if that has a bias the sums of its columns
    over each tile of rows, in their place where there is one. `made` is what came out."""
    (out, log_sums), batch, sums = made, len(qkv_BNHK), shares
    if shape.has_bias and shares is None:
        tiles = gradient_tiles(shape, batch)
        sums = qkv_BNHK.new_empty(tiles, *qkv_BNHK.shape[2:], dtype=torch.float32)
    d_qkv, sizes = torch.empty_like(qkv_BNHK), {"read_heads": qk_BNHK.shape[2]}
    sizes["CAUSAL"] = shape.is_causal
    if _fits_one_tile(shape):
        tile_backward_kernel[(batch * shape.heads,)](
            qk_BNHK, qkv_BNHK, log_sums, d_out, d_qkv, sums, scale,
            shape.positions, shape.heads, shape.head_dim, **sizes,
            BLOCK=power_of_two(16, shape.positions),
            CHUNK=min(LONGEST_CHUNK, power_of_two(16, shape.head_dim)),
            ALIGN=alignment(shape.head_dim), **TILE_LAUNCH,
        )  # fmt: skip
        return d_qkv, sums
    _, (own, keys, *query_launch), (_, queries, *key_launch) = _tiles(shape)
    blocks, levels = triton.cdiv(shape.positions, own), torch.empty_like(log_sums)
    sizes |= shape.tile(is_halved=False)
    query_backward_kernel[(blocks * batch * shape.heads,)](
        qk_BNHK, qkv_BNHK, out, log_sums, d_out, d_qkv, levels, sums, scale, **sizes,
        OWN=own, OTHER=keys, num_warps=query_launch[0], num_stages=query_launch[1],
    )  # fmt: skip
    key_backward_kernel[(blocks * batch * shape.groups,)](
        qk_BNHK, qkv_BNHK, log_sums, d_out, d_qkv, levels, sums, scale, **sizes,
        OWN=own, OTHER=queries, num_warps=key_launch[0], num_stages=key_launch[1],
    )  # fmt: skip
    return d_qkv, sums


class _FusedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv_BNHK, bias, angles, query_weight, key_weight, scale, shape):
        qk_BNHK = qkv_BNHK = qkv_BNHK.contiguous()
        turn = None if angles is None else Turn(angles, query_weight, key_weight)
        if turn is not None:
            qk_BNHK = turned_heads(qkv_BNHK, turn, shape)
        made = attention_forward(qk_BNHK, qkv_BNHK, scale, shape)
        ctx.save_for_backward(qkv_BNHK, qk_BNHK, *made)
        ctx.scale, ctx.shape, ctx.turn = scale, shape, turn
        ctx.shares = [getattr(weight, "shares", None) for weight in (bias, query_weight)]
        return made[0]

    @staticmethod
    def backward(ctx, d_out):
        qkv_BNHK, qk_BNHK, *made = ctx.saved_tensors
        d_out, (for_bias, for_norms) = d_out.contiguous(), ctx.shares
        d_qkv, sums = attention_backward(
            qk_BNHK, qkv_BNHK, made, d_out, ctx.scale, ctx.shape, for_bias
        )
        d_bias = None if sums is None or sums is for_bias else share_sums(sums).flatten()
        sums, d_norms = None, (None, None)
        if ctx.turn is not None:
            sums = turn_back(d_qkv, qkv_BNHK, ctx.turn, ctx.shape, for_norms)
        if sums is not None and sums is not for_norms:
            d_norms = tuple(share_sums(sums))
        return d_qkv, d_bias, None, *d_norms, None, None


def fused_attention(
    qkv_BNHK: Tensor,
    bias: Tensor | None,
    heads: int,
    scale: float,
    turn: Turn | None,
    *,
    is_causal: bool,
    true_head_dim: int,
) -> Tensor:
    """softmax(scale q k^T) v of every head, B N H K; queries and keys are turned if asked.

    `bias` is the one that `qkv` has in it. Its gradient is made here, where the gradient of `qkv`
    is at hand, so the projection must not make it, too.
    """
    _, positions, all_heads, head_dim = qkv_BNHK.shape
    sizes = positions, heads, (all_heads - heads) // 2, head_dim, true_head_dim
    shape = HeadShape(*sizes, is_causal, bias is not None)
    return _FusedAttention.apply(qkv_BNHK, bias, *(turn or (None,) * 3), scale, shape)
