"""The `archfit` program: its verbs, and what happens when something goes wrong."""

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from archfit.cli.options import all_words, examples, with_words
from archfit.cli.output import NAME, say, say_stopped, show
from archfit.cli.streams import open_streams
from archfit.report.document import Document
from archfit.report.page import version_line
from archfit.spec.errors import one_line, refuse_if

QUESTION = "Which Transformer architecture fits my data?"
PAPERS = (
    "The papers: Levine et al. 2020, arXiv:2006.12467, and Wies et al. 2021, arXiv:2105.03928. "
    "`archfit COMMAND --help` ends with examples."
)
COMMANDS = {  # verb: the module and the function that does it
    verb: words["does"].split(".") for verb, words in all_words().items() if "does" in words
}
ORDER = " ".join(COMMANDS).split()
GROUPS = {"data": "Turn text, sequences, images or series into tokens; show what a data set holds."}

# typer carries its own copy of click from 0.20 on and uses the real one before;
# the parent of its public BadParameter is "the command line was wrong" in both.
UsageError: type[BaseException] = typer.BadParameter.__mro__[1]
BAD_INPUT = 2
INTERRUPTED = 130
NEEDED_TO_SERVE = ("starlette", "uvicorn")


def _print_version(wanted: bool) -> None:
    if wanted:
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
        help=QUESTION,
        epilog=PAPERS,
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
        panel = all_words()[verb]["panel"]
        command = getattr(importlib.import_module(f"archfit.cli.{module}"), name)
        if group not in groups:
            groups[group] = typer.Typer(help=GROUPS[group], no_args_is_help=True, cls=_Group)
            app.add_typer(groups[group], name=group, rich_help_panel=panel)
        groups[group].command(
            last, cls=_Command, epilog=examples(verb), rich_help_panel=None if group else panel
        )(command)
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
