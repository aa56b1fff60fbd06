"""Processes that answer: what is late, crashes or waits too long, and what others notice of it."""

import asyncio
import os
import signal
from dataclasses import replace

import pytest

from archfit.report.explorer.exchange import HEAD, ExplorerRequest, Reply
from archfit.report.explorer.workers import (
    OVERHEAD,
    BusyError,
    CrashedError,
    PoolLimits,
    ReplyCache,
    TooLateError,
    WorkerPool,
)

LIMITS = PoolLimits(processes=1, seconds=0.3, wall_seconds=30, most_waiting=1, wait_seconds=30)
QUICK = ExplorerRequest(
    path="/api/bounds", query=(("depth", "2"), ("width", "8"), ("heads", "2")), body=b""
)
SLOW = replace(  # eight seconds: a search for the length that lemma 7 asks for
    QUICK,
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


async def _in_a_lane(limits: PoolLimits, *asked: ExplorerRequest) -> list[Reply | BaseException]:
    lane = WorkerPool("bounds", limits)
    await lane.start()
    try:
        return await asyncio.gather(*map(lane.answer, asked), return_exceptions=True)
    finally:
        await lane.stop()


def test_an_answer_that_computes_too_long_is_ended_and_the_next_one_comes() -> None:
    late, next_one = asyncio.run(_in_a_lane(LIMITS, SLOW, QUICK))
    assert isinstance(late, TooLateError)
    assert isinstance(next_one, Reply)
    assert next_one.status == 200


def test_lateness_is_never_taken_for_a_crash() -> None:
    """Half of them were, when the process was sent a signal before its end was read."""
    limits = replace(LIMITS, seconds=0.05, most_waiting=9, wait_seconds=60)
    late = asyncio.run(_in_a_lane(limits, *[SLOW] * 6))
    assert {type(one) for one in late} == {TooLateError}


def test_an_answer_that_is_not_there_in_time_is_given_up() -> None:
    """As when another program has the processor; here the answer is only slow."""
    limits = replace(LIMITS, seconds=60, wall_seconds=0.3)
    (late,) = asyncio.run(_in_a_lane(limits, SLOW))
    assert isinstance(late, TooLateError)


def test_who_comes_when_the_line_is_full_is_told_so() -> None:
    async def three() -> list[Reply | BaseException]:
        lane = WorkerPool("bounds", replace(LIMITS, most_waiting=2))  # nobody works in it
        waiting = [asyncio.ensure_future(lane.answer(QUICK)) for _ in range(3)]
        await asyncio.sleep(0.05)
        for task in waiting[:2]:
            task.cancel()
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(one) for one in asyncio.run(three())] == [
        asyncio.CancelledError,
        asyncio.CancelledError,
        BusyError,
    ]


def test_a_process_that_dies_is_replaced() -> None:
    async def killed() -> tuple[BaseException | None, Reply]:
        lane = WorkerPool("bounds", replace(LIMITS, seconds=30))
        await lane.start()
        try:
            (process,) = lane._all
            asking = asyncio.ensure_future(lane.answer(SLOW))
            await asyncio.sleep(0.1)
            os.kill(process.pid, signal.SIGKILL)
            await asyncio.wait([asking])
            return asking.exception(), await lane.answer(QUICK)
        finally:
            await lane.stop()

    problem, reply = asyncio.run(killed())
    assert isinstance(problem, CrashedError)
    assert reply.status == 200


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 10_000])
def test_what_goes_through_a_pipe_comes_out_as_it_was(content: bytes) -> None:
    asked = ExplorerRequest(path="/", query=(("vocab", "é<&"), ("", "")), body=content)
    reply = Reply(status=400, media="text/plain", content=content)
    for one, kind in ((asked, ExplorerRequest), (reply, Reply)):
        packed = one.packed()
        head, body = HEAD.unpack(packed[: HEAD.size])
        assert len(packed) == HEAD.size + head + body
        rest = packed[HEAD.size :]
        assert kind.unpacked(rest[:head], rest[head:]) == one


class _Counted:
    """Answers of 1000 bytes, and how often they were computed."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def answer(self, asked: ExplorerRequest) -> Reply:
        self.paths.append(asked.path)
        await asyncio.sleep(0)
        if asked.path == "/wrong":
            raise BusyError
        return Reply(status=200, media="text/plain", content=b"." * 1000)


def _computed(most_answers: int, *paths: str, body: bytes = b"") -> list[str]:
    async def ask_all() -> list[str]:
        counted = _Counted()
        remembered = ReplyCache(counted.answer, most_answers * (OVERHEAD + 1000))
        for path in paths:
            try:
                await remembered.answer(ExplorerRequest(path=path, query=(), body=body))
            except BusyError:
                continue
        return counted.paths

    return asyncio.run(ask_all())


def test_the_latest_answers_are_remembered_and_no_more() -> None:
    assert _computed(2, "/a", "/b", "/a", "/c", "/a", "/b") == ["/a", "/b", "/c", "/b"]


def test_neither_refusals_nor_what_was_sent_is_remembered() -> None:
    assert _computed(9, "/wrong", "/wrong") == ["/wrong", "/wrong"]
    assert _computed(9, "/a", "/a", body=b"{}") == ["/a", "/a"]


def test_one_question_asked_by_many_at_once_is_computed_once() -> None:
    async def ask_all() -> list[str]:
        counted = _Counted()
        remembered = ReplyCache(counted.answer, 10**6)
        asked = ExplorerRequest(path="/a", query=(), body=b"")
        first, *others = [asyncio.ensure_future(remembered.answer(asked)) for _ in range(5)]
        await asyncio.sleep(0)
        first.cancel()  # who leaves does not take it from the others
        replies = await asyncio.gather(*others)
        assert {len(reply.content) for reply in replies} == {1000}
        return counted.paths

    assert asyncio.run(ask_all()) == ["/a"]
