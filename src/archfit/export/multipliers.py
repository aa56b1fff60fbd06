"""The constant factors inside a trained network, which GPT-2 does not have."""

import math
from dataclasses import dataclass
from typing import Literal

from archfit.spec import Architecture

BASE_WIDTH, BASE_DEPTH, BASE_HEAD_DIM = 256, 2, 64  # of completep, as `model` has them


@dataclass(frozen=True, kw_only=True, slots=True)
class Multipliers:
    """Factors that move into the weights they multiply."""

    residual: float  # of what a branch adds to the stream
    logit: float
    query: float  # on top of 1 / sqrt(head_dim)


def multipliers(architecture: Architecture, rule: Literal["standard", "completep"]) -> Multipliers:
    """Those of a learning-rate rule; under `standard` all are one."""
    if rule == "standard":
        return Multipliers(residual=1.0, logit=1.0, query=1.0)
    return Multipliers(
        residual=BASE_DEPTH / architecture.depth,
        logit=BASE_WIDTH / architecture.width,
        query=math.sqrt(BASE_HEAD_DIM / architecture.head_dim),
    )
