"""Parts of an architecture under a former name; import them from `parts`."""

from archfit.spec.parts import Input, Patches, Tokens

__all__ = ["Input", "Patches", "Tokens"]
