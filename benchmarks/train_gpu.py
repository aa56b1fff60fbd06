"""Training steps on a GPU: archfit's two blocks against nanoGPT itself, compiled.

Run:    python benchmarks/train_gpu.py NANOGPT_MODEL_PY [--shapes 24,144,2,257,512,128 ...]
Prints: million tokens a second, ratios, shares of two limits, seconds to the end of the first step.

The path is that of nanoGPT's model.py (MIT; github.com/karpathy/nanoGPT). It is trained as nanoGPT
trains it: no biases, tied head, its own groups of parameters, fused AdamW, torch.compile, batches
read from a file of tokens while a step is under way. `steps` is the same with all batches on the
GPU before the clock starts, so its loader costs nothing. Ours are `gpt2` (with biases) and `llama`,
heads tied, too; they read the same file. A shape is depth, width, heads, vocabulary, rows, context.
Every measurement has a process of its own with empty caches; those of some shapes compile at once,
and when all have made their first steps, timings take turns. First step: from before the network is
built to the end of that step.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from archfit.data.loader import Loader
from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import RunSpec
from archfit.spec.run_options import RunOptions
from archfit.train.hardware import ProcessGroup
from archfit.train.optimiser import build_optimiser
from archfit.train.step import Stepper

SHAPES = (
    "24,144,2,257,512,128",
    "48,104,2,257,512,128",
    "8,256,2,2000,128,256",
    "12,768,12,50304,16,1024",
    "24,480,2,257,512,128",
)
TRAINERS = ("nanogpt", "gpt2", "llama")
LIMIT_FLOPS = 790e12  # that a large bfloat16 product reaches on an H200
LIMIT_BYTES = 4.2e12  # a second, that a large copy reaches there
ROUNDS, STEPS = 5, 20
TOKENS = 1 << 24  # of the file


class Shape(NamedTuple):
    """What is trained."""

    depth: int
    width: int
    heads: int
    vocab: int
    rows: int
    context: int


def main() -> None:
    """Measure all shapes in processes of their own, or be one of those processes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("nanogpt", type=Path)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--at-once", type=int, default=4, help="shapes; all must fit the memory")
    parser.add_argument("--worker", choices=TRAINERS)
    chosen = parser.parse_args()
    if chosen.worker:
        shape = Shape(*map(int, chosen.shapes[0].split(",")))
        torch.ones(1, device="cuda").sum().item()  # the context costs the same for everybody
        with tempfile.NamedTemporaryFile() as file:
            tokens = np.random.default_rng(0).integers(0, shape.vocab, TOKENS)
            tokens.astype(np.uint16).tofile(file)
            file.flush()
            data = Path(file.name)
            if chosen.worker == "nanogpt":
                measure(shape, nanogpt_steps(shape, chosen.nanogpt, data))
            else:
                measure(shape, {"rate": our_steps(shape, chosen.worker, data)})
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, bfloat16")
    print("                              million tokens a second | over nanoGPT | over steps  | "
          "of limits   | first")  # fmt: skip
    print("shape                    nanoGPT   steps  gpt2  llama |  gpt2  llama |  gpt2 llama | "
          "flops bytes | step s")  # fmt: skip
    for first in range(0, len(chosen.shapes), chosen.at_once):
        table(chosen.shapes[first : first + chosen.at_once], chosen.nanogpt)


def table(shapes: list[str], nanogpt: Path) -> None:
    """All compile at once, then one line a shape."""
    jobs = [(shape, name) for shape in shapes for name in TRAINERS]
    with contextlib.ExitStack() as open_workers:
        workers = {
            job: open_workers.enter_context(worker(nanogpt, *job, len(shapes))) for job in jobs
        }
        began = {job: said(each) for job, each in workers.items()}
        found = {job: began[job] | timed(each) for job, each in workers.items()}
    for shape in shapes:
        rates = {name: found[shape, name]["rate"] for name in TRAINERS}
        sizes = Shape(*map(int, shape.split(",")))
        flops = (
            rates["gpt2"]
            * options(sizes, "gpt2").architecture(sizes.vocab).training_flops_per_token
        )
        traffic = rates["gpt2"] * bytes_a_token(sizes)
        firsts = "/".join(f"{found[shape, name]['first']:.0f}" for name in rates)
        steps = found[shape, "nanogpt"]["steps"]
        print(
            f"{shape:24} {rates['nanogpt'] / 1e6:7.3f} {steps / 1e6:7.3f} "
            f"{rates['gpt2'] / 1e6:5.3f} {rates['llama'] / 1e6:6.3f} | "
            f"{rates['gpt2'] / rates['nanogpt']:5.2f} {rates['llama'] / rates['nanogpt']:6.2f} | "
            f"{rates['gpt2'] / steps:5.2f} {rates['llama'] / steps:5.2f} | "
            f"{flops / LIMIT_FLOPS:5.0%} {traffic / LIMIT_BYTES:5.0%} | {firsts}",
            flush=True,
        )


def bytes_a_token(shape: Shape) -> float:
    """The least that a step of the gpt2 block moves: 100 bytes a unit of width and layer.

    The stream in float32 in and out of two norms, forward and backward (48), queries, keys, values
    and what they give (36), hidden units once before and once after GELU (16): with these at hand
    nothing else has to be read.
    """
    return 100.0 * shape.width * shape.depth


@contextlib.contextmanager
def worker(
    nanogpt: Path, shape: str, trainer: str, compilers: int
) -> Iterator[subprocess.Popen[str]]:
    """A process with empty caches and, to compile nanoGPT, its share of the cores."""
    threads = str(max(1, len(os.sched_getaffinity(0)) // compilers))
    with tempfile.TemporaryDirectory() as caches:
        fresh = {"TORCHINDUCTOR_CACHE_DIR": caches, "TRITON_CACHE_DIR": caches}
        words = [sys.executable, __file__, str(nanogpt), "--worker", trainer, "--shapes", shape]
        process = subprocess.Popen(
            words, env=os.environ | fresh | {"TORCHINDUCTOR_COMPILE_THREADS": threads}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def said(process: subprocess.Popen[str]) -> dict[str, float]:
    """The next thing that a worker reports."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            return dict(json.loads(line))
    raise SystemExit(f"{process.args!r} ended with status {process.wait()}")


def timed(process: subprocess.Popen[str]) -> dict[str, float]:
    """Let a worker time its steps, and end: while it gives its memory back, others are slow."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    rates = said(process)
    process.wait()
    return rates


def measure(shape: Shape, ways: dict[str, Callable[[int], None]]) -> None:
    """Report seconds to the end of the first step and, when asked, tokens a second of each way of
    making steps: a median."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    input()
    for _ in range(ROUNDS + 1):
        for way, steps in ways.items():
            torch.cuda.synchronize()
            began = time.perf_counter()
            steps(STEPS)
            torch.cuda.synchronize()
            seconds[way].append((time.perf_counter() - began) / STEPS)
    tokens = shape.rows * shape.context
    rates = {way: tokens / statistics.median(timed[1:]) for way, timed in seconds.items()}
    print(json.dumps(rates), flush=True)


def warm(steps: Callable[[int], None], began: float) -> None:
    """Report the seconds from `began` to the end of the first step, and make a few more."""
    steps(1)
    torch.cuda.synchronize()
    first = time.perf_counter() - began
    steps(2)
    torch.cuda.synchronize()
    print(json.dumps({"first": first}), flush=True)


def nanogpt_steps(shape: Shape, path: Path, data: Path) -> dict[str, Callable[[int], None]]:
    """nanoGPT's network and optimiser, with the loop of its train.py; and without its loader."""
    found = importlib.util.spec_from_file_location("nanogpt", path)
    assert found is not None
    assert found.loader is not None
    nanogpt: Any = importlib.util.module_from_spec(found)
    sys.modules["nanogpt"] = nanogpt
    found.loader.exec_module(nanogpt)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    began = time.perf_counter()
    config = nanogpt.GPTConfig(
        block_size=shape.context, vocab_size=shape.vocab, n_layer=shape.depth,
        n_head=shape.heads, n_embd=shape.width, dropout=0.0, bias=False,
    )  # fmt: skip
    network = nanogpt.GPT(config).cuda()
    optimiser = network.configure_optimizers(0.1, 1e-3, (0.9, 0.95), "cuda")
    model: Any = torch.compile(network)

    def read_batch() -> tuple[torch.Tensor, torch.Tensor]:
        tokens = np.memmap(data, dtype=np.uint16, mode="r")
        starts = torch.randint(len(tokens) - shape.context, (shape.rows,))
        x, y = (
            torch.stack([
                torch.from_numpy(tokens[at + shift : at + shift + shape.context].astype(np.int64))
                for at in starts
            ])
            for shift in (0, 1)
        )  # fmt: skip
        return x.pin_memory().cuda(non_blocking=True), y.pin_memory().cuda(non_blocking=True)

    waiting = [read_batch() for _ in range(STEPS)]

    def train(count: int, next_batch: Callable[[int], tuple[torch.Tensor, torch.Tensor]]) -> None:
        x, y = waiting[0]
        for at in range(count):
            with torch.autocast("cuda", torch.bfloat16):
                _, loss = model(x, y)
            x, y = next_batch(at)  # while the GPU is at work
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    ways = {
        "rate": lambda count: train(count, lambda _: read_batch()),
        "steps": lambda count: train(count, lambda at: waiting[at]),
    }
    warm(ways["rate"], began)
    return ways


def options(shape: Shape, block: str) -> RunOptions:
    """Our network of the same size."""
    return RunOptions(
        precision="bfloat16", block=block, depth=shape.depth, width=shape.width, heads=shape.heads,
        context=shape.context, batch=shape.rows, steps=1000, head="tied", learning_rate=1e-3,
    )  # fmt: skip


def our_steps(shape: Shape, block: str, data: Path) -> Callable[[int], None]:
    """archfit's steps, as `archfit train` makes them."""
    began = time.perf_counter()
    spec: RunSpec = options(shape, block).spec(vocab=shape.vocab, data_hash="0" * 64, seed=0)
    device = torch.device("cuda", 0)
    numbers = parametrisation(spec.architecture, "standard")
    model = Transformer(spec.architecture, numbers, dropout=0.0)
    initialise(model, numbers, seed=0)
    model = Transformer.around(model, numbers).to(device)
    optimiser = build_optimiser(model, spec.recipe, numbers, device)
    stepper = Stepper(model, optimiser, spec, ProcessGroup(rank=0, world=1, device=device), print)
    tokens: Any = FileOfTokens(data, shape.vocab)
    loader = Loader(data=tokens, batch=shape.rows, context=shape.context, seed=0)
    stream = torch.cuda.Stream()  # recorded steps need one of their own

    def steps(count: int) -> None:
        rows = [torch.from_numpy(loader.training_batch(step)).int() for step in range(count)]
        with torch.cuda.stream(stream):
            stepper.many(0, torch.stack(rows))

    warm(steps, began)
    return steps


class FileOfTokens(NamedTuple):
    """What a loader asks of prepared data; nothing is compared with checksums here, which takes
    less than 1 % (verification.py)."""

    folder: Path
    vocab: int

    def check_unchanged(self) -> None:
        """The file is ours."""

    def shard(self, _: str) -> "FileOfTokens":
        """The file again."""
        return self

    def check(self, _starts: object, _length: int) -> None:
        """Its tokens are those that were written."""

    def tokens(self, _: str) -> np.ndarray[Any, np.dtype[np.uint16]]:
        """The ids of either side."""
        return np.memmap(self.folder, dtype=np.uint16, mode="r")


if __name__ == "__main__":
    main()
