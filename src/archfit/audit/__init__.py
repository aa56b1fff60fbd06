"""Somebody's model in; its bottlenecks out, with evidence and a fix."""
