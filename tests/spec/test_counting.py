"""Counts against numbers that others printed, and against lists of matrices."""

import pytest

from archfit.spec.counting import (
    GPT2_STYLE,
    LLAMA_STYLE,
    QWEN3_STYLE,
    BlockStyle,
    NetworkSizes,
    attention_biases,
    feed_forward_biases,
    head_norms,
    table_weights,
    training_memory,
)
from archfit.spec.gpu_cost import device_bytes
from archfit.spec.run_options import RunOptions


def _sizes(
    shape: tuple[int, int, int, int, int, int], style: BlockStyle, *tables: int
) -> NetworkSizes:
    depth, width, heads, kv_heads, head_dim, hidden = shape
    return NetworkSizes(
        depth=depth,
        width=width,
        query=heads * head_dim,
        key_value=kv_heads * head_dim,
        head_dim=head_dim,
        hidden=hidden,
        style=style,
        tables=tuple((rows, None) for rows in tables),
    )


@pytest.mark.parametrize(
    ("sizes", "published"),
    [
        (_sizes((12, 768, 12, 12, 64, 3072), GPT2_STYLE, 50257, 1024), 124_439_808),
        (_sizes((48, 1600, 25, 25, 64, 6400), GPT2_STYLE, 50257, 1024), 1_557_611_200),
        (_sizes((32, 4096, 32, 32, 128, 11008), LLAMA_STYLE, 32000, 32000),
         6_738_415_616),
        (_sizes((32, 4096, 32, 8, 128, 14336), LLAMA_STYLE, 128256, 128256),
         8_030_261_248),
        (_sizes((28, 1024, 16, 8, 128, 3072), QWEN3_STYLE, 151936), 596_049_920),
    ],
    ids=["GPT-2", "GPT-2 XL", "Llama 2 7B", "Llama 3 8B", "Qwen3 0.6B"],
)  # fmt: skip
def test_published_models_have_their_published_parameters(
    sizes: NetworkSizes, published: int
) -> None:
    assert sizes.total == published
    assert sizes.total == sizes.blocks + sizes.biases_and_norms + sizes.embedding


def test_biases_are_counted_matrix_by_matrix() -> None:
    lengths = {"query": 7, "key": 5, "value": 5, "out": 3}
    for name, length in lengths.items():
        biases = frozenset((name,))
        assert attention_biases(biases, width=3, query=7, key_value=5) == length  # type: ignore[arg-type]
    gated = BlockStyle(norm=2, norms=2, biases=GPT2_STYLE.biases, is_gated=True, head_norm="none")
    assert feed_forward_biases(GPT2_STYLE, width=3, hidden=11) == 11 + 3
    assert feed_forward_biases(gated, width=3, hidden=11) == 2 * 11 + 3
    assert feed_forward_biases(LLAMA_STYLE, width=3, hidden=11) == 0


def test_norms_of_queries_and_keys_are_one_vector_or_as_long_as_all_heads() -> None:
    per_all = BlockStyle(norm=1, norms=2, biases=frozenset(), is_gated=True, head_norm="all")
    assert head_norms(LLAMA_STYLE, head_dim=4, query=8, key_value=4) == 0
    assert head_norms(QWEN3_STYLE, head_dim=4, query=8, key_value=4) == 8
    assert head_norms(per_all, head_dim=4, query=8, key_value=4) == 12


def test_a_factorised_table_has_two_matrices() -> None:
    assert table_weights(100, 8, None) == 800
    assert table_weights(100, 8, 3) == 100 * 3 + 3 * 8


def test_training_memory_counts_16_bytes_a_parameter_layers_and_logits() -> None:
    """ZeRO's 16 bytes, Korthikanti's 34 for a layer, and a logit with its gradient in 6."""
    memory = training_memory(1000, layer_units=6 * 64, context=32, outputs=257, batch_sequences=8)
    assert memory.weights + memory.gradients + memory.optimiser == 16 * 1000
    assert (memory.weights, memory.gradients) == (2000, 2000)
    assert memory.activations == 8 * 32 * 34 * 6 * 64 + 8 * 32 * 6 * 257
    assert memory.total == 16 * 1000 + memory.activations


def test_a_run_needs_memory_for_its_parameters_and_twice_its_activations() -> None:
    """In float32 16 bytes a parameter: itself, its gradient and two moments."""
    one, two = (
        RunOptions(precision="float32", batch=rows).spec(vocab=5, data_hash="0" * 64, seed=0)
        for rows in (1, 2)
    )
    row = device_bytes(two) - device_bytes(one)
    assert row == 2 * 4 * one.architecture.activations_per_sequence
    assert device_bytes(one) - row == 2**30 + 16 * one.architecture.params
