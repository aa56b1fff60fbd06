"""Inside the tests: which faults' statements does each test run, and how long does it take?

A plug-in for pytest (`-p mutation_probe`), and the function that probed sources call.
"""

import json
import os
import sys
from pathlib import Path
from types import FrameType

import pytest

HITS, TIMES = "MUTATION_HITS", "MUTATION_TIMES"  # environment: files to write
_seen: set[tuple[int, str]] = set()
_seconds: dict[str, float] = {}
_failed: set[str] = set()


def hit(number: int) -> None:
    """A statement runs; say once in which test. Processes that a test starts say it, too."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if (number, test) not in _seen:
        _seen.add((number, test))
        with Path(os.environ[HITS]).open("a") as file:
            file.write(f"{number}\t{'' if _is_importing() else test}\n")


def _is_importing() -> bool:
    """Whether a module of archfit is being loaded, which only the first test of many does."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "<module>" and "archfit" in str(frame.f_globals.get("__name__")):
            return True
        frame = frame.f_back
    return False


def pytest_runtest_setup() -> None:
    """Forget what earlier tests left in caches, so that each runs all that it depends on."""
    for name, module in list(sys.modules.items()):
        if name.startswith("archfit."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what a test takes."""
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write the times of tests that passed."""
    passed = {test: time for test, time in _seconds.items() if test not in _failed}
    Path(os.environ[TIMES]).write_text(json.dumps(passed))
