"""Vocabulary sizes under a former name; import them from `parts`."""

from archfit.spec.parts import BYTE_TOKENS as BYTES
from archfit.spec.parts import bpe_vocab_for

__all__ = ["BYTES", "bpe_vocab_for"]
