"""A record names the data and the steps that it was made from, or it is not written."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.sources import DataSettings
from archfit.spec import RunSpec
from archfit.train import Progress, Stopped, Watchers, train
from tests_training import HERE, Recorder, checkpoints, record_of, tiny_spec


class Meddler(Watchers):
    """Does something to the data after a step."""

    def __init__(self, step: int, act: object) -> None:
        super().__init__()
        self.step, self.act = step, act

    def progress(self, progress: Progress) -> None:
        if progress.step == self.step:
            self.act()  # type: ignore[operator]


@pytest.fixture
def own(data: PreparedData, tmp_path: Path) -> PreparedData:
    """A copy of the data, which a test may spoil."""
    return open_prepared(shutil.copytree(data.folder, tmp_path / "own"))


def edit(path: Path, at: int = 0, *, keep_time: bool = False) -> None:
    """Another id, within the vocabulary, written in place."""
    before = path.stat()
    ids = np.memmap(path, np.uint16, "r+")
    ids[at] = 1 if ids[at] != 1 else 2
    ids.flush()
    if keep_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(data: PreparedData) -> None:
    source = data.folder.parent / "other.txt"
    source.write_text("abab " * 3000)
    prepare(str(source), data.folder, DataSettings(kind="bytes"), overwrite=True)


def truncated(data: PreparedData) -> None:
    os.truncate(data.folder / "train.bin", 4096)


def grown(data: PreparedData) -> None:
    with open(data.folder / "heldout.bin", "ab") as file:
        file.write(b"\0\0")


def removed(data: PreparedData) -> None:
    (data.folder / "train.bin").unlink()


def edited(data: PreparedData) -> None:
    edit(data.folder / "train.bin")


@pytest.mark.parametrize("meddle", [replaced, truncated, grown, removed, edited])
def test_data_that_change_in_mid_run_end_it_without_a_record(
    own: PreparedData, tmp_path: Path, meddle: object
) -> None:
    spec = tiny_spec(own)
    with pytest.raises(ValueError, match=r"changed while it was in use.*same command again"):
        train(spec, own, tmp_path, HERE, Meddler(3, lambda: meddle(own)))  # type: ignore[operator]
    assert not (tmp_path / spec.name / "record.json").exists()


def test_a_second_run_of_a_process_does_not_take_new_data_for_the_old(
    own: PreparedData, tmp_path: Path
) -> None:
    replaced(own)
    with pytest.raises(ValueError, match="changed while it was in use"):
        record_of(tiny_spec(own), own, tmp_path)


@pytest.mark.parametrize("side", ["train", "heldout"])
@pytest.mark.parametrize("is_old", [False, True])
def test_ids_edited_within_the_vocabulary_are_refused(
    own: PreparedData, tmp_path: Path, side: str, is_old: bool
) -> None:
    """Also in a data set that 0.1 prepared, and where the time of the file tells nothing."""
    if is_old:
        (own.folder / "checksums.bin").unlink()
    edit(own.folder / f"{side}.bin", keep_time=True)
    data = open_prepared(own.folder)
    starts = tiny_spec(data, steps=200)  # enough rows to meet the first block
    with pytest.raises(ValueError, match=rf"{side}\.bin is not what was written"):
        record_of(starts, data, tmp_path)
    assert not (tmp_path / starts.name / "record.json").exists()


def test_ids_edited_between_kill_and_resume_are_refused(own: PreparedData, tmp_path: Path) -> None:
    spec = stopped(own, tmp_path)
    edit(own.folder / "train.bin", keep_time=True)
    with pytest.raises(ValueError, match=r"train\.bin is not what was written"):
        record_of(spec, open_prepared(own.folder), tmp_path)


def test_old_data_without_checksums_train_to_the_same_record(
    own: PreparedData, data: PreparedData, tmp_path: Path
) -> None:
    (own.folder / "checksums.bin").unlink()
    spec = tiny_spec(data)
    before = record_of(spec, data, tmp_path / "new")
    assert before.same_result(record_of(spec, open_prepared(own.folder), tmp_path / "old"))


def stopped(data: PreparedData, out: Path) -> RunSpec:
    """A run that was stopped after step 7, with an evaluation behind it."""
    spec = tiny_spec(data)
    with pytest.raises(Stopped):
        train(spec, data, out, HERE, Recorder(stop_after=7))
    return spec


def state_of(spec: RunSpec, out: Path) -> Path:
    (name,) = checkpoints(out / spec.name)
    return out / spec.name / "checkpoint" / name / "state.json"


def test_every_bit_of_the_state_is_guarded(data: PreparedData, tmp_path: Path) -> None:
    spec = stopped(data, tmp_path)
    path = state_of(spec, tmp_path)
    content = path.read_bytes()
    for at in range(0, 8 * len(content), 97):
        flipped = bytearray(content)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"cannot be used.*delete that folder to go on from"):
            record_of(spec, data, tmp_path)


def test_an_edited_loss_does_not_reach_the_record(data: PreparedData, tmp_path: Path) -> None:
    spec = stopped(data, tmp_path)
    path = state_of(spec, tmp_path)
    first, *others = path.read_text().splitlines()
    state = json.loads(first)
    state["saved"]["evaluations"][0]["heldout_nats_per_token"] = 0.001
    lines = [json.dumps(state, sort_keys=True, separators=(",", ":")), *others, ""]
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match="is not what was written"):
        record_of(spec, data, tmp_path)


def test_a_record_says_that_other_threads_made_its_first_steps(
    data: PreparedData, tmp_path: Path
) -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        spec = stopped(data, tmp_path)
        torch.set_num_threads(2)
        watch = Recorder()
        machine = train(spec, data, tmp_path, HERE, watch).machine
    finally:
        torch.set_num_threads(threads)
    (before,) = machine.history
    assert (before.steps, before.torch) == (7, machine.torch)
    assert "1 threads" in before.device
    assert "2 threads" in machine.device
    assert any("up to 7 were made elsewhere (device cpu" in notice for notice in watch.notices)


def test_a_record_of_one_machine_has_no_history(data: PreparedData, tmp_path: Path) -> None:
    spec = stopped(data, tmp_path)
    watch = Recorder()
    assert train(spec, data, tmp_path, HERE, watch).machine.history == ()
    assert watch.notices == []
    assert "history" not in (tmp_path / spec.name / "record.json").read_text()
