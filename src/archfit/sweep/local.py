"""The runner of one machine: workers that stay and take cell after cell.

A worker on a GPU trains as many cells side by side as fill it: small networks leave most of it
idle. On a CPU every worker has threads of its own and trains one cell at a time.
"""

import ctypes
import os
import selectors
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field

from archfit.spec import RunSpec
from archfit.spec.gpu_cost import LEAST_SHARE, device_bytes, gpu_share
from archfit.spec.signals import stop_requests
from archfit.sweep import runner
from archfit.sweep.runner import CellQueue, RunnerOptions, SweepWatcher, Worker

SECONDS_BETWEEN_PASSES = 0.2
WORKERS_ON_A_GPU = 1  # unless the user says otherwise
SHARE_OF_MEMORY = 0.9  # of a GPU, for all its workers


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """One GPU that this process may use."""

    visible_as: str  # what CUDA_VISIBLE_DEVICES must say for a process to have it alone
    memory_bytes: int


def gpus() -> tuple[Gpu, ...]:
    """All of them, in the driver's order; none where there is no driver.

    The driver itself is asked: loading torch would take seconds.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [*map(str, range(count.value))]
    found = []
    for index in range(count.value):
        memory = ctypes.c_size_t(0)
        driver.cuDeviceTotalMem_v2(ctypes.byref(memory), ctypes.c_int(index))
        found.append(Gpu(visible_as=names[index], memory_bytes=memory.value))
    return tuple(found)


@dataclass(eq=False)
class DeviceSlot:
    """Where a worker works; on a GPU several slots share its memory."""

    gpu: Gpu | None
    worker: Worker | None = None
    failed_starts: int = 0  # in a row; a slot where none succeeds is given up

    @property
    def cells(self) -> list[RunSpec]:
        """What is being trained here."""
        return [*self.worker.cells.values()] if self.worker else []

    @property
    def has_room(self) -> bool:
        """Whether some cell could be trained beside these; asked before a long list is searched."""
        if self.gpu is None:
            return not self.cells
        return sum(map(gpu_share, self.cells)) + LEAST_SHARE <= 1


def device_slots(there: Sequence[Gpu], *, workers: int) -> list[DeviceSlot]:
    """`workers` slots on each GPU, or that many on the CPU."""
    return [DeviceSlot(gpu) for _ in range(workers) for gpu in (there or (None,))]


def usual_slots(device: str, workers: int | None, threads: int) -> list[DeviceSlot]:
    """Slots on the GPUs that the device word allows, else on the CPU; as many as it has cores."""
    there = gpus() if device in ("auto", "cuda") else ()
    usual = WORKERS_ON_A_GPU if there else max(1, (os.cpu_count() or 1) // threads)
    return device_slots(there, workers=workers or usual)


@dataclass(eq=False)
class LocalRunner:
    """Workers that train the cells of a sweep here, each in its slot."""

    cells: CellQueue
    options: RunnerOptions
    slots: Sequence[DeviceSlot]
    watch: SweepWatcher
    selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)

    def run(self, *, wait: bool) -> None:
        """Train all cells that nobody else trains; with `wait`, stay until those are done too.

        Whoever holds a cell may die: then it is free, and trained here.
        """
        self.watch.begins(self.cells)
        with stop_requests(repeatable=(signal.SIGTERM,)) as request:
            try:
                while self.assign_cells() or (wait and self.cells.elsewhere):
                    self.listen()
                    runner.end_if_asked(request, self.options.out)
            finally:
                self.end()

    def assign_cells(self) -> bool:
        """Give cells to slots that have room; whether anything is being trained."""
        for slot in self.slots:
            while slot.failed_starts < runner.TRIES and slot.has_room:
                cell = self.cells.next(lambda cell, slot=slot: self._fits(cell, slot))  # type: ignore[misc]  # mypy wants one argument
                if cell is None:
                    break
                if slot.worker is None:
                    has_several = len({other.gpu for other in self.slots}) > 1
                    visible = slot.gpu.visible_as if slot.gpu and has_several else None
                    slot.worker = Worker(self.options, visible)
                    self.selector.register(slot.worker, selectors.EVENT_READ, slot)
                slot.worker.give(cell)
        return any(slot.cells for slot in self.slots)

    def listen(self) -> None:
        """Wait a moment for what workers say, and act on it."""
        speaking = [key.data for key, _ in self.selector.select(SECONDS_BETWEEN_PASSES)]
        for slot in self.slots:
            if slot.worker and slot in speaking:
                for event in slot.worker.events():
                    self._act_on(slot, event)
            elif slot.worker and slot.worker.process.poll() is not None:
                # A child of its own may keep what it speaks through open.
                self._act_on(slot, slot.worker.death())
        self.watch.passes()

    def end(self) -> None:
        """Let all workers end; what they were at is saved and stays on the list."""
        workers = [slot.worker for slot in self.slots if slot.worker]
        for worker in workers:
            worker.dismiss()  # all at once, then one after the other
        for worker in workers:
            self.cells.pending.extend(worker.cells.values())  # checkpoints are for the next runner
            worker.end()
        self.selector.close()

    def _fits(self, cell: RunSpec, slot: DeviceSlot) -> bool:
        beside = [other for each in self.slots if each.gpu == slot.gpu for other in each.cells]
        if not beside:
            return True  # alone it may take all there is
        if not self.cells.alone.isdisjoint((cell, *beside)):
            return False
        if slot.gpu is None:
            return True
        if slot.cells and sum(gpu_share(other) for other in (cell, *slot.cells)) > 1:
            return False
        needed = sum(device_bytes(spec) for spec in (cell, *beside))
        return needed <= SHARE_OF_MEMORY * slot.gpu.memory_bytes

    def _act_on(self, slot: DeviceSlot, event: dict[str, object]) -> None:
        worker, what = slot.worker, event["event"]
        assert worker is not None
        cell = worker.cells.get(str(event.get("run")))
        if what == "died":
            self._bury(slot, worker, event)
        elif what == "ready":
            slot.failed_starts = 0
        elif cell is None:
            return
        elif what in ("started", "progress"):
            self.watch.progress(cell, event)
        else:
            del worker.cells[cell.name]
            self.cells.note(cell, event, self.watch)

    def _bury(self, slot: DeviceSlot, worker: Worker, event: dict[str, object]) -> None:
        """A worker is dead. Which of its cells was to blame shows when each is tried alone.

        None is, where it died before it had looked at them.
        """
        self.selector.unregister(worker)
        worker.end()
        slot.worker = None
        cells = [*worker.cells.values()]
        if worker.is_ready or not cells:
            self.cells.alone.update(cells if len(cells) > 1 else ())
            for cell in cells:
                self.cells.note(cell, event, self.watch)
            return
        self.cells.pending.extend(cells)
        slot.failed_starts += 1
        if all(other.failed_starts >= runner.TRIES for other in self.slots):
            raise ValueError(f"no worker can be started: it {event['reason']}")
