"""Commands that are killed, that meet a bad disk, or that meet each other."""

import errno
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak.jobs import JOBS, Job, World, die
from soak.processes import Ending, Operations, done, ending, kill_group, start

FAULTS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES)
TRIES = 5  # of a file operation that was not hit, which comes at another moment each time
MOST_KILLS = 4  # of one piece of work before it may end
SLOW = 1.5  # seconds of a command that is not begun anew for each of its kills
PATIENCE = 120.0  # for a command that must come to its end on a busy machine


@dataclass(slots=True)
class Tally:
    """Trials by kind, and what went wrong."""

    trials: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, str]] = field(default_factory=list)
    sites: dict[str, set[str]] = field(default_factory=dict)  # file operations there are, by job
    hit: dict[str, set[str]] = field(default_factory=dict)  # and those at which something happened

    def check(self, kind: str, problem: str, words: str = "") -> None:
        """Note a failure, if there is one."""
        if problem:
            self.failures.append((kind, f"{problem}: {' '.join(words.split())[-300:]}"))


class Trials:
    """Trials of all jobs in a folder; the result of an undisturbed run of each is the oracle."""

    def __init__(self, world: World, folder: Path, seed: int, tally: Tally) -> None:
        self.world, self.folder, self.seed, self.tally = world, folder, seed, tally
        self.chance = random.Random(seed)
        self.said, self.log = folder / "said", folder / "operations"
        self.number = 0
        self.expected: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, int] = {}
        for job in JOBS:
            self._learn(job)

    def _learn(self, job: Job) -> None:
        out = self._fresh()
        watch = Operations(out, 0, lambda: None, self.log)
        began = time.monotonic()
        words = job.words(self.world, out)
        ended = ending(start(words, self.said, watch.begin), self.said, PATIENCE)
        self.seconds[job.name] = time.monotonic() - began
        if ended.status:
            raise RuntimeError(f"{job.name}: {ended.words}")
        if job.copies > 1:  # who comes second changes nothing
            done(words, self.said, PATIENCE)
        self.expected[job.name] = job.result(out)
        lines = [line.split("\t") for line in self.log.read_text().splitlines()]
        sites = {site for _, site in lines}
        self.counts[job.name] = max(int(number) for number, _ in lines)
        self.tally.sites[job.name] = sites
        self.tally.hit[job.name] = set()
        about = f"{self.counts[job.name]} file operations at {len(sites)} places"
        print(f"{job.name}: {self.seconds[job.name]:.1f} s, {about}", file=sys.stderr, flush=True)

    def _fresh(self) -> Path:
        self.number += 1
        self.log.unlink(missing_ok=True)
        out = self.folder / f"trial-{self.number}"
        out.mkdir()
        return out

    def drawn(self, name: str = "") -> Iterator[Job]:
        """Jobs without end, by their weights."""
        jobs = [job for job in JOBS if name in job.name]
        while True:
            yield from self.chance.choices(jobs, [job.weight for job in jobs])

    def kills(self, count: int) -> None:
        """Kill at every site of every job once, if so many are asked for, then anywhere."""
        self.chance, made = random.Random(f"{self.seed}/kills"), 0
        if count >= sum(map(len, self.tally.sites.values())):
            made = sum(self._sites_killed(job) for job in JOBS)
        for job in self.drawn():
            if made >= count:
                return
            most = self.counts[job.name]
            chosen = range(self.chance.randint(1, MOST_KILLS))
            made += self._killed_chain(job, [self.chance.randint(-most, most) for _ in chosen])

    def _sites_killed(self, job: Job) -> int:
        """Kill once at every site: of slow work one after the other, then those missed by
        themselves, some more than once: of two runners one may always have been quicker."""
        places = sorted(self.tally.sites[job.name])
        size = 1 if self.seconds[job.name] < SLOW else len(places)
        chains = [places[at : at + size] for at in range(0, len(places), size)]
        made = sum(self._killed_chain(job, chain) for chain in chains)
        for _ in range(TRIES):
            for site in sorted(self.tally.sites[job.name] - self.tally.hit[job.name]):
                made += self._killed_chain(job, [site])
        return made

    def _killed_chain(self, job: Job, moments: Sequence[int | str]) -> int:
        """Kill at these operations (below 0: at a random time), then let it end and compare."""
        out, kind, killed = self._fresh(), f"kill: {job.name}", 0
        seen: dict[Path, int] = {}
        for moment in moments:
            ended = self._disturbed(job, out, moment, die)
            for each in ended:
                killed += each.status == -signal.SIGKILL and not each.hung
                self.tally.check(kind, each.problem, each.words)
            for record in out.glob("*/record.json"):
                if seen.setdefault(record, record.stat().st_ino) != record.stat().st_ino:
                    self.tally.check(kind, f"{record} was written twice")
        self.tally.trials[kind] += killed
        if not self.number % 50:
            print(dict(self.tally.trials), len(self.tally.failures), file=sys.stderr, flush=True)
        self._compare(job, out, kind, seen)
        return killed

    def _disturbed(
        self, job: Job, out: Path, moment: int | str, act: Callable[[], None]
    ) -> list[Ending]:
        """All copies of the job, of which something happens to each."""
        words, processes = job.words(self.world, out), []
        is_timed = isinstance(moment, int) and moment <= 0
        for copy in range(job.copies):
            watch = Operations(out, -1 if is_timed else moment, act, self.log)
            said = self.said.with_suffix(f".{copy}")
            processes.append((start(words, said, watch.begin), said))
        if is_timed:
            time.sleep(self.chance.uniform(0, self.seconds[job.name]))
            for process, _ in processes:
                kill_group(process)
        ended = [ending(process, said, PATIENCE) for process, said in processes]
        if self.log.exists():
            sites = {line.split("\t")[1] for line in self.log.read_text().splitlines()}
            self.tally.hit[job.name] |= sites
        return ended

    def _compare(self, job: Job, out: Path, kind: str, seen: dict[Path, int]) -> None:
        """Undisturbed now, it must come to the result that it would have had."""
        words = job.words(self.world, out)
        processes = []
        for copy in range(job.copies):
            said = self.said.with_suffix(f".{copy}")
            processes.append((start(words, said), said))
        for process, said in processes:
            ended = ending(process, said, PATIENCE)
            problem = ended.problem or (f"ended with {ended.status}" if ended.status else "")
            self.tally.check(kind, problem, ended.words)
        try:
            found = job.result(out)
            is_same = found == self.expected[job.name]
            self.tally.check(kind, "" if is_same else f"another result in {out.name}", str(found))
            if any(record.stat().st_ino != number for record, number in seen.items()):
                self.tally.check(kind, f"a record was written twice in {out.name}")
        except (OSError, ValueError) as problem:
            self.tally.check(kind, f"no result in {out.name}: {problem}")
        if not self.tally.failures or self.tally.failures[-1][0] != kind:
            shutil.rmtree(out, ignore_errors=True)

    def faults(self, count: int) -> None:
        """An operation that fails as a full or broken disk lets it fail."""
        self.chance = random.Random(f"{self.seed}/faults")
        for job in self.drawn():
            if self.tally.trials["disk fault"] >= count:
                return
            out, number = self._fresh(), self.chance.randint(1, self.counts[job.name])
            code = self.chance.choice(FAULTS)

            def fail(code: int = code) -> None:
                raise OSError(code, os.strerror(code), "the disk")

            for ended in self._disturbed(job, out, number, fail):
                self.tally.check("disk fault", ended.problem, ended.words)
                self.tally.trials["disk fault"] += 1
            self._compare(job, out, "disk fault", {})

    def races(self, count: int) -> None:
        """The same command three times at once: all end, and the result is that of one."""
        self.chance = random.Random(f"{self.seed}/races")
        for job in self.drawn():
            if self.tally.trials["race"] >= count:
                return
            out, processes = self._fresh(), []
            for copy in range(3):
                said = self.said.with_suffix(f".{copy}")
                processes.append((start(job.words(self.world, out), said), said))
                time.sleep(self.chance.uniform(0, 0.05))
            endings = [ending(process, said, PATIENCE) for process, said in processes]
            for ended in endings:
                self.tally.check("race", ended.problem, ended.words)
            self.tally.trials["race"] += 1
            if all(ended.status for ended in endings):
                self.tally.check("race", f"all of {job.name} failed", endings[0].words)
            self._compare(job, out, "race", {})
