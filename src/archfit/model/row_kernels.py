"""Triton kernels for what a GPU would otherwise read and write several times.

Narrow networks spend their time on memory traffic. In eager torch the sum of stream and branch,
its norm and the cast to bfloat16 are three passes over the stream, here one, likewise backwards;
the gradient of a bias is a slow reduction; the loss makes float32 copies of its logits. Plain torch
says beside each call what a kernel computes.

Imported only where there is a GPU and Triton. `no_type_check` keeps the tests' import hook off the
kernels: Triton compiles their source and cannot see through a wrapper.

Shape letters: B batch, N positions, D width, M rows, C columns, V vocabulary.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import no_type_check

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from archfit.model.attention_kernels import attention_backward, attention_forward
from archfit.model.layers import LONGEST_TILE, NORM_EPSILON
from archfit.spec import Architecture

# Tile sizes are the fastest of those tried on an H200 (docs/performance.md).
NORM_PROGRAMS_A_PROCESSOR = 8
SUM_ROWS, SUM_COLUMNS, SUM_PROGRAMS = 64, 64, 1024
LONGEST_CHUNK = 4096  # logits that a program reads at a time


@triton.jit
@no_type_check
def _add_norm_forward(
    x, branch, weight, bias, total, normed, mean, inverse_std, rows, multiplier, epsilon,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    at = row[:, None].to(tl.int64) * WIDTH + column[None, :]
    inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
    value = tl.load(x + at, inside, 0.0).to(tl.float32)
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
        d_out = tl.load(d_normed + at, inside, 0.0).to(tl.float32)
        d_value = tl.load(d_total + at, inside, 0.0).to(tl.float32)
        unit = tl.where(inside, (value - mu[:, None]) * scale[:, None], 0.0)
        weight_sum += d_out * unit
        bias_sum += d_out
        d_unit = d_out * gain[None, :]
        along = tl.sum(d_unit * unit, 1) / WIDTH
        level = tl.sum(d_unit, 1) / WIDTH
        d_value += (d_unit - level[:, None] - unit * along[:, None]) * scale[:, None]
        tl.store(d_x + at, d_value, inside)
        tl.store(d_branch + at, d_value * multiplier, inside)
    own = program * WIDTH + column
    tl.store(d_weight + own, tl.sum(weight_sum, 0), column < WIDTH)
    tl.store(d_bias + own, tl.sum(bias_sum, 0), column < WIDTH)


def _norm_tile(width: int) -> dict[str, int]:
    block = triton.next_power_of_2(width)
    elements = 1024 if block <= 256 else 2048  # enough loads in flight, and few registers
    return {"WIDTH": width, "BLOCK": block, "ROWS": max(1, elements // block)}


def _norm_programs(device: torch.device) -> int:
    """As many as keep a GPU busy; one in Triton's interpreter, which has no processors."""
    if device.type != "cuda":
        return 1
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    return NORM_PROGRAMS_A_PROCESSOR * processors


def add_norm_forward(x_BND, branch_BND, weight, bias, multiplier, out_dtype):
    """x + multiplier branch, its norm, and the mean and inverse deviation of each row."""
    rows, width = x_BND.numel() // x_BND.shape[-1], x_BND.shape[-1]
    total, normed = torch.empty_like(x_BND), torch.empty_like(x_BND, dtype=out_dtype)
    mean, inverse_std = torch.empty((2, rows), device=x_BND.device, dtype=torch.float32)
    tile = _norm_tile(width)
    _add_norm_forward[(triton.cdiv(rows, tile["ROWS"]),)](
        x_BND, branch_BND, weight, bias, total, normed, mean, inverse_std, rows, multiplier,
        NORM_EPSILON, **tile,
    )  # fmt: skip
    return total, normed, mean, inverse_std


def add_norm_backward(saved, d_total, d_normed, multiplier, branch_dtype):
    """Gradients of stream, branch, weight and bias."""
    total, weight, mean, inverse_std = saved
    rows, width = mean.numel(), total.shape[-1]
    tile = _norm_tile(width)
    programs = min(triton.cdiv(rows, tile["ROWS"]), _norm_programs(total.device))
    d_x, d_branch = torch.empty_like(total), torch.empty_like(total, dtype=branch_dtype)
    partial = torch.empty((2, programs, width), device=total.device, dtype=torch.float32)
    _add_norm_backward[(programs,)](
        total, weight, mean, inverse_std, d_normed, d_total, d_x, d_branch, partial[0],
        partial[1], rows, multiplier, **tile,
    )  # fmt: skip
    return d_x, d_branch, *partial.sum(1)


class _FusedAddNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x_BND, branch_BND, weight, bias, multiplier, out_dtype):
        total, normed, mean, inverse_std = add_norm_forward(
            x_BND.contiguous(), branch_BND.contiguous(), weight, bias, multiplier, out_dtype
        )
        ctx.save_for_backward(total, weight, mean, inverse_std)
        ctx.multiplier, ctx.branch_dtype = multiplier, branch_BND.dtype
        return total, normed

    @staticmethod
    def backward(ctx, d_total, d_normed):
        slopes = d_total.contiguous(), d_normed.contiguous()
        numbers = ctx.multiplier, ctx.branch_dtype
        return *add_norm_backward(ctx.saved_tensors, *slopes, *numbers), None, None


def fused_add_norm(
    x_BND: Tensor, branch_BND: Tensor, weight: Tensor, bias: Tensor, multiplier: float
) -> tuple[Tensor, Tensor]:
    """x + multiplier branch in x's precision, and its norm in that of the products around it."""
    in_autocast = torch.is_autocast_enabled("cuda")
    out_dtype = torch.get_autocast_dtype("cuda") if in_autocast else x_BND.dtype
    return _FusedAddNorm.apply(x_BND, branch_BND, weight, bias, multiplier, out_dtype)


@triton.jit
@no_type_check
def _column_sums(values, partial, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    program, programs = tl.program_id(0), tl.num_programs(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(program * ROWS, rows, programs * ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < columns)[None, :]
        at = row[:, None].to(tl.int64) * columns + column[None, :]
        sums += tl.load(values + at, inside, 0.0).to(tl.float32)
    tl.store(partial + program * columns + column, tl.sum(sums, 0), column < columns)


def column_sums(values_MC: Tensor) -> Tensor:
    """values.sum(0) in float32."""
    values_MC = values_MC.contiguous()
    rows, columns = values_MC.shape
    groups = triton.cdiv(columns, SUM_COLUMNS)
    programs = min(triton.cdiv(rows, SUM_ROWS), triton.cdiv(SUM_PROGRAMS, groups))
    partial = torch.empty((programs, columns), device=values_MC.device, dtype=torch.float32)
    _column_sums[(programs, groups)](
        values_MC, partial, rows, columns, ROWS=SUM_ROWS, COLUMNS=SUM_COLUMNS
    )
    return partial.sum(0)


class _FusedAffine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, bias.to(x.dtype))

    @staticmethod
    def backward(ctx, d_y):
        x, weight = ctx.saved_tensors
        d_y_MC = d_y.reshape(-1, d_y.shape[-1])
        d_weight = d_y_MC.t() @ x.reshape(-1, x.shape[-1])
        return (d_y_MC @ weight).view(x.shape), d_weight, column_sums(d_y_MC)


def fused_affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W^T + b, whose bias has a fast gradient; all products in the precision of autocast."""
    if torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        x, weight = x.to(dtype), weight.to(dtype)
    return _FusedAffine.apply(x, weight, bias)


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


def cross_entropy_forward(logits_MV, targets_M):
    """-ln p of each target, and ln of the sum of each row's powers."""
    rows, vocab = logits_MV.shape
    losses, log_sums = torch.empty((2, rows), device=logits_MV.device, dtype=torch.float32)
    block = min(LONGEST_CHUNK, triton.next_power_of_2(vocab))
    _cross_entropy_forward[(rows,)](
        logits_MV, targets_M, losses, log_sums, logits_MV.stride(0), VOCAB=vocab, BLOCK=block
    )
    return losses, log_sums


def cross_entropy_backward(logits_MV, targets_M, log_sums, d_losses_M):
    """The gradient of the logits, in their precision."""
    rows, vocab = logits_MV.shape
    d_logits = torch.empty((rows, vocab), device=logits_MV.device, dtype=logits_MV.dtype)
    block = min(LONGEST_CHUNK, triton.next_power_of_2(vocab))
    _cross_entropy_backward[(rows,)](
        logits_MV, targets_M, log_sums, d_losses_M, d_logits, logits_MV.stride(0),
        VOCAB=vocab, BLOCK=block,
    )  # fmt: skip
    return d_logits


class _FusedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits_MV, targets_M):
        losses, log_sums = cross_entropy_forward(logits_MV, targets_M)
        ctx.save_for_backward(logits_MV, targets_M, log_sums)
        return losses

    @staticmethod
    def backward(ctx, d_losses_M):
        logits_MV, targets_M, log_sums = ctx.saved_tensors
        d_losses_M = d_losses_M.contiguous()
        return cross_entropy_backward(logits_MV, targets_M, log_sums, d_losses_M), None


def fused_cross_entropy(logits_MV: Tensor, targets_M: Tensor) -> Tensor:
    """-ln p of each target, in float32; rows may lie apart, entries of a row may not."""
    if logits_MV.stride(1) != 1:
        logits_MV = logits_MV.contiguous()
    return _FusedCrossEntropy.apply(logits_MV, targets_M.contiguous())


def compile_ahead(architecture: Architecture, device: torch.device) -> None:
    """Compile the kernels of a network in bfloat16 at once, each in a thread of its own.

    One after another, as a first step meets them, they take several times as long. What is not
    foreseen here is compiled by that step.
    """

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(shape, device=device, dtype=torch.bfloat16)

    width, inner = architecture.width, architecture.heads * architecture.head_dim
    x, branch, row = zeros(1, 16, width).float(), zeros(1, 16, width), zeros(16).float()
    vector = zeros(width).float()
    qkv = zeros(1, architecture.context, 3, architecture.heads, architecture.head_dim)
    vocab = architecture.input.vocab
    logits, targets = zeros(16, -(-vocab // 8) * 8)[:, :vocab], row.long()
    outputs = (3 * inner, width, architecture.feed_forward_multiple * width)
    by_divisibility = {c % 16 == 0: c for c in outputs}  # Triton specialises on it
    work: list[Callable[[], object]] = [
        lambda: add_norm_forward(x, branch, vector, vector, 1.0, torch.bfloat16),
        lambda: add_norm_backward((x, vector, row, row), x, branch, 1.0, torch.bfloat16),
        lambda: cross_entropy_forward(logits, targets),
        lambda: cross_entropy_backward(logits, targets, row, row),
        *[lambda columns=c: column_sums(zeros(16, columns)) for c in by_divisibility.values()],
    ]
    if architecture.context <= LONGEST_TILE:
        work.append(lambda: attention_forward(qkv, 1.0))
        work.append(lambda: attention_backward(qkv, qkv[:, :, 0].contiguous(), 1.0))
    # A new thread starts on the first GPU of the machine, whichever this process trains on.
    with ThreadPoolExecutor(
        len(work), initializer=lambda: torch.cuda.set_device(device)
    ) as threads:
        for done in [threads.submit(compile_one) for compile_one in work]:
            done.result()
