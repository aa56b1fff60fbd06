"""AdamW, with the groups that a learning-rate rule asks for."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from archfit.model import Parametrisation
from archfit.spec import Recipe

# Every row of a factorised table passes through its mixing matrix, so a step of that matrix moves
# all rows at once, and by a sum of `inner` entries. At the rate of the rows the table outgrows a
# full one twofold and trains worse; at 2 / inner of it the two train alike (docs/LOG.md).
MIX_RATE = 2.0


def build_optimiser(
    model: nn.Module, recipe: Recipe, numbers: Parametrisation, device: torch.device
) -> torch.optim.AdamW:
    """AdamW over all parameters; weight decay on matrices only."""
    named = list(model.named_parameters())
    is_in_block = [name.startswith("trunk.blocks.") for name, _ in named]
    hidden = [p for (_, p), inside in zip(named, is_in_block, strict=True) if inside and p.ndim > 1]
    small = [p for (_, p), inside in zip(named, is_in_block, strict=True) if inside and p.ndim == 1]
    tables = [p for name, p in named if name.endswith(".rows_RI")]
    mixes = [p for name, p in named if name.endswith(".mix_ID")]
    last_norm = [p for name, p in named if name.startswith("trunk.norm.")]
    decay = recipe.weight_decay
    groups = [
        _group(
            hidden,
            rate_factor=numbers.hidden_rate_factor,
            weight_decay=decay * numbers.hidden_decay_factor,
            eps=numbers.block_epsilon,
        ),
        _group(small, rate_factor=1.0, weight_decay=0.0, eps=numbers.block_epsilon),
        _group(tables, rate_factor=1.0, weight_decay=decay, eps=numbers.table_epsilon),
        *[
            _group(
                [mix],
                rate_factor=min(1.0, MIX_RATE / len(mix)),
                weight_decay=decay,
                eps=numbers.table_epsilon,
            )
            for mix in mixes
        ],
        _group(last_norm, rate_factor=1.0, weight_decay=0.0, eps=numbers.table_epsilon),
    ]
    on_gpu = device.type == "cuda"
    rate = torch.zeros((), device=device) if on_gpu else 0.0  # a captured step reads a tensor
    optimiser = torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=rate,
        betas=(recipe.beta1, recipe.beta2),
        fused=device.type in ("cpu", "cuda"),
        capturable=on_gpu,
    )
    if on_gpu:
        for group in optimiser.param_groups:
            group["lr"] = torch.zeros((), device=device)
    _make_moments(optimiser)
    return optimiser


def set_learning_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of every group, in place."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate * group["rate_factor"])
        else:
            group["lr"] = rate * group["rate_factor"]


def _group(
    params: Iterable[nn.Parameter], *, rate_factor: float, weight_decay: float, eps: float
) -> dict[str, object]:
    return {
        "params": list(params),
        "rate_factor": rate_factor,
        "weight_decay": weight_decay,
        "eps": eps,
    }


def _make_moments(optimiser: torch.optim.AdamW) -> None:
    """Give every parameter its state now: a checkpoint then has where to go, and a step that
    runs out of memory does so before it changes anything."""
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            optimiser.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
