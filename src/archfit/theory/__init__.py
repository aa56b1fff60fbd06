"""Every bound, threshold and count of the papers, exact or certified, for the unmasked network."""

from archfit.theory.catalogue import Quantity, quantity

__all__ = ["Quantity", "quantity"]
