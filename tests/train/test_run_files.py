"""Checkpoints that cannot be used are named, and nothing of the run is lost."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from archfit.data.prepared import PreparedData
from archfit.spec import RunRecord
from archfit.train import Stopped, train
from tests_training import HERE, Recorder, checkpoints, record_of, tiny_spec

Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def undisturbed(data: PreparedData, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return record_of(tiny_spec(data), data, tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def run(data: PreparedData, tmp_path: Path) -> Path:
    """The folder of a run that was stopped after steps 4 and 7."""
    spec = tiny_spec(data)
    for step in (4, 7):
        with pytest.raises(Stopped):
            train(spec, data, tmp_path, HERE, Recorder(stop_after=step))
    assert checkpoints(tmp_path / spec.name) == ["step-000000004", "step-000000007"]
    return tmp_path / spec.name


def state(**changes: object) -> Damage:
    """Change what state.json says about the run."""

    def damage(newest: Path) -> None:
        document = json.loads((newest / "state.json").read_text())
        document["saved"] |= changes
        (newest / "state.json").write_text(json.dumps(document))

    return damage


def text(content: bytes) -> Damage:
    def damage(newest: Path) -> None:
        (newest / "state.json").write_bytes(content)

    return damage


def of_another_spec(newest: Path) -> None:
    document = json.loads((newest / "state.json").read_text())
    (newest / "state.json").write_text(json.dumps(document | {"spec_hash": "f" * 64}))


def truncated(newest: Path) -> None:
    path = newest / "optimiser.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def bit_flipped(newest: Path) -> None:
    content = bytearray((newest / "model.safetensors").read_bytes())
    content[-1000] ^= 4
    (newest / "model.safetensors").write_bytes(content)


def tensor(change: Callable[[torch.Tensor], torch.Tensor]) -> Damage:
    """Another tensor, with a hash that agrees."""

    def damage(newest: Path) -> None:
        path = newest / "model.safetensors"
        tensors = load_file(path)
        tensors["head.rows_RI"] = change(tensors["head.rows_RI"]).contiguous()
        save_file(tensors, path)
        document = json.loads((newest / "state.json").read_text())
        document["model_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        (newest / "state.json").write_text(json.dumps(document))

    return damage


def no_tensors(newest: Path) -> None:
    (newest / "model.safetensors").unlink()


def endless(newest: Path) -> None:
    os.truncate(newest / "model.safetensors", 1 << 40)  # a hole: it takes no space, and hours


def pipe(newest: Path) -> None:
    (newest / "model.safetensors").unlink()
    os.mkfifo(newest / "model.safetensors")


def linked(newest: Path) -> None:
    newest.rename(newest.parent.parent / "elsewhere")
    newest.symlink_to(newest.parent.parent / "elsewhere")


def a_file(newest: Path) -> None:
    shutil.rmtree(newest)
    newest.write_text("step")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (of_another_spec, "it belongs to another run, ffffffffffffffff"),
        (truncated, "optimiser.safetensors is not what was written"),
        (bit_flipped, "model.safetensors is not what was written"),
        (tensor(lambda t: t[:, :-1]), r"head.rows_RI has shape \(257, 15\), not \(257, 16\)"),
        (tensor(torch.Tensor.half), "head.rows_RI holds torch.float16, not torch.float32"),
        (tensor(torch.Tensor.double), "head.rows_RI holds torch.float64, not torch.float32"),
        (no_tensors, "No such file"),
        (endless, "model.safetensors is not what was written"),
        (pipe, "model.safetensors is not what was written"),
        (text(b"nonsense"), "this CheckpointState is not JSON"),
        (text(b"[" * 100_000), "nested too deeply"),
        (text(b"{}"), "lacks spec_hash"),
        (text(b"\xff\xfe"), "codec can't decode byte 0xff"),
        (state(step=-3), "step=-3 is below 0"),
        (state(step=10**30), "is over 10"),
        (state(step=13), "it says step 13 of 12, its name 7"),
        (state(step=6), "it says step 6 of 12, its name 7"),
        (state(loss_sum=float("nan")), "NaN is no JSON number"),
        (state(loss_sum=-1.0), r"loss_sum=-1.0 is not in 0\.\."),
        (state(timed_seconds=1e200), "timed_seconds=1e[+]200 is not in 0"),
        (state(evaluations=[]), r"it has evaluations at steps \[\], not every 5"),
        (linked, "it is a link, not a folder"),
        (a_file, "Not a directory"),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_named_and_the_one_before_goes_on(
    data: PreparedData, run: Path, undisturbed: RunRecord, damage: Damage, reason: str
) -> None:
    newest = run / "checkpoint" / "step-000000007"
    damage(newest)
    sentence = f"step-000000007 cannot be used: .*{reason}.*; delete that folder to go on from step"
    with pytest.raises(ValueError, match=f"{sentence} 4"):
        record_of(tiny_spec(data), data, run.parent)
    newest.rename(run / "removed")
    assert record_of(tiny_spec(data), data, run.parent).same_result(undisturbed)


def test_with_no_checkpoint_before_the_start_is_the_way_out(data: PreparedData, run: Path) -> None:
    shutil.rmtree(run / "checkpoint" / "step-000000004")
    truncated(run / "checkpoint" / "step-000000007")
    with pytest.raises(ValueError, match="delete that folder to go on from the start"):
        record_of(tiny_spec(data), data, run.parent)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_folder_of_checkpoints_that_is_none_is_refused_before_training(
    data: PreparedData, run: Path, undisturbed: RunRecord, kind: str
) -> None:
    folder, aside = run / "checkpoint", run / "aside"
    folder.rename(aside)
    folder.write_text("") if kind == "file" else folder.symlink_to(aside)
    with pytest.raises(ValueError, match=r"checkpoint is a file or a link, .* move it away"):
        record_of(tiny_spec(data), data, run.parent)
    folder.unlink()
    aside.rename(folder)
    assert record_of(tiny_spec(data), data, run.parent).same_result(undisturbed)


def test_what_a_killed_process_left_half_written_is_removed(
    data: PreparedData, run: Path, undisturbed: RunRecord
) -> None:
    half = run / "checkpoint" / ".new-000000009"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    with pytest.raises(Stopped):
        train(tiny_spec(data), data, run.parent, HERE, Recorder(stop_after=9))
    assert sorted(path.name for path in half.parent.iterdir()) == [
        "step-000000007",
        "step-000000009",
    ]
    assert record_of(tiny_spec(data), data, run.parent).same_result(undisturbed)
