"""The whole journey: data, plan, the experiment that could refute it, and the report."""

import sys

from archfit import Room

sys.modules[__name__].__class__ = Room
