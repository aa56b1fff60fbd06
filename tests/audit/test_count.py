"""The counts against the model classes of transformers, built without memory."""

import dataclasses
import json
from pathlib import Path
from typing import cast

import pytest

from archfit.audit.config import model_from_config
from archfit.audit.families import family_of, knowledge
from tests_audit_configs import class_keys, random_config
from tests_audit_oracle import counted_by_its_class

transformers = pytest.importorskip("transformers")
CONFIGS = Path(__file__).parent / "configs"
CLASS_OF = {  # where the file names none, or one that adds a classifier
    "gpt2": "GPT2LMHeadModel",
    "esm-1b": "EsmForMaskedLM",
    "t5-small": "T5ForConditionalGeneration",
}
SEEDS = range(8)
_EXACT = [
    (name, end)
    for name in knowledge()["families"]
    if family_of(name).is_exact
    for end in family_of(name).outputs
    if end != "WithLMHeadModel"  # a name of 2019 for what is now ForConditionalGeneration
]


def _document(name: str) -> dict[str, object]:
    return cast(dict[str, object], json.loads((CONFIGS / f"{name}.json").read_text()))


def _total(document: dict[str, object]) -> int | None:
    return model_from_config(document, name="x", origin="x").parameters.total


@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIGS.glob("*.json")))
def test_the_count_of_a_real_config_is_that_of_its_class(name: str) -> None:
    document = _document(name)
    if name == "esm-1b":
        document["hidden_dropout_prob"] = 0.0  # the class insists on a point
    if name == "byt5-xxl":
        document["tie_word_embeddings"] = True  # the class ties whatever the file says
    classes = cast(list[str], document.get("architectures", [""]))
    class_name = CLASS_OF.get(name, classes[0])
    assert _total(document) == counted_by_its_class(document, class_name)


def test_a_t5_that_is_not_tied_stores_the_head_that_its_file_speaks_of() -> None:
    """transformers 5.22.2 ties every T5, whatever its file says."""
    document = _document("byt5-xxl")
    tied = _total(document | {"tie_word_embeddings": True})
    assert tied is not None
    assert _total(document) == tied + 384 * 4672


@pytest.mark.parametrize(("name", "end"), _EXACT)
def test_the_count_of_small_random_configs_is_that_of_their_class(name: str, end: str) -> None:
    prefix = family_of(name).config_class.removesuffix("Config")
    prefix = prefix.removesuffix("Text") if end.startswith("For") else prefix
    prefix = prefix.removesuffix("Vision") if end.startswith("For") else prefix
    keys = class_keys(type(transformers.AutoConfig.for_model(name)))
    for seed in SEEDS:
        document = random_config(name, keys, seed)
        total = _total(document | {"architectures": [prefix + end]})
        if end.endswith(("Classification", "QuestionAnswering", "WithTeacher")):
            assert total is not None
            heads = 2 if end.endswith("WithTeacher") else 1
            total += heads * 2 * (cast(int, document["hidden_size"]) + 1)  # two labels, left out
        assert total == counted_by_its_class(document, prefix + end), document


def test_a_t5_of_2019_counts_as_one_of_today() -> None:
    document = _document("t5-small")
    assert _total(document | {"architectures": ["T5WithLMHeadModel"]}) == _total(document)


def test_defaults_are_stated_for_the_version_that_is_pinned() -> None:
    """Classes change them at times: with another version they have to be read again."""
    assert f"transformers {transformers.__version__}" == knowledge()["read_from"]


def test_every_stated_default_is_that_of_the_class() -> None:
    for name in knowledge()["families"]:
        defaults = family_of(name).defaults
        config_class = type(transformers.AutoConfig.for_model(name))
        assert config_class.__name__ == family_of(name).config_class
        stated = {field.name: field.default for field in dataclasses.fields(config_class)}
        if name == "t5":
            stated["tie_word_embeddings"] = True  # set in its __post_init__
        assert {key: stated[key] for key in defaults} == defaults, name


def test_the_count_of_a_mixture_with_dense_layers_is_that_of_its_class() -> None:
    keys = class_keys(type(transformers.AutoConfig.for_model("qwen3_moe")))
    for step, dense in ((1, [0, 2]), (2, []), (2, [1]), (3, [0, 7])):
        document = random_config("qwen3_moe", keys, 1) | {
            "num_hidden_layers": 5,
            "decoder_sparse_step": step,
            "mlp_only_layers": dense,
        }
        assert _total(document) == counted_by_its_class(document, "Qwen3MoeForCausalLM")


@pytest.mark.parametrize(
    ("name", "class_name", "turned"),
    [
        ("gpt2", "GPT2LMHeadModel", {"add_cross_attention": True}),
        ("bert", "BertLMHeadModel", {"add_cross_attention": True, "is_decoder": True}),
        ("phi", "PhiForCausalLM", {"qk_layernorm": True}),
        ("stablelm", "StableLmForCausalLM", {"qk_layernorm": True}),
        ("opt", "OPTForCausalLM", {"layer_norm_elementwise_affine": False}),
        ("t5", "T5ForConditionalGeneration", {"is_gated_act": True}),
        ("mt5", "MT5ForConditionalGeneration", {"feed_forward_proj": "gelu"}),
    ],
)
def test_a_key_that_changes_the_count_is_followed(
    name: str, class_name: str, turned: dict[str, object]
) -> None:
    keys = class_keys(type(transformers.AutoConfig.for_model(name)))
    plain = {"model_type": name, **random_config(name, keys, 1)}
    plain = {key: value for key, value in plain.items() if key not in turned}
    changed = plain | turned | {"architectures": [class_name]}
    assert _total(changed) == counted_by_its_class(changed, class_name)
    assert _total(changed) != _total(plain | {"architectures": [class_name]})


def test_a_key_that_is_not_followed_is_a_note() -> None:
    document = _document("wav2vec2-large-960h-lv60-self") | {"add_adapter": True}
    notes = model_from_config(document, name="x", origin="x").notes
    assert "add_adapter=True adds or drops parameters, which the count does not follow" in notes


CLIP = {
    "model_type": "clip",
    "architectures": ["CLIPModel"],
    "projection_dim": 40,
    "text_config": {"hidden_size": 48, "num_hidden_layers": 2, "intermediate_size": 80},
    "vision_config": {"num_attention_heads": 4, "patch_size": 16},
}
LLAVA = {
    "model_type": "llava",
    "architectures": ["LlavaForConditionalGeneration"],
    "text_config": {"model_type": "llama", "vocab_size": 32064},
    "vision_config": {
        "model_type": "clip_vision_model",
        "hidden_size": 1024,
        "image_size": 336,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "patch_size": 14,
    },
    "tie_word_embeddings": False,
}


@pytest.mark.parametrize("bias", [{}, {"multimodal_projector_bias": False}])
def test_llava_counts_as_its_class_though_its_text_leaves_depth_and_width_to_theirs(
    bias: dict[str, object],
) -> None:
    model = model_from_config(LLAVA | bias, name="x", origin="x")
    assert (model.depth, model.width) == (32, 4096)
    assert "hidden_size=4096: default of LlamaConfig (transformers 5.22.2)" in model.assumed
    built = counted_by_its_class(LLAVA | bias, "LlavaForConditionalGeneration")
    assert model.parameters.total == built


def test_clip_counts_as_its_class() -> None:
    model = model_from_config(CLIP, name="x", origin="x")
    assert [stack.role for stack in model.stacks] == ["encoder", "vision"]
    assert model.parameters.total == counted_by_its_class(CLIP, "CLIPModel")


def test_depth_and_width_are_assumed_of_parts_alone() -> None:
    with pytest.raises(ValueError, match="gives no width"):
        _total({"model_type": "llama"})


def test_every_default_of_a_part_is_that_of_the_class() -> None:
    for name in knowledge()["families"]:
        sizes = family_of(name).part_defaults
        fields = dataclasses.fields(type(transformers.AutoConfig.for_model(name)))
        stated = {field.name: field.default for field in fields}
        assert {key: stated[key] for key in sizes} == sizes, name
