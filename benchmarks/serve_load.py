"""The explorer under load: 50 clients for 30 s, valid and hostile requests mixed; then slow ones.

Starts `archfit serve` on loopback, makes requests from its own OpenAPI description, and prints
what came back: statuses, latencies of plan and audit, memory of the server's processes. Then 520
connections send requests in a row without reading, read a little, or trickle a head, for 25 s, and
come back when they are dropped, while others ask. Ends with status 1 if the server failed (5xx),
or broke a promise that is printed beside its figure.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

CLIENTS, SECONDS, FUZZED = 50, 30.0, 10_000
MOST_GROWTH = 100 * 10**6  # bytes
MOST_P95 = 0.3  # seconds
PROCESSES = 7  # of a server that has started: itself, five that answer and who tracks them
SLOW, SLOW_SECONDS, OTHERS = 520, 25.0, 4
MOST_WAIT = 1.0  # seconds that others wait for an answer meanwhile
PLAN, AUDIT = "plan", "audit"

VALID = {
    PLAN: ("125M", "1M", "30M", "1.3B", "7B"),
    AUDIT: ("gpt2", "albert-xxlarge-v1", "T5-11B", "ESM-1b", "ViT-H/14", "Llama-2-7B"),
}
NASTY = (
    "", "0", "-1", "1e999", "9" * 399, "nan", "<script>alert(1)</script>", "../../etc/passwd", "'",
    "\x00", "é", "1e12", "1e18", "16x16x3", "0x0", "x" * 401, "%", "true", "null", "[]", "{}",
)  # fmt: skip
NASTY_BODIES = (
    b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 5_000, b"9" * 200_000,
    b'{"n_embd": 1e999}', b'{"n_embd": -1}', b'{"n_embd": "8"}', b'{"n_embd": [8]}', b" " * 999_999,
    b"{" + b'"a": 1,' * 100_000 + b'"b": 2}', b'{"model_type": "\\ud800", "n_embd": 8}',
)  # fmt: skip


def fuzzed_requests(description: dict[str, Any], chance: random.Random) -> Iterator[bytes]:
    """Requests as the description has them, and with anything wrong that it names."""
    operations = [
        (path, method, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    while True:
        path, method, operation = chance.choice(operations)
        query = [
            (parameter["name"], _value(parameter, chance))
            for parameter in operation.get("parameters", ())
            if chance.random() < (0.95 if parameter["required"] else 0.4)
        ]
        if chance.random() < 0.05:
            query.append((chance.choice(NASTY), chance.choice(NASTY)))
        body = _body(operation, chance) if method == "post" else None
        if chance.random() < 0.03:
            method, path = (
                chance.choice(("PUT", "DELETE", "get", "TRACE")),
                chance.choice((path, "/nowhere", "/static/1/x.js", "/%2e%2e/%2e%2e/etc/passwd")),
            )
        yield _request(method.upper(), path, query, body, chunked=chance.random() < 0.3)


def _value(parameter: dict[str, Any], chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.4:
        return str(parameter["example"])
    if kind < 0.8 and parameter["schema"]["$ref"].endswith(("size", "bytes")):
        return str(int(10 ** chance.uniform(0, chance.choice((3, 6, 18)))))
    return chance.choice(NASTY)


def _body(operation: dict[str, Any], chance: random.Random) -> bytes:
    if chance.random() < 0.5:
        return chance.choice(NASTY_BODIES)
    example: dict[str, Any] = dict(
        operation["requestBody"]["content"]["application/json"]["example"]
    )
    for key in list(example):
        if chance.random() < 0.3:
            example[key] = chance.choice((None, 0, -1, 10**13, 1.5, "8", [], {}, True, 64, 1024))
    return json.dumps(example).encode()


def _request(
    method: str, path: str, query: list[tuple[str, str]], body: bytes | None, *, chunked: bool
) -> bytes:
    target = quote(path, safe="/%") + (f"?{urlencode(query)}" if query else "")
    head = f"{method} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    if body is None:
        return f"{head}\r\n".encode()
    if chunked:
        chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
        return f"{head}transfer-encoding: chunked\r\n\r\n".encode() + chunk + b"0\r\n\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def visitors_requests(chance: random.Random, config: bytes) -> Iterator[tuple[str, bytes]]:
    """What people ask: mostly plans and audits that nobody asked before, pages, some charts."""
    while True:
        kind = chance.random()
        size = f"{chance.randint(1, 999)}{chance.choice('MB')}"
        vocab = str(int(10 ** chance.uniform(1, 5)) + 1)
        page = {"budget": size, "of": "block_params", "vocab": vocab}
        if kind < 0.35:
            yield PLAN, _get("/api/plan", block_params=size, vocab=vocab)
        elif kind < 0.5:
            yield PLAN, _get("/", **page)
        elif kind < 0.65:
            yield AUDIT, _get("/api/audit", name=chance.choice(VALID[AUDIT]))
        elif kind < 0.8:
            yield AUDIT, _request("POST", "/api/audit", [], config, chunked=False)
        elif kind < 0.9:
            depth, width = chance.randint(1, 96), 64 * chance.randint(1, 100)
            fields = {"depth": depth, "width": width, "heads": 4, "vocab": vocab}
            yield "bounds", _get("/api/bounds", **{k: str(v) for k, v in fields.items()})
        elif kind < 0.96:
            yield "gallery", _get("/gallery", find=chance.choice(("", "albert", "protein", "t5")))
        else:
            yield "chart", _get(f"/chart/wide/{chance.choice(('depths', 'bounds'))}", **page)


def _get(path: str, **query: str) -> bytes:
    return _request("GET", path, list(query.items()), None, chunked=False)


class Client:
    """One connection after another, one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, request: bytes) -> int:
        """The status of the answer; 0 if the server hung up without one."""
        for _ in range(2):  # a connection that was idle may be closed
            if self._writer is None:
                self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                self._writer.write(request)
                return await self._status()
            except (ConnectionError, asyncio.IncompleteReadError):
                self.close()
        return 0

    async def _status(self) -> int:
        assert self._reader is not None
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        await self._reader.readexactly(int(fields.get("content-length", 0)))
        if fields.get("connection") == "close" or "content-length" not in fields:
            self.close()
        return int(lines[0].split()[1])

    def close(self) -> None:
        """Hang up."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


class Tally:
    """What came back."""

    def __init__(self) -> None:
        self.statuses: dict[str, Counter[int]] = defaultdict(Counter)
        self.seconds: dict[str, list[float]] = defaultdict(list)

    async def count(self, client: Client, kind: str, request: bytes) -> None:
        """Ask, and note status and time."""
        start = time.perf_counter()
        status = await client.ask(request)
        self.seconds[kind].append(time.perf_counter() - start)
        self.statuses[kind][status] += 1

    def quantile(self, kind: str, share: float) -> float:
        """Seconds that this share of the requests of a kind stayed below."""
        return statistics.quantiles(self.seconds[kind], n=100)[round(100 * share) - 1]


async def load(
    port: int, description: dict[str, Any], config: bytes, *, clients: int, seconds: float
) -> Tally:
    """All clients at once, until the time is over and every fuzzed request was sent."""
    tally, chance = Tally(), random.Random(0)
    fuzzed = fuzzed_requests(description, random.Random(1))
    hostile = iter([next(fuzzed) for _ in range(FUZZED)])
    end = time.monotonic() + seconds

    async def one(number: int) -> None:
        client = Client(port)
        visitor = visitors_requests(random.Random(number), config)
        while True:
            request = next(hostile, None) if chance.random() < 0.6 else None
            if request is not None:
                await tally.count(client, "fuzzed", request)
            elif time.monotonic() > end and (request := next(hostile, None)) is None:
                break
            elif request is not None:
                await tally.count(client, "fuzzed", request)
            else:
                await tally.count(client, *next(visitor))
        client.close()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return tally


async def slow_client(port: int, number: int, end: float) -> int:
    """A connection that never finishes, and comes back; how often it was dropped."""
    path = (b"/gallery?find=%d", b"/?budget=%dM")[number // 4 % 2] % (number % 7 + 1)
    page = b"GET %s HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" % path
    dropped = -1
    while (left := end - time.monotonic()) > 0:
        dropped += 1
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.setblocking(False)
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(left):
                await loop.sock_connect(one, ("127.0.0.1", port))
                if number % 4 < 2:  # in a row
                    await loop.sock_sendall(one, 50 * page)
                    while True:
                        await asyncio.sleep(1)
                        one.send(b"")
                elif number % 4 == 2:  # a byte a second
                    await loop.sock_sendall(one, page)
                    while await loop.sock_recv(one, 1):
                        await asyncio.sleep(1)
                while True:  # a head that does not end
                    await loop.sock_sendall(one, page[:1])
                    await asyncio.sleep(1)
        one.close()
        await asyncio.sleep(1)
    return dropped


async def beside_slow_ones(port: int) -> bool:
    """Ask plans and audits while all those connections are open; whether each came in time."""
    tally, end = Tally(), time.monotonic() + SLOW_SECONDS
    slow = [asyncio.ensure_future(slow_client(port, at, end)) for at in range(SLOW)]

    async def other(number: int) -> None:
        client, chance = Client(port), random.Random(number)
        while time.monotonic() < end:
            await tally.count(client, PLAN, _get("/api/plan", params=f"{chance.randint(1, 999)}M"))
            await tally.count(client, AUDIT, _get("/api/audit", name=chance.choice(VALID[AUDIT])))
            await asyncio.sleep(0.2)

    await asyncio.gather(*map(other, range(OTHERS)))
    dropped = sum(await asyncio.gather(*slow))
    statuses = sum(tally.statuses.values(), Counter[int]())
    longest = max(max(some) for some in tally.seconds.values())
    print(
        f"beside {SLOW} slow connections (dropped {dropped} times): {statuses.total()} requests of "
        f"others, statuses {dict(statuses)} (promise: 200), the slowest answered in "
        f"{1000 * longest:.0f} ms (promise: below 1,000)"
    )
    return set(statuses) == {200} and longest < MOST_WAIT


def resident_bytes(pid: int) -> int:
    """Memory of a process and of those it started."""
    pages = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if int(folder.name) == pid or parent == pid:
                total += int((folder / "statm").read_text().split()[1]) * pages
        except OSError:  # it has ended
            continue
    return total


def processor_seconds(pid: int) -> list[float]:
    """What a process and those that it started have computed, the process itself first."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(folder.name) == pid or int(fields[1]) == pid:
            ticks = int(fields[11]) + int(fields[12])
            found[int(folder.name)] = ticks / os.sysconf("SC_CLK_TCK")
    return [seconds for _, seconds in sorted(found.items())]


def report(tally: Tally, *, before: int, after: int, seconds: float) -> bool:
    """Print the figures; whether all promises were kept."""
    for kind, statuses in sorted(tally.statuses.items()):
        shown = ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items()))
        print(f"{kind:8} {sum(statuses.values()):7,} requests   {shown}")
    answered = sum(sum(statuses.values()) for statuses in tally.statuses.values())
    failed = sum(
        count for statuses in tally.statuses.values() for status, count in statuses.items()
        if status >= 500 or status == 0
    )  # fmt: skip
    print(f"all      {answered:7,} requests in {seconds:.0f} s, {answered / seconds:.0f} a second")
    kept = failed == 0
    print(f"5xx or no answer: {failed} (promise: 0)")
    for kind in (PLAN, AUDIT):
        p50, p95 = tally.quantile(kind, 0.5), tally.quantile(kind, 0.95)
        print(f"{kind}: p50 {1000 * p50:.0f} ms, p95 {1000 * p95:.0f} ms (promise: p95 below 300)")
        kept &= p95 < MOST_P95
    print(
        f"memory: {before / 1e6:.0f} MB before, {after / 1e6:.0f} MB after, growth "
        f"{(after - before) / 1e6:+.0f} MB (promise: below 100)"
    )
    return kept and after - before < MOST_GROWTH


def main() -> None:
    """Run it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clients", type=int, default=CLIENTS)
    options.add_argument("--seconds", type=float, default=SECONDS)
    asked = options.parse_args()
    config = Path(__file__).parents[1] / "tests/audit/configs/albert-xxlarge-v1.json"
    server = subprocess.Popen(
        [sys.executable, "-m", "archfit", "serve", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline().split()[0].rstrip("/").rpartition(":")[2])
        kept = asyncio.run(_measure(server.pid, port, config.read_bytes(), asked))
    finally:
        server.send_signal(signal.SIGINT)
        print(f"server ended with status {server.wait(30)}")
    sys.exit(0 if kept else 1)


async def _measure(pid: int, port: int, config: bytes, asked: argparse.Namespace) -> bool:
    from archfit.report.explorer.api import openapi_document

    client = Client(port)
    for path in ("/chart/wide/depths", "/chart/wide/bounds", "/gallery", "/api/plan?params=1M"):
        while await client.ask(_get(path.partition("?")[0])) == 429:  # it is still starting
            await asyncio.sleep(1)
    client.close()
    while len(processor_seconds(pid)) > PROCESSES:  # the one that makes the charts' script
        await asyncio.sleep(0.5)
    before, start = resident_bytes(pid), time.monotonic()
    tally = await load(
        port, openapi_document(), config, clients=asked.clients, seconds=asked.seconds
    )
    taken = time.monotonic() - start
    load_average = os.getloadavg()[0]
    kept = report(tally, before=before, after=resident_bytes(pid), seconds=taken)
    spent = ", ".join(f"{one:.1f}" for one in processor_seconds(pid))
    print(f"{os.cpu_count()} cores, load average {load_average:.1f}; processor seconds: {spent}")
    return await beside_slow_ones(port) and kept


if __name__ == "__main__":
    main()
