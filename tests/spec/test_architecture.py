"""Parameter counts against published ones, and against a count made matrix by matrix."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.spec import (
    Architecture,
    Factorised,
    Full,
    Linear,
    Patches,
    Softmax,
    Tied,
    Tokens,
    standard_architecture,
)

SMALL = standard_architecture(depth=2, width=12, heads=3, vocab=50, context=16)


@pytest.mark.parametrize(
    ("depth", "width", "heads", "published"),
    [
        (12, 768, 12, 124_439_808),
        (24, 1024, 16, 354_823_168),
        (36, 1280, 20, 774_030_080),
        (48, 1600, 25, 1_557_611_200),
    ],
)
def test_gpt2_has_its_published_number_of_parameters(
    depth: int, width: int, heads: int, published: int
) -> None:
    shape = standard_architecture(depth=depth, width=width, heads=heads, vocab=50257, context=1024)
    assert replace(shape, head=Tied()).params == published


def test_pythia_70m_has_its_published_number_without_embeddings() -> None:
    shape = standard_architecture(depth=6, width=512, heads=8, vocab=50304, context=2048)
    assert shape.params_without_embeddings == 18_915_328


def test_block_params_are_the_papers_12_L_d_squared() -> None:
    assert SMALL.block_params == 12 * 2 * 12**2


def _counted_one_matrix_at_a_time(a: Architecture) -> int:
    inner, hidden = a.heads * a.head_dim, a.feed_forward
    block = [(3 * inner, a.width), (3 * inner,), (a.width, inner), (a.width,)]
    block += [(hidden, a.width), (hidden,), (a.width, hidden), (a.width,)]
    block += [(a.width,)] * 4
    shapes = block * a.depth + [(a.width,)] * 2
    tables = [(a.embedding, a.input.dimensions), (a.positions, a.context)]
    if not isinstance(a.head, Tied):
        tables.append((a.head, a.input.predictions))
    for table, rows in tables:
        if isinstance(table, Factorised):
            shapes += [(rows, table.inner), (table.inner, a.width)]
        else:
            shapes.append((rows, a.width))
    total = 0
    for shape in shapes:
        size = 1
        for side in shape:
            size *= side
        total += size
    return total


tables = st.one_of(st.just(Full()), st.builds(Factorised, inner=st.integers(1, 40)))
inputs = st.one_of(
    st.builds(Tokens, vocab=st.integers(2, 60)),
    st.builds(
        Patches,
        vocab=st.integers(2, 9),
        size=st.integers(1, 5),
        encoding=st.sampled_from(("one-hot", "scalar")),
    ),
)
architectures = st.builds(
    Architecture,
    depth=st.integers(1, 5),
    width=st.integers(1, 20),
    heads=st.integers(1, 5),
    head_dim=st.integers(1, 9),
    attention=st.just(Softmax()),
    feed_forward=st.integers(1, 80),
    context=st.integers(1, 30),
    input=inputs,
    embedding=tables,
    positions=tables,
    head=tables,
)


@given(architectures)
def test_params_equal_a_count_matrix_by_matrix(architecture: Architecture) -> None:
    assert architecture.params == _counted_one_matrix_at_a_time(architecture)


@given(architectures)
def test_embedding_rank_is_the_least_of_the_three(architecture: Architecture) -> None:
    limits = [architecture.width, architecture.input.dimensions]
    if isinstance(architecture.embedding, Factorised):
        limits.append(architecture.embedding.inner)
    assert architecture.embedding_rank == min(limits)


def test_a_tied_head_costs_nothing_and_multiplies_all_the_same() -> None:
    tied = replace(SMALL, head=Tied())
    assert SMALL.params - tied.params == 50 * 12
    assert SMALL.training_flops_per_position == tied.training_flops_per_position


def test_training_flops_are_six_per_multiplied_weight_and_the_scores() -> None:
    by_hand = 6 * (12 * 2 * 12**2 + 50 * 12) + 12 * 2 * (3 * 4) * 16
    assert SMALL.training_flops_per_token == by_hand


def test_a_patch_shares_its_cost_among_its_tokens() -> None:
    patches = replace(SMALL, input=Patches(vocab=50, size=4, encoding="one-hot"))
    assert patches.training_flops_per_token == patches.training_flops_per_position / 4
    assert patches.embedding_rank == 12


def test_the_analysed_network_has_four_matrices_a_head_and_nothing_else() -> None:
    analysed = replace(SMALL, attention=Linear(residual=True, causal=False), feed_forward=0)
    assert analysed.params_without_embeddings == analysed.block_params == 2 * 4 * 12 * 12


@pytest.mark.parametrize(
    ("attention", "hidden", "sentence"),
    [
        (Linear(residual=True, causal=True), 4, "has no feed-forward layer: use 0"),
        (Softmax(), 0, "feed_forward=0 is below 1"),
        ("linear", 4, "attention='linear' is no Softmax | Linear"),
    ],
)
def test_attention_and_feed_forward_must_fit(
    attention: Linear | Softmax, hidden: int, sentence: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        replace(SMALL, attention=attention, feed_forward=hidden)


def test_full_and_factorised_at_full_rank_are_different_architectures() -> None:
    factorised = replace(SMALL, embedding=Factorised(inner=12))
    assert factorised.embedding_rank == SMALL.embedding_rank
    assert factorised != SMALL


def test_a_width_that_heads_do_not_divide_is_told_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"width=770 is not a multiple of heads=12.*width=768"):
        standard_architecture(depth=2, width=770, heads=12, vocab=50, context=16)
    with pytest.raises(ValueError, match="use width=12"):
        standard_architecture(depth=2, width=5, heads=12, vocab=50, context=16)


@pytest.mark.parametrize("name", ["depth", "width", "heads", "head_dim", "context"])
@pytest.mark.parametrize("value", [0, -3, 2.5, True, 10**13])
def test_a_size_that_is_none_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name}={value}.*use"):
        replace(SMALL, **{name: value})  # type: ignore[arg-type]  # that is the point


def test_a_vocabulary_of_one_token_predicts_nothing() -> None:
    with pytest.raises(ValueError, match="vocab=1 is below 2; use 2 or more"):
        Tokens(vocab=1)


def test_scalar_patches_cannot_tie_their_head() -> None:
    patches = Patches(vocab=16, size=4, encoding="scalar")
    with pytest.raises(ValueError, match="use a full head or one-hot patches"):
        replace(SMALL, input=patches, head=Tied())


def test_a_factorised_embedding_multiplies_its_second_factor_only() -> None:
    factorised = replace(SMALL, embedding=Factorised(inner=5))
    more = factorised.training_flops_per_position - SMALL.training_flops_per_position
    assert more == 6 * 5 * 12


def test_scalar_patches_multiply_their_whole_embedding() -> None:
    one_hot = replace(SMALL, input=Patches(vocab=7, size=4, encoding="one-hot"))
    scalar = replace(SMALL, input=Patches(vocab=7, size=4, encoding="scalar"))
    more = scalar.training_flops_per_position - one_hot.training_flops_per_position
    assert more == 6 * 4 * 12


def test_positions_have_no_more_rank_than_there_are() -> None:
    assert replace(SMALL, context=5).position_rank == 5
    assert replace(SMALL, context=50).position_rank == 12
    assert replace(SMALL, positions=Factorised(inner=3)).position_rank == 3


def test_the_attention_ratio_of_t5_11b_is_16() -> None:
    assert replace(SMALL, width=1024, heads=128, head_dim=128).attention_ratio == 16


@pytest.mark.parametrize("name", ["input", "embedding", "positions", "head"])
def test_a_part_of_another_type_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=None is no "):
        replace(SMALL, **{name: None})  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ValueError, match="embedding=Tied"):
        replace(SMALL, embedding=Tied())  # type: ignore[arg-type]
