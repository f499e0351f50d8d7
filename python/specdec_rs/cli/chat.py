"""`specdec chat`: a conversation, turn by turn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from specdec_rs.cli import _show
from specdec_rs.cli._flat import flat
from specdec_rs.cli._options import Loading, Sampling
from specdec_rs.errors import ConfigError
from specdec_rs.llm import LLM
from specdec_rs.outputs import RequestOutput
from specdec_rs.params import SamplingParams


@flat
def run(
    loading: Loading,
    sampling: Sampling,
    message: Annotated[
        str | None, typer.Argument(help="One message; a conversation when left out.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="The system message.")] = None,
    chat_template: Annotated[
        Path | None, typer.Option(help="A file of Jinja instead of the model's own template.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help=_show.JSON_HELP)] = False,
) -> None:
    """Talk with a model; an empty line or end of input ends the conversation.

    With --json, the answers come as one document when it has ended: a list where it had turns.

    Messages are text: a special token written in one is never a special token.
    """
    params = sampling.params()
    messages = [{"role": "system", "content": system}] if system else []
    with loading.load(chat_template=_read_template(chat_template)) as llm:
        if message is None:
            outputs = _talk(llm, messages, params, quiet=json)
            if json:
                _show.document([output.to_dict() for output in outputs])
            return
        messages.append({"role": "user", "content": message})
        if json:
            [output] = llm.chat(messages, params, use_tqdm=False)
            _show.document(output.to_dict())
        else:
            _show.answer(llm.stream(messages, params))


def _read_template(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--chat-template: {file} cannot be read as text ({error}), expected a file of Jinja"
        ) from error


def _talk(
    llm: LLM, messages: list[dict[str, str]], params: SamplingParams, *, quiet: bool
) -> list[RequestOutput]:
    """Turn by turn until the person or pipe has no more to say."""
    outputs = []
    while said := _read():
        messages.append({"role": "user", "content": said})
        if quiet:
            [output] = llm.chat(messages, params, use_tqdm=False)
        else:
            output = _show.answer(llm.stream(messages, params))
        messages.append({"role": "assistant", "content": output.outputs[0].text})
        outputs.append(output)
    return outputs


def _read() -> str:
    """The next line of the person or pipe; empty at the end."""
    if sys.stdin is not None and sys.stdin.isatty():
        typer.echo("> ", nl=False, err=True)
    return _show.stdin(line=True).strip()
