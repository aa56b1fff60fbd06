"""Witnesses run by the linear Transformer that is trained elsewhere, in float64.

Their exact weights are rational: 0, 1 and 1/N. Inputs must be real here, so the two vectors meet
without the imaginary unit, and the simplified weights give a power of |v_a + v_b|^2.
"""

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
import torch
from torch import Tensor

from archfit.exact.prime_field import WITNESS_PRIME
from archfit.exact.witness_network import (
    HeadWeights,
    NetworkShape,
    WitnessNetwork,
    filler,
    monomial_network,
    simplified_network,
    templates,
)
from archfit.model import Transformer, parametrisation
from archfit.model.layers import LinearAttention
from archfit.spec import Linear, standard_architecture
from archfit.theory.witness_formula import final_exponents, grow_plan
from tests_models import position_table


def _real(weights: np.ndarray, positions: int) -> Tensor:
    share = pow(positions, -1, WITNESS_PRIME)
    numbers = {0: 0.0, 1: 1.0, share: 1 / positions}
    rows = [[numbers[entry] for entry in row] for row in weights.tolist()]
    return torch.tensor(rows, dtype=torch.float64)


def _load(block: LinearAttention, layer: tuple[HeadWeights, ...], positions: int) -> None:
    """W^Q, W^K, W^V of all heads below each other, W^O side by side."""
    stacked = [
        _real(weights, positions)
        for weights in (
            *(head.queries for head in layer),
            *(head.keys for head in layer),
            *(head.values for head in layer),
        )
    ]
    block.qkv.weight.data = torch.cat(stacked)
    block.out.weight.data = torch.cat([_real(head.output, positions) for head in layer], dim=1)


def _model(shape: NetworkShape, network: WitnessNetwork, rows_VD: Tensor) -> Transformer:
    """The Transformer with these weights and embeddings, whose first logits are the stream."""
    vocab = len(rows_VD)
    standard = standard_architecture(
        depth=shape.depth,
        width=shape.width,
        heads=shape.heads,
        vocab=vocab,
        context=shape.positions,
    )
    attention = Linear(residual=False, causal=False)
    architecture = replace(standard, attention=attention, feed_forward=0)
    numbers = parametrisation(architecture, "standard")
    model = Transformer(architecture, numbers, dropout=0.0).double().eval()
    for block, layer in zip(model.trunk.blocks, network, strict=True):
        assert isinstance(block, LinearAttention)
        _load(block, layer, shape.positions)
    assert model.head is not None
    model.embedding.tokens.rows_RI.data = rows_VD
    position_table(model).rows_RI.data.zero_()
    model.head.rows_RI.data = torch.eye(vocab, shape.width).double()
    return model


def _stream(model: Transformer, tokens: list[int]) -> Tensor:
    with torch.no_grad():
        logits_BNV: Tensor = model(torch.tensor([tokens]))
    return logits_BNV[0, :, : model.architecture.width]


@pytest.mark.parametrize(
    ("depth", "width", "heads", "positions"),
    [(2, 4, 2, 4), (2, 4, 1, 2), (3, 4, 2, 4), (3, 6, 3, 6), (4, 6, 3, 4), (3, 9, 3, 4)],
)
def test_simplified_weights_give_the_promised_power(
    depth: int, width: int, heads: int, positions: int
) -> None:
    shape = NetworkShape(depth=depth, width=width, heads=heads, positions=positions)
    network = simplified_network(shape, WITNESS_PRIME)
    n, vectors = width - heads, range(4)
    v = [tuple((3 * at + 5 * which) % 7 - 3 for at in range(n)) for which in vectors]
    rest = len(v)  # the filler, and copies: as many tokens as the stream has coordinates to read
    rows = templates(shape, np.array(v), shape.places(0, shape.head_dim - 1))
    tokens = np.concatenate([rows, np.repeat(filler(shape).T, width, axis=0)])
    model = _model(shape, network, torch.tensor(tokens).double())
    for a in vectors:
        for b in vectors:
            stream_ND = _stream(model, [a, *[rest] * (positions - 2), b])
            squared = sum((p + q) ** 2 for p, q in zip(v[a], v[b], strict=True))
            promised = positions ** ((3 ** (depth - 1) - 1) // 2) * squared**3 ** (depth - 2)
            expected_ND = torch.full_like(stream_ND, float(promised))
            torch.testing.assert_close(stream_ND, expected_ND, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("depth", "width", "heads"), [(2, 3, 3), (3, 3, 3), (3, 6, 2), (4, 4, 4)])
def test_monomial_weights_give_the_promised_monomials(depth: int, width: int, heads: int) -> None:
    plan, _ = grow_plan(depth, heads, seed=3)
    shape = NetworkShape(depth=depth, width=width, heads=heads, positions=8)
    tokens = list(range(8))
    generator = torch.Generator().manual_seed(4)
    rows_VD = torch.randn(8, width, generator=generator).double()
    model = _model(shape, monomial_network(shape, plan), rows_VD)
    moments = rows_VD.T @ rows_VD
    pairs = list(combinations_with_replacement(range(heads), 2))
    expected_ND = torch.zeros(8, width).double()
    for head in range(heads):
        exponents = final_exponents(depth, width, heads, plan, head)
        factors = [moments[pair] ** e for pair, e in zip(pairs, exponents, strict=True)]
        expected_ND[:, head] = rows_VD[:, head] * torch.stack(factors).prod()
    assert expected_ND[:, :heads].abs().min() > 0
    torch.testing.assert_close(_stream(model, tokens), expected_ND, rtol=1e-9, atol=0)
