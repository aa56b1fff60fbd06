"""Configs and weights that say different things; classes of transformers say what agrees."""

import json
import os
import warnings
from pathlib import Path
from typing import cast

import pytest

from archfit.audit.auditor import audit_target
from archfit.audit.families import FAMILIES
from tests_audit_configs import keys_of, random_config
from tests_audit_oracle import model_class
from tests_safetensors import write_raw, write_shapes

transformers = pytest.importorskip("transformers")

GPT2: dict[str, object] = {
    "model_type": "gpt2",
    "n_layer": 3,
    "n_embd": 8,
    "n_head": 2,
    "vocab_size": 30,
}
SHAPES: dict[str, list[int]] = {
    "wte.weight": [30, 8],
    **{f"h.{block}.mlp.c_fc.weight": [8, 32] for block in range(3)},
}


def _notes(folder: Path) -> tuple[str, ...]:
    return audit_target(str(folder), measure=False, environment={}).model.notes


def _written(folder: Path, shapes: dict[str, list[int]]) -> Path:
    (folder / "config.json").write_text(json.dumps(GPT2))
    named = {name: ("F32", shape) for name, shape in shapes.items()}
    write_shapes(folder / "model.safetensors", named)
    return folder


def test_weights_that_agree_are_no_note(tmp_path: Path) -> None:
    assert _notes(_written(tmp_path, SHAPES)) == ()


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
    notes = _notes(_written(tmp_path, SHAPES | changes))
    assert notes == (sentence + "the numbers here are the config's",)


def test_only_the_header_is_read(tmp_path: Path) -> None:
    """A table of two terabytes, in a hole of the file."""
    folder = _written(tmp_path, SHAPES | {"wte.weight": [6 * 10**10, 8]})
    assert "has 60,000,000,000 rows" in _notes(folder)[0]


def test_weights_that_cannot_be_read_leave_the_config_to_be_audited(tmp_path: Path) -> None:
    folder = _written(tmp_path, SHAPES)
    write_raw(folder / "model.safetensors", b"{")
    (note,) = _notes(folder)
    assert note.startswith("the weights were not compared with it: ")
    assert "model.safetensors is no sound safetensors file" in note
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")
    assert "it is a pipe or a device" in _notes(folder)[0]


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.is_exact])
def test_what_transformers_would_save_agrees(name: str, tmp_path: Path) -> None:
    import torch

    prefix = FAMILIES[name].config_class.removesuffix("Config")
    end = next(iter(FAMILIES[name].outputs))
    prefix = prefix.removesuffix("Text") if end.startswith("For") else prefix
    keys = keys_of(type(transformers.AutoConfig.for_model(name)))
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
