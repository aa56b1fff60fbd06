"""The whole network against its merged twin and its own description; its embeddings against
one-hot matrices, its blocks against the recursion of the proofs."""

from dataclasses import replace
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from archfit.model import Transformer, parametrisation
from archfit.model.layers import LinearAttention, RowTable
from archfit.model.transformer import Block
from archfit.spec import (
    Architecture,
    Factorised,
    Full,
    Linear,
    Patches,
    Rotary,
    Softmax,
    Tied,
    Tokens,
    standard_architecture,
)
from archfit.spec.parts import Attention, Table
from tests_models import position_table, random_model, random_tokens

SHAPE = standard_architecture(depth=2, width=12, heads=3, vocab=11, context=6)


def _merge(into: RowTable, table: RowTable) -> None:
    into.rows_RI.data.copy_(table.matrix())


@pytest.mark.parametrize("inner", [3, 12, 40])
@pytest.mark.parametrize("head", ["factorised", "tied"])
def test_a_factorised_network_is_its_merged_twin(inner: int, head: str) -> None:
    table = Factorised(inner=inner)
    is_tied = head == "tied"
    shape = replace(SHAPE, head_dim=7, embedding=table, positions=table)
    model = random_model(replace(shape, head=Tied() if is_tied else table))
    twin_shape = replace(SHAPE, head_dim=7, head=Tied() if is_tied else Full())
    twin = random_model(twin_shape)
    twin.trunk.load_state_dict(model.trunk.state_dict())
    _merge(twin.embedding.tokens, model.embedding.tokens)
    _merge(position_table(twin), position_table(model))
    if model.head is not None and twin.head is not None:
        _merge(twin.head, model.head)
    tokens_BN = random_tokens(SHAPE)
    torch.testing.assert_close(model(tokens_BN), twin(tokens_BN), atol=1e-5, rtol=1e-5)


def test_a_completep_network_is_a_standard_one_with_other_weights() -> None:
    """Each multiplier, moved into the matrix that it multiplies."""
    shape = standard_architecture(depth=6, width=64, heads=4, vocab=11, context=6)
    model, twin = random_model(shape, rule="completep"), random_model(shape)
    for block in twin.trunk.blocks:
        assert isinstance(block, Block)
        for weight in (*block.attention.out.parameters(), *block.feed_forward.down.parameters()):
            weight.data /= 3  # depth 6 over 2
        for weight in block.attention.qkv.parameters():
            weight.data[:64] *= 8 / 16 * 4  # sqrt(64) / head_dim, over 1 / sqrt(head_dim)
    assert twin.head is not None
    twin.head.rows_RI.data *= 4  # width 256 over 64
    tokens_BN = random_tokens(shape)
    torch.testing.assert_close(model(tokens_BN), twin(tokens_BN), atol=1e-4, rtol=1e-5)


def test_a_linear_network_reads_and_predicts_through_the_same_tables() -> None:
    attention = Linear(residual=True, causal=True)
    shape = replace(SHAPE, attention=attention, feed_forward=0)
    model = random_model(shape, dtype=torch.float64)
    assert model.head is not None
    tokens_BN = random_tokens(shape)
    expected_BNV = model.trunk(model.embedding(tokens_BN)) @ model.head.matrix().T
    torch.testing.assert_close(model(tokens_BN), expected_BNV, atol=1e-12, rtol=1e-12)


def _positions_moved_by(shape: Architecture, token: int) -> list[bool]:
    """The positions whose logits change with one token of the input."""
    model = random_model(shape, dtype=torch.float64)
    if isinstance(shape.input, Patches):  # its scalars are made in float32
        model = model.float()
    tokens_BS = random_tokens(shape, batch=1)
    other_BS = tokens_BS.clone()
    other_BS[0, token] = (other_BS[0, token] + 3) % shape.input.vocab
    moved: Tensor = (model(tokens_BS) - model(other_BS)).abs().amax(-1)[0] > 1e-7
    flags: list[bool] = moved.tolist()
    return flags


@pytest.mark.parametrize(
    "attention",
    [Softmax(), Linear(residual=False, causal=True), Linear(residual=True, causal=True)],
)
def test_a_token_moves_no_earlier_logits(attention: Softmax | Linear) -> None:
    hidden = SHAPE.feed_forward if isinstance(attention, Softmax) else 0
    shape = replace(SHAPE, attention=attention, feed_forward=hidden)
    assert _positions_moved_by(shape, 3) == [False, False, False, True, True, True]


def test_a_token_moves_earlier_logits_without_a_mask() -> None:
    attention = Linear(residual=False, causal=False)
    shape = replace(SHAPE, attention=attention, feed_forward=0)
    assert _positions_moved_by(shape, 3) == [True] * 6


@pytest.mark.parametrize("encoding", ["one-hot", "scalar"])
def test_a_token_moves_no_logits_of_earlier_patches(encoding: Literal["one-hot", "scalar"]) -> None:
    shape = replace(SHAPE, input=Patches(vocab=11, size=4, encoding=encoding))
    assert _positions_moved_by(shape, 15) == [False, False, False, True, True, True]


SIZES = st.integers(1, 6)
ANY_TABLE = st.one_of(st.builds(Full), st.builds(Factorised, inner=SIZES))


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    attention = draw(
        st.one_of(
            st.builds(Softmax), st.builds(Linear, residual=st.booleans(), causal=st.booleans())
        )
    )
    encodings = st.sampled_from(["one-hot", "scalar"])
    vocabs = st.integers(2, 9)
    tokens = draw(
        st.one_of(
            st.builds(Tokens, vocab=vocabs),
            st.builds(Patches, vocab=vocabs, size=SIZES, encoding=encodings),
        )
    )
    is_scalar = isinstance(tokens, Patches) and tokens.encoding == "scalar"
    hidden = st.integers(1, 24) if isinstance(attention, Softmax) else st.just(0)
    return Architecture(
        depth=draw(st.integers(1, 3)),
        width=draw(SIZES),
        heads=draw(SIZES),
        head_dim=draw(SIZES),
        attention=attention,
        feed_forward=draw(hidden),
        context=draw(SIZES),
        input=tokens,
        embedding=draw(ANY_TABLE),
        positions=draw(ANY_TABLE),
        head=draw(ANY_TABLE if is_scalar else st.one_of(ANY_TABLE, st.builds(Tied))),
    )


@st.composite
def llamas(draw: st.DrawFn) -> Architecture:
    groups = draw(SIZES)
    return Architecture(
        depth=draw(st.integers(1, 3)),
        width=draw(SIZES),
        heads=groups * draw(st.integers(1, 3)),
        head_dim=2 * draw(st.integers(1, 3)),
        attention=Softmax(),
        feed_forward=draw(st.integers(1, 24)),
        context=draw(SIZES),
        input=Tokens(vocab=draw(st.integers(2, 9))),
        embedding=draw(ANY_TABLE),
        positions=Rotary(),
        head=draw(st.one_of(ANY_TABLE, st.builds(Tied))),
        block="llama",
        kv_heads=groups,
        qk_norm=draw(st.booleans()),
        objective=draw(st.sampled_from(["causal", "masked"])),
    )


@settings(max_examples=80)
@given(shape=st.one_of(architectures(), llamas()))
def test_a_network_has_the_parameters_of_its_description_and_runs(shape: Architecture) -> None:
    model = random_model(shape)
    assert sum(weight.numel() for weight in model.parameters()) == shape.params
    logits_BNP = model(random_tokens(shape, batch=1))
    assert logits_BNP.shape == (1, shape.context, shape.input.predictions)


LINEAR = replace(
    SHAPE, attention=Linear(residual=True, causal=True), feed_forward=0
)  # it has the dropout of the embedding only


@pytest.mark.parametrize("shape", [SHAPE, LINEAR])
def test_dropout_acts_in_training_only(shape: Architecture) -> None:
    model = Transformer(shape, parametrisation(shape, "standard"), dropout=0.5)
    model.load_state_dict(random_model(shape).state_dict())
    tokens_BN = random_tokens(shape)
    assert not torch.equal(model(tokens_BN), model(tokens_BN))
    assert torch.equal(model.eval()(tokens_BN), random_model(shape)(tokens_BN))


SMALL = standard_architecture(depth=1, width=12, heads=3, vocab=7, context=5)
TABLES = [Full(), Factorised(inner=4), Factorised(inner=30)]


@pytest.mark.parametrize("table", TABLES)
def test_tokens_are_rows_picked_by_one_hot_vectors(table: Table) -> None:
    model = random_model(replace(SMALL, embedding=table, positions=table), dtype=torch.float64)
    tokens_BN = random_tokens(SMALL)
    one_hot_BNV = F.one_hot(tokens_BN, 7).double()
    embedding = model.embedding
    expected_BND = one_hot_BNV @ embedding.tokens.matrix() + position_table(model).matrix()
    torch.testing.assert_close(embedding(tokens_BN), expected_BND, atol=1e-12, rtol=0)


@pytest.mark.parametrize("table", TABLES)
def test_a_one_hot_patch_is_a_convolution_over_one_hot_vectors(table: Table) -> None:
    """sum_j W_j x_j + p (Wies et al. 2021, eq. 2), with W_j the rows of place j."""
    shape = replace(SMALL, input=Patches(vocab=7, size=3, encoding="one-hot"), embedding=table)
    model = random_model(shape, dtype=torch.float64)
    embedding, tokens_BS = model.embedding, random_tokens(shape)
    kernel_DVT = embedding.tokens.matrix().unflatten(0, (3, 7)).permute(2, 1, 0)
    one_hot_BVS = F.one_hot(tokens_BS, 7).double().transpose(1, 2)
    content_BND = F.conv1d(one_hot_BVS, kernel_DVT, stride=3).transpose(1, 2)
    expected_BND = content_BND + position_table(model).matrix()
    torch.testing.assert_close(embedding(tokens_BS), expected_BND, atol=1e-12, rtol=0)


@pytest.mark.parametrize("table", TABLES)
def test_a_scalar_patch_multiplies_standardised_levels(table: Table) -> None:
    shape = replace(SMALL, input=Patches(vocab=7, size=3, encoding="scalar"), embedding=table)
    model = random_model(shape)
    embedding, tokens_BS = model.embedding, random_tokens(shape)
    level_of_V = torch.tensor([-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5])  # sd of 0..6 is 2
    matrix_TD = embedding.tokens.matrix()
    for at in range(5):
        levels_BT = level_of_V[tokens_BS[:, 3 * at : 3 * at + 3]]
        expected_BD = levels_BT @ matrix_TD + position_table(model).matrix()[at]
        torch.testing.assert_close(embedding(tokens_BS)[:, at], expected_BD, atol=1e-5, rtol=0)


def test_a_short_row_has_the_first_positions() -> None:
    embedding = random_model(SMALL).embedding
    tokens_BN = random_tokens(SMALL)
    assert torch.equal(embedding(tokens_BN[:, :2]), embedding(tokens_BN)[:, :2])


DEEP = standard_architecture(depth=3, width=6, heads=2, vocab=5, context=5)


def _trunk(attention: Attention, *, heads: int = 2, head_dim: int = 3) -> nn.Module:
    hidden = 0 if isinstance(attention, Linear) else DEEP.feed_forward
    shape = replace(DEEP, attention=attention, feed_forward=hidden, heads=heads, head_dim=head_dim)
    return random_model(shape, dtype=torch.float64).trunk


def _stream() -> Tensor:
    return torch.randn(1, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def _weights(block: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """A_h = W^O_h W^V_h and B_h = (W^K_h)^T W^Q_h of each head."""
    assert isinstance(block, LinearAttention)
    q, k, v = block.qkv.weight.reshape(3, block.heads, -1, 6)
    o = block.out.weight.reshape(6, block.heads, -1)
    return [(o[:, h] @ v[h], k[h].T @ q[h]) for h in range(block.heads)]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("heads", "head_dim"), [(2, 3), (1, 6), (3, 5)])
def test_unmasked_linear_trunk_is_the_polynomial_of_the_proofs(
    residual: bool, heads: int, head_dim: int
) -> None:
    """Y_L = F_L(X X^T) X with F' = (F) + sum_h A_h F S F^T B_h F; columns of X are positions."""
    trunk = _trunk(Linear(residual=residual, causal=False), heads=heads, head_dim=head_dim)
    X = _stream()[0].T
    S, F = X @ X.T, torch.eye(6, dtype=torch.float64)
    for block in trunk.blocks:  # type: ignore[union-attr]  # a ModuleList
        terms = [A @ F @ S @ F.T @ B @ F for A, B in _weights(block)]
        F = sum(terms, start=F if residual else torch.zeros_like(F))
    expected_BND = (F @ X).T[None]
    scale = expected_BND.abs().max().item()
    torch.testing.assert_close(trunk(_stream()), expected_BND, atol=1e-9 * scale, rtol=0)


@pytest.mark.parametrize("residual", [False, True])
def test_causal_linear_trunk_sums_over_itself_and_earlier_positions(residual: bool) -> None:
    trunk = _trunk(Linear(residual=residual, causal=True), heads=3, head_dim=5)
    y = list(_stream()[0])
    for block in trunk.blocks:  # type: ignore[union-attr]  # a ModuleList
        y = [
            sum(
                (A @ y[j] * (y[j] @ B @ y[i]) for A, B in _weights(block) for j in range(i + 1)),
                start=y[i] if residual else torch.zeros_like(y[i]),
            )
            for i in range(5)
        ]
    expected_BND = torch.stack(y)[None]
    scale = expected_BND.abs().max().item()
    torch.testing.assert_close(trunk(_stream()), expected_BND, atol=1e-9 * scale, rtol=0)


def _seen_from(trunk: nn.Module, position: int) -> list[bool]:
    """Which positions of the input move the output at `position`."""
    x_BND = _stream().requires_grad_()
    weights_D = torch.arange(1.0, 7.0, dtype=torch.float64)  # a plain sum after a norm is constant
    (slope_BND,) = torch.autograd.grad(trunk(x_BND)[0, position] @ weights_D, x_BND)
    seen: list[bool] = slope_BND[0].ne(0).any(-1).tolist()
    return seen


@pytest.mark.parametrize(
    "attention",
    [Softmax(), Linear(residual=False, causal=True), Linear(residual=True, causal=True)],
)
def test_a_position_sees_itself_and_those_before_it(attention: Attention) -> None:
    assert _seen_from(_trunk(attention), 2) == [True, True, True, False, False]


LLAMA = replace(
    DEEP, block="llama", positions=Rotary(), head_dim=4, kv_heads=1, feed_forward=10, qk_norm=True
)


@pytest.mark.parametrize("shape", [DEEP, LLAMA, replace(LLAMA, qk_norm=False, kv_heads=None)])
def test_a_decoder_sees_no_later_position_and_an_encoder_all(shape: Architecture) -> None:
    decoder = random_model(shape, dtype=torch.float64)
    encoder = random_model(replace(shape, objective="masked"), dtype=torch.float64)
    encoder.load_state_dict(decoder.state_dict())  # the same weights, so the mask alone differs
    for position in range(5):
        seen = [True] * (position + 1) + [False] * (4 - position)
        assert _seen_from(decoder.trunk, position) == seen
        assert _seen_from(encoder.trunk, position) == [True] * 5


@pytest.mark.parametrize("shape", [DEEP, LLAMA, replace(DEEP, objective="masked")])
def test_logits_of_some_places_are_those_of_all_at_these_places(shape: Architecture) -> None:
    model = random_model(shape, rule="completep", dtype=torch.float64)
    tokens_BN, places_BM = random_tokens(shape), torch.tensor([[4, 0, 0], [1, 2, 3]])
    all_BNV, some_BMV = model(tokens_BN), model(tokens_BN, places_BM)
    expected_BMV = torch.stack([row_NV[at] for row_NV, at in zip(all_BNV, places_BM, strict=True)])
    torch.testing.assert_close(some_BMV, expected_BMV, atol=1e-12, rtol=0)


@pytest.mark.parametrize("residual", [False, True])
def test_without_a_mask_a_position_sees_all(residual: bool) -> None:
    assert _seen_from(_trunk(Linear(residual=residual, causal=False)), 2) == [True] * 5
