"""Networks with random weights, norms and biases: nothing hides behind a zero or a one."""

from typing import Literal

import torch

from archfit.model import Transformer, parametrisation
from archfit.model.layers import RowTable
from archfit.spec import Architecture


def random_model(
    architecture: Architecture,
    *,
    rule: Literal["standard", "completep"] = "standard",
    dtype: torch.dtype = torch.float32,
) -> Transformer:
    """A network in evaluation mode; a matrix keeps the size of what it multiplies."""
    numbers = parametrisation(architecture, rule)
    model = Transformer(architecture, numbers, dropout=0.0).to(dtype).eval()
    generator = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        std = weight.shape[-1] ** -0.5 if weight.dim() == 2 else 0.5
        weight.data.normal_(0.0, std, generator=generator)
    return model


def position_table(model: Transformer) -> RowTable:
    """The table of a network that has one."""
    assert model.embedding.positions is not None
    return model.embedding.positions


def random_tokens(architecture: Architecture, *, batch: int = 2) -> torch.Tensor:
    """Rows of `context` positions."""
    length = architecture.context * architecture.input.tokens_per_position
    generator = torch.Generator().manual_seed(1)
    return torch.randint(architecture.input.vocab, (batch, length), generator=generator)
