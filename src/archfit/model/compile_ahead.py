"""Kernels are compiled before a network needs them, many at a time.

One after another, as a first step meets them, they take several times as long. Triton compiles half
of the time in Python, where threads wait for each other and for runs that are under way, so
processes of their own compile into Triton's cache on disk. They never touch a GPU. Each kernel is
then run once on it, on next to nothing, in a thread; where the cache has nothing, that compiles it.

Which kernels there will be is noted while a step of one block is made without them. A variant is a
line of JSON: where the kernel is, what it is given, and all that is compiled into it.
"""

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NoReturn

import torch
from torch import Tensor

from archfit.model.gradient_shares import GradientShares
from archfit.model.layers import WIDEST_FUSED_HEAD, token_losses
from archfit.model.parametrisation import parametrisation
from archfit.model.row_kernels import _add_norm_forward
from archfit.model.transformer import Transformer
from archfit.spec import Architecture

LOADERS, MOST_COMPILERS = 12, 12  # threads, processes
LONGEST_WAIT = 60_000  # milliseconds for another process
LONGEST_VARIANT = 1 << 16  # bytes
END_WITH_PARENT = 1  # Linux's PR_SET_PDEATHSIG
ROOM = 64  # numbers of a tensor that a kernel is run on
KERNEL = type(_add_norm_forward)  # Triton's class of kernels, or its interpreter's
RUN, LAUNCH = KERNEL.run, ("num_warps", "num_stages")  # the latter are how a kernel is launched

_compiling: dict[object, Future[None]] = {}  # of this process; each variant once


def compile_ahead(architecture: Architecture, device: torch.device) -> list[Future[None]]:
    """Begin to compile the kernels of a network in bfloat16; other runs go on.

    What is not foreseen here is compiled by the first step.
    """
    compilers = _compilers(device) if device.type == "cuda" else None
    try:
        variants = variants_of(replace(architecture, depth=1), device)
    except torch.OutOfMemoryError:
        return []
    found = []
    for variant in variants:
        known = _compiling.get((device, variant))
        if known is None or (known.done() and known.exception()):  # memory may be free again
            compiled = compilers.compile(variant) if compilers is not None else None
            known = _loaders(device).submit(_load, variant, device, compiled)
            _compiling[device, variant] = known
        found.append(known)
    return found


@cache
def variants_of(shape: Architecture, device: torch.device) -> tuple[str, ...]:
    """All kernels of a step, also of one whose gradients have no place for their shares."""
    with torch.device(device):
        model = Transformer(shape, parametrisation(shape, "standard"), dropout=0.0)
    size = shape.context * shape.input.tokens_per_position
    tokens_BS = torch.zeros((1, size), dtype=torch.int64, device=device)

    def pass_both_ways() -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda"):
            losses_M = token_losses(model(tokens_BS), tokens_BS, shape.input)
        losses_M.sum().backward()

    with _noted() as found:
        pass_both_ways()
        if shape.head_dim <= WIDEST_FUSED_HEAD:
            shares = GradientShares(model, batch=1)
            pass_both_ways()
            shares.add_up()
    return tuple(found)


@contextlib.contextmanager
def _noted() -> Iterator[dict[str, None]]:
    """Variants that this process would launch meanwhile, were it not for this."""
    found: dict[str, None] = {}

    def note(kernel: Any, *given: object, **options: Any) -> None:
        kept = {
            name: value if name.isupper() or name in LAUNCH else _small(value)  # tiles and flags
            for name, value in options.items()
            if name not in ("grid", "warmup")
        }
        place = kernel.fn.__module__, kernel.fn.__name__
        found[json.dumps((*place, [_small(each) for each in given], kept))] = None

    KERNEL.run = note
    try:
        yield found
    finally:
        KERNEL.run = RUN


def _small(given: object) -> object:
    """A tensor by its numbers, and 1 for any size, with which a kernel touches little memory."""
    if isinstance(given, Tensor):
        return str(given.dtype).removeprefix("torch.")
    return type(given)(1) if isinstance(given, int | float) else None


def _run(variant: str, device: torch.device, *, is_only_compiled: bool) -> Any:
    module, name, given, options = json.loads(variant)
    for at, each in enumerate(given):
        if isinstance(each, str):
            given[at] = torch.zeros(ROOM, dtype=getattr(torch, each), device=device)
    kernel = getattr(importlib.import_module(module), name)
    return RUN(kernel, *given, grid=(1,), warmup=is_only_compiled, **options)


def _load(variant: str, device: torch.device, compiled: int | None) -> None:
    """Run a kernel here when it has been compiled elsewhere, or compile it where it was not."""
    if compiled is not None:
        end = select.poll()
        end.register(compiled, select.POLLIN)
        end.poll(LONGEST_WAIT)
        os.close(compiled)
    _run(variant, device, is_only_compiled=False)


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
        self.jobs, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            _compile_forever(theirs, capability)
        theirs.close()

    def compile(self, variant: str) -> int:
        """Ask for a kernel; a pipe that ends when it is compiled, or will never be."""
        end, kept_open = os.pipe()
        with contextlib.suppress(OSError):  # the fork has died
            socket.send_fds(self.jobs, [variant.encode()], [kept_open])
        os.close(kept_open)
        return end


def _compile_forever(jobs: socket.socket, capability: int) -> NoReturn:
    """The fork: compile what is asked for, each in a fork of its own, until nobody can ask."""
    from triton.backends.nvidia.driver import CudaLauncher

    try:
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        warnings.simplefilter("ignore")  # the parent says them, too
        os.dup2(jobs.fileno(), 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))  # what the parent holds, locks included
        jobs = socket.socket(fileno=3)
        torch.set_num_threads(1)  # the parent's threads are not here
        _promise_gpu(capability)
        most, running = min(MOST_COMPILERS, len(os.sched_getaffinity(0))), 0
        while (job := socket.recv_fds(jobs, LONGEST_VARIANT, 1))[0]:
            variant, (kept_open, *_), *_ = job
            if running == most:
                os.wait()
                running -= 1
            if os.fork() == 0:
                kernel = _run(variant.decode(), torch.device("cpu"), is_only_compiled=True)
                with contextlib.suppress(Exception):  # newer Tritons have one, on a GPU
                    CudaLauncher(kernel.src, kernel.metadata)
                break  # and end, and with it the pipe
            os.close(kept_open)
            running += 1
    finally:
        os._exit(0)


def _promise_gpu(capability: int) -> None:
    """Let kernels of this process be compiled for a GPU that it does not have."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    no_gpu = SimpleNamespace(  # what Triton asks of a driver before it compiles
        get_current_target=lambda: GPUTarget("cuda", capability, 32),
        get_current_device=lambda: 0,
        get_current_stream=lambda _device: 0,
    )
    driver.set_active(no_gpu)
