"""`specdec bench`: measurements, one file a subject, each of one interleaved run."""

from __future__ import annotations

import typer

from specdec_rs.cli.bench import kernels

__all__ = ["app"]

app = typer.Typer(help="Measure this machine and a model on it.", no_args_is_help=True)
app.command("kernels")(kernels.run)


@app.callback()
def _group() -> None:
    """Keep `kernels` a verb of its own: typer makes a lone command the program."""
