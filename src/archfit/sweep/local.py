"""The runner of one machine: workers that take cell after cell, several on a GPU that has room.

A GPU is shared while its memory lasts: small networks leave most of it idle, and while one run
compiles or evaluates, another trains. On a CPU every worker has threads of its own.
"""

import os
import selectors
from collections.abc import Sequence
from dataclasses import dataclass, field

from archfit.spec import RunSpec
from archfit.sweep.cells import TRIES, Cells
from archfit.sweep.cost import device_bytes
from archfit.sweep.devices import Gpu, gpus
from archfit.sweep.signals import noted_signals
from archfit.sweep.watch import SweepWatcher
from archfit.sweep.worker import Worker, Workshop

SECONDS_BETWEEN_PASSES = 0.2
MOST_ON_A_GPU = 3  # workers, unless the user says otherwise
SHARE_OF_MEMORY = 0.9  # of a GPU, for all its workers


@dataclass(eq=False)
class Place:
    """Where a worker works; on a GPU several places share its memory."""

    gpu: Gpu | None
    worker: Worker | None = field(default=None)
    failed_starts: int = 0  # in a row; a place where none succeeds is given up

    @property
    def cell(self) -> RunSpec | None:
        """What is being trained here."""
        return self.worker.cell if self.worker else None


def places(there: Sequence[Gpu], *, workers: int) -> list[Place]:
    """`workers` places on each GPU, or that many on the CPU."""
    return [Place(gpu) for _ in range(workers) for gpu in (there or (None,))]


def usual_places(device: str, workers: int | None, threads: int) -> list[Place]:
    """Places on the GPUs that the device word allows, else on the CPU; as many as it has cores."""
    there = gpus() if device in ("auto", "cuda") else ()
    usual = MOST_ON_A_GPU if there else max(1, (os.cpu_count() or 1) // threads)
    return places(there, workers=workers or usual)


def run_here(
    cells: Cells, workshop: Workshop, where: Sequence[Place], watch: SweepWatcher, *, wait: bool
) -> None:
    """Train all cells that nobody else trains; with `wait`, stay until those are done too.

    Whoever holds a cell may die: then it is free, and trained here.
    """
    crew = _Crew(cells, workshop, where, watch)
    watch.begins(cells)
    with noted_signals() as raise_noted:
        try:
            while crew.employ() or (wait and cells.elsewhere):
                crew.listen()
                raise_noted()
        finally:
            crew.end()


class _Crew:
    """The workers of a runner."""

    def __init__(
        self, cells: Cells, workshop: Workshop, where: Sequence[Place], watch: SweepWatcher
    ) -> None:
        self.cells, self.workshop, self.places, self.watch = cells, workshop, where, watch
        self.names_gpu = len({place.gpu for place in where}) > 1
        self.selector = selectors.DefaultSelector()

    def employ(self) -> bool:
        """Give cells to those who have none; whether anybody works."""
        for place in self.places:
            if place.cell is None and place.failed_starts < TRIES:
                cell = self.cells.next(lambda cell, place=place: self._fits(cell, place))  # type: ignore[misc]  # mypy wants one argument
                if cell is not None:
                    self._worker(place).give(cell)
        return any(place.cell for place in self.places)

    def listen(self) -> None:
        """Wait a moment for what workers say, and act on it."""
        speaking = [key.data for key, _ in self.selector.select(SECONDS_BETWEEN_PASSES)]
        for place in self.places:
            if place.worker and place in speaking:
                for event in place.worker.events():
                    self._hear(place, event)
            elif place.worker and place.worker.is_dead():
                self._hear(place, place.worker.death())
        self.watch.passes()

    def end(self) -> None:
        """Send everybody home; what they were at is saved and stays on the list."""
        workers = [place.worker for place in self.places if place.worker]
        for worker in workers:
            worker.dismiss()  # all at once, then one after the other
        for worker in workers:
            if worker.cell:
                self.cells.interrupted(worker.cell)
            worker.end()
        self.selector.close()

    def _fits(self, cell: RunSpec, place: Place) -> bool:
        beside = [other.cell for other in self.places if other.gpu == place.gpu and other.cell]
        if not beside:
            return True  # alone it may take all there is
        if cell in self.cells.alone or any(other in self.cells.alone for other in beside):
            return False
        if place.gpu is None:
            return True
        needed = sum(device_bytes(one) for one in (cell, *beside))
        return needed <= SHARE_OF_MEMORY * place.gpu.memory_bytes

    def _worker(self, place: Place) -> Worker:
        if place.worker is None:
            named = place.gpu.visible_as if place.gpu and self.names_gpu else None
            place.worker = Worker(self.workshop, named)
            self.selector.register(place.worker, selectors.EVENT_READ, place)
        return place.worker

    def _hear(self, place: Place, event: dict[str, object]) -> None:
        worker, what = place.worker, event["event"]
        assert worker is not None
        cell, reason = worker.cell, str(event.get("reason", ""))
        if what == "died":
            self.selector.unregister(worker)
            worker.end()
            place.worker = None
            if not worker.is_ready and cell:
                self._start_failed(place, cell, reason)
                return
        if what == "ready":
            place.failed_starts = 0
        if cell is None or what == "ready":
            return
        if what == "started":
            self.watch.started(cell, int(str(event["step"])))
        elif what == "progress":
            self.watch.progress(cell, event)
        else:
            worker.cell = None
            self.cells.note(cell, event)
            self.watch.ended(cell, reason or str(what))

    def _start_failed(self, place: Place, cell: RunSpec, reason: str) -> None:
        """A worker died before it had looked at its cell, which is not to blame."""
        self.cells.interrupted(cell)
        place.failed_starts += 1
        if all(one.failed_starts >= TRIES for one in self.places):
            raise ValueError(f"no worker can be started: it {reason}")
