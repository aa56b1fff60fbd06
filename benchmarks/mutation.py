"""Would a test notice? Plants small faults, room by room, and runs the tests that reach them.

Faults are sampled with a seed (mutants.py says which kinds there are). One run of all tests finds
which of them execute each fault's statement; then every fault is planted into a copy of the
sources, and those tests run, the quickest files first, until one fails. Tests are those of the
room, of the command line, and the recorded command lines; slow ones are left out.

Run:    python benchmarks/mutation.py --out scratch/mutation          (goes on where it was)
        python benchmarks/mutation.py --out scratch/mutation --retry  (survivors, by newer tests)
        python benchmarks/mutation.py --out scratch/mutation --rooms spec --mutants 8
Expect: a table by room; at least 85 % killed.

A survivor that no test can kill, since it means the same, belongs into equivalent_mutants.toml.
cosmic-ray and mutmut were left aside: they take no sample, and know no tests of a single line.
"""

import argparse
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutants import Mutant, mutants_of, sample
from mutation_probe import HITS, TIMES

TOP = Path(__file__).parents[1]
PACKAGE = "src/archfit"
ROOMS = ("fit", "train", "audit", "exact", "spec", "theory")
COMMAND_LINE = ("cli", "recorded")  # tests that reach every room
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
MEMORY_BYTES = 8 * 2**30
PATIENCE_SECONDS, PATIENCE_FACTOR = 60.0, 5.0  # a fault may loop for ever
QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow")
LOADED_BEFORE = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
KILLED, SURVIVED = "killed", "survived"
Result = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Which tests run which fault's statement, and for how long."""

    tests: dict[str, list[str]]  # by key: tests, files of tests; "" while a module is imported
    seconds: dict[str, float]  # by test that passes without faults

    def of(self, mutant: Mutant) -> list[str]:
        """Tests to try: quick files first, and in a file its quick tests first."""
        found = set(self.tests.get(mutant.key, ()))
        everywhere = mutant.probe_line is None or "" in found
        chosen: dict[str, list[str]] = {}
        for test in sorted(self.seconds, key=self.seconds.__getitem__):
            file = test.partition("::")[0]
            room = file.split("/")[1]
            counts = room in (mutant.room, *COMMAND_LINE)
            if counts and (test in found or file in found or (everywhere and room != "cli")):
                chosen.setdefault(file, []).append(test)
        files = sorted(chosen, key=lambda file: self.limit(chosen[file]))
        return [test for file in files for test in chosen[file]]

    def limit(self, tests: Sequence[str]) -> float:
        """Seconds after which they will not end any more."""
        return PATIENCE_SECONDS + PATIENCE_FACTOR * sum(self.seconds[test] for test in tests)


def snapshot(out: Path) -> Path:
    """A copy of all that is under version control or about to be, as it is now."""
    folder = out / "source"
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=TOP, check=True, capture_output=True, text=True).stdout
    shutil.rmtree(folder, ignore_errors=True)
    for name in filter(None, names.split("\0")):
        if (TOP / name).is_file() and out not in (TOP / name).parents:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, folder / name)
    return folder


def copy_of(source: Path, name: str) -> Path:
    """Another copy, beside it."""
    folder = source.with_name(name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    return folder


def forked_pytest(tree: Path, words: Sequence[str], environment: dict[str, str]) -> int:
    """Run pytest on a tree in a child, which has the slow libraries already; its process id."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        output = os.open(tree.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(tree)
        os.environ |= {"PYTHONPATH": f"{tree / 'src'}:{Path(__file__).parent}"} | environment
        sys.path.insert(0, str(tree / "src"))
        sys.argv = ["pytest"]
        import pytest

        status = int(pytest.main([*QUIET, *LOADED_BEFORE, *words]))
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def load_slow_libraries() -> None:
    """What most tests need, so that children begin with it; nothing of archfit."""
    import flint  # noqa: F401
    import hypothesis  # noqa: F401
    import numpy as np  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize  # noqa: F401
    import torch

    torch.set_num_threads(1)


def reach_of(mutants: Sequence[Mutant], source: Path, rooms: Sequence[str], workers: int) -> Reach:
    """Run all tests once, with a probe before each fault's statement; kept beside the source."""
    kept, keys = source.with_name("reach.json"), [*rooms, *(mutant.key for mutant in mutants)]
    if kept.exists() and (known := json.loads(kept.read_text()))["keys"] == keys:
        return Reach(tests=known["tests"], seconds=known["seconds"])
    hits = source.with_name("hits.tsv")
    hits.write_text("")
    files = [path for room in rooms for path in (source / "tests" / room).rglob("test_*.py")]
    files.sort(key=lambda path: path.stat().st_size)
    processes, times = [], []
    for number in range(workers):
        tree = copy_of(source, f"probed-{number}")
        _insert_probes(mutants, tree)
        times.append(source.with_name(f"times-{number}.json"))
        words = [str(path.relative_to(source)) for path in files[number::workers]]
        environment = {HITS: str(hits), TIMES: str(times[-1])}
        processes.append(forked_pytest(tree, ("-p", "mutation_probe", *words), environment))
    for process in processes:
        os.waitpid(process, 0)
    tests: dict[str, set[str]] = {}
    for line in hits.read_text().splitlines():
        at, _, test = line.partition("\t")
        tests.setdefault(mutants[int(at)].key, set()).add(_test_or_file(test))
    seconds = {test: took for path in times for test, took in json.loads(path.read_text()).items()}
    listed = {key: sorted(found) for key, found in tests.items()}
    kept.write_text(json.dumps({"keys": keys, "tests": listed, "seconds": seconds}))
    return Reach(tests=listed, seconds=seconds)


def _test_or_file(current: str) -> str:
    """What pytest says it runs: a test; around it the file, since its tests share fixtures."""
    test, _, phase = current.rpartition(" ")
    return test if phase == "(call)" else test.partition("::")[0]


def _insert_probes(mutants: Sequence[Mutant], tree: Path) -> None:
    for file in {mutant.file for mutant in mutants}:
        path = tree / PACKAGE / file
        lines = path.read_text().splitlines(keepends=True)
        here = [(number, mutant) for number, mutant in enumerate(mutants) if mutant.file == file]
        probes = [(m.probe_line, number) for number, m in here if m.probe_line is not None]
        for line, number in sorted(probes, reverse=True):
            before = lines[line - 1]
            indent = before[: len(before) - len(before.lstrip())]
            lines.insert(line - 1, f"{indent}__import__('mutation_probe').hit({number})\n")
        path.write_text("".join(lines))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A fault that is planted, and the process that tests it."""

    mutant: Mutant
    tree: Path
    process: int
    tests: int
    since: float
    limit: float

    def result(self) -> Result | None:
        """None while the tests run; afterwards the fault is taken out again."""
        process, status = os.waitpid(self.process, os.WNOHANG)
        seconds = time.monotonic() - self.since
        late = process == 0 and seconds > self.limit
        if process == 0 and not late:
            return None
        if late:
            os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        file = Path(PACKAGE) / self.mutant.file
        shutil.copy2(self.tree.with_name("source") / file, self.tree / file)
        survived = not late and os.waitstatus_to_exitcode(status) == 0
        killer = "" if survived else "time" if late else _first_failure(self.tree)
        outcome = SURVIVED if survived else KILLED
        return {"outcome": outcome, "by": killer, "tests": self.tests, "seconds": round(seconds, 1)}


def _first_failure(tree: Path) -> str:
    said = tree.with_suffix(".log").read_text(errors="replace")
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)
    return found[1] if found else ""


def planted(mutant: Mutant, tree: Path, tests: list[str], limit: float) -> Trial:
    """Plant a fault, and begin with the tests."""
    path = tree / PACKAGE / mutant.file
    path.write_bytes(mutant.planted(path.read_bytes()))
    for stale in path.parent.glob(f"__pycache__/{path.stem}.*"):
        stale.unlink()
    listed = tree.with_suffix(".tests")
    listed.write_text("\n".join(tests))
    since = time.monotonic()
    process = forked_pytest(tree, ("-x", f"@{listed}"), {})
    return Trial(
        mutant=mutant, tree=tree, process=process, tests=len(tests), since=since, limit=limit
    )


def tried(
    mutants: Sequence[Mutant], reach: Reach, source: Path, workers: int
) -> Iterator[tuple[Mutant, Result]]:
    """Each fault and what became of it, `workers` at a time."""
    free = [copy_of(source, f"tree-{number}") for number in range(workers)]
    waiting, running = list(mutants), list[Trial]()
    while waiting or running:
        while waiting and free:
            mutant = waiting.pop(0)
            tests = reach.of(mutant)
            if tests:
                running.append(planted(mutant, free.pop(), tests, reach.limit(tests)))
            else:
                yield mutant, {"outcome": SURVIVED, "by": "", "tests": 0, "seconds": 0.0}
        for trial in list(running):
            result = trial.result()
            if result is not None:
                running.remove(trial)
                free.append(trial.tree)
                yield trial.mutant, result
        time.sleep(0.05)


def check_killers(results: Sequence[Result], source: Path) -> None:
    """Tests that killed must pass without a fault, in the same way of running them."""
    killers = sorted({str(result["by"]) for result in results if "::" in str(result["by"])})
    if killers:
        tree = copy_of(source, "unharmed")
        listed = tree.with_suffix(".tests")
        listed.write_text("\n".join(killers))
        _, status = os.waitpid(forked_pytest(tree, (f"@{listed}",), {}), 0)
        if status:
            print(f"\nSome of {len(killers)} killers fail without a fault: {_first_failure(tree)}")


def equivalents() -> set[tuple[str, str, str, str]]:
    """Faults that mean the same: room, function, original and mutated text."""
    listed = tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])
    return {(one["room"], one["function"], one["original"], one["mutated"]) for one in listed}


def is_equivalent(mutant: Mutant, known: set[tuple[str, str, str, str]]) -> bool:
    """Whether somebody has written down why no test can kill it."""
    return (mutant.room, mutant.function, mutant.original, mutant.mutated) in known


def show(mutants: Sequence[Mutant], results: dict[str, Result]) -> None:
    """Survivors with their place, then the table."""
    known, rows = equivalents(), []
    for room in dict.fromkeys(mutant.room for mutant in mutants):
        here = [mutant for mutant in mutants if mutant.room == room]
        counted = [m for m in here if not is_equivalent(m, known) and m.key in results]
        alive = [mutant for mutant in counted if results[mutant.key]["outcome"] == SURVIVED]
        for mutant in alive:
            print(
                f"\n{PACKAGE}/{mutant.file}:{mutant.line}  {mutant.function}  "
                f"({mutant.operator}; {results[mutant.key]['tests']} tests run it)"
                f"\n  - {mutant.original}\n  + {mutant.mutated}"
            )
        same = sum(is_equivalent(mutant, known) for mutant in here)
        rows.append((room, len(counted) + same, len(counted) - len(alive), same, len(alive)))
    rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    print(
        "\n| room | mutants | killed | equivalent | survived | score |\n|---|---|---|---|---|---|"
    )
    for name, total, killed, same, survived in rows:
        score = f"{killed / (killed + survived):.0%}" if killed + survived else "-"
        print(f"| {name} | {total} | {killed} | {same} | {survived} | {score} |")


def options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of results and copies")
    parser.add_argument("--rooms", nargs="+", default=ROOMS, choices=ROOMS)
    parser.add_argument("--mutants", type=int, default=30, help="of each room")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1, help="faults tried at a time")
    parser.add_argument("--rooms-only", action="store_true", help="no tests of the command line")
    parser.add_argument("--retry", action="store_true", help="try survivors again")
    return parser.parse_args()


def main() -> None:
    """Sample, find the tests, try what has not been tried, and print the table."""
    asked = options()
    out = asked.out.resolve()
    source, file = snapshot(out), out / "results.jsonl"
    mutants = [
        mutant
        for room in asked.rooms
        for mutant in sample(mutants_of(source / PACKAGE, room), asked.mutants, asked.seed)
    ]
    lines = map(json.loads, file.read_text().splitlines() if file.exists() else ())
    results: dict[str, Result] = {line["key"]: line for line in lines}
    known = equivalents()
    done = {key for key, old in results.items() if old["outcome"] == KILLED or not asked.retry}
    left = [m for m in mutants if m.key not in done and not is_equivalent(m, known)]
    if asked.retry:
        (out / "reach.json").unlink(missing_ok=True)
    if left:
        load_slow_libraries()
        rooms = [*asked.rooms, *(() if asked.rooms_only else COMMAND_LINE)]
        reach, now = reach_of(mutants, source, rooms, asked.workers), list[Result]()
        for mutant, result in tried(left, reach, source, asked.workers):
            place = {"key": mutant.key, "place": f"{mutant.file}:{mutant.line}"}
            results[mutant.key] = place | {"mutated": mutant.mutated} | result
            now.append(result)
            with file.open("a") as stream:
                stream.write(json.dumps(results[mutant.key]) + "\n")
            said = f"{place['place']} {result['outcome']}, {result['seconds']} s"
            print(f"{len(now)}/{len(left)} {said}", flush=True)
        check_killers(now, source)
    show(mutants, results)


if __name__ == "__main__":
    main()
