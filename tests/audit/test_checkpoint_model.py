"""Models from headers alone: transformers' own small models, saved, are the oracle."""

import json
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch

from archfit.audit.auditor import audit_target
from archfit.audit.checkpoint_file import read_header
from archfit.audit.checkpoint_model import model_from_header
from archfit.audit.families import family_of, knowledge
from archfit.audit.model import Model, model_from_architecture
from archfit.spec import (
    Architecture,
    Factorised,
    Patches,
    Rotary,
    Tied,
    standard_architecture,
)
from tests_audit_configs import class_keys, random_config
from tests_audit_oracle import model_class
from tests_safetensors import write_raw, write_shapes

transformers = pytest.importorskip("transformers")
LLAMA = {
    "num_hidden_layers": 3,
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "vocab_size": 30,
}
BERT = LLAMA | {"max_position_embeddings": 10}
GPT2 = {"n_layer": 3, "n_embd": 16, "n_head": 4, "vocab_size": 30, "n_positions": 10}
T5 = {"num_layers": 3, "d_model": 16, "num_heads": 4, "d_kv": 6, "d_ff": 40, "vocab_size": 30}
OPT = {"num_hidden_layers": 3, "hidden_size": 16, "num_attention_heads": 4, "ffn_dim": 40}
OPT |= {"vocab_size": 30, "word_embed_proj_dim": 5, "max_position_embeddings": 10}
VIT = {"num_hidden_layers": 3, "hidden_size": 16, "num_attention_heads": 4, "image_size": 4}
VIT |= {"intermediate_size": 40, "patch_size": 2}
TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def saved(kind: str, config: str, settings: dict[str, int], folder: Path) -> tuple[Model, int]:
    """What a header tells of a model of transformers, and how many parameters that one counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = getattr(transformers, kind)(getattr(transformers, config)(**settings | TOKENS))
        network.save_pretrained(folder)
    counted = sum(parameter.numel() for parameter in network.parameters())
    return from_file(folder / "model.safetensors"), counted


def from_file(path: Path) -> Model:
    return model_from_header(read_header(path), name="x", origin=str(path))


@pytest.mark.parametrize(
    ("kind", "config", "settings"),
    [
        ("GPT2LMHeadModel", "GPT2Config", GPT2 | {"n_inner": 40}),
        ("BertForMaskedLM", "BertConfig", BERT),
        (
            "DistilBertModel",
            "DistilBertConfig",
            {"n_layers": 3, "dim": 16, "hidden_dim": 40} | BERT,
        ),
        ("LlamaForCausalLM", "LlamaConfig", LLAMA),
        ("Phi3ForCausalLM", "Phi3Config", LLAMA),
        ("MixtralForCausalLM", "MixtralConfig", LLAMA | {"num_local_experts": 2}),
        ("GPTNeoXForCausalLM", "GPTNeoXConfig", LLAMA),
        ("Qwen3ForCausalLM", "Qwen3Config", LLAMA | {"head_dim": 8}),
        ("OPTForCausalLM", "OPTConfig", OPT),
        ("T5ForConditionalGeneration", "T5Config", T5),
        ("EsmModel", "EsmConfig", BERT),
    ],
)
def test_sizes_and_counts_are_those_of_the_saved_model(
    kind: str, config: str, settings: dict[str, int], tmp_path: Path
) -> None:
    model, counted = saved(kind, config, settings, tmp_path)
    assert model.parameters.total == counted
    first = model.stacks[0]
    assert (first.depth, first.width, first.feed_forward) == (3, 16, 40)
    assert model.input.vocab == 30
    assert model.parameters.blocks is not None
    assert model.parameters.embedding is not None
    assert model.parameters.blocks + model.parameters.embedding <= counted


def test_tables_are_told_from_norms_and_other_matrices(tmp_path: Path) -> None:
    model, _ = saved("BertForMaskedLM", "BertConfig", BERT, tmp_path)
    assert model.parameters.embedding == (30 + 10 + 2) * 16
    assert model.stacks[0].block_weights == 3 * (4 * 16 * 16 + 2 * 16 * 40)


def test_heads_are_missing_not_guessed(tmp_path: Path) -> None:
    model, _ = saved("LlamaForCausalLM", "LlamaConfig", LLAMA, tmp_path)
    assert (model.stacks[0].heads, model.stacks[0].head_dim) == (None, None)
    assert model.missing == (
        "heads: not in a safetensors header; put config.json beside it",
        "head_dim: not in a safetensors header; put config.json beside it",
    )
    assert "keys have 8 dimensions where queries have 16" in model.notes
    assert "the feed-forward layers are gated" in model.notes


def test_norms_of_single_heads_tell_how_many_there_are(tmp_path: Path) -> None:
    model, _ = saved("Qwen3ForCausalLM", "Qwen3Config", LLAMA | {"head_dim": 8}, tmp_path)
    stack = model.stacks[0]
    assert (stack.heads, stack.head_dim, stack.kv_heads) == (4, 8, 2)
    assert (stack.attention_ratio, model.missing) == (2.0, ())


def test_a_bias_for_each_head_tells_how_many_there_are(tmp_path: Path) -> None:
    """T5, whose heads are not width / heads wide, in two stacks of its own."""
    model, _ = saved("T5ForConditionalGeneration", "T5Config", T5, tmp_path)
    encoder, decoder = model.stacks
    assert (encoder.role, encoder.heads, encoder.head_dim) == ("encoder", 4, 6)
    assert (decoder.role, decoder.depth) == ("decoder", 3)
    matrices = 4 * 16 * 24 + 2 * 16 * 40
    assert encoder.block_weights == 3 * matrices + 32 * 4
    assert decoder.block_weights == 3 * (matrices + 4 * 16 * 24) + 32 * 4


def test_a_norm_over_all_heads_tells_nothing(tmp_path: Path) -> None:
    model, _ = saved("Olmo2ForCausalLM", "Olmo2Config", LLAMA, tmp_path)
    assert model.stacks[0].heads is None


def test_a_factorised_table_limits_the_rank(tmp_path: Path) -> None:
    model, _ = saved("OPTForCausalLM", "OPTConfig", OPT, tmp_path)
    assert (model.input.kind, model.input.inner, model.rank_limit) == ("factorised_lookup", 5, 5)
    assert model.parameters.embedding == 30 * 5 + 2 * 5 * 16 + (10 + 2) * 16


def test_patches_limit_the_rank(tmp_path: Path) -> None:
    model, counted = saved("ViTModel", "ViTConfig", VIT, tmp_path)
    assert (model.input.kind, model.input.dimensions, model.rank_limit) == ("linear_patch", 12, 12)
    assert (model.depth, model.parameters.total) == (3, counted)


def test_a_stack_of_vision_is_counted_apart(tmp_path: Path) -> None:
    shapes = {
        "language_model.model.embed_tokens.weight": ("BF16", [30, 16]),
        "language_model.model.layers.0.mlp.down_proj.weight": ("BF16", [16, 40]),
        "a_vision_tower.encoder.layers.0.mlp.fc2.weight": ("BF16", [8, 20]),
        "a_vision_tower.encoder.layers.0.mlp.fc1.weight": ("BF16", [20, 8]),
        "a_vision_tower.encoder.layers.0.attn.weight": ("BF16", [8, 8]),
        "a_vision_tower.encoder.layers.1.attn.weight": ("BF16", [8, 8]),
    }
    model = from_file(write_shapes(tmp_path / "x.safetensors", shapes))
    found = [(stack.role, stack.depth, stack.width, stack.feed_forward) for stack in model.stacks]
    assert found == [("blocks", 1, 16, 40), ("vision", 2, 8, 20)]


def test_masks_and_indices_are_no_parameters(tmp_path: Path) -> None:
    """The checkpoint of GPT-2 on the hub stores a causal mask with each block."""
    shapes = {
        "wte.weight": ("F32", [30, 16]),
        "h.0.attn.bias": ("F32", [1, 1, 10, 10]),
        "h.0.attn.c_attn.weight": ("F32", [16, 48]),
        "h.0.attn.c_attn.bias": ("F32", [48]),
        "h.0.attn.masked_bias": ("F32", []),
        "embeddings.position_ids": ("I64", [1, 10]),
    }
    model = from_file(write_shapes(tmp_path / "x.safetensors", shapes))
    assert model.parameters.total == 30 * 16 + 16 * 48 + 48
    assert any("3 stored tensors (h.0.attn.bias, ...) of 111" in note for note in model.notes)


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        ({"layers.1.w.weight": [8, 8]}, "block 0 of 'layers' is not there, though 1 is"),
        ({"fc.weight": [8, 8]}, "no tensor has the name of a numbered block"),
        ({"layers.0.a": [5, 3], "layers.0.b": [5, 3]}, "share no one size that could be its width"),
        (
            {"encoder.albert_layer_groups.0.albert_layers.0.ffn.weight": [8, 8]},
            "does not say how often; put its config.json beside it",
        ),
    ],
)
def test_what_a_header_does_not_tell_is_said(
    shapes: dict[str, list[int]], sentence: str, tmp_path: Path
) -> None:
    named = {"wte.weight": [30, 8]} | shapes
    path = tmp_path / "x.safetensors"
    write_shapes(path, {name: ("F32", shape) for name, shape in named.items()})
    with pytest.raises(ValueError, match=f"{path} does not tell its shape: .*{sentence}"):
        from_file(path)


def test_a_quantised_table_is_named_and_not_said_to_be_absent(tmp_path: Path) -> None:
    shapes = {"wte.weight": ("U8", [30, 4]), "h.0.w": ("F32", [8, 8])}
    with pytest.raises(ValueError, match=r"'wte.weight' holds U8, quantised .* put its config"):
        from_file(write_shapes(tmp_path / "x.safetensors", shapes))


SMALL = standard_architecture(depth=3, width=16, heads=2, vocab=30, context=8)
RUNS = (
    SMALL,
    replace(SMALL, head_dim=12, embedding=Factorised(inner=5), head=Tied()),
    replace(SMALL, input=Patches(vocab=7, size=2, encoding="scalar")),
    replace(SMALL, block="llama", positions=Rotary()),
)


@pytest.mark.parametrize("architecture", RUNS)
def test_the_header_of_a_run_and_its_spec_tell_the_same(
    architecture: Architecture, tmp_path: Path
) -> None:
    from safetensors.torch import save_file

    from archfit.model.parametrisation import parametrisation
    from archfit.model.transformer import Transformer

    network = Transformer(architecture, parametrisation(architecture, "standard"), dropout=0.0)
    weights = {name: torch.zeros_like(p) for name, p in network.named_parameters()}
    save_file(weights, tmp_path / "model.safetensors")
    stored = from_file(tmp_path / "model.safetensors")
    told = model_from_architecture(architecture, name="x", origin="spec.json")
    assert stored.parameters.total == told.parameters.total
    assert stored.parameters.embedding == told.parameters.embedding
    assert stored.rank_limit == told.rank_limit == architecture.embedding_rank
    for stack in (stored.stacks[0], told.stacks[0]):
        assert (stack.depth, stack.width) == (architecture.depth, 16)
        assert stack.feed_forward == architecture.feed_forward
        assert stack.block_weights == architecture.block_params
        assert stack.is_gated == (architecture.block == "llama")


# ---- configs and weights that say different things; classes of transformers say what agrees

SMALL_GPT2: dict[str, object] = {
    "model_type": "gpt2",
    "n_layer": 3,
    "n_embd": 8,
    "n_head": 2,
    "vocab_size": 30,
}
STORED: dict[str, list[int]] = {
    "wte.weight": [30, 8],
    **{f"h.{block}.mlp.c_fc.weight": [8, 32] for block in range(3)},
}


def _notes(folder: Path) -> tuple[str, ...]:
    return audit_target(str(folder), measure=False, environment={}).model.notes


def _written(folder: Path, shapes: dict[str, list[int]]) -> Path:
    (folder / "config.json").write_text(json.dumps(SMALL_GPT2))
    named = {name: ("F32", shape) for name, shape in shapes.items()}
    write_shapes(folder / "model.safetensors", named)
    return folder


def test_weights_that_agree_are_no_note(tmp_path: Path) -> None:
    assert _notes(_written(tmp_path, STORED)) == ()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"wte.weight": [64, 8]}, "'wte.weight' has 64 rows, and the config says 30; "),
        ({"wte.weight": [30, 16]}, "'wte.weight' has 16 columns, and the config says 8; "),
        (
            {"h.3.mlp.c_fc.weight": [8, 32]},
            "the config says 3 blocks in the decoder stack, and the weights hold 4 in 'h'; ",
        ),
    ],
)
def test_what_stored_shapes_contradict_is_a_note(
    changes: dict[str, list[int]], sentence: str, tmp_path: Path
) -> None:
    notes = _notes(_written(tmp_path, STORED | changes))
    assert notes == (sentence + "the numbers here are the config's",)


def test_what_a_config_does_not_speak_of_is_not_compared(tmp_path: Path) -> None:
    """Codebooks have a table each; a decision transformer's states are no tokens."""
    folder = _written(tmp_path, STORED)
    codebooks = {f"embed_tokens.{n}.weight": ("F32", [5, 8]) for n in range(3)}
    blocks = {f"h.{n}.w": ("F32", [8, 8]) for n in range(3)}
    write_shapes(folder / "model.safetensors", codebooks | blocks)
    assert _notes(folder) == ()
    states = {"model_type": "decision_transformer", "hidden_size": 8, "n_layer": 3}
    (folder / "config.json").write_text(json.dumps(states))
    write_shapes(folder / "model.safetensors", {"wte.weight": ("F32", [5, 8])} | blocks)
    assert not any("config says" in note for note in _notes(folder))


def test_an_inner_width_is_compared_with_the_table_where_nothing_widens_it(tmp_path: Path) -> None:
    albert = {"model_type": "albert", "hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 30}
    albert |= {"num_attention_heads": 4, "intermediate_size": 32, "embedding_size": 8}
    (tmp_path / "config.json").write_text(json.dumps(albert))
    table = {"word_embeddings.weight": ("F32", [30, 8])}
    write_shapes(tmp_path / "model.safetensors", table)
    assert _notes(tmp_path) == ()
    widened = table | {"embedding_hidden_mapping_in.weight": ("F32", [16, 8])}
    write_shapes(tmp_path / "model.safetensors", widened)
    assert _notes(tmp_path) == ()
    write_shapes(tmp_path / "model.safetensors", {"word_embeddings.weight": ("F32", [30, 9])})
    assert "has 9 columns, and the config says 8;" in _notes(tmp_path)[0]


def test_every_stack_finds_its_blocks_once(tmp_path: Path) -> None:
    """Two stacks of equal depth need two in the file."""
    t5 = {"model_type": "t5", "d_model": 8, "num_layers": 2, "num_heads": 2, "vocab_size": 30}
    (tmp_path / "config.json").write_text(json.dumps(t5))
    both = [f"{stack}.block.{n}.w" for stack in ("encoder", "decoder") for n in (0, 1)]
    shapes = {name: ("F32", [8, 8]) for name in both} | {"shared.weight": ("F32", [30, 8])}
    write_shapes(tmp_path / "model.safetensors", shapes)
    assert _notes(tmp_path) == ()
    del shapes["decoder.block.1.w"]
    write_shapes(tmp_path / "model.safetensors", shapes)
    (note,) = _notes(tmp_path)
    assert "2 blocks in the decoder stack" in note
    assert "hold 1 in 'decoder.block', 2 in 'encoder.block'" in note


def test_only_the_header_is_read(tmp_path: Path) -> None:
    """A table of two terabytes, in a hole of the file."""
    folder = _written(tmp_path, STORED | {"wte.weight": [6 * 10**10, 8]})
    assert "has 60,000,000,000 rows" in _notes(folder)[0]


def test_weights_that_cannot_be_read_leave_the_config_to_be_audited(tmp_path: Path) -> None:
    folder = _written(tmp_path, STORED)
    write_raw(folder / "model.safetensors", b"{")
    (note,) = _notes(folder)
    assert note.startswith("the weights were not compared with it: ")
    assert "model.safetensors is no sound safetensors file" in note
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")
    assert "it is a pipe or a device" in _notes(folder)[0]


@pytest.mark.parametrize(
    "name", [name for name in knowledge()["families"] if family_of(name).is_exact]
)
def test_what_transformers_would_save_agrees(name: str, tmp_path: Path) -> None:
    import torch

    prefix = family_of(name).config_class.removesuffix("Config")
    end = next(iter(family_of(name).outputs))
    prefix = prefix.removesuffix("Text") if end.startswith("For") else prefix
    keys = class_keys(type(transformers.AutoConfig.for_model(name)))
    document = random_config(name, keys, 1) | {"architectures": [prefix + end]}
    built = model_class(prefix + end)
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        stored = built(built.config_class.from_dict(dict(document))).state_dict()
    (tmp_path / "config.json").write_text(json.dumps(document))
    shapes = {
        key: ("F32" if tensor.is_floating_point() else "I64", list(tensor.shape))
        for key, tensor in stored.items()
    }
    write_shapes(tmp_path / "model.safetensors", cast(dict[str, tuple[str, list[int]]], shapes))
    assert [note for note in _notes(tmp_path) if "weights" in note or "config says" in note] == []
