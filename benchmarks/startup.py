"""How long short commands take end to end, against `python -c "import numpy"`.

CPU seconds of the whole process (user + system), medians of alternating runs, and the ratio.
Run:    python benchmarks/startup.py
Expect: a ratio of at most 3 for `theory`; plan and audit below 0.7 s.
"""

import resource
import statistics
import subprocess
import sys
from pathlib import Path

CONFIG = Path(__file__).parents[1] / "tests" / "audit" / "configs" / "gemma-3-4b-it.json"
REPEATS = 15
ARCHFIT = [sys.executable, "-m", "archfit"]
COMMANDS = {
    "import numpy": [sys.executable, "-c", "import numpy"],
    "archfit theory C L=3": [*ARCHFIT, "theory", "C", "L=3"],
    "archfit plan --params 125M": [*ARCHFIT, "plan", "--params", "125M"],
    "archfit audit config.json": [*ARCHFIT, "audit", str(CONFIG)],
    "archfit audit gpt2": [*ARCHFIT, "audit", "gpt2"],
}


def cpu_seconds(command: list[str]) -> float:
    """User and system time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Time all commands in turn, so that a slow moment of the machine hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(REPEATS):
        for name, command in COMMANDS.items():
            times[name].append(cpu_seconds(command))
    base = statistics.median(times["import numpy"])
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(f"{name:30} {median * 1000:7.1f} ms   {median / base:5.2f}x import numpy")


if __name__ == "__main__":
    main()
