"""Every chart that archfit draws. Only what draws imports these files: altair is slow to load."""

DEEPEST_BOUNDS = 10_000  # layers up to which bounds are computed over depth for a chart or a page
