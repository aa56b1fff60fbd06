"""Files for tools that are not installed here, against what their source accepts.

litgpt 0.5.13 and megatron-core 0.16.1 were run on such files (docs/export.md); their numbers of
parameters are noted here. The names are those of the source: Megatron-LM 000c4ac, nanochat's
base_train 00255c1, and copies of nanochat's GPTConfig and gpt-neox's arguments, commit unknown.
"""

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archfit.export.formats import ExportShape, export_config, write_files
from tests_exports import GPT2, ODD, SMALL

LITGPT_CONFIG = """
    attention_logit_softcapping attention_scores_scalar attn_bias bias block_size
    final_logit_softcapping first_k_dense_replace gelu_approximate head_size hf_config
    intermediate_size latent_attention lm_head_bias mlp_class_name moe_intermediate_size n_embd
    n_expert n_expert_groups n_expert_per_token n_head n_layer n_query_groups n_shared_expert
    n_topk_groups n_topk_scores_per_group name norm_1 norm_2 norm_class_name norm_eps norm_qk
    norm_qk_type norm_topk_prob padded_vocab_size padding_multiple parallel_residual
    post_attention_norm post_mlp_norm rope_adjustments rope_base rope_condense_ratio rope_indices
    rope_interleave rope_local_base_freq rotary_percentage routed_scaling_factor scale_embeddings
    shared_attention_norm sliding_window_indices sliding_window_size vocab_size"""
NEOX_ARGUMENTS = """
    num_layers hidden_size intermediate_size mlp_multiple_of expansion_factor
    num_attention_heads num_kv_heads seq_length sliding_window_width max_position_embeddings norm
    layernorm_epsilon pos_emb no_weight_tying activation gpt_j_residual output_layer_parallelism
    make_vocab_size_divisible_by hidden_dropout attention_dropout"""
MEGATRON_ARGUMENTS = {  # and whether a value follows
    "--num-layers": True,
    "--hidden-size": True,
    "--ffn-hidden-size": True,
    "--num-attention-heads": True,
    "--kv-channels": True,
    "--group-query-attention": False,
    "--num-query-groups": True,
    "--max-position-embeddings": True,
    "--position-embedding-type": True,
    "--make-vocab-size-divisible-by": True,
    "--normalization": True,
    "--norm-epsilon": True,
    "--untie-embeddings-and-output-weights": False,
    "--seq-length": True,
    "--hidden-dropout": True,
    "--attention-dropout": True,
}
NANOCHAT_FLAGS = {
    *("--depth", "--aspect-ratio", "--head-dim", "--max-seq-len", "--window-pattern"),
    *("--device-batch-size", "--total-batch-size"),
}
NANOCHAT_CONFIG = {
    *("sequence_len", "vocab_size", "n_layer", "n_head", "n_kv_head", "n_embd", "window_pattern"),
}


def _yaml(text: str) -> dict[str, Any]:
    yaml: Any = pytest.importorskip("yaml")  # transformers brings it
    document = yaml.safe_load(text)
    assert isinstance(document, dict)
    return document


def _megatron(shape: ExportShape, folder: Path) -> dict[str, str]:
    """The arguments as bash hands them on."""
    write_files(export_config(shape, "megatron"), folder)
    print_them = 'source "$1" && printf "%s\\n" "${GPT_MODEL_ARGS[@]}"'
    command = ["bash", "-c", print_them, "bash", str(folder / "model_args.sh")]
    words = iter(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    return {word: next(words) if MEGATRON_ARGUMENTS[word] else "" for word in words}


@pytest.mark.parametrize(
    ("name", "shape", "built"),
    [
        ("litgpt", GPT2, 162_322_944),
        ("litgpt", ODD, 130_383),
        ("megatron", GPT2, 163_109_376),
        ("megatron", ODD, 139_983),
        (
            "megatron",
            replace(SMALL, width=64, head_dim=16, vocab=257, context=32, tied=True),
            126_720,
        ),
    ],
)
def test_litgpt_and_megatron_built_as_many_parameters(
    name: str, shape: ExportShape, built: int
) -> None:
    assert export_config(shape, name).params.total == built


def test_litgpt_reads_every_key() -> None:
    document = _yaml(export_config(ODD, "litgpt").files["model_config.yaml"])
    assert document.keys() <= set(LITGPT_CONFIG.split())
    assert document["norm_eps"] == 1e-5  # a YAML reader takes 1e-05 for a word
    assert (document["n_head"], document["head_size"], document["n_query_groups"]) == (4, 20, 2)
    assert (document["vocab_size"], document["padded_vocab_size"]) == (300, 320)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("shape", [SMALL, replace(GPT2, feed_forward=1000)])
def test_gpt_neox_is_hugging_faces_with_learned_positions(shape: ExportShape, tied: bool) -> None:
    """Hugging Face's copy of its network has rotary ones, without parameters."""
    import torch
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    export = export_config(replace(shape, tied=tied), "gpt-neox")
    document = _yaml(export.files["model.yml"])
    assert document.keys() <= set(NEOX_ARGUMENTS.split())
    assert document["no_weight_tying"] is not tied
    rows = -(-shape.vocab // document["make_vocab_size_divisible_by"])
    config = GPTNeoXConfig(
        vocab_size=rows * document["make_vocab_size_divisible_by"],
        hidden_size=document["hidden_size"],
        num_hidden_layers=document["num_layers"],
        num_attention_heads=document["num_attention_heads"],
        intermediate_size=document["intermediate_size"],
        tie_word_embeddings=tied,
    )
    with torch.device("meta"):
        twin = GPTNeoXForCausalLM(config)
    positions = document["max_position_embeddings"] * document["hidden_size"]
    assert export.params.total == sum(p.numel() for p in twin.parameters()) + positions


def test_gpt_neox_groups_keys_only_when_asked_to() -> None:
    grouped = export_config(replace(SMALL, kv_heads=2), "gpt-neox")
    assert _yaml(grouped.files["model.yml"])["num_kv_heads"] == 2
    assert "num_kv_heads" not in _yaml(export_config(SMALL, "gpt-neox").files["model.yml"])
    saved = 2 * (48 + 1) * 2 * 2 * 12  # in each of two blocks, keys and values of two heads
    plain = export_config(SMALL, "gpt-neox")
    assert plain.params.blocks - grouped.params.blocks == saved


def test_megatron_takes_every_argument(tmp_path: Path) -> None:
    arguments = _megatron(ODD, tmp_path)
    assert arguments["--kv-channels"] == "20"
    assert arguments["--num-query-groups"] == "2"
    assert arguments["--ffn-hidden-size"] == "201"
    assert "--untie-embeddings-and-output-weights" in arguments
    (tmp_path / "tied").mkdir()
    tied = _megatron(replace(SMALL, tied=True), tmp_path / "tied")
    assert not {"--untie-embeddings-and-output-weights", "--group-query-attention"} & tied.keys()


def _nanochat_width(depth: int, aspect_ratio: int, head_dim: int) -> int:
    """As its base_train computes it from the flags."""
    base = depth * aspect_ratio
    return ((base + head_dim - 1) // head_dim) * head_dim


@pytest.mark.parametrize(
    ("depth", "width", "head_dim"), [(12, 768, 64), (20, 1280, 128), (7, 512, 64), (30, 96, 32)]
)
def test_nanochats_flags_give_back_the_shape(depth: int, width: int, head_dim: int) -> None:
    heads = width // head_dim
    shape = replace(SMALL, depth=depth, width=width, heads=heads, kv_heads=heads, head_dim=head_dim)
    export = export_config(shape, "nanochat")
    line = export.files["base_train.sh"].partition("scripts.base_train")[2]
    words = [word for word in shlex.split(line) if word.startswith("--")]
    flags = dict(word.split("=") for word in words)
    assert flags.keys() == NANOCHAT_FLAGS
    found = _nanochat_width(*(int(flags[f"--{n}"]) for n in ("depth", "aspect-ratio", "head-dim")))
    assert (int(flags["--depth"]), found, found // int(flags["--head-dim"])) == (
        depth,
        width,
        heads,
    )
    config = json.loads(export.files["gpt_config.json"])
    assert config.keys() == NANOCHAT_CONFIG
    assert (config["n_layer"], config["n_embd"], config["n_head"]) == (depth, width, heads)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_nanochats_parameters_are_those_of_its_modules(depth: int) -> None:
    """Its GPT, written out module by module: which layers have value embeddings, and gates."""
    shape, rows = replace(SMALL, depth=depth, vocab=65), 128
    with_values = [at for at in range(depth) if at % 2 == (depth - 1) % 2]
    tables = [rows * 48] * (2 + len(with_values))  # wte, lm_head, value_embeds
    blocks = [
        *[48 * 48] * 4 * depth,  # c_q, c_k, c_v, c_proj
        *[4 * 48 * 48] * 2 * depth,  # c_fc, c_proj
        *[12 * 4] * len(with_values),  # ve_gate
        *(depth, depth),  # resid_lambdas, x0_lambdas
        *(24, 1, 1),  # smear_gate, smear_lambda, backout_lambda
    ]
    params = export_config(shape, "nanochat").params
    assert (params.blocks, params.embedding) == (sum(blocks), sum(tables))


def test_a_width_that_no_flag_of_nanochat_gives_is_refused() -> None:
    shape = replace(SMALL, depth=50)
    with pytest.raises(ValueError, match=r"no whole aspect ratio .* width = 48 .* can$"):
        export_config(shape, "nanochat")
