"""The runner of one machine: what it skips, retries and reports, and how it shares GPUs."""

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from archfit.data.prepared import PreparedData
from archfit.spec import RunSpec
from archfit.spec.files import SWEEP
from archfit.spec.gpu_cost import device_bytes, gpu_share
from archfit.sweep.local import (
    SHARE_OF_MEMORY,
    DeviceSlot,
    Gpu,
    LocalRunner,
    device_slots,
)
from archfit.sweep.runner import TRIES, CellQueue, RunnerOptions, SweepWatcher
from tests_sweeps import (
    assert_same_results,
    crashing,
    runner_options,
    tiny_specs,
    undisturbed,
)
from tests_training import record_of, tiny_spec


class Diary(SweepWatcher):
    """Keeps how cells ended."""

    def __init__(self) -> None:
        self.ends: list[tuple[RunSpec, str]] = []

    def ended(self, spec: RunSpec, how: str) -> None:
        self.ends.append((spec, how))


def test_cells_that_fail_stop_nobody_and_those_done_are_skipped(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, crashes, in_the_way, *good = tiny_specs(data, 5)
    refused = tiny_spec(data, context=10**6)  # longer than the data
    out, diary = tmp_path / "out", Diary()
    record_of(before, data, out)
    (out / SWEEP).write_text("{}")
    written = os.stat(out / before.name / "record.json").st_mtime_ns
    (out / in_the_way.name).write_text("a file where its folder should be")
    for name, word in crashing(crashes.name, tmp_path / "hook").items():
        monkeypatch.setenv(name, word)
    monkeypatch.setattr("archfit.sweep.runner.TRIES", 2)
    cells = CellQueue([crashes, refused, in_the_way, before, *good], out)
    LocalRunner(cells, runner_options(data, out), device_slots((), workers=2), diary).run(wait=True)
    assert set(cells.done) == set(good)
    assert cells.skipped == [before]
    assert cells.failed.keys() == {crashes, refused, in_the_way}
    assert cells.failed[crashes] == "killed by signal 11 (2 times)"
    assert [spec for spec, _ in diary.ends].count(crashes) == 2
    assert [spec for spec, _ in diary.ends].count(refused) == 1
    assert os.stat(out / before.name / "record.json").st_mtime_ns == written
    assert_same_results(out, undisturbed((before, *good), data, tmp_path / "by itself"))


@pytest.mark.slow
def test_a_worker_whose_own_child_lives_on_is_seen_to_be_dead(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child has the pipe that the runner reads: it does not end when the worker does."""
    (crashes,) = tiny_specs(data, 1)
    note = tmp_path / "child"
    child = f'print(subprocess.Popen(["sleep", "600"]).pid, file=open({str(note)!r}, "a"))'
    for name, word in crashing(crashes.name, tmp_path / "hook", child).items():
        monkeypatch.setenv(name, word)
    (tmp_path / SWEEP).write_text("{}")
    cells = CellQueue([crashes], tmp_path)
    LocalRunner(
        cells, runner_options(data, tmp_path), device_slots((), workers=1), SweepWatcher()
    ).run(wait=True)
    children = [int(line) for line in note.read_text().split()]
    for process in children:
        os.kill(process, signal.SIGKILL)
    assert len(children) == TRIES
    assert cells.failed == {crashes: "killed by signal 11 (3 times)"}


def test_without_wait_cells_of_others_are_left_to_them(data: PreparedData, tmp_path: Path) -> None:
    cells = CellQueue(tiny_specs(data, 1), tmp_path)
    (spec,) = cells.pending
    cells.note(spec, {"event": "held"}, SweepWatcher())
    cells.pending.clear()
    cells.last_look = time.monotonic() + 1e6  # nobody has looked
    LocalRunner(
        cells, runner_options(data, tmp_path), device_slots((), workers=1), SweepWatcher()
    ).run(wait=False)
    assert cells.elsewhere == [spec]


def test_where_no_worker_can_start_the_reason_is_said(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.sweep.runner.TRIES", 2)
    (tmp_path / SWEEP).write_text("{}")
    cells = CellQueue(tiny_specs(data, 2), tmp_path)
    nowhere = RunnerOptions(
        out=tmp_path,
        data_folders=(tmp_path / "nowhere",),
        device="cpu",
        threads=1,
        checkpoint_seconds=60.0,
    )
    with pytest.raises(ValueError, match=r"no worker can be started: it ended with status 2: arch"):
        LocalRunner(cells, nowhere, device_slots((), workers=1), SweepWatcher()).run(wait=True)
    assert (cells.left, len(cells.pending), cells.failed) == (2, 2, {})


@dataclass
class AtWork:
    """Stands for a worker that has cells."""

    cells: dict[str, RunSpec]


def pool(cells: CellQueue, where: list[DeviceSlot], data: PreparedData) -> LocalRunner:
    return LocalRunner(
        cells, runner_options(data, cells.folders[cells.pending[0]].parent), where, SweepWatcher()
    )


def busy(gpu: Gpu | None, *cells: RunSpec) -> DeviceSlot:
    return DeviceSlot(gpu, AtWork({cell.name: cell for cell in cells}))  # type: ignore[arg-type]  # it only has cells


def test_slots_take_turns_among_gpus() -> None:
    two = [Gpu(visible_as=name, memory_bytes=1 << 30) for name in ("0", "1")]
    assert [slot.gpu for slot in device_slots(two, workers=2)] == [*two, *two]
    assert [slot.gpu for slot in device_slots((), workers=3)] == [None, None, None]


@pytest.mark.parametrize(("spare", "fits"), [(1, True), (-1, False)])
def test_a_gpu_is_shared_while_its_memory_lasts(
    data: PreparedData, tmp_path: Path, spare: int, fits: bool
) -> None:
    first, second, third = tiny_specs(data, 3)
    needed = sum(device_bytes(spec) for spec in (first, second, third))
    gpu = Gpu(visible_as="0", memory_bytes=round(needed / SHARE_OF_MEMORY) + spare)
    other = Gpu(visible_as="1", memory_bytes=1)
    where = [
        busy(gpu, first),
        busy(gpu, second),
        DeviceSlot(gpu),
        busy(other, first),
        DeviceSlot(other),
    ]
    workers = pool(CellQueue([third], tmp_path), where, data)
    assert workers._fits(third, where[2]) is fits
    assert not workers._fits(third, where[4])


def test_a_worker_on_a_gpu_takes_cells_while_they_leave_some_of_it_idle(
    data: PreparedData, tmp_path: Path
) -> None:
    half = tiny_spec(data, batch_sequences=1 << 14, width=20, feed_forward=20, head_dim=10)
    assert gpu_share(half) == pytest.approx(0.49, abs=0.01)
    first, second, third = (replace(half, seed=seed) for seed in range(3))
    gpu = Gpu(visible_as="0", memory_bytes=1 << 60)
    cells = CellQueue([third], tmp_path)
    for here, fits in [((first,), True), ((first, second), False)]:
        slot = busy(gpu, *here)
        assert pool(cells, [slot], data)._fits(third, slot) is fits
        assert slot.has_room is fits
    assert not busy(None, first).has_room
    assert busy(None).has_room


class Dying:
    """Stands for a worker that has died while it trained these cells."""

    def __init__(self, *cells: RunSpec, is_ready: bool = True) -> None:
        self.cells, self.is_ready = {cell.name: cell for cell in cells}, is_ready

    def end(self) -> None:
        pass


def test_cells_of_a_worker_that_died_are_tried_again_each_alone(
    data: PreparedData, tmp_path: Path
) -> None:
    first, second = tiny_specs(data, 2)
    cells = CellQueue([first, second], tmp_path)
    workers = pool(cells, [DeviceSlot(None)], data)
    cells.pending.clear()
    slot = DeviceSlot(None, Dying(first, second))  # type: ignore[arg-type]
    workers.selector = SimpleNamespace(unregister=lambda _: None)  # type: ignore[assignment]
    workers._act_on(slot, {"event": "died", "reason": "killed by signal 9"})
    assert slot.worker is None
    assert list(cells.pending) == [first, second]
    assert cells.alone == {first, second}
    assert cells.crashes == {first: 1, second: 1}


def test_alone_on_a_gpu_a_cell_may_take_all_there_is(data: PreparedData, tmp_path: Path) -> None:
    (spec,) = tiny_specs(data, 1)
    tight = DeviceSlot(Gpu(visible_as="0", memory_bytes=1))
    assert pool(CellQueue([spec], tmp_path), [tight], data)._fits(spec, tight)


@pytest.mark.parametrize("gpu", [None, Gpu(visible_as="0", memory_bytes=1 << 60)])
def test_one_that_ran_out_of_memory_gets_no_neighbours(
    data: PreparedData, tmp_path: Path, gpu: Gpu | None
) -> None:
    large, small = tiny_specs(data, 2)
    cells = CellQueue([large, small], tmp_path)
    beside = [busy(gpu, small), DeviceSlot(gpu)]
    assert pool(cells, beside, data)._fits(large, beside[1])
    cells.alone.add(large)
    assert not pool(cells, beside, data)._fits(large, beside[1])
    with_large = [busy(gpu, large), DeviceSlot(gpu)]
    assert not pool(cells, with_large, data)._fits(small, with_large[1])
