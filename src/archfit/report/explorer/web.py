"""The application: from HTTP to questions for the workers and back, behind a guard."""

import asyncio
import contextlib
import gzip
import sys
from collections.abc import AsyncIterator, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archfit.report.explorer import exchange
from archfit.report.explorer.answers import POOLS, TAKE_A_CONFIG
from archfit.report.explorer.api import ADDRESS, command_line, openapi_document
from archfit.report.explorer.exchange import MOST_BODY_BYTES, ExplorerRequest, Reply, refusal
from archfit.report.explorer.pages import STATIC_FILES, VEGA, links, static_file
from archfit.report.explorer.workers import (
    BusyError,
    CrashedError,
    PoolLimits,
    ReplyCache,
    TooLateError,
    WorkerPool,
)
from archfit.spec.errors import one_line

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
# Styles are in one sheet. Vega sets them through the object model, which no policy forbids.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}
Headers = Sequence[tuple[bytes, bytes]]


class Guard:
    """The application behind a check of the host's name and of the body's size.

    `hosts` are the names that it may be called by; none: any. A page elsewhere whose name was
    made to lead to this machine sends another name, so that it learns nothing (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = dict(message["headers"])
                message["headers"] = list((sent | HEADERS | sent).items())
            await send(message)

        problem = self._problem(scope["method"], scope["headers"])
        if problem is None:
            return await self._app(scope, receive, with_headers)
        await _refuse(scope["path"], *problem, with_headers)
        return None

    def _problem(self, method: str, headers: Headers) -> tuple[int, str] | None:
        host = next((value for name, value in headers if name == b"host"), b"").decode("latin-1")
        name, colon, port = host.rpartition(":")
        is_with_port = bool(colon) and port.isdigit()
        if self._hosts and (name if is_with_port else host).lower() not in self._hosts:
            return 400, (
                f"host {host[:60]!r} is not this server; use http://127.0.0.1 and its port, and "
                "let a proxy say the same"
            )
        length = next((value for name, value in headers if name == b"content-length"), b"0")
        if not length.isdigit() or len(length) > 18:
            return 400, "content-length is no size; send the number of bytes"
        if int(length) > MOST_BODY_BYTES:
            return 413, f"the body has {int(length):,} bytes; send at most {MOST_BODY_BYTES:,}"
        is_sent = int(length) > 0 or any(name == b"transfer-encoding" for name, _ in headers)
        if method != "POST" and is_sent:
            return 400, f"{method} takes no body; send parameters in the address"
        return None


async def _refuse(path: str, status: int, sentence: str, send: Send) -> None:
    reply = refusal(path, status, sentence)
    headers = [
        (b"content-type", reply.media.encode()),
        (b"content-length", str(len(reply.content)).encode()),
        (b"connection", b"close"),  # a body that nobody wants is not read
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.content})


FOR_A_YEAR = "public, max-age=31536000, immutable"


class Explorer:
    """The workers behind the pages, and what was answered before."""

    def __init__(self, seconds: float = exchange.MOST_SECONDS) -> None:
        self._pools: dict[str, WorkerPool] = {}
        for name, processes in exchange.PROCESSES.items():
            waiting = exchange.MOST_WAITING[name]
            limits = PoolLimits(processes=processes, most_waiting=waiting, seconds=seconds)
            self._pools[name] = WorkerPool(name, limits)
        self._caches = {
            name: ReplyCache(pool.answer, exchange.CACHED_BYTES[name])
            for name, pool in self._pools.items()
        }
        self._pool_of = {path: name for name, paths in POOLS.items() for path in paths}
        self._seconds = seconds
        self._vega: asyncio.Task[bytes] | None = None

    @contextlib.asynccontextmanager
    async def running(self, _app: Starlette) -> AsyncIterator[None]:
        """Its processes, from start to end; who asks for a chart first waits for the slow ones."""
        loop = asyncio.get_running_loop()
        self._vega = loop.create_task(_vega_script())
        later = [loop.create_task(self._pools[name].start()) for name in POOLS if name != "answers"]
        try:
            await self._pools["answers"].start()
            yield
        finally:
            self._vega.cancel()
            await asyncio.gather(self._vega, *later, return_exceptions=True)
            await asyncio.gather(*(pool.stop() for pool in self._pools.values()))

    async def answered(self, request: Request) -> Response:
        """The answer to a request for a page, a document or a chart."""
        path = request.url.path
        try:
            body = await _body(request) if request.method == "POST" else b""
            if request.method == "POST" and not body:
                return _response(refusal(path, 400, "the body is empty; send a config.json"))
            query = tuple(request.query_params.multi_items())
            return _response(await self._reply(ExplorerRequest(path=path, query=query, body=body)))
        except _TooLongError:
            sentence = f"the body is over {MOST_BODY_BYTES:,} bytes; send less"
            response = _response(refusal(path, 413, sentence))
            response.headers["connection"] = "close"
            return response
        except ClientDisconnect:
            return Response(status_code=400)

    async def _reply(self, request: ExplorerRequest) -> Reply:
        try:
            return await self._caches[self._pool_of[request.path]].answer(request)
        except TooLateError:
            sentence = (
                f"this takes longer than the {self._seconds:g} s that the explorer computes; run "
                f"{command_line(request)}"
            )
            return refusal(request.path, 422, one_line(sentence))
        except BusyError:
            return refusal(request.path, 429, "too many wait for an answer; ask again in a second")
        except CrashedError:
            return refusal(request.path, 500, "the process that was asked ended; ask again")

    async def static(self, request: Request) -> Response:
        """A script or sheet, kept by browsers because its address changes with it."""
        name = request.path_params["name"]
        if links().get(name) != request.url.path.lstrip("/"):
            raise HTTPException(404)
        assert self._vega is not None
        content = await asyncio.shield(self._vega) if name == VEGA else _zipped(static_file(name))
        headers = {"cache-control": FOR_A_YEAR, "vary": "accept-encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
        else:
            content = gzip.decompress(content)
        media = STATIC_FILES.get(name, "text/javascript")
        return Response(content, media_type=media, headers=headers)


class _TooLongError(Exception):
    """The body of a request is over the limit."""


def application(explorer: Explorer, hosts: Sequence[str]) -> ASGIApp:
    """The explorer as an ASGI application that answers to these names; none: to any."""
    routes = [
        Route(ADDRESS, _openapi, methods=["GET"]),
        Route("/static/{version}/{name}", explorer.static, methods=["GET"]),
    ]
    for path in (path for paths in POOLS.values() for path in paths):
        methods = ["GET", "POST"] if path in TAKE_A_CONFIG else ["GET"]
        routes.append(Route(path, explorer.answered, methods=methods))
    handlers = {HTTPException: _refused}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=explorer.running)  # type: ignore[arg-type]  # starlette types a handler for any exception
    app.router.redirect_slashes = False
    return Guard(app, hosts)


async def _openapi(_request: Request) -> Response:
    return _response(exchange.json_reply(openapi_document()))


async def _refused(request: Request, problem: HTTPException) -> Response:
    sentences = {
        404: f"nothing is here; pages are /, /audit, /gallery, /atlas, and the API is in {ADDRESS}",
        405: f"{request.method[:20]} is not for this address; its description is in {ADDRESS}",
    }
    sentence = sentences.get(problem.status_code, problem.detail)
    response = _response(refusal(request.url.path, problem.status_code, sentence))
    response.headers.update(problem.headers or {})
    return response


def _response(reply: Reply) -> Response:
    kept = {"cache-control": "no-store" if reply.status != 200 else "no-cache"}
    kept |= {"retry-after": "1"} if reply.status == 429 else {}
    return Response(reply.content, status_code=reply.status, media_type=reply.media, headers=kept)


async def _body(request: Request) -> bytes:
    """The body, read no further than the limit."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MOST_BODY_BYTES:
            raise _TooLongError
    return bytes(content)


def _zipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


async def _vega_script() -> bytes:
    """The script that draws charts, made by a process of its own: it loads a whole JavaScript."""
    code = "import sys; from archfit.report.page import vega_embed; sys.stdout.write(vega_embed())"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    try:
        content, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return await asyncio.to_thread(_zipped, content)
