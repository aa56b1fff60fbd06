"""Somebody's model in; its bottlenecks out, with evidence and a fix."""

import sys

from archfit import Room

sys.modules[__name__].__class__ = Room
