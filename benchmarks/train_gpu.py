"""Training steps on a GPU: ours, a plain GPT in eager torch, and the same wholly compiled.

Run:    python benchmarks/train_gpu.py [--shapes 24,144,257 ...] [--together 2]
Prints: million tokens a second, ratios, share of the limit, seconds to the end of the first step.

Every measurement has a process of its own with empty caches. First step: from before the network
is built to the end of its first step; CUDA is started before. The compiled network comes after the
eager one in the same process, so torch's compiler is loaded already, which is in its favour.
With --together, that many processes compile at once; their timings still take turns.
"""

import argparse
import contextlib
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import torch
from nanogpt_reference import Loop, Options, Shape

from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import Recipe, RunSpec, standard_architecture
from archfit.train.hardware import ProcessGroup
from archfit.train.optimiser import build_optimiser
from archfit.train.step import Stepper

SHAPES = ("24,144,257", "48,104,257", "24,480,257", "12,680,2000")
NARROW = ("24,144,257", "48,104,257")
HEADS, ROWS, CONTEXT = 2, 512, 128
LIMIT = 790e12  # operations a second that a large bfloat16 product reaches on an H200
ROUNDS, STEPS = 7, 6


def main() -> None:
    """Measure all shapes in processes of their own, or be one of those processes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("--worker", choices=("plain", "ours"))
    chosen = parser.parse_args()
    if chosen.worker:
        depth, width, vocab = map(int, chosen.shapes[0].split(","))
        print(json.dumps((plain if chosen.worker == "plain" else ours)(depth, width, vocab)))
        return
    shapes = chosen.shapes
    with tempfile.NamedTemporaryFile() as turn, ThreadPoolExecutor(chosen.together) as pool:
        reports = pool.map(lambda shape: measured("plain", shape, turn.name), shapes)
        found = dict(zip(shapes, reports, strict=True))
        for shape in shapes:  # alone: nothing else may slow its first step
            found[shape] |= measured("ours", shape, turn.name)
    table(found)


def measured(worker: str, shape: str, turn: str) -> dict[str, float]:
    """What a process with empty caches reports."""
    with tempfile.TemporaryDirectory() as caches:
        fresh = {"TORCHINDUCTOR_CACHE_DIR": caches, "TRITON_CACHE_DIR": caches, "TURN": turn}
        done = subprocess.run(
            [sys.executable, __file__, "--worker", worker, "--shapes", shape],
            env=os.environ | fresh,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    report: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(f"{worker} {shape}: {report}", flush=True)
    return report


def plain(depth: int, width: int, vocab: int) -> dict[str, float]:
    """Eager torch, then the same with network and loss compiled as one."""
    start_cuda()
    shape = Shape(depth=depth, width=width, heads=HEADS, vocab=vocab, context=CONTEXT)
    options = Options(
        steps=1000, warmup_steps=10, peak_learning_rate=1e-3, weight_decay=0.01,
        betas=(0.9, 0.999), device="cuda", autocast_bfloat16=True,
    )  # fmt: skip
    report = {}
    for name in ("eager", "compiled"):
        began = time.perf_counter()
        loop = Loop(shape, options, seed=0)
        if name == "compiled":
            loop.loss = torch.compile(loop.loss)  # type: ignore[method-assign]
        batches = random_batches(vocab)
        loop(batches[0])
        torch.cuda.synchronize()
        report[f"{name}_first"] = time.perf_counter() - began
        report[name] = rate(lambda at, loop=loop, batches=batches: loop(batches[at % len(batches)]))  # type: ignore[misc]
        del loop
    return report


def ours(depth: int, width: int, vocab: int) -> dict[str, float]:
    """archfit's step, as `archfit train` makes it."""
    start_cuda()
    began = time.perf_counter()
    spec = RunSpec(
        architecture=standard_architecture(
            depth=depth, width=width, heads=HEADS, vocab=vocab, context=CONTEXT
        ),
        data_hash="0" * 64,
        recipe=Recipe(
            steps=1000, batch_sequences=ROWS, warmup_steps=10, peak_learning_rate=1e-3,
            learning_rate_rule="standard", weight_decay=0.01, beta1=0.9, beta2=0.999,
            gradient_clip=1.0, dropout=0.0, precision="bfloat16", evaluation_steps=1000,
            evaluation_sequences=1, full_context_tokens=0,
        ),
        seed=0,
    )  # fmt: skip
    device = torch.device("cuda", 0)
    numbers = parametrisation(spec.architecture, "standard")
    model = Transformer(spec.architecture, numbers, dropout=0.0)
    initialise(model, numbers, seed=0)
    model.to(device)
    optimiser = build_optimiser(model, spec.recipe, numbers, device)
    step = Stepper(model, optimiser, spec, ProcessGroup(rank=0, world=1, device=device), print)
    batches = random_batches(vocab)
    step(0, batches[0])
    torch.cuda.synchronize()
    first = time.perf_counter() - began
    per_token = spec.architecture.training_flops_per_token
    tokens = rate(lambda at: step(at, batches[at % len(batches)]))
    return {"ours": tokens, "ours_first": first, "limit": LIMIT / per_token}


def rate(step: Callable[[int], object]) -> float:
    """Median tokens a second, while no other process of this benchmark measures."""
    with my_turn():
        for at in range(1, 6):
            step(at)
        torch.cuda.synchronize()
        seconds = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for at in range(STEPS):
                step(6 + at)
            torch.cuda.synchronize()
            seconds.append((time.perf_counter() - began) / STEPS)
    return ROWS * CONTEXT / statistics.median(seconds)


@contextlib.contextmanager
def my_turn() -> Iterator[None]:
    """Hold the lock that the processes share."""
    with open(os.environ["TURN"]) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def random_batches(vocab: int) -> torch.Tensor:
    """Twenty batches of rows with one token more than the context."""
    return torch.randint(0, vocab, (20, ROWS, CONTEXT + 1), device="cuda")


def start_cuda() -> None:
    """Make the context, which costs the same for everybody."""
    torch.ones(1, device="cuda").sum().item()


def table(found: dict[str, dict[str, float]]) -> None:
    """One line a shape, and whether it meets what we promise."""
    name = torch.cuda.get_device_name()
    print(f"{name}, torch {torch.__version__}, batch {ROWS} x {CONTEXT}, bfloat16")
    print("             million tokens a second | ours over      | of     | first step, seconds")
    print("shape         eager compiled   ours  | eager compiled | limit  | eager compiled  ours")
    for shape, one in found.items():
        millions = [one[name] / 1e6 for name in ("eager", "compiled", "ours")]
        ratios = [one["ours"] / one[name] for name in ("eager", "compiled")]
        firsts = [one[f"{name}_first"] for name in ("eager", "compiled", "ours")]
        print(
            f"{shape:12} {millions[0]:6.3f} {millions[1]:8.3f} {millions[2]:6.3f}  |"
            f" {ratios[0]:5.2f} {ratios[1]:8.2f} | {one['ours'] / one['limit']:6.1%} |"
            f" {firsts[0]:5.1f} {firsts[1]:8.1f} {firsts[2]:5.1f}  {verdict(shape, one)}"
        )


def verdict(shape: str, one: dict[str, float]) -> str:
    """`ok` where speed and first step are what we promise."""
    over_eager, over_compiled = one["ours"] / one["eager"], one["ours"] / one["compiled"]
    fast = over_eager >= 1.25 and over_compiled >= (1.25 if shape in NARROW else 0.97)
    soon = one["ours_first"] <= min(15, 0.4 * one["compiled_first"])
    return "ok" if fast and soon else "NOT MET"


if __name__ == "__main__":
    main()
