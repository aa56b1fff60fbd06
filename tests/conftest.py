"""Settings for all tests."""

from hypothesis import settings

# Machines that run tests are slow at times; how long an example takes says nothing about the code.
settings.register_profile("archfit", deadline=None)
settings.load_profile("archfit")
