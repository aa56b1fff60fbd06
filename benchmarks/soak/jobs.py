"""The small world that commands work on, the commands, and what must come out of each."""

import csv
import hashlib
import json
import os
import random
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archfit.data.prepared import open_prepared
from archfit.spec import canonical_json, to_json
from archfit.spec.files import read_records
from archfit.spec.run_options import RunOptions
from archfit.sweep.folder import sweep_json
from archfit.sweep.sweep import Corpus, Sweep
from soak.processes import Operations, done, ending, start

OPTIONS = RunOptions(
    precision="float32", depth=1, width=8, context=8, steps=9, batch=2, evaluate_every=4,
    evaluation_sequences=4, dropout=0.1, learning_rate=0.004,
)  # fmt: skip
WIDTHS, SEEDS = (8,), 5  # the least of which a report can be made
TIMES = ("seconds", "tokens_per_second", "device", "archfit")  # columns that differ


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """Files that commands read; nothing here changes."""

    folder: Path

    def __getattr__(self, name: str) -> str:
        """A file or folder by its name, a double underscore for the dot."""
        return str(self.folder / name.replace("__", "."))


def make_world(folder: Path) -> World:
    """Sources, a data set, a spec, a sweep, finished runs, an advice."""
    folder.mkdir(parents=True)
    chance, world, said = random.Random(0), World(folder=folder), folder / "said"
    words = [f"{chance.choice('bcdfg')}{chance.choice('aeiou')}" for _ in range(60)]
    text = "\n".join(" ".join(chance.choices(words, k=9)) for _ in range(400))
    (folder / "text.txt").write_text(text)
    prepare = ["data", "prepare", world.text__txt, "--kind", "text", "--vocab"]
    _made([*prepare, "300", "--out", world.data], said)
    _made([*prepare, "257", "--out", world.bytes], said)
    data = open_prepared(folder / "data")
    specs = tuple(
        replace(OPTIONS, width=width).spec(vocab=data.vocab, data_hash=data.data_hash, seed=seed)
        for width in WIDTHS
        for seed in range(SEEDS)
    )
    (folder / "spec.json").write_text(canonical_json(specs[0]))
    corpus = Corpus(
        label="text", kind="text", vocab=data.vocab, hash=data.data_hash, folder=world.data
    )
    sweep = Sweep(name="soak", scale="own", question="?", data=(corpus,), specs=specs)
    (folder / "sweep.json").write_text(sweep_json(sweep))
    _made(["sweep", world.sweep__json, "--out", world.runs, *CPU, "--workers", "1"], said)
    spec = ["--spec", world.spec__json, "--data", world.data, "--device", "cpu"]
    _made(["train", *spec, "--out", world.trained], said)
    words = ["train", *spec, "--out", world.stopped, "--checkpoint-seconds", "0"]
    for at in range(20, 100, 4):  # until a kill leaves a run with one checkpoint
        shutil.rmtree(world.stopped, ignore_errors=True)
        watch = Operations(folder / "stopped", at, die, folder / "operations")
        ending(start(words, said, watch.begin), said, patience=300)
        if len(list((folder / "stopped").glob("*/checkpoint/step-*"))) == 1:
            break
    advise = ["advise", world.text__txt, "--params", "100k", "--no-measure", "--out"]
    _made([*advise, world.advice], said)
    return world


CPU = ("--device", "cpu", "--checkpoint-seconds", "0")


def die() -> None:
    """Kill this process, as nothing that it has caught or noted can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)


def _made(words: list[str], said: Path) -> None:
    ended = done(words, said, patience=300)
    if ended.status:
        raise RuntimeError(f"{' '.join(words)}: {ended.words}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A command that writes into a folder of its own, and how its result is read."""

    name: str
    words: Callable[[World, Path], list[str]]
    result: Callable[[Path], Any]
    copies: int = 1  # at a time
    weight: int = 1  # how often it is drawn


def _files(folder: Path) -> dict[str, str]:
    """Everything below a folder, hidden files too, with its hash."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _names(folder: Path) -> list[str]:
    """Everything below a folder, of whatever content; pages and charts must be whole."""
    for page in folder.rglob("*.html"):
        if not page.read_text().rstrip().endswith("</html>"):
            raise ValueError(f"{page} is half a page")
    for file in folder.rglob("*.json"):
        json.loads(file.read_text())
    return [name for name in _files(folder) if not name.endswith(".lock")]


def _records(folder: Path) -> tuple[Any, ...]:
    """Records without timing and machine, what else lies there, and the table."""
    documents = [dict(to_json(record)) for record in read_records(folder)]  # type: ignore[call-overload]
    for document in documents:
        del document["timing"], document["machine"]
    tables = [
        [{key: row[key] for key in row if key not in TIMES} for row in csv.DictReader(table.open())]
        for table in folder.glob("results.csv")
    ]
    logs = {log.parent.name: log.read_text() for log in folder.glob("*/log.jsonl")}
    return documents, tables, logs, [name for name in _names(folder) if "lock" not in name]


JOBS = (
    Job(
        name="train",
        words=lambda world, out: [
            *("train", "--spec", world.spec__json, "--data", world.data, "--out", str(out)),
            *CPU,
        ],
        result=_records,
        weight=10,
    ),
    Job(
        name="sweep, two runners",
        words=lambda world, out: [
            *("sweep", world.sweep__json, "--out", str(out), *CPU, "--workers", "1")
        ],
        result=_records,
        copies=2,
        weight=3,
    ),
    Job(
        name="prepare",
        words=lambda world, out: [
            *("data", "prepare", world.text__txt, "--kind", "text", "--vocab", "300"),
            *("--out", str(out / "data")),
        ],
        result=_files,
        weight=6,
    ),
    Job(
        name="prepare --overwrite",
        words=lambda world, out: [
            *("data", "prepare", world.text__txt, "--kind", "bytes", "--overwrite"),
            *("--out", str(out / "data")),
        ],
        result=_files,
        weight=4,
    ),
    Job(
        name="export",
        words=lambda world, out: [
            *("export", "--run", f"{world.trained}/{_only(world.trained)}", "--data", world.data),
            *("--overwrite", "--out", str(out / "model")),
        ],
        result=_names,
        weight=4,
    ),
    Job(
        name="report",
        words=lambda world, out: ["report", world.runs, "--out", str(out / "page.html")],
        result=_names,
    ),
    Job(
        name="advise",
        words=lambda world, out: [
            *("advise", world.text__txt, "--params", "100k", "--no-measure"),
            *("--out", str(out)),
        ],
        result=_names,
    ),
)


def _only(folder: str) -> str:
    (found,) = (path.name for path in Path(folder).iterdir())
    return found
