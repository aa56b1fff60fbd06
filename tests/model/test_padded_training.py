"""A whole run by our kernels, its network inside a larger one: in Triton's interpreter."""

import importlib.util
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from archfit.model import layers
from archfit.spec import Rotary, RunSpec
from archfit.spec.files import WEIGHTS
from archfit.train import Stopped, train
from tests_training import HERE, Recorder, largest_difference, tiny_data, tiny_spec

pytestmark = [
    pytest.mark.skipif(torch.cuda.is_available(), reason="it pretends that the CPU is a GPU"),
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Linux only"),
]


def _fuse(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("can_fuse", "can_fuse_products"):
        monkeypatch.setattr(layers, name, lambda _: True)
    # In the interpreter a program costs milliseconds, however much it adds up.
    monkeypatch.setattr("archfit.model.tiles.COLUMNS", 1024)
    for room in ("run", "step"):
        monkeypatch.setattr(f"archfit.train.{room}.is_fused", lambda *_: True)


@pytest.mark.parametrize("block", [pytest.param("gpt2", marks=pytest.mark.slow), "llama"])
def test_a_run_and_its_resumption_are_those_of_plain_torch_and_files_hold_the_network_inside(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tiny_data(tmp_path)
    given: dict[str, object] = {"depth": 1, "width": 12, "heads": 2, "head_dim": 6, "steps": 2}
    given |= {"batch_sequences": 2, "evaluation_steps": 2, "evaluation_sequences": 2}
    if block == "llama":
        given |= {"block": block, "positions": Rotary(), "qk_norm": True, "feed_forward": 20}
    spec: RunSpec = tiny_spec(data, **given)
    plain = train(spec, data, tmp_path / "plain", HERE, Recorder())
    with monkeypatch.context() as patch:
        _fuse(patch)
        with pytest.raises(Stopped):
            train(spec, data, tmp_path / "ours", HERE, Recorder(stop_after=1))
        ours = train(spec, data, tmp_path / "ours", HERE, Recorder())
    assert largest_difference(ours, plain) < 1e-4
    kept, expected = (
        load_file(tmp_path / name / spec.name / WEIGHTS) for name in ("ours", "plain")
    )
    assert kept.keys() == expected.keys()
    for name, content in expected.items():
        torch.testing.assert_close(kept[name], content, atol=1e-4, rtol=1e-3)
