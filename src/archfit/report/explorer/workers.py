"""Processes that compute answers, and answers that were given before.

A process that takes too long ends or is killed, and is replaced. Questions decide answers, so that
those that are kept stay right.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from archfit.report.explorer.exchange import (
    HEAD,
    WAIT_SECONDS,
    WALL_SECONDS,
    ExplorerRequest,
    Reply,
)

MODULE = "archfit.report.explorer.answers"
SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # one core for each


class TooLateError(Exception):
    """The answer takes longer than is allowed."""


class BusyError(Exception):
    """Too many wait already."""


class CrashedError(Exception):
    """The process ended without an answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolLimits:
    """How much a pool takes on."""

    processes: int
    most_waiting: int
    seconds: float  # that an answer may compute
    wall_seconds: float = WALL_SECONDS  # until it is there; more, since others use the machine, too
    wait_seconds: float = WAIT_SECONDS


class WorkerPool:
    """Requests in one line, for as many processes as it has."""

    def __init__(self, name: str, limits: PoolLimits) -> None:
        self._name, self._limits = name, limits
        self._idle: asyncio.Queue[asyncio.subprocess.Process] = asyncio.Queue()
        self._all: set[asyncio.subprocess.Process] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._is_stopping = False

    async def start(self) -> None:
        """Start its processes; they are ready when this returns."""
        await asyncio.gather(*(self._add() for _ in range(self._limits.processes)))

    async def stop(self) -> None:
        """End its processes; those that are being started or ended are waited for."""
        self._is_stopping = True
        await asyncio.gather(*self._starting, return_exceptions=True)
        for process in tuple(self._all):
            await self._end(process)

    async def answer(self, request: ExplorerRequest) -> Reply:
        """The answer of the next process that is free."""
        process = await self._free_process()
        try:
            async with asyncio.timeout(self._limits.wall_seconds):
                reply = await _exchanged(process, request)
        except (asyncio.IncompleteReadError, ConnectionError) as problem:
            # It has ended by itself. How is read before anything else touches it: a signal to it
            # would collect its status, and asyncio would not learn it.
            is_late = await self._ended(process) == -signal.SIGPROF
            raise (TooLateError if is_late else CrashedError) from problem
        except BaseException as problem:  # half an answer may be in its pipe
            self._replace(process)
            if isinstance(problem, TimeoutError):
                raise TooLateError from problem
            raise
        self._idle.put_nowait(process)
        return reply

    async def _ended(self, process: asyncio.subprocess.Process) -> int:
        """How a process ended that closed its pipe; another takes its place."""
        try:
            return await process.wait()
        finally:
            self._replace(process)

    async def _free_process(self) -> asyncio.subprocess.Process:
        if self._waiting >= self._limits.most_waiting:
            raise BusyError
        self._waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                return await self._idle.get()
        except TimeoutError as problem:
            raise BusyError from problem
        finally:
            self._waiting -= 1

    def _replace(self, process: asyncio.subprocess.Process) -> None:
        task = asyncio.get_running_loop().create_task(self._end_and_add(process))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _end_and_add(self, process: asyncio.subprocess.Process) -> None:
        await self._end(process)
        if not self._is_stopping:
            await self._add()

    async def _add(self) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", MODULE, self._name, str(self._limits.seconds),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env=os.environ | SETTINGS,
        )  # fmt: skip
        self._all.add(process)
        assert process.stdout is not None
        await process.stdout.readexactly(1)
        self._idle.put_nowait(process)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        self._all.discard(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def _exchanged(process: asyncio.subprocess.Process, request: ExplorerRequest) -> Reply:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request.packed())
    await process.stdin.drain()
    sizes = HEAD.unpack(await process.stdout.readexactly(HEAD.size))
    head, content = [await process.stdout.readexactly(size) for size in sizes]
    return Reply.unpacked(head, content)


OVERHEAD = 1000  # bytes of a question and the objects around its answer, about


class ReplyCache:
    """The latest answers, up to a number of bytes; equal questions at one time are asked once."""

    def __init__(self, ask: Callable[[ExplorerRequest], Awaitable[Reply]], most_bytes: int) -> None:
        self._ask, self._most_bytes = ask, most_bytes
        self._replies: OrderedDict[ExplorerRequest, Reply] = OrderedDict()
        self._asking: dict[ExplorerRequest, asyncio.Future[Reply]] = {}
        self._bytes = 0

    async def answer(self, request: ExplorerRequest) -> Reply:
        """The answer, computed or remembered; what was sent in a body is not kept."""
        if request.body:
            return await self._ask(request)
        if request in self._replies:
            self._replies.move_to_end(request)
            return self._replies[request]
        if request not in self._asking:
            self._asking[request] = asyncio.ensure_future(self._ask(request))
            self._asking[request].add_done_callback(lambda done: self._keep(request, done))
        # who leaves does not take it from others
        return await asyncio.shield(self._asking[request])

    def _keep(self, request: ExplorerRequest, done: "asyncio.Future[Reply]") -> None:
        del self._asking[request]
        if done.cancelled() or done.exception() is not None:
            return
        self._replies[request] = done.result()
        self._bytes += _size(request, done.result())
        while self._bytes > self._most_bytes:
            self._bytes -= _size(*self._replies.popitem(last=False))


def _size(request: ExplorerRequest, reply: Reply) -> int:
    query = sum(len(name) + len(value) for name, value in request.query)
    return OVERHEAD + 4 * query + len(reply.content)
