"""The peak learning rate that `auto` stands for: a rule fitted to our own runs (docs/rates.md).

    ln rate = constant + a ln width + b ln depth + c ln tokens + d ln batch      for each block

Coefficients and the range of the runs stand in resources/rates.toml.
"""

import math
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from archfit.spec.run import RunSpec

DIGITS = 3  # of a rate: enough, and specs stay readable
SIZES = ("width", "depth", "tokens", "batch_tokens")


@cache
def _table() -> dict[str, Any]:
    file = resources.files("archfit.resources").joinpath("rates.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def auto_rate(block: str, *, width: int, depth: int, tokens: int, batch_tokens: int) -> float:
    """The peak rate for one network, trained on `tokens` positions, `batch_tokens` a step."""
    rule, sizes = _table()[block], (width, depth, tokens, batch_tokens)
    terms = [rule[name] * math.log(size) for name, size in zip(SIZES, sizes, strict=True)]
    return float(f"{math.exp(rule['constant'] + math.fsum(terms)):.{DIGITS}g}")


def beyond_rates(spec: RunSpec) -> str | None:
    """A sentence where the rate of a run is the rule's, and the network none that it was fitted to.

    Rates of other rules have no range, and rates that were given by hand are nobody's mistake.
    """
    shape, recipe = spec.architecture, spec.recipe
    if recipe.learning_rate_rule != "fan-in":
        return None
    batch_tokens = recipe.batch_sequences * shape.context
    tokens = recipe.steps * batch_tokens
    sizes = dict(zip(SIZES, (shape.width, shape.depth, tokens, batch_tokens), strict=True))
    words = {"tokens": "training tokens", "batch_tokens": "tokens a step"}
    outside = [
        f"{words.get(name, name)} {size:,} ({low:,} to {high:,})"
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
