"""What a learning-rate rule makes of a shape: multipliers, initial sizes, rates.

`standard` is GPT-2's: every matrix starts at 0.02, the projections back into the stream at
0.02 / sqrt(2 depth), one learning rate for all. Its best rate moves with depth and width, so a
sweep over depth at one rate compares tunings as much as depths. Small networks learn slowly from
there, and seeds scatter.

`fan-in` is the rule that `auto` rates belong to (docs/rates.md): matrices start at
sqrt(0.4 / width), projections at that over sqrt(2 depth), tables at 0.07, one rate for all.

`completep` (Dey et al. 2025, arXiv:2505.01618, table 1 with alpha = 1) makes the best rate stay
where it is. With m_d = width / 256 and m_L = depth / 2, their base shape:

    stream    x + branch(x) / m_L         hidden std      sigma / sqrt(m_d)
    logits    (W h) / m_d                 hidden rate     eta / m_d
    scores    q k sqrt(64) / head_dim     hidden decay    lambda m_d
    epsilon   hidden eps / (m_d m_L)      tables          eps / m_d

The peak learning rate of a recipe is then that of the base shape.
"""

import math
from dataclasses import dataclass

from archfit.spec import Architecture
from archfit.spec.run import LearningRateRule
from archfit.spec.run_options import BASE_DEPTH, BASE_HEAD_DIM, BASE_WIDTH, FAN_IN_VARIANCE

INITIAL_STD = 0.02
FAN_IN_TABLE_STD = 0.07
EPSILON = 1e-8  # Adam's


@dataclass(frozen=True, kw_only=True, slots=True)
class Parametrisation:
    """The numbers that depend on the rule; `hidden` are the matrices inside blocks."""

    residual_multiplier: float
    logit_multiplier: float
    score_multiplier: float
    hidden_std: float
    projection_std: float  # of the matrices that write into the stream
    table_std: float  # of tokens and positions
    hidden_rate_factor: float
    hidden_decay_factor: float
    block_epsilon: float
    table_epsilon: float


def parametrisation(architecture: Architecture, rule: LearningRateRule) -> Parametrisation:
    """The numbers of a rule for one shape."""
    width, depth, head_dim = architecture.width, architecture.depth, architecture.head_dim
    is_completep, is_fan_in = rule == "completep", rule == "fan-in"
    wider, deeper = (width / BASE_WIDTH, depth / BASE_DEPTH) if is_completep else (1.0, 1.0)
    std = math.sqrt(FAN_IN_VARIANCE / width) if is_fan_in else INITIAL_STD / math.sqrt(wider)
    base_score = math.sqrt(BASE_HEAD_DIM) / head_dim
    return Parametrisation(
        residual_multiplier=1 / deeper, logit_multiplier=1 / wider,
        score_multiplier=base_score if is_completep else 1 / math.sqrt(head_dim),
        hidden_std=std,
        projection_std=std if is_completep else std / math.sqrt(2 * depth),
        table_std=FAN_IN_TABLE_STD if is_fan_in else INITIAL_STD,
        hidden_rate_factor=1 / wider, hidden_decay_factor=wider,
        block_epsilon=EPSILON / (wider * deeper), table_epsilon=EPSILON / wider,
    )  # fmt: skip
