"""`RunOptions` under its former name, until every room imports it from `run_options`."""

from archfit.spec.run_options import ATTENTIONS, BASE_WIDTH, usual_rate
from archfit.spec.run_options import RunOptions as AskedRun

__all__ = ["ATTENTIONS", "BASE_WIDTH", "AskedRun", "usual_rate"]
