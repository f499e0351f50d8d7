"""What the verbs share: JSON to stdout, remarks to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

import typer

from specdec_rs.errors import ConfigError
from specdec_rs.outputs import RequestOutput, StreamChunk

JSON_HELP = "Print one JSON document to stdout."


def stdin(*, line: bool = False) -> str:
    """What stdin says: all of it, or the next line."""
    if sys.stdin is None:
        raise ConfigError("stdin: found it closed, expected text; give the text as an argument")
    try:
        return sys.stdin.readline() if line else sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"stdin: found byte {error.object[error.start]:#04x}, expected text in "
            f"{error.encoding}; convert it, or set PYTHONIOENCODING"
        ) from None


def document(value: object) -> None:
    """Print `value` as one JSON document."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def remark(line: str) -> None:
    """Print a line for a person."""
    typer.echo(line, err=True)


def answer(chunks: Iterable[StreamChunk]) -> RequestOutput:
    """Print an answer as it comes, then a line about its speed; returns the whole of it."""
    output = None
    for chunk in chunks:
        typer.echo(chunk.text, nl=False)
        output = chunk.output or output
    typer.echo()
    if output is None:
        raise RuntimeError("a stream ended without its last chunk")
    remark(summary(output))
    return output


def summary(output: RequestOutput) -> str:
    """One line: tokens, speed, and what speculation did."""
    metrics = output.metrics
    parts = [f"{len(output.outputs[0].token_ids)} tokens"]
    if metrics.tokens_per_second is not None:
        parts.append(f"{metrics.tokens_per_second:.1f} tokens/s")
    stats = metrics.speculative_decoding
    if stats is not None and stats.num_draft_tokens:
        parts.append(
            f"{stats.num_accepted_draft_tokens} of {stats.num_draft_tokens} drafted tokens accepted"
        )
        parts.append(f"{stats.mean_acceptance_length:.2f} tokens per drafted step")
    return ", ".join(parts)
