"""What a command said, as tests of several commands look at it."""

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from archfit.cli.app import main


def archfit(*words: str | Path, cwd: Path | None = None) -> CompletedProcess[str]:
    """`archfit WORDS` in this process, which saves the second that a new one takes to start."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    line = ["archfit", *map(str, words)]
    status: object = 0
    with (
        contextlib.chdir(cwd or "."),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "argv", line),
    ):
        try:
            main()
        except SystemExit as ended:
            status = ended.code
    for stream in (out, err):
        stream.seek(0)
    code = status if isinstance(status, int) else int(status is not None)
    return CompletedProcess(line, code, out.read(), err.read())


def unwrapped(text: str) -> str:
    """The words alone: a terminal breaks sentences where its lines end."""
    return " ".join(text.split())


def said(*words: str | Path, cwd: Path | None = None) -> "Said":
    """The same, as tests of refusals and documents look at it."""
    done = archfit(*words, cwd=cwd)
    return Said(status=done.returncode, out=done.stdout, err=done.stderr)


@dataclass(frozen=True)
class Said:
    """How the program ended and what it said."""

    status: object
    out: str
    err: str

    def refusal(self) -> str:
        """Its one sentence."""
        assert (self.status, self.out) == (2, "")
        assert self.err.count("\n") == 1, self.err
        return self.err

    def document(self) -> dict[str, object]:
        """Its JSON."""
        assert (self.status, self.err) == (0, "")
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document
