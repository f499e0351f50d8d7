"""`specdec generate`: one prompt in, one answer out, streaming."""

from __future__ import annotations

from typing import Annotated

import typer

from specdec_rs.cli import _show
from specdec_rs.cli._flat import flat
from specdec_rs.cli._options import Loading, Sampling


@flat
def run(
    loading: Loading,
    sampling: Sampling,
    prompt: Annotated[
        str | None, typer.Argument(help="The prompt; read from stdin when left out or -.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help=_show.JSON_HELP)] = False,
) -> None:
    """Continue a prompt and print the answer as it comes.

    The prompt goes to the model as it is (special tokens written in it are special tokens);
    `specdec chat` puts a conversation around it.
    """
    params = sampling.params()
    text = _show.stdin() if prompt in (None, "-") else prompt
    with loading.load() as llm:
        if json:
            [output] = llm.generate(text, params, use_tqdm=False)
            _show.document(output.to_dict())
            return
        _show.answer(llm.stream(text, params))
