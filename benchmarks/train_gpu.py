"""Training steps on a GPU: archfit's two blocks against nanoGPT itself, compiled.

Run:    python benchmarks/train_gpu.py NANOGPT_MODEL_PY [--shapes 24,144,2,257,512,128 ...]
Prints: million tokens a second, ratios, shares of two limits, seconds to the end of the first step.

The path is that of nanoGPT's model.py (MIT; github.com/karpathy/nanoGPT). It is trained as nanoGPT
trains it: no biases, tied head, its own groups of parameters, fused AdamW, torch.compile. Ours are
`gpt2` (with biases) and `llama`, heads tied, too. A shape is depth, width, heads, vocabulary, rows,
context. Every measurement has a process of its own with empty caches; all compile at once, and
their timings take turns. First step: from before the network is built to the end of that step.
"""

import argparse
import fcntl
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch

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
    "24,480,2,257,512,128",
    "12,768,12,50304,16,1024",
)
LIMIT_FLOPS = 790e12  # that a large bfloat16 product reaches on an H200
LIMIT_BYTES = 4.2e12  # a second, that a large copy reaches there
ROUNDS, STEPS = 7, 8


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
    parser.add_argument("--worker", choices=("nanogpt", "gpt2", "llama"))
    chosen = parser.parse_args()
    if chosen.worker:
        shape = Shape(*map(int, chosen.shapes[0].split(",")))
        torch.ones(1, device="cuda").sum().item()  # the context costs the same for everybody
        make = nanogpt_step(chosen.nanogpt) if chosen.worker == "nanogpt" else our_step
        print(json.dumps(measure(shape, lambda shape: make(shape, chosen.worker))))
        return
    table(chosen.shapes, chosen.nanogpt)


def table(shapes: list[str], nanogpt: Path) -> None:
    """All compile at once, then one line a shape."""
    jobs = [(shape, name) for shape in shapes for name in ("nanogpt", "gpt2", "llama")]
    with tempfile.NamedTemporaryFile() as turn, ThreadPoolExecutor(len(jobs)) as pool:
        reports = pool.map(lambda job: report(nanogpt, job[0], job[1], turn.name), jobs)
        found = dict(zip(jobs, reports, strict=True))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, bfloat16")
    print("                         million tokens a second | over nanoGPT | of limits   | first")
    print("shape                     nanoGPT   gpt2   llama |  gpt2  llama | flops bytes | step s")
    for shape in shapes:
        rates = {name: found[shape, name]["rate"] for name in ("nanogpt", "gpt2", "llama")}
        sizes = Shape(*map(int, shape.split(",")))
        flops = (
            rates["gpt2"]
            * options(sizes, "gpt2").architecture(sizes.vocab).training_flops_per_token
        )
        traffic = rates["gpt2"] * bytes_a_token(sizes)
        firsts = "/".join(f"{found[shape, name]['first']:.0f}" for name in rates)
        print(
            f"{shape:24} {rates['nanogpt'] / 1e6:8.3f} {rates['gpt2'] / 1e6:6.3f} "
            f"{rates['llama'] / 1e6:7.3f} | {rates['gpt2'] / rates['nanogpt']:5.2f} "
            f"{rates['llama'] / rates['nanogpt']:6.2f} | {flops / LIMIT_FLOPS:5.0%} "
            f"{traffic / LIMIT_BYTES:5.0%} | {firsts}",
            flush=True,
        )


def bytes_a_token(shape: Shape) -> float:
    """The least that a step of the gpt2 block moves: 100 bytes a unit of width and layer.

    The stream in float32 in and out of two norms, forward and backward (48), queries, keys, values
    and what they give (36), hidden units once before and once after GELU (16): with these at hand
    nothing else has to be read.
    """
    return 100.0 * shape.width * shape.depth


def report(nanogpt: Path, shape: str, worker: str, turn: str) -> dict[str, float]:
    """What a process with empty caches reports."""
    with tempfile.TemporaryDirectory() as caches:
        fresh = {"TORCHINDUCTOR_CACHE_DIR": caches, "TRITON_CACHE_DIR": caches, "TURN": turn}
        words = [sys.executable, __file__, str(nanogpt), "--worker", worker, "--shapes", shape]
        done = subprocess.run(words, env=os.environ | fresh, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{worker} {shape}: {done.stderr[-3000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(shape: Shape, make: Callable[[Shape], Callable[[int], None]]) -> dict[str, float]:
    """Seconds to the end of the first step, and the median of tokens a second."""
    began = time.perf_counter()
    steps = make(shape)
    steps(1)
    torch.cuda.synchronize()
    first, seconds = time.perf_counter() - began, []
    steps(2)
    with open(os.environ["TURN"]) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for _ in range(ROUNDS + 1):
            torch.cuda.synchronize()
            began = time.perf_counter()
            steps(STEPS)
            torch.cuda.synchronize()
            seconds.append((time.perf_counter() - began) / STEPS)
    return {"first": first, "rate": shape.rows * shape.context / statistics.median(seconds[1:])}


def nanogpt_step(path: Path) -> Callable[[Shape, str], Callable[[int], None]]:
    """nanoGPT's network and optimiser, with the loop of its train.py."""
    found = importlib.util.spec_from_file_location("nanogpt", path)
    assert found is not None
    assert found.loader is not None
    nanogpt: Any = importlib.util.module_from_spec(found)
    sys.modules["nanogpt"] = nanogpt
    found.loader.exec_module(nanogpt)

    def make(shape: Shape, _: str) -> Callable[[int], None]:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        config = nanogpt.GPTConfig(
            block_size=shape.context, vocab_size=shape.vocab, n_layer=shape.depth,
            n_head=shape.heads, n_embd=shape.width, dropout=0.0, bias=False,
        )  # fmt: skip
        network = nanogpt.GPT(config).cuda()
        optimiser = network.configure_optimizers(0.1, 1e-3, (0.9, 0.95), "cuda")
        model: Any = torch.compile(network)
        batches = torch.randint(0, shape.vocab, (20, shape.rows, shape.context + 1), device="cuda")

        def steps(count: int) -> None:
            for at in range(count):
                tokens = batches[at % len(batches)]
                with torch.autocast("cuda", torch.bfloat16):
                    _, loss = model(tokens[:, :-1], tokens[:, 1:].contiguous())
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)

        return steps

    return make


def options(shape: Shape, block: str) -> RunOptions:
    """Our network of the same size."""
    return RunOptions(
        precision="bfloat16", block=block, depth=shape.depth, width=shape.width, heads=shape.heads,
        context=shape.context, batch=shape.rows, steps=1000, head="tied", learning_rate=1e-3,
    )  # fmt: skip


def our_step(shape: Shape, block: str) -> Callable[[int], None]:
    """archfit's steps, as `archfit train` makes them."""
    spec: RunSpec = options(shape, block).spec(vocab=shape.vocab, data_hash="0" * 64, seed=0)
    device = torch.device("cuda", 0)
    numbers = parametrisation(spec.architecture, "standard")
    model = Transformer(spec.architecture, numbers, dropout=0.0)
    initialise(model, numbers, seed=0)
    model.to(device)
    optimiser = build_optimiser(model, spec.recipe, numbers, device)
    stepper = Stepper(model, optimiser, spec, ProcessGroup(rank=0, world=1, device=device), print)
    rows = torch.randint(0, shape.vocab, (20, shape.rows, shape.context + 1), dtype=torch.int32)
    stream = torch.cuda.Stream()  # recorded steps need one of their own

    def steps(count: int) -> None:
        with torch.cuda.stream(stream):
            stepper.many(0, rows[:count])

    return steps


if __name__ == "__main__":
    main()
