"""The `archfit` program: its verbs, its streams, and what happens when something goes wrong.

Standard streams do not stop the work: closed, unread, or lacking letters.
"""

import codecs
import contextlib
import importlib.util
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from archfit.cli.shared import NAME, WORDS, say, say_stopped, show, with_words
from archfit.report.document import Document
from archfit.spec.errors import one_line, refuse_if

COMMANDS = {  # verb: the module and the function that does it
    verb: words["does"].split(".") for verb, words in WORDS.items() if "does" in words
}
ORDER = " ".join(COMMANDS).split()

# typer carries its own copy of click from 0.20 on and uses the real one before;
# the parent of its public BadParameter is "the command line was wrong" in both.
UsageError: type[BaseException] = typer.BadParameter.__mro__[1]
BAD_INPUT = 2
INTERRUPTED = 130
NEEDED_TO_SERVE = ("starlette", "uvicorn")
STREAMS = ("stdin", "stdout", "stderr")  # by their numbers
TYPED = {  # what one would type
    "\N{EN DASH}": "-", "\N{EM DASH}": "-", "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{LESS-THAN OR EQUAL TO}": "<=", "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"', "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
}  # fmt: skip


def _print_version(wanted: bool) -> None:
    if wanted:
        from archfit.report.page import version_line

        typer.echo(version_line())
        raise typer.Exit


VERSION = typer.Option(
    "--version", help="Version and commit.", callback=_print_version, is_eager=True, metavar=""
)


def _global_options(
    version: Annotated[bool, VERSION] = False,  # typer hands it to the callback
) -> None:
    """Which Transformer architecture fits my data?"""


class _PlainHelp:
    """A command or group whose --help names no type."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option of click, without a value."""
        option = super().get_help_option(ctx)  # type: ignore[misc]  # of the other parent
        option.metavar = ""
        return option


class _Command(_PlainHelp, TyperCommand):
    pass


class _Group(_PlainHelp, TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        """As COMMANDS has them; typer puts groups last."""
        return sorted(super().list_commands(ctx), key=ORDER.index)


def program(words: Sequence[str]) -> typer.Typer:
    """The command line with the verb that the words begin with, else with all verbs.

    Reading every room takes a quarter of a second, and a command needs few of them.
    """
    app = typer.Typer(
        name=NAME,
        help=WORDS["archfit"]["help"],
        epilog=WORDS["archfit"]["epilog"],
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        cls=_Group,
    )
    app.callback()(_global_options)
    groups, known = {"": app}, {verb.split()[0] for verb in COMMANDS}
    for verb, (module, name) in COMMANDS.items():
        group, _, last = verb.rpartition(" ")
        if words and words[0] in known and words[0] not in (group, verb):
            continue
        panel, examples = WORDS[verb]["panel"], WORDS[verb]["examples"]
        command = getattr(importlib.import_module(f"archfit.cli.{module}"), name)
        if group not in groups:
            groups[group] = typer.Typer(help=WORDS[group]["help"], no_args_is_help=True, cls=_Group)
            app.add_typer(groups[group], name=group, rich_help_panel=panel)
        epilog, place = "\n\n  ".join(("Examples:", *examples)), None if group else panel
        groups[group].command(last, cls=_Command, epilog=epilog, rich_help_panel=place)(command)
    return app


@with_words("serve")
def serve(host: str = "127.0.0.1", port: int = 8000) -> None:
    """Plans, audits and published models as pages in a browser, and as JSON for programs."""
    missing = [name for name in NEEDED_TO_SERVE if importlib.util.find_spec(name) is None]
    refuse_if(bool(missing), "serve-needs", missing=" and ".join(missing))
    from archfit.report.explorer import server

    listener = server.listen(host, port)
    address, taken = listener.getsockname()[:2]
    place = f"http://{f'[{address}]' if ':' in address else address}:{taken}/"
    told = Document(
        title=NAME, headline=f"{place}  (Ctrl-C ends it)", sections=(), data={"address": place}
    )
    with contextlib.suppress(KeyboardInterrupt):  # how it is meant to end
        server.serve(listener, lambda: show(told))


def main() -> None:
    """Run the command line; bad input is one sentence on stderr and exit status 2."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small here: threads wait
    open_streams()
    try:
        status = program(sys.argv[1:])(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except (UsageError, MemoryError, OSError, ValueError) as problem:
        status = 0
        if type(problem).__name__ != "NoArgsIsHelpError":  # a bare `archfit`: help was printed
            say(f"{NAME}: {one_line(_sentence(problem))}")
            status = BAD_INPUT
    if status == INTERRUPTED:  # newer typers turn Ctrl-C into this status themselves
        say_stopped("interrupted; nothing half-written is left")
    sys.exit(status if isinstance(status, int) else 0)


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


def _sentence(problem: BaseException) -> str:
    """What is wrong, and the way out."""
    if isinstance(problem, UsageError):
        message = getattr(problem, "format_message", lambda: str(problem))()
        context = getattr(problem, "ctx", None)
        way_out = f"; see {context.command_path} --help" if context is not None else ""
        return f"{message.rstrip('.')}{way_out}"
    if isinstance(problem, MemoryError):
        return "the input needs more memory than this machine has; use a smaller one"
    if isinstance(problem, OSError) and problem.filename and problem.strerror:
        return f"{problem.filename}: {problem.strerror}; check the path and its permissions"
    return str(problem)  # one of ours, already a sentence
