"""`specdec fetch`: bring a catalogue model into the cache."""

from __future__ import annotations

from typing import Annotated

import typer

from specdec_rs.catalogue import CATALOGUE
from specdec_rs.cli import _show
from specdec_rs.fetch import fetch
from specdec_rs.models import named
from specdec_rs.progress import to_stderr


def run(
    name: Annotated[str | None, typer.Argument(help="Catalogue name; none lists them.")] = None,
    json: Annotated[bool, typer.Option("--json", help=_show.JSON_HELP)] = False,
) -> None:
    """Download a model into the cache, check it, and print its path.

    The cache is $SPECDEC_CACHE, else the platform's cache folder. A model that is already there
    is read and checked; an interrupted download goes on where it stopped.
    """
    if name is None:
        _list(json=json)
        return
    model = named(name)
    path = fetch(model, to_stderr(), verify=True)
    if json:
        _show.document(
            {"name": name, "path": str(path), "size": model.size, "sha256": model.sha256}
        )
    else:
        typer.echo(path)


def _list(*, json: bool) -> None:
    if json:
        _show.document(
            [{"name": m.name, "about": m.about, "size": m.size} for m in CATALOGUE.values()]
        )
        return
    for model in CATALOGUE.values():
        typer.echo(f"{model.name:20} {model.size / 1e6:6,.0f} MB  {model.about}")
