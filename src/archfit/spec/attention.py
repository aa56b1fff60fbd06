"""Parts of an architecture under a former name; import them from `parts`."""

from archfit.spec.parts import Attention, Linear, Softmax

__all__ = ["Attention", "Linear", "Softmax"]
