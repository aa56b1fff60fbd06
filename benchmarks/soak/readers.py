"""Every command that reads a file which anybody may have written, and valid files to begin with."""

import gzip
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from soak.jobs import World


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """A command that reads a file which anybody may have written."""

    name: str
    words: Callable[[World, Path], list[str]]  # given a folder in which `file` is a mutated one
    file: str  # or a pattern
    seeds: Callable[[World], list[bytes]]
    beside: Callable[[World], list[str]] = lambda _: []  # copied into the folder first
    weight: int = 1
    is_guarded: bool = False  # it trains: its record is the right one, or there is none


def _contents(*names: str) -> Callable[[World], list[bytes]]:
    return lambda world: [(world.folder / name).read_bytes() for name in names]


def _configs(_: World) -> list[bytes]:
    gpt2 = {"model_type": "gpt2", "n_layer": 3, "n_embd": 48, "n_head": 4, "vocab_size": 300}
    llama = {
        "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 96, "vocab_size": 512,
        "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 256,
    }  # fmt: skip
    t5 = {"model_type": "t5", "num_layers": 3, "d_model": 64, "num_heads": 8, "d_kv": 64}
    return [json.dumps(config).encode() for config in (gpt2, llama, t5 | {"vocab_size": 500})]


def _text(world: World) -> bytes:
    return Path(world.text__txt).read_bytes()[:3000]


def _stored(world: World, name: str, save: Callable[[Path, Any], object]) -> bytes:
    """What a library writes of a small array."""
    save(world.folder / name, np.arange(2 * 60 * 60, dtype=np.uint8).reshape(2, 60, 60))
    return (world.folder / name).read_bytes()


def _save_picture(path: Path, array: Any) -> None:
    from PIL import Image

    Image.fromarray(array[0]).save(path)


SOURCES: dict[str, Callable[[World], bytes]] = {
    ".txt": _text,
    ".abc": _text,
    ".bin": _text,
    ".jsonl": lambda world: b'{"text": "%s"}\n' % _text(world).replace(b"\n", b'"}\n{"text": "'),
    ".fasta": lambda _: b">a\nACGTNacgt\n>b\n" + b"MKVLAT*" * 60,
    ".fastq": lambda _: b"@r\nACGT\n+\nIIII\n" * 40,
    ".csv": lambda _: b"a,b\n" + b"".join(b"%d,%d.5\n" % (n, n * n) for n in range(300)),
    ".npy": lambda world: _stored(world, "seed.npy", np.save),
    ".npz": lambda world: _stored(world, "seed.npz", np.savez),
    ".png": lambda world: _stored(world, "seed.png", _save_picture),
    ".txt.gz": lambda world: gzip.compress(_text(world)),
    ".txt.xz": lambda world: lzma.compress(_text(world)),
}
PLAN = ("plan", "--params", "1M")
EXPORT = ("export", "--depth", "2", "--width", "64", "--heads", "2")
EXPORT_RUN = ("export", "--run", "{run}", "--out", "{out}")
REPORT = ("report", "{runs}", "--out", "{out}.html")
TOML = b'name = "x"\nseeds = 2\n[base]\nheads = 2\n[[grid]]\ndepth = [1, 2]\nwidth = [16, 32]\n'
TOML += b'[[list]]\nmatch = "block_params"\nblock_params = ["20k", 30000]\ndepth = [2, 3]\n'


def _prepare(suffix: str) -> Reader:
    return Reader(
        name=f"source{suffix}",
        words=lambda _, work: ["data", "prepare", f"{work}/source{suffix}", "--out", f"{work}/out"],
        file=f"source{suffix}",
        seeds=lambda world: [SOURCES[suffix](world)],
        weight=3,
    )


def _of_data(name: str, file: str, *words: str, weight: int = 3) -> Reader:
    """A reader of a prepared data set in which one file is another."""
    return Reader(
        name=name,
        words=lambda _, work: [
            word.format(data=f"{work}/data", out=f"{work}/out") for word in words
        ],
        file=f"data/{file}",
        seeds=_contents(f"data/{file}"),
        beside=lambda world: [world.data],
        weight=weight,
    )


def _of_runs(name: str, file: str, *words: str, weight: int = 3) -> Reader:
    """A reader of a folder of runs in which one file is another."""
    runs = file.partition("/")[0]
    return Reader(
        name=name,
        words=lambda _, work: [
            word.format(
                runs=f"{work}/{runs}", run=next((work / runs).glob("*/")), out=f"{work}/out"
            )
            for word in words
        ],
        file=file,
        seeds=lambda world: [next(world.folder.glob(file)).read_bytes()],
        beside=lambda world: [str(world.folder / runs)],
        weight=weight,
    )


def _resumed(name: str, file: str) -> Reader:
    """Training that goes on from a checkpoint, where a file of it, or of the data, is another."""
    return Reader(
        name=name,
        words=lambda world, work: [
            *("train", "--spec", world.spec__json, "--data", f"{work}/data", "--device", "cpu"),
            *("--out", f"{work}/stopped"),
        ],
        file=file,
        seeds=lambda world: [next(world.folder.glob(file)).read_bytes()],
        beside=lambda world: [world.data, world.stopped],
        weight=3,
        is_guarded=True,
    )


READERS = (
    Reader(
        name="audit",
        words=lambda _, work: ["audit", f"{work}/config.json"],
        file="config.json",
        seeds=_configs,
        weight=10,
    ),
    *map(_prepare, SOURCES),
    _of_data("plan-data", "data.json", *PLAN, "--data", "{data}", weight=6),
    _of_data("inspect", "data.json", "data", "inspect", "{data}", weight=6),
    _of_data("inspect-tokens", "train.bin", "data", "inspect", "{data}", "--verify"),
    _of_data("inspect-checksums", "checksums.bin", "data", "inspect", "{data}", "--verify"),
    _of_data("export-tokenizer", "tokenizer.json", *EXPORT, "--data", "{data}", "--out", "{out}"),
    _of_data("plan-tokenizer", "tokenizer.json", *PLAN, "--tokenizer", "{data}/tokenizer.json"),
    Reader(
        name="prepare-tokenizer",
        words=lambda world, work: [
            *("data", "prepare", world.text__txt, "--kind", "text", "--out", f"{work}/out"),
            *("--tokenizer", f"{work}/tokenizer.json"),
        ],
        file="tokenizer.json",
        seeds=_contents("data/tokenizer.json"),
    ),
    Reader(
        name="sweep-toml",
        words=lambda _, work: ["sweep", f"{work}/mine.toml", "--dry-run"],
        file="mine.toml",
        seeds=lambda _: [TOML],
        weight=8,
    ),
    Reader(
        name="sweep-json",
        words=lambda _, work: ["sweep", f"{work}/sweep.json", "--dry-run"],
        file="sweep.json",
        seeds=_contents("sweep.json"),
        weight=5,
    ),
    _of_runs("fit", "runs/*/record.json", "fit", "{runs}", weight=6),
    _of_runs("report", "runs/*/record.json", *REPORT, weight=1),
    _of_runs("report-sweep", "runs/sweep.json", *REPORT, weight=1),
    _of_runs("export-record", "trained/*/record.json", *EXPORT_RUN),
    _of_runs("export-spec", "trained/*/spec.json", *EXPORT_RUN),
    _of_runs("export-weights", "trained/*/model.safetensors", *EXPORT_RUN),
    _resumed("resume-state", "stopped/*/checkpoint/*/state.json"),
    _resumed("resume-weights", "stopped/*/checkpoint/*/model.safetensors"),
    _resumed("resume-moments", "stopped/*/checkpoint/*/optimiser.safetensors"),
    _resumed("resume-tokens", "data/train.bin"),
    _resumed("resume-heldout", "data/heldout.bin"),
    Reader(
        name="report-advice",
        words=lambda _, work: ["report", f"{work}/advice", "--out", f"{work}/page.html"],
        file="advice/advice.json",
        seeds=_contents("advice/advice.json"),
        beside=lambda world: [world.advice],
    ),
)  # fmt: skip
