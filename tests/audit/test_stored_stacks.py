"""Stacks by the names of their tensors, and sizes by their shapes."""

from pathlib import Path

import pytest

from archfit.audit.checkpoint_file import StoredTensor
from archfit.audit.checkpoint_model import StoredStack, find_stacks, is_learned


def tensor(name: str, *shape: int, dtype: str = "F32") -> StoredTensor:
    return StoredTensor(name=name, dtype=dtype, shape=shape, file=Path("x"), start=0, end=0)


def stack(**shapes: tuple[int, ...]) -> StoredStack:
    """One block; the points of names are written as two underscores."""
    named = {f"0.{name.replace('__', '.')}": shape for name, shape in shapes.items()}
    tensors = {name: tensor(name, *shape) for name, shape in named.items()}
    return StoredStack(prefix="layers", blocks=1, tensors=tensors)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["h.0.a.w", "h.1.a.w"], [("h", 2)]),
        (["model.layers.0.mlp.experts.7.w"], [("model.layers", 1)]),  # experts are no blocks
        (
            ["encoder.block.0.layer.0.w", "decoder.block.0.w"],
            [("decoder.block", 1), ("encoder.block", 1)],
        ),
        (["h.99999.w", *(f"h.{n}.w" for n in range(99999))], [("h", 100_000)]),
        (["h.0.w", "h.100000.w"], [("h", 1)]),  # six digits are no block
        (["h.00.w"], [("h", 1)]),
    ],
)
def test_the_first_number_after_a_container_is_that_of_the_block(
    names: list[str], found: list[tuple[str, int]]
) -> None:
    stacks = find_stacks([tensor(name, 2, 2) for name in names])
    assert [(stack.prefix, stack.blocks) for stack in stacks] == found


def test_a_tensor_right_at_its_number_is_in_no_block() -> None:
    with pytest.raises(ValueError, match="no tensor has the name of a numbered block"):
        find_stacks([tensor("layers.0", 2, 2)])


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "learned"),
    [
        ("h.0.attn.bias", (1, 1, 8, 8), "F32", False),  # a causal mask
        ("h.0.attn.bias", (8,), "F32", True),
        ("h.0.attn.bias", (1, 2, 8, 8), "F32", True),
        ("h.0.attn.weight", (1, 1, 8, 8), "F32", True),
        ("rotary.inv_freq", (8,), "F32", False),
        ("w", (8,), "I64", False),
        ("w", (8,), "U8", False),
        ("w", (8,), "BF16", True),
        ("w", (8,), "F8_E4M3", True),
        ("w", (0, 8), "F32", False),
        ("w", (), "F32", True),
    ],
)
def test_what_training_changed_is_learned(
    name: str, shape: tuple[int, ...], dtype: str, learned: bool
) -> None:
    assert is_learned(tensor(name, *shape, dtype=dtype)) == learned


@pytest.mark.parametrize(
    ("prefix", "role"),
    [
        ("vision_tower.encoder.layers", "vision"),
        ("model.encoder.layers", "encoder"),
        ("model.decoder.layers", "decoder"),
        ("text_model.layers", "text"),
        ("model.layers", "blocks"),
    ],
)
def test_a_role_is_read_off_the_name(prefix: str, role: str) -> None:
    assert StoredStack(prefix=prefix, blocks=1, tensors={}).role == role


@pytest.mark.parametrize(
    ("norm", "heads"),
    [
        ((8,), (2, 8, 1)),
        ((16,), (None, None, None)),  # over all heads at once
        ((5,), (None, None, None)),  # divides nothing
        ((4, 4), (None, None, None)),
    ],
)
def test_heads_follow_from_a_norm_over_one_of_them(
    norm: tuple[int, ...], heads: tuple[int | None, ...]
) -> None:
    made = stack(q_proj__weight=(16, 20), k_proj__weight=(8, 20), q_norm__weight=norm)
    assert (made.rows("queries"), made.rows("keys")) == (16, 8)
    sizes = made.shape(input_width=20)
    assert (sizes.heads, sizes.head_dim, sizes.kv_heads) == heads


@pytest.mark.parametrize(
    ("buckets_by_heads", "heads"),
    [((32, 4), (4, 4)), ((32, 1), (1, 16)), ((32, 5), (None, None)), ((32, 16), (None, None))],
)
def test_heads_follow_from_a_bias_for_each_of_them(
    buckets_by_heads: tuple[int, int], heads: tuple[int | None, ...]
) -> None:
    made = stack(q__weight=(16, 20), relative_attention_bias__weight=buckets_by_heads)
    sizes = made.shape(input_width=20)
    assert (sizes.heads, sizes.head_dim) == heads


def test_keys_that_no_head_divides_tell_no_key_value_heads() -> None:
    made = stack(q_proj__weight=(16, 20), k_proj__weight=(12, 20), q_norm__weight=(8,))
    sizes = made.shape(input_width=20)
    assert (sizes.heads, sizes.kv_heads) == (2, None)
    alone = stack(q_proj__weight=(16, 20), q_norm__weight=(8,))
    assert alone.shape(input_width=20).kv_heads is None


def test_the_width_is_the_size_that_most_matrices_share() -> None:
    made = stack(a__weight=(8, 20), b__weight=(20, 8), c__weight=(8, 8))
    assert made.shape(input_width=None).width == 8
    assert made.shape(input_width=20).width == 8  # two of three are fewer than three
    tied = stack(down_proj__weight=(8, 20), up_proj__weight=(20, 8))
    assert tied.shape(input_width=20).width == 20
    assert tied.shape(input_width=8).feed_forward == 20
    with pytest.raises(ValueError, match="share no one size that could be its width"):
        tied.shape(input_width=None)


def test_hidden_units_are_those_of_experts_where_there_are_any() -> None:
    made = stack(
        mlp__down_proj__weight=(8, 30), mlp__experts__down_proj=(4, 20, 8), gate_proj__weight=(8, 8)
    )
    shape = made.shape(input_width=8)
    assert shape.feed_forward == 20
    assert shape.is_gated
    assert shape.block_weights == 8 * 30 + 4 * 20 * 8 + 8 * 8
    assert (shape.depth, shape.distinct_blocks) == (1, 1)
    bert = stack(attention__output__dense__weight=(8, 8), output__dense__weight=(8, 24))
    assert bert.shape(input_width=8).feed_forward == 24
    assert not bert.shape(input_width=8).is_gated
    assert stack(down_proj__bias=(8,), a__weight=(8, 8)).shape(input_width=8).feed_forward is None
