"""Processes that compile kernels for a GPU where there is none."""

import importlib.util
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is made for Linux only"
)

# A program of its own: the tests of this folder interpret kernels instead of compiling them.
PROGRAM = """
import fcntl, select, sys, threading, time
from archfit.model import layers
from archfit.model.compile_ahead import CompilerProcesses, variants_of
from archfit.spec import standard_architecture
import torch

threading.Thread(target=sys.stdin.read, daemon=True).start()  # holds its lock, as a worker does
time.sleep(0.2)
lock = open("lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
shape = standard_architecture(depth=1, width=20, heads=2, vocab=7, context=33)
layers.can_fuse = layers.can_fuse_products = lambda _: True
variants = variants_of(shape, torch.device("cpu"))
compilers = CompilerProcesses(90)
norms = [each for each in variants if "norm" in each or "share_sums" in each]
for end in [compilers.compile(each) for each in norms]:
    select.select([end], [], [], 60)
lock.close()
with open("lock", "w") as again:  # the processes do not hold what this one held
    fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("free")
"""

# Whoever asks does not wait for compilers that are gone, and they do not outlive who forked them.
ORPHANS = """
import os, select, signal, sys
from archfit.model import compile_ahead

real_fork, forked = os.fork, []
def fork():
    forked.append(real_fork())
    return forked[-1]
os.fork = fork
compilers = compile_ahead.CompilerProcesses(90)
os.kill(forked[0], signal.SIGKILL)
os.waitpid(forked[0], 0)
for _ in range(2):
    assert select.select([compilers.compile("a kernel")], [], [], 20)[0]
compile_ahead.CompilerProcesses(90)
print(forked[1], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nobody_waits_for_dead_compilers_and_they_die_with_their_parent(tmp_path: Path) -> None:
    program = subprocess.run(
        [sys.executable, "-c", ORPHANS], cwd=tmp_path, text=True, capture_output=True, timeout=60
    )
    assert program.returncode == -9, program.stderr
    deadline = time.monotonic() + 10
    while _is_running(program.stdout.strip()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_running(process: str) -> bool:
    try:
        return "zombie" not in Path("/proc", process, "status").read_text()
    except OSError:
        return False


@pytest.mark.slow
def test_kernels_are_compiled_elsewhere_into_the_cache(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "cache")
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=tmp_path, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    said, problem = program.communicate(timeout=120) if program.wait(120) == 0 else ("", "")
    assert said == "free\n", problem or program.stderr
    made = {file.name for file in (tmp_path / "cache").rglob("*.cubin")}
    assert made == {"_add_norm_forward.cubin", "_add_norm_backward.cubin", "_share_sums.cubin"}


def test_launchers_are_built_one_at_a_time() -> None:
    from archfit.model.compile_ahead import in_turn

    inside: list[int] = []
    most: list[int] = []

    class Launcher:
        def __init__(self, name: int) -> None:
            inside.append(name)
            most.append(len(inside))
            time.sleep(0.01)
            inside.remove(name)
            self.name = name

    in_turn(Launcher)
    with ThreadPoolExecutor(4) as threads:
        built = list(threads.map(Launcher, range(8)))

    assert [each.name for each in built] == list(range(8))
    assert max(most) == 1
