"""Commands as copies of a warm process, and what may happen to them at a file operation."""

import contextlib
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

HANGS_AFTER = 20.0  # seconds
ALLOWED = (0, 1, 2, 130, 143)
TRACEBACK = 70  # the status of a command that ended with one
EVENTS = {  # what Python tells an audit hook before it does it; fsync is told by `_tell_fsync`
    *("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod"),
    *("shutil.rmtree", "fcntl.flock", "os.fsync"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a command ended: its status (negative: the signal), or that it hung; and its words."""

    status: int
    hung: bool
    words: str

    @property
    def problem(self) -> str:
        """What no command may do; empty if it did none of it."""
        if self.hung:
            return f"hung for {HANGS_AFTER:.0f} s"
        if self.status == TRACEBACK or "Traceback (most recent call last)" in self.words:
            return "a traceback"
        return "" if self.status in (*ALLOWED, -signal.SIGKILL) else f"status {self.status}"


def warm_up() -> None:
    """Load what commands load, so that a copy of this process need not; nothing is computed."""
    import altair
    import torch
    import vl_convert

    import archfit.cli.app
    import archfit.train.together

    for verb, (module, _) in archfit.cli.app.COMMANDS.items():
        if verb != "serve":
            __import__(f"archfit.cli.{module}")
    for name in ("scipy.sparse.linalg", "scipy.optimize", "scipy.stats", "tokenizers", "PIL.Image"):
        __import__(name)
    import archfit.sweep.runner

    archfit.sweep.runner.subprocess = _ForkedWorkers  # type: ignore[assignment,attr-defined]
    torch.set_num_threads(1)
    del altair, vl_convert


def run_here(words: Sequence[str]) -> int:
    """The status with which the command line ends, in this process."""
    from archfit.cli.app import main

    sys.argv = ["archfit", *words]
    try:
        main()
    except SystemExit as ended:
        code = ended.code
        return code if isinstance(code, int) else int(code is not None)
    except BaseException:
        traceback.print_exc()
        return TRACEBACK
    return 0


def start(words: Sequence[str], said: Path, prepare: Callable[[], None] = lambda: None) -> int:
    """The process of a command, whose words go to the file; `prepare` is called inside first."""
    process = os.fork()
    if not process:
        _begin(words, said, prepare)
    return process


def _begin(words: Sequence[str], said: Path, prepare: Callable[[], None]) -> None:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _put(os.open(os.devnull, os.O_RDONLY), 0)
    handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(handle, 1)
    _put(handle, 2)
    prepare()
    _leave(run_here(words))


def _put(handle: int, place: int) -> None:
    os.dup2(handle, place)
    os.close(handle)


def _leave(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def ending(process: int, said: Path, patience: float = HANGS_AFTER) -> Ending:
    """Wait for a process; one that hangs is killed, with all that it started."""
    give_up, hung = time.monotonic() + patience, False
    while True:
        found, code = os.waitpid(process, os.WNOHANG)
        if found:
            break
        if time.monotonic() > give_up and not hung:
            hung = True
            kill_group(process)
        time.sleep(0.002)
    status = os.waitstatus_to_exitcode(code)
    return Ending(status=status, hung=hung, words=said.read_text(errors="replace"))


def kill_group(process: int) -> None:
    """Kill -9 a command and what it started, but not workers that have a session of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def done(words: Sequence[str], said: Path, patience: float = HANGS_AFTER) -> Ending:
    """Run a command to its end."""
    return ending(start(words, said), said, patience)


class _ForkedWorkers:
    """What the runner of sweeps needs of `subprocess`, with workers that are copies of it."""

    PIPE, TimeoutExpired = -1, TimeoutError

    class Popen:
        """A worker."""

        def __init__(self, words: list[str], *, stderr: IO[bytes], **_: object) -> None:
            (orders, self_orders), (self_answers, answers) = os.pipe(), os.pipe()
            self.pid, self.returncode = os.fork(), cast(int | None, None)
            if not self.pid:
                os.setsid()
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                for handle, place in ((orders, 0), (answers, 1), (stderr.fileno(), 2)):
                    os.dup2(handle, place)
                os.closerange(3, 1024)
                _leave(run_here(words[words.index("train") :]))
            os.close(orders)
            os.close(answers)
            self.stdin, self.stdout = os.fdopen(self_orders, "wb"), os.fdopen(self_answers, "rb")

        def poll(self) -> int | None:
            """Its status, once it has ended."""
            if self.returncode is None:
                found, code = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(code) if found else None
            return self.returncode

        def wait(self, timeout: float = 1e9) -> int:
            """Its status, when it has ended."""
            give_up = time.monotonic() + timeout
            while self.poll() is None:
                if time.monotonic() > give_up:
                    raise TimeoutError
                time.sleep(0.002)
            return self.returncode or 0

        def kill(self) -> None:
            """Kill -9."""
            os.kill(self.pid, signal.SIGKILL)


# ---- file operations


class Operations:
    """The file operations of a process below a folder; at one of them something happens: at that
    of a number, or the first at a place."""

    def __init__(self, folder: Path, at: int | str, act: Callable[[], None], log: Path) -> None:
        self.folder, self.at, self.act, self.log = str(folder), at, act, log
        self.count, self.is_inside = 0, False

    def begin(self) -> None:
        """Watch from now on; what is forked is watched, too, each counting for itself."""
        fsync = os.fsync

        def told(handle: int) -> None:
            self("os.fsync", (handle,))
            fsync(handle)

        os.fsync = told  # type: ignore[assignment]  # handles are all that we give
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Before each operation."""
        if event not in EVENTS or self.is_inside:
            return
        self.is_inside = True
        try:
            path = _path_of(event, arguments)
            if path.startswith(self.folder):
                self.count += 1
                site = f"{event} {re.sub(r'[0-9a-f]{4,}|[0-9]+', '*', os.path.basename(path))}"
                is_here = self.at in (self.count, site)
                if is_here or not self.at:
                    with open(self.log, "a") as log:
                        log.write(f"{self.count}\t{site}\n")
                if is_here:
                    self.act()
        finally:
            self.is_inside = False


def _path_of(event: str, arguments: tuple[Any, ...]) -> str:
    """The file that an operation is about; empty where it has no name."""
    path = arguments[0]
    if isinstance(path, int):  # a handle
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/self/fd/{path}")
        return ""
    if not isinstance(path, str | bytes | os.PathLike):
        return ""
    name = os.fsdecode(path)
    folder = arguments[-1] if event in ("os.remove", "os.rmdir", "os.mkdir") else -1
    if isinstance(folder, int) and folder >= 0 and not os.path.isabs(name):
        with contextlib.suppress(OSError):
            return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)
    return os.path.abspath(name)
