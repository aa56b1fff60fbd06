"""What is asked of the explorer and what it answers, also as bytes on a pipe; and its limits."""

import json
import struct
from dataclasses import dataclass

MOST_BODY_BYTES = 10**6
MOST_HEAD_BYTES = 32 * 1024  # request line and headers; a config.json of 10 kB fits into a link
MOST_TEXT = 400  # characters of a value; the longest size that can be meant has 400 digits
MOST_SECONDS = 2.0  # of computing
WALL_SECONDS = 15.0  # until an answer is there: 2 s of computing on a machine with others to serve
PROCESSES = {"answers": 2, "bounds": 1, "charts": 1, "atlas": 1}
MOST_WAITING = {
    "answers": 256,
    "bounds": 16,
    "charts": 16,
    "atlas": 16,
}  # requests in line for a process
WAIT_SECONDS = 5.0  # in that line
REQUEST_SECONDS = 20.0  # from the first byte of a request to the last of its answer
IDLE_SECONDS = 5  # of an open connection without a request
MOST_CONNECTIONS = 512
CACHED_BYTES = {
    "answers": 16 * 10**6,
    "bounds": 4 * 10**6,
    "charts": 12 * 10**6,
    "atlas": 12 * 10**6,
}


HEAD = struct.Struct(">II")  # bytes of the part in JSON, bytes of the content

HTML = "text/html; charset=utf-8"
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplorerRequest:
    """A request, down to what decides its answer."""

    path: str
    query: tuple[tuple[str, str], ...]
    body: bytes  # of a POST; empty: it was a GET

    def packed(self) -> bytes:
        """As bytes for a pipe."""
        return _packed({"path": self.path, "query": self.query}, self.body)

    @staticmethod
    def unpacked(head: bytes, content: bytes) -> "ExplorerRequest":
        """What was packed."""
        fields = json.loads(head)
        query = tuple((name, value) for name, value in fields["query"])
        return ExplorerRequest(path=fields["path"], query=query, body=content)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """An answer; equal questions have equal ones."""

    status: int
    media: str
    content: bytes

    def packed(self) -> bytes:
        """As bytes for a pipe."""
        return _packed({"status": self.status, "media": self.media}, self.content)

    @staticmethod
    def unpacked(head: bytes, content: bytes) -> "Reply":
        """What was packed."""
        return Reply(**json.loads(head), content=content)


def json_reply(document: object, status: int = 200) -> Reply:
    """The text that `--json` prints."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return Reply(status=status, media=JSON, content=f"{text}\n".encode())


def refusal(path: str, status: int, sentence: str) -> Reply:
    """One sentence: as JSON to a program, as text to a person."""
    if path.startswith(("/api/", "/chart/")):
        return json_reply({"error": sentence}, status)
    return Reply(status=status, media=TEXT, content=f"{sentence}\n".encode())


def _packed(fields: dict[str, object], content: bytes) -> bytes:
    head = json.dumps(fields).encode()
    return HEAD.pack(len(head), len(content)) + head + content
