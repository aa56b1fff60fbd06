"""The application: from HTTP to questions for the workers and back."""

import asyncio
import contextlib
import gzip
import sys
from collections.abc import AsyncIterator, Mapping, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from archfit.report.explorer.answers import LANES, TAKE_A_CONFIG
from archfit.report.explorer.api import command_line
from archfit.report.explorer.cache import Remembered
from archfit.report.explorer.exchange import Asked, Reply, json_reply, refusal
from archfit.report.explorer.guard import Guard
from archfit.report.explorer.limits import (
    CACHED_BYTES,
    MOST_BODY_BYTES,
    MOST_SECONDS,
    MOST_WAITING,
    PROCESSES,
    WAIT_SECONDS,
    WALL_SECONDS,
)
from archfit.report.explorer.openapi import ADDRESS, openapi_document
from archfit.report.explorer.static import OWN, VEGA, links, own_file
from archfit.report.explorer.workers import BusyError, CrashedError, Lane, Limits, TooLateError
from archfit.spec.sentence import one_line

FOR_A_YEAR = "public, max-age=31536000, immutable"


class Explorer:
    """The workers behind the pages, and what was answered before."""

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self._lanes = {
            name: Lane(
                name,
                Limits(
                    processes=PROCESSES[name],
                    seconds=seconds,
                    wall_seconds=WALL_SECONDS,
                    most_waiting=MOST_WAITING[name],
                    wait_seconds=WAIT_SECONDS,
                ),
            )
            for name in LANES
        }
        self._remembered = {
            name: Remembered(lane.answer, CACHED_BYTES[name]) for name, lane in self._lanes.items()
        }
        self._lane_of = {path: name for name, paths in LANES.items() for path in paths}
        self._seconds = seconds
        self._vega: asyncio.Task[bytes] | None = None

    @contextlib.asynccontextmanager
    async def running(self, _app: Starlette) -> AsyncIterator[None]:
        """Its processes, from start to end; who asks for a chart first waits for the slow ones."""
        loop = asyncio.get_running_loop()
        self._vega = loop.create_task(_vega_script())
        later = [loop.create_task(self._lanes[name].start()) for name in ("bounds", "charts")]
        try:
            await self._lanes["answers"].start()
            yield
        finally:
            self._vega.cancel()
            await asyncio.gather(self._vega, *later, return_exceptions=True)
            await asyncio.gather(*(lane.stop() for lane in self._lanes.values()))

    async def answered(self, request: Request) -> Response:
        """The answer to a request for a page, a document or a chart."""
        path = request.url.path
        try:
            body = await _body(request) if request.method == "POST" else b""
            if request.method == "POST" and not body:
                return _response(refusal(path, 400, "the body is empty; send a config.json"))
            query = tuple(request.query_params.multi_items())
            asked = Asked(path=path, query=query, body=body)
            return _response(await self._reply(asked))
        except _TooLongError:
            sentence = f"the body is over {MOST_BODY_BYTES:,} bytes; send less"
            return _closing(_response(refusal(path, 413, sentence)))
        except ClientDisconnect:
            return Response(status_code=400)

    async def _reply(self, asked: Asked) -> Reply:
        try:
            return await self._remembered[self._lane_of[asked.path]].answer(asked)
        except TooLateError:
            sentence = (
                f"this takes longer than the {self._seconds:g} s that the explorer computes; run "
                f"{command_line(asked)}"
            )
            return refusal(asked.path, 422, one_line(sentence))
        except BusyError:
            return refusal(asked.path, 429, "too many wait for an answer; ask again in a second")
        except CrashedError:
            return refusal(asked.path, 500, "the process that was asked ended; ask again")

    async def static(self, request: Request) -> Response:
        """A script or sheet, kept by browsers because its address changes with it."""
        name = request.path_params["name"]
        if links().get(name) != request.url.path.lstrip("/"):
            raise HTTPException(404)
        assert self._vega is not None
        content = await asyncio.shield(self._vega) if name == VEGA else _zipped(own_file(name))
        headers = {"cache-control": FOR_A_YEAR, "vary": "accept-encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
        else:
            content = gzip.decompress(content)
        return Response(content, media_type=OWN.get(name, "text/javascript"), headers=headers)


class _TooLongError(Exception):
    """The body is."""


def application(explorer: Explorer, hosts: Sequence[str]) -> ASGIApp:
    """The explorer as an ASGI application that answers to these names; none: to any."""
    routes = [
        Route(
            path, explorer.answered, methods=["GET", "POST"] if path in TAKE_A_CONFIG else ["GET"]
        )
        for paths in LANES.values()
        for path in paths
    ]
    routes += [
        Route(ADDRESS, _openapi, methods=["GET"]),
        Route("/static/{version}/{name}", explorer.static, methods=["GET"]),
    ]
    handlers = {HTTPException: _refused}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=explorer.running)  # type: ignore[arg-type]  # starlette types a handler for any exception
    app.router.redirect_slashes = False
    return Guard(app, hosts)


async def _openapi(_request: Request) -> Response:
    return _response(json_reply(openapi_document()))


async def _refused(request: Request, problem: HTTPException) -> Response:
    sentences = {
        404: f"nothing is here; the pages are /, /audit and /gallery, the API is in {ADDRESS}",
        405: f"{request.method[:20]} is not for this address; its description is in {ADDRESS}",
    }
    sentence = sentences.get(problem.status_code, problem.detail)
    response = _response(refusal(request.url.path, problem.status_code, sentence))
    response.headers.update(_allowed(problem.headers))
    return response


def _allowed(headers: Mapping[str, str] | None) -> Mapping[str, str]:
    return headers or {}


def _response(reply: Reply) -> Response:
    kept = {"cache-control": "no-store" if reply.status != 200 else "no-cache"}
    kept |= {"retry-after": "1"} if reply.status == 429 else {}
    return Response(reply.content, status_code=reply.status, media_type=reply.media, headers=kept)


def _closing(response: Response) -> Response:
    response.headers["connection"] = "close"
    return response


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
