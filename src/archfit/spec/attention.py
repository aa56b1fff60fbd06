"""The attention of an architecture: the one that everybody trains, or the one that was analysed."""

from dataclasses import dataclass
from typing import TypeAlias

from archfit.spec.checks import check_type


@dataclass(frozen=True, kw_only=True, slots=True)
class Softmax:
    """Causal softmax attention in pre-norm blocks with a feed-forward layer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Linear:
    """The analysed network: no softmax, no norm, no bias and no feed-forward layer.

    The theorems speak of the network without a mask; one that is trained to predict the next
    token needs the causal one.
    """

    residual: bool
    causal: bool

    def __post_init__(self) -> None:
        check_type(bool, residual=self.residual, causal=self.causal)


Attention: TypeAlias = Softmax | Linear
