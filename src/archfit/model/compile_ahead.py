"""Kernels are compiled before a network needs them, many at a time.

One after another, as a first step meets them, they take several times as long. Triton compiles half
of the time in Python, where threads wait for each other and for runs that are under way, so
processes of their own compile into Triton's cache on disk. They never touch a GPU. Each kernel is
then run once on it, on a few rows, in a thread; where the cache has nothing, that compiles it.
"""

import contextlib
import ctypes
import os
import signal
import threading
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NoReturn

import torch
from torch import Tensor

from archfit.model.embedding_kernels import look_up_work
from archfit.model.feed_forward_kernels import feed_forward_work
from archfit.model.fused_attention import attention_work
from archfit.model.gradient_shares import share_work
from archfit.model.layers import WIDEST_FUSED_HEAD
from archfit.model.product_kernels import product_work
from archfit.model.row_kernels import row_work
from archfit.model.tiles import Work
from archfit.spec import Architecture, canonical_json, loads

LOADERS, MOST_COMPILERS = 12, 12  # threads, processes
LONGEST_WAIT = 60.0  # seconds for another process
END_WITH_PARENT = 1  # Linux's PR_SET_PDEATHSIG

_compiling: dict[object, Future[None]] = {}  # of this process; each variant once


def compile_ahead(architecture: Architecture, device: torch.device) -> list[Future[None]]:
    """Begin to compile the kernels of a network in bfloat16; other runs go on.

    What is not foreseen here is compiled by the first step.
    """
    found = []
    for at, key in enumerate(_work(architecture, device)):
        known = _compiling.get((device, *key))
        if known is None or (known.done() and known.exception()):  # memory may be free again
            on_gpu = device.type == "cuda"
            compiled = _compilers(device).compile(architecture, at) if on_gpu else None
            known = _loaders(device).submit(_load, architecture, device, at, compiled)
            _compiling[device, *key] = known
        found.append(known)
    return found


def _load(
    architecture: Architecture, device: torch.device, at: int, compiled: Future[None] | None
) -> None:
    """Run a kernel here when it has been compiled elsewhere, or compile it where it was not."""
    if compiled is not None:
        with contextlib.suppress(TimeoutError):
            compiled.result(LONGEST_WAIT)
    [*_work(architecture, device).values()][at]()


@cache
def _loaders(device: torch.device) -> ThreadPoolExecutor:
    if device.type != "cuda":
        return ThreadPoolExecutor(LOADERS)
    from triton.backends.nvidia.driver import CudaLauncher

    in_turn(CudaLauncher)
    # A new thread starts on the first GPU of the machine, whichever this process trains on.
    return ThreadPoolExecutor(LOADERS, initializer=partial(torch.cuda.set_device, device))


def in_turn(launcher: type) -> None:
    """Let one thread at a time build a launcher.

    Until Triton 3.6 launchers are C modules of one name. Python, asked for such a file again, puts
    its functions into the module that was loaded last under that name; a thread that has just
    loaded that one would take the launcher of another kernel out of it.
    """
    build, lock = launcher.__init__, threading.Lock()  # type: ignore[misc]

    def build_alone(self: object, *given: object) -> None:
        with lock:
            build(self, *given)

    launcher.__init__ = build_alone  # type: ignore[misc]


@cache
def _compilers(device: torch.device) -> "CompilerProcesses":
    major, minor = torch.cuda.get_device_capability(device)
    return CompilerProcesses(10 * major + minor)


class CompilerProcesses:
    """A fork of this process that forks once more for every kernel.

    `multiprocessing` would not do: its forks close standard input, which blocks for ever while a
    thread of the parent reads it, and its other ways import the user's program again.
    """

    def __init__(self, capability: int) -> None:
        jobs_out, jobs_in = os.pipe()
        answers_out, answers_in = os.pipe()
        if os.fork() == 0:
            _compile_forever(jobs_out, answers_in, capability)
        os.close(jobs_out)
        os.close(answers_in)
        self.jobs = os.fdopen(jobs_in, "w", encoding="utf-8")
        self.waiting: list[Future[None]] = []
        self.lock = threading.Lock()
        threading.Thread(target=self._listen, args=(answers_out,), daemon=True).start()

    def compile(self, architecture: Architecture, at: int) -> Future[None]:
        """Ask for a kernel of a network; done when it is compiled, or will never be."""
        answer: Future[None] = Future()
        with self.lock:
            self.waiting.append(answer)
            try:
                self.jobs.write(f"{len(self.waiting) - 1} {at} {canonical_json(architecture)}\n")
                self.jobs.flush()
            except OSError:  # it has died
                answer.set_result(None)
        return answer

    def _listen(self, answers: int) -> None:
        with os.fdopen(answers, encoding="utf-8") as lines:
            for line in lines:
                with self.lock:
                    self.waiting[int(line)].set_result(None)
        with self.lock:
            for answer in self.waiting:
                if not answer.done():
                    answer.set_result(None)


def _compile_forever(jobs: int, answers: int, capability: int) -> NoReturn:
    """The fork: compile what is asked for, each in a fork of its own, until nobody can ask."""
    try:
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        warnings.simplefilter("ignore")  # the parent says them, too
        first = 3  # what the parent holds, locks included, is the parent's
        for file in (*sorted((jobs, answers)), os.sysconf("SC_OPEN_MAX")):
            os.closerange(first, file)
            first = file + 1
        torch.set_num_threads(1)  # the parent's threads are not here
        _launch_nothing(capability)
        most, running = min(MOST_COMPILERS, len(os.sched_getaffinity(0))), 0
        for line in os.fdopen(jobs, encoding="utf-8"):
            name, at, architecture = line.split(" ", 2)
            if running == most:
                os.wait()
                running -= 1
            if os.fork() == 0:
                try:
                    _load(loads(Architecture, architecture), torch.device("cpu"), int(at), None)
                finally:
                    os.write(answers, f"{name}\n".encode())
                    os._exit(0)
            running += 1
    finally:
        os._exit(0)


def _launch_nothing(capability: int) -> None:
    """Let kernels of this process be compiled for a GPU, and none be launched."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.driver import CudaLauncher
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    no_gpu = SimpleNamespace(  # what Triton asks of a driver before it compiles
        get_current_target=lambda: GPUTarget("cuda", capability, 32),
        get_current_device=lambda: 0,
        get_current_stream=lambda _device: 0,
    )
    driver.set_active(no_gpu)
    run = JITFunction.run

    def compile_only(*given: Any, **options: Any) -> Any:
        kernel = run(*given, **options | {"warmup": True})
        with contextlib.suppress(Exception):  # newer Tritons have one launcher, on a GPU
            CudaLauncher(kernel.src, kernel.metadata)
        return kernel

    JITFunction.run = compile_only


def _work(architecture: Architecture, device: torch.device) -> Work:
    """A small run of each kernel, by what is compiled into it."""

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(shape, device=device, dtype=torch.bfloat16)

    width, has_bias = architecture.width, architecture.block == "gpt2"
    inner, units = architecture.heads * architecture.head_dim, architecture.feed_forward
    keys_and_values = 2 * architecture.key_value_heads * architecture.head_dim
    up, is_fused = units if has_bias else 2 * units, architecture.head_dim <= WIDEST_FUSED_HEAD
    matrices = (inner + keys_and_values, width), (width, inner), (up, width), (width, units)
    return {
        **row_work(width, architecture.input.vocab, zeros, has_bias=has_bias),
        **(attention_work(architecture, zeros) if is_fused else {}),
        **feed_forward_work(width, units, zeros, is_gated=not has_bias),
        **look_up_work(architecture.input.dimensions, width, zeros),
        **{key: run for each in matrices for key, run in product_work(*each, zeros).items()},
        **share_work(device),
    }
