"""Is our training recipe good? GPT-2 small's shape, ours against a plain GPT of equal tokens.

Run:    python benchmarks/recipe_check.py DATA [--steps 1500] [--depth 12 --width 768 --heads 12]
Prints: held-out perplexity of both at stride 1 (each token is predicted from a whole context, as in
        table 1 of Wies et al. 2021), and at the loss that training reports.

DATA is a prepared data set. Both see the same batches of 512 x 128 tokens. Ours is trained as
`archfit sweep` trains (`auto` rates), the plain loop by GPT-2's usual recipe: peak 6e-4, a tenth of
warm-up, weight decay 0.1, betas 0.9 and 0.95. 1,500 steps are 98M tokens, about five minutes of an
H200 for both; a CPU needs smaller sizes.
"""

import argparse
import math
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from nanogpt_reference import Loop, Options, Shape

from archfit.data.loader import Loader
from archfit.data.prepared import PreparedData, open_prepared
from archfit.spec import RunSpec
from archfit.spec.run_options import RunOptions
from archfit.train import TrainSettings, Watchers
from archfit.train import train as train_ours

CUDA = torch.cuda.is_available()
WINDOWS = 256  # of one pass at stride 1


def main() -> None:
    """Train both and print what they reach."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    sizes = {"depth": 12, "width": 768, "heads": 12, "context": 128, "batch": 512}
    sizes |= {"steps": 1500, "tokens": 98_538}  # as many at stride 1 as the paper had
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    asked = parser.parse_args()
    data = open_prepared(asked.data)
    options = RunOptions(
        precision="bfloat16" if CUDA else "float32",
        learning_rate="auto",
        full_context_tokens=asked.tokens,
        **{name: getattr(asked, name) for name in sizes if name != "tokens"},
    )
    spec = options.spec(vocab=data.vocab, data_hash=data.data_hash, seed=0)
    params, tokens = spec.architecture.params, spec.training_tokens
    print(f"{params / 1e6:.1f}M parameters, {tokens / 1e6:.0f}M tokens")
    print(f"{'':14}{'stride 1':>12}{'perplexity':>12}{'as trained':>12}")
    for name, losses in (("ours", our_losses(spec, data)), ("plain GPT", plain_losses(spec, data))):
        full, usual = losses
        print(f"{name:14}{full:12.4f}{math.exp(full):12.2f}{usual:12.4f}", flush=True)


def our_losses(spec: RunSpec, data: PreparedData) -> tuple[float, float]:
    """Nats per token at stride 1, and of the last evaluation."""
    settings = TrainSettings(
        device="cuda" if CUDA else "cpu",
        sharding="auto",
        checkpoint_seconds=1e9,
        keep_weights=False,
        code_version="benchmark",
    )
    with tempfile.TemporaryDirectory() as out:
        record = train_ours(spec, data, Path(out), settings, Watchers())
    assert record.full_context is not None
    return (
        record.full_context.heldout_nats_per_token,
        record.evaluations[-1].heldout_nats_per_token,
    )


def plain_losses(spec: RunSpec, data: PreparedData) -> tuple[float, float]:
    """The same of the plain loop, on the same batches and windows."""
    shape, recipe = spec.architecture, spec.recipe
    loader = Loader(data=data, batch=recipe.batch_sequences, context=shape.context, seed=spec.seed)
    names = ("depth", "width", "heads", "context")
    sizes = Shape(**{name: getattr(shape, name) for name in names}, vocab=data.vocab)
    options = Options(
        steps=recipe.steps,
        warmup_steps=recipe.steps // 10,
        peak_learning_rate=6e-4,
        weight_decay=0.1,
        betas=(0.9, 0.95),
        device="cuda" if CUDA else "cpu",
        autocast_bfloat16=CUDA,
        compile=CUDA,
    )
    loop = Loop(sizes, options, seed=spec.seed)
    for step in range(recipe.steps):
        loop(torch.from_numpy(loader.training_batch(step)))
    batches = loader.heldout_batches(recipe.evaluation_sequences)
    usual = loop.heldout(torch.from_numpy(batch) for batch in batches)
    return stride_one(loop, loader, recipe.full_context_tokens), usual


@torch.no_grad()
def stride_one(loop: Loop, loader: Loader, tokens: int) -> float:
    """Mean nats per token where a window moves on by one and only its last token is predicted."""
    places = len(loader.data.tokens("heldout")) - loader.context
    starts, total = np.arange(min(places, tokens), dtype=np.int64), 0.0
    device = loop.options.device
    for first in range(0, len(starts), WINDOWS):
        windows = loader.rows("heldout", starts[first : first + WINDOWS])
        rows = torch.from_numpy(windows).to(device)
        with torch.autocast(device, torch.bfloat16, enabled=loop.options.autocast_bfloat16):
            logits = loop.model(rows[:, :-1])[:, -1]
        total += float(F.cross_entropy(logits.float(), rows[:, -1], reduction="sum"))
    return total / len(starts)


if __name__ == "__main__":
    main()
