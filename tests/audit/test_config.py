"""What is read out of real configs, against facts taken from the table's sources, not from here."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from archfit.audit.config import model_from_config
from archfit.audit.model import Model

CONFIGS = Path(__file__).parent / "configs"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the notes beside each file say of it."""

    family: str
    shape: tuple[tuple[int, ...], ...]  # depth, width, heads, head_dim, kv_heads, feed_forward
    kind: str
    vocab: int | None
    rank_limit: int | None
    is_tied: bool | None
    assumed: tuple[str, ...] = ("tie_word_embeddings=True",)  # each up to its colon


FACTS: dict[str, Facts] = {
    "albert-xxlarge-v1": Facts(
        family="albert",
        shape=((12, 4096, 64, 64, 64, 16384),),
        kind="factorised_lookup",
        vocab=30000,
        rank_limit=128,
        is_tied=True,
    ),
    "bert-large-uncased": Facts(
        family="bert",
        shape=((24, 1024, 16, 64, 16, 4096),),
        kind="lookup",
        vocab=30522,
        rank_limit=1024,
        is_tied=True,
    ),
    "bloomchat-176b-v1": Facts(
        family="bloom",
        shape=((70, 14336, 112, 128, 112, 57344),),
        kind="lookup",
        vocab=250880,
        rank_limit=14336,
        is_tied=True,
    ),
    "byt5-xxl": Facts(
        family="t5",
        shape=((36, 4672, 64, 64, 64, 12352), (12, 4672, 64, 64, 64, 12352)),
        kind="lookup",
        vocab=384,
        rank_limit=259,  # bytes and three specials, not rows
        is_tied=False,
        assumed=(),
    ),
    "chronos-t5-large": Facts(
        family="t5",
        shape=((24, 1024, 16, 64, 16, 4096), (24, 1024, 16, 64, 16, 4096)),
        kind="lookup",
        vocab=4096,
        rank_limit=1024,
        is_tied=True,
    ),
    "electra-small-discriminator": Facts(
        family="electra",
        shape=((12, 256, 4, 64, 4, 1024),),
        kind="factorised_lookup",
        vocab=30522,
        rank_limit=128,
        is_tied=True,
    ),
    "esm-1b": Facts(
        family="esm",
        shape=((33, 1280, 20, 64, 20, 5120),),
        kind="lookup",
        vocab=33,
        rank_limit=33,
        is_tied=True,
    ),
    "gemma-3-270m": Facts(
        family="gemma3_text",
        shape=((18, 640, 4, 256, 1, 2048),),
        kind="lookup",
        vocab=262144,
        rank_limit=640,
        is_tied=True,
    ),
    "gemma-3-4b-it": Facts(
        family="gemma3",
        shape=((34, 2560, 8, 256, 4, 10240), (27, 1152, 16, 72, 16, 4304)),
        kind="lookup",
        vocab=262208,
        rank_limit=2560,
        is_tied=True,
        assumed=(
            "num_attention_heads=8",
            "num_key_value_heads=4",
            "head_dim=256",
            "vocab_size=262208",
            "tie_word_embeddings=True",
            "num_channels=3",
        ),
    ),
    "gpt-neox-20b": Facts(
        family="gpt_neox",
        shape=((44, 6144, 64, 96, 64, 24576),),
        kind="lookup",
        vocab=50432,
        rank_limit=6144,
        is_tied=False,
        assumed=(),
    ),
    "gpt2": Facts(
        family="gpt2",
        shape=((12, 768, 12, 64, 12, 3072),),  # n_inner is null: four times the width
        kind="lookup",
        vocab=50257,
        rank_limit=768,
        is_tied=True,
    ),
    "llama-65b": Facts(
        family="llama",
        shape=((80, 8192, 64, 128, 64, 22016),),
        kind="lookup",
        vocab=32000,
        rank_limit=8192,
        is_tied=False,
        assumed=(),
    ),
    "mistral-nemo-12b": Facts(
        family="mistral",
        shape=((40, 5120, 32, 128, 8, 14336),),
        kind="lookup",
        vocab=131072,
        rank_limit=5120,
        is_tied=False,
        assumed=(),
    ),
    "opt-350m": Facts(
        family="opt",
        shape=((24, 1024, 16, 64, 16, 4096),),
        kind="factorised_lookup",
        vocab=50272,
        rank_limit=512,
        is_tied=True,
    ),
    "qwen3-0.6b": Facts(
        family="qwen3",
        shape=((28, 1024, 16, 128, 8, 3072),),
        kind="lookup",
        vocab=151936,
        rank_limit=1024,
        is_tied=True,
        assumed=(),
    ),
    "t5-11b-ssm-tqao": Facts(
        family="t5",
        shape=((24, 1024, 128, 128, 128, 65536), (24, 1024, 128, 128, 128, 65536)),
        kind="lookup",
        vocab=32128,
        rank_limit=1024,
        is_tied=True,
    ),
    "t5-small": Facts(
        family="t5",
        shape=((6, 512, 8, 64, 8, 2048), (6, 512, 8, 64, 8, 2048)),
        kind="lookup",
        vocab=32128,
        rank_limit=512,
        is_tied=True,
    ),
    "vit-huge-patch14-224-in21k": Facts(
        family="vit",
        shape=((32, 1280, 16, 80, 16, 5120),),
        kind="linear_patch",
        vocab=None,
        rank_limit=588,
        is_tied=None,
        assumed=(),
    ),
    "wav2vec2-large-960h-lv60-self": Facts(
        family="wav2vec2",
        shape=((24, 1024, 16, 64, 16, 4096),),
        kind="linear_on_conv_features",
        vocab=None,  # 32 letters come out, none goes in
        rank_limit=512,
        is_tied=None,
        assumed=(),
    ),
    "whisper-tiny": Facts(
        family="whisper",
        shape=((4, 384, 6, 64, 6, 1536), (4, 384, 6, 64, 6, 1536)),
        kind="nonlinear",
        vocab=51865,
        rank_limit=None,
        is_tied=True,
    ),
}


def _document(name: str) -> dict[str, object]:
    return cast(dict[str, object], json.loads((CONFIGS / f"{name}.json").read_text()))


def _model(document: dict[str, object]) -> Model:
    return model_from_config(document, name="a model", origin="a file")


def test_every_config_has_its_facts() -> None:
    assert sorted(FACTS) == sorted(path.stem for path in CONFIGS.glob("*.json"))


@pytest.mark.parametrize("name", FACTS)
def test_a_real_config_is_read_as_its_facts_say(name: str) -> None:
    model, facts = _model(_document(name)), FACTS[name]
    shape = tuple(
        (stack.depth, stack.width, stack.heads, stack.head_dim, stack.kv_heads, stack.feed_forward)
        for stack in model.stacks
    )
    assert shape == facts.shape
    assert model.family == facts.family
    assert (model.input.kind, model.input.vocab) == (facts.kind, facts.vocab)
    assert model.rank_limit == facts.rank_limit
    assert model.is_tied == facts.is_tied
    assert tuple(line.split(":")[0] for line in model.assumed) == facts.assumed
    assert model.missing == ()


def test_an_assumed_value_names_its_class_and_the_version_it_was_read_from() -> None:
    assert (
        "head_dim=256: default of Gemma3TextConfig (transformers 5.22.2)"
        in _model(_document("gemma-3-4b-it")).assumed
    )


def test_the_depth_of_a_model_that_sees_is_that_of_its_text() -> None:
    model = _model(_document("gemma-3-4b-it"))
    assert model.depth == 34
    assert [stack.role for stack in model.stacks] == ["decoder", "vision"]


def test_shared_layers_are_stored_once() -> None:
    (stack,) = _model(_document("albert-xxlarge-v1")).stacks
    assert stack.distinct_blocks == 1
    assert stack.block_weights == 12 * 4096**2


def test_bytes_and_time_series_are_seen_behind_a_t5() -> None:
    assert _model(_document("byt5-xxl")).modality == "bytes"
    assert _model(_document("chronos-t5-large")).modality == "time_series"


def test_a_decision_transformer_has_the_width_of_hidden_size() -> None:
    """n_embd and vocab_size are left over from GPT-2; states, actions and returns come in."""
    document: dict[str, object] = {
        "model_type": "decision_transformer",
        "hidden_size": 128,
        "n_embd": 768,
        "vocab_size": 1,
        "n_layer": 3,
        "n_head": 1,
        "state_dim": 11,
        "act_dim": 3,
    }
    model = _model(document)
    assert (model.width, model.rank_limit, model.input.vocab) == (128, 15, None)
    assert "hidden_size=128 was read, not n_embd=768" in model.notes


def test_states_of_no_known_size_limit_nothing() -> None:
    document: dict[str, object] = {"model_type": "decision_transformer", "hidden_size": 64}
    document |= {"n_layer": 3, "state_dim": 11, "act_dim": 3}
    assert _model(document).rank_limit == 11 + 3 + 1
    for key in ("state_dim", "act_dim"):
        assert _model(document | {key: None}).rank_limit is None


def test_the_codes_that_a_beit_predicts_are_no_input() -> None:
    document: dict[str, object] = {"model_type": "beit", "vocab_size": 8192}
    document |= {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
    model = _model(document | {"image_size": [224, 224], "patch_size": 16, "num_channels": 3})
    assert (model.input.vocab, model.rank_limit) == (None, 768)


def test_an_encoder_of_t5_is_one_stack() -> None:
    model = _model(_document("t5-small") | {"architectures": ["T5EncoderModel"]})
    assert [stack.role for stack in model.stacks] == ["encoder"]


def test_an_unknown_family_is_read_by_its_usual_keys_and_says_what_it_does_not_know() -> None:
    model = _model(
        {
            "model_type": "never_seen",
            "n_embd": 512,
            "n_layer": 6,
            "n_head": 8,
            "intermediate_size": 2048,
            "vocab_size": 1000,
            "tie_word_embeddings": True,
        }
    )
    assert model.parameters.blocks == model.stacks[0].block_weights == 12 * 6 * 512**2
    assert (model.stacks[0].head_dim, model.missing) == (64, ())
    assert model.assumed == ("head_dim=64: width / heads, as usual; this family is not known",)
    assert "the count leaves out biases" in model.notes[0]
    assert "with two feed-forward matrices" in model.notes[0]
    assert model.notes[0].endswith("not known here: it is rough")


def test_latent_attention_and_shared_experts_are_said_not_to_be_counted() -> None:
    model = _model(
        {
            "model_type": "deepseek_v2",
            "architectures": ["DeepseekV2ForCausalLM"],
            "hidden_act": "silu",
            "rms_norm_eps": 1e-6,
            "hidden_size": 2048,
            "num_hidden_layers": 27,
            "num_attention_heads": 16,
            "kv_lora_rank": 512,
            "intermediate_size": 10944,
            "moe_intermediate_size": 1408,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "first_k_dense_replace": 1,
            "vocab_size": 102400,
            "tie_word_embeddings": False,
        }
    )
    assert (model.stacks[0].heads, model.stacks[0].head_dim) == (16, 128)
    assert model.assumed == ("head_dim=128: width / heads, as usual; this family is not known",)
    assert "with three feed-forward matrices" in model.notes[0]
    assert model.notes[1].startswith("kv_lora_rank, n_shared_experts, first_k_dense_replace: its")


def _text() -> dict[str, object]:
    return {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 90}


def _vision() -> dict[str, object]:
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    return {"model_type": "unknown_vision", "patch_size": 14, "num_channels": 3} | sizes


@pytest.mark.parametrize(
    "document",
    [
        {"model_type": "sees", "text_config": _text(), "vision_config": _vision()},
        _text() | {"vision_config": _vision()},
        {"encoder": _vision(), "decoder": _text()},
    ],
    ids=["text_config", "text beside vision_config", "encoder and decoder"],
)
def test_a_model_of_two_parts_has_the_stacks_of_both(document: dict[str, object]) -> None:
    model = _model(document)
    roles = {stack.role: (stack.depth, stack.width) for stack in model.stacks}
    assert roles == {"decoder": (2, 64), "vision": (3, 32)}
    assert model.parameters.total is None  # the family of the part that sees is not known
    assert "what joins its parts" in model.notes[-1]


def test_a_vision_part_that_leaves_its_shape_to_its_class_is_missing() -> None:
    model = _model({"text_config": _text(), "vision_config": {"model_type": "blip_vision_model"}})
    assert model.missing == ("vision stack: looked for depth and width in vision_config",)
    assert model.parameters.blocks is None
    assert model.depth == 2


def test_a_family_is_known_by_its_class_where_its_type_is_not() -> None:
    document = _document("llama-65b")
    named = _model(document)
    renamed = _model(document | {"model_type": "my_llama"})
    assert renamed.parameters == named.parameters


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        (
            "gpt2",
            {"n_layer": None},
            "the config gives no depth; looked for num_hidden_layers",
        ),
        (
            "t5-small",
            {"d_model": None},
            "the config gives no width; looked for hidden_size, ",
        ),
        ("gpt2", {"n_embd": "768"}, "n_embd='768' is not a whole number; use 1 or more"),
        ("gpt2", {"n_head": True}, "n_head=True is not a whole number; use 1 or more"),
        ("gpt2", {"n_head": 12.0}, "n_head=12.0 is not a whole number; use 1 or more"),
        ("gpt2", {"vocab_size": 0}, "vocab_size=0 is below 1; use 1 or more"),
        ("gpt2", {"vocab_size": -(10**5000)}, r"vocab_size=a number below -10\^40 is below 1"),
        ("gpt2", {"n_positions": 10**13}, r"n_positions=10000000000000 is over 10\^12"),
        ("gpt2", {"n_head": 7}, "width=768 is not a multiple of heads=7, so head_dim would be"),
        ("gpt2", {"n_layer": [12]}, "n_layer=a list of 1 is not a whole number"),
        ("gpt2", {"model_type": 3}, "model_type is no string"),
        ("gpt2", {"architectures": [3]}, "architectures holds no class names"),
        ("gpt2", {"tie_word_embeddings": "yes"}, "tie_word_embeddings='yes' is neither true nor"),
        ("qwen3-0.6b", {"num_key_value_heads": 17}, r"more key-value heads \(17\) than heads"),
        ("gemma-3-4b-it", {"text_config": [1]}, "text_config=a list of 1 is no object"),
        (
            "vit-huge-patch14-224-in21k",
            {"patch_size": [1, 2, 3]},
            "patch_size=a list of 3 is no pair",
        ),
        ("wav2vec2-large-960h-lv60-self", {"conv_dim": 512}, "conv_dim=512 is no list"),
        ("wav2vec2-large-960h-lv60-self", {"conv_dim": [5]}, "conv_kernel has 7 entries and conv_"),
        ("wav2vec2-large-960h-lv60-self", {"conv_dim": []}, "conv_dim has 0 entries; use 1 to 64"),
    ],
)
def test_a_wrong_value_is_refused_in_a_sentence(
    name: str, change: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        _model(_document(name) | change)


def test_what_is_left_to_nobody_is_missing_with_the_keys_that_were_looked_for() -> None:
    document = _document("esm-1b")
    del document["vocab_size"]  # the class has no default for it
    model = _model(document)
    assert model.missing == ("vocab: looked for vocab_size",)
    assert model.parameters.total is None
    assert model.parameters.blocks is not None


def _gpt2(**changes: object) -> Model:
    return _model({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, **changes})


def test_a_null_is_left_to_the_class_and_a_key_that_is_absent_to_its_default() -> None:
    assert _gpt2(n_inner=None).stacks[0].feed_forward == 4 * 64
    assert _gpt2(n_inner=100).stacks[0].feed_forward == 100
    assert _gpt2(vocab_size=None).missing == ("vocab: looked for vocab_size",)
    assert _gpt2().input.vocab == 50257
    assert "n_head=12: default of GPT2Config (transformers 5.22.2)" in (
        _model({"model_type": "gpt2", "n_embd": 48, "n_layer": 2}).assumed
    )


def test_a_segment_table_may_have_no_rows_and_other_tables_may_not() -> None:
    document = _document("bert-large-uncased")
    full, none = (_model(document | {"type_vocab_size": rows}) for rows in (2, 0))
    assert full.parameters.embedding is not None
    assert none.parameters.embedding == full.parameters.embedding - 2 * 1024
    with pytest.raises(ValueError, match="max_position_embeddings=0 is below 1"):
        _model(document | {"max_position_embeddings": 0})


def test_a_stem_may_have_64_layers() -> None:
    document = _document("wav2vec2-large-960h-lv60-self")
    for layers in (1, 64):
        stem = {"conv_dim": [8] * layers, "conv_kernel": [3] * layers}
        assert _model(document | stem).input.dimensions == 8
    with pytest.raises(ValueError, match="conv_dim has 65 entries; use 1 to 64"):
        _model(document | {"conv_dim": [8] * 65, "conv_kernel": [3] * 65})


def test_sizes_of_patches_may_be_pairs_and_images_smaller_than_a_patch() -> None:
    document = _document("vit-huge-patch14-224-in21k")
    wide = _model(document | {"patch_size": [7, 14], "image_size": [28, 42], "num_channels": 2})
    assert wide.input.dimensions == 7 * 14 * 2
    square = _model(document | {"patch_size": 14, "image_size": 14})
    none = _model(document | {"patch_size": 14, "image_size": 13})
    assert square.parameters.embedding is not None
    assert none.parameters.embedding == square.parameters.embedding - 1280
    missing = _model({key: document[key] for key in document if key != "image_size"})
    assert missing.assumed == ("image_size=224: default of ViTConfig (transformers 5.22.2)",)


def test_bytes_are_259_or_as_many_as_there_are_rows() -> None:
    document = _document("byt5-xxl")
    assert _model(document).input.vocab_real == 259
    assert _model(document | {"vocab_size": 200}).input.vocab_real == 200
    assert _model(document | {"tokenizer_class": "T5Tokenizer"}).input.vocab_real is None


def test_more_key_value_heads_than_heads_are_refused_and_as_many_are_not() -> None:
    document = _document("qwen3-0.6b")
    assert _model(document | {"num_key_value_heads": 16}).stacks[0].kv_heads == 16
    assert _model(document | {"num_key_value_heads": None}).stacks[0].kv_heads == 16


def test_a_decoder_of_t5_is_as_deep_as_its_encoder_unless_it_says_otherwise() -> None:
    document = _document("t5-small")
    assert [stack.depth for stack in _model(document).stacks] == [6, 6]
    deeper = _model(document | {"num_decoder_layers": 9})
    assert [stack.depth for stack in deeper.stacks] == [6, 9]
    with pytest.raises(ValueError, match="gives no depth; looked for decoder_layers"):
        _model(_document("whisper-tiny") | {"decoder_layers": None})


UNKNOWN: dict[str, object] = {
    "model_type": "never_seen",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "head_dim": 16,
    "num_key_value_heads": 2,
    "intermediate_size": 100,
    "vocab_size": 50,
    "tie_word_embeddings": False,
}


def test_an_unknown_family_is_counted_by_what_its_keys_speak_of() -> None:
    def blocks(**changes: object) -> int | None:
        return _model(UNKNOWN | changes).parameters.blocks

    attention, layer = 2 * 64 * (64 + 32), 64 * 100
    assert blocks() == 2 * (attention + 2 * layer)
    assert _model(UNKNOWN).parameters.embedding == 2 * 50 * 64
    assert blocks(rms_norm_eps=1e-6, hidden_act="silu") == 2 * (attention + 3 * layer)
    assert blocks(rms_norm_eps=1e-6) == blocks(hidden_act="silu") == blocks()
    two = blocks(num_decoder_layers=3)
    assert two == 5 * (attention + 2 * layer) + 3 * attention  # and cross-attention
    mixture = 2 * (attention + 4 * (2 * layer + 64))
    assert blocks(num_local_experts=4) == mixture
    assert blocks(n_routed_experts=4, moe_intermediate_size=100) == mixture
    assert blocks(num_experts=0) == blocks()
    patches = _model(UNKNOWN | {"patch_size": 4, "num_channels": 3, "image_size": 8})
    assert (patches.stacks[0].role, patches.input.dimensions) == ("vision", 48)
    assert patches.parameters.embedding is None
    both = UNKNOWN | {"encoder_layers": 2, "decoder_layers": 1}
    both |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    both |= {"encoder_ffn_dim": 100, "decoder_ffn_dim": 50}
    assert _model(both).parameters.blocks == 2 * (attention + 2 * layer) + 2 * attention + layer


def test_sizes_that_are_not_there_leave_a_count_open_or_assume_the_width_aloud() -> None:
    without_heads = {key: UNKNOWN[key] for key in UNKNOWN if key != "num_attention_heads"}
    model = _model(without_heads)
    assert model.parameters.blocks is None
    assert model.missing[0].startswith("heads: looked for num_attention_heads, n_head")
    without_dim = _model({key: UNKNOWN[key] for key in UNKNOWN if key != "head_dim"})
    assert without_dim.parameters.blocks == 2 * (2 * 64 * (64 + 32) + 2 * 64 * 100)
    odd = _model({key: UNKNOWN[key] for key in UNKNOWN if key != "head_dim"} | {"hidden_size": 66})
    assert (odd.stacks[0].head_dim, odd.assumed) == (None, ())
    assert odd.missing[0].startswith("head_dim: looked for head_dim, d_kv, attention_head_size")
    narrow = _model({key: UNKNOWN[key] for key in UNKNOWN if key != "intermediate_size"})
    assert narrow.parameters.blocks is None
    assert narrow.missing[0].startswith("feed_forward: looked for intermediate_size, d_ff")
    untold = _model({key: UNKNOWN[key] for key in UNKNOWN if key != "tie_word_embeddings"})
    assert (untold.is_tied, untold.parameters.total) == (None, None)
    assert untold.missing == ("is_tied: looked for tie_word_embeddings",)


def test_heads_of_no_known_class_are_left_out_aloud() -> None:
    document = _document("gpt2")
    odd = _model(document | {"architectures": ["GPT2ForSomethingElse"]})
    assert "the head of 'GPT2ForSomethingElse' is left out of the count" in odd.notes
    plain = _model(document | {"architectures": ["GPT2Model"]})
    assert plain.parameters == odd.parameters
    labels = _model(
        _document("bert-large-uncased") | {"architectures": ["BertForTokenClassification"]}
    )
    assert "the head of 'BertForTokenClassification' is left out of the count" in labels.notes


def test_a_part_alone_keeps_its_numbers_and_the_family_of_the_whole() -> None:
    inner = _text() | {"tie_word_embeddings": True}
    whole = {"model_type": "sees", "tie_word_embeddings": False, "text_config": inner}
    model = _model(whole)
    assert (model.family, model.is_tied) == ("sees", True)
    del inner["tie_word_embeddings"]
    assert _model(whole).is_tied is False
    assert _model({"decoder": _text()}).depth == 2
    assert _model(_text() | {"decoder": {"hidden_size": 8}}).width == 64  # its own width decides


def test_what_joins_the_parts_is_counted_where_it_is_known() -> None:
    vision = _vision() | {"model_type": "siglip_vision_model", "image_size": 28}
    vision |= {"intermediate_size": 64}
    text = _text() | {"model_type": "gemma3_text"}
    joined = _model({"model_type": "gemma3", "text_config": text, "vision_config": vision})
    apart = _model({"model_type": "sees", "text_config": text, "vision_config": vision})
    assert joined.parameters.embedding is not None
    assert apart.parameters.embedding == joined.parameters.embedding - (32 * 64 + 32)
    assert "what joins its parts" in apart.notes[-1]
    assert not any("what joins its parts" in note for note in joined.notes)


def test_a_clip_without_the_size_of_its_projection_is_counted_without_it() -> None:
    parts: dict[str, object] = {"text_config": {"hidden_size": 64}, "vision_config": {}}
    whole = _model({"model_type": "clip", "projection_dim": 8, **parts})
    apart = _model({"model_type": "clip", **parts})
    assert whole.parameters.embedding is not None
    assert apart.parameters.embedding == whole.parameters.embedding - 8 * (64 + 768) - 1
    assert "what joins its parts" in apart.notes[-1]
    with pytest.raises(ValueError, match="projection_dim=0 is below 1"):
        _model({"model_type": "clip", "projection_dim": 0, **parts})
    llava = _model({"model_type": "llava", "projection_dim": 0, **parts})  # it does not read that
    several = _model({"model_type": "llava", "vision_feature_layer": [1, 2], **parts})
    assert llava.parameters.embedding is not None
    assert several.parameters.embedding == llava.parameters.embedding - (768 + 64 + 2) * 64
