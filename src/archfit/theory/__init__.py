"""Every bound, threshold and law of the papers, exact or certified; all for the unmasked network."""

from archfit.theory.catalogue import Quantity, quantity

__all__ = ["Quantity", "quantity"]
