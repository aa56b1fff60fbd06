"""Answers that were given before: questions decide them, so that they stay right."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from archfit.report.explorer.exchange import Asked, Reply

OVERHEAD = 1000  # bytes of a question and the objects around its answer, about


class Remembered:
    """The latest answers, up to a number of bytes; equal questions at one time are asked once."""

    def __init__(self, ask: Callable[[Asked], Awaitable[Reply]], most_bytes: int) -> None:
        self._ask, self._most_bytes = ask, most_bytes
        self._replies: OrderedDict[Asked, Reply] = OrderedDict()
        self._asking: dict[Asked, asyncio.Future[Reply]] = {}
        self._bytes = 0

    async def answer(self, asked: Asked) -> Reply:
        """The answer, computed or remembered; what was sent in a body is not kept."""
        if asked.body:
            return await self._ask(asked)
        if asked in self._replies:
            self._replies.move_to_end(asked)
            return self._replies[asked]
        if asked not in self._asking:
            self._asking[asked] = asyncio.ensure_future(self._ask(asked))
            self._asking[asked].add_done_callback(lambda done: self._keep(asked, done))
        return await asyncio.shield(self._asking[asked])  # who leaves does not take it from others

    def _keep(self, asked: Asked, done: "asyncio.Future[Reply]") -> None:
        del self._asking[asked]
        if done.cancelled() or done.exception() is not None:
            return
        self._replies[asked] = done.result()
        self._bytes += _size(asked, done.result())
        while self._bytes > self._most_bytes:
            self._bytes -= _size(*self._replies.popitem(last=False))


def _size(asked: Asked, reply: Reply) -> int:
    query = sum(len(name) + len(value) for name, value in asked.query)
    return OVERHEAD + 4 * query + len(reply.content)
