"""Training speed on a CPU: our step against a plain loop, alternately in one process.

Run:     python benchmarks/train_cpu.py [--rounds 15] [--steps 2] [--threads N] [--cpu-time]
Prints:  a line a block and shape: tokens per second of both (medians over rounds), the median of
         the ratios of each round with its least and greatest, and the share of our step's CPU time
         that matrix products and attention kernels take. With --cpu-time the clock counts only CPU
         seconds of the process: for a machine that others use too, together with --threads 1.
Expect:  every ratio at least 0.98.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import product

import torch
from nanogpt_reference import Loop, Options, Shape

from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import Architecture, RunSpec
from archfit.spec.run_options import RunOptions
from archfit.train.hardware import ProcessGroup
from archfit.train.optimiser import build_optimiser
from archfit.train.step import Stepper

SHAPES = ((4, 64, 257), (12, 128, 257), (24, 144, 257), (6, 256, 2000))  # depth, width, vocab
HEADS, CONTEXT, BATCH = 2, 128, 16
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
ATTENTION = "aten::_scaled_dot_product"
LEAST_RATIO = 0.98
Step = Callable[[int, torch.Tensor], torch.Tensor]
Timed = Callable[[], float]


def main() -> None:
    """Measure every shape and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    clock = time.process_time if asked.cpu_time else time.perf_counter
    print(f"{asked.threads} threads, {asked.rounds} rounds of {asked.steps} steps each in turn")
    titles = (
        "block",
        "depth",
        "width",
        "vocab",
        "plain tok/s",
        "ours tok/s",
        "ratio",
        "least",
        "greatest",
    )
    print("".join(f"{title:>13}" for title in (*titles, "products")))
    slow = []
    for block, (depth, width, vocab) in product(("gpt2", "llama"), SHAPES):
        tokens_BS = torch.randint(0, vocab, (BATCH, CONTEXT + 1))
        spec = spec_of(block, depth, width, vocab)
        plain, ours = plain_step(spec.architecture), our_step(spec)
        plain_timed, ours_timed = (
            partial(tokens_per_second, step, tokens_BS, asked.steps, clock)
            for step in (plain, ours)
        )
        rates = rounds(plain_timed, ours_timed, asked.rounds)
        ratios = [mine / theirs for theirs, mine in rates]
        middle = statistics.median(ratios)
        theirs, mine = (statistics.median(column) for column in zip(*rates, strict=True))
        print(
            f"{block:>13}{depth:13}{width:13}{vocab:13}{theirs:13,.0f}{mine:13,.0f}"
            f"{middle:13.3f}{min(ratios):13.3f}{max(ratios):13.3f}"
            f"{share_of_products(ours, tokens_BS):13.1%}",
            flush=True,
        )
        if middle < LEAST_RATIO:
            slow.append(f"{block} {depth} x {width} x {vocab}")
    print(f"below {LEAST_RATIO}: {', '.join(slow)}" if slow else f"every ratio is >= {LEAST_RATIO}")


def spec_of(block: str, depth: int, width: int, vocab: int) -> RunSpec:
    """What is trained."""
    options = RunOptions(
        precision="float32", block=block, depth=depth, width=width, heads=HEADS, context=CONTEXT,
        steps=10_000, batch=BATCH, learning_rate=4e-3,
    )  # fmt: skip
    return options.spec(vocab=vocab, data_hash="0" * 64, seed=0)


def plain_step(network: Architecture) -> Step:
    """The step of a plain loop."""
    shape = Shape(
        depth=network.depth, width=network.width, heads=HEADS, vocab=network.input.vocab,
        context=CONTEXT, hidden=network.feed_forward if network.block == "llama" else 0,
    )  # fmt: skip
    options = Options(
        steps=10_000, warmup_steps=1000, peak_learning_rate=4e-3, weight_decay=0.01,
        betas=(0.9, 0.999),
    )  # fmt: skip
    loop = Loop(shape, options, seed=0)
    return lambda _, tokens_BS: loop(tokens_BS)


def our_step(spec: RunSpec) -> Step:
    """Our step, made of the parts that a run is made of."""
    group = ProcessGroup(rank=0, world=1, device=torch.device("cpu"))
    numbers = parametrisation(spec.architecture, spec.recipe.learning_rate_rule)
    model = Transformer(spec.architecture, numbers, dropout=0.0)
    initialise(model, numbers, seed=spec.seed)
    optimiser = build_optimiser(model, spec.recipe, numbers, group.device)
    return Stepper(model, optimiser, spec, group, print)


def rounds(plain: Timed, ours: Timed, count: int) -> list[tuple[float, float]]:
    """Tokens per second of (plain, ours) in each round after one for practice.

    Who goes first changes from round to round.
    """
    rates = []
    for at in range(count + 1):
        order = (plain, ours) if at % 2 else (ours, plain)
        rate = {timed: timed() for timed in order}
        rates.append((rate[plain], rate[ours]))
    return rates[1:]


def tokens_per_second(
    step: Step, tokens_BS: torch.Tensor, steps: int, clock: Callable[[], float]
) -> float:
    """Of a few steps that follow each other; reading the loss is part of a step, as in a run."""
    started = clock()
    for at in range(steps):
        float(step(at, tokens_BS))
    return steps * BATCH * CONTEXT / (clock() - started)


def share_of_products(step: Step, tokens_BS: torch.Tensor) -> float:
    """CPU time in matrix products and attention kernels over all CPU time of a step."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        step(1, tokens_BS)
    events = profile.key_averages()
    inside = sum(
        event.self_cpu_time_total
        for event in events
        if event.key in PRODUCTS or event.key.startswith(ATTENTION)
    )
    return float(inside / sum(event.self_cpu_time_total for event in events))


if __name__ == "__main__":
    main()
