"""The learning rate of each step."""

import math

from archfit.spec import Recipe


def learning_rate(step: int, recipe: Recipe) -> float:
    """Linear warm-up to the peak, then half a cosine down to zero; steps count from 0.

    peak (step + 1) / warmup                                  while step < warmup
    peak (1 + cos(pi (step - warmup) / (steps - warmup))) / 2   after that
    """
    peak, warmup = recipe.peak_learning_rate, recipe.warmup_steps
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / (recipe.steps - warmup)
    return peak * (1 + math.cos(math.pi * done)) / 2
