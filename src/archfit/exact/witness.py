"""Weights that reach a lower bound on the separation rank, built and checked.

A rank that one choice of weights reaches, almost all weights reach, so a checked witness is a
computation that anybody can repeat in place of a proof.
"""

from typing import TypeAlias

from archfit.exact.residues import WITNESS_PRIME, check_witness_prime
from archfit.exact.witness_base import Base, build_base
from archfit.exact.witness_check import WitnessCheck, check_witness
from archfit.exact.witness_embedded import (
    Convolution,
    Vocabulary,
    build_convolution,
    build_vocabulary,
)
from archfit.exact.witness_long import LongVocabulary, build_long_vocabulary
from archfit.exact.witness_monomial import Monomial, build_monomial
from archfit.exact.witness_network import NetworkShape
from archfit.exact.witness_parts import Witness
from archfit.exact.witness_simplified import Simplified, build_simplified

__all__ = [
    "Base",
    "Convolution",
    "LongVocabulary",
    "Monomial",
    "NetworkShape",
    "Recipe",
    "Simplified",
    "Vocabulary",
    "Witness",
    "WitnessCheck",
    "build_witness",
    "check_witness",
]

Recipe: TypeAlias = Base | Simplified | Convolution | Vocabulary | LongVocabulary | Monomial


def build_witness(recipe: Recipe, *, prime: int = WITNESS_PRIME) -> Witness:
    """The weights and inputs of the recipe, modulo the prime."""
    check_witness_prime(prime)
    match recipe:
        case Base():
            return build_base(recipe, prime)
        case Simplified():
            return build_simplified(recipe, prime)
        case Convolution():
            return build_convolution(recipe, prime)
        case Vocabulary():
            return build_vocabulary(recipe, prime)
        case LongVocabulary():
            return build_long_vocabulary(recipe, prime)
        case Monomial():
            return build_monomial(recipe, prime)
