"""`specdec chat`: a conversation, turn by turn."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from specdec_rs.cli import _options as options
from specdec_rs.cli import _show
from specdec_rs.llm import LLM
from specdec_rs.outputs import RequestOutput
from specdec_rs.params import SamplingParams


def run(
    model: options.Model = options.DEFAULT_MODEL,
    message: Annotated[
        str | None, typer.Argument(help="One message; a conversation when left out.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="The system message.")] = None,
    max_tokens: options.MaxTokens = 256,
    temperature: options.Temperature = 0.0,
    top_k: options.TopK = 0,
    top_p: options.TopP = 1.0,
    min_p: options.MinP = 0.0,
    seed: options.Seed = None,
    stop: options.Stop = None,
    speculative_config: options.Speculative = "auto",
    num_threads: options.Threads = None,
    json: Annotated[bool, typer.Option("--json", help=_show.JSON_HELP)] = False,
) -> None:
    """Talk with a model; an empty line or end of input ends the conversation.

    With --json, the answers come as one document when it has ended: a list where it had turns.

    Messages are text: a special token written in one is never a special token.
    """
    params = options.sampling(max_tokens, temperature, top_k, top_p, min_p, seed, stop)
    messages = [{"role": "system", "content": system}] if system else []
    with options.load(model, speculative_config, num_threads) as llm:
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
    if sys.stdin.isatty():
        typer.echo("> ", nl=False, err=True)
    return sys.stdin.readline().strip()
