"""Refused inputs of the theory: the sentences stand in resources/refusals.toml, by names."""

from archfit.spec.refusal import refusal as refusal
from archfit.spec.refusal import refuse_if as refuse_if
from archfit.spec.refusal import sentences as sentences
