"""From a request to its answer: pure functions, and the process that computes them.

Requests come on its input and answers go to its output, both as `exchange` packs them. It ends
with its input. The system itself counts the seconds that an answer computes, waiting for a
processor left out, and ends the process when they are over, whatever code it is in.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import BinaryIO

from archfit.report.explorer.api import (
    TooLargeError,
    audit_document,
    bounds_document,
    plan_document,
)
from archfit.report.explorer.atlas_page import ATLAS_CHARTS, atlas_page
from archfit.report.explorer.exchange import HEAD, ExplorerRequest, Reply, json_reply, refusal
from archfit.report.explorer.pages import CHARTS, audit_page, gallery_page, plan_page
from archfit.spec.errors import one_line

DOCUMENTS: dict[str, Callable[[ExplorerRequest], object]] = {
    "/api/plan": plan_document,
    "/api/bounds": bounds_document,
    "/api/audit": audit_document,
}
PAGES: dict[str, Callable[[ExplorerRequest], Reply]] = {
    "/": plan_page,
    "/audit": audit_page,
    "/gallery": gallery_page,
    "/atlas": atlas_page,
}
TAKE_A_CONFIG = ("/api/audit", "/audit")  # as the body of a POST
# Plans and audits take milliseconds; bounds, which may not, charts, and the atlas, which takes
# seconds to be read, have processes of their own.
POOLS = {
    "answers": ("/", "/audit", "/gallery", "/api/plan", "/api/audit"),
    "bounds": ("/api/bounds",),
    "charts": tuple(CHARTS),
    "atlas": ("/atlas", *ATLAS_CHARTS),
}

_SMALL = (("depth", "2"), ("width", "8"), ("heads", "2"))
FIRST = {  # what a process asks itself before others may
    "answers": ExplorerRequest(path="/", query=(), body=b""),
    "bounds": ExplorerRequest(path="/api/bounds", query=_SMALL, body=b""),
    "charts": ExplorerRequest(path="/chart/wide/depths", query=(), body=b""),
    "atlas": ExplorerRequest(path="/chart/wide/depth", query=(), body=b""),
}


def answer(request: ExplorerRequest) -> Reply:
    """The answer; whatever is wrong with the request is one sentence."""
    try:
        if request.path in PAGES:
            return PAGES[request.path](request)
        return json_reply((DOCUMENTS | CHARTS | ATLAS_CHARTS)[request.path](request))
    except TooLargeError as problem:
        return refusal(request.path, 422, one_line(str(problem)))
    except ValueError as problem:
        return refusal(request.path, 400, one_line(str(problem)))
    except Exception:  # a mistake of ours: one request's answer, not the end of the process
        traceback.print_exc(file=sys.stderr)
        return refusal(request.path, 500, "archfit made a mistake here; its log has more")


def main(pool: str, seconds: float) -> None:
    """Answer until the input ends; the first byte of the output says that all is loaded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the input
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print must not be taken for an answer
    answer(FIRST[pool])  # loads what answers need, so that the first is as quick as the others
    pipe.write(b".")
    pipe.flush()
    while (request := _next(sys.stdin.buffer)) is not None:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        reply = answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.write(reply.packed())
        pipe.flush()


def _next(pipe: BinaryIO) -> ExplorerRequest | None:
    sizes = pipe.read(HEAD.size)
    if len(sizes) < HEAD.size:
        return None
    head, content = (pipe.read(size) for size in HEAD.unpack(sizes))
    return ExplorerRequest.unpacked(head, content)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
