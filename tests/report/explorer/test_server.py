"""The server as it stands on a port: sizes, names, methods, headers, patience."""

import asyncio
import contextlib
import http.client
import json
import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from archfit import __version__
from archfit.report.explorer import api, server
from archfit.report.explorer.api import MOST_BODY_BYTES, MOST_HEAD_BYTES, openapi_document
from archfit.report.explorer.server import HEADERS, Explorer, ImpatientProtocol
from tests_explorer import running_explorer

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

CONFIG = (Path(__file__).parents[2] / "audit" / "configs" / "albert-xxlarge-v1.json").read_bytes()


@pytest.fixture(scope="module")
def stuck() -> Iterator[contextlib.ExitStack]:
    """Holds clients that are there when the server ends."""
    with contextlib.ExitStack() as clients:
        yield clients


@pytest.fixture(scope="module")
def port(stuck: contextlib.ExitStack) -> Iterator[int]:  # noqa: ARG001 - it ends after the server
    with running_explorer() as address:
        yield int(address.rpartition(":")[2])


def ask(
    port: int, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def raw(port: int, request: bytes) -> bytes:
    """What comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        parts = [b""]
        with contextlib.suppress(ConnectionError):  # it has heard enough
            connection.sendall(request)
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts)


def test_pages_and_documents_carry_the_headers_that_keep_others_out(port: int) -> None:
    for path in (
        "/",
        "/audit",
        "/gallery",
        "/atlas",
        "/api/plan?params=1M",
        "/nowhere",
        "/api/plan?x=1",
    ):
        _, headers, _ = ask(port, "GET", path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_a_config_is_audited_from_the_body_of_a_post(port: int) -> None:
    status, _, content = ask(port, "POST", "/api/audit", CONFIG)
    assert status == 200
    assert json.loads(content)[0]["findings"][0]["id"] == "low-rank-embedding"


def test_a_body_of_a_megabyte_is_read_and_one_byte_more_is_not(port: int) -> None:
    padded = CONFIG + b" " * (MOST_BODY_BYTES - len(CONFIG))
    assert ask(port, "POST", "/api/audit", padded)[0] == 200
    head = b"POST /api/audit HTTP/1.1\r\nhost: localhost\r\n"
    said = raw(port, head + b"content-length: %d\r\n\r\n" % (MOST_BODY_BYTES + 1))
    assert said.startswith(b"HTTP/1.1 413 ")
    assert b'"error": "the body has 1,000,001 bytes; send at most 1,000,000"' in said


def test_a_body_without_a_length_is_read_no_further_than_the_limit(port: int) -> None:
    head = b"POST /api/audit HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%s\r\n" % (50_000, b" " * 50_000)
    said = raw(port, head + 21 * chunk)  # it never ends
    assert said.startswith(b"HTTP/1.1 413 ")
    said = raw(
        port, head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(CONFIG), CONFIG) + b"GET / HTTP/1.0\r\n\r\n"
    )
    assert b"low-rank-embedding" in said


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]:80"])
def test_another_hosts_name_is_refused(port: int, host: str) -> None:
    """A page whose name was made to lead here (DNS rebinding) sends its own."""
    assert ask(port, "GET", "/api/plan?params=1M", Host=host)[0] == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]"])
def test_this_machines_names_are_answered(port: int, host: str) -> None:
    assert ask(port, "GET", "/api/plan?params=1M", Host=host)[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/api/", 404),
        ("GET", "/static/1/../../etc/passwd", 404),
        ("GET", "/audit/", 404),
        ("POST", "/api/plan", 405),
        ("DELETE", "/", 405),
        ("PUT", "/api/audit", 405),
        ("POST", "/api/audit", 400),
        ("GET", f"/?vocab={'9' * MOST_HEAD_BYTES}", 400),
        ("GET", f"/{'a' * 70_000}", 400),
        ("GET", "/api/plan?params=%ff%00%f0", 400),
        ("GET", "/?" + "&".join(["vocab=2"] * 500), 400),
    ],
)
def test_what_is_not_there_or_not_meant_is_no_mistake_of_the_server(
    port: int, method: str, path: str, status: int
) -> None:
    assert ask(port, method, path)[0] == status


def test_methods_are_those_of_the_description(port: int) -> None:
    paths = openapi_document()["paths"]
    assert isinstance(paths, dict)
    for path, operations in paths.items():
        for method in ("get", "post", "put", "delete", "patch"):
            status, _, content = ask(port, method.upper(), path)
            assert (status != 405) == (method in operations)
            assert isinstance(
                json.loads(content), dict if method != "get" or status != 200 else dict | list
            )


def test_scripts_and_styles_are_there_and_their_address_changes_with_the_version(
    port: int,
) -> None:
    page = ask(port, "GET", "/")[2].decode()
    links = re.findall(r'"(static/[^"]+)"', page)
    assert [link.rpartition("/")[2] for link in links] == [
        "look.css", "explorer.css", "vega.js", "charts.js", "explorer.js"
    ]  # fmt: skip
    for link in links:
        status, headers, content = ask(port, "GET", f"/{link}")
        assert (status, __version__ in link) == (200, True)
        assert headers["content-type"].startswith(("text/javascript", "text/css"))
        assert content
    assert ask(port, "GET", "/static/0/look.css")[0] == 404
    assert ask(port, "GET", f"/static/{__version__}/../explorer/base.html")[0] == 404


def test_a_head_is_measured_whole_however_it_comes(port: int) -> None:
    few = b"GET /api/plan?params=1M HTTP/1.1\r\nhost: localhost\r\n"
    for lines in (b"a: b\r\n" * 4_000, b"a: %s\r\n" % (b"b" * MOST_HEAD_BYTES)):
        said = raw(port, few + lines + b"\r\n")
        assert said.startswith(b"HTTP/1.1 400 ")
    assert raw(port, few + b"a: b\r\n" * 99 + b"\r\n").startswith(b"HTTP/1.1 200 ")
    assert b"101 headers are sent" in raw(port, few + b"a: b\r\n" * 100 + b"\r\n")


@pytest.mark.parametrize(
    "first",
    [
        b"GET /api/plan?params=1M HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"POST /api/audit HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n"
        b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(CONFIG), CONFIG),
    ],
)
def test_a_connection_has_one_request_and_nothing_behind_it_is_answered(
    port: int, first: bytes
) -> None:
    said = raw(port, first + b"GET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n" in said
    assert said.startswith(b"HTTP/1.1 200 " if first.startswith(b"GET") else b"HTTP/1.1 400 ")


def test_garbage_is_refused_and_the_server_lives_on(port: int) -> None:
    for garbage in (b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01" * 50):
        assert raw(port, garbage).startswith(b"HTTP/1.1 400 ")
    assert ask(port, "GET", "/")[0] == 200


GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n"


async def _talking(app: Any, talk: Callable[[Connect], Awaitable[bytes]]) -> bytes:
    """What comes of a talk with an application behind the protocol."""
    config = uvicorn.Config(app, http=ImpatientProtocol, ws="none", headers=[*HEADERS.items()])
    config.load()
    state = ServerState()
    state.default_headers = config.encoded_headers
    listening = await asyncio.get_running_loop().create_server(
        lambda: ImpatientProtocol(config, state, {}), "127.0.0.1", 0
    )
    async with listening:
        address = listening.sockets[0].getsockname()
        return await talk(lambda: asyncio.open_connection(*address, limit=2**10))


async def _read(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(10):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


async def _silent(scope: object, receive: object, send: object) -> None:
    """An application that is never asked."""
    raise AssertionError((scope, receive, send))


async def _long(_scope: Scope, _receive: Receive, send: Send) -> None:
    """An application that answers with more than sockets hold."""
    await Response(b"." * 10**8)(_scope, _receive, send)


@pytest.mark.parametrize(
    ("app", "request_", "waits"),
    [
        (_silent, b"GET / HTTP/1.1\r\n", 0.0),  # it trickles in
        (_long, GET + b"\r\n", 0.8),  # nobody reads the answer
        (_long, 50 * (GET + b"\r\n"), 0.8),  # nor that of those behind it
    ],
)
def test_a_connection_ends_in_time_whoever_is_slow(
    monkeypatch: pytest.MonkeyPatch, app: Any, request_: bytes, waits: float
) -> None:
    monkeypatch.setattr(api, "REQUEST_SECONDS", 0.3)

    async def talk(connect: Connect) -> bytes:
        reader, writer = await connect()
        writer.write(request_)
        await asyncio.sleep(waits)
        try:
            return await _read(reader)
        finally:
            writer.close()

    assert len(asyncio.run(_talking(app, talk))) < 10**8


def test_who_comes_last_is_answered_however_many_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 5)

    async def talk(connect: Connect) -> bytes:
        slow = [await connect() for _ in range(20)]
        for _, writer in slow:
            writer.write(GET)
        await asyncio.sleep(0.1)
        reader, writer = await connect()
        writer.write(GET + b"\r\n")
        said = await _read(reader)
        ended = [one for one, _ in slow if await _has_ended(one)]
        assert len(ended) == 16  # the oldest; five connections are held
        for _, one in [*slow, (reader, writer)]:
            one.close()
        return said

    assert asyncio.run(_talking(Response(b"here"), talk)).endswith(b"here")


async def _has_ended(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(0.05):
            return await reader.read() == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def _computed(*paths: str, body: bytes = b"", at_once: int = 1) -> list[str]:
    """The paths that are computed where these are asked for one after another."""
    computed: list[str] = []

    async def answer(asked: api.Question) -> Response:
        computed.append(asked.path)
        await asyncio.sleep(0)
        if asked.path == "/api/plan":
            raise HTTPException(429)
        return Response(status_code=500 if asked.path == "/api/bounds" else 200)

    async def asked(explorer: Explorer, path: str) -> None:
        scope = {"type": "http", "path": path, "query_string": b"", "headers": []}

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        request = Request(scope | {"method": "POST" if body else "GET"}, receive)
        with contextlib.suppress(HTTPException):
            await explorer.answered(request)

    async def ask_all() -> None:
        explorer = Explorer(lambda: None)
        for pool in explorer._pools.values():
            pool.answer = answer  # type: ignore[method-assign]
        for path in paths:
            many = [asyncio.ensure_future(asked(explorer, path)) for _ in range(at_once)]
            await asyncio.sleep(0)
            many[0].cancel()  # who leaves does not take it from the others
            await asyncio.gather(*many, return_exceptions=True)

    asyncio.run(ask_all())
    return computed


def test_the_latest_answers_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REMEMBERED", 2)
    a, b, c = "/", "/audit", "/gallery"
    assert _computed(a, b, a, c, a, b) == [a, b, c, b]


def test_one_question_asked_by_many_at_once_is_computed_once() -> None:
    assert _computed("/", at_once=5) == ["/"]


def test_neither_refusals_nor_mistakes_nor_what_was_sent_is_remembered() -> None:
    assert _computed(*["/api/plan"] * 2, *["/api/bounds"] * 2) == (
        ["/api/plan"] * 2 + ["/api/bounds"] * 2
    )
    assert _computed("/audit", "/audit", body=b"{}") == ["/audit"] * 2


def test_ctrl_c_with_clients_that_are_stuck_prints_nothing(
    port: int, stuck: contextlib.ExitStack
) -> None:
    """The server is ended after this, the last of these tests, and must then say nothing."""
    hard = b"/api/bounds?depth=7&width=804&heads=13&positions=763536&vocab=8435621"
    for request in (
        b"GET / HTTP/1.1\r\n",
        b"POST /api/audit HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{",
        b"GET /gallery HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n" % hard,
    ):
        client = stuck.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(("127.0.0.1", port))
        client.sendall(request)
    assert ask(port, "GET", "/api/plan?params=1M")[0] == 200
