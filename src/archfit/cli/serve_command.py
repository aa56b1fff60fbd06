"""`archfit serve`: the explorer, a page and an API on this machine."""

import contextlib
import importlib.util
from typing import Annotated

import typer

NEEDED = ("starlette", "uvicorn")


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0: a free one.")] = 8000,
) -> None:
    """Plans, audits and published models as pages in a browser, and as JSON."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(
            f"archfit serve needs {' and '.join(missing)}; pip install 'archfit[serve]'"
        )
    from archfit.report.explorer import server

    listener = server.listen(host, port)
    address, taken = listener.getsockname()[:2]
    host_name = f"[{address}]" if ":" in address else address
    with contextlib.suppress(KeyboardInterrupt):  # how it is meant to end
        server.serve(listener, lambda: typer.echo(f"http://{host_name}:{taken}/  (Ctrl-C ends it)"))
