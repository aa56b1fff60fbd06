"""How to begin training: on how many tokens, in what batches, and at which peak learning rate.

The rate is a rule fitted to our own runs, which `auto` stands for (docs/rates.md):

    rate = constant of the block * (width / 64)^a * (tokens a step / 8192)^b

Neither depth nor the number of training tokens made a difference. Powers and the range of the runs
stand in resources/rates.toml.
"""

from dataclasses import dataclass

from archfit.spec.packed import packed_table
from archfit.spec.run import RunSpec

RATES = "rates.toml"
DIGITS = 3  # of a rate: enough, and specs stay readable
WIDTH, BATCH_TOKENS = 64, 8192  # where a rate is the constant of its block
CHINCHILLA_TOKENS = 20  # a parameter; Hoffmann et al. 2022
EPOCHS = 4  # that tokens may be read before they are worth much less; Muennighoff et al. 2023
STEP_TOKENS, LEAST_STEPS = 32_768, 200  # a batch, unless it would leave fewer steps
SOURCE = "archfit's own runs, docs/rates.md"
# At a width of 768 the rule lost 0.6 nats per token to GPT-3's rate, at 408 it did well.
WIDEST, WIDE_RATE, WIDE_SOURCE = 408, 6e-4 * 768, "Brown et al. 2020, table 2.1: 6e-4 at width 768"


def training_tokens(
    params: int, tokens_per_param: float = CHINCHILLA_TOKENS, data_tokens: int | None = None
) -> int:
    """So many for each parameter, but no more than the data have, read EPOCHS times."""
    wanted = max(1, round(tokens_per_param * params))
    return wanted if data_tokens is None else min(wanted, EPOCHS * data_tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A learning rate and batch to begin a search at, not to end it."""

    learning_rate: float
    batch_tokens: int
    source: str
    in_range: bool  # of the networks that the rule was fitted to


def starting_point(block: str, *, depth: int, width: int, context: int, tokens: int) -> Start:
    """Batches of whole sequences, STEP_TOKENS or less, and the rate of the rule for them; of wide
    networks, which nobody trained here at rates of their own, GPT-3's."""
    batch = max(1, min(STEP_TOKENS, tokens // LEAST_STEPS) // context) * context
    rate, is_wide = auto_rate(block, width=width, batch_tokens=batch), width > WIDEST
    return Start(
        learning_rate=float(f"{WIDE_RATE / width:.{DIGITS}g}") if is_wide else rate,
        batch_tokens=batch,
        source=WIDE_SOURCE if is_wide else SOURCE,
        in_range=is_wide or not _outside(depth, width, batch, tokens // batch),
    )


def auto_rate(block: str, *, width: int, batch_tokens: int) -> float:
    """The peak rate for one network, trained on `batch_tokens` positions a step."""
    rule = packed_table(RATES)
    by_width = (width / WIDTH) ** rule["width_power"]
    by_batch = (batch_tokens / BATCH_TOKENS) ** rule["batch_power"]
    return float(f"{rule['rate'][block] * by_width * by_batch:.{DIGITS}g}")


def beyond_rates(spec: RunSpec) -> str | None:
    """A sentence where the rate of a run is the rule's, and the network none that it was fitted to.

    Rates of other rules have no range, and rates that were given by hand are nobody's mistake.
    """
    shape, recipe = spec.architecture, spec.recipe
    if recipe.learning_rate_rule != "fan-in":
        return None
    batch_tokens = recipe.batch_sequences * shape.context
    outside = _outside(shape.depth, shape.width, batch_tokens, recipe.steps)
    if not outside:
        return None
    return (
        f"automatic learning rates were fitted to other networks: {', '.join(outside)}; "
        "--tune tries neighbours"
    )


def _outside(depth: int, width: int, batch_tokens: int, steps: int) -> list[str]:
    """What of a run is beyond those that the rule was fitted to."""
    sizes = {
        "width": width, "depth": depth, "tokens a step": batch_tokens, "steps": steps,
        "training tokens": steps * batch_tokens,
    }  # fmt: skip
    return [
        f"{name} {sizes[name]:,} ({low:,} to {high:,})"
        for name, (low, high) in packed_table(RATES)["range"].items()
        if not low <= sizes[name] <= high
    ]
