"""The explorer on a port: an application behind a guard, with no patience for slow clients."""

import asyncio
import contextlib
import gzip
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from archfit.report.explorer import api, pages, workers
from archfit.report.explorer.api import ADDRESS, MOST_BODY_BYTES, REQUEST_SECONDS
from archfit.report.page import vega_embed

IDLE_SECONDS = 5  # of an open connection without a request
MOST_CONNECTIONS = 512
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ONE_CORE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # for each process that answers
# Styles are in one sheet. Vega sets them through the object model, which no policy forbids.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
CLOSE = {"connection": "close"}  # a body that nobody wants is not read
FOR_A_YEAR = "public, max-age=31536000, immutable"
FULL = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)


class Guard:
    """The application behind a check of the host's name and of the body's size.

    `hosts` are the names that it may be called by; none: any. A page elsewhere whose name was
    made to lead to this machine sends another name, so that it learns nothing (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        app = self._app
        if scope["type"] == "http" and (problem := self._problem(Request(scope))):
            app = _refused(Request(scope), HTTPException(*problem, CLOSE))
        await app(scope, receive, send)

    def _problem(self, request: Request) -> tuple[int, str] | None:
        headers, method = request.headers, request.method
        host, length = headers.get("host", ""), headers.get("content-length", "0")
        name, colon, port = host.rpartition(":")
        is_with_port = bool(colon) and port.isdigit()
        if self._hosts and (name if is_with_port else host).lower() not in self._hosts:
            return 400, (
                f"host {host[:60]!r} is not this server; use http://127.0.0.1 and its port, and "
                "let a proxy say the same"
            )
        if not length.isdigit() or len(length) > 18:
            return 400, "content-length is no size; send the number of bytes"
        if int(length) > MOST_BODY_BYTES:
            return 413, f"the body has {int(length):,} bytes; send at most {MOST_BODY_BYTES:,}"
        if method != "POST" and (int(length) or "transfer-encoding" in headers):
            return 400, f"{method} takes no body; send parameters in the address"
        return None


class Explorer:
    """The processes behind the addresses, and the script that draws charts."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._pools = {limits: workers.WorkerPool(limits) for limits in workers.POOLS}
        self._caches: dict[str, workers.ReplyCache] = {}
        for limits, pool in self._pools.items():
            cache = workers.ReplyCache(pool.answer, limits.cached_bytes)
            self._caches |= dict.fromkeys(limits.paths, cache)
        self._vega: asyncio.Future[bytes]

    @contextlib.asynccontextmanager
    async def running(self, _app: Starlette) -> AsyncIterator[None]:
        """Its processes, from start to end; who asks for a chart first waits for the slow ones."""
        maker = workers.one_process()  # of its own: it loads a whole JavaScript
        self._vega = asyncio.wrap_future(maker.submit(_vega_script))
        maker.shutdown(wait=False)  # when that is done
        starting = {
            limits: asyncio.ensure_future(pool.start()) for limits, pool in self._pools.items()
        }
        try:
            await starting[workers.ANSWERS]
            self._announce()
            yield
        finally:
            workers.end(*self._pools.values())
            await asyncio.gather(self._vega, *starting.values(), return_exceptions=True)

    async def answered(self, request: Request) -> Response:
        """The answer to a request for a page, a document or a chart."""
        path, query = request.scope["path"], tuple(request.query_params.multi_items())
        try:
            body = await _body(request) if request.method == "POST" else b""
        except ClientDisconnect:
            return Response(status_code=400)
        if request.method == "POST" and not body:
            raise HTTPException(400, "the body is empty; send a config.json")
        return await self._caches[path].answer(api.Question(path, query, body))

    async def static(self, request: Request) -> Response:
        """A script or sheet, kept by browsers because its address changes with it."""
        name = request.path_params["name"]
        if pages.links().get(name) != request.scope["path"].lstrip("/"):
            raise HTTPException(404)
        is_vega = name == pages.VEGA
        content = await asyncio.shield(self._vega) if is_vega else pages.zipped_file(name)
        headers = {"cache-control": FOR_A_YEAR, "vary": "accept-encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
        else:
            content = gzip.decompress(content)
        media = pages.STATIC_FILES.get(name, "text/javascript")
        return Response(content, media_type=media, headers=headers)


def application(explorer: Explorer, hosts: Sequence[str]) -> Starlette:
    """The explorer as an ASGI application that answers to these names; none: to any."""
    routes = [
        Route(ADDRESS, lambda _: api.json_response(api.openapi_document()), methods=["GET"]),
        Route("/static/{version}/{name}", explorer.static, methods=["GET"]),
    ]
    for path in (path for limits in workers.POOLS for path in limits.paths):
        methods = ["GET", "POST"] if path in workers.TAKE_A_CONFIG else ["GET"]
        routes.append(Route(path, explorer.answered, methods=methods))
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts)],
        exception_handlers={HTTPException: _refused},  # type: ignore[dict-item]  # starlette types a handler for any exception
        lifespan=explorer.running,
    )
    app.router.redirect_slashes = False
    return app


def _refused(request: Request, problem: HTTPException) -> Response:
    sentences = {
        404: f"nothing is here; pages are /, /audit, /gallery, /atlas, and the API is in {ADDRESS}",
        405: f"{request.method[:20]} is not for this address; its description is in {ADDRESS}",
    }
    sentence = sentences.get(problem.status_code, problem.detail)
    response = api.refusal(request.scope["path"], problem.status_code, sentence)
    response.headers.update(problem.headers or {})
    return response


async def _body(request: Request) -> bytes:
    """The body, read no further than the limit."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MOST_BODY_BYTES:
            raise HTTPException(
                413, f"the body is over {MOST_BODY_BYTES:,} bytes; send less", CLOSE
            )
    return bytes(content)


def _vega_script() -> bytes:
    return gzip.compress(vega_embed().encode(), mtime=0)


class ImpatientProtocol(H11Protocol):
    """HTTP in which a request and its answer have `REQUEST_SECONDS` in all.

    A head that trickles in, a body that stops and a reader who sleeps are all cut off by it.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent
        """Take the connection, or say that there are too many."""
        super().connection_made(transport)
        self._patience = self.loop.call_later(REQUEST_SECONDS, transport.abort)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.write(FULL)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """The time of a request begins with its first byte."""
        if self._patience.cancelled():
            self._patience = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Between requests uvicorn's own timer runs."""
        self._patience.cancel()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._patience.cancel()
        super().connection_lost(exc)


def listen(host: str, port: int) -> socket.socket:
    """A socket on this address; one that is taken, or is none, is refused in a sentence."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port={port} is not in 0..65535; 0 takes a free one")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as problem:
        raise ValueError(f"host {host!r} is no address of this machine; use 127.0.0.1") from problem
    family, *_, address = found[0]
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()  # where it means all addresses
    try:
        return socket.create_server(
            address, family=family, backlog=MOST_CONNECTIONS, dualstack_ipv6=both
        )
    except OSError as problem:
        raise ValueError(
            f"port {port} of {host} cannot be had ({os.strerror(problem.errno or 0)}); use another "
            "--port, or --port 0 for a free one"
        ) from problem


def serve(listener: socket.socket, announce: Callable[[], None]) -> None:
    """Answer on this socket until Ctrl-C."""
    os.environ.update(ONE_CORE)
    host = listener.getsockname()[0]
    is_local = host == "::1" or host.startswith("127.")
    config = uvicorn.Config(
        application(Explorer(announce), LOOPBACK if is_local else ()),
        http=ImpatientProtocol,
        ws="none",
        loop="asyncio",
        log_level="error",  # what strangers send must not fill a log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        headers=[*HEADERS.items()],
        h11_max_incomplete_event_size=api.MOST_HEAD_BYTES,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=2,
        backlog=MOST_CONNECTIONS,
    )
    uvicorn.Server(config).run(sockets=[listener])
