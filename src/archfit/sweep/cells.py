"""Which cells of a sweep are still to be done: the list that a runner works through.

Nothing is remembered between runners but what lies in the folders of the runs: a record says
that a cell is done, a lock that somebody who lives is at it. A runner that is killed takes nothing
along.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path

from archfit.spec import RunSpec
from archfit.spec.run_folder import is_done, is_held

TRIES = 3  # of a cell whose process dies
SECONDS_BETWEEN_LOOKS = 0.5  # at cells that others hold


class Cells:
    """The cells of a sweep as one runner sees them."""

    def __init__(self, specs: Iterable[RunSpec], out: Path) -> None:
        self.out = out
        self.pending = deque(specs)
        self.total = len(self.pending)
        self.elsewhere: list[RunSpec] = []
        self.done: list[RunSpec] = []  # by this runner
        self.skipped: list[RunSpec] = []  # done before, or by somebody else meanwhile
        self.failed: dict[RunSpec, str] = {}
        self.crashes: Counter[RunSpec] = Counter()
        self.alone: set[RunSpec] = set()  # ran out of memory beside others
        self.last_look = 0.0

    def next(self, fits: Callable[[RunSpec], bool]) -> RunSpec | None:
        """A cell to train now, taken from the list; None if there is none that fits."""
        self._look_elsewhere()
        for _ in range(len(self.pending)):
            spec = self.pending.popleft()
            if is_done(self.out / spec.name):
                self.skipped.append(spec)
            elif is_held(self.out / spec.name):
                self.elsewhere.append(spec)
            elif fits(spec):
                return spec
            else:
                self.pending.append(spec)
        return None

    def note(self, spec: RunSpec, event: dict[str, object]) -> None:
        """What became of a cell, as its worker or the death of it says."""
        reason = str(event.get("reason", ""))
        match event["event"]:
            case "finished":
                self.done.append(spec)
            case "held":  # somebody else was quicker
                self.elsewhere.append(spec)
            case "died":
                self._crashed(spec, reason)
            case "out_of_memory" if spec not in self.alone:  # once more, without neighbours
                self.alone.add(spec)
                self.pending.append(spec)
            case _:  # it cannot be trained, and would not be the next time
                self.failed[spec] = reason

    def _crashed(self, spec: RunSpec, reason: str) -> None:
        """Try it again after the others, but not for ever."""
        self.crashes[spec] += 1
        if self.crashes[spec] < TRIES:
            self.pending.append(spec)
        else:
            self.failed[spec] = f"{reason} ({TRIES} times)"

    def interrupted(self, spec: RunSpec) -> None:
        """It was stopped with the runner; its checkpoint is for the next one."""
        self.pending.append(spec)

    def _look_elsewhere(self) -> None:
        """Take cells back that nobody holds any more; `next` sees whether they are done."""
        now = time.monotonic()
        if not self.elsewhere or now - self.last_look < SECONDS_BETWEEN_LOOKS:
            return
        self.last_look = now
        free = [spec for spec in self.elsewhere if not is_held(self.out / spec.name)]
        self.elsewhere = [spec for spec in self.elsewhere if spec not in free]
        self.pending.extend(free)
