"""Checkpoints that cannot be used are named, and nothing of the run is lost."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from archfit.data.prepared import PreparedData
from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import RunRecord, standard_architecture
from archfit.spec.run_options import RunOptions
from archfit.train import Stopped, train
from archfit.train.optimiser import build_optimiser
from archfit.train.run_files import (
    HeldElsewhereError,
    NamedTensors,
    Stored,
    _check_size,
    _newest_first,
    _read_tensors,
    held,
    on_host,
)
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
        document = stored_state(newest)
        document["saved"] |= changes
        write_state(newest, json.dumps(document).encode())

    return damage


def stored_state(checkpoint: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((checkpoint / "state.json").read_text().splitlines()[0])
    return state


def write_state(checkpoint: Path, content: bytes) -> None:
    """With a hash that agrees, so that the content itself is looked at."""
    digest = json.dumps(hashlib.sha256(content).hexdigest()).encode()
    (checkpoint / "state.json").write_bytes(content + b"\n" + digest + b"\n")


def text(content: bytes) -> Damage:
    return lambda newest: write_state(newest, content)


def of_another_spec(newest: Path) -> None:
    write_state(newest, json.dumps(stored_state(newest) | {"spec_hash": "f" * 64}).encode())


def of_another_version(newest: Path) -> None:
    """0.1 wrote no hash."""
    (newest / "state.json").write_text(json.dumps(stored_state(newest)))


def empty_state(newest: Path) -> None:
    (newest / "state.json").write_bytes(b"")


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
        document = stored_state(newest)
        document["model_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        write_state(newest, json.dumps(document).encode())

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
        (of_another_version, "state.json is not what was written, or was written by archfit 0.1"),
        (empty_state, "state.json is not what was written"),
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
        (state(timed_seconds=1.5e18), r"timed_seconds=1.5e[+]18 is not in 0\.\."),
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


def test_a_file_with_the_longest_header_is_read_and_a_longer_one_is_not(tmp_path: Path) -> None:
    tensors = {"a": torch.zeros(5), "b": torch.zeros(2, dtype=torch.float64)}
    places = {name: Stored(tensor, tensor.shape) for name, tensor in tensors.items()}
    path = tmp_path / "tensors"
    path.write_bytes(bytes(5 * 4 + 2 * 8 + 1000 * 3))
    _check_size(path, places)
    path.write_bytes(bytes(5 * 4 + 2 * 8 + 1000 * 3 + 1))
    with pytest.raises(ValueError, match="tensors is not what was written"):
        _check_size(path, places)


def test_another_set_of_tensors_is_told_by_the_first_name_that_differs(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1), "c": torch.zeros(1)}, tmp_path / "file")
    with pytest.raises(ValueError, match="file and the network differ in 'b'"):
        _read_tensors(
            tmp_path / "file", dict.fromkeys("ab", Stored(torch.zeros(1), torch.Size((1,))))
        )


def test_all_files_of_a_checkpoint_and_their_folder_are_on_the_disk_before_it_counts(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed, honest = set[int](), os.fsync

    def fsync(descriptor: int) -> None:
        flushed.add(os.fstat(descriptor).st_ino)
        honest(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    spec = tiny_spec(data)
    with pytest.raises(Stopped):
        train(spec, data, tmp_path, HERE, Recorder(stop_after=4))
    folder = tmp_path / spec.name / "checkpoint"
    for path in (folder, *(folder / "step-000000004").iterdir()):
        assert path.stat().st_ino in flushed, path
    record_of(spec, data, tmp_path)
    for name in (".", "model.safetensors", "record.json"):
        assert (tmp_path / spec.name / name).stat().st_ino in flushed, name


def test_a_lock_is_left_as_it_is_and_never_looked_for_elsewhere(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("as it was")
    with held(tmp_path), pytest.raises(HeldElsewhereError, match="by another process; wait for it"):
        held(tmp_path).__enter__()
    assert (tmp_path / ".lock").read_text() == "as it was"
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / ".lock").symlink_to(tmp_path / ".lock")
    with pytest.raises(OSError, match="symbolic links"):
        held(tmp_path / "link").__enter__()
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / ".lock")
    with pytest.raises(OSError, match="No such device"):  # and it does not wait for a reader
        held(tmp_path / "pipe").__enter__()


def test_names_that_are_no_steps_are_older_than_all_steps(tmp_path: Path) -> None:
    for name in ("step-000000009", "step-000000010", "step-x"):
        (tmp_path / name).mkdir()
    found = [path.name for path in _newest_first(tmp_path)]
    assert found == ["step-000000010", "step-000000009", "step-x"]


def test_what_the_system_said_of_a_full_disk_comes_with_the_file(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise SafetensorError("No space left on device")

    monkeypatch.setattr("archfit.train.run_files.save_file", full)
    with pytest.raises(OSError, match=r"model\.safetensors could not be written: No space left"):
        record_of(tiny_spec(data), data, tmp_path)


def test_files_hold_the_network_inside_a_larger_one() -> None:
    """What is saved has its shapes, and what is loaded goes where it was."""
    shape = standard_architecture(depth=1, width=12, heads=2, vocab=7, context=9)
    numbers = parametrisation(shape, "standard")
    small = Transformer(shape, numbers, dropout=0.0)
    initialise(small, numbers, seed=0)
    large = Transformer.around(small, numbers)
    assert large.architecture.width == 16
    shapes = {name: weight.shape for name, weight in small.named_parameters()}
    recipe = RunOptions(precision="float32").spec(vocab=7, data_hash="0" * 64, seed=0).recipe
    tensors = NamedTensors(
        large, build_optimiser(large, recipe, numbers, torch.device("cpu")), shapes
    )
    saved = {name: content.clone() for name, content in on_host(tensors.weights()).items()}
    for name, weight in small.named_parameters():
        assert torch.equal(saved[name], weight), name
    for name, (place, _) in tensors.weights().items():
        place.copy_(2 * saved[name].view(place.shape))
    again = on_host(tensors.weights())
    assert all(torch.equal(again[name], 2 * content) for name, content in saved.items())
    moments = on_host(tensors.moments())
    assert moments["embedding.tokens.rows_RI.exp_avg"].shape == (7, 12)
    assert moments["embedding.tokens.rows_RI.step"].shape == ()
