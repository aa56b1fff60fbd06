"""Trained weights as a Hugging Face folder: the same logits, and refusals of what is damaged."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from archfit.export.formats import export_config, shape_of, write_files
from archfit.export.trained import (
    TrainedRun,
    expected_shapes,
    export_run,
    multipliers,
    open_run,
    write_weights,
)
from archfit.model import parametrisation
from archfit.model.layers import NORM_EPSILON, ROTARY_BASE
from archfit.spec import (
    Architecture,
    Factorised,
    Linear,
    Patches,
    Rotary,
    Tied,
    canonical_json,
    standard_architecture,
)
from archfit.spec.parts import Head, Table
from tests_exports import NETWORK, SMALL, random_run
from tests_models import random_model, random_tokens
from tests_training import record_of, tiny_data, tiny_spec

Rule = Literal["standard", "completep"]
RULES: tuple[Rule, ...] = ("standard", "completep")
NARROW, WIDE = Factorised(inner=5), Factorised(inner=40)


def _exported(run: Path, out: Path) -> Path:
    trained = open_run(run)
    out.mkdir()
    write_files(export_run(trained, separator=None), out)
    write_weights(trained, out)
    return out


def _their_logits(folder: Path, tokens_BN: Tensor) -> Tensor:
    from transformers import AutoModelForCausalLM

    model: nn.Module = AutoModelForCausalLM.from_pretrained(folder)
    model.eval()
    with torch.no_grad():
        logits_BNV: Tensor = model(tokens_BN).logits
    return logits_BNV


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("embedding", "positions", "head"),
    [
        (NETWORK.embedding, NETWORK.positions, NETWORK.head),
        (NETWORK.embedding, NETWORK.positions, Tied()),
        (NARROW, NARROW, WIDE),
        (WIDE, NETWORK.positions, Tied()),
    ],
)
def test_hugging_faces_logits_are_ours(
    rule: Rule, embedding: Table, positions: Table, head: Head, tmp_path: Path
) -> None:
    architecture = replace(NETWORK, embedding=embedding, positions=positions, head=head)
    model = random_run(tmp_path / "run", architecture, rule)
    tokens_BN = random_tokens(architecture, batch=3)
    with torch.no_grad():
        ours_BNV = model(tokens_BN)
    theirs_BNV = _their_logits(_exported(tmp_path / "run", tmp_path / "hf"), tokens_BN)
    size = float(ours_BNV.std())
    assert size > 0.3
    torch.testing.assert_close(theirs_BNV, ours_BNV, atol=1e-5 * max(1, size), rtol=0)


LLAMA = replace(NETWORK, block="llama", positions=Rotary(), feed_forward=40)
GROUPED = replace(LLAMA, kv_heads=2, feed_forward=72, embedding=NARROW)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("head", [NETWORK.head, Tied(), WIDE])
@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        (LLAMA, "hf-llama"),
        (GROUPED, "hf-llama"),
        (replace(GROUPED, qk_norm=True, head_dim=10), "hf-qwen3"),
    ],
)
def test_logits_of_llama_and_qwen3_are_ours(
    architecture: Architecture, name: str, head: Head, rule: Rule, tmp_path: Path
) -> None:
    architecture = replace(architecture, head=head)
    model = random_run(tmp_path / "run", architecture, rule)
    tokens_BN = random_tokens(architecture, batch=3)
    with torch.no_grad():
        ours_BNV = model(tokens_BN)
    out = _exported(tmp_path / "run", tmp_path / "hf")
    theirs_BNV = _their_logits(out, tokens_BN)
    assert open_run(tmp_path / "run").format.name == name
    size = float(ours_BNV.std())
    assert size > 0.3
    torch.testing.assert_close(theirs_BNV, ours_BNV, atol=1e-5 * max(1, size), rtol=0)
    announced = export_run(open_run(tmp_path / "run"), separator=None).params.total
    stored = load_file(out / "model.safetensors").values()
    assert sum(tensor.numel() for tensor in stored) == announced


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("head", [NETWORK.head, Tied()])
def test_hidden_states_of_esm_are_ours(rule: Rule, head: Head, tmp_path: Path) -> None:
    from transformers import AutoModel

    architecture = replace(NETWORK, objective="masked", positions=WIDE, head=head)
    model = random_run(tmp_path / "run", architecture, rule)
    tokens_BN = random_tokens(architecture, batch=3)
    tokens_BN[:, :2] = torch.tensor([0, architecture.input.vocab - 1])  # neither is padding
    out = _exported(tmp_path / "run", tmp_path / "hf")
    theirs: nn.Module = AutoModel.from_pretrained(out, add_pooling_layer=False).eval()
    with torch.no_grad():
        ours_BND = model.trunk(model.embedding(tokens_BN))
        theirs_BND = theirs(tokens_BN).last_hidden_state
    torch.testing.assert_close(theirs_BND, ours_BND, atol=1e-5, rtol=0)
    exported = export_run(open_run(tmp_path / "run"), separator=None)
    stored = load_file(out / "model.safetensors").values()
    assert sum(tensor.numel() for tensor in stored) == exported.params.total
    assert any("EsmForMaskedLM predicts through a head of its own" in n for n in exported.notes)


def test_a_network_that_was_really_trained_gives_the_same_logits(tmp_path: Path) -> None:
    data = tiny_data(tmp_path)
    spec = tiny_spec(data, embedding=NARROW, learning_rate_rule="completep")
    record_of(spec, data, tmp_path / "runs")
    run = tmp_path / "runs" / spec.name
    model = random_model(spec.architecture, rule="completep")
    model.load_state_dict(load_file(run / "model.safetensors"))
    tokens_BN = random_tokens(spec.architecture, batch=3)
    with torch.no_grad():
        ours_BNV = model(tokens_BN)
    theirs_BNV = _their_logits(_exported(run, tmp_path / "hf"), tokens_BN)
    torch.testing.assert_close(theirs_BNV, ours_BNV, atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", [NETWORK.head, Tied()])
def test_the_files_hold_the_parameters_that_are_announced(head: Head, tmp_path: Path) -> None:
    random_run(tmp_path / "run", replace(NETWORK, embedding=NARROW, head=head))
    tensors = load_file(_exported(tmp_path / "run", tmp_path / "hf") / "model.safetensors")
    announced = export_run(open_run(tmp_path / "run"), separator=None).params.total
    assert sum(tensor.numel() for tensor in tensors.values()) == announced
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float32}
    assert torch.linalg.matrix_rank(tensors["transformer.wte.weight"].double(), rtol=1e-5) == 5


def test_notes_say_what_was_multiplied_out_and_folded_in(tmp_path: Path) -> None:
    random_run(tmp_path / "run", replace(NETWORK, embedding=NARROW), "completep")
    notes = export_run(open_run(tmp_path / "run"), separator=None).notes
    merged = (
        "the table of tokens was factorised to 5 and is multiplied out: 275 parameters became 744"
    )
    assert merged in notes
    assert "the multipliers of completep are folded into the weights" in notes


@pytest.mark.parametrize(("depth", "width", "heads"), [(1, 8, 1), (2, 256, 4), (24, 1024, 16)])
@pytest.mark.parametrize("rule", RULES)
def test_multipliers_are_those_of_the_network(
    rule: Rule, depth: int, width: int, heads: int
) -> None:
    shape = standard_architecture(depth=depth, width=width, heads=heads, vocab=9, context=4)
    theirs = parametrisation(shape, rule)
    score = theirs.score_multiplier * shape.head_dim**0.5
    expected = (theirs.residual_multiplier, theirs.logit_multiplier, score)
    assert multipliers(shape, rule) == pytest.approx(expected, rel=1e-12)


def test_norms_divide_by_the_same() -> None:
    for name, key in {"hf-gpt2": "layer_norm_epsilon", "hf-esm": "layer_norm_eps"}.items():
        config = json.loads(export_config(SMALL, name).files["config.json"])
        assert config[key] == NORM_EPSILON
    for name in ("hf-llama", "hf-qwen3"):
        config = json.loads(export_config(shape_of(LLAMA), name).files["config.json"])
        assert config["rms_norm_eps"] == NORM_EPSILON
        assert config["rope_parameters"]["rope_theta"] == ROTARY_BASE


@pytest.mark.parametrize("head", [NETWORK.head, Tied(), NARROW])
def test_the_expected_tensors_are_those_of_the_network(head: Head) -> None:
    for architecture in (
        replace(NETWORK, positions=WIDE, head=head, head_dim=7),
        replace(LLAMA, head=head, head_dim=8),
        replace(GROUPED, head=head, qk_norm=True),
    ):
        shapes = {name: tuple(p.shape) for name, p in random_model(architecture).named_parameters()}
        assert expected_shapes(architecture) == shapes


@pytest.mark.parametrize(
    ("architecture", "sentence"),
    [
        (
            replace(NETWORK, head_dim=7),
            "hf-gpt2 cannot hold these weights: heads x head_dim = 4 x 7 = 28 is not width = 24, "
            "and no other format has such blocks",
        ),
        (
            replace(NETWORK, input=Patches(vocab=31, size=2, encoding="one-hot")),
            "patches of 2 tokens .* its weights stay usable by archfit",
        ),
        (
            replace(NETWORK, attention=Linear(residual=True, causal=True), feed_forward=0),
            "attention=linear .* its weights stay usable by archfit",
        ),
        (
            replace(LLAMA, objective="masked"),
            "an encoder of Llama's blocks is a network that no format has; .* stay usable",
        ),
        (
            replace(LLAMA, heads=5, head_dim=4),
            "hf-llama cannot hold these weights: transformers wants a width that heads = 5 "
            "divides, not 24, and no other format has such blocks; train with head_dim",
        ),
        (
            replace(NETWORK, objective="masked", head_dim=7),
            "hf-esm cannot hold these weights: heads x head_dim = 4 x 7",
        ),
    ],
)
def test_weights_that_no_format_can_hold_are_refused(
    architecture: Architecture, sentence: str, tmp_path: Path
) -> None:
    random_run(tmp_path / "run", architecture)
    with pytest.raises(ValueError, match=sentence):
        export_run(open_run(tmp_path / "run"), separator=None)


def _other_record(run: Path) -> None:
    record = json.loads((run / "record.json").read_text())
    record["spec"]["seed"] = 5
    (run / "record.json").write_text(json.dumps(record))


def _diverged(run: Path) -> None:
    record = json.loads((run / "record.json").read_text())
    (run / "record.json").write_text(
        json.dumps(record | {"status": "diverged", "diverged_at_step": 3})
    )


def _pipe(run: Path) -> None:
    (run / "model.safetensors").unlink()
    os.mkfifo(run / "model.safetensors")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda run: (run / "spec.json").unlink(), "is not the folder of a run: it has no spec"),
        (lambda run: (run / "record.json").unlink(), "is not finished: it has no record.json"),
        (
            lambda run: (run / "record.json").write_text("{}"),
            "record.json is damaged: RunRecord lacks",
        ),
        (lambda run: (run / "spec.json").write_bytes(b"\xff"), "spec.json is damaged: "),
        (lambda run: (run / "model.safetensors").unlink(), "trained with --no-keep-weights"),
        (_pipe, "has no model.safetensors"),
        (_other_record, "record.json is of run .* and spec.json of"),
        (_diverged, "diverged at step 3"),
    ],
)
def test_a_folder_that_is_no_finished_run_is_refused(
    damage: Callable[[Path], object], sentence: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    random_run(run)
    damage(run)
    with pytest.raises(ValueError, match=sentence):
        open_run(run)


def _changed(run: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    tensors = load_file(run / "model.safetensors")
    change(tensors)
    save_file(tensors, run / "model.safetensors")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda run: (run / "model.safetensors").write_bytes(b"no"),
            "model.safetensors is damaged",
        ),
        (
            lambda run: os.truncate(run / "model.safetensors", 9000),
            "model.safetensors is damaged",
        ),
        (
            lambda run: _changed(run, lambda t: t.pop("trunk.norm.bias")),
            "the file and the network differ in 'trunk.norm.bias'",
        ),
        (
            lambda run: _changed(run, lambda t: t.update(extra=torch.ones(1))),
            "the file and the network differ in 'extra'",
        ),
        (
            lambda run: _changed(run, lambda t: t.update({"trunk.norm.bias": torch.ones(23)})),
            r"trunk.norm.bias is F32 \(23,\), not F32 \(24,\)",
        ),
        (
            lambda run: _changed(
                run, lambda t: t.update({"trunk.norm.bias": torch.ones(24).half()})
            ),
            r"trunk.norm.bias is F16 \(24,\), not F32 \(24,\)",
        ),
    ],
)
def test_weights_of_another_network_are_refused(
    damage: Callable[[Path], object], sentence: str, tmp_path: Path
) -> None:
    random_run(tmp_path / "run")
    damage(tmp_path / "run")
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError, match=sentence):
        write_weights(open_run(tmp_path / "run"), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_spec_of_a_trillion_blocks_is_refused_at_once(tmp_path: Path) -> None:
    random_run(tmp_path / "run")
    trained = open_run(tmp_path / "run")
    deep = replace(trained.spec.architecture, depth=10**12)
    hostile = TrainedRun(spec=replace(trained.spec, architecture=deep), weights=trained.weights)
    with pytest.raises(ValueError, match="tensors are not 1000000000000 blocks"):
        write_weights(hostile, tmp_path)


def test_a_header_that_is_not_of_this_network_is_refused_unread(tmp_path: Path) -> None:
    random_run(tmp_path, NETWORK)
    header = b"{" + b" " * 10**6 + b"}"
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ValueError, match="its header of 1,000,002 bytes is not that of 44 tensors"):
        write_weights(open_run(tmp_path), tmp_path / "hf")


def test_a_record_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.spec.files.LARGEST_RECORD", 1 << 20)
    random_run(tmp_path, NETWORK)
    with open(tmp_path / "record.json", "wb") as file:
        file.truncate(1 << 43)  # 8 TB of nothing, which take no space
    with pytest.raises(ValueError, match=r"record.json is damaged: it has over 1,048,576 bytes"):
        open_run(tmp_path)


def test_weights_that_do_not_fit_the_disk_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random_run(tmp_path / "run")
    (tmp_path / "out").mkdir()
    full = type("Usage", (), {"free": 1000})()
    monkeypatch.setattr("archfit.export.trained.shutil.disk_usage", lambda _: full)
    with pytest.raises(ValueError, match=r"need 93,696 bytes and the disk has 1,000 left"):
        write_weights(open_run(tmp_path / "run"), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_the_spec_is_read_back_as_it_was(tmp_path: Path) -> None:
    random_run(tmp_path / "run")
    spec = open_run(tmp_path / "run").spec
    assert canonical_json(spec) == (tmp_path / "run" / "spec.json").read_text()
