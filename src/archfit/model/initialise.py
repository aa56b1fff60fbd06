"""The weights a network starts from: a function of seed and parameter name alone.

Two networks that differ in one table start with the same blocks, so a comparison at equal seeds
is a paired one.

A table starts with entries of one standard deviation whether it is full or factorised. In a
factorised one the rows carry that size and the mixing matrix keeps it: the identity where `inner`
reaches the width, so that the table starts as a full one does, and orthogonal rows below that. A
step of Adam on a row then moves the product as far as it moves a full table (docs/LOG.md).

A head starts so small that its logits have a standard deviation of 0.1 or less at every width: the
first loss is within 0.01 of ln V. Not at zero, which would give ln V exactly: then nothing below
the head has a gradient at first, and training is worse for long after (docs/LOG.md).
"""

import hashlib
import math

import torch
from torch import Tensor, nn

from archfit.model.layers import LinearAttention, RowTable
from archfit.model.parametrisation import INITIAL_STD, Parametrisation
from archfit.model.transformer import Block, Transformer

LOGIT_STD = 0.1  # the first loss is then ln V + 0.1^2 / 2


def initialise(model: Transformer, numbers: Parametrisation, *, seed: int) -> None:
    """Fill the weights of `model` in place."""
    shape = model.architecture
    # Vectors that the head reads have entries of size 1, so a row of std s gives s sqrt(width).
    head_std = LOGIT_STD / (math.sqrt(shape.width) * numbers.logit_multiplier)
    head_std = min(INITIAL_STD, head_std)
    std = head_std if model.head is None else numbers.table_std
    parts = shape.input.tokens_per_position  # rows that add up to one vector
    with torch.no_grad():
        _fill_table(model.embedding.tokens, std / math.sqrt(parts), "embedding.tokens", seed)
        if model.embedding.positions is not None:
            _fill_table(model.embedding.positions, std, "embedding.positions", seed)
        if model.head is not None:
            _fill_table(model.head, head_std, "head", seed)
        for at, block in enumerate(model.trunk.blocks):
            name = f"trunk.blocks.{at}"
            if isinstance(block, Block):
                _fill_block(block, numbers, name, seed)
            elif isinstance(block, LinearAttention):
                _fill_linear(block, shape.context, name, seed)


def _fill_table(table: RowTable, std: float, name: str, seed: int) -> None:
    if table.mix_ID is None:
        _normal(table.rows_RI, std, f"{name}.rows", seed)
    else:
        inner, width = table.mix_ID.shape
        # The coordinates that a full table has are drawn like its own, the surplus by itself.
        _normal(table.rows_RI[:, :width], std, f"{name}.rows", seed)
        _normal(table.rows_RI[:, width:], std, f"{name}.surplus", seed)
        if inner >= width:
            nn.init.eye_(table.mix_ID)
        else:
            gain, generator = math.sqrt(width / inner), _generator(f"{name}.mix", seed)
            nn.init.orthogonal_(table.mix_ID, gain, generator=generator)


def _fill_block(block: Block, numbers: Parametrisation, name: str, seed: int) -> None:
    for linear, std, part in (
        (block.attention.qkv, numbers.hidden_std, "qkv"),
        (block.attention.out, numbers.projection_std, "out"),
        (block.feed_forward.up, numbers.hidden_std, "up"),
        (block.feed_forward.down, numbers.projection_std, "down"),
    ):
        _normal(linear.weight, std, f"{name}.{part}", seed)
        if linear.bias is not None:
            linear.bias.zero_()


def _fill_linear(layer: LinearAttention, context: int, name: str, seed: int) -> None:
    """Sizes that keep a cubic layer of `context` positions from growing."""
    _normal(layer.qkv.weight, 1 / math.sqrt(layer.qkv.in_features), f"{name}.qkv", seed)
    out_std = 1 / (context * math.sqrt(layer.out.in_features))
    _normal(layer.out.weight, out_std, f"{name}.out", seed)


def _normal(weight: Tensor, std: float, name: str, seed: int) -> None:
    weight.copy_(torch.empty(weight.shape).normal_(0.0, std, generator=_generator(name, seed)))


def _generator(name: str, seed: int) -> torch.Generator:
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little"))
