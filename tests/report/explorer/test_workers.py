"""Processes that answer: what is late, crashes or waits too long, and what others notice of it."""

import asyncio
import os
import pickle
import signal
from multiprocessing import active_children

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import Response

from archfit.report.explorer.api import Question, response
from archfit.report.explorer.workers import (
    BOUNDS,
    PoolLimits,
    WorkerPool,
    end_processes,
)

LIMITS = BOUNDS._replace(seconds=0.3, wall_seconds=30, most_waiting=1, wait_seconds=60)
(QUICK,) = BOUNDS.first
SLOW = QUICK._replace(  # eight seconds: a search for the length that lemma 7 asks for
    query=tuple(
        {
            "depth": "7",
            "width": "804",
            "heads": "13",
            "positions": "763536",
            "vocab": "8435621",
        }.items()
    ),
)
TOO_LATE, BUSY, CRASHED = 422, 429, 500


def _status(answered: Response | BaseException) -> int:
    assert isinstance(answered, Response | HTTPException)
    return answered.status_code


async def _in_a_lane(limits: PoolLimits, *asked: Question) -> list[int]:
    lane = WorkerPool(limits)
    await lane.start()
    try:
        answered = await asyncio.gather(*map(lane.answer, asked), return_exceptions=True)
        return [_status(one) for one in answered]
    finally:
        end_processes()


def test_an_answer_that_computes_too_long_is_ended_and_the_next_one_comes() -> None:
    assert asyncio.run(_in_a_lane(LIMITS, SLOW, QUICK)) == [TOO_LATE, 200]


def test_lateness_is_never_taken_for_a_crash() -> None:
    limits = LIMITS._replace(seconds=0.05, most_waiting=9, wait_seconds=120)
    assert asyncio.run(_in_a_lane(limits, *[SLOW] * 3)) == [TOO_LATE] * 3


def test_an_answer_that_is_not_there_in_time_is_given_up() -> None:
    """As when another program has the processor; here the answer is only slow."""
    limits = LIMITS._replace(seconds=60, wall_seconds=0.3)
    assert asyncio.run(_in_a_lane(limits, SLOW)) == [TOO_LATE]


def test_who_comes_when_the_line_is_full_is_told_so() -> None:
    async def three() -> list[Response | BaseException]:
        lane = WorkerPool(LIMITS._replace(most_waiting=2))  # nobody works in it
        waiting = [asyncio.ensure_future(lane.answer(QUICK)) for _ in range(3)]
        await asyncio.sleep(0.05)
        for task in waiting[:2]:
            task.cancel()
        return await asyncio.gather(*waiting, return_exceptions=True)

    *left, last = asyncio.run(three())
    assert [type(one) for one in left] == [asyncio.CancelledError] * 2
    assert _status(last) == BUSY
    assert isinstance(last, HTTPException)
    assert last.headers == {"retry-after": "1"}


def test_a_process_that_dies_is_replaced() -> None:
    async def killed() -> tuple[BaseException | None, Response]:
        lane = WorkerPool(LIMITS._replace(seconds=30))
        await lane.start()
        try:
            (process,) = active_children()
            assert process.pid is not None
            asking = asyncio.ensure_future(lane.answer(SLOW))
            await asyncio.sleep(0.1)
            os.kill(process.pid, signal.SIGKILL)
            await asyncio.wait([asking])
            return asking.exception(), await lane.answer(QUICK)
        finally:
            end_processes()

    problem, reply = asyncio.run(killed())
    assert problem is not None
    assert _status(problem) == CRASHED
    assert reply.status_code == 200


@pytest.mark.parametrize("content", ["", "\x00ÿ" * 10_000])
def test_what_goes_to_a_process_and_back_comes_out_as_it_was(content: str) -> None:
    asked = Question("/", (("vocab", "é<&"), ("", "")), content.encode())
    assert pickle.loads(pickle.dumps(asked)) == asked
    reply = response(content, "text/plain", 400)
    assert vars(pickle.loads(pickle.dumps(reply))) == vars(reply)
