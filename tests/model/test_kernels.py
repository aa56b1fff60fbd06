"""The Triton kernels against plain torch: on a GPU as they are, elsewhere in Triton's interpreter
(conftest.py asks for it)."""

import importlib
import importlib.util
import inspect
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from archfit.model import Transformer, parametrisation
from archfit.spec import Rotary, standard_architecture

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PRECISION = torch.bfloat16 if torch.cuda.is_available() else torch.float32  # of products
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is made for Linux only"
)
KERNEL_FILES = (
    "attention_kernels", "feed_forward_kernels", "gradient_shares",
    "product_kernels", "rotary_kernels", "row_kernels", "tiles",
)  # fmt: skip


def _random(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE).requires_grad_()


def _assert_close(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> None:
    """As near as sums of float32 numbers in two orders; some are 0 but for their rounding."""
    _assert_within(1e-5, ours, theirs)


def _assert_within(rounding: float, ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> None:
    for mine, plain in zip(ours, theirs, strict=True):
        largest = max(1.0, plain.detach().abs().max().item())
        torch.testing.assert_close(mine.float(), plain, atol=rounding * largest, rtol=rounding)


def _assert_same_products(
    ours: Callable[..., Tensor], plain: Callable[..., Tensor], leaves: tuple[Tensor, ...]
) -> None:
    """Results and gradients are equal. Kernels with products are made for bfloat16, in which they
    run on a GPU; plain torch then has the same numbers in float32."""
    narrow = [leaf.detach().to(PRECISION).requires_grad_() for leaf in leaves]
    wide = [leaf.detach().float().requires_grad_() for leaf in narrow]
    results = [ours(*narrow), plain(*wide)]
    slope = torch.randn(results[0].shape, generator=torch.Generator().manual_seed(9)).to(DEVICE)
    both = [
        (y, *torch.autograd.grad((y * slope).sum(), inputs))
        for y, inputs in zip(results, (narrow, wide), strict=True)
    ]
    _assert_within(2e-2 if DEVICE == "cuda" else 1e-5, *both)


@pytest.mark.parametrize("width", [14, 144])
@pytest.mark.parametrize("is_centred", [True, False])
@pytest.mark.parametrize("has_branch_bias", [True, False])
@pytest.mark.parametrize("reads_total", [True, False])
def test_sum_norm_and_their_gradients_are_those_of_torch(
    width: int,
    is_centred: bool,
    has_branch_bias: bool,
    reads_total: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from archfit.model import row_kernels as kernels

    # Each program sums gradients of many tiles.
    monkeypatch.setattr(kernels, "norm_programs", lambda *_: 3)
    x_BND, branch_BND = _random(2, 50, width, seed=0), _random(2, 50, width, seed=1)
    weight_D, bias_D, branch_bias_D = (_random(width, seed=seed) for seed in (2, 3, 5))
    slope_BND, total_slope_BND = _random(2, 2, 50, width, seed=4).detach()
    leaves = [x_BND, weight_D, branch_BND]
    leaves += [bias_D] * is_centred + [branch_bias_D] * has_branch_bias

    def with_gradients(total_BND: Tensor, normed_BND: Tensor) -> tuple[Tensor, ...]:
        score = (normed_BND * slope_BND).sum()
        if reads_total:
            score = score + (total_BND * total_slope_BND).sum()
        return total_BND, normed_BND, *torch.autograd.grad(score, leaves)

    total_BND = x_BND + 0.3 * (branch_BND + branch_bias_D * has_branch_bias)
    normed_BND = (
        F.layer_norm(total_BND, (width,), weight_D, bias_D, 1e-5)
        if is_centred
        else F.rms_norm(total_BND, (width,), weight_D, 1e-5)
    )
    ours = kernels.fused_add_norm(
        x_BND,
        branch_BND,
        branch_bias_D if has_branch_bias else None,
        weight_D,
        bias_D if is_centred else None,
        0.3,
        width,
    )
    _assert_close(with_gradients(*ours), with_gradients(total_BND, normed_BND))


def test_a_total_that_alone_is_read_passes_its_gradient_on() -> None:
    from archfit.model.row_kernels import fused_add_norm

    x_BND, branch_BND = _random(1, 5, 8, seed=0), _random(1, 5, 8, seed=1)
    bias_D, weight_D = _random(2, 8, seed=2)
    total_BND, _ = fused_add_norm(x_BND, branch_BND, bias_D, weight_D, weight_D, 0.3, 8)
    slope_BND = _random(1, 5, 8, seed=4).detach()
    slopes = torch.autograd.grad((total_BND * slope_BND).sum(), (x_BND, branch_BND, bias_D))
    _assert_close(slopes, (slope_BND, 0.3 * slope_BND, 0.3 * slope_BND.sum((0, 1))))


@pytest.mark.parametrize("is_centred", [True, False])
def test_without_a_branch_the_stream_passes_through(is_centred: bool) -> None:
    from archfit.model.row_kernels import fused_add_norm

    x_BND, weight_D, bias_D = _random(2, 7, 12, seed=0), _random(12, seed=1), _random(12, seed=2)
    slope_BND, total_slope_BND = _random(2, 2, 7, 12, seed=3).detach()
    total_BND, normed_BND = fused_add_norm(
        x_BND, None, None, weight_D, bias_D if is_centred else None, 0.3, 12
    )
    expected_BND = (
        F.layer_norm(x_BND, (12,), weight_D, bias_D, 1e-5)
        if is_centred
        else F.rms_norm(x_BND, (12,), weight_D, 1e-5)
    )
    assert torch.equal(total_BND, x_BND)
    both = [
        (normed, *torch.autograd.grad((normed * slope_BND + total * total_slope_BND).sum(), x_BND))
        for total, normed in ((total_BND, normed_BND), (x_BND, expected_BND))
    ]
    _assert_close(*both)


def _turned(x_BHNK: Tensor, angles: Tensor | None) -> Tensor:
    """As complex numbers, which turn when they are multiplied."""
    if angles is None:
        return x_BHNK
    a, b = x_BHNK.chunk(2, dim=-1)
    turned = torch.complex(a, b) * torch.complex(*angles)
    return torch.cat((turned.real, turned.imag), dim=-1)


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("is_turned", [True, False])
@pytest.mark.parametrize(
    ("positions", "heads", "groups", "head_dim"),
    [
        (5, 2, 2, 8),
        pytest.param(16, 4, 1, 20, marks=pytest.mark.slow),
        (33, 4, 2, 34),
        pytest.param(128, 1, 1, 72, marks=pytest.mark.slow),
        (128, 2, 1, 12),
        pytest.param(130, 1, 1, 64, marks=pytest.mark.slow),
        pytest.param(130, 4, 2, 6, marks=pytest.mark.slow),
        pytest.param(300, 2, 1, 10, marks=pytest.mark.slow),
        (40, 2, 2, 136),
        pytest.param(40, 1, 1, 300, marks=pytest.mark.slow),
        (20, 2, 1, 130),
    ],
)
def test_attention_and_its_gradients_are_those_of_torch(
    positions: int, heads: int, groups: int, head_dim: int, is_turned: bool, is_causal: bool
) -> None:
    _check_attention(positions, heads, groups, head_dim, is_turned, is_causal)


@pytest.mark.parametrize(("positions", "head_dim"), [(5, 7), (33, 11), (130, 11), (16, 33)])
def test_heads_of_odd_size_are_split_anywhere(positions: int, head_dim: int) -> None:
    _check_attention(positions, 2, 2, head_dim, is_turned=False, is_causal=True)


def _check_attention(
    positions: int, heads: int, groups: int, head_dim: int, is_turned: bool, is_causal: bool
) -> None:
    from archfit.model.attention_kernels import fused_attention
    from archfit.model.rotary_kernels import Turn

    batch, scale = 2 if positions <= 128 else 1, 1.1 / math.sqrt(head_dim)
    qkv_BNHK = _random(batch, positions, heads + 2 * groups, head_dim, seed=0)
    bias_HK = _random(heads + 2 * groups, head_dim, seed=3)
    turn_NK = 6 * _random(positions + 3, head_dim // 2, seed=2).detach()
    angles = torch.stack((turn_NK.cos(), turn_NK.sin()))[:, :positions] if is_turned else None

    def ours(qkv_BNHK: Tensor, *bias_HK: Tensor) -> Tensor:
        bias = None
        for each_HK in bias_HK:
            qkv_BNHK, bias = qkv_BNHK + each_HK.detach(), each_HK.flatten()
        turn = None if angles is None else Turn(angles)
        return fused_attention(
            qkv_BNHK, bias, heads, scale, turn, is_causal=is_causal, true_head_dim=head_dim
        )

    def plain(qkv_BNHK: Tensor, *bias_HK: Tensor) -> Tensor:
        parts = sum(bias_HK, qkv_BNHK).split((heads, groups, groups), dim=2)
        q, k, v = (part.transpose(1, 2) for part in parts)
        y_BHNK = F.scaled_dot_product_attention(
            _turned(q, angles), _turned(k, angles), v,
            is_causal=is_causal, scale=scale, enable_gqa=True,
        )  # fmt: skip
        return y_BHNK.transpose(1, 2)

    # A block with rotary positions has no biases.
    leaves = (qkv_BNHK,) if is_turned else (qkv_BNHK, bias_HK)
    _assert_same_products(ours, plain, leaves)


def test_without_a_bias_attention_makes_no_gradient_for_one() -> None:
    from archfit.model.attention_kernels import fused_attention

    qkv_BNHK = _random(1, 6, 3, 8, seed=0)
    y_BNHK = fused_attention(qkv_BNHK, None, 1, 0.3, None, is_causal=True, true_head_dim=8)
    (slope,) = torch.autograd.grad(y_BNHK.sum(), qkv_BNHK)
    assert slope.shape == qkv_BNHK.shape


def test_a_product_has_the_gradients_of_torch_and_leaves_that_of_its_bias_to_others() -> None:
    from archfit.model.product_kernels import fused_product

    x, weight, bias = _random(3, 5, 8, seed=0), _random(13, 8, seed=1), _random(13, seed=2)
    _assert_same_products(
        lambda x, weight: fused_product(x, weight, bias),
        lambda x, weight: F.linear(x, weight, bias),
        (x, weight),
    )
    y = fused_product(x, weight, bias)
    assert torch.autograd.grad(y.sum(), (x, bias), allow_unused=True)[1] is None


@pytest.mark.parametrize("is_gated", [True, False])
@pytest.mark.parametrize(
    ("width", "units"),
    [
        (14, 56), (16, 64), (24, 64), (48, 130), (72, 192), (104, 64), (144, 96), (200, 40),
        (330, 150),
    ],
)  # fmt: skip
def test_the_feed_forward_layer_and_its_gradients_are_those_of_torch(
    width: int, units: int, is_gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archfit.model import feed_forward_kernels as module

    monkeypatch.setattr(module, "MOST_SUMS", 2)  # each sums several tiles
    monkeypatch.setattr(module, "WIDEST", module.WIDEST_GATED)
    up = _random(units * (1 + is_gated), width, seed=2) / math.sqrt(width)
    down, bias = _random(width, units, seed=3) / math.sqrt(units), _random(units, seed=4)
    biases = () if is_gated else (bias,)

    def ours(x_BND: Tensor, up: Tensor, down: Tensor, bias: Tensor | None = None) -> Tensor:
        return module.fused_feed_forward(x_BND, up, bias, down)

    def plain(x_BND: Tensor, up: Tensor, down: Tensor, bias: Tensor | None = None) -> Tensor:
        if bias is not None:
            return F.linear(F.gelu(F.linear(x_BND, up, bias)), down)
        gate, value = F.linear(x_BND, up).chunk(2, dim=-1)
        return F.linear(F.silu(gate) * value, down)

    _assert_same_products(ours, plain, (_random(3, 67, width, seed=0), up, down, *biases))


@pytest.mark.parametrize(
    ("rows", "width", "together", "shares"),
    [
        (5, 14, 1, 1),
        (5, 14, 3, 4),
        pytest.param(257, 70, 1, 4, marks=pytest.mark.slow),
        pytest.param(257, 70, 3, 1, marks=pytest.mark.slow),
        pytest.param(1030, 14, 1, 1, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("is_sorted", [True, False])
def test_the_gradient_of_a_table_sums_what_was_read_from_each_row(
    rows: int,
    width: int,
    together: int,
    shares: int,
    is_sorted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from archfit.model import product_kernels as kernels

    monkeypatch.setattr(kernels, "MOST_ONE_HOT_ROWS", 0 if is_sorted else 2000)
    monkeypatch.setattr(kernels, "_shares", lambda *_: shares)
    table_RD, slope_MD = _random(rows, width, seed=0), _random(150, width, seed=1).detach()
    generator = torch.Generator().manual_seed(2)
    # Rows of a loader have one token more, so those that are read lie apart.
    ids_MT = torch.randint(rows, (150, together + 1), generator=generator).to(DEVICE)[:, :together]
    ids_MT[40:120] = rows - 1  # one token is frequent
    plain = table_RD[ids_MT].sum(1)
    ours = kernels.fused_look_up(ids_MT, table_RD)
    _assert_close(
        (ours, *torch.autograd.grad((ours * slope_MD).sum(), table_RD)),
        (plain, *torch.autograd.grad((plain * slope_MD).sum(), table_RD)),
    )


@pytest.mark.parametrize(("rows", "is_sorted"), [(16, False), (17, True)])
def test_only_the_ids_of_large_tables_are_sorted(
    rows: int, is_sorted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archfit.model import product_kernels as kernels

    sort, sorted_ids = torch.sort, []

    def noticed(ids: Tensor, *, stable: bool) -> Any:
        assert stable  # equal ids stay in the order of their positions
        sorted_ids.append(ids)
        return sort(ids, stable=stable)

    monkeypatch.setattr(torch, "sort", noticed)
    monkeypatch.setattr(kernels, "MOST_ONE_HOT_ROWS", 16)
    ids_MT, slope_MD = torch.zeros(2, 1, dtype=torch.long), torch.ones(2, 4)
    kernels.table_gradient(ids_MT.to(DEVICE), slope_MD.to(DEVICE), rows)
    assert bool(sorted_ids) is is_sorted


def test_many_positions_are_shared_by_programs_and_few_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from archfit.model import product_kernels as kernels

    monkeypatch.setattr(kernels, "busy_programs", lambda *_: 100)
    shares = [kernels._shares(torch.device("cpu"), tiles, 65_536) for tiles in (3, 10, 1000)]
    assert shares == [33, 10, 1]
    assert kernels._shares(torch.device("cpu"), 1, kernels.LEAST_SHARE) == 1


@pytest.mark.parametrize("vocab", [5, 257, 3000, 5000])
@pytest.mark.parametrize("apart", [0, 5])  # a padded head leaves a gap after each row
def test_losses_and_their_gradients_are_those_of_torch(vocab: int, apart: int) -> None:
    from archfit.model.row_kernels import fused_cross_entropy

    padded_MV = _random(9, vocab + apart, seed=0)
    logits_MV = (3 * padded_MV)[:, :vocab]
    targets_M = torch.arange(9, device=DEVICE) * 4999 % vocab
    slope_M = _random(9, seed=1).detach()
    assert logits_MV.stride(0) == vocab + apart

    def with_gradient(losses_M: Tensor) -> tuple[Tensor, ...]:
        return losses_M, *torch.autograd.grad((losses_M * slope_M).sum(), padded_MV)

    expected = with_gradient(F.cross_entropy(3 * padded_MV[:, :vocab], targets_M, reduction="none"))
    _assert_close(with_gradient(fused_cross_entropy(logits_MV, targets_M)), expected)


def test_columns_that_lie_apart_are_read_right() -> None:
    from archfit.model.row_kernels import fused_cross_entropy

    logits_VM, targets_M = _random(7, 4, seed=0).detach(), torch.arange(4, device=DEVICE)
    expected_M = F.cross_entropy(logits_VM.T, targets_M, reduction="none")
    _assert_close((fused_cross_entropy(logits_VM.T, targets_M),), (expected_M,))


def test_huge_logits_do_not_overflow() -> None:
    from archfit.model.row_kernels import fused_cross_entropy

    logits_MV = torch.zeros(1, 5000, device=DEVICE)
    logits_MV[0, 4999] = 1000.0
    losses = [fused_cross_entropy(logits_MV, torch.tensor([t], device=DEVICE)) for t in (0, 4999)]
    assert [loss.item() for loss in losses] == [1000.0, 0.0]


@pytest.mark.parametrize("block", ["gpt2", "llama", "qwen3"])
@pytest.mark.parametrize(
    ("objective", "context"),
    [("causal", 20), pytest.param("masked", 130, marks=pytest.mark.slow)],
)
def test_a_network_of_kernels_has_the_losses_and_gradients_of_plain_torch(
    block: str,
    objective: Literal["causal", "masked"],
    context: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from archfit.model import feed_forward_kernels, layers
    from archfit.model.gradient_shares import GradientShares

    if objective == "masked":
        monkeypatch.setattr(feed_forward_kernels, "WIDEST", 0)
        monkeypatch.setattr(feed_forward_kernels, "WIDEST_GATED", 0)
    shape = standard_architecture(depth=2, width=8, heads=2, vocab=7, context=context)
    shape = replace(shape, objective=objective)
    if block != "gpt2":
        shape = replace(shape, block="llama", positions=Rotary(), kv_heads=1)
    shape = replace(shape, qk_norm=block == "qwen3")
    numbers = parametrisation(shape, "completep")  # multipliers that are not 1
    model = Transformer(shape, numbers, dropout=0.0).to(DEVICE)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data.copy_(0.4 * torch.randn(parameter.shape, generator=generator))
    tokens_BS = torch.randint(7, (1, context), generator=generator).to(DEVICE)

    def losses_and_gradients(
        is_fused: bool, shares: GradientShares | None = None
    ) -> tuple[Tensor, ...]:
        for name in ("can_fuse", "can_fuse_products"):
            monkeypatch.setattr(layers, name, lambda _: is_fused)
        with torch.autocast("cuda", torch.bfloat16, enabled=is_fused and DEVICE == "cuda"):
            losses_M = layers.token_losses(model(tokens_BS), tokens_BS.roll(-1, 1), shape.input)
        if shares is None:
            return losses_M, *torch.autograd.grad(losses_M.mean(), list(model.parameters()))
        losses_M.mean().backward()
        shares.add_up()
        return losses_M, *(cast("Tensor", weight.grad) for weight in model.parameters())

    rounding = 1e-5 if DEVICE == "cpu" else 5e-2
    plain = losses_and_gradients(False)
    _assert_within(rounding, losses_and_gradients(True), plain)
    shares = GradientShares(model, batch=len(tokens_BS))
    _assert_within(rounding, losses_and_gradients(True, shares), plain)
    shares.remove()
    assert not [weight for weight in model.parameters() if hasattr(weight, "shares")]


@pytest.mark.parametrize("has_shares", [pytest.param(True, marks=pytest.mark.slow), False])
@pytest.mark.parametrize(
    ("block", "sizes"),  # width, head_dim, hidden units
    [
        ("gpt2", (12, 7, 30)),
        pytest.param("gpt2", (10, 5, 44), marks=pytest.mark.slow),
        ("llama", (12, 6, 20)),
        ("qwen3", (10, 10, 24)),
    ],
)
def test_a_network_inside_a_larger_one_has_its_losses_and_gradients(
    block: str, sizes: tuple[int, int, int], has_shares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the weights around it have none."""
    from archfit.model import layers
    from archfit.model.gradient_shares import GradientShares

    shape = standard_architecture(depth=2, width=16, heads=2, vocab=7, context=20)
    shape = replace(shape, width=sizes[0], head_dim=sizes[1], feed_forward=sizes[2])
    if block != "gpt2":
        shape = replace(shape, block="llama", positions=Rotary(), kv_heads=1)
        shape = replace(shape, qk_norm=block == "qwen3")
    numbers, generator = parametrisation(shape, "completep"), torch.Generator().manual_seed(0)
    small = Transformer(shape, numbers, dropout=0.0).to(DEVICE)
    for parameter in small.parameters():
        parameter.data.copy_(0.4 * torch.randn(parameter.shape, generator=generator))
    large = Transformer.around(small, numbers).to(DEVICE)
    tokens_BS = torch.randint(7, (2, 20), generator=generator).to(DEVICE)
    results = []
    for model, fused in ((small, False), (large, True)):
        for name in ("can_fuse", "can_fuse_products"):
            monkeypatch.setattr(layers, name, lambda _, fused=fused: fused)
        shares = GradientShares(model, batch=2) if fused and has_shares else None
        with torch.autocast("cuda", torch.bfloat16, enabled=fused and DEVICE == "cuda"):
            losses_M = layers.token_losses(model(tokens_BS), tokens_BS.roll(-1, 1), shape.input)
        losses_M.mean().backward()
        if shares is not None:
            shares.add_up()
        results.append(losses_M)
    rounding = 1e-5 if DEVICE == "cpu" else 5e-2
    _assert_within(rounding, (results[1],), (results[0],))
    _assert_gradients_inside(small, large, rounding)


def _assert_gradients_inside(small: Transformer, large: Transformer, rounding: float) -> None:
    from archfit.model.padding import part_inside

    shape = small.architecture
    for (name, inner), outer in zip(small.named_parameters(), large.parameters(), strict=True):
        assert inner.grad is not None
        assert outer.grad is not None
        part = part_inside(name, outer.grad, shape)
        _assert_within(rounding, (part.reshape(inner.shape),), (inner.grad,))
        left = outer.grad.clone()
        part_inside(name, left, shape).zero_()
        assert not left.any(), name


def _kernels() -> list[tuple[str, Any, dict[str, object]]]:
    """Name, function and module of every kernel."""
    modules = [importlib.import_module(f"archfit.model.{name}") for name in KERNEL_FILES]
    return [
        (name, kernel, vars(module))
        for module in modules
        for name, kernel in vars(module).items()
        if hasattr(kernel, "fn") and kernel.fn.__module__ == module.__name__
    ]


def test_no_import_hook_stands_between_triton_and_a_kernel() -> None:
    """Triton compiles the source with the names of the function's module; a wrapper has others."""
    found = _kernels()
    assert len(found) == 34
    assert all(kernel.fn.__globals__ is names for _, kernel, names in found)


def test_no_sum_depends_on_which_program_comes_first() -> None:
    assert not [name for name, kernel, _ in _kernels() if "atomic" in inspect.getsource(kernel.fn)]


def test_sizes_are_not_compiled_in() -> None:
    """Only tiles and flags are, so that networks of all widths share a few kernels."""
    tiles = {
        "A", "ALIGN", "B", "BLOCK", "CAUSAL", "CHUNK", "COLUMNS", "GATED", "IN", "KEYS",
        "OTHER", "OUT", "OWN", "POSITIONS", "QUERIES", "ROWS", "SHARES", "TILE", "UNITS",
    }  # fmt: skip
    for name, kernel, _ in _kernels():
        parameters = inspect.signature(kernel.fn).parameters.values()
        compiled_in = {p.name for p in parameters if "constexpr" in str(p.annotation)}
        assert compiled_in <= tiles | {"BACK", "MASKED"}, name


@pytest.mark.parametrize("block", ["gpt2", "llama"])
@pytest.mark.parametrize(
    ("context", "width"), [(20, 16), pytest.param(140, 336, marks=pytest.mark.slow)]
)
def test_a_kernel_is_compiled_ahead_once(
    block: str, context: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archfit.model import compile_ahead as module

    monkeypatch.setattr(module, "_compiling", {})
    _use_kernels(monkeypatch)
    with ThreadPoolExecutor(1) as loader:  # the interpreter is made for one thread
        monkeypatch.setattr(module, "_loaders", lambda _: loader)
        _assert_compiled_once(module, block, context, width)


def _use_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without a GPU."""
    from archfit.model import layers

    for name in ("can_fuse", "can_fuse_products"):
        monkeypatch.setattr(layers, name, lambda _: True)


def _assert_compiled_once(module: Any, block: str, context: int, width: int) -> None:
    shape = standard_architecture(depth=1, width=width, heads=2, vocab=7, context=context)
    if block == "llama":
        shape = replace(shape, block="llama", positions=Rotary())
    first = module.compile_ahead(shape, torch.device(DEVICE))
    assert len({*first}) == len(first) >= 13
    for other in (replace(shape, depth=3), replace(shape, heads=4)):
        assert module.compile_ahead(other, torch.device(DEVICE)) == first
    assert [kernel.exception() for kernel in first] == [None] * len(first)


def test_a_kernel_that_failed_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed for want of memory may not do so later; heads that no kernel takes have none."""
    from archfit.model import compile_ahead as module

    monkeypatch.setattr(module, "_compiling", {})
    shape = standard_architecture(depth=1, width=1026, heads=2, vocab=7, context=16)
    _use_kernels(monkeypatch)
    variants = module.variants_of(shape, torch.device("cpu"))
    assert variants
    assert not [each for each in variants if "attention" in each]
    with ThreadPoolExecutor(1) as loader:
        monkeypatch.setattr(module, "_loaders", lambda _: loader)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_load", lambda *_: 1 / 0)
            failed = module.compile_ahead(shape, torch.device("cpu"))
            assert all(kernel.exception() for kernel in failed)
        monkeypatch.setattr(module, "_load", lambda *_: None)
        assert not [
            kernel.exception()
            for kernel in module.compile_ahead(shape, torch.device("cpu"))
            if kernel.exception()
        ]


def test_copies_are_what_the_weights_are_and_their_gradients_go_to_the_weights() -> None:
    from archfit.model.product_kernels import coarse, fused_product

    shape = standard_architecture(depth=1, width=8, heads=1, vocab=7, context=5)
    model = Transformer(shape, parametrisation(shape, "standard"), dropout=0.0).to(DEVICE)
    model.copy_weights()
    layer = model.trunk.get_submodule("blocks.0.attention.out")
    assert isinstance(layer, torch.nn.Linear)
    with torch.no_grad():
        layer.weight.mul_(3)
    model.refresh_copies()
    assert torch.equal(coarse(layer.weight, torch.bfloat16), layer.weight.bfloat16())
    assert coarse(layer.weight, torch.float32) is layer.weight  # no copy of another precision
    x = _random(4, 8, seed=0).bfloat16()
    fused_product(x, layer.weight, layer.bias).sum().backward()
    expected = x.detach().float().sum(0).expand(8, 8)
    torch.testing.assert_close(layer.weight.grad, expected, atol=0.05, rtol=0.02)
    assert layer.bias.grad is None  # whoever reads the result makes it
