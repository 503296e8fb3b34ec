"""The program ``grisaille``: finds the command, runs it, and turns errors into one message and a status."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

import click

import grisaille
from grisaille.errors import GrisailleError
from grisaille.model.names import suggestion

FINE, UNSATISFIED, MISTAKE, FAULT, INTERRUPTED = 0, 1, 2, 3, 130

COMMANDS = {
    "Begin": ("demo", "new"),
    "Look at a model or a problem": ("lint", "analyze", "simulate", "show-code"),
    "Estimate": ("fit", "predict", "diagnose", "report", "compare", "study"),
    "The rest": ("modelica", "export-kernel", "reproduce", "schema", "cache", "warm-up"),
}
"""Commands by heading; each is ``command`` in the module of its name, with _ for -."""


class Program(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in COMMANDS.values() for name in names]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"{__package__}.{name.replace('-', '_')}_command").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(f"There is no command {name!r}. {suggestion(name, self.list_commands(ctx))}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in COMMANDS.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name, c.get_short_help_str(80)) for name, c in found if c is not None])


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 fine; 1 finished, but not converged or with findings; 2 a mistake in what was asked; "
    "3 a fault of grisaille; 130 interrupted.",
)
@click.version_option(grisaille.__version__, prog_name="grisaille", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def program(context: click.Context, debug: bool) -> None:
    """Grey-box modelling: physics as equations, unknown parameters, disturbances, and data.

    Begin with 'grisaille demo', or with a problem of your own: 'grisaille new two-tank tanks', then
    'grisaille fit tanks'.
    """
    context.obj = {"debug": debug}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; gives its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            status = program.main(words or ["--help"], prog_name="grisaille", standalone_mode=False)
        return int(status or FINE)
    except click.exceptions.Abort as stop:
        for note in getattr(stop.__cause__, "__notes__", ()):
            print(f"grisaille: {note}", file=sys.stderr)
        return INTERRUPTED
    except click.ClickException as error:
        return _refused(_usage(error), words)
    except (GrisailleError, OSError) as error:
        if "--debug" in words:
            raise
        return _refused(str(error), words)
    except Exception as error:  # a fault of ours must not look like a fit that did not converge
        if "--debug" in words:
            raise
        _refused(
            f"{type(error).__name__}: {error}. This is a fault of grisaille, not yours: the same command with --debug "
            f"shows where; please report it with what it prints.",
            words,
        )
        return FAULT


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "grisaille"
    return f"{error.format_message()} ('{path} --help' shows what there is.)"


def _refused(message: str, words: list[str]) -> int:
    """The message for people, and for programs where they asked for JSON."""
    print(f"grisaille: {message}", file=sys.stderr)
    if "--json" in words:
        print(json.dumps({"error": message}, ensure_ascii=False))
    return MISTAKE


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as one line, without the place in our code that gave it."""
    print(f"grisaille: {message}", file=sys.stderr)
