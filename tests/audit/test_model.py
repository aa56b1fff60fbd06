"""archfit's own specs, as an audit reads them."""

import itertools
from dataclasses import replace

import pytest

from archfit.audit.config import model_from_config
from archfit.audit.model import model_from_architecture, model_from_spec
from archfit.spec import (
    Architecture,
    Factorised,
    Full,
    Patches,
    Rotary,
    Softmax,
    Tied,
    Tokens,
    standard_architecture,
    to_json,
)
from archfit.spec.parts import Head, Input, Table

SOURCES: tuple[Input, ...] = (
    Tokens(vocab=40),
    Tokens(vocab=90),
    Patches(vocab=16, size=4, encoding="one-hot"),
)
TABLES: tuple[Table, ...] = (Full(), Factorised(inner=8), Factorised(inner=100))
HEADS: tuple[Head, ...] = (Full(), Tied())
SHAPES = [
    Architecture(
        depth=3,
        width=64,
        heads=2,
        head_dim=24,
        attention=Softmax(),
        feed_forward=256,
        context=32,
        input=source,
        embedding=table,
        positions=Full(),
        head=head,
    )
    for source, table, head in itertools.product(SOURCES, TABLES, HEADS)
]


@pytest.mark.parametrize("architecture", SHAPES, ids=str)
def test_an_audit_sees_the_rank_and_the_parameters_of_the_spec(architecture: Architecture) -> None:
    model = model_from_architecture(architecture, name="a", origin="b")
    assert model.rank_limit == architecture.embedding_rank
    assert model.parameters.total == architecture.params
    assert model.stacks[0].block_weights == architecture.block_params
    assert model.stacks[0].attention_ratio == architecture.attention_ratio


def test_the_json_of_an_architecture_is_read_like_a_config() -> None:
    architecture = standard_architecture(depth=2, width=32, heads=4, vocab=11, context=8)
    document = to_json(architecture)
    assert isinstance(document, dict)
    model = model_from_config(document, name="a", origin="b")
    assert model == model_from_architecture(architecture, name="a", origin="b")
    with pytest.raises(ValueError, match=r"Architecture\.depth is \"2\", not a whole number"):
        model_from_config(document | {"depth": "2"}, name="a", origin="b")


def test_blocks_of_llama_and_encoders_are_read_from_their_json() -> None:
    plain = standard_architecture(depth=2, width=32, heads=4, vocab=11, context=8)
    llama = replace(plain, block="llama", positions=Rotary(), feed_forward=88, kv_heads=2)
    for architecture in (llama, replace(llama, qk_norm=True), replace(plain, feed_forward=50)):
        for objective in ("causal", "masked"):
            asked = replace(architecture, objective=objective)
            document = to_json(asked)
            assert isinstance(document, dict)
            model = model_from_architecture(asked, name="a", origin="b")
            assert model_from_spec(document, name="a", origin="b") == model
            assert model.stacks[0].role == ("decoder" if objective == "causal" else "encoder")
            assert model.stacks[0].kv_heads == asked.key_value_heads
            assert model.stacks[0].feed_forward == asked.feed_forward
            assert model.parameters.total == asked.params
