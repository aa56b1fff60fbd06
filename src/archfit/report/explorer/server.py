"""The explorer on a port, with no patience for slow clients."""

import asyncio
import socket
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from archfit.report.explorer.exchange import (
    IDLE_SECONDS,
    MOST_CONNECTIONS,
    MOST_HEAD_BYTES,
    REQUEST_SECONDS,
)
from archfit.report.explorer.web import LOOPBACK, Explorer, application

if TYPE_CHECKING:
    from collections.abc import Callable

FULL = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)


class ImpatientProtocol(H11Protocol):
    """HTTP in which a request and its answer have `REQUEST_SECONDS` in all.

    A head that trickles in, a body that stops and a reader who sleeps are all cut off by it.
    """

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent
        """Take the connection, or say that there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.write(FULL)
            transport.close()
            return
        self._wait()

    def data_received(self, data: bytes) -> None:
        """The time of a request begins with its first byte."""
        if self._patience is None:
            self._wait()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Between requests uvicorn's own timer runs."""
        self._be_calm()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._be_calm()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._patience = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _be_calm(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


class Announcing(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, announce: "Callable[[], None]") -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets=sockets)
        if self.started:
            self._announce()


def listen(host: str, port: int) -> socket.socket:
    """A socket on this address; one that is taken, or is none, is refused in a sentence."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port={port} is not in 0..65535; 0 takes a free one")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as problem:
        raise ValueError(f"host {host!r} is no address of this machine; use 127.0.0.1") from problem
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(MOST_CONNECTIONS)
    except OSError as problem:
        listener.close()
        raise ValueError(
            f"port {port} of {host} cannot be had ({problem.strerror}); use another --port, or "
            "--port 0 for a free one"
        ) from problem
    return listener


def serve(listener: socket.socket, announce: "Callable[[], None]") -> None:
    """Answer on this socket until Ctrl-C."""
    host = listener.getsockname()[0]
    is_local = host == "::1" or host.startswith("127.")
    config = uvicorn.Config(
        application(Explorer(), LOOPBACK if is_local else ()),
        http=ImpatientProtocol,
        ws="none",
        loop="asyncio",
        log_level="error",  # what strangers send must not fill a log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=2,
        backlog=MOST_CONNECTIONS,
    )
    Announcing(config, announce).run(sockets=[listener])
