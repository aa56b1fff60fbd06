"""A process that answers one request after another, and ends when one takes too long.

Requests come on its input and answers go to its output, both as `exchange` packs them. It ends
with its input. The system itself counts the seconds that an answer computes, waiting for a
processor left out, and ends the process when they are over, whatever code it is in.
"""

import os
import signal
import sys
from typing import BinaryIO

from archfit.report.explorer.answers import answer, warm_up
from archfit.report.explorer.exchange import HEAD, Asked


def main(lane: str, seconds: float) -> None:
    """Answer until the input ends; the first byte of the output says that all is loaded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the input
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print must not be taken for an answer
    warm_up(lane)
    pipe.write(b".")
    pipe.flush()
    while (asked := _next(sys.stdin.buffer)) is not None:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        reply = answer(asked)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.write(reply.packed())
        pipe.flush()


def _next(pipe: BinaryIO) -> Asked | None:
    sizes = pipe.read(HEAD.size)
    if len(sizes) < HEAD.size:
        return None
    head, content = (pipe.read(size) for size in HEAD.unpack(sizes))
    return Asked.unpacked(head, content)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
