"""Standard streams that do not stop the work: closed, unread, or lacking letters."""

import codecs
import io
import os
import sys

STREAMS = ("stdin", "stdout", "stderr")  # by their numbers
TYPED = {  # what one would type
    "\N{EN DASH}": "-", "\N{EM DASH}": "-", "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{LESS-THAN OR EQUAL TO}": "<=", "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"', "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
}  # fmt: skip


class _Outliving(io.FileIO):
    """A pipe or file whose reader may leave: what nobody reads any more is dropped."""

    def write(self, data: "memoryview | bytes") -> int:  # type: ignore[override]  # what is given
        try:
            return super().write(data)
        except BrokenPipeError:  # the reader, `head` for one, has seen enough
            return len(data)


def _typed(problem: UnicodeError) -> tuple[str, int]:
    """What stands for letters that an encoding lacks: what one would type, or an escape."""
    assert isinstance(problem, UnicodeEncodeError)
    letters = problem.object[problem.start : problem.end]
    said = (TYPED.get(x) or x.encode("unicode_escape").decode() for x in letters)
    return "".join(said), problem.end


def open_streams() -> None:
    """Make the process's own streams such; streams that somebody put in their place stay."""
    codecs.register_error("typed", _typed)
    for number, name in enumerate(STREAMS):
        stream = getattr(sys, name)
        if stream is None:  # closed (`2>&-`): the next file opened would take its number
            place = os.open(os.devnull, os.O_RDWR)
            if place != number:
                os.dup2(place, number)
                os.close(place)
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, closefd=False, encoding="utf-8"))  # noqa: SIM115
        elif number and stream is getattr(sys, f"__{name}__"):
            stream.flush()
            pipe = io.BufferedWriter(_Outliving(number, "w", closefd=False))  # type: ignore[type-var]
            buffered = {
                "line_buffering": stream.line_buffering,
                "write_through": stream.write_through,
            }
            opened = io.TextIOWrapper(pipe, encoding=stream.encoding, errors="typed", **buffered)
            setattr(sys, name, opened)
