"""Refused inputs of the theory: the sentences stand in resources/refusals.toml, by names."""

from archfit.spec.errors import refusal as refusal
from archfit.spec.errors import refuse_if as refuse_if
from archfit.spec.errors import sentences as sentences
