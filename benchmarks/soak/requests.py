"""Hostile requests to a running explorer: every one is answered or its connection closed."""

import json
import random
import re
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

from serve_load import fuzzed_requests

from soak.kills import Tally
from soak.processes import HANGS_AFTER

KIND = "hostile request"
SECONDS_TO_BEGIN = 1.0


def hostile_requests(count: int, chance: random.Random, tally: Tally, folder: Path) -> None:
    """Send them one by one; after each the server must live, and say no 5xx."""
    words = [sys.executable, "-m", "archfit", "serve", "--port", "0"]
    with open(folder / "server", "w+") as said:
        server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split("/")[2].rsplit(":", 1)
            place = address[0], int(address[1])
            description = json.loads(
                _answer(place, b"GET /api/openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")[1]
            )
            requests = fuzzed_requests(description, chance)
            for _ in range(count):
                request = _mutated(next(requests), chance)
                try:
                    status, _ = _answer(place, request)
                    tally.check(KIND, f"status {status}" if status >= 500 else "", repr(request))
                except TimeoutError:
                    tally.check(KIND, "no answer", repr(request))
                tally.trials[KIND] += 1
            server.send_signal(signal.SIGINT)
            tally.check(KIND, "" if server.wait(30) == 0 else f"ended with {server.returncode}")
            said.seek(0)
            words_said = said.read()
            tally.check(KIND, "a traceback" if "Traceback" in words_said else "", words_said)
        finally:
            server.kill()


def _mutated(request: bytes, chance: random.Random) -> bytes:
    """The request, or half of the time one with a few other bytes."""
    content = bytearray(request)
    for _ in range(chance.randint(1, 8) if chance.random() < 0.5 else 0):
        at = chance.randrange(min(len(content), 400))
        content[at : at + chance.randint(0, 3)] = bytes(
            chance.randrange(256) for _ in range(chance.randint(0, 3))
        )
    return bytes(content)


def _answer(place: tuple[str, int], request: bytes) -> tuple[int, bytes]:
    """The status of the answer, 0 if the connection was closed without one; and its body."""
    with socket.create_connection(place, timeout=HANGS_AFTER + 5) as connection:
        try:
            connection.sendall(request)
            if not select.select([connection], [], [], SECONDS_TO_BEGIN)[0]:
                connection.shutdown(socket.SHUT_WR)  # half a request: no more of it will come
            content = connection.recv(1 << 16)
            while content and not _is_whole(content):
                if not (more := connection.recv(1 << 16)):
                    break
                content += more
        except ConnectionError:
            return 0, b""
    head, _, body = content.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    return (int(words[1]) if len(words) > 1 and words[1].isdigit() else 0), body


def _is_whole(content: bytes) -> bool:
    """Whether as much was read as the head of the answer promises."""
    head, end, body = content.partition(b"\r\n\r\n")
    promised = re.search(rb"(?i)content-length: *(\d+)", head)
    return bool(end) and promised is not None and len(body) >= int(promised[1])
