"""Two hundred small networks on a GPU, as a ladder trains them, and some of them again alone.

Run:     python benchmarks/ladder_gpu.py DATA DATA ... [--evaluations 1] [--alone 3]
Prints:  seconds from the start of `archfit sweep` to its end, tokens a second, and how far records
         of runs alone are from those of the ladder: 0 where they are equal to the bit. Kernels are
         compiled in that time (their cache is empty); Python is not, as after an installation.
Expect:  216 networks on six data sets in at most 90 s on one H200; differences below 1e-3 nats.

Sizes of 60k, 125k, 250k and 500k parameters with 1.8, 3.3, 6.6 and 10.7 million tokens, nine depths
from 1 to 24, two heads, contexts of 256, 64 sequences a step: 1.2 billion tokens on six data sets.
"""

import argparse
import compileall
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import archfit
from archfit.data.prepared import open_prepared
from archfit.spec import RunSpec
from archfit.spec.files import read_record
from archfit.spec.run_options import RunOptions
from archfit.sweep.folder import sweep_json
from archfit.sweep.sweep import Cell, Corpus, Sweep, equal_total, seeded

TOKENS = {60_000: 1.8e6, 125_000: 3.3e6, 250_000: 6.6e6, 500_000: 10.7e6}  # by parameters
DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
CONTEXT, ROWS = 256, 64


def main() -> None:
    """Train the ladder, then a few of its networks one by one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--evaluations", type=int, default=1)
    parser.add_argument("--alone", type=int, default=3)
    asked = parser.parse_args()
    compileall.compile_dir(Path(archfit.__file__).parent, quiet=1)
    corpora = tuple(map(corpus_of, asked.data))
    specs = seeded([*cells(corpora, asked.evaluations)], [0])
    tokens = sum(spec.training_tokens for spec in specs)
    with tempfile.TemporaryDirectory() as folder:
        seconds = trained(specs, corpora, Path(folder))
        print(f"{len(specs)} networks, {tokens / 1e9:.2f} billion tokens: {seconds:.1f} s, "
              f"{tokens / seconds / 1e6:.1f} million tokens a second", flush=True)  # fmt: skip
        for spec in random.Random(0).sample(specs, asked.alone):
            with tempfile.TemporaryDirectory() as alone:
                trained((spec,), corpora, Path(alone))
                print(f"{spec.name}: {abs(loss(spec, folder) - loss(spec, alone)):.1e} nats apart")


def corpus_of(folder: Path) -> Corpus:
    """A prepared data set, as a sweep names it."""
    data = open_prepared(folder)
    return Corpus(
        label=folder.name, kind=str(data.description["kind"]), vocab=data.vocab,
        hash=data.data_hash, folder=str(folder.resolve()),
    )  # fmt: skip


def cells(corpora: tuple[Corpus, ...], evaluations: int) -> list[Cell]:
    """Networks of equal size at every depth."""
    recipe = RunOptions(
        precision="bfloat16", context=CONTEXT, batch=ROWS, heads=2, learning_rate="auto",
        evaluation_sequences=512,
    )  # fmt: skip
    found = []
    for corpus in corpora:
        for params, tokens in TOKENS.items():
            steps = round(tokens / (ROWS * CONTEXT))
            options = replace(recipe, steps=steps, evaluate_every=-(-steps // evaluations))
            for depth in DEPTHS:
                deep = replace(options, depth=depth)
                found.append(Cell(corpus, equal_total(deep, vocab=corpus.vocab, params=params)))
    return found


def trained(specs: tuple[RunSpec, ...], corpora: tuple[Corpus, ...], out: Path) -> float:
    """Seconds that `archfit sweep` takes, with caches that know no kernel."""
    used = {spec.data_hash for spec in specs}
    data = tuple(corpus for corpus in corpora if corpus.hash in used)
    sweep = Sweep(name="ladder", scale="own", question="How fast?", data=data, specs=specs)
    written = out / "ladder.json"
    written.write_text(sweep_json(sweep), encoding="utf-8")
    folders = [word for corpus in data for word in ("--data", corpus.folder)]
    words = ["sweep", str(written), *folders, "--device", "cuda", "--out", str(out), "--quiet"]
    with tempfile.TemporaryDirectory() as cache:
        fresh = os.environ | {"TRITON_CACHE_DIR": cache}
        fresh.pop("PYTHONDONTWRITEBYTECODE", None)
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "archfit", *words], env=fresh, check=True)
        return time.perf_counter() - began


def loss(spec: RunSpec, folder: str | Path) -> float:
    """Held out, nats per token, at the end."""
    record = read_record(Path(folder) / spec.name)
    assert record is not None
    return record.evaluations[-1].heldout_nats_per_token


if __name__ == "__main__":
    main()
