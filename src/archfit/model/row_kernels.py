"""Triton kernels of norms and losses, which a GPU would otherwise read and write several times.

Narrow networks spend their time on memory traffic. In eager torch the sum of stream and branch,
its norm and the cast to bfloat16 are three passes over the stream, here one; backwards the same
pass also sums the gradients of the biases around it. The loss makes float32 copies of its logits.
Plain torch says beside each call what a kernel computes.

Imported only where there is a GPU and Triton. The tests' import hook is not asked for the files of
kernels: Triton compiles their source and cannot see through a wrapper.

Shape letters: B batch, N positions, D width, M rows, V vocabulary.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.layers import NORM_EPSILON
from archfit.model.tiles import alignment, busy_programs, power_of_two, share_sums

# Tile sizes are the fastest of those tried on an H200 (docs/performance.md).
NORM_PROGRAMS_A_PROCESSOR = 8
LONGEST_CHUNK = 4096  # logits that a program reads at a time
SIZES = ["rows", "width", "true_width", "vocab", "stride"]


@triton.jit(do_not_specialize=SIZES)
def _add_norm_forward(
    x, branch, branch_bias, weight, bias, total, normed, mean, inverse_std,
    rows, width, true_width, multiplier, epsilon,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    width = width // ALIGN * ALIGN
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    at = row[:, None].to(tl.int64) * width + column[None, :]
    own = column < width
    inside = (row < rows)[:, None] & own[None, :]
    value = tl.load(x + at, inside, 0.0).to(tl.float32)
    if branch is not None:
        added = tl.load(branch + at, inside, 0.0).to(tl.float32)
        if branch_bias is not None:
            added += tl.load(branch_bias + column, own, 0.0)[None, :]
        value += multiplier * added
        tl.store(total + at, value, inside)
    if bias is not None:
        mu = tl.sum(value, 1) / true_width
        tl.store(mean + row, mu, row < rows)
        value = value - mu[:, None]
    value = tl.where((column < true_width)[None, :], value, 0.0)
    scale = tl.rsqrt(tl.sum(value * value, 1) / true_width + epsilon)
    value *= scale[:, None] * tl.load(weight + column, own, 0.0)[None, :]
    if bias is not None:
        value += tl.load(bias + column, own, 0.0)[None, :]
    tl.store(normed + at, value, inside)
    tl.store(inverse_std + row, scale, row < rows)


@triton.jit(do_not_specialize=SIZES)
def _add_norm_backward(
    total, weight, mean, inverse_std, d_normed, d_total, d_x, d_branch, sums,
    rows, width, true_width, multiplier,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """`sums`: one program's share of the gradients of weight, bias and branch_bias."""
    width = width // ALIGN * ALIGN
    program, programs = tl.program_id(0), tl.num_programs(0)
    column = tl.arange(0, BLOCK)
    own = column < width
    gain = tl.load(weight + column, own, 0.0)
    weight_sum = tl.zeros((ROWS, BLOCK), tl.float32)
    bias_sum = tl.zeros((ROWS, BLOCK), tl.float32)
    branch_sum = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(program * ROWS, rows, programs * ROWS):
        row = first + tl.arange(0, ROWS)
        at = row[:, None].to(tl.int64) * width + column[None, :]
        inside = (row < rows)[:, None] & own[None, :]
        scale = tl.load(inverse_std + row, row < rows, 0.0)
        unit = tl.load(total + at, inside, 0.0).to(tl.float32)
        d_out = tl.load(d_normed + at, inside, 0.0).to(tl.float32)
        d_value = tl.load(d_total + at, inside, 0.0).to(tl.float32)
        if mean is not None:
            unit = unit - tl.load(mean + row, row < rows, 0.0)[:, None]
            bias_sum += d_out
        true = (column < true_width)[None, :]
        unit = tl.where(true, unit * scale[:, None], 0.0)
        weight_sum += d_out * unit
        d_unit = d_out * gain[None, :]
        slope = d_unit - unit * (tl.sum(d_unit * unit, 1) / true_width)[:, None]
        if mean is not None:
            slope -= (tl.sum(d_unit, 1) / true_width)[:, None]
        d_value += tl.where(true, slope * scale[:, None], 0.0)
        tl.store(d_x + at, d_value, inside)
        if d_branch is not None:
            tl.store(d_branch + at, d_value * multiplier, inside)
            branch_sum += d_value
    sums += program * 3 * width + column
    tl.store(sums, tl.sum(weight_sum, 0), own)
    tl.store(sums + width, tl.sum(bias_sum, 0), own)
    tl.store(sums + 2 * width, tl.sum(branch_sum, 0) * multiplier, own)


def _norm_tile(width: int, *, forwards: bool) -> dict[str, int]:
    """Few rows backwards, where a program also sums them: a warp alone waits for no other."""
    block = power_of_two(64, width)
    rows = max(1, (2048 if forwards else 1024) // block)
    warps = 1 if not forwards and block < 512 else 4
    return {"BLOCK": block, "ROWS": rows, "ALIGN": alignment(width), "num_warps": warps}


def norm_programs(rows: int, width: int, device: torch.device) -> int:
    """Programs backwards, each of which leaves its share of the gradients of weights."""
    tiles = triton.cdiv(rows, _norm_tile(width, forwards=False)["ROWS"])
    return int(min(tiles, busy_programs(device, NORM_PROGRAMS_A_PROCESSOR)))


class _FusedAddNorm(torch.autograd.Function):
    """Total, its norm, and for the way back mean and inverse deviation of each row."""

    @staticmethod
    def forward(ctx, x_BND, branch_BND, branch_bias, weight, bias, multiplier, true_width, dtype):
        x_BND = x_BND.contiguous()
        branch_BND = None if branch_BND is None else branch_BND.contiguous()
        rows, width = x_BND.numel() // x_BND.shape[-1], x_BND.shape[-1]
        total = x_BND if branch_BND is None else torch.empty_like(x_BND)
        normed = torch.empty_like(x_BND, dtype=dtype)
        inverse_std = torch.empty(rows, device=x_BND.device, dtype=torch.float32)
        mean = None if bias is None else torch.empty_like(inverse_std)
        tile = _norm_tile(width, forwards=True)
        _add_norm_forward[(triton.cdiv(rows, tile["ROWS"]),)](
            x_BND, branch_BND, branch_bias, weight, bias, total, normed, mean, inverse_std,
            rows, width, true_width, multiplier, NORM_EPSILON, **tile,
        )  # fmt: skip
        ctx.save_for_backward(total, weight, mean, inverse_std)
        ctx.true_width, ctx.multiplier = true_width, multiplier
        ctx.shares = getattr(weight, "shares", None)
        ctx.branch_dtype = None if branch_BND is None else branch_BND.dtype
        return total, normed

    @staticmethod
    def backward(ctx, d_total, d_normed):
        """Gradients of stream and branch, and of weight, bias and branch_bias where there is no
        place for their shares."""
        total, weight, mean, inverse_std = ctx.saved_tensors
        rows, width = inverse_std.numel(), total.shape[-1]
        programs, sums = norm_programs(rows, width, total.device), ctx.shares
        d_x, d_branch = torch.empty_like(total), None
        if ctx.branch_dtype is not None:
            d_branch = torch.empty_like(total, dtype=ctx.branch_dtype)
        if sums is None:
            sums = torch.empty((programs, 3, width), device=total.device, dtype=torch.float32)
        _add_norm_backward[(programs,)](
            total, weight, mean, inverse_std, d_normed.contiguous(), d_total.contiguous(),
            d_x, d_branch, sums, rows, width, ctx.true_width, ctx.multiplier,
            **_norm_tile(width, forwards=False),
        )  # fmt: skip
        d_weight, d_bias, d_branch_bias = (None,) * 3 if sums is ctx.shares else share_sums(sums)
        _, _, needs_branch_bias, _, needs_bias, *_ = ctx.needs_input_grad
        d_branch_bias = d_branch_bias if needs_branch_bias else None
        return d_x, d_branch, d_branch_bias, d_weight, d_bias if needs_bias else None, *(None,) * 3


def fused_add_norm(
    x_BND: Tensor,
    branch_BND: Tensor | None,
    branch_bias: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    multiplier: float,
    true_width: int,
) -> tuple[Tensor, Tensor]:
    """x + multiplier (branch + branch_bias) in x's precision, and its norm in that of the products
    around it: a layer norm, or without a bias an RMS norm. Columns from `true_width` are zeros."""
    in_autocast = torch.is_autocast_enabled("cuda")
    out_dtype = torch.get_autocast_dtype("cuda") if in_autocast else x_BND.dtype
    return _FusedAddNorm.apply(
        x_BND, branch_BND, branch_bias, weight, bias, multiplier, true_width, out_dtype
    )


@triton.jit(do_not_specialize=SIZES)
def _cross_entropy_forward(
    logits, targets, losses, log_sums, rows, vocab, stride,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    vocab, stride = vocab // ALIGN * ALIGN, stride // ALIGN * ALIGN
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    logits += row.to(tl.int64) * stride
    largest, total = tl.full((ROWS,), float("-inf"), tl.float32), tl.zeros((ROWS,), tl.float32)
    for first in range(0, vocab, BLOCK):
        column = first + tl.arange(0, BLOCK)
        inside = (row < rows)[:, None] & (column < vocab)[None, :]
        z = tl.load(logits[:, None] + column[None, :], inside, float("-inf")).to(tl.float32)
        z = tl.where((row < rows)[:, None], z, 0.0)
        larger = tl.maximum(largest, tl.max(z, 1))
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(z - larger[:, None]), 1)
        largest = larger
    log_sum = largest + tl.log(total)
    target = tl.load(targets + row, row < rows, 0)
    right = tl.load(logits + target, row < rows, 0.0).to(tl.float32)
    tl.store(losses + row, log_sum - right, row < rows)
    tl.store(log_sums + row, log_sum, row < rows)


@triton.jit(do_not_specialize=SIZES)
def _cross_entropy_backward(
    logits, targets, log_sums, d_losses, d_logits, rows, vocab, stride,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    vocab, stride = vocab // ALIGN * ALIGN, stride // ALIGN * ALIGN
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    logits += row.to(tl.int64) * stride
    d_logits += row.to(tl.int64) * vocab
    target = tl.load(targets + row, row < rows, 0)
    log_sum = tl.load(log_sums + row, row < rows, 0.0)
    d_loss = tl.load(d_losses + row, row < rows, 0.0)
    for first in range(0, vocab, BLOCK):
        column = first + tl.arange(0, BLOCK)
        inside = (row < rows)[:, None] & (column < vocab)[None, :]
        z = tl.load(logits[:, None] + column[None, :], inside, 0.0).to(tl.float32)
        is_right = column[None, :] == target[:, None]
        d_z = (tl.exp(z - log_sum[:, None]) - tl.where(is_right, 1.0, 0.0)) * d_loss[:, None]
        tl.store(d_logits[:, None] + column[None, :], d_z, inside)


def _loss_tile(vocab: int, stride: int) -> dict[str, int]:
    block = min(LONGEST_CHUNK, power_of_two(64, vocab))
    return {"ROWS": max(1, 1024 // block), "BLOCK": block, "ALIGN": alignment(vocab, stride)}


class _FusedCrossEntropy(torch.autograd.Function):
    """-ln p of each target; for the way back ln of the sum of each row's powers."""

    @staticmethod
    def forward(ctx, logits_MV, targets_M):
        (rows, vocab), stride = logits_MV.shape, logits_MV.stride(0)
        losses = torch.empty(rows, device=logits_MV.device, dtype=torch.float32)
        log_sums, tile = torch.empty_like(losses), _loss_tile(vocab, stride)
        _cross_entropy_forward[(triton.cdiv(rows, tile["ROWS"]),)](
            logits_MV, targets_M, losses, log_sums, rows, vocab, stride, **tile
        )
        ctx.save_for_backward(logits_MV, targets_M, log_sums)
        return losses

    @staticmethod
    def backward(ctx, d_losses_M):
        """The gradient of the logits, in their precision."""
        logits_MV, targets_M, log_sums = ctx.saved_tensors
        (rows, vocab), stride = logits_MV.shape, logits_MV.stride(0)
        d_logits = torch.empty((rows, vocab), device=logits_MV.device, dtype=logits_MV.dtype)
        tile = _loss_tile(vocab, stride)
        _cross_entropy_backward[(triton.cdiv(rows, tile["ROWS"]),)](
            logits_MV, targets_M, log_sums, d_losses_M.contiguous(), d_logits,
            rows, vocab, stride, **tile,
        )  # fmt: skip
        return d_logits, None


def fused_cross_entropy(logits_MV: Tensor, targets_M: Tensor) -> Tensor:
    """-ln p of each target, in float32; rows may lie apart, entries of a row may not."""
    if logits_MV.stride(1) != 1:
        logits_MV = logits_MV.contiguous()
    return _FusedCrossEntropy.apply(logits_MV, targets_M.contiguous())
