"""The runs that ship with archfit, and what they say about the papers' findings."""
