"""The peak learning rate that `auto` stands for: a rule fitted to our own runs (docs/rates.md).

    rate = constant of the block * (width / 64)^a * (tokens a step / 8192)^b

Neither depth nor the number of training tokens made a difference. Powers and the range of the runs
stand in resources/rates.toml.
"""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from archfit.spec.run import RunSpec

DIGITS = 3  # of a rate: enough, and specs stay readable
WIDTH, BATCH_TOKENS = 64, 8192  # where a rate is the constant of its block


@cache
def _table() -> dict[str, Any]:
    file = resources.files("archfit.resources").joinpath("rates.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def auto_rate(block: str, *, width: int, batch_tokens: int) -> float:
    """The peak rate for one network, trained on `batch_tokens` positions a step."""
    rule = _table()
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
    sizes = {
        "width": shape.width, "depth": shape.depth, "tokens a step": batch_tokens,
        "steps": recipe.steps, "training tokens": recipe.steps * batch_tokens,
    }  # fmt: skip
    outside = [
        f"{name} {size:,} ({low:,} to {high:,})"
        for name, size in sizes.items()
        for low, high in [_table()["range"][name]]
        if not low <= size <= high
    ]
    if not outside:
        return None
    return (
        f"automatic learning rates were fitted to other networks: {', '.join(outside)}; "
        "--tune tries neighbours"
    )
