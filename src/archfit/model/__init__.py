"""The Transformer of the papers as torch modules, with every knob of their experiments."""

from archfit.model.parametrisation import Parametrisation, parametrisation
from archfit.model.transformer import Transformer, initialise

__all__ = ["Parametrisation", "Transformer", "initialise", "parametrisation"]
