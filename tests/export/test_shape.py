"""Shapes of exports: what they refuse, what they derive, and who can express them."""

from dataclasses import replace

import pytest

from archfit.export.formats import FORMATS, ExportShape, export_config, shape_of
from archfit.spec import (
    Architecture,
    Factorised,
    Linear,
    Patches,
    Tied,
    standard_architecture,
)
from tests_exports import ODD, SMALL

PAPER = standard_architecture(depth=6, width=64, heads=4, vocab=50, context=16)


def test_an_architecture_exports_as_gpt2_with_its_own_number_of_parameters() -> None:
    for architecture in (
        PAPER,
        replace(PAPER, head=Tied()),
        replace(PAPER, feed_forward=3 * PAPER.width),
    ):
        assert export_config(shape_of(architecture), "hf-gpt2").params.total == architecture.params


def test_a_factorised_embedding_and_head_export_as_opt() -> None:
    table = Factorised(inner=5)
    architecture = replace(PAPER, embedding=table, head=table)
    unused_positions = 2 * 64
    announced = export_config(shape_of(architecture), "hf-opt").params.total
    assert announced == architecture.params + unused_positions


@pytest.mark.parametrize(
    ("architecture", "sentence"),
    [
        (
            replace(PAPER, attention=Linear(residual=True, causal=True), feed_forward=0),
            "attention=linear is the analysed network",
        ),
        (
            replace(PAPER, input=Patches(vocab=50, size=4, encoding="one-hot")),
            "patches of 4 tokens",
        ),
        (replace(PAPER, positions=Factorised(inner=3)), r"positions=factorised\(3\)"),
        (replace(PAPER, head=Factorised(inner=3)), r"head=factorised\(3\) is not factorised as"),
    ],
)
def test_what_no_tool_has_is_refused(architecture: Architecture, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        shape_of(architecture)


def test_a_gated_layer_has_the_units_that_were_asked_for() -> None:
    assert replace(SMALL, feed_forward=77).hidden_units(gated=True) == 77


@pytest.mark.parametrize(
    ("shape", "name", "able"),
    [
        (replace(SMALL, head_dim=20), "hf-gpt2", "hf-llama, hf-qwen3, litgpt, megatron can"),
        (replace(SMALL, embedding=Factorised(inner=5)), "hf-llama", "hf-opt can"),
        (
            replace(SMALL, kv_heads=2),
            "hf-opt",
            "hf-llama, hf-qwen3, litgpt, gpt-neox, megatron can",
        ),
        (replace(SMALL, head_dim=21), "hf-qwen3", "megatron can"),
        (ODD, "hf-gpt2", "hf-qwen3, litgpt, megatron can"),
        (replace(SMALL, feed_forward=99), "gpt-neox", "hf-gpt2, hf-llama, hf-qwen3, hf-opt, "),
        (replace(SMALL, feed_forward=100), "nanochat", "hf-gpt2, hf-llama, hf-qwen3, hf-opt, "),
        (replace(SMALL, tied=True), "litgpt", "hf-gpt2, hf-llama, hf-qwen3, hf-opt, gpt-neox, "),
        (replace(SMALL, tied=True), "nanochat", "hf-gpt2, hf-llama, hf-qwen3, hf-opt, gpt-neox, "),
        (replace(SMALL, width=16, head_dim=4), "nanochat", "hf-gpt2, hf-llama, hf-qwen3, hf-opt, "),
        (
            replace(SMALL, head_dim=20, embedding=Factorised(inner=5)),
            "hf-opt",
            "no format here can express all of it at once",
        ),
        (replace(SMALL, embedding=Factorised(inner=48)), "hf-opt", "no format here can"),
    ],
)
def test_a_refusal_names_the_formats_that_can(shape: ExportShape, name: str, able: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} cannot express this shape: .*; {able}"):
        export_config(shape, name)


def test_every_format_expresses_the_plain_shape_and_says_something() -> None:
    for name in FORMATS:
        export = export_config(SMALL, name)
        assert export.notes
        assert export.files


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"kv_heads": 3}, "kv_heads=3 does not divide heads=4.*; the nearest is 2"),
        ({"separator": 101}, r"separator=101 is not in 0..100"),
        ({"vocab": 1}, "vocab=1 is below 2"),
        ({"feed_forward": 0}, "feed_forward=0 is below 1"),
        ({"embedding": Tied()}, "embedding=.* is no "),
    ],
)
def test_a_shape_that_is_none_is_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(SMALL, **changes)  # type: ignore[arg-type]  # that is the point


def test_an_unknown_format_is_told_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"format='gguf' is unknown; use one of hf-gpt2, .*megatron"
    ):
        export_config(SMALL, "gguf")
