"""The Transformer of the papers as torch modules, with every knob of their experiments."""

from archfit.model.initialise import initialise
from archfit.model.parametrisation import Parametrisation, parametrisation
from archfit.model.transformer import Transformer

__all__ = ["Parametrisation", "Transformer", "initialise", "parametrisation"]
