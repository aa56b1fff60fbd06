"""The `archfit` program: its verbs, and what happens when something goes wrong."""

import contextlib
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from archfit.cli.options import with_words
from archfit.cli.output import version_line
from archfit.spec.errors import InvalidValue, one_line
from archfit.spec.run_options import NAMES_OF_FIELD

COMMANDS = {  # verb: the module and the function, or group of functions, that does it
    "advise": ("advise_command", "advise"),
    "theory": ("theory_commands", "theory"),
    "bounds": ("theory_commands", "bounds"),
    "plan": ("plan_command", "plan"),
    "audit": ("audit_command", "audit"),
    "export": ("export_command", "export"),
    "data": ("data_commands", "app"),
    "train": ("train_command", "train"),
    "sweep": ("sweep_command", "sweep"),
    "fit": ("fit_command", "fit"),
    "report": ("fit_command", "report"),
    "backtest": ("fit_command", "back_test"),
    "papers": ("papers_command", "papers"),
    "measure": ("theory_commands", "measure"),
    "witness": ("theory_commands", "witness"),
    "serve": ("app", "serve"),
}

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
    "--version", help="Version and commit.", callback=_print_version, is_eager=True
)


def _global_options(
    version: Annotated[bool, VERSION] = False,  # typer hands it to the callback
) -> None:
    """Which Transformer architecture fits my data?"""


def program(words: Sequence[str]) -> typer.Typer:
    """The command line with the verb that the words begin with, else with all verbs.

    Reading every room takes a quarter of a second, and a command needs few of them.
    """
    app = typer.Typer(
        name="archfit",
        help="Which Transformer architecture fits my data?",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    for verb in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        module, name = COMMANDS[verb]
        command = getattr(importlib.import_module(f"archfit.cli.{module}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=verb)
        else:
            app.command(verb)(_saying_options(command))
    return app


def _saying_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which calls a refused value by the option that gave it."""

    @functools.wraps(command)
    def run(**options: object) -> None:
        try:
            command(**options)
        except InvalidValue as problem:
            raise problem.named(_option_names(problem, options)) from problem

    return run


def _option_names(problem: InvalidValue, options: Mapping[str, object]) -> dict[str, str]:
    """Which option stands for each field; where several may, that of the refused value."""
    names = {}
    for field in problem.fields:
        given = [name for name in NAMES_OF_FIELD.get(field, ()) if name in options]
        given.sort(key=lambda name: str(options[name]) != str(problem.value))
        if given:
            names[field] = f"--{given[0].replace('_', '-')}"
    return names


@with_words("serve")
def serve(host: str = "127.0.0.1", port: int = 8000) -> None:
    """Plans, audits and published models as pages in a browser, and as JSON."""
    missing = [name for name in NEEDED_TO_SERVE if importlib.util.find_spec(name) is None]
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


def main() -> None:
    """Run the command line; bad input is one sentence on stderr and exit status 2."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small here: threads wait
    try:
        status = program(sys.argv[1:])(standalone_mode=False)
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except (UsageError, MemoryError, OSError, ValueError) as problem:
        status = 0
        if type(problem).__name__ != "NoArgsIsHelpError":  # a bare `archfit`: help was printed
            typer.echo(f"archfit: {one_line(_sentence(problem))}", err=True)
            status = BAD_INPUT
    if status == INTERRUPTED:  # newer typers turn Ctrl-C into this status themselves
        typer.echo("archfit: interrupted; nothing half-written is left", err=True)
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
