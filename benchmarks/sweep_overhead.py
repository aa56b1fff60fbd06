"""What the runner of sweeps adds to a cell: trivial cells by `archfit sweep` and `archfit train`.

Both train the same specs in one process on one thread, alternately; what they take beyond one
cell, by the number of further cells, is the time of a cell without the start of any process.

Run:     python benchmarks/sweep_overhead.py [--cells 200] [--repeats 3] [--cpu-time]
Prints:  milliseconds a cell of both, and their difference, medians over repeats. With --cpu-time
         the clock counts CPU seconds of all processes: for a machine that others use too.
Expect:  a difference under 50 ms.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData
from archfit.data.sources import DataSettings
from archfit.spec import Recipe, RunSpec, canonical_json, standard_architecture
from archfit.sweep.folder import sweep_json
from archfit.sweep.sweep import Corpus, Sweep

MOST_MILLISECONDS = 50
ARCHFIT = [sys.executable, "-m", "archfit"]
WHERE = ("--device", "cpu")


def main() -> None:
    """Time both ways in turn, so that a slow moment of the machine hits both alike."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu-time", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = some_data(folder)
        many, one = cells(data, asked.cells), cells(data, 1)
        times: dict[str, list[float]] = {"archfit train": [], "archfit sweep": []}
        for at in range(asked.repeats):
            for way, command in (("archfit train", by_train), ("archfit sweep", by_sweep)):
                seconds = [
                    taken(command(data, specs, folder / f"{way[8:]}-{at}-{len(specs)}"), asked)
                    for specs in (one, many)
                ]
                times[way].append(1000 * (seconds[1] - seconds[0]) / (asked.cells - 1))
    for way, milliseconds in times.items():
        print(f"{way}: {statistics.median(milliseconds):6.1f} ms a cell  {shown(milliseconds)}")
    pairs = zip(times["archfit sweep"], times["archfit train"], strict=True)
    differences = [sweep - train for sweep, train in pairs]
    middle = statistics.median(differences)
    print(f"the runner adds {middle:.1f} ms a cell  {shown(differences)}")
    sys.exit(middle >= MOST_MILLISECONDS)


def some_data(folder: Path) -> PreparedData:
    """Bytes with some order in them."""
    (folder / "text.txt").write_text("".join(f"{at} and {at * at % 97}; " for at in range(5000)))
    return prepare(str(folder / "text.txt"), folder / "data", DataSettings(kind="bytes")).data


def cells(data: PreparedData, count: int) -> list[RunSpec]:
    """Runs of two steps that differ in their seed."""
    recipe = Recipe(
        steps=2, batch_sequences=4, warmup_steps=0, peak_learning_rate=1e-3,
        learning_rate_rule="standard", weight_decay=0.01, beta1=0.9, beta2=0.999,
        gradient_clip=1.0, dropout=0.0, precision="float32", evaluation_steps=2,
        evaluation_sequences=4, full_context_tokens=0,
    )  # fmt: skip
    shape = standard_architecture(depth=1, width=8, heads=2, vocab=data.vocab, context=8)
    spec = RunSpec(architecture=shape, data_hash=data.data_hash, recipe=recipe, seed=0)
    return [replace(spec, seed=seed) for seed in range(count)]


def by_train(data: PreparedData, specs: list[RunSpec], out: Path) -> list[str]:
    """The command that trains all specs, one a file."""
    out.mkdir()
    words = []
    for spec in specs:
        file = out / f"{spec.seed}.json"
        file.write_text(canonical_json(spec))
        words += ["--spec", str(file)]
    rest = ("--data", str(data.folder), "--out", str(out), "--no-keep-weights", *WHERE)
    return [*ARCHFIT, "train", *words, *rest]


def by_sweep(data: PreparedData, specs: list[RunSpec], out: Path) -> list[str]:
    """The command that sweeps over all specs with one worker."""
    folder = str(data.folder.resolve())
    corpus = Corpus(
        label="bytes", kind="bytes", vocab=data.vocab, hash=data.data_hash, folder=folder
    )
    made = Sweep(name="trivial", scale="smoke", question="", data=(corpus,), specs=tuple(specs))
    file = out.with_suffix(".json")
    file.write_text(sweep_json(made))
    return [*ARCHFIT, "sweep", str(file), "--out", str(out), "--workers", "1", *WHERE]


def taken(command: list[str], asked: argparse.Namespace) -> float:
    """Seconds of the command, on the clock or of the processors."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if asked.cpu_time:
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - began


def shown(milliseconds: list[float]) -> str:
    """All of them."""
    return f"({', '.join(f'{one:.1f}' for one in milliseconds)})"


if __name__ == "__main__":
    main()
