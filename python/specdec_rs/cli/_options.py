"""Options that several verbs share, and what is made of them."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from specdec_rs import _checks as check
from specdec_rs.errors import ConfigError
from specdec_rs.llm import LLM
from specdec_rs.params import SamplingParams

DEFAULT_MODEL = "smollm2-135m"

Model = Annotated[
    str, typer.Option("--model", "-m", help="Catalogue name, file, folder or hub id.")
]
MaxTokens = Annotated[int, typer.Option(help="Most tokens of the answer.")]
Temperature = Annotated[float, typer.Option(help="0 is greedy.")]
TopK = Annotated[int, typer.Option(help="Keep this many most likely tokens; 0 is off.")]
TopP = Annotated[float, typer.Option(help="Keep the most likely tokens up to this mass; 1 is off.")]
MinP = Annotated[float, typer.Option(help="Drop tokens below this share of the best; 0 is off.")]
Seed = Annotated[int | None, typer.Option(help="Same seed, same text, speculation on or off.")]
Stop = Annotated[list[str] | None, typer.Option(help="Text that ends the answer; repeatable.")]
Threads = Annotated[int | None, typer.Option(help="Threads; all allowed ones when left out.")]
Speculative = Annotated[
    str, typer.Option(help='"auto", "none", or a JSON object such as {"method": "ngram"}.')
]


def sampling(
    max_tokens: int,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    seed: int | None,
    stop: list[str] | None,
) -> SamplingParams:
    """The parameters of one answer."""
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        seed=seed,
        stop=stop,
    )


def load(model: str, speculative: str, num_threads: int | None) -> LLM:
    """The model, with the speculation that the option asks for."""
    return LLM(model, speculative_config=_config(speculative), num_threads=num_threads)


# As they are typed in a shell.
_FORMS = """auto, none or JSON such as '{"method": "ngram"}', quoted so that it is one word"""


def _config(option: str) -> Literal["auto"] | dict[str, object] | None:
    if option == "none":
        return None
    if option == "auto":
        return "auto"
    if not option.startswith("{"):
        raise check.wrong("--speculative-config", option, _FORMS)
    try:
        config: dict[str, object] = json.loads(option)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"--speculative-config is not JSON ({error}), expected {_FORMS}"
        ) from error
    return config
