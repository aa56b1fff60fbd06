"""The whole journey: data, plan, the experiment that could refute it, and the report."""
