"""AdamW, with the groups that a learning-rate rule asks for, and the rate of each step."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from archfit.model import Parametrisation
from archfit.spec import Recipe

# Every row of a factorised table passes through its mixing matrix, so a step of that matrix moves
# all rows at once, and by a sum of `inner` entries. At the rate of the rows the table outgrows a
# full one twofold and trains worse; at 2 / inner of it the two train alike (docs/LOG.md).
MIX_RATE = 2.0


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


class ParameterGroup(NamedTuple):
    """Parameters that share their numbers."""

    params: list[nn.Parameter]
    rate_factor: float  # of the step's learning rate
    weight_decay: float
    eps: float


class AdamW:
    """AdamW over groups of parameters, which have their moments from the start.

    A checkpoint then has where to go, and a step that runs out of memory does so before it changes
    anything. `torch.optim.AdamW` computes the same, but loads torch's compiler, only to be left
    alone by it: seconds for every process that trains.
    """

    def __init__(self, groups: list[ParameterGroup], recipe: Recipe, device: torch.device) -> None:
        self.groups, self.recipe, self.device = groups, recipe, device
        self.rate_factors = [group.rate_factor for group in groups]
        # A recorded step of a GPU reads its rates from a tensor; elsewhere they are numbers.
        self.rates_G = torch.zeros(len(groups), device=device)
        self.rates: list[float | Tensor] = [*self.rates_G.unbind()]
        self.state = {
            parameter: {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
            for group in groups
            for parameter in group.params
        }

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of every group, in place."""
        rates = [rate * factor for factor in self.rate_factors]
        if self.device.type == "cuda":
            self.rates_G.copy_(torch.tensor(rates))
        else:
            self.rates = [*rates]

    @torch.no_grad()
    def step(self) -> None:
        """Move all parameters that have a gradient, in place."""
        for group, rate in zip(self.groups, self.rates, strict=True):
            moved = [parameter for parameter in group.params if parameter.grad is not None]
            states = [self.state[parameter] for parameter in moved]
            adamw(
                [*moved],
                [parameter.grad for parameter in moved if parameter.grad is not None],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                capturable=self.device.type == "cuda",
                fused=self.device.type in ("cpu", "cuda"),
                amsgrad=False,
                beta1=self.recipe.beta1,
                beta2=self.recipe.beta2,
                lr=rate,
                weight_decay=group.weight_decay,
                eps=group.eps,
                maximize=False,
            )

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for parameter in self.state:
            parameter.grad = None


def build_optimiser(
    model: nn.Module, recipe: Recipe, numbers: Parametrisation, device: torch.device
) -> AdamW:
    """AdamW over all parameters; weight decay on matrices only."""
    named = list(model.named_parameters())
    in_blocks = [p for name, p in named if name.startswith("trunk.blocks.")]
    tables = [p for name, p in named if name.endswith(".rows_RI")]
    mixes = [p for name, p in named if name.endswith(".mix_ID")]
    last_norm = [p for name, p in named if name.startswith("trunk.norm.")]
    hidden, vectors = [p for p in in_blocks if p.ndim > 1], [p for p in in_blocks if p.ndim == 1]
    decay, block_eps, table_eps = recipe.weight_decay, numbers.block_epsilon, numbers.table_epsilon
    hidden_decay = decay * numbers.hidden_decay_factor
    groups = [
        ParameterGroup(hidden, numbers.hidden_rate_factor, hidden_decay, block_eps),
        ParameterGroup(vectors, 1.0, 0.0, block_eps),
        ParameterGroup(tables, 1.0, decay, table_eps),
        *(ParameterGroup([mix], min(1.0, MIX_RATE / len(mix)), decay, table_eps) for mix in mixes),
        ParameterGroup(last_norm, 1.0, 0.0, table_eps),
    ]
    return AdamW([group for group in groups if group.params], recipe, device)
