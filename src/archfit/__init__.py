"""Which Transformer architecture fits my data?"""

__version__ = "0.1.0"
