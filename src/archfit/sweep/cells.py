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
from archfit.spec.run_folder import discard_checkpoints, is_done, is_held

TRIES = 3  # of a cell whose process dies
SECONDS_BETWEEN_LOOKS = 0.5  # at cells that others hold


class Cells:
    """The cells of a sweep as one runner sees them."""

    def __init__(self, specs: Iterable[RunSpec], out: Path) -> None:
        self.folders = {spec: out / spec.name for spec in specs}  # a name is a hash: made once
        self.pending = deque(self.folders)
        self.total = len(self.pending)
        self.elsewhere: list[RunSpec] = []
        self.done: list[RunSpec] = []  # by this runner
        self.skipped: list[RunSpec] = []  # done before, or by somebody else meanwhile
        self.failed: dict[RunSpec, str] = {}
        self.crashes: Counter[RunSpec] = Counter()
        self.alone: set[RunSpec] = set()  # ran out of memory beside others
        self.last_look = 0.0

    def next(self, fits: Callable[[RunSpec], bool]) -> RunSpec | None:
        """A cell to train now, taken from the list; None if there is none that fits.

        Those that do not fit stay where they are and are not looked up: lists are long.
        """
        self._look_elsewhere()
        waiting: list[RunSpec] = []
        found = None
        while self.pending and found is None:
            spec = self.pending.popleft()
            if not fits(spec):
                waiting.append(spec)
            elif is_done(self.folders[spec]):
                discard_checkpoints(self.folders[spec])
                self.skipped.append(spec)
            elif is_held(self.folders[spec]):
                self.elsewhere.append(spec)
            else:
                found = spec
        self.pending.extendleft(reversed(waiting))
        return found

    @property
    def all_done(self) -> bool:
        """Whether every record is there, before anything is looked at."""
        return all(is_done(folder) for folder in self.folders.values())

    @property
    def left(self) -> int:
        """How many are neither done nor given up, wherever they are."""
        return self.total - len(self.done) - len(self.skipped) - len(self.failed)

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
        held = {spec: is_held(self.folders[spec]) for spec in self.elsewhere}
        self.elsewhere = [spec for spec, is_so in held.items() if is_so]
        self.pending.extend(spec for spec, is_so in held.items() if not is_so)
