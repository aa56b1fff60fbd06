"""The server as it stands on a port: sizes, names, methods, headers, patience."""

import asyncio
import contextlib
import http.client
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from uvicorn.server import ServerState

from archfit.report.explorer import server
from archfit.report.explorer.api import MOST_BODY_BYTES, MOST_HEAD_BYTES, openapi_document
from archfit.report.explorer.server import Guard
from tests_explorer import running_explorer

CONFIG = (Path(__file__).parents[2] / "audit" / "configs" / "albert-xxlarge-v1.json").read_bytes()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
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
        ("GET", "/static/0/explorer.js", 404),
        ("GET", "/audit/", 404),
        ("POST", "/api/plan", 405),
        ("DELETE", "/", 405),
        ("PUT", "/api/audit", 405),
        ("POST", "/api/audit", 400),
        ("GET", f"/?vocab={'9' * MOST_HEAD_BYTES}", 400),
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


def test_scripts_and_styles_may_be_kept_for_ever(port: int) -> None:
    page = ask(port, "GET", "/")[2].decode()
    links = re.findall(r'"(static/[^"]+)"', page)
    assert len(links) == 3
    for link in links:
        status, headers, content = ask(port, "GET", f"/{link}")
        assert (status, headers["content-encoding"]) == (200, None)
        assert "immutable" in headers["cache-control"]
        packed = ask(port, "GET", f"/{link}", None, **{"Accept-Encoding": "gzip"})
        assert packed[1]["content-encoding"] == "gzip"
        assert len(packed[2]) < len(content)


def test_garbage_is_refused_and_the_server_lives_on(port: int) -> None:
    for garbage in (b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01" * 50):
        assert raw(port, garbage).startswith(b"HTTP/1.1 400 ")
    assert ask(port, "GET", "/")[0] == 200


def test_a_request_that_trickles_in_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.2)

    async def trickle() -> bytes:
        config = uvicorn.Config(Guard(_silent, ()), http=server.ImpatientProtocol, ws="none")
        config.load()
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(
            lambda: server.ImpatientProtocol(config, ServerState(), {}), "127.0.0.1", 0
        )
        async with listening:
            reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
            writer.write(b"GET / HTTP/1.1\r\n")
            try:
                async with asyncio.timeout(10):
                    return await reader.read()
            except ConnectionResetError:
                return b""
            finally:
                writer.close()

    assert asyncio.run(trickle()) == b""


async def _silent(scope: object, receive: object, send: object) -> None:
    """An application that is never asked."""
    raise AssertionError((scope, receive, send))
