"""The schedule: `python -m soak --seed S --kills N …` prints trials and failures by kind."""

import argparse
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from soak.jobs import make_world
from soak.kills import Tally, Trials
from soak.mutations import mutate_all
from soak.processes import warm_up
from soak.requests import hostile_requests


def main() -> None:
    """Run what is asked for; status 1 if anything failed."""
    asked = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    asked.add_argument("--seed", type=int, default=20261118)
    asked.add_argument("--kills", type=int, default=1000)
    asked.add_argument("--faults", type=int, default=100)
    asked.add_argument("--races", type=int, default=100)
    asked.add_argument("--mutations", type=int, default=20_000)
    asked.add_argument("--requests", type=int, default=2000)
    asked.add_argument("--keep", type=Path, help="folder for inputs that made a reader fail")
    given, began, tally = asked.parse_args(), time.monotonic(), Tally()
    warm_up()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was tried so far is told
    try:
        schedule(given, tally, began)
    except KeyboardInterrupt:
        say("stopped", began)
    finally:  # what was tried is told, also when the harness itself fails
        print_table(tally, given.seed, time.monotonic() - began)
    sys.exit(bool(tally.failures))


def schedule(given: argparse.Namespace, tally: Tally, began: float) -> None:
    """All parts, one after the other."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        world = make_world(folder / "world")
        if given.kills or given.faults or given.races:
            (folder / "trials").mkdir()
            trials = Trials(world, folder / "trials", given.seed, tally)
            for part in (trials.kills, trials.faults, trials.races):
                part(getattr(given, part.__name__))
                say(part.__name__, began)
        if given.mutations:
            mutate_all(world, given.mutations, random.Random(given.seed), tally, given.keep)
            say("mutations", began)
        if given.requests:
            hostile_requests(given.requests, random.Random(given.seed), tally, folder)


def say(part: str, began: float) -> None:
    """That a part is over."""
    print(f"{part}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def print_table(tally: Tally, seed: int, seconds: float) -> None:
    """What docs/reliability.md shows."""
    print(f"| kind (seed {seed}) | trials | failures |\n|---|---:|---:|")
    for kind, count in sorted(tally.trials.items()):
        failed = sum(failed_kind == kind for failed_kind, _ in tally.failures)
        print(f"| {kind} | {count:,} | {failed} |")
    for job, sites in tally.sites.items():
        missed = sorted(sites - tally.hit[job])
        print(
            f"file operations of {job}: {len(sites) - len(missed)} of {len(sites)} hit", *missed[:5]
        )
    for kind, problem in tally.failures[:50]:
        print(f"FAILED {kind}: {problem}")
    print(f"{sum(tally.trials.values()):,} trials, {len(tally.failures)} failures, {seconds:.0f} s")


if __name__ == "__main__":
    main()
