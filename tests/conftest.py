"""Settings for all tests."""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes that tests run in
os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers or datasets load their hub

from hypothesis import HealthCheck, settings

# Machines that run tests are slow at times; how long an example takes says nothing about the code.
settings.register_profile("archfit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("archfit")


def pytest_collection_finish() -> None:
    """Numbers that repeat, on one thread a worker; rooms without torch do not wait for it."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)
        torch.set_deterministic_debug_mode("error")  # use_… would load torch's compiler for it
