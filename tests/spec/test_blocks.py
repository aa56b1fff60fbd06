"""Blocks of Llama and encoders: counted as transformers counts them, written so that what 0.1 had
keeps its JSON and hash, and refused where their parts do not fit."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from archfit.spec import (
    Architecture,
    Full,
    Linear,
    Patches,
    Rotary,
    RunSpec,
    Softmax,
    Tied,
    Tokens,
    from_json,
    standard_architecture,
    to_json,
)
from archfit.spec.architecture import gated_units
from archfit.spec.errors import InvalidValue
from archfit.spec.run_options import RunOptions

GPT2 = standard_architecture(depth=2, width=12, heads=3, vocab=50, context=16)
LLAMA = Architecture(
    depth=3,
    width=48,
    heads=4,
    head_dim=12,
    attention=Softmax(),
    feed_forward=100,
    context=32,
    input=Tokens(vocab=101),
    embedding=Full(),
    positions=Rotary(),
    head=Full(),
    block="llama",
)
GROUPED = replace(LLAMA, kv_heads=2, head_dim=20, head=Tied())
QWEN3 = replace(GROUPED, qk_norm=True)
ENCODER = replace(GPT2, objective="masked", feed_forward=50)
NEW = [LLAMA, GROUPED, QWEN3, ENCODER, replace(QWEN3, objective="masked", feed_forward=96)]


def _counted(architecture: Architecture) -> int:
    """Parameters of the network that transformers builds of the same sizes."""
    from transformers import (  # takes seconds, so not at the top
        EsmConfig,
        EsmModel,
        LlamaConfig,
        LlamaForCausalLM,
        Qwen3Config,
        Qwen3ForCausalLM,
    )

    sizes = {
        "vocab_size": architecture.input.vocab,
        "hidden_size": architecture.width,
        "num_hidden_layers": architecture.depth,
        "num_attention_heads": architecture.heads,
        "intermediate_size": architecture.feed_forward,
        "pad_token_id": None,
    }
    if architecture.objective == "masked":
        extra = {"max_position_embeddings": architecture.context, "emb_layer_norm_before": False}
        model = EsmModel(EsmConfig(**sizes | extra | {"pad_token_id": 0}), add_pooling_layer=False)
        # The rotary rates are no weights, and its probe of contacts is another task's.
        weights = model.named_parameters()
        counted = sum(int(p.numel()) for name, p in weights if "contact" not in name)
        return counted + architecture.input.vocab * architecture.width  # and our untied head
    kind, config = (
        (Qwen3ForCausalLM, Qwen3Config) if architecture.qk_norm else (LlamaForCausalLM, LlamaConfig)
    )
    model = kind(
        config(
            **sizes,
            head_dim=architecture.head_dim,
            num_key_value_heads=architecture.key_value_heads,
            tie_word_embeddings=isinstance(architecture.head, Tied),
        )
    )
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("architecture", [LLAMA, GROUPED, QWEN3, ENCODER])
def test_a_network_has_the_parameters_of_its_like_in_transformers(
    architecture: Architecture,
) -> None:
    assert architecture.params == _counted(architecture)


def test_llama_7b_and_qwen3_0_6b_have_their_published_numbers() -> None:
    sizes = replace(LLAMA, depth=32, width=4096, heads=32, head_dim=128, feed_forward=11008)
    assert replace(sizes, input=Tokens(vocab=32_000)).params == 6_738_415_616
    qwen3 = replace(QWEN3, depth=28, width=1024, heads=16, kv_heads=8, head_dim=128)
    sizes = replace(qwen3, feed_forward=3072, input=Tokens(vocab=151_936))
    assert sizes.params == 596_049_920


@pytest.mark.parametrize(
    ("width", "units"), [(768, 2048), (4096, 10944), (100, 256), (64, 168), (8, 24)]
)
def test_a_gated_layer_keeps_the_weights_of_a_plain_one(width: int, units: int) -> None:
    assert gated_units(width) == units
    assert abs(units / (8 * width / 3) - 1) <= (0.05 if width > 32 else 4 / units)


def _spec(architecture: Architecture) -> RunSpec:
    recipe = RunOptions(precision="float32").recipe()
    return RunSpec(architecture=architecture, data_hash="0" * 64, recipe=recipe, seed=1)


@pytest.mark.parametrize("architecture", NEW)
def test_a_new_network_survives_json_and_has_a_hash_of_its_own(architecture: Architecture) -> None:
    spec = _spec(architecture)
    assert from_json(RunSpec, to_json(spec)) == spec
    others = {_spec(other).hash for other in [GPT2, *NEW] if other != architecture}
    assert len(others) == len(NEW)
    assert spec.hash not in others


def test_a_network_of_0_1_is_written_as_0_1_wrote_it() -> None:
    document = to_json(GPT2)
    assert document == {
        "depth": 2,
        "width": 12,
        "heads": 3,
        "head_dim": 4,
        "attention": {"kind": "softmax"},
        "feed_forward_multiple": 4,
        "context": 16,
        "input": {"kind": "tokens", "vocab": 50},
        "embedding": {"kind": "full"},
        "positions": {"kind": "full"},
        "head": {"kind": "full"},
    }
    said = {"block": "gpt2", "kv_heads": None, "qk_norm": False, "objective": "causal"}
    for more in (said, said | {"kv_heads": 3}):
        assert from_json(Architecture, document | more) == GPT2
        assert _spec(from_json(Architecture, document | more)).hash == _spec(GPT2).hash


def test_units_that_are_no_multiple_are_written_as_they_are() -> None:
    document = to_json(replace(GPT2, feed_forward=50))
    assert isinstance(document, dict)
    assert document["feed_forward"] == 50
    assert "feed_forward_multiple" not in document
    with pytest.raises(ValueError, match="unknown key 'feed_forward_multiple'"):
        from_json(Architecture, document | {"feed_forward_multiple": 4})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: replace(LLAMA, kv_heads=3),
            "kv_heads=3 does not divide heads=4, so some would be shared by more heads than "
            "others; the nearest is 2",
        ),
        (lambda: replace(LLAMA, kv_heads=0), "kv_heads=0 is below 1; use 1 or more"),
        (
            lambda: replace(LLAMA, head_dim=7),
            "head_dim=7 is odd, and rotary positions turn coordinates in pairs; use an even "
            "head_dim",
        ),
        (
            lambda: replace(GPT2, qk_norm=True),
            "qk_norm=True is not in GPT-2's block; use block llama",
        ),
        (lambda: replace(GPT2, kv_heads=1), "kv_heads=1 is not in GPT-2's block; use block llama"),
        (
            lambda: replace(GPT2, positions=Rotary()),
            "positions='rotary' is not what a block of gpt2 has; use full",
        ),
        (
            lambda: replace(LLAMA, positions=Full()),
            "positions='full' is not what a block of llama has; use rotary",
        ),
        (
            lambda: replace(LLAMA, attention=Linear(residual=True, causal=True), feed_forward=0),
            "block='llama' has softmax attention; use softmax",
        ),
        (
            lambda: replace(ENCODER, input=Patches(vocab=5, size=3, encoding="one-hot")),
            "objective='masked' hides single tokens, and a position has 3; use one token a "
            "position",
        ),
        (
            lambda: replace(
                _spec(ENCODER), recipe=replace(_spec(GPT2).recipe, full_context_tokens=9)
            ),
            "full_context_tokens=9 are the last of their contexts, and a masked token stands "
            "anywhere; use 0 with objective masked",
        ),
        (
            lambda: replace(GPT2, block="t5"),  # type: ignore[arg-type]
            "block='t5' is unknown; use one of gpt2, llama",
        ),
        (
            lambda: replace(GPT2, objective="prefix"),  # type: ignore[arg-type]
            "objective='prefix' is unknown; use one of causal, masked",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InvalidValue, match=f"^{re.escape(sentence)}$"):
        make()


def _asked(**options: object) -> Architecture:
    given = RunOptions(precision="float32", **options)  # type: ignore[arg-type]  # it checks
    return given.architecture(50)


def test_options_give_the_usual_units_of_a_block() -> None:
    assert _asked(width=96).feed_forward == 384
    assert _asked(width=96, block="llama").feed_forward == 256
    assert _asked(width=96, feed_forward=100).feed_forward == 100
    assert _asked(width=96, feed_forward_multiple=3, block="llama").feed_forward == 288
    assert _asked(width=96, heads=3, head_dim=8, feed_forward="attention").feed_forward == 96


def test_a_linear_network_that_fills_in_tokens_sees_all_of_them() -> None:
    assert not _asked(attention="linear", objective="masked").is_causal
    assert _asked(attention="linear").is_causal
    assert not _asked(objective="masked").is_causal


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"feed_forward": 9, "feed_forward_multiple": 4},
            "feed_forward=9 and feed_forward_multiple=4 say the same twice; give one of them",
        ),
        (
            {"block": "llama", "position_inner": 4},
            "position_inner=4 is the rank of a table, and a block of llama has rotary positions; "
            "leave it out",
        ),
        (
            {"feed_forward": "wide"},
            "feed_forward='wide' is neither a number of units nor attention; "
            "use 4096, or attention",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidValue, match=f"^{re.escape(sentence)}$"):
        _asked(**options)
