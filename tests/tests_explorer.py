"""A running explorer, as a user starts it, for tests of several kinds."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator

SERVE = [sys.executable, "-m", "archfit", "serve", "--port", "0"]


@contextlib.contextmanager
def running_explorer() -> Iterator[str]:
    """Its address; at the end it must have lived and be ended by Ctrl-C alone."""
    server = subprocess.Popen(SERVE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), line
        yield line.split()[0].rstrip("/")
        assert server.poll() is None
    finally:
        server.send_signal(signal.SIGINT)
        try:
            _, errors = server.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            raise
    assert (server.returncode, errors) == (0, "")
