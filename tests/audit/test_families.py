"""The data file of families, and the small engine that reads it."""

from dataclasses import replace

import pytest

from archfit.audit.families import (
    DERIVED,
    class_name,
    family_name,
    family_of,
    knowledge,
    parameters,
    piece_value,
    tensor_names,
)
from archfit.audit.zoo import absent_sizes

READ_BY_CODE = {  # sizes that config_sizes.py and config.py work out
    *("attention", "key_value", "distinct", "dense", "patches", "patch_dimensions"),
    *("patch_offsets", "stem_weights", "stem_first", "stem_last"),
}
OF_A_CONNECTOR = {"text", "vision", "projection", "projector_bias"}


def _names(piece: str) -> set[str]:
    words = piece.replace("+", " ").replace("-", " ").replace("*", " ").split()
    return {word for word in words if not word.isdecimal()}


def _entries() -> list[str]:
    return [*knowledge()["families"], *knowledge()["variants"]]


@pytest.mark.parametrize(
    ("piece", "value"),
    [
        ("7", 7),
        ("width", 3),
        ("-width", -3),
        ("2*width*vocab + inner - 4", 2 * 3 * 11 + 5 - 4),
        ("columns*width", 15),
        ("10*untied", 10),
        ("narrow", 1),
        ("group_width", 1),
        ("2*dense_layer", 2 * (3 * 3 + 3)),  # a piece inside a piece
    ],
)
def test_a_piece_is_a_sum_of_products(piece: str, value: int) -> None:
    sizes = {"width": 3, "vocab": 11, "inner": 5, "is_tied": 0, "position_groups": 2}
    assert piece_value(piece, sizes) == value


def test_derived_sizes_follow_from_the_plain_ones() -> None:
    tied = {"width": 3, "is_tied": 1, "inner": 3}
    assert [piece_value(name, tied) for name in ("columns", "untied", "narrow")] == [3, 0, 0]
    assert piece_value("columns", {"width": 3}) == 3


def test_a_size_that_is_absent_is_named_and_leaves_the_count_open() -> None:
    with pytest.raises(KeyError, match="positions"):
        piece_value("position_table", {"width": 3})
    family = family_of("gpt2")
    outside = family.embedding + family.outputs["LMHeadModel"]
    assert absent_sizes(outside, {"width": 3, "vocab": 5}) == {"positions", "is_tied"}
    counts = parameters(family, (), {"width": 3, "vocab": 5}, family.embedding)
    assert (counts.blocks, counts.embedding, counts.total) == (0, None, None)


def test_every_entry_is_built_of_pieces_and_sizes_that_there_are() -> None:
    """A name that is mistyped would leave a count open for ever."""
    sizes = {*knowledge()["keys"], *knowledge()["pieces"], *DERIVED} | READ_BY_CODE
    for piece in knowledge()["pieces"].values():
        assert _names(piece) <= sizes, piece
    for parts in knowledge()["multimodal"].values():
        assert _names(parts.get("connector", "")) <= OF_A_CONNECTOR
        assert {parts.get("text"), parts.get("vision", "llama")} <= {*knowledge()["families"]}
    for name in _entries():
        family = family_of(name)
        pieces = [*family.matrices, *family.vectors, *family.inside_stack, *family.embedding]
        pieces += [piece for parts in family.outputs.values() for piece in parts]
        for switch in family.switches:
            changed = replace(family, **switch.get("changed", {}))  # only fields that there are
            assert changed.biases is not None
            assert switch.keys() <= {"key", "value", "changed", "added", "dropped"}
            others = (switch.get(name, {}) for name in ("added", "dropped"))
            for field, parts in (pair for each in others for pair in each.items()):
                assert isinstance(getattr(family, field), tuple)
                pieces += [] if field in ("biases", "needs") else parts
        assert {word for piece in pieces for word in _names(piece)} <= sizes, name
        assert set(family.needs) <= {*knowledge()["keys"]}, name
        for stack in knowledge()["stacks"][family.stacks]:
            assert {"role"} <= stack.keys() <= {"role", "has_cross_attention", "keys"}


def test_no_piece_has_the_name_of_a_size() -> None:
    assert not knowledge()["pieces"].keys() & {*knowledge()["keys"], *DERIVED, *READ_BY_CODE}


def test_each_family_states_its_class_and_keeps_no_defaults_of_the_one_it_is_like() -> None:
    for name, entry in knowledge()["families"].items():
        assert entry["config_class"].endswith("Config")
        assert family_of(name).defaults == entry["defaults"]
        assert family_of(name).part_defaults == entry.get("part_defaults", {})
    falcon = family_of("falcon")
    assert family_of("grouped_falcon") == replace(falcon, norms=2)  # the same class
    assert family_of("palm").defaults == {}


def test_a_switch_is_turned_by_its_value_alone() -> None:
    wav2vec2 = family_of("wav2vec2")
    assert wav2vec2.switched({"feat_extract_norm": "group"}) is wav2vec2
    layered = wav2vec2.switched({"feat_extract_norm": "layer", "conv_bias": True})
    assert set(wav2vec2.embedding) - set(layered.embedding) == {"first_stem_norm"}
    assert set(layered.embedding) - set(wav2vec2.embedding) == {"stem_norms", "stem_biases"}
    assert family_of("gpt2").switched({"add_cross_attention": [True]}).stacks == "decoder"
    assert family_of("gpt2").switched({"add_cross_attention": True}).stacks == "crossing_decoder"
    assert family_of("falcon").switched({"num_ln_in_parallel_attn": 2.0}).norms == 2


def test_two_families_share_no_class_prefix() -> None:
    """Otherwise `architectures` alone would not tell them apart."""
    stems = [entry["config_class"].lower() for entry in knowledge()["families"].values()]
    assert len({stem.replace("text", "") for stem in stems}) == len(stems)


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"model_type": "bert"}, "bert"),
        ({"model_type": "never_seen"}, "never_seen"),
        ({"model_type": "bert", "architectures": ["GPT2LMHeadModel"]}, "bert"),
        ({"model_type": "mine", "architectures": ["BertForMaskedLM"]}, "bert"),
        ({"architectures": ["GPT2LMHeadModel"]}, "gpt2"),
        ({"architectures": ["T5EncoderModel"]}, "t5"),
        ({"architectures": ["GPT2DoubleHeadsModel"]}, "gpt2"),
        ({"architectures": ["XLMRobertaModel"]}, "xlm-roberta"),
        ({"architectures": ["Gemma3ForCausalLM"]}, "gemma3_text"),
        ({"architectures": ["NeverSeenModel"]}, None),
        ({"architectures": []}, None),
        ({"d_kv": 64, "d_ff": 2048}, "t5"),
        ({"d_kv": 64}, None),
        ({}, None),
    ],
)
def test_a_family_is_known_by_its_type_its_class_or_its_keys(
    document: dict[str, object], name: str | None
) -> None:
    assert family_name(document) == name


def test_the_class_of_a_config_may_stand_alone() -> None:
    assert class_name({"architectures": "BertModel"}) == "BertModel"


def test_usual_spellings_come_first() -> None:
    assert knowledge()["keys"]["width"][0] == "hidden_size"
    assert knowledge()["keys"]["depth"][0] == "num_hidden_layers"
    assert tensor_names("token_tables")[0] == "shared.weight"
