"""What the verbs share: JSON to stdout, remarks to stderr."""

from __future__ import annotations

import json

import typer

JSON_HELP = "Print one JSON document to stdout."


def document(value: object) -> None:
    """Print `value` as one JSON document."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def remark(line: str) -> None:
    """Print a line for a person."""
    typer.echo(line, err=True)
