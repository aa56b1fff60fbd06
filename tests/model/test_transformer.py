"""The whole network against Hugging Face's GPT-2, its merged twin and its own description; its
embeddings against one-hot matrices, its blocks against the recursion of the proofs."""

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
from archfit.model.transformer import Block, SoftmaxTrunk
from archfit.spec import (
    Architecture,
    Attention,
    Factorised,
    Full,
    Head,
    Linear,
    Patches,
    Softmax,
    Table,
    Tied,
    Tokens,
    standard_architecture,
)
from tests_models import random_model, random_tokens

SHAPE = standard_architecture(depth=2, width=12, heads=3, vocab=11, context=6)


def _transposed(weight: Tensor) -> Tensor:
    return weight.T if weight.dim() == 2 else weight


def _gpt2(model: Transformer) -> nn.Module:
    """Hugging Face's network with our weights; its matrices are the transposes of ours."""
    from transformers import GPT2Config, GPT2LMHeadModel  # takes seconds, so not at the top

    assert isinstance(model.trunk, SoftmaxTrunk)
    shape = model.architecture
    config = GPT2Config(
        vocab_size=shape.input.vocab,
        n_positions=shape.context,
        n_embd=shape.width,
        n_layer=shape.depth,
        n_head=shape.heads,
        n_inner=shape.feed_forward_multiple * shape.width,
        activation_function="gelu",
        tie_word_embeddings=model.head is None,
        bos_token_id=0,
        eos_token_id=0,
    )
    theirs: nn.Module = GPT2LMHeadModel(config)
    weights: dict[str, Tensor] = {
        "transformer.wte.weight": model.embedding.tokens.rows_RI,
        "transformer.wpe.weight": model.embedding.positions.rows_RI,
        "transformer.ln_f.weight": model.trunk.norm.weight,
        "transformer.ln_f.bias": model.trunk.norm.bias,
        "lm_head.weight": (model.embedding.tokens if model.head is None else model.head).rows_RI,
    }
    for at, block in enumerate(model.trunk.blocks):
        assert isinstance(block, Block)
        for name, layer in {
            "ln_1": block.attention_norm,
            "attn.c_attn": block.attention.qkv,
            "attn.c_proj": block.attention.out,
            "ln_2": block.feed_forward_norm,
            "mlp.c_fc": block.feed_forward.up,
            "mlp.c_proj": block.feed_forward.down,
        }.items():
            for kind, weight in layer.named_parameters():
                weights[f"transformer.h.{at}.{name}.{kind}"] = _transposed(weight)
    theirs.load_state_dict(weights)
    return theirs.eval()


@pytest.mark.parametrize("head", [Full(), Tied()])
@pytest.mark.parametrize(
    ("depth", "width", "heads", "multiple"), [(1, 8, 1, 4), (3, 48, 4, 4), (2, 30, 6, 2)]
)
def test_logits_are_those_of_hugging_faces_gpt2(
    depth: int, width: int, heads: int, multiple: int, head: Head
) -> None:
    shape = standard_architecture(depth=depth, width=width, heads=heads, vocab=97, context=24)
    model = random_model(replace(shape, head=head, feed_forward_multiple=multiple))
    tokens_BN = random_tokens(shape, batch=3)
    with torch.no_grad():
        ours_BNV, theirs_BNV = model(tokens_BN), _gpt2(model)(tokens_BN).logits
    assert ours_BNV.std() > 0.3
    torch.testing.assert_close(ours_BNV, theirs_BNV, atol=1e-5, rtol=0)


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
    _merge(twin.embedding.positions, model.embedding.positions)
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
    shape = replace(SHAPE, attention=attention, feed_forward_multiple=0)
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
    multiple = 4 if isinstance(attention, Softmax) else 0
    shape = replace(SHAPE, attention=attention, feed_forward_multiple=multiple)
    assert _positions_moved_by(shape, 3) == [False, False, False, True, True, True]


def test_a_token_moves_earlier_logits_without_a_mask() -> None:
    attention = Linear(residual=False, causal=False)
    shape = replace(SHAPE, attention=attention, feed_forward_multiple=0)
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
    multiples = st.integers(1, 4) if isinstance(attention, Softmax) else st.just(0)
    return Architecture(
        depth=draw(st.integers(1, 3)),
        width=draw(SIZES),
        heads=draw(SIZES),
        head_dim=draw(SIZES),
        attention=attention,
        feed_forward_multiple=draw(multiples),
        context=draw(SIZES),
        input=tokens,
        embedding=draw(ANY_TABLE),
        positions=draw(ANY_TABLE),
        head=draw(ANY_TABLE if is_scalar else st.one_of(ANY_TABLE, st.builds(Tied))),
    )


@settings(max_examples=60)
@given(shape=architectures())
def test_a_network_has_the_parameters_of_its_description_and_runs(shape: Architecture) -> None:
    model = random_model(shape)
    assert sum(weight.numel() for weight in model.parameters()) == shape.params
    logits_BNP = model(random_tokens(shape, batch=1))
    assert logits_BNP.shape == (1, shape.context, shape.input.predictions)


LINEAR = replace(
    SHAPE, attention=Linear(residual=True, causal=True), feed_forward_multiple=0
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
    expected_BND = one_hot_BNV @ embedding.tokens.matrix() + embedding.positions.matrix()
    torch.testing.assert_close(embedding(tokens_BN), expected_BND, atol=1e-12, rtol=0)


@pytest.mark.parametrize("table", TABLES)
def test_a_one_hot_patch_is_a_convolution_over_one_hot_vectors(table: Table) -> None:
    """sum_j W_j x_j + p (Wies et al. 2021, eq. 2), with W_j the rows of place j."""
    shape = replace(SMALL, input=Patches(vocab=7, size=3, encoding="one-hot"), embedding=table)
    embedding = random_model(shape, dtype=torch.float64).embedding
    tokens_BS = random_tokens(shape)
    kernel_DVT = embedding.tokens.matrix().unflatten(0, (3, 7)).permute(2, 1, 0)
    one_hot_BVS = F.one_hot(tokens_BS, 7).double().transpose(1, 2)
    content_BND = F.conv1d(one_hot_BVS, kernel_DVT, stride=3).transpose(1, 2)
    expected_BND = content_BND + embedding.positions.matrix()
    torch.testing.assert_close(embedding(tokens_BS), expected_BND, atol=1e-12, rtol=0)


@pytest.mark.parametrize("table", TABLES)
def test_a_scalar_patch_multiplies_standardised_levels(table: Table) -> None:
    shape = replace(SMALL, input=Patches(vocab=7, size=3, encoding="scalar"), embedding=table)
    embedding = random_model(shape).embedding
    tokens_BS = random_tokens(shape)
    level_of_V = torch.tensor([-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5])  # sd of 0..6 is 2
    matrix_TD = embedding.tokens.matrix()
    for at in range(5):
        levels_BT = level_of_V[tokens_BS[:, 3 * at : 3 * at + 3]]
        expected_BD = levels_BT @ matrix_TD + embedding.positions.matrix()[at]
        torch.testing.assert_close(embedding(tokens_BS)[:, at], expected_BD, atol=1e-5, rtol=0)


def test_a_short_row_has_the_first_positions() -> None:
    embedding = random_model(SMALL).embedding
    tokens_BN = random_tokens(SMALL)
    assert torch.equal(embedding(tokens_BN[:, :2]), embedding(tokens_BN)[:, :2])


DEEP = standard_architecture(depth=3, width=6, heads=2, vocab=5, context=5)


def _trunk(attention: Attention, *, heads: int = 2, head_dim: int = 3) -> nn.Module:
    multiple = 0 if isinstance(attention, Linear) else 4
    shape = replace(
        DEEP, attention=attention, feed_forward_multiple=multiple, heads=heads, head_dim=head_dim
    )
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


@pytest.mark.parametrize("residual", [False, True])
def test_without_a_mask_a_position_sees_all(residual: bool) -> None:
    assert _seen_from(_trunk(Linear(residual=residual, causal=False)), 2) == [True] * 5
