"""`specdec generate`: one prompt in, one answer out, streaming."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from specdec_rs.cli import _options as options
from specdec_rs.cli import _show


def run(
    model: options.Model = options.DEFAULT_MODEL,
    prompt: Annotated[
        str | None, typer.Argument(help="The prompt; read from stdin when left out.")
    ] = None,
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
    """Continue a prompt and print the answer as it comes.

    The prompt goes to the model as it is (special tokens written in it are special tokens);
    `specdec chat` puts a conversation around it.
    """
    params = options.sampling(max_tokens, temperature, top_k, top_p, min_p, seed, stop)
    text = sys.stdin.read() if prompt is None else prompt
    with options.load(model, speculative_config, num_threads) as llm:
        if json:
            [output] = llm.generate(text, params, use_tqdm=False)
            _show.document(output.to_dict())
            return
        _show.answer(llm.stream(text, params))
