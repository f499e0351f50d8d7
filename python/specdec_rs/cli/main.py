"""Entry of `specdec`: the verbs, and how errors leave the program."""

from __future__ import annotations

import os
import sys

import typer

from specdec_rs import __version__
from specdec_rs.cli import bench, chat, demo, env, fetch, generate
from specdec_rs.errors import ConfigError, SpecdecError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Exact speculative decoding of language models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("demo")(demo.run)
app.command("generate")(generate.run)
app.command("chat")(chat.run)
app.command("fetch")(fetch.run)
app.command("env")(env.run)
app.add_typer(bench.app, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line; an error is one line on stderr, the status 2 for a wrong parameter."""
    try:
        app()
    except SpecdecError as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        typer.echo(f"error: {error}{notes}", err=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except OSError as error:
        # A full disk behind stdout, say. What is left in its buffer has nowhere to go.
        typer.echo(f"error: {error}", err=True)
        _drop_stdout()
        sys.exit(1)


def _drop_stdout() -> None:
    """Send stdout nowhere, so that the interpreter does not fail at it again when it ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
