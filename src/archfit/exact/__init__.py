"""Separation ranks of real networks, measured with a certificate."""
