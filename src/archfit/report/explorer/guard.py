"""What is checked before a request is looked at, and said with every answer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archfit.report.explorer.exchange import refusal
from archfit.report.explorer.limits import MOST_BODY_BYTES

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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

    def __init__(self, app: "ASGIApp", hosts: Sequence[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in HEADERS.items() if pair[0] not in own),
                ]
            await send(message)

        problem = self._problem(scope["method"], scope["headers"])
        if problem is None:
            return await self._app(scope, receive, with_headers)
        await _refuse(scope["path"], *problem, with_headers)
        return None

    def _problem(self, method: str, headers: Headers) -> tuple[int, str] | None:
        host = next((value for name, value in headers if name == b"host"), b"").decode("latin-1")
        if self._hosts and _without_port(host) not in self._hosts:
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


async def _refuse(path: str, status: int, sentence: str, send: "Send") -> None:
    reply = refusal(path, status, sentence)
    headers = [
        (b"content-type", reply.media.encode()),
        (b"content-length", str(len(reply.content)).encode()),
        (b"connection", b"close"),  # a body that nobody wants is not read
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.content})


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
