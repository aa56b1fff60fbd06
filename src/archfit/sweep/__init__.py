"""Named sweeps as values, and the runner that turns their specs into records."""
