"""Triton kernels for what a GPU would otherwise read and write several times.

Narrow networks spend their time on memory traffic: in eager torch the sum of stream and branch,
its norm and the cast to bfloat16 are three passes over the stream, here one; likewise backwards.
The loss reads its bfloat16 logits once and writes their gradient once, instead of making float32
copies of them. Plain torch (add_norm.py, loss.py) says what each kernel computes.

Imported only where there is a GPU and Triton. Kernels are marked `no_type_check`: the import hook
that checks shapes in tests would wrap them, and Triton would look for names in its module.

Shape letters: B batch, N positions, D width, M rows, V vocabulary, G programs.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

ELEMENTS = 2048  # of a tile, so that a program has enough loads in flight
LONGEST_CHUNK = 4096  # logits that a program reads at a time
PROGRAMS_A_PROCESSOR = 8


@triton.jit
@no_type_check
def _add_norm_forward(
    x, branch, weight, bias, total, normed, mean, inverse_std, rows, multiplier, epsilon,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, HAS_BRANCH: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    at = row[:, None].to(tl.int64) * WIDTH + column[None, :]
    inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
    value = tl.load(x + at, inside, 0.0).to(tl.float32)
    if HAS_BRANCH:
        value += multiplier * tl.load(branch + at, inside, 0.0).to(tl.float32)
        tl.store(total + at, value, inside)
    mu = tl.sum(value, 1) / WIDTH
    centred = tl.where(inside, value - mu[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 1) / WIDTH + epsilon)
    gain = tl.load(weight + column, column < WIDTH, 0.0)
    shift = tl.load(bias + column, column < WIDTH, 0.0)
    tl.store(normed + at, centred * scale[:, None] * gain[None, :] + shift[None, :], inside)
    tl.store(mean + row, mu, row < rows)
    tl.store(inverse_std + row, scale, row < rows)


@triton.jit
@no_type_check
def _add_norm_backward(
    total, weight, mean, inverse_std, d_normed, d_total, d_x, d_branch, d_weight, d_bias,
    rows, multiplier,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    HAS_BRANCH: tl.constexpr, HAS_D_TOTAL: tl.constexpr,
):  # fmt: skip
    program, programs = tl.program_id(0), tl.num_programs(0)
    column = tl.arange(0, BLOCK)
    gain = tl.load(weight + column, column < WIDTH, 0.0)
    weight_sum = tl.zeros((ROWS, BLOCK), tl.float32)
    bias_sum = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(program * ROWS, rows, programs * ROWS):
        row = first + tl.arange(0, ROWS)
        at = row[:, None].to(tl.int64) * WIDTH + column[None, :]
        inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
        mu = tl.load(mean + row, row < rows, 0.0)
        scale = tl.load(inverse_std + row, row < rows, 0.0)
        value = tl.load(total + at, inside, 0.0).to(tl.float32)
        unit = tl.where(inside, (value - mu[:, None]) * scale[:, None], 0.0)
        d_out = tl.load(d_normed + at, inside, 0.0).to(tl.float32)
        weight_sum += d_out * unit
        bias_sum += d_out
        d_unit = d_out * gain[None, :]
        along = tl.sum(d_unit * unit, 1) / WIDTH
        level = tl.sum(d_unit, 1) / WIDTH
        d_value = (d_unit - level[:, None] - unit * along[:, None]) * scale[:, None]
        if HAS_D_TOTAL:
            d_value += tl.load(d_total + at, inside, 0.0).to(tl.float32)
        tl.store(d_x + at, d_value, inside)
        if HAS_BRANCH:
            tl.store(d_branch + at, d_value * multiplier, inside)
    own = program * WIDTH + column
    tl.store(d_weight + own, tl.sum(weight_sum, 0), column < WIDTH)
    tl.store(d_bias + own, tl.sum(bias_sum, 0), column < WIDTH)


@triton.jit
@no_type_check
def _cross_entropy_forward(
    logits, targets, losses, log_sums, stride, VOCAB: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    largest, total = float("-inf"), 0.0
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        z = tl.load(logits + row * stride + column, column < VOCAB, float("-inf")).to(tl.float32)
        larger = tl.maximum(largest, tl.max(z, 0))
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(z - larger), 0)
        largest = larger
    log_sum = largest + tl.log(total)
    right = tl.load(logits + row * stride + tl.load(targets + row)).to(tl.float32)
    tl.store(losses + row, log_sum - right)
    tl.store(log_sums + row, log_sum)


@triton.jit
@no_type_check
def _cross_entropy_backward(
    logits, targets, log_sums, d_losses, d_logits, stride, VOCAB: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    target, log_sum = tl.load(targets + row), tl.load(log_sums + row)
    d_loss = tl.load(d_losses + row)
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        z = tl.load(logits + row * stride + column, column < VOCAB, 0.0).to(tl.float32)
        probability = tl.exp(z - log_sum)
        d_z = (probability - tl.where(column == target, 1.0, 0.0)) * d_loss
        tl.store(d_logits + row * VOCAB + column, d_z, column < VOCAB)


def _tile(width: int) -> dict[str, int]:
    block = triton.next_power_of_2(width)
    return {"WIDTH": width, "BLOCK": block, "ROWS": max(1, ELEMENTS // block)}


def _programs(device: torch.device) -> int:
    """As many as keep a GPU busy; one of them in Triton's interpreter, which has no processors."""
    if device.type != "cuda":
        return 1
    return PROGRAMS_A_PROCESSOR * torch.cuda.get_device_properties(device).multi_processor_count


class _AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x_BND, branch_BND, weight, bias, multiplier, out_dtype):
        ctx.set_materialize_grads(False)  # the last norm's sum is read by nobody
        x_BND = x_BND.contiguous()
        branch_BND = None if branch_BND is None else branch_BND.contiguous()
        rows, width = x_BND.numel() // x_BND.shape[-1], x_BND.shape[-1]
        total = x_BND if branch_BND is None else torch.empty_like(x_BND)
        normed = torch.empty_like(x_BND, dtype=out_dtype)
        mean, inverse_std = torch.empty((2, rows), device=x_BND.device, dtype=torch.float32)
        tile = _tile(width)
        _add_norm_forward[(triton.cdiv(rows, tile["ROWS"]),)](
            x_BND, branch_BND, weight, bias, total, normed, mean, inverse_std, rows, multiplier,
            1e-5, HAS_BRANCH=branch_BND is not None, **tile,
        )  # fmt: skip
        ctx.save_for_backward(total, weight, mean, inverse_std)
        ctx.multiplier = multiplier
        ctx.branch_dtype = None if branch_BND is None else branch_BND.dtype
        return total, normed

    @staticmethod
    def backward(ctx, d_total, d_normed):
        total, weight, mean, inverse_std = ctx.saved_tensors
        if d_normed is None:
            d_normed = torch.zeros_like(total)
        d_normed = d_normed.contiguous()
        d_total = None if d_total is None else d_total.contiguous()
        rows, width = mean.numel(), total.shape[-1]
        tile = _tile(width)
        programs = min(triton.cdiv(rows, tile["ROWS"]), _programs(total.device))
        d_x = torch.empty_like(total)
        has_branch = ctx.branch_dtype is not None
        d_branch = torch.empty_like(total, dtype=ctx.branch_dtype) if has_branch else None
        d_weight, d_bias = torch.empty((2, programs, width), device=total.device)
        _add_norm_backward[(programs,)](
            total, weight, mean, inverse_std, d_normed, d_total, d_x, d_branch, d_weight, d_bias,
            rows, ctx.multiplier, HAS_BRANCH=has_branch, HAS_D_TOTAL=d_total is not None, **tile,
        )  # fmt: skip
        return d_x, d_branch, d_weight.sum(0), d_bias.sum(0), None, None


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits_MV, targets_M):
        rows, vocab = logits_MV.shape
        losses, log_sums = torch.empty((2, rows), device=logits_MV.device, dtype=torch.float32)
        block = min(LONGEST_CHUNK, triton.next_power_of_2(vocab))
        _cross_entropy_forward[(rows,)](
            logits_MV, targets_M, losses, log_sums, logits_MV.stride(0), VOCAB=vocab, BLOCK=block
        )
        ctx.save_for_backward(logits_MV, targets_M, log_sums)
        return losses

    @staticmethod
    def backward(ctx, d_losses_M):
        logits_MV, targets_M, log_sums = ctx.saved_tensors
        rows, vocab = logits_MV.shape
        d_logits = torch.empty((rows, vocab), device=logits_MV.device, dtype=logits_MV.dtype)
        block = min(LONGEST_CHUNK, triton.next_power_of_2(vocab))
        _cross_entropy_backward[(rows,)](
            logits_MV, targets_M, log_sums, d_losses_M.contiguous(), d_logits,
            logits_MV.stride(0), VOCAB=vocab, BLOCK=block,
        )  # fmt: skip
        return d_logits, None


def fused_add_norm(
    x_BND: Tensor, branch_BND: Tensor | None, weight: Tensor, bias: Tensor, multiplier: float
) -> tuple[Tensor, Tensor]:
    """x + multiplier branch in x's precision, and its norm in that of the products around it."""
    in_autocast = torch.is_autocast_enabled("cuda")
    out_dtype = torch.get_autocast_dtype("cuda") if in_autocast else x_BND.dtype
    return _AddNorm.apply(x_BND, branch_BND, weight, bias, multiplier, out_dtype)


def fused_cross_entropy(logits_MV: Tensor, targets_M: Tensor) -> Tensor:
    """-ln p of each target, in float32; rows may lie apart, entries of a row may not."""
    if logits_MV.stride(1) != 1:
        logits_MV = logits_MV.contiguous()
    return _CrossEntropy.apply(logits_MV, targets_M.contiguous())
