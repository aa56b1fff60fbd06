"""The `archfit` program: its verbs, and what happens when something goes wrong."""

import sys
from typing import Annotated

import typer

from archfit.cli import bounds_command, data_commands, theory_command
from archfit.cli.version import version_line

app = typer.Typer(
    name="archfit",
    help="Which Transformer architecture fits my data?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("theory")(theory_command.theory)
app.command("bounds")(bounds_command.bounds)
app.add_typer(data_commands.app, name="data")

# typer carries its own copy of click from 0.20 on and uses the real one before;
# the parent of its public BadParameter is "the command line was wrong" in both.
UsageError = typer.BadParameter.__mro__[1]
BAD_INPUT = 2


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version_line())
        raise typer.Exit


@app.callback()
def _global_options(
    version: Annotated[  # noqa: ARG001  # typer hands it to the callback
        bool,
        typer.Option("--version", help="Version and commit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Which Transformer architecture fits my data?"""


def main() -> None:
    """Run the command line; bad input is one sentence on stderr and exit status 2."""
    try:
        status = app(standalone_mode=False)
    except UsageError as problem:
        _refuse(_usage_sentence(problem))
    except (ValueError, OSError) as problem:
        _refuse(str(problem))
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("archfit: interrupted", err=True)
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)


def _refuse(sentence: str) -> None:
    typer.echo(f"archfit: {' '.join(sentence.split())}", err=True)
    sys.exit(BAD_INPUT)


def _usage_sentence(problem: BaseException) -> str:
    message = getattr(problem, "format_message", lambda: str(problem))()
    context = getattr(problem, "ctx", None)
    if not message or message.startswith("Usage"):  # a bare `archfit`: its help is the answer
        return f"no command was given; run {getattr(context, 'command_path', 'archfit')} --help"
    way_out = f"; see {context.command_path} --help" if context is not None else ""
    return f"{message.rstrip('.')}{way_out}"
