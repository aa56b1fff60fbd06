"""Audits as values and as JSON; the command line's own tests run the program."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from archfit.audit.auditor import audit_config, audit_model, audit_target
from archfit.audit.embedding import EmbeddingSpectrum
from archfit.audit.zoo import zoo_model
from archfit.report.audit_document import audit_json
from tests_audit_oracle import model_class
from tests_safetensors import write_shapes

GPT2 = {"model_type": "gpt2", "n_layer": 3, "n_embd": 8, "n_head": 2, "vocab_size": 30}
SPECTRUM = EmbeddingSpectrum(
    tensors=("wte.weight",),
    rows=50257,
    width=768,
    padded_rows=3,
    numerical_rank=192,
    tolerance=0.5,
    stable_rank=1.5,
    effective_rank=2.5,
    singular_values=(4.0, 1.0),
    bytes_read=99,
)


def test_the_rank_ratio_is_measured_where_weights_were_read() -> None:
    model = zoo_model("gpt2")
    assert audit_model(model).rank_ratio == 1
    measured = audit_model(model, SPECTRUM)
    assert measured.rank_ratio == 0.25
    assert measured.findings[0].id == "low-rank-embedding"
    whisper = replace(zoo_model("whisper-tiny"))
    assert audit_model(whisper).rank_ratio is None


def test_json_has_every_measure_of_a_spectrum_and_points_of_its_curve() -> None:
    document = audit_json(audit_model(zoo_model("gpt2"), SPECTRUM))
    names = {field.name for field in fields(EmbeddingSpectrum)} - {"width"}
    spectrum = document["spectrum"]
    assert isinstance(spectrum, dict)
    assert spectrum.keys() == names
    assert spectrum["tensors"] == ["wte.weight"]
    assert spectrum["singular_values"] == [
        {"index": 1, "singular_value": 4.0},
        {"index": 2, "singular_value": 1.0},
    ]
    assert document["embedding_rank_measured"] == 192
    assert json.loads(json.dumps(document)) == document


def test_json_rounds_ratios_to_six_digits_and_says_what_each_finding_rests_on() -> None:
    document = audit_json(audit_model(zoo_model("vit-h-14")))
    assert (document["rank_ratio"], document["findings"]) == (0.459375, [])
    assert audit_json(audit_model(zoo_model("wav2vec2-base")))["rank_ratio"] == 0.666667
    found: list[Any] = [
        audit_json(audit_model(zoo_model(name)))["findings"]
        for name in ("albert-xxlarge-v1", "pythia-70m")
    ]
    (table,), (depth,) = found
    assert table.keys() == {"id", "severity", "stack", "redundancy", "evidence", "fix"}
    assert table["redundancy"].keys() == {"low", "high", "basis"}
    assert (depth["id"], depth["redundancy"]) == ("too-shallow", None)
    stacks = document["stacks"]
    assert isinstance(stacks, list)
    assert stacks[0]["attention_ratio"] == 1.0
    assert stacks[0]["role"] == "vision"


def test_a_config_of_16_megabytes_is_read_and_a_larger_one_is_not(tmp_path: Path) -> None:
    text = json.dumps(GPT2)
    (tmp_path / "config.json").write_text(text.ljust(16_000_000))
    assert audit_target(str(tmp_path), measure=False, environment={}).model.depth == 3
    (tmp_path / "config.json").write_text(text.ljust(16_000_001))
    with pytest.raises(ValueError, match=r"config\.json cannot be read: it has over 16,000,000"):
        audit_target(str(tmp_path), measure=False, environment={})


def test_weights_alone_are_audited_and_not_compared_with_themselves(tmp_path: Path) -> None:
    shapes = {"wte.weight": ("F32", [30, 8]), "h.0.mlp.c_fc.weight": ("F32", [8, 32])}
    write_shapes(tmp_path / "model.safetensors", shapes)
    model = audit_target(str(tmp_path), measure=False, environment={}).model
    assert (model.depth, model.width, model.notes) == (1, 8, ())
    assert model.origin == str(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="nothing but zeros"):
        audit_target(str(tmp_path), measure=True, environment={})


def test_weights_are_asked_for_where_there_are_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--weights needs a checkpoint, and gpt2 is a row of the"):
        audit_target("GPT2", measure=True, environment={"HF_HOME": str(tmp_path)})
    (tmp_path / "config.json").write_text(json.dumps(GPT2))
    with pytest.raises(ValueError, match="has no weights beside it"):
        audit_target(str(tmp_path), measure=True, environment={})


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("GPT2LMHeadModel", {"n_layer": 3, "n_embd": 24, "n_head": 2, "n_positions": 16}),
        ("LlamaForCausalLM", {"num_hidden_layers": 3, "hidden_size": 24, "intermediate_size": 40}),
        ("BertModel", {"num_hidden_layers": 3, "hidden_size": 24, "intermediate_size": 40}),
    ],
)
def test_configs_and_models_of_transformers_are_audited_as_their_dictionaries(
    name: str, sizes: dict[str, int]
) -> None:
    import torch

    built = model_class(name)
    heads = {} if name.startswith("GPT2") else {"num_attention_heads": 4}
    ids = {"bos_token_id": None, "eos_token_id": None}
    config = built.config_class(vocab_size=300, **sizes, **heads, **ids)
    with torch.device("meta"):
        model = built(config)
    found = audit_config(model)
    assert found.model.parameters.total == model.num_parameters()
    assert (found.model.depth, found.model.width, found.model.name) == (3, 24, config.model_type)
    as_config = audit_config(config)
    assert as_config == audit_config(config.to_dict())
    assert as_config.model.stacks == found.model.stacks


def test_what_has_no_config_is_refused_with_what_has() -> None:
    with pytest.raises(ValueError, match="nothing of type int can be audited; give a path, a name"):
        audit_config(3)
