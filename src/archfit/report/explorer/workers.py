"""Answers, and the processes that compute them within limits.

The system itself counts the seconds that an answer computes, waiting for a processor left out, and
ends the process when they are over, whatever code it is in; another takes its place.
"""

import asyncio
import os
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context, parent_process
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from archfit.report.explorer import api, pages
from archfit.report.explorer.api import Question, refusal
from archfit.report.page import LAYOUTS
from archfit.spec.errors import one_line

TAKE_A_CONFIG = ("/api/audit", "/audit")  # as the body of a POST


class PoolLimits(NamedTuple):
    """What a pool of processes answers, and how much it takes on."""

    paths: tuple[str, ...]
    first: tuple[Question, ...]  # that a process asks itself before others may ask: what takes
    # long to load, and is then there, would on a busy machine be ended at each question
    processes: int = 1
    most_waiting: int = 16  # in line for a process
    seconds: float = api.MOST_SECONDS  # that an answer may compute
    wall_seconds: float = 15.0  # until it is there; more, since others use the machine, too
    wait_seconds: float = 5.0  # in line


def _charts(*names: str) -> tuple[str, ...]:
    return tuple(f"/chart/{layout}/{name}" for layout in LAYOUTS for name in names)


# Plans and audits take milliseconds; bounds, which may not, charts and the gallery, and the atlas,
# which take a second or more to be read, have processes of their own.
ANSWERS = PoolLimits(
    ("/", "/audit", "/api/plan", "/api/audit"), (Question("/"),), 2, most_waiting=64
)
SMALL = (("depth", "2"), ("width", "8"), ("heads", "2"))
BOUNDS = PoolLimits(("/api/bounds",), (Question("/api/bounds", SMALL),))
CHARTS = PoolLimits(
    ("/gallery", *_charts("depths", "bounds", "models")),
    (Question("/chart/wide/depths"), Question("/gallery")),
)
ATLAS = PoolLimits(
    ("/atlas", *_charts("depth", "best-depth", "vocabularies")), (Question("/chart/wide/depth"),)
)
POOLS = (ANSWERS, BOUNDS, CHARTS, ATLAS)


def answer(asked: Question) -> Response:
    """The answer; whatever is wrong with the request is one sentence."""
    try:
        if asked.path in pages.PAGES:
            return pages.page(asked)
        return api.json_response(api.DOCUMENTS.get(asked.path, pages.chart)(asked))
    except HTTPException as problem:
        return refusal(asked.path, problem.status_code, one_line(problem.detail))
    except ValueError as problem:
        return refusal(asked.path, 400, one_line(str(problem)))
    except Exception:  # a mistake of ours: one request's answer, not the end of the process
        return mistake(asked.path)


def mistake(path: str) -> Response:
    """The answer where an exception of ours is being handled, which goes to the log."""
    traceback.print_exc(file=sys.stderr)
    return refusal(path, 500, "archfit made a mistake here; its log has more")


def _begin(first: tuple[Question, ...]) -> None:
    """What a process does before it is asked; it ends with the server, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    server = parent_process()
    assert server is not None

    def end_with_server() -> None:
        server.join()
        os._exit(0)

    threading.Thread(target=end_with_server, daemon=True).start()
    for question in first:
        answer(question)


def one_process(first: tuple[Question, ...] = ()) -> ProcessPoolExecutor:
    """An executor of one process, since one that is ended breaks its executor."""
    return ProcessPoolExecutor(1, get_context("spawn"), _begin, (first,))


def end_processes() -> None:
    """End all processes, whatever they do."""
    for process in active_children():
        process.kill()


def _timed_answer(asked: Question, seconds: float, wall_seconds: float) -> Response:
    """The answer, unless the system ends this process before it is there."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, wall_seconds)
    reply = answer(asked)
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return reply


class WorkerPool:
    """Questions in one line, for as many processes as it has."""

    def __init__(self, limits: PoolLimits) -> None:
        self._limits, self._waiting = limits, 0
        self._idle: asyncio.Queue[ProcessPoolExecutor] = asyncio.Queue()

    async def start(self) -> None:
        """Start its processes; they are ready when this returns."""
        begun = [one_process(self._limits.first) for _ in range(self._limits.processes)]
        for executor in begun:
            self._idle.put_nowait(executor)
        await asyncio.gather(*(asyncio.wrap_future(one.submit(os.getpid)) for one in begun))

    async def answer(self, asked: Question) -> Response:
        """The answer of the next process that is free; a process that is late has ended."""
        executor, began = await self._free(), time.monotonic()
        seconds, wall_seconds = self._limits.seconds, self._limits.wall_seconds
        try:
            work = executor.submit(_timed_answer, asked, seconds, wall_seconds)
            return await asyncio.wrap_future(work)
        except BrokenProcessPool as problem:
            executor = one_process(self._limits.first)
            executor.submit(os.getpid)  # it starts now, not with the next question
            if time.monotonic() - began < 0.9 * min(seconds, wall_seconds):
                raise HTTPException(500, "the process that was asked ended; ask again") from problem
            command = api.command_line(asked)
            sentence = f"this takes longer than the {seconds:g} s that the explorer computes; run "
            raise HTTPException(422, one_line(sentence + command)) from problem
        finally:  # who leaves leaves a process that goes on with it, and then with the next one
            self._idle.put_nowait(executor)

    async def _free(self) -> ProcessPoolExecutor:
        busy = HTTPException(
            429, "too many wait for an answer; ask again in a second", {"retry-after": "1"}
        )
        if self._waiting >= self._limits.most_waiting:
            raise busy
        self._waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                return await self._idle.get()
        except TimeoutError as problem:
            raise busy from problem
        finally:
            self._waiting -= 1
