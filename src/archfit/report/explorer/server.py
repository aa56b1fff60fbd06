"""The explorer on a port: an application behind a guard, with no patience for slow clients."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from archfit.report.document import said, written
from archfit.report.explorer import api, pages, workers
from archfit.report.explorer.api import ADDRESS, MOST_BODY_BYTES, MOST_HEAD_BYTES, MOST_HEADERS
from archfit.report.page import vega_embed
from archfit.spec.errors import refusal, refuse_if

MOST_CONNECTIONS = 512
REMEMBERED = 128  # answers, of at most about 250 kB
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HEADERS: dict[str, str] = written("pages")["headers"]
FOR_A_DAY = {"cache-control": "public, max-age=86400"}


def guarded(app: ASGIApp, hosts: Sequence[str]) -> ASGIApp:
    """The application behind a check of the host's name and of all sizes.

    `hosts` are the names that it may be called by; none: any. A page elsewhere whose name was
    made to lead to this machine sends another name, so that it learns nothing (DNS rebinding).
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        problem = _problem(Request(scope), hosts) if scope["type"] == "http" else None
        refusing = problem and _refused(Request(scope), HTTPException(*problem))
        await (refusing or app)(scope, receive, send)

    return checked


def _problem(request: Request, hosts: Sequence[str]) -> tuple[int, str] | None:
    headers, method = request.headers, request.method
    target = len(request.scope["raw_path"]) + len(request.scope["query_string"])
    head = target + sum(len(name) + len(value) + 4 for name, value in headers.raw)
    if head > MOST_HEAD_BYTES:  # uvicorn refuses only what comes in several parts
        return 400, f"address and headers have {head:,} bytes; send at most {MOST_HEAD_BYTES:,}"
    if len(headers) > MOST_HEADERS:
        return 400, f"{len(headers):,} headers are sent; send at most {MOST_HEADERS}"
    host, length = headers.get("host", ""), headers.get("content-length", "0")
    name, colon, port = host.rpartition(":")
    is_with_port = bool(colon) and port.isdigit()
    if hosts and (name if is_with_port else host).lower() not in hosts:
        return 400, said("explorer.host", repr(host[:60]))
    if not length.isdigit() or len(length) > 18:
        return 400, "content-length is no size; send the number of bytes"
    if int(length) > MOST_BODY_BYTES:
        return 413, f"the body has {int(length):,} bytes; send at most {MOST_BODY_BYTES:,}"
    if "content-length" in headers and "transfer-encoding" in headers:
        return 400, "content-length and transfer-encoding are both sent; send one of them"
    if method != "POST" and (int(length) or "transfer-encoding" in headers):
        return 400, f"{method} takes no body; send parameters in the address"
    return None


class Explorer:
    """The processes behind the addresses, and the script that draws charts."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._pools = {limits: workers.WorkerPool(limits) for limits in workers.POOLS}
        self._pool_of = {path: self._pools[some] for some in workers.POOLS for path in some.paths}
        self._asking: dict[api.Question, asyncio.Future[Response]] = {}  # the latest last
        self._vega: asyncio.Future[str]

    @contextlib.asynccontextmanager
    async def running(self, _app: Starlette) -> AsyncIterator[None]:
        """Its processes, from start to end; who asks for a chart first waits for the slow ones."""
        maker = workers.one_process()  # of its own: it loads a whole JavaScript
        self._vega = asyncio.wrap_future(maker.submit(vega_embed))
        maker.shutdown(wait=False)  # when that is done
        starting = {
            limits: asyncio.ensure_future(pool.start()) for limits, pool in self._pools.items()
        }
        try:
            await starting[workers.ANSWERS]
            self._announce()
            yield
        finally:
            for asking in self._asking.values():
                asking.cancel()
            workers.end_processes()
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
        asked = api.Question(path, query, body)
        return await (self._pool_of[path].answer(asked) if body else self._remembered(asked))

    async def _remembered(self, asked: api.Question) -> Response:
        """The answer, asked for once where many ask; good ones are kept."""
        asking = self._asking.pop(asked, None)
        if asking is not None and asking.done():
            is_broken = asking.cancelled() or asking.exception() is not None
            asking = None if is_broken or asking.result().status_code != 200 else asking
        if asking is None:
            asking = asyncio.ensure_future(self._pool_of[asked.path].answer(asked))
        self._asking[asked] = asking
        if len(self._asking) > REMEMBERED:
            del self._asking[next(iter(self._asking))]
        return await asyncio.shield(asking)  # who leaves does not take it from others

    async def vega(self, _request: Request) -> Response:
        """The script that draws charts."""
        script = await asyncio.shield(self._vega)
        return Response(script, media_type="text/javascript", headers=FOR_A_DAY)


def application(explorer: Explorer, hosts: Sequence[str]) -> Starlette:
    """The explorer as an ASGI application that answers to these names; none: to any."""
    files = StaticFiles(directory=Path(pages.__file__).parents[1] / "templates/static")
    routes = [
        Route(ADDRESS, lambda _: api.json_response(api.openapi_document()), methods=["GET"]),
        Route(f"/{pages.STATIC}/vega.js", explorer.vega, methods=["GET"]),
        Mount(f"/{pages.STATIC}", files),
    ]
    for path in (path for limits in workers.POOLS for path in limits.paths):
        methods = ["GET", "POST"] if path in workers.TAKE_A_CONFIG else ["GET"]
        routes.append(Route(path, explorer.answered, methods=methods))
    app = Starlette(
        routes=routes,
        middleware=[Middleware(guarded, hosts)],
        exception_handlers={
            HTTPException: _refused,  # type: ignore[dict-item]  # starlette types a handler for any exception
            Exception: lambda request, _problem: workers.mistake(request.scope["path"]),
        },
        lifespan=explorer.running,
    )
    app.router.redirect_slashes = False
    return app


def _refused(request: Request, problem: HTTPException) -> Response:
    name = {404: "explorer.nowhere", 405: "explorer.method"}.get(problem.status_code)
    sentence = said(name, request.method[:20], ADDRESS) if name else problem.detail
    response = api.refusal(request.scope["path"], problem.status_code, sentence)
    response.headers.update(problem.headers or {})
    return response


async def _body(request: Request) -> bytes:
    """The body, read no further than the limit."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MOST_BODY_BYTES:
            raise HTTPException(413, f"the body is over {MOST_BODY_BYTES:,} bytes; send less")
    return bytes(content)


class ImpatientProtocol(H11Protocol):
    """HTTP in which a connection has `REQUEST_SECONDS` in all, for one request and its answer.

    A head that trickles in, a body that stops and a reader who sleeps are all cut off by it. Where
    there are too many, the oldest makes room for the latest: who is slow keeps nobody out.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent
        """Take the connection."""
        super().connection_made(transport)
        self.patience = self.loop.call_later(api.REQUEST_SECONDS, transport.abort)
        if len(self.connections) > MOST_CONNECTIONS:
            oldest = min(self.connections, key=lambda one: one.patience.when())  # type: ignore[union-attr]  # all are of this class
            self.connections.discard(oldest)
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self.patience.cancel()
        super().connection_lost(exc)


def listen(host: str, port: int) -> socket.socket:
    """A socket on this address; one that is taken, or is none, is refused in a sentence."""
    refuse_if(not 0 <= port <= 65535, "no-port", port=port)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()  # "::" means all addresses
        return socket.create_server(
            address, family=family, backlog=MOST_CONNECTIONS, dualstack_ipv6=both
        )
    except (socket.gaierror, UnicodeError) as problem:
        raise ValueError(f"host {host!r} is no address of this machine; use 127.0.0.1") from problem
    except OSError as problem:
        reason = os.strerror(problem.errno or 0)
        raise refusal("port-taken", port=port, host=host, reason=reason) from problem


def serve(listener: socket.socket, announce: Callable[[], None]) -> None:
    """Answer on this socket until Ctrl-C."""
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")  # of each that answers
    host = listener.getsockname()[0]
    is_local = host == "::1" or host.startswith("127.")
    config = uvicorn.Config(
        application(Explorer(announce), LOOPBACK if is_local else ()),
        http=ImpatientProtocol,
        ws="none",
        loop="asyncio",
        log_level="critical",  # what strangers send fills no log; mistakes of ours are printed
        access_log=False,
        server_header=False,
        proxy_headers=False,
        headers=[*HEADERS.items()],
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        timeout_graceful_shutdown=2,
        backlog=MOST_CONNECTIONS,
    )
    uvicorn.Server(config).run(sockets=[listener])
