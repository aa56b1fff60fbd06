"""Configurations for Hugging Face, against the networks that transformers builds of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from archfit.export.formats import FORMATS, Export, ExportShape, export_config, write_files
from archfit.spec import Factorised, Full
from tests_exports import GPT2, ODD, SMALL

HUGGING_FACE = [name for name in FORMATS if name.startswith("hf-")]
ENCODERS = ("hf-esm",)


def _built(export: Export, folder: Path, *, device: str = "meta") -> nn.Module:
    """What transformers makes of the files, through its Auto classes."""
    from transformers import (  # takes seconds: not at the top
        AutoConfig,
        AutoModel,
        AutoModelForCausalLM,
    )

    write_files(export, folder)
    config = AutoConfig.from_pretrained(folder)
    with torch.device(device):
        if export.format in ENCODERS:
            encoder: nn.Module = AutoModel.from_config(config, add_pooling_layer=False)
            del encoder.contact_head  # of another task
            return encoder
        built: nn.Module = AutoModelForCausalLM.from_config(config)
    return built


def _counts(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", HUGGING_FACE)
def test_the_network_has_as_many_parameters_as_announced(
    name: str, tied: bool, tmp_path: Path
) -> None:
    export = export_config(replace(GPT2, tied=tied), name)
    assert _counts(_built(export, tmp_path)) == export.params.total


def _shape(
    sizes: tuple[int, int, int, int, int], feed_forward: int, inner: int, tied: bool
) -> ExportShape:
    depth, groups, in_group, head_dim, width = sizes
    return replace(
        SMALL,
        depth=depth,
        width=width,
        heads=groups * in_group,
        head_dim=head_dim,
        kv_heads=groups,
        feed_forward=feed_forward,
        embedding=Factorised(inner=inner) if inner else Full(),
        tied=tied,
    )


def _filled(shape: ExportShape) -> ExportShape:
    """The same with heads that fill the width."""
    return replace(shape, width=shape.heads * shape.head_dim, kv_heads=shape.heads)


SIZES = st.tuples(*[st.integers(1, 4)] * 3, st.integers(1, 9), st.integers(1, 40))
SHAPES = st.builds(
    _shape,
    SIZES,
    st.sampled_from(["usual", 1, 33]),
    st.sampled_from([0, 0, 1, 5, 60]),
    st.booleans(),
)


@given(shape=SHAPES | SHAPES.map(_filled))
@settings(max_examples=60, deadline=None)
def test_any_shape_has_as_many_parameters_as_announced_wherever_it_is_not_refused(
    shape: ExportShape, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in HUGGING_FACE:
        if not FORMATS[name].obstacles(shape):
            export = export_config(shape, name)
            assert _counts(_built(export, tmp_path_factory.mktemp("hf"))) == export.params.total


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_the_network_runs(name: str, tmp_path: Path) -> None:
    model = _built(export_config(SMALL, name), tmp_path, device="cpu").eval()
    tokens_BN = torch.tensor([[0, SMALL.vocab - 1] * 16])
    with torch.no_grad():
        found = model(tokens_BN)
    logits_BNV = found.last_hidden_state if name in ENCODERS else found.logits
    assert logits_BNV.shape == (1, 32, SMALL.width if name in ENCODERS else SMALL.vocab)
    assert logits_BNV.isfinite().all()


def test_a_factorised_embedding_is_opts_projection(tmp_path: Path) -> None:
    shape = replace(SMALL, embedding=Factorised(inner=5))
    export = export_config(shape, "hf-opt")
    shapes = {name: tuple(p.shape) for name, p in _built(export, tmp_path).named_parameters()}
    assert shapes["model.decoder.embed_tokens.weight"] == (101, 5)
    assert shapes["model.decoder.project_in.weight"] == (48, 5)
    assert shapes["model.decoder.project_out.weight"] == (5, 48)
    assert shapes["lm_head.weight"] == (101, 5)


@pytest.mark.parametrize("name", ["hf-llama", "hf-qwen3"])
def test_heads_are_as_large_as_asked_for(name: str, tmp_path: Path) -> None:
    shape = replace(SMALL, head_dim=20, kv_heads=2)
    built = _built(export_config(shape, name), tmp_path)
    shapes = {key: tuple(p.shape) for key, p in built.named_parameters()}
    assert shapes["model.layers.1.self_attn.q_proj.weight"] == (80, 48)
    assert shapes["model.layers.1.self_attn.k_proj.weight"] == (40, 48)


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_what_transformers_reads_back_is_what_was_asked_for(name: str, tmp_path: Path) -> None:
    """Every key that was written is a key of the class, but for what our audit reads, and no
    default overrules one."""
    from transformers import AutoConfig

    export = export_config(replace(SMALL, separator=7), name)
    write_files(export, tmp_path)
    read = AutoConfig.from_pretrained(tmp_path)
    written = json.loads(export.files["config.json"])
    defaults = type(read)().to_dict()
    assert written.keys() - defaults.keys() <= {"architectures", "dtype", "training_tokens"}
    assert written["training_tokens"] == 20 * export.params.total
    found = {key: read.to_dict()[key] for key in written}
    assert found == written
    no_padding = -1 if name in ENCODERS else None
    assert (read.bos_token_id, read.eos_token_id, read.pad_token_id) == (7, 7, no_padding)
    assert read.tie_word_embeddings is False


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_without_a_tokenizer_no_token_is_special(name: str) -> None:
    config = json.loads(export_config(SMALL, name).files["config.json"])
    found = {config[f"{kind}_token_id"] for kind in ("bos", "eos", "pad")}
    assert found == ({None, -1} if name in ENCODERS else {None})


def test_gpt2_has_the_published_number_of_parameters() -> None:
    assert export_config(replace(GPT2, tied=True), "hf-gpt2").params.total == 124_439_808


def test_what_transformers_itself_refuses_is_refused() -> None:
    """Llama wants a width that the heads divide, whatever the size of a head."""
    from transformers import LlamaConfig

    with pytest.raises(Exception, match="not a multiple of the number of attention"):
        LlamaConfig(hidden_size=50, num_attention_heads=4, head_dim=20)
    with pytest.raises(ValueError, match=r"heads = 4 divides, not 50; hf-qwen3, .*can"):
        export_config(replace(ODD, kv_heads=4), "hf-llama")
